"""Imports of optional packages on first use; the table of versions that a report needs."""

import ctypes
import importlib
import platform
import sys
from functools import cache
from importlib import metadata
from types import ModuleType

from gputree import __version__
from gputree.base.texts import aligned
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


REQUIRED = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "narwhals")
OPTIONAL = ("pandas", "polars", "dask", "matplotlib", "onnx", "treelite")


def show_versions() -> None:
    """Print versions, CUDA devices, threads and the folder of compiled kernels.

    ``gputree info`` prints the same. A report of a bug should contain it. Packages are not
    imported, except CuPy, which knows the devices.

    Examples
    --------
    >>> import gputree
    >>> gputree.show_versions()  # doctest: +SKIP
    gputree       0.1.0
    python        3.11.7
    ...
    """
    print(aligned(versions()))


def versions() -> dict[str, str]:
    """Names and values of the lines of `show_versions`, in order."""
    from gputree.base.threads import most_threads
    from gputree.compilation.store import in_use
    from gputree.compilation.tiers import mode

    folder = in_use()
    return {
        "gputree": __version__,
        "python": platform.python_version(),
        "executable": sys.executable or "unknown",
        "system": platform.platform(),
        **{name: _release(name) for name in (*REQUIRED, *OPTIONAL)},
        **_cuda(),
        "threads": str(most_threads()),
        "compilation": mode(),
        "cache": "nowhere: no folder is writable" if folder is None else folder,
    }


def _release(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cuda() -> dict[str, str]:
    """Releases of the driver, CuPy and NVRTC, and the devices that CuPy finds."""
    driver = driver_version()
    lines = {"CUDA driver": "none" if driver is None else f"for CUDA {driver[0]}.{driver[1]}"}
    try:
        cupy = require("cupy", "the list of CUDA devices")
    except MissingPackageError as error:
        missing = isinstance(error.__cause__, ImportError)
        return lines | {"cupy": "not installed" if missing else str(error), "CUDA devices": "none"}
    lines["cupy"] = cupy.__version__
    try:
        lines["NVRTC"] = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    except Exception as error:  # CuPy raises what its loader raises
        lines["NVRTC"] = f"none ({error})"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return lines | {"CUDA devices": f"none ({error})"}
    names = [runtime.getDeviceProperties(j)["name"].decode() for j in range(count)]
    if count > 1:
        names = [f"cuda:{j} {name}" for j, name in enumerate(names)]
    return lines | {"CUDA devices": ", ".join(names) or "none"}
