"""Trust in the current CUDA device, by the recorded result of its check, or by a new check.

A device is checked in a child process. A launch that fails or an illegal address ends all use of
CUDA in a process, a kernel may never end, and a driver may crash: in a child, none of this affects
the caller's CuPy or PyTorch. The child writes lines of JSON: a text for each line of the table, and
at the end its verdict.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, Any

from gputree.backends.cuda import machine
from gputree.check import comparison
from gputree.check.cases import CASES
from gputree.check.comparison import compare_device

# Threads that fit at once check once.
_checking = threading.Lock()


def what_differs() -> list[str]:
    """Return the differences on the current CUDA device, which must be usable; none is good.

    A device that was not checked before is checked now, in a child process, and a line on
    standard error says so.
    """
    identity = machine.identity()
    with _checking:
        found = comparison.find(identity)
        if found is None:
            _say(
                f"checking the CUDA device {identity.device} against the CPU, once on this "
                "machine: its kernels are compiled first"
            )
            found = check_apart(identity)
    return found


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"gputree: {line}", file=sys.stderr, flush=True)


# Maximum seconds without output of the child: at its start, and for each table, whose kernels it
# compiles.
MOST_SECONDS = 300

# Seconds between polls of the child, and of waiting for its end.
BETWEEN_LOOKS = 0.2
LAST_SECONDS = 10

CODE = f"from {__name__} import main; main()"

Process = subprocess.Popen[bytes]


def check_apart(identity: machine.Identity) -> list[str]:
    """Check the current CUDA device in a child process; records and returns the differences."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        differences, lasting = _check(identity, out, errors)
    comparison.keep(identity, differences, lasting=lasting)
    return differences


def _check(identity: machine.Identity, out: IO[bytes], errors: IO[bytes]) -> tuple[list[str], bool]:
    """Return the differences, and True if another check would find them again."""
    try:
        child = _start(machine.current_device(), out, errors)
    except OSError as error:
        return [f"no process could be started for it ({error})"], False
    try:
        ended = _follow(child, out)
    finally:
        child.kill()
        with suppress(subprocess.TimeoutExpired):  # a driver may block it
            child.wait(LAST_SECONDS)
    sent = [json.loads(line) for line in _lines(out)]
    if not ended:
        return [f"{_table_after(sent)}: no end after {MOST_SECONDS} s"], True
    if not sent or not isinstance(verdict := sent[-1], dict):
        how = _how_ended(child, errors)
        return [f"{_table_after(sent)}: its process ended ({how})"], False
    if verdict["identity"] != list(identity):
        return [f"its process met another device, {verdict['identity']}"], False
    return verdict["differences"], verdict["completed"]


def _start(device: int, out: IO[bytes], errors: IO[bytes]) -> Process:
    """Start a child that imports the modules that this process would import."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CODE, str(device)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
    )


def _follow(child: Process, out: IO[bytes]) -> bool:
    """Wait for the end of the child; False if it produced no output for too long."""
    size, since = 0, time.monotonic()
    while time.monotonic() < since + MOST_SECONDS:
        with suppress(subprocess.TimeoutExpired):
            child.wait(BETWEEN_LOOKS)
            return True
        if (now := os.fstat(out.fileno()).st_size) != size:
            size, since = now, time.monotonic()
    return False


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    lines = file.read().decode(errors="replace").splitlines(keepends=True)
    return [line.rstrip() for line in lines if line.endswith("\n") and line.strip()]


def _how_ended(child: Process, errors: IO[bytes]) -> str:
    """Describe the end of a child: signal or status, and the last line of errors, if any."""
    status = child.returncode or 0
    how = f"{signal.strsignal(-status)}" if status < 0 else f"status {status}"
    return ": ".join([how, *_lines(errors)[-1:]])


def _table_after(sent: list[Any]) -> str:
    """Name the table under check: the child sends a heading, and a line per finished table."""
    done = len(sent) - 1
    return CASES[done].name if 0 <= done < len(CASES) else "start" if done < 0 else "end"


def main() -> None:
    """Check the device whose number is the argument."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # standard output goes to standard error

    def send(item: Any) -> None:
        print(json.dumps(item), file=out, flush=True)

    with machine.device(int(sys.argv[1])):
        identity, report = compare_device(send)
    verdict = {"differences": report.differences, "completed": report.completed}
    send({"identity": identity, **verdict})
