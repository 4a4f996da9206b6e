"""Devices: one backend each, behind the seam of `gputree.backends.base`."""

from __future__ import annotations

import sys
from typing import Any

from gputree._optional import require
from gputree.backends.base import Backend
from gputree.backends.cart_lists import CartBackend
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.lists.backend import CpuLists
from gputree.backends.cpu.lists.cart import CpuCartLists
from gputree.backends.lists import ListBackend

DEVICES = ("auto", "cpu", "cuda")


def has_device() -> bool:
    """Whether CuPy is installed and a CUDA device answers."""
    return _what_is_missing() is None


def resolve_device(device: str, verbose: bool = False) -> str:
    """The device that a tree is grown on: "cpu" or "cuda".

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"
        "auto" is a CUDA device where CuPy is installed and one answers, else the CPU.
    verbose : bool
        Say on standard error what "auto" amounts to, and why.

    Raises
    ------
    ImportError
        For "cuda" where CuPy is not installed; names the extra that brings it.
    RuntimeError
        For "cuda" where no CUDA device answers.
    """
    if device == "cpu":
        return device
    missing = _what_is_missing()
    if device == "cuda":
        if isinstance(missing, ImportError):
            raise missing
        if missing is not None:
            raise RuntimeError(
                f"device='cuda' needs a CUDA device: {missing}. Use device='cpu' or 'auto'."
            )
        return device
    if verbose:
        reason = "the CPU" if missing else f"the CUDA device {_device_name()}"
        why = f": {missing}" if missing else ""
        print(f"device='auto' grows on {reason}{why}", file=sys.stderr)
    return "cpu" if missing else "cuda"


def get_backend(device: str, verbose: bool = False) -> type[Backend]:
    """The backend class for a device name; see `resolve_device`."""
    if resolve_device(device, verbose) == "cpu":
        return CpuBackend
    from gputree.backends.cuda.backend import CudaBackend

    return CudaBackend


def get_list_backend(device: str) -> type[ListBackend]:
    """The backend of attribute lists for a device name; see `resolve_device`."""
    if resolve_device(device) == "cpu":
        return CpuLists
    from gputree.backends.cuda.lists.backend import CudaLists

    return CudaLists


def get_cart_list_backend(device: str) -> type[CartBackend]:
    """The backend of attribute lists of CART for a device name; see `resolve_device`."""
    if resolve_device(device) == "cpu":
        return CpuCartLists
    from gputree.backends.cuda.lists.cart import CudaCartLists

    return CudaCartLists


def _what_is_missing() -> Exception | None:
    """Why no CUDA device can be used, or None."""
    try:
        cupy: Any = require("cupy", "device='cuda'")
    except ImportError as error:
        return error
    try:  # without a driver CuPy raises instead of counting
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return None
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return RuntimeError(f"none answers ({error})")
    return RuntimeError("none answers")


def _device_name() -> str:
    cupy: Any = require("cupy", "device='cuda'")
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return properties["name"].decode()
