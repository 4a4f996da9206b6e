"""The check of "auto" runs in a child process, and nothing that goes wrong there comes back.

The child finds a module `cupy` of the test's: the emulator's, where launches do what a text says.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import needs_emulator

from gputree import DecisionTreeClassifier
from gputree.backends.cuda import machine
from gputree.check import comparison, trust
from gputree.check.cases import CASES

pytestmark = [*needs_emulator, pytest.mark.process]

X = np.arange(40.0).reshape(-1, 1)
Y = np.arange(40) // 7 % 2

MODULE = """
import os, sys, time
from cuda_emulator.stand_in import make_module
from gputree.check import comparison
comparison.CASES = comparison.CASES[:1]
cupy = make_module(False, {replace}, 0xCD, 1)
class RawModule(cupy.RawModule):
    def get_function(self, name):
        {launch}
        return super().get_function(name)
cupy.RawModule = RawModule
sys.modules["cupy"] = cupy
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setattr(comparison, "user_cache", lambda: str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def cupy() -> Iterator[None]:
    with emulated_cuda(believed=False):
        yield


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``launches(text)``: what happens in the child when a kernel is launched."""

    def write(launch: str = "pass", replace: dict[str, str] | None = None) -> None:
        (tmp_path / "cupy.py").write_text(MODULE.format(launch=launch, replace=replace))
        monkeypatch.syspath_prepend(tmp_path)

    return write


def fit() -> DecisionTreeClassifier:
    return DecisionTreeClassifier().fit(X, Y)


def grows_on_the_cpu(reason: str) -> None:
    """Twice, and checks once."""
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=rf"check of the CUDA device .* failed \({reason}"):
            assert fit().growth_report_["device"] == "cpu"


def test_a_device_that_passes(launches, folder, capsys):
    launches("print('a word of a library'); os.write(1, b'and more')")
    assert fit().growth_report_["device"] == "cuda"
    assert [path.suffix for path in folder.iterdir()] == [".json"]
    assert capsys.readouterr().err.count("gputree: checking the CUDA device") == 1
    comparison._known.clear()
    launches("os.abort()")  # what is kept is believed
    assert fit().growth_report_["device"] == "cuda"


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ("os.abort()", rf"{CASES[0].name}: its process ended \(Aborted"),
        (
            "raise RuntimeError('cudaErrorIllegalAddress')",
            r".*: RuntimeError on the device: cudaErrorIllegalAddress",
        ),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (
                ("import ctypes; ctypes.string_at(0)", r".*: its process ended \(Segmentation"),
                ("os._exit(3)", r".*: its process ended \(status 3\)"),
                ("raise SystemExit('no driver')", r".*: its process ended \(status 1: no driver\)"),
            )
        ),
    ],
)
def test_what_goes_wrong_stays_there(launches, folder, launch, reason):
    """And is not kept: the device may pass tomorrow."""
    launches(launch)
    grows_on_the_cpu(reason)
    assert not folder.exists()


def test_a_kernel_that_never_ends(launches, folder, monkeypatch):
    """Is met once: the next process would wait as long."""
    launches("time.sleep(1000)")
    monkeypatch.setattr(trust, "MOST_SECONDS", 1)
    grows_on_the_cpu(r".*: no end after 1 s")
    comparison._known.clear()
    monkeypatch.setattr(trust, "check_apart", None)
    grows_on_the_cpu(r".*: no end after 1 s")
    assert [path.suffix for path in folder.iterdir()] == [".json"]


def test_a_wrong_kernel(launches, folder):
    old = "add_to_global(node_sums + k, sums[k]);"
    launches(replace={old: old.replace("sums[k]", "sums[k] + 1")})
    grows_on_the_cpu(rf"{CASES[0].name}: .* on the device")
    assert comparison._read(machine.identity()) == comparison.find(machine.identity())


def test_another_device_in_the_child(launches, folder, monkeypatch):
    launches()
    other = machine.identity()._replace(bus="0000:07:00.0")
    monkeypatch.setattr(machine, "identity", lambda: other)
    grows_on_the_cpu("its process met another device, .*0000:00:00.0")
    assert not folder.exists()


def test_no_process_can_be_started(monkeypatch):
    monkeypatch.setattr(trust.sys, "executable", "/no/such/python")
    grows_on_the_cpu("no process could be started for it")
