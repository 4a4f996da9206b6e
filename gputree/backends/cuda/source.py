"""Values of a table, on the host or a device, and their copies on the device.

Values on the host go through two lanes (`Lane`) alternately: each copies a block, then codes it,
and while one copies, the other codes.

Values of a table that does not fit in addition to its codes stay in host memory, which is
page-locked in place, or copied to page-locked memory where that is refused. Kernels that need
single values read them over the bus.

Copies of host memory to the device through page-locked buffers.

host memory     |  block 0  |  block 1  |  block 2  | ...
pinned buffers  |  0  |  1  |  0  | ...      filled by host threads, alternately
streams         |  0  |  1  |  0  | ...      while one is copied the other is filled
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.base.dtypes import Int64s
from gputree.base.memory import OutOfMemory
from gputree.base.threads import even_spans, run

# Flags of page-locked host memory: kernels may read it, in any context; kernels only read it, and
# the host may be unable to write it, as where a file is mapped to be read.
_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8

_NOT_SUPPORTED = 801  # cudaErrorNotSupported

# Launches kernels on a block of values, given its first row.
Visit = Callable[[Any, int], None]


def new_source(values: Any, keeps_values: bool, n_threads: int) -> Source:
    """Return the source of a float32 or float64 table, NumPy's or CuPy's."""
    bits = values.view(bits_of(values.dtype))
    if isinstance(values, np.ndarray):
        return HostSource(bits, keeps_values, n_threads)
    return DeviceSource(bits)


def bits_of(dtype: np.dtype) -> np.dtype:
    """Return the unsigned integer type of the width of `dtype`."""
    return np.dtype(f"u{np.dtype(dtype).itemsize}")


class DeviceSource:
    """Values on the device, which are not copied; methods as of `HostSource`."""

    used_bytes = 0

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape: tuple[int, int] = values.shape
        self.bits = values.dtype

    def visit(self, visit: Visit) -> None:
        visit(self.values, 0)

    def rows(self, places: Int64s) -> tuple[Any, Any]:
        return self.values, to_device(places)

    def column(self, f: int) -> Any:
        return cupy().ascontiguousarray(self.values[:, f : f + 1])

    def resident(self) -> Any:
        return self.values


class HostSource:
    """Values (n, d) on the host, as bits: copied when all are first read, if they fit."""

    def __init__(self, values: NDArray[Any], keeps_values: bool, n_threads: int) -> None:
        self.values = values
        self.shape: tuple[int, int] = values.shape
        self.bits = values.dtype
        self.n_threads = n_threads
        self.keeps_values = keeps_values
        self._resident: Any = None

    @property
    def used_bytes(self) -> int:
        """Bytes of device memory of a copy of the values."""
        copied = self.keeps_values and self._resident is not None
        return self.values.nbytes if copied else 0

    def visit(self, visit: Visit) -> None:
        """Call `visit` for all rows, block by block; it must not allocate memory."""
        if self._resident is not None and self.keeps_values:
            visit(self._resident, 0)
            return
        whole = cupy().empty(self.shape, dtype=self.bits) if self.keeps_values else None
        self._stream(whole, visit)
        self._resident = whole

    def rows(self, places: Int64s) -> tuple[Any, Any]:
        """Return a device array with the rows at `places`, and their places in it."""
        return to_device(self.values[places]), to_device(np.arange(places.size))

    def column(self, f: int) -> Any:
        """Return one column, shape (n, 1)."""
        return to_device(self.values[:, f : f + 1])

    def resident(self) -> Any:
        """Return all values in memory that kernels can read."""
        if self._resident is None:
            if self.keeps_values:
                self.visit(lambda block, first: None)
            else:
                self._resident = map_to_device(self.values)
        return self._resident

    def _stream(self, whole: Any, visit: Visit) -> None:
        """Copy and visit block after block, on two streams alternately."""
        n, d = self.shape
        rows = min(max(tuning.TUNING.block_bytes // (d * self.bits.itemsize), 1), n)
        number = 2 if rows < n else 1
        lanes = [Lane(rows * d * self.bits.itemsize) for _ in range(number)]
        passing = [cupy().empty((rows, d), dtype=self.bits) for _ in lanes if whole is None]
        cupy().cuda.get_current_stream().synchronize()  # the data that visits read are there
        for i, first in enumerate(range(0, n, rows)):
            part, lane = self.values[first : first + rows], lanes[i % number]
            space = passing[i % number] if whole is None else whole[first:]
            block = space[: len(part)]
            lane.send(block, rows_from(part), self.n_threads)
            with lane.stream:
                visit(block, first)
        for lane in lanes:
            lane.stream.synchronize()


Source = DeviceSource | HostSource


@dataclass(eq=False)
class _Locked:
    """Owner of page-locked host memory."""

    values: NDArray[Any]


def map_to_device(values: NDArray[Any]) -> Any:
    """Return host memory as a device array, locked until the array is deleted.

    It is page-locked in place, or else copied on the host; MemoryError if neither is possible.
    """
    xp = cupy()
    try:
        owner = _register(values)
    except xp.cuda.runtime.CUDARuntimeError as refusal:
        try:
            owner = _locked_copy(values)
        except (xp.cuda.runtime.CUDARuntimeError, MemoryError) as error:
            raise OutOfMemory(
                f"The values of X, {values.nbytes:,} bytes, do not fit the device with their "
                f"codes, cannot be read where they lie ({refusal}), and the host cannot lock "
                f"memory for a copy ({error}).",
                "Use splitter='binned', which needs codes alone, float32 values, or device='cpu'.",
            ) from refusal
    address = owner.values.ctypes.data
    memory = xp.cuda.UnownedMemory(address, values.nbytes, owner, xp.cuda.Device().id)
    pointer = xp.cuda.MemoryPointer(memory, 0)
    return xp.ndarray(values.shape, dtype=values.dtype, memptr=pointer)


def _register(values: NDArray[Any]) -> _Locked:
    """Lock the pages of `values` in place, until the result is deleted."""
    runtime, attributes = cupy().cuda.runtime, cupy().cuda.Device().attributes
    address, flags = values.ctypes.data, _PORTABLE | _MAPPED
    if not attributes.get("CanUseHostPointerForRegisteredMem"):
        raise runtime.CUDARuntimeError(_NOT_SUPPORTED)
    try:
        runtime.hostRegister(address, values.nbytes, flags)
    except runtime.CUDARuntimeError:  # such as a file that is mapped to be read
        if not attributes.get("HostRegisterReadOnlySupported"):
            raise
        runtime.hostRegister(address, values.nbytes, flags | _READ_ONLY)
    owner = _Locked(values)
    weakref.finalize(owner, runtime.hostUnregister, address)
    return owner


def _locked_copy(values: NDArray[Any]) -> _Locked:
    """Copy to page-locked memory outside of any pool, which would keep it."""
    cuda = cupy().cuda
    memory = cuda.PinnedMemoryPointer(cuda.PinnedMemory(values.nbytes, _PORTABLE | _MAPPED), 0)
    copy = np.frombuffer(memory, values.dtype, values.size).reshape(values.shape)
    np.copyto(copy, values)
    return _Locked(copy)


# Minimum number of items that a host thread copies.
COPIED_ITEMS = 1 << 18

# ``fill(out, first, last)`` writes rows ``first .. last`` of the array that is sent to `out`.
Fill = Callable[[NDArray[Any], int, int], None]


class Lane:
    """A stream with its pinned buffer of `size` bytes."""

    def __init__(self, size: int) -> None:
        xp = cupy()
        self.stream = xp.cuda.Stream(non_blocking=True)
        self._memory = xp.cuda.alloc_pinned_memory(size)
        # If a growth fails, CuPy reuses pages as soon as they are released.
        weakref.finalize(self, _finish, self.stream, self._memory).atexit = False

    def send(self, block: Any, fill: Fill, n_threads: int) -> None:
        """Copy the rows that `fill` writes to `block` on the device, once the buffer is free."""
        self.stream.synchronize()
        staged = np.frombuffer(self._memory, block.dtype, block.size).reshape(block.shape)
        pieces = even_spans(len(staged), staged[:1].size, n_threads, COPIED_ITEMS)
        run(n_threads, fill, [(staged[a:b], a, b) for a, b in pieces])
        block.set(staged, stream=self.stream)


def _finish(stream: Any, _: Any) -> None:
    """Wait for the copies from pages that are kept until then."""
    stream.synchronize()


class Lanes:
    """Two lanes that copy the blocks of arrays alternately; host threads fill their buffers."""

    def __init__(self, n_threads: int, row_bytes: int) -> None:
        self.n_threads = n_threads
        self.size = max(tuning.TUNING.block_bytes, row_bytes)  # maximum size of a row
        self.sent = 0  # bytes to the device
        self._lanes: list[Lane] = []
        self._turn = 0

    def send(self, out: Any, fill: Fill) -> None:
        """Copy the rows that `fill` writes to `out` on the device; complete after `wait`."""
        height = max(self.size // max(out[:1].nbytes, 1), 1)
        for first in range(0, len(out), height):
            block = out[first : first + height]
            self._next().send(block, _from(fill, first), self.n_threads)
            self.sent += block.nbytes

    def _next(self) -> Lane:
        """Return the next lane in alternation."""
        if len(self._lanes) < 2:
            self._lanes.append(Lane(self.size))
        self._turn += 1
        return self._lanes[self._turn % len(self._lanes)]

    def wait(self) -> None:
        """Wait until all copies are complete."""
        for lane in self._lanes:
            lane.stream.synchronize()


def _from(fill: Fill, first: int) -> Fill:
    """Shift `fill` to a block that begins at row `first`."""
    return lambda out, a, b: fill(out, first + a, first + b)


def rows_from(array: NDArray[Any]) -> Fill:
    """Return a `Fill` of the rows of an array, converted; columns that it lacks become 0."""

    def fill(out: NDArray[Any], first: int, last: int) -> None:
        rows = array[first:last]
        if out.shape == rows.shape:
            np.copyto(out, rows, casting="same_kind")
        else:
            np.copyto(out[:, : rows.shape[1]], rows)
            out[:, rows.shape[1] :] = 0

    return fill


def columns_from(array: NDArray[Any], columns: NDArray[np.int64]) -> Fill:
    """Return a `Fill` of some columns of an array."""
    if columns.size == array.shape[1]:
        return rows_from(array)

    def fill(out: NDArray[Any], first: int, last: int) -> None:
        np.take(array[first:last], columns, axis=1, out=out, mode="clip")  # else through a copy

    return fill
