"""The parameter `device`: requirements that a machine lacks are named, "auto" goes by the check."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import needs_emulator

from gputree import DecisionTreeClassifier, backends
from gputree.backends.cuda import machine
from gputree.backends.devices import resolve_device
from gputree.base import optional

X = np.arange(20.0).reshape(-1, 1)
Y = np.arange(20) // 7 % 2


@pytest.fixture
def cupy() -> Iterator[Any]:
    with emulated_cuda() as module:
        yield module


def set_driver(monkeypatch: pytest.MonkeyPatch, release: tuple[int, int] | None) -> None:
    """Replace the release of CUDA that the driver installed is for."""
    for module in (optional, machine):
        monkeypatch.setattr(module, "driver_version", lambda: release)


def set_capability(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None) -> None:
    """Replace the compute capability of the device installed."""
    for module in (optional, machine):
        monkeypatch.setattr(module, "device_capability", lambda: capability)


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)


def fails(kind: type[Exception]) -> str:
    """Error of `device="cuda"`; "auto" grows on the CPU instead."""
    assert resolve_device("auto") == "cpu"
    assert not backends.has_device()
    with pytest.raises(kind) as caught:
        DecisionTreeClassifier(device="cuda").fit(X, Y)
    for choose in (backends.get_backend, backends.get_list_backend, resolve_device):
        with pytest.raises(kind):
            choose("cuda")
    return str(caught.value)


# ------------------------------------------------------------------------ what is missing


def test_cupy_is_not_loaded_without_a_driver(monkeypatch):
    """It takes a second, and there is nothing for it to do."""
    set_driver(monkeypatch, None)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(machine, "require", lambda *_: pytest.fail("loaded"))
    assert fails(RuntimeError) == (
        "device='cuda' needs an NVIDIA driver, and none is installed. Use device='cpu' or "
        "device='auto'."
    )


def test_a_number_is_named(monkeypatch):
    set_driver(monkeypatch, None)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(RuntimeError, match=r"^device='cuda:1' needs an NVIDIA driver"):
        resolve_device("cuda:1")


def test_no_driver_beside_cupy(cupy, monkeypatch):
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 0)
    assert "needs an NVIDIA driver, and none is installed" in fails(RuntimeError)


def test_an_old_driver(no_cupy, monkeypatch):
    set_driver(monkeypatch, (11, 4))
    assert "a driver that runs CUDA 12 or newer" not in fails(RuntimeError)
    assert "runs CUDA 12 or newer; the one installed runs CUDA 11.4" in fails(RuntimeError)


@pytest.mark.parametrize(
    ("release", "capability", "extra"),
    [
        ((12, 2), None, "cuda12"),
        ((12, 2), (9, 0), "cuda12"),
        ((13, 1), None, "cuda13"),
        ((13, 1), (7, 5), "cuda13"),
        ((13, 1), (7, 0), "cuda12"),
        ((14, 0), (12, 0), "cuda13"),
    ],
)
def test_no_cupy(no_cupy, monkeypatch, release, capability, extra):
    """The extra recommended is one that the driver runs, and that compiles for the device."""
    set_driver(monkeypatch, release)
    set_capability(monkeypatch, capability)
    said = fails(ImportError)
    assert "device='cuda' needs cupy, which is not installed" in said
    assert f'pip install "gputree-learn[{extra}]"' in said


@pytest.mark.parametrize(
    ("release", "capability", "extra"),
    [
        (12090, None, "cuda12"),
        (13000, None, "cuda13"),
        (13000, (8, 0), "cuda13"),
        (13000, (7, 0), "cuda12"),
    ],
)
def test_no_nvrtc(cupy, monkeypatch, release, capability, extra):
    set_capability(monkeypatch, capability)

    def absent() -> None:
        raise RuntimeError("CuPy failed to load libnvrtc.so: OSError")

    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", absent)
    monkeypatch.setattr(cupy.cuda.runtime, "runtimeGetVersion", lambda: release)
    said = fails(ImportError)
    assert "needs NVRTC, which compiles its kernels" in said
    assert "failed to load libnvrtc.so" in said
    assert f'pip install "gputree-learn[{extra}]"' in said


@pytest.mark.parametrize(
    ("said", "kind", "expected"),
    [
        (
            "Failed to find CUDA headers.\nTry",
            ImportError,
            "needs CUDA's headers, without which not even an empty kernel compiles (RuntimeError: "
            "Failed to find CUDA headers.). Install them with: pip install "
            '"gputree-learn[cuda13]"',
        ),
        ("no space left", RuntimeError, "not even an empty kernel compiles (RuntimeError: no sp"),
    ],
)
def test_nothing_compiles(cupy, monkeypatch, said, kind, expected):
    """Fail before a fit; once the cause is mended, the next fit goes on."""

    def fail(_: Any) -> None:
        raise RuntimeError(said)

    with monkeypatch.context() as patch:
        patch.setattr(cupy.RawModule, "compile", fail)
        with pytest.raises(kind) as caught:
            resolve_device("cuda")
        assert expected in str(caught.value)
        (problem,) = (need for need in machine.requirements() if need.problem is not None)
        assert problem.name == "NVRTC"
    monkeypatch.setattr(cupy.RawModule, "compile", lambda _: None)
    assert resolve_device("cuda") == "cuda"


def test_auto_compiles_nothing_before_the_check(cupy, monkeypatch):
    """In a process that it may spoil."""
    monkeypatch.setattr(cupy.RawModule, "compile", lambda _: pytest.fail("compiled"))
    assert machine.missing(compiles=False) is None
    assert resolve_device("auto") == "cuda"


def test_no_device_answers(cupy, monkeypatch):
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    assert "no device responds. Use device='cpu' or device='auto'." in fails(RuntimeError)


def test_cupy_for_another_driver(cupy, monkeypatch):
    def refuse() -> None:
        raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", refuse)
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 12080)
    said = fails(RuntimeError)
    assert "CuPy installed is made for CUDA 13, and the driver runs CUDA 12.8" in said
    assert 'pip install "gputree-learn[cuda12]"' in said
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 13010)
    assert "no device responds (cudaErrorInsufficientDriver)" in fails(RuntimeError)


@pytest.mark.parametrize(
    ("capability", "least", "kind", "said"),
    [
        ((6, 1), 50, RuntimeError, "needs compute capability 7.0 or newer, got Quadro, compute"),
        ((6, 1), 75, RuntimeError, "needs compute capability 7.0 or newer, got Quadro, compute"),
        ((7, 0), 50, None, ""),
        ((7, 2), 75, ImportError, "compiles for Quadro, compute capability 7.2; the one installed"),
        ((7, 2), 75, ImportError, 'does for 7.5 and newer. Install one that does with: pip install'
        ' "gputree-learn[cuda12]"'),
        ((7, 5), 75, None, ""),
        ((12, 1), 100, None, ""),
    ],
)  # fmt: skip
def test_old_devices(cupy, monkeypatch, capability, least, kind, said):
    """NVRTC itself reports the devices that it compiles for."""
    properties = {"name": b"Quadro", "major": capability[0], "minor": capability[1]}
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceProperties", lambda device: properties)
    monkeypatch.setattr(cupy.cuda.nvrtc, "getSupportedArchs", lambda: (least, 120))
    machine._properties.cache_clear()
    if kind is None:
        assert resolve_device("cuda") == "cuda"
    else:
        assert said in fails(kind)


class Nvml:
    """NVIDIA's management library with devices of these compute capabilities."""

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        self.capabilities = capabilities
        self.ended = False

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.capabilities)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, number: int, device: Any) -> int:
        device._obj.value = number
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, device: Any, major: Any, minor: Any) -> int:
        major._obj.value, minor._obj.value = self.capabilities[device.value or 0]
        return 0

    def nvmlShutdown(self) -> int:
        self.ended = True
        return 0


def test_the_least_capability_of_all_devices(monkeypatch):
    nvml = Nvml((9, 0), (7, 0), (8, 6))
    monkeypatch.setattr(optional.ctypes, "CDLL", lambda name: nvml)
    assert optional.device_capability.__wrapped__() == (7, 0)
    assert nvml.ended
    monkeypatch.setattr(optional.ctypes, "CDLL", lambda name: Nvml())
    assert optional.device_capability.__wrapped__() is None
    monkeypatch.setattr(optional.ctypes, "CDLL", lambda name: object())
    assert optional.device_capability.__wrapped__() is None


def test_the_driver_by_its_own_version(monkeypatch, tmp_path):
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(machine, "DRIVER_FILE", tmp_path / "version")
    assert machine._driver((13, 0)).found == "580.65.06, CUDA 13.0"
    monkeypatch.setattr(machine, "DRIVER_FILE", tmp_path / "none")
    assert machine._driver((13, 0)).found == "CUDA 13.0"


def test_backends_take_no_auto():
    with pytest.raises(ValueError, match="'cpu' or 'cuda', got 'auto'"):
        backends.get_backend("auto")


# --------------------------------------------------------------------------------- words
def fit_and_hear(capsys: pytest.CaptureFixture, verbose: int) -> str:
    capsys.readouterr()
    DecisionTreeClassifier(verbose=verbose).fit(X, Y)
    return capsys.readouterr().err


def test_no_hint_without_a_gpu(no_cupy, monkeypatch, capsys):
    set_driver(monkeypatch, None)
    assert "device" not in fit_and_hear(capsys, verbose=1)  # kernels may be compiled


def test_a_hint_beside_a_driver(no_cupy, monkeypatch, capsys):
    set_driver(monkeypatch, (13, 0))
    assert "device='auto' grows on the CPU: device='cuda' needs cupy" in fit_and_hear(capsys, 1)
    assert fit_and_hear(capsys, verbose=0) == ""


class TestAuto:
    pytestmark = needs_emulator

    def test_names_the_device(self, cupy, capsys):
        assert backends.has_device()
        said = fit_and_hear(capsys, verbose=1)
        assert "device='auto' grows on the CUDA device an emulated device\n" in said
        assert fit_and_hear(capsys, verbose=0) == ""


def test_the_emulator_leaves_nothing_believed():
    check = importlib.import_module("gputree.check.comparison")
    with emulated_cuda():
        identity = machine.identity()
    assert identity not in check._known
