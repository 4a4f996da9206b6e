"""Launching compiled kernels with the strictness of the driver, and more."""

import ctypes
import re
import threading
from collections import Counter
from contextlib import nullcontext
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .apart import Pointed, set_apart
from .compiler import Changes, build, run
from .memory import LaunchError, current_device, memory

# Stops endless loops: CPU seconds of one launch.
LAUNCH_SECONDS = 120

# Of a block, on any device; more where a kernel requests it and the device grants it.
SHARED_BYTES = 48 * 1024

# Of a grid's second and third dimension.
MOST_BLOCKS_Y = 65535

# How often each kernel ran, and what it accessed where that is checked: see checker.cpp.
launches: Counter[str] = Counter()
launch_devices: Counter[int] = Counter()  # by the number of the device
accesses: Counter[tuple[str, str]] = Counter()

KINDS = ("loads", "loaded bytes", "stores", "atomics", "shared")

DTYPES = {letter: np.dtype(letter) for letter in "?BbHhIiQqfd"}


class Schedule(NamedTuple):
    """Order of blocks, warps and lanes: 0 ascending, 1 descending, 2 random, side by side.

    `fill` is every byte of shared memory when a block begins.
    """

    order: int = 0
    seed: int = 0
    fill: int = 0xCD


class Card(NamedTuple):
    """Sizes of a device: multiprocessors, shared memory that a block may request, memory."""

    multiprocessors: int = 2
    shared_bytes: int = SHARED_BYTES
    memory_bytes: int = 32 << 30

    @property
    def attributes(self) -> dict[str, int]:
        """Attributes by the names of CuPy."""
        return {
            "MultiProcessorCount": self.multiprocessors,
            "MaxSharedMemoryPerBlock": SHARED_BYTES,
            "MaxSharedMemoryPerBlockOptin": self.shared_bytes,
        }


DEFAULT_CARD = Card()


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("granule", ctypes.c_uint32),
        ("read_only", ctypes.c_int),
        ("defined", ctypes.c_void_p),
    )


class Library:
    """The kernels of one source, compiled."""

    _running = threading.Lock()  # the runtime keeps its state in globals

    def __init__(
        self,
        source: str,
        options: tuple[str, ...],
        check: bool,
        *,
        is_quick: bool = False,
        ptx: Changes | None = None,
    ) -> None:
        built = build(source, options, check, is_quick, ptx)
        self.path, self.limits, self.check = built.path, built.kernels, check
        self.code = ctypes.CDLL(str(built.path))
        self.code.emulator_message.restype = ctypes.c_char_p
        self.code.emulator_accesses.restype = ctypes.POINTER(ctypes.c_uint64)
        self.code.emulator_launch.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int,
            ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
            ctypes.c_int,
        ]  # fmt: skip
        here = ctypes.cast(self.code.emulator_anchor, ctypes.c_void_p).value
        self.base = (here or 0) - built.anchor
        array = ctypes.c_size_t * len(built.shared)
        offsets = (offset for _, offset, _ in built.shared)
        sizes = (size for *_, size in built.shared)
        self.code.emulator_set_shared(array(*offsets), array(*sizes), len(built.shared))
        self._shared = built.shared

    def static_shared(self, name: str) -> int:
        """Bytes of a kernel's shared variables, and of those of functions that it may call."""
        others = self.limits.keys() - {name}
        return sum(size for function, _, size in self._shared if function not in others)

    def signature(self, name: str) -> list[str]:
        """A word a parameter: see `cuda.h`; of PTX b (bytes), and how many."""
        describe = getattr(self.code, f"emulator_signature_{name}")
        describe.restype = ctypes.c_char_p
        return describe().decode().split()

    def launch(
        self, name: str, sizes: Any, shared: int, pointers: Any, buffers: list[_Buffer],
        schedule: Schedule,
    ) -> str | None:  # fmt: skip
        """Run a kernel; returns its error, with file and line where they are known."""
        table = (_Buffer * max(len(buffers), 1))(*buffers)
        with self._running:
            failed = self.code.emulator_launch(
                getattr(self.code, f"emulator_call_{name}"), sizes, shared, pointers,
                *schedule, int(self.check), table, len(buffers), LAUNCH_SECONDS,
            )  # fmt: skip
            message = self.code.emulator_message().decode()
            if self.check:
                found = self.code.emulator_accesses()[: len(KINDS)]
                accesses.update(dict(zip(product([name], KINDS), found, strict=True)))
        return self._locate(message) if failed else None

    def _locate(self, message: str) -> str:
        place = re.search(r"pc (0x[0-9a-f]+)", message)
        if place and self.check:
            offset = int(place[1], 16) - self.base - 1
            message += " at " + run(["addr2line", "-e", str(self.path), hex(offset)]).strip()
        return message


class Kernel:
    """One kernel, called like a `cupy.RawKernel`."""

    schedule = Schedule()

    def __init__(self, library: Library, name: str, card: Card) -> None:
        if name not in library.limits:
            raise AttributeError(f"the source has no kernel {name!r}")
        self.library, self.name = library, name
        self.signature = library.signature(name)
        self.max_threads_per_block = library.limits[name]
        self.shared_size_bytes = library.static_shared(name)
        self.device, self.card = current_device(), card
        self._most_dynamic = SHARED_BYTES - self.shared_size_bytes

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory of a block that launches may request."""
        return self._most_dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if self.shared_size_bytes + size > self.card.shared_bytes:
            raise LaunchError(f"{self.name}: the device grants no {size} bytes of shared memory")
        self._most_dynamic = size

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        if self.device != current_device():
            raise LaunchError(f"{self.name}: loaded on device {self.device}, not the current one")
        self._check_sizes(grid, block, shared_mem)
        if len(args) != len(self.signature):
            raise TypeError(f"{self.name}: {len(args)} arguments, not {len(self.signature)}")
        values: list[Any] = []
        arrays: list[Pointed] = []
        for place, (argument, kind) in enumerate(zip(args, self.signature, strict=True)):
            if kind[0] == "v":
                values.append(self._value(place, argument, DTYPES[kind[1]]))
            elif kind[0] == "s":
                values.append(self._struct(place, argument, int(kind[1:]), arrays))
            elif kind[0] == "b":
                values.append(self._bytes(place, argument, int(kind[1:]), arrays))
            else:
                values.append(self._pointer(place, argument, kind, arrays))
        with set_apart(arrays) if self.library.check else nullcontext():
            self._launch(grid, block, shared_mem, values, arrays)

    def _launch(
        self, grid: Any, block: Any, shared_mem: int, values: list[Any], arrays: list[Pointed]
    ) -> None:
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        sizes = (ctypes.c_uint * 6)(*_three(grid), *_three(block))
        launches[self.name] += 1
        launch_devices[self.device] += 1
        seed = self.schedule.seed  # another order for other sizes, the same when repeated
        schedule = self.schedule._replace(seed=(seed + hash(tuple(sizes))) % 2**64)
        buffers = list(map(_buffer, arrays))
        wrong = self.library.launch(self.name, sizes, shared_mem, pointers, buffers, schedule)
        if wrong:
            raise LaunchError(f"{self.name}: {wrong}")

    def _check_sizes(self, grid: Any, block: Any, shared_mem: int) -> None:
        threads = int(np.prod(_three(block)))
        if threads > self.max_threads_per_block or threads < 1:
            raise LaunchError(f"{self.name}: {threads} threads a block")
        x, y, z = _three(grid)
        if not (0 < x < 2**31 and 0 < y <= MOST_BLOCKS_Y and 0 < z <= MOST_BLOCKS_Y):
            raise LaunchError(f"{self.name}: a grid of {(x, y, z)}")
        if shared_mem > self._most_dynamic:
            raise LaunchError(
                f"{self.name}: {shared_mem} bytes of dynamic shared memory beside "
                f"{self.shared_size_bytes} of static ones"
            )

    def _pointer(self, place: int, argument: Any, kind: str, arrays: list[Pointed]) -> Any:
        pointer = np.zeros(1, np.uint64)
        if isinstance(argument, np.uint64) and argument == 0:  # a null pointer
            return pointer
        values = getattr(argument, "host", None)
        if values is None:
            raise TypeError(f"{self.name} argument {place}: {type(argument)} is no device array")
        if kind and values.dtype != DTYPES[kind[1]]:
            raise TypeError(f"{self.name} argument {place}: {values.dtype}, not {DTYPES[kind[1]]}")
        if not values.flags.c_contiguous:
            raise TypeError(f"{self.name} argument {place}: not C-contiguous")
        pointer[0] = values.ctypes.data
        arrays.append(Pointed(values, kind[:1] == "c", pointer))
        return pointer

    def _struct(self, place: int, argument: Any, size: int, arrays: list[Pointed]) -> Any:
        """A struct passed by value: CuPy takes a NumPy array of size 1 for one."""
        if not isinstance(argument, np.ndarray) or argument.size != 1:
            raise TypeError(f"{self.name} argument {place}: {type(argument)} is no struct")
        layout = getattr(argument, "layout", argument.dtype)  # see Packed of kernels.py
        if argument.itemsize != size or not layout.isalignedstruct:
            raise TypeError(f"{self.name} argument {place}: {layout}, not {size} bytes")
        copy = np.frombuffer(bytearray(argument.tobytes()), np.uint8)
        pointers = [copy[at : at + 8].view(np.uint64) for at in _pointers(layout)]
        held = [pointer for pointer in pointers if pointer[0]]
        for (array, is_written), pointer in zip(argument.arrays, held, strict=True):
            arrays.append(Pointed(array.host, not is_written, pointer))
        return copy

    def _bytes(self, place: int, argument: Any, size: int, arrays: list[Pointed]) -> Any:
        """A parameter of which PTX has only the size: the argument of CuPy must have the same."""
        if isinstance(argument, np.ndarray):
            return self._struct(place, argument, size, arrays)
        if type(argument) in (int, float):
            argument = np.array([argument])[0]
        elif not isinstance(argument, np.generic):
            argument = self._pointer(place, argument, "", arrays)
        if argument.nbytes != size:
            raise TypeError(f"{self.name} argument {place}: {argument!r}, not {size} bytes")
        return argument if isinstance(argument, np.ndarray) else np.array([argument])

    def _value(self, place: int, argument: Any, dtype: np.dtype) -> Any:
        """A parameter passed by value. CuPy passes Python's int and float as 64 bits."""
        same = isinstance(argument, np.generic) and argument.dtype == dtype
        plain = (type(argument) is int and dtype == np.int64) or (
            type(argument) is float and dtype == np.float64
        )
        if not (same or plain):
            raise TypeError(f"{self.name} argument {place}: {argument!r}, not a {dtype}")
        return np.array([argument], dtype)


@cache
def _pointers(dtype: np.dtype) -> list[int]:
    """Places of pointers in a struct, which are its unsigned numbers."""
    if dtype.names is None:
        return [0] if dtype == np.uint64 else []
    fields = (dtype.fields[name] for name in dtype.names)
    return [offset + place for field, offset, *_ in fields for place in _pointers(field)]


def _buffer(array: Pointed) -> _Buffer:
    """Memory of a device array that a kernel may access."""
    values, read_only, pointer = array
    memory.require_device(values)
    flags = memory.flags(values)
    defined = None if flags is None else flags.ctypes.data
    return _Buffer(int(pointer[0]), values.nbytes, values.itemsize, int(read_only), defined)


def _three(sizes: Any) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return int(x), int(y), int(z)
