"""Devices: one backend each, behind the seam of `gputree.backends.base`."""

from __future__ import annotations

from gputree._optional import require
from gputree.backends.base import Backend
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.lists.backend import CpuLists
from gputree.backends.lists import ListBackend

DEVICES = ("auto", "cpu", "cuda")


def get_backend(device: str) -> type[Backend]:
    """The backend class for a device name.

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"
        "auto" is the CPU in this version: the CUDA backend has run on an emulator of the
        hardware, not yet on the hardware itself.

    Raises
    ------
    ImportError
        For "cuda" where CuPy is not installed; names the extra that brings it.
    RuntimeError
        For "cuda" where no CUDA device answers.
    """
    if device != "cuda":
        return CpuBackend
    cupy = require("cupy", "device='cuda'")
    if not _device_answers(cupy):
        raise RuntimeError(
            "device='cuda' needs a CUDA device, and none answers. Use device='cpu' or 'auto'."
        )
    from gputree.backends.cuda.backend import CudaBackend

    return CudaBackend


def _device_answers(cupy: object) -> bool:
    """Whether CuPy finds a device; without a driver it raises instead of counting."""
    runtime = cupy.cuda.runtime  # type: ignore[attr-defined]
    try:
        return runtime.getDeviceCount() > 0
    except runtime.CUDARuntimeError:
        return False


def get_list_backend(device: str) -> type[ListBackend]:
    """The backend of attribute lists for a device name; see `get_backend`."""
    return CpuLists
