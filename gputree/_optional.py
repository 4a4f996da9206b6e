"""The only place that loads what may be absent, and only on first use."""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache
from types import ModuleType

from gputree.errors import MissingPackageError

EXTRAS = {
    "matplotlib": "plot",
    "dask": "dask",
    "distributed": "dask",
    "pandas": "pandas",
    "onnx": "export",
    "treelite": "export",
}

# CUDA releases that CuPy is made for, newest first, each with the extra that brings it.
CUDA_EXTRAS = {13: "cuda13", 12: "cuda12"}


def require(name: str, purpose: str) -> ModuleType:
    """Import the optional module `name`, or say which extra brings its package.

    Raises
    ------
    ImportError
        Naming `purpose` and the extra to install, or what keeps the module from starting.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = cuda_extra(driver_version()) if package == "cupy" else EXTRAS[package]
        raise MissingPackageError(
            f"{purpose} needs {package}, which is not installed. Install it with: {pip(extra)}"
        ) from error
    except OSError as error:  # CuPy makes a folder for its kernels when it is imported
        raise MissingPackageError(
            f"{purpose} needs {package}, which cannot start: {error}"
        ) from error


def pip(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "gputree-learn[{extra}]"'


def cuda_extra(release: tuple[int, int] | None) -> str:
    """The extra whose CuPy a driver for that CUDA release can run; the newest for no driver."""
    fitting = [extra for cuda, extra in CUDA_EXTRAS.items() if release and release[0] >= cuda]
    return fitting[0] if fitting else next(iter(CUDA_EXTRAS.values()))


@cache
def driver_version() -> tuple[int, int] | None:
    """The newest CUDA release that the installed NVIDIA driver runs; None without a driver."""
    version = ctypes.c_int()
    try:
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        if ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10
