"""Where one test body runs: on the CPU, on the emulator of CUDA, and on a CUDA device."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from cuda_emulator import emulated_cuda, unavailable
from strategies import Sample

from gputree.backends.base import Backend, Task
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda.backend import CudaBackend

# Ways of emulation: the order of blocks, warps and lanes, and whether accesses are checked.
WAYS = {
    "ascending": ("ascending", False),
    "descending": ("descending", False),
    "checked": ("random", True),
}
PREFIX = "cuda-emulated-"

# For tests of the emulator itself, or of parts of kernels.
needs_emulator = [
    pytest.mark.emulated,
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]


def parse_ways(text: str) -> list[str]:
    """The ways of emulation that an option lists."""
    ways = text.split(",")
    if unknown := set(ways) - set(WAYS):
        raise argparse.ArgumentTypeError(f"{unknown.pop()!r} is not among {', '.join(WAYS)}")
    return ways


def names(ways: list[str], *, cpu: bool) -> list[Any]:
    """Parameters of a fixture: the devices that a body runs on."""
    emulated = [pytest.param(PREFIX + way, marks=pytest.mark.emulated) for way in ways]
    return [*(["cpu"] if cpu else []), *emulated, pytest.param("cuda", marks=pytest.mark.gpu)]


def absent(what: str, reason: str) -> NoReturn:
    """Skip with the reason, or fail where GPUTREE_REQUIRE_GPU (_EMULATOR, _NVRTC) is 1."""
    if os.environ.get(f"GPUTREE_REQUIRE_{what}") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def opened(name: str) -> Iterator[str]:
    """Make `name` the device that kernels run on, or skip with the reason why it cannot be."""
    if name.startswith(PREFIX):
        if reason := unavailable():
            absent("EMULATOR", reason)
        order, check = WAYS[name.removeprefix(PREFIX)]
        with emulated_cuda(order, check):
            yield name
        return
    if name == "cuda" and (reason := _no_device()):
        absent("GPU", reason)
    yield name


def _no_device() -> str | None:
    """Why there is no CUDA device, or None."""
    try:
        cupy = importlib.import_module("cupy")
        cupy.arange(3).sum().item()  # a kernel runs
    except Exception as error:
        return f"no CUDA device answers ({type(error).__name__})"
    if os.environ.get("GPUTREE_SANITIZER") == "1":  # sees no bounds inside a pool
        cupy.cuda.set_allocator(None)
    return None


def new_backend(name: str, sample: Sample, task: Task, n_threads: int = 1) -> Backend:
    """The backend of the device called `name` over one table."""
    kind = CpuBackend if name == "cpu" else CudaBackend
    return kind(sample.values, sample.missing, task, n_threads)
