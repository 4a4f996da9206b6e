"""A browser without a window, for tests of pages; its protocol goes through a pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu"]


class Tab:
    """One page, driven by the browser's protocol: messages of JSON that end with a zero byte.

    Isolated frames (``sandbox``) are in the process of the page, so that scripts reach them.
    """

    def __init__(self, address: str, folder: Path, seconds: float = 90.0) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self.end = time.monotonic() + seconds
        self._number, self._rest, self._session = 0, b"", ""
        self.contexts: set[int] = set()  # of scripts, one a frame
        self.errors: list[str] = []
        options = [
            f"--user-data-dir={folder}/profile",
            "--disable-features=IsolateSandboxedIframes",
        ]
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$0" "$@"'
        command = ["bash", "-c", script, BROWSER, *OPTIONS, *options, "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        found = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Runtime", "Page"):
            self._ask(f"{domain}.enable")
        self._ask("Page.navigate", url=address)

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _ask(self, method: str, **parameters: Any) -> Any:
        """Result of a command; events before it are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                return reply.get("result", {})

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            self._rest += os.read(self._read, 1 << 16) or b'{"method":"ended"}\0'
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        if found.get("method") == "ended":
            raise RuntimeError("The browser has ended.")
        parameters = found.get("params", {})
        match found.get("method"):
            case "Runtime.executionContextCreated":
                self.contexts.add(parameters["context"]["id"])
            case "Runtime.executionContextDestroyed":
                self.contexts.discard(parameters["executionContextId"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(parameters["exceptionDetails"]))
        return found

    def wait(self, script: str) -> Any:
        """Value of an expression, once one of the frames has one that is true."""
        while time.monotonic() < self.end:
            for context in sorted(self.contexts):
                given = {"expression": script, "contextId": context, "returnByValue": True}
                value = self._ask("Runtime.evaluate", **given).get("result", {}).get("value")
                if value:
                    return value
            time.sleep(0.1)
            self._ask("Runtime.evaluate", expression="0")  # reads the events up to now
        raise TimeoutError(f"In no frame: {script}")
