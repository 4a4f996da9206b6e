"""What `device` amounts to: what a machine lacks is told, and "auto" goes by the check."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import needs_emulator

from gputree import DecisionTreeClassifier, _optional, backends
from gputree.backends.cuda import machine
from gputree.estimators.devices import resolve_device

X = np.arange(20.0).reshape(-1, 1)
Y = np.arange(20) // 7 % 2


@pytest.fixture
def cupy() -> Iterator[Any]:
    with emulated_cuda() as module:
        yield module


def set_driver(monkeypatch: pytest.MonkeyPatch, release: tuple[int, int] | None) -> None:
    """Let the driver installed be one for this CUDA release."""
    for module in (_optional, machine):
        monkeypatch.setattr(module, "driver_version", lambda: release)


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)


def fails(kind: type[Exception]) -> str:
    """What `device="cuda"` says; "auto" grows on the CPU instead."""
    assert resolve_device("auto") == "cpu"
    assert not backends.has_device()
    with pytest.raises(kind) as caught:
        DecisionTreeClassifier(device="cuda").fit(X, Y)
    for choose in (
        backends.get_backend,
        backends.get_list_backend,
        resolve_device,
    ):
        with pytest.raises(kind):
            choose("cuda")
    return str(caught.value)


# ------------------------------------------------------------------------ what is missing
def test_no_driver(no_cupy, monkeypatch):
    set_driver(monkeypatch, None)
    said = fails(RuntimeError)
    assert said == (
        "device='cuda' needs an NVIDIA driver, and none is installed. Use device='cpu' or 'auto'."
    )


def test_cupy_is_not_loaded_without_a_driver(monkeypatch):
    """It takes a second, and there is nothing for it to do."""
    set_driver(monkeypatch, None)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(machine, "require", lambda *_: pytest.fail("loaded"))
    assert fails(RuntimeError).startswith("device='cuda' needs an NVIDIA driver")


def test_no_driver_beside_cupy(cupy, monkeypatch):
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 0)
    assert "needs an NVIDIA driver, and none is installed" in fails(RuntimeError)


def test_an_old_driver(no_cupy, monkeypatch):
    set_driver(monkeypatch, (11, 4))
    assert "a driver that runs CUDA 12 or newer" not in fails(RuntimeError)
    assert "runs CUDA 12 or newer; the one installed runs CUDA 11.4" in fails(RuntimeError)


@pytest.mark.parametrize(
    ("release", "extra"), [((12, 2), "cuda12"), ((13, 1), "cuda13"), ((14, 0), "cuda13")]
)
def test_no_cupy(no_cupy, monkeypatch, release, extra):
    """The extra recommended is the one whose CUDA release the driver runs."""
    set_driver(monkeypatch, release)
    said = fails(ImportError)
    assert "device='cuda' needs cupy, which is not installed" in said
    assert f'pip install "gputree-learn[{extra}]"' in said


@pytest.mark.parametrize(("release", "extra"), [(12090, "cuda12"), (13000, "cuda13")])
def test_no_nvrtc(cupy, monkeypatch, release, extra):
    def absent() -> None:
        raise RuntimeError("CuPy failed to load libnvrtc.so: OSError")

    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", absent)
    monkeypatch.setattr(cupy.cuda.runtime, "runtimeGetVersion", lambda: release)
    said = fails(ImportError)
    assert "needs NVRTC, which compiles its kernels" in said
    assert "failed to load libnvrtc.so" in said
    assert f'pip install "gputree-learn[{extra}]"' in said


def test_no_device_answers(cupy, monkeypatch):
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    assert "a CUDA device: no device responds. Use device='cpu' or 'auto'." in fails(RuntimeError)


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


@pytest.mark.parametrize(("major", "minor", "taken"), [(6, 1, False), (7, 0, True), (7, 5, True)])
def test_old_devices(cupy, monkeypatch, major, minor, taken):
    properties = {"name": b"Quadro", "major": major, "minor": minor}
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceProperties", lambda device: properties)
    machine._properties.cache_clear()
    if taken:
        assert resolve_device("cuda") == "cuda"
    else:
        assert "needs compute capability 7.0 or newer, got Quadro, compute cap" in fails(
            RuntimeError
        )


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
    check = importlib.import_module("gputree.check.record")
    with emulated_cuda():
        identity = machine.identity()
    assert identity not in check._known
