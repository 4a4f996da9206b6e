"""Requirements of `device="cuda"`, and the identity of device, driver and kernels.

Current device and stream: work on a table runs on the device that has it.

Kernels, functions of CuPy, streams and allocations belong to the current device, so all work on a
table enters its device. The current stream is per thread: a growth enters the stream of the thread
that began it in whichever thread its methods are called.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from gputree.backends.cuda.kernels import cupy
from gputree.base.optional import (
    CUDA_EXTRAS,
    LEAST_CAPABILITY,
    Version,
    cuda_extra,
    device_capability,
    driver_version,
    pip,
    require,
)
from gputree.errors import DeviceError, MissingPackageError

# Kernels match values within a warp (`__match_any_sync`), which older devices do not support.
LEAST_OF_KERNELS = (7, 0)

# Compiles if any kernel does.
EMPTY = 'extern "C" __global__ void empty() {}'

DRIVER_FILE = Path("/proc/driver/nvidia/version")

NEEDS = "device='cuda' needs"
INSTEAD = "Use device='cpu' or device='auto'."


class Requirement(NamedTuple):
    """Something that `device="cuda"` needs: the version found, or an error that explains it."""

    name: str
    found: str
    problem: Exception | None = None


class Identity(NamedTuple):
    """Everything that affects how trees grow on a device; a check is valid for one identity."""

    gputree: str
    kernels: str  # digest of the sources
    device: str
    bus: str
    capability: str
    driver: str
    cupy: str
    nvrtc: str


# ----------------------------------------------------------------------- requirements
def requirements(name: str = "cuda", *, compiles: bool = True) -> list[Requirement]:
    """Driver, CuPy, NVRTC and device, in this order, as far as each can be determined.

    The device is that of the number in `name`, as "cuda:1", or the current one. If `compiles`,
    NVRTC compiles an empty kernel, which CuPy loads there.
    """
    try:
        xp: Any = require("cupy", "device='cuda'")
    except ImportError as error:
        return [_driver(driver_version()), Requirement("CuPy", "", error)]
    driver = _driver(_release(xp))
    device = Requirement("device", "") if driver.problem else _device(xp, name)
    nvrtc = _nvrtc(xp)
    if compiles and not (driver.problem or nvrtc.problem or device.problem):
        with entered(name):
            nvrtc = nvrtc._replace(problem=_why_nothing_compiles(xp, xp.cuda.Device().id))
    return [driver, Requirement("CuPy", xp.__version__), nvrtc, device]


def missing(name: str = "cuda", *, compiles: bool = True) -> Exception | None:
    """Return the error of the first of `requirements` that is not met, or None.

    An ImportError names the extra that installs the missing package; a RuntimeError explains the
    problem with driver or device.
    """
    if "cupy" not in sys.modules and not has_driver():  # else, CuPy is not worth a second to load
        problem = _driver(None).problem
    else:
        needs = requirements(name, compiles=compiles)
        problem = next((need.problem for need in needs if need.problem is not None), None)
    if problem is not None and ":" in name:
        return type(problem)(str(problem).replace("device='cuda'", f"device={name!r}", 1))
    return problem


def has_driver() -> bool:
    """Return True if an NVIDIA driver is installed: without one, there is no device."""
    return driver_version() is not None


def _release(xp: Any) -> Version | None:
    """Like `driver_version`, from CuPy."""
    version = xp.cuda.runtime.driverGetVersion()
    return (version // 1000, version % 1000 // 10) if version else None


def _driver(release: Version | None) -> Requirement:
    if release is None:
        problem = DeviceError(f"{NEEDS} an NVIDIA driver, and none is installed. {INSTEAD}")
        return Requirement("driver", "", problem)
    found, oldest = "CUDA {}.{}".format(*release), min(CUDA_EXTRAS)
    if release[0] < oldest:
        problem = DeviceError(
            f"{NEEDS} an NVIDIA driver that runs CUDA {oldest} or newer; the one installed "
            f"runs {found}. {INSTEAD}"
        )
        return Requirement("driver", found, problem)
    return Requirement("driver", _with_own_version(found))


def _with_own_version(release: str) -> str:
    """Driver with its version, where Linux reports it, and the CUDA release it supports."""
    try:  # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul ..."
        text = DRIVER_FILE.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return release
    words = text.partition("\n")[0].split()
    versions = [word for word in words if word[:1].isdigit() and "." in word]
    return f"{versions[0]}, {release}" if versions else release


def _nvrtc(xp: Any) -> Requirement:
    """The compiler of the kernels, which CuPy loads at its first use."""
    try:
        return Requirement("NVRTC", "{}.{}".format(*xp.cuda.nvrtc.getVersion()))
    except (RuntimeError, ImportError, OSError) as error:
        problem = MissingPackageError(
            f"{NEEDS} NVRTC, which compiles its kernels and is not installed ({error}). "
            f"Install it with: {pip(_extra_of(xp))}"
        )
        return Requirement("NVRTC", "", problem)


def _extra_of(xp: Any) -> str:
    """Extra that belongs to the CuPy installed, if that compiles for the device."""
    release, capability = xp.cuda.runtime.runtimeGetVersion() // 1000, device_capability()
    if release in CUDA_EXTRAS and (capability is None or capability >= LEAST_CAPABILITY[release]):
        return CUDA_EXTRAS[release]
    return cuda_extra(_release(xp), capability)


def _why_nothing_compiles(xp: Any, device: int) -> Exception | None:
    """Return an error if an empty kernel does not compile, for lack of headers or otherwise."""
    try:
        _compile_empty(xp, device)
    except Exception as error:  # of the compiler, of CuPy, of the system
        said = next(iter(str(error).splitlines()), "")
        reason = f"not even an empty kernel compiles ({type(error).__name__}: {said})"
        if "headers" not in said:
            return DeviceError(f"{NEEDS} a compiler of kernels, and {reason}. {INSTEAD}")
        return MissingPackageError(
            f"{NEEDS} CUDA's headers, without which {reason}. Install them with: "
            f"{pip(_extra_of(xp))}"
        )
    return None


@cache
def _compile_empty(xp: Any, device: int) -> None:
    """Compile an empty kernel and load it on the current device; cached once it has succeeded."""
    xp.RawModule(code=EMPTY).compile()


def _device(xp: Any, name: str) -> Requirement:
    reason = _why_none_answers(xp)
    if reason is not None:
        problem = DeviceError(f"{NEEDS} a CUDA device: {reason}. {INSTEAD}")
        return Requirement("device", "", problem)
    number, count = number_of(name), xp.cuda.runtime.getDeviceCount()
    if number is not None and number >= count:
        names = ", ".join(f"'cuda:{j}'" for j in range(count))
        problem = DeviceError(
            f"device={name!r} is none of the visible CUDA devices: {names}. {INSTEAD}"
        )
        return Requirement("device", "", problem)
    with entered(name):
        model, capability = _name_and_capability(xp)
        found = "{}, compute capability {}.{}".format(model, *capability)
        return Requirement("device", found, _why_too_old(xp, found, capability))


def _why_too_old(xp: Any, found: str, capability: Version) -> Exception | None:
    """Return an error if kernels do not compile for a device, or None."""
    if capability < LEAST_OF_KERNELS:
        oldest = "{}.{}".format(*LEAST_OF_KERNELS)
        return DeviceError(f"{NEEDS} compute capability {oldest} or newer, got {found}. {INSTEAD}")
    try:
        compiled = min(xp.cuda.nvrtc.getSupportedArchs())
    except (RuntimeError, ImportError, OSError):  # without NVRTC, see `_nvrtc`
        return None
    if capability >= divmod(compiled, 10):
        return None
    return MissingPackageError(
        f"{NEEDS} an NVRTC that compiles for {found}; the one installed does for {compiled / 10} "
        "and newer. Install one that does with: "
        f"{pip(cuda_extra(_release(xp), capability))}"
    )


def _why_none_answers(xp: Any) -> str | None:
    """Return the reason why there is no device, or None. Without a fitting driver CuPy raises."""
    runtime = xp.cuda.runtime
    try:
        return None if runtime.getDeviceCount() > 0 else "no device responds"
    except runtime.CUDARuntimeError as error:
        made_for, release = runtime.runtimeGetVersion() // 1000, _release(xp)
        if release is None or release[0] >= made_for:
            return f"no device responds ({error})"
    runs = "CUDA {}.{}".format(*release)
    return (
        f"the CuPy installed is made for CUDA {made_for}, and the driver runs {runs}. Install "
        f"the one that fits: {pip(cuda_extra(release, device_capability()))}"
    )


# --------------------------------------------------------------------------- identity
def number_of(name: str) -> int | None:
    """Return the number of the device of a name, as 1 of "cuda:1"; None of a name without one."""
    number = name.partition(":")[2]
    return int(number) if number else None


def device_count() -> int:
    """Return the number of visible devices; 0 where CuPy or the driver is missing."""
    try:
        xp: Any = require("cupy", "device='cuda'")
        return int(xp.cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):
        return 0


def device(number: int) -> Any:
    """Return CuPy's device of this number, to be entered by `with`."""
    return require("cupy", "device='cuda'").cuda.Device(number)


def entered(name: str) -> AbstractContextManager[Any]:
    """Return a context in which the device of a name with a number is the current one."""
    number = number_of(name)
    return nullcontext() if number is None else device(number)


def current_device() -> int:
    """Return the number of the current device."""
    number: int = require("cupy", "device='cuda'").cuda.Device().id
    return number


def identity() -> Identity:
    """Return the identity of the current CUDA device, for which nothing is `missing`."""
    xp: Any = require("cupy", "device='cuda'")
    return _identity(xp, xp.cuda.Device().id)


@cache
def _identity(xp: Any, device: int) -> Identity:
    from gputree import __version__  # here, for the package imports this module

    driver, _, nvrtc, _ = requirements(compiles=False)
    name, capability = _name_and_capability(xp)
    return Identity(
        gputree=__version__,
        kernels=kernel_digest(),
        device=name,
        bus=xp.cuda.Device(device).pci_bus_id,  # CuPy cuts the UUID at its first zero
        capability="{}.{}".format(*capability),
        driver=driver.found,
        cupy=xp.__version__,
        nvrtc=nvrtc.found,
    )


@cache
def kernel_digest() -> str:
    """Digest of the sources of the kernels and of their launchers."""
    digest = hashlib.sha256()
    for name, source in sorted(_sources(files(__package__), "")):
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith((".cu", ".cuh", ".py")):
            yield prefix + entry.name, entry.read_bytes()


def _name_and_capability(xp: Any) -> tuple[str, Version]:
    properties = _properties(xp, xp.cuda.Device().id)
    return properties["name"].decode(), (properties["major"], properties["minor"])


@cache
def _properties(xp: Any, device: int) -> dict[str, Any]:
    """Properties of a device, cached: the runtime is too slow for each fit."""
    properties: dict[str, Any] = xp.cuda.runtime.getDeviceProperties(device)
    return properties


P = ParamSpec("P")
R = TypeVar("R")


class OnDevice(Protocol):
    """An object whose arrays are on one device."""

    device: Any  # CuPy's
    stream: Any  # CuPy's, of that device; None for the current one


Self = TypeVar("Self", bound=OnDevice)


def device_of(values: Any) -> Any:
    """Device of a CuPy array, and the current one for anything else; to be entered by `with`."""
    xp = cupy()
    return values.device if isinstance(values, xp.ndarray) else xp.cuda.Device()


def current_stream(device: Any) -> Any:
    """The stream of a device that is current in this thread."""
    return cupy().cuda.get_current_stream(int(device))


def on_own_device(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """Decorate a method to run with the device and stream of its object as the current ones."""

    @wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.device, nullcontext() if self.stream is None else self.stream:
            return method(self, *args, **kwargs)

    return call
