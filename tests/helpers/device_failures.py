"""A plugin of pytest for tests on a device: the first failure is reported at once, with its cause.

    pytest -p device_failures --failures FILE

An error such as an illegal address stays in its process: all that it does on the device after it
fails. So the device is checked after each test. A test that leaves an error is its cause; its
process ends and another goes on (pytest-xdist), or tests that would follow are skipped (without).
A test that takes longer than `MOST_SECONDS`, as where a kernel never ends, ends its process, too.

Failures are printed as they occur, for a run that is killed prints nothing at its end. FILE names
the tests that failed, those that left an error first.
"""

import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_SECONDS = 120
MOST_SHOWN = 20  # failures that are printed in full
STAYS = "an error stays in the process"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, metavar="FILE", help="names of tests that failed")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(Process(is_worker), "device-process")
    if not is_worker:
        config.pluginmanager.register(Failures(config), "device-failures")


class Process:
    """A process that runs tests: finds the one that leaves an error on the device."""

    def __init__(self, is_worker: bool) -> None:
        self.is_worker = is_worker
        self.cause: str | None = None
        self.stderr = os.dup(2)  # before pytest takes it

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True, file=self.stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self.cause:
            pytest.skip(f"the error of {self.cause} stays in this process")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        try:
            return (yield)
        finally:
            self.ask_device(item)

    def ask_device(self, item: pytest.Item) -> None:
        """Fail if kernels that the test launched have left an error."""
        cupy = sys.modules.get("cupy")
        if cupy is None or self.cause:
            return
        try:
            cupy.cuda.Device().synchronize()
            return
        except Exception as error:
            reason = f"{STAYS}: {type(error).__name__}: {error}"
        self.cause = item.nodeid
        item.user_properties.append((STAYS, reason))
        pytest.fail(reason, pytrace=False)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.is_worker and nodeid == self.cause:
            os._exit(1)  # its reports are sent; pytest-xdist starts another


class Failures:
    """The process that collects results: reports failures as they occur."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.causes: list[str] = []
        self.others: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """Ignore a process that ended for an error that was reported before."""
        if crashitem in self.causes:
            report.outcome, report.when = "passed", "teardown"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        causes = any(name == STAYS for name, _ in report.user_properties)
        (self.causes if causes else self.others).append(report.nodeid)
        failed = list(dict.fromkeys(self.causes + self.others))
        if file := self.config.getoption("--failures"):
            file.write_text("".join(f"{name}\n" for name in failed), "utf-8")
        node = getattr(report, "node", None)
        where = f" [{node.gateway.id}]" if node else ""
        lines = [f"\nFAILED{where} {report.nodeid} ({report.when})"]
        if len(failed) <= MOST_SHOWN:
            lines += [report.longreprtext]
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        terminal.write_line("\n".join(lines))
        terminal.flush()
