"""Imports of all optional packages, on first use."""

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
    "anywidget": "notebook",
    "traitlets": "notebook",
}

# CUDA releases that CuPy is made for, newest first, each with the extra that brings it, and the
# lowest compute capability that its NVRTC compiles for.
CUDA_EXTRAS = {13: "cuda13", 12: "cuda12"}
LEAST_CAPABILITY = {13: (7, 5), 12: (5, 0)}

Version = tuple[int, int]


def require(name: str, purpose: str) -> ModuleType:
    """Import the optional module `name`, or say which extra brings its package, for `purpose`."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if package == "cupy":
            extra = cuda_extra(driver_version(), device_capability())
        else:
            extra = EXTRAS[package]
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


def cuda_extra(release: Version | None, capability: Version | None) -> str:
    """The extra for a driver that runs that CUDA release, and a device; the newest for no driver.

    A device whose capability is not known is taken for a new one.
    """
    fitting = [
        extra
        for cuda, extra in CUDA_EXTRAS.items()
        if release
        and release[0] >= cuda
        and (capability is None or capability >= LEAST_CAPABILITY[cuda])
    ]
    return fitting[0] if fitting else next(iter(CUDA_EXTRAS.values()))


@cache
def device_capability() -> Version | None:
    """Minimum compute capability of the NVIDIA devices, or None if it is not known.

    NVML, which comes with the driver, reports it: where CUDA has started, processes cannot fork.
    """
    count, device = ctypes.c_uint(), ctypes.c_void_p()
    major, minor = ctypes.c_int(), ctypes.c_int()
    found = []
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            return None
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for i in range(count.value):
            nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device))
            read = nvml.nvmlDeviceGetCudaComputeCapability
            if read(device, ctypes.byref(major), ctypes.byref(minor)) == 0:
                found.append((major.value, minor.value))
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return min(found, default=None)


@cache
def driver_version() -> Version | None:
    """The newest CUDA release that the installed NVIDIA driver runs; None without a driver."""
    version = ctypes.c_int()
    try:
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        if ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10
