"""A NumPy-backed stand-in for the part of CuPy that the backend uses.

It is stricter than CuPy: what is not listed here is an AttributeError, host and device
arrays never mix, nor do arrays of two devices, fresh memory is poisoned, and calls are compared
with the signatures of the real CuPy where that is installed (it needs no device for that).
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import operator
import os
import threading
import time
import types
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from .host_memory import CUDARuntimeError, Registry, pinned_memory, pinned_pointer
from .library import DEFAULT_CARD, Card, Kernel, Library
from .memory import LaunchError, current_device, device_stack, memory, same_memory

__all__ = ["make_module", "ndarray", "transfers"]

# Copies between host and device: "to device", "to host"; and how often the host "waits".
transfers: Counter[str] = Counter()

PROPERTIES = {"name": b"an emulated device", "major": 9, "minor": 0}

SCALARS = ("bool_", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
FUNCTIONS = ["arange", "argsort", "ascontiguousarray", "concatenate", "cumsum", "flatnonzero"]
FUNCTIONS += ["ones", "searchsorted", "sort", "zeros"]
METHODS = ["all", "any", "astype", "max", "min", "reshape", "sum", "view"]
BINARY = ["add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


class ndarray:
    """A device array. `host` is what the emulator sees."""

    __array_priority__ = 1000
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, host: Any, dtype: Any = None, memptr: Any = None, *, is_defined: bool = True
    ) -> None:
        if memptr is not None:  # CuPy's constructor: an array over memory that is there
            host = memptr.array(host, dtype)
        self.host = host
        _require_free(host)
        memory.add(host, is_defined)

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    nbytes = property(lambda self: self.host.nbytes)
    itemsize = property(lambda self: self.host.itemsize)
    flags = property(lambda self: self.host.flags)
    device = property(lambda self: Device(memory.device(self.host)))

    @property
    def data(self) -> _MemoryPointer:
        memory = _UnownedMemory(self.host.ctypes.data, self.host.nbytes, self.host, self.device.id)
        return _MemoryPointer(memory, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.host.__array_interface__, "version": 3, "stream": None}

    def __array__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use .get().")

    def get(self) -> np.ndarray:
        _wait_for_copy()
        memory.require_defined(self.host)
        return self.host.copy()

    def item(self) -> Any:
        _wait_for_copy()
        memory.require_defined(self.host)
        return self.host.item()

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    __index__ = __int__

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, key: Any) -> Any:
        key = _read(key)
        return _wrap(_reading([self.host], self.host[key], key))

    def __setitem__(self, key: Any, value: Any) -> None:
        memory.require_device(self.host)
        key = _read(key)
        self.host[key] = _read(value)
        memory.define(self.host, key)

    def fill(self, value: Any) -> None:
        self[...] = value

    def set(self, arr: np.ndarray, stream: _Stream | None = None) -> None:
        if arr.dtype != self.dtype or arr.shape != self.shape:
            raise ValueError("Shape or dtype mismatch.")
        if not (arr.flags.c_contiguous and self.host.flags.c_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        transfers["to device"] += 1
        memory.require_device(self.host)
        self.host[...] = arr
        memory.define(self.host)

    def copy(self) -> ndarray:
        """Copy to the current device; the array may be on another one."""
        memory.require_defined(self.host)
        return ndarray(self.host.copy())


def _require_free(host: np.ndarray) -> None:
    """Refuse memory that the current device has not."""
    device = current_device()
    most = _cards.get(device, DEFAULT_CARD).memory_bytes
    if host.base is None and memory.on_devices[device] + host.nbytes > most:
        raise OutOfMemoryError(f"Out of memory allocating {host.nbytes:,} bytes")


_cards: dict[int, Card] = {}  # of the module that was made last


def _wait_for_copy() -> None:
    transfers["to host"] += 1
    transfers["waits"] += 1


def _reading(hosts: list[np.ndarray], result: Any, key: Any = ()) -> Any:
    """`result`, for which elements ``[key]`` of `hosts` were read unless it is a view of one."""
    for host in hosts:
        if isinstance(result, np.ndarray) and same_memory(host, result):
            return result
    for host in hosts:
        memory.require_device(host)
        memory.require_defined(host, key)
    if isinstance(result, np.ndarray) and result.base is not None:
        return result.copy()  # of something inside NumPy: device arrays own their memory
    return result


def _hosts(values: Any) -> list[np.ndarray]:
    """The device arrays among arguments."""
    if isinstance(values, ndarray):
        return [values.host]
    if not isinstance(values, tuple | list):
        return []
    return [host for value in values for host in _hosts(value)]


def _read(value: Any) -> Any:
    """Convert a value for NumPy, which reads all of it."""
    for host in _hosts(value):
        memory.require_device(host)
        memory.require_defined(host)
    return _unwrap(value)


def _unwrap(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.host
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(map(_unwrap, value))
    return value


def _wrap(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    return ndarray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def _method(name: str) -> Any:
    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self.host, name)
        result = function(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()})
        return _wrap(_reading(_hosts((self, *args)), result))

    return call


def _binary(name: str, reflected: bool) -> Any:
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def call(self: ndarray, other: Any) -> Any:
        pair = (_unwrap(other), self.host) if reflected else (self.host, _unwrap(other))
        return _wrap(_reading(_hosts((self, other)), function(*pair)))

    return call


for _name in METHODS:
    setattr(ndarray, _name, _method(_name))
for _name in BINARY + COMPARISONS:
    setattr(ndarray, f"__{_name}__", _binary(_name, False))
for _name in BINARY:
    setattr(ndarray, f"__r{_name}__", _binary(_name, True))


def _function(name: str, real: types.ModuleType | None) -> Any:
    """NumPy's function on device arrays, with CuPy's parameters."""
    function = getattr(np, name)
    signature = None
    if inspect.isfunction(getattr(real, name, None)):
        signature = inspect.signature(getattr(real, name))

    def call(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            signature.bind(*args, **kwargs)
        if name == "argsort":
            kwargs["kind"] = "stable"  # CuPy's sort is
        result = function(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()})
        return _wrap(_reading(_hosts((*args, *kwargs.values())), result))

    return call


def _lending(fill: int, check: bool) -> Any:
    def lend(ptr: int, size: int, owner: Any, device_id: int = -1) -> _UnownedMemory:
        """Memory of another object. A block on a device is undefined again for each."""
        lent = _UnownedMemory(ptr, size, owner, device_id)
        if isinstance(getattr(owner, "block", None), ndarray):
            forget = _MemoryPointer(lent, 0).array((size,), np.uint8)
            forget[...] = fill
            if check:
                memory.forget(forget)
        return lent

    return lend


def _empty(fill: int, check: bool) -> Any:
    def empty(shape: Any, dtype: Any = float) -> ndarray:
        """Memory as allocated on a device: undefined."""
        host = np.empty(shape, dtype)
        host.reshape(-1).view(np.uint8)[...] = fill
        return ndarray(host, is_defined=not check)

    return empty


def asarray(a: Any, dtype: Any = None) -> ndarray:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else ndarray(_read(a).astype(dtype))
    if hasattr(a, "__cuda_array_interface__"):
        return ndarray(np.asarray(_Shared(a)))
    transfers["to device"] += 1
    return ndarray(np.array(a, dtype=dtype, order="C"))


class _Shared:
    """Memory that an object shares as a device's; here it is the host's."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        if hasattr(owner, "__cuda_array_interface__"):
            interface = owner.__cuda_array_interface__
            self.__array_interface__ = {k: v for k, v in interface.items() if k != "stream"}

    def __dlpack__(self, **_: Any) -> Any:
        return self.owner.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(array: Any) -> ndarray:
    return ndarray(np.from_dlpack(_Shared(array)))


def asnumpy(a: Any) -> np.ndarray:
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


class _Stream:
    """A stream: work is done at once; the current one is per thread and per device."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.device_id = -1 if null else current_device()

    def __enter__(self) -> Self:
        if self.device_id not in (-1, current_device()):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with "
                f"the current device ({current_device()})"
            )
        entered_streams().append((current_device(), self))
        return self

    def __exit__(self, *_: Any) -> None:
        entered_streams().pop()

    def synchronize(self) -> None:
        transfers["waits"] += 1


_thread = threading.local()
_Stream.null = _Stream(null=True)


def entered_streams() -> list[tuple[int, _Stream]]:
    """Devices and their streams that this thread has entered."""
    if not hasattr(_thread, "streams"):
        _thread.streams = []
    return _thread.streams


def get_current_stream(device_id: int = -1) -> _Stream:
    current = current_device() if device_id == -1 else device_id
    return next((s for device, s in reversed(entered_streams()) if device == current), _Stream.null)


class _Event:
    """A point in time, at which all work before it is done."""

    done = True

    def __init__(self, disable_timing: bool = False) -> None:
        pass

    def record(self, stream: _Stream | None = None) -> None:
        self.time = time.perf_counter()


class Device:
    """A device, which becomes the current one of the thread where it is entered."""

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        most = self._card.memory_bytes
        return most - memory.on_devices[self.id], most

    @property
    def attributes(self) -> dict[str, int]:
        return {"CanUseHostPointerForRegisteredMem": 1, **self._card.attributes}

    @property
    def _card(self) -> Card:
        return _cards.get(self.id, DEFAULT_CARD)

    def __init__(self, device: Any = None) -> None:
        self.id = current_device() if device is None else int(device)

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> Self:
        device_stack().append(self.id)
        return self

    def __exit__(self, *_: Any) -> None:
        device_stack().pop()

    @property
    def pci_bus_id(self) -> str:
        """The place of the card; CUDA_VISIBLE_DEVICES lists those that a process sees."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        card = int(visible.split(",")[self.id]) if visible else self.id
        return f"0000:{card:02X}:00.0"

    def synchronize(self) -> None:
        """Count the call: no work is pending."""
        transfers["waits"] += 1


class OutOfMemoryError(MemoryError):
    """The error of an allocation that a device refuses."""


class _UnownedMemory(NamedTuple):
    ptr: int
    size: int
    owner: Any
    device_id: int


class _MemoryPointer:
    """A place in memory."""

    def __init__(self, mem: _UnownedMemory, offset: int) -> None:
        self.mem, self.offset = mem, offset
        self.ptr = mem.ptr + offset

    def __add__(self, offset: int) -> _MemoryPointer:
        return _MemoryPointer(self.mem, self.offset + offset)

    def memset_async(self, value: int, size: int) -> None:
        host = self.array((size,), np.uint8)
        memory.require_device(host)
        host[...] = value
        memory.define(host)

    def array(self, shape: Any, dtype: Any) -> np.ndarray:
        """View the memory as a NumPy array."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if self.offset + size > self.mem.size:
            raise LaunchError(f"an array of {size} bytes exceeds the memory that it lies in")
        place = (ctypes.c_uint8 * size).from_address(self.ptr)
        place.owner = self.mem.owner  # kept while a view of it is
        return np.frombuffer(place, dtype, count=size and -1).reshape(shape)


_library = cache(Library)


def _raw_module(check: bool, replace: dict[str, str] | None, ptx: dict[str, str] | None) -> type:
    changes = None if ptx is None else tuple(ptx.items())

    class RawModule:
        """Source behind `cupy.RawModule`'s interface; some text `replace`d, for mutation runs."""

        def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
            for old, new in (replace or {}).items():
                code = code.replace(old, new, 1)
            self._library = _library(
                code, options, check, is_quick=replace is not None, ptx=changes
            )

        def compile(self) -> None:
            """It is compiled."""

        def get_function(self, name: str) -> Kernel:
            return Kernel(self._library, name, _cards[current_device()])

    return RawModule


@cache
def _real_cupy() -> types.ModuleType | None:
    try:
        return importlib.import_module("cupy")
    except ImportError:
        return None


def make_module(
    check: bool,
    replace: dict[str, str] | None,
    fill: int,
    devices: int,
    ptx: dict[str, str] | None = None,
    cards: Sequence[Card] = (DEFAULT_CARD,),
) -> types.ModuleType:
    """A fresh stand-in for the module `cupy`; the last of `cards` stands for all that follow."""
    memory.on_devices = Counter()
    _cards.clear()
    _cards.update({j: cards[min(j, len(cards) - 1)] for j in range(devices)})
    real = _real_cupy()
    module = types.ModuleType("cupy")
    module.__version__ = "0"
    for name in SCALARS:
        setattr(module, name, getattr(np, name))
    for name in FUNCTIONS:
        setattr(module, name, _function(name, real))
    module.float32, module.float64, module.dtype = np.float32, np.float64, np.dtype
    module.ndarray, module.empty = ndarray, _empty(fill, check)
    module.asarray, module.asnumpy, module.from_dlpack = asarray, asnumpy, from_dlpack
    module.RawModule = _raw_module(check, replace, ptx)
    registry = Registry()
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDeviceProperties=lambda device: dict(PROPERTIES),
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000,
        CUDARuntimeError=CUDARuntimeError,
        hostRegister=registry.register,
        hostUnregister=registry.unregister,
        registry=registry,
    )
    module.cuda = types.SimpleNamespace(
        runtime=runtime,
        Device=Device,
        Stream=_Stream,
        Event=_Event,
        get_elapsed_time=lambda start, end: 1e3 * (end.time - start.time),
        get_current_stream=get_current_stream,
        is_available=lambda: True,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        alloc_pinned_memory=bytearray,
        nvrtc=types.SimpleNamespace(
            getVersion=lambda: (13, 0), getSupportedArchs=lambda: (75, 80, 90, 100, 120)
        ),
        PinnedMemory=pinned_memory,
        PinnedMemoryPointer=pinned_pointer,
        UnownedMemory=_lending(fill, check),
        MemoryPointer=_MemoryPointer,
    )
    released: list[int] = []  # devices, each time that memory is returned to one
    pool = types.SimpleNamespace(
        free_bytes=lambda: 0,
        free_all_blocks=lambda: released.append(current_device()),
        released=released,
    )
    module.get_default_memory_pool = lambda: pool
    return module
