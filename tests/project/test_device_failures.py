"""The plugin of tests on a device: failures are reported at once, tests that need them not run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"

pytestmark = pytest.mark.process

# A device in which an error stays, as an illegal address does, until its process ends.
TESTS = """
import signal, sys, time
from types import SimpleNamespace

broken = []

def synchronize():
    if broken:
        raise RuntimeError("an illegal address")

def device():
    return SimpleNamespace(synchronize=synchronize)

sys.modules["cupy"] = SimpleNamespace(cuda=SimpleNamespace(Device=device))

def test_fails():
    assert "this" == "that"

def test_breaks():
    broken.append(1)

def test_after():
    assert not broken

def test_later():
    assert not broken

def test_never_ends():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    while True:
        time.sleep(1)

def test_last():
    assert not broken
"""


# Plugins that are installed and not used.
ALONE = ("-p", "no:xdist", "-p", "no:xdist.looponfail")


def run(folder, *options):
    """The output, the numbers of its last line, and the names of tests that failed."""
    (folder / "test_them.py").write_text(TESTS)
    (folder / "conftest.py").write_text(
        "import device_failures\ndevice_failures.MOST_SECONDS = 4\n"
    )
    failures = folder / "failures.txt"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "device_failures", "--rootdir=."]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--failures", str(failures), *options, "test_them.py"],
        cwd=folder, env={"PYTHONPATH": str(HELPERS), "PYTHONUNBUFFERED": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    names = [name.partition("::test_")[2] for name in failures.read_text().splitlines()]
    return done, counts, names


def test_without_other_processes_what_would_follow_is_skipped(tmp_path):
    done, counts, failed = run(tmp_path, *ALONE, "-k", "not never")
    assert failed == ["breaks", "fails"]  # the cause first
    assert counts["failed"] == counts["errors" if "errors" in counts else "error"] == 1
    assert counts["skipped"] == 3
    assert "an error stays in the process: RuntimeError: an illegal address" in done.stdout


def test_a_process_in_which_an_error_stays_is_replaced(tmp_path):
    pytest.importorskip("xdist")
    done, counts, failed = run(tmp_path, "-n", "1", "-k", "not never")
    assert failed == ["breaks", "fails"]
    assert counts["passed"] == 4  # the call of what breaks, and all tests after it
    assert counts["failed"] == 1
    assert "skipped" not in counts
    assert "crashed" not in done.stdout


def test_a_test_that_never_ends_is_told_and_the_others_run(tmp_path):
    pytest.importorskip("xdist")
    done, counts, failed = run(tmp_path, "-n", "1", "-k", "fails or never or last")
    assert failed == ["fails", "never_ends"]
    assert counts["passed"] == 1
    assert "in test_never_ends" in done.stderr


def test_what_failed_is_printed_before_a_process_ends_for_good(tmp_path):
    done, _, failed = run(tmp_path, *ALONE, "-k", "fails or never")
    assert failed == ["fails"]
    assert "this" in done.stdout.split("FAILED test_them.py::test_fails (call)")[1]
    assert "in test_never_ends" in done.stderr
