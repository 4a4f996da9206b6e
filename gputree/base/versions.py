"""Versions, devices, threads and folders: the table that a report of a bug needs."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from gputree import __version__
from gputree.base.optional import driver_version, require
from gputree.base.texts import aligned
from gputree.errors import MissingPackageError

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
    from gputree.compilation.folders import in_use
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
