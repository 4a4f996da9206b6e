"""Places where one test body runs: the CPU, the emulator of CUDA, and a CUDA device."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import pytest
from cuda_emulator import emulated_cuda, ptx_unavailable, unavailable
from strategies import Sample
from ways import parse_way

from gputree.backends.base import Backend, DeviceTable, Task
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.table import CpuTable
from gputree.backends.cuda import machine
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.table import CudaTable
from gputree.check import comparison

PREFIX = "cuda-emulated-"

# For tests of the emulator itself, or of parts of kernels.
needs_emulator = [
    pytest.mark.emulated,
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]

# For those that look at what g++ makes of CUDA C++, where it is PTX that is to run.
of_source = pytest.mark.skipif(
    "all(way.startswith('ptx') for way in config.getoption('emulate'))",
    reason="looks at CUDA C++ as g++ compiles it",
)
needs_ptx = pytest.mark.skipif(ptx_unavailable() is not None, reason=str(ptx_unavailable()))


def names(ways: list[str], *, cpu: bool) -> list[Any]:
    """Parameters of a fixture: the devices that a body runs on."""
    emulated = [pytest.param(PREFIX + way, marks=pytest.mark.emulated) for way in ways]
    return [*(["cpu"] if cpu else []), *emulated, pytest.param("cuda", marks=pytest.mark.gpu)]


def tune(patch: pytest.MonkeyPatch, backend: str, **sizes: Any) -> None:
    """Change sizes by which work is divided in a package of `gputree.backends`, from here on."""
    module = importlib.import_module(f"gputree.backends.{backend}.tuning")
    patch.setattr(module, "TUNING", module.TUNING._replace(**sizes))


def absent(what: str, reason: str) -> NoReturn:
    """Skip with the reason, or fail where GPUTREE_REQUIRE_GPU (_EMULATOR, _NVRTC) is 1."""
    if os.environ.get(f"GPUTREE_REQUIRE_{what}") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def opened(name: str) -> Iterator[str]:
    """Make `name` the device that kernels run on, or skip with the reason why it cannot be."""
    if name.startswith(PREFIX):
        order, check, fill, is_ptx = parse_way(name.removeprefix(PREFIX))
        if reason := unavailable():
            absent("EMULATOR", reason)
        if is_ptx and (reason := ptx_unavailable()):
            absent("NVRTC", reason)
        with emulated_cuda(order, check, fill=fill, ptx={} if is_ptx else None):
            yield name
        return
    if name == "cuda":
        if reason := _no_device():
            absent("GPU", reason)
        comparison.remember(
            machine.identity(), []
        )  # or the first fit of each process would check it
    yield name


def _no_device() -> str | None:
    """Return the reason why there is no CUDA device, or None."""
    try:
        cupy = importlib.import_module("cupy")
        cupy.arange(3).sum().item()  # a kernel runs
    except Exception as error:
        return f"no CUDA device answers ({type(error).__name__})"
    if os.environ.get("GPUTREE_SANITIZER") == "1":  # sees no bounds inside a pool
        cupy.cuda.set_allocator(None)
    return None


def new_table(name: str, sample: Sample) -> DeviceTable:
    """The table on the device called `name`."""
    return (CpuTable if name == "cpu" else CudaTable)(sample.values, sample.missing)


def new_backend(name: str, sample: Sample, task: Task, n_threads: int = 1) -> Backend:
    """The backend of the device called `name` over one table."""
    kind = CpuBackend if name == "cpu" else CudaBackend
    return kind(new_table(name, sample), task, n_threads)


def to_host(array: Any) -> np.ndarray:
    """A device's array as NumPy's."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def host_codes(backend: Any) -> np.ndarray:
    """Codes (n, d) of a backend's table; on a device its rows are padded."""
    table = backend.table
    return to_host(table.codes)[:, : len(table.offset) - 1]
