"""Device memory for growth, reused by one level after another.

Each purpose has a buffer: memory that is allocated at its first use, with the maximum size of any
level of the growth, or with the size needed where that is far less. Once no array in it is left,
the next level has the same memory. Work on a device is in order, so the memory may be written again
as soon as the kernels that read it are launched. Buffers end with the growth.

Pieces of nodes, each of which a block processes.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import CHUNKS, Packed, cupy
from gputree.base.dtypes import Int64s
from gputree.base.threads import chunks

# Alignment, in bytes, of the arrays of one allocation, as in CuPy's pool.
ALIGNMENT = 512

Shaped = tuple[Any, Any]  # shape and dtype of an array


# -------------------------------------------------------------------- one allocation
def allocate(*arrays: Shaped) -> list[Any]:
    """Return uninitialized arrays of these shapes and dtypes, in one allocation."""
    places = _places(arrays)
    memory = cupy().empty(max(places[-1], 1), dtype=np.uint8).data
    return carve(memory, arrays, places)


def allocate_in(memory: Any, *arrays: Shaped) -> list[Any]:
    """Return arrays in existing memory, to which they keep a reference."""
    return _arrange(memory, arrays, _places(arrays))


def views(block: NDArray[np.uint8], *arrays: Shaped) -> list[NDArray[Any]]:
    """Arrays of a host's copy of such memory."""
    return [
        np.ndarray(shape, dtype, block, place)
        for place, (shape, dtype) in zip(_places(arrays), arrays, strict=False)
    ]


def send(*arrays: NDArray[Any]) -> list[Any]:
    """Copy host arrays to the device in one transfer."""
    shaped = [(array.shape, array.dtype) for array in arrays]
    places = _places(shaped)
    block = np.zeros(max(places[-1], 1), np.uint8)
    _fill(block, arrays, places)
    return sent_to(cupy().asarray(block).data, shaped, places)


def bytes_of(*arrays: Shaped) -> int:
    """Bytes of arrays of these shapes and dtypes together."""
    return _places(arrays)[-1]


def _places(arrays: Sequence[Shaped]) -> list[int]:
    """Offsets of arrays in one allocation, and the end."""
    places = [0]
    for shape, dtype in arrays:
        number = math.prod(shape) if isinstance(shape, tuple) else int(shape)
        nbytes = number * np.dtype(dtype).itemsize
        places.append(places[-1] + -(-nbytes // ALIGNMENT) * ALIGNMENT)
    return places


def _arrange(memory: Any, arrays: Sequence[Shaped], places: list[int]) -> list[Any]:
    """Return arrays at these places of a memory."""
    new = cupy().ndarray
    return [
        new(shape, dtype, memptr=memory + place)
        for place, (shape, dtype) in zip(places, arrays, strict=False)
    ]


# Of new memory, and of memory that arrays were sent to. A check of a device's memory replaces both,
# so that each array has an allocation.
carve = sent_to = _arrange


def _fill(block: NDArray[np.uint8], arrays: Sequence[NDArray[Any]], places: list[int]) -> None:
    """Copy arrays to their places in a block."""
    for place, array in zip(places, arrays, strict=False):
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block[place : place + plain.size] = plain


# --------------------------------------------------------------------------- buffers
class _Lease:
    """Token that lives as long as any array in its memory."""

    block: Any  # the memory, which it keeps


class Buffer:
    """Memory for one purpose, reused once no array in it is left.

    It may have `ample` bytes before they are needed; None as tuned.
    """

    def __init__(self, ample: int | None = None) -> None:
        self._ample = ample
        self.nbytes = 0
        self._block: Any = None  # (bytes,) uint8
        self._staging: _Staging | None = None
        self._lease: Callable[[], _Lease | None] = lambda: None

    @property
    def is_free(self) -> bool:
        """True if no array refers to the last memory allocated from it."""
        return self._lease() is None

    def allocate(self, arrays: Sequence[Shaped], most: Callable[[], int]) -> list[Any]:
        """Like `allocate`, in this buffer if it is free; a growth needs at most `most()` bytes."""
        if not self.is_free:
            return allocate(*arrays)
        places = _places(arrays)
        return carve(self._lend(places[-1], most), arrays, places)

    def send(self, arrays: Sequence[NDArray[Any]], most: Callable[[], int]) -> list[Any]:
        """Like `send`, to this buffer if it is free, through page-locked memory; see `allocate`."""
        if not self.is_free:
            return send(*arrays)
        shaped = [(array.shape, array.dtype) for array in arrays]
        places = _places(shaped)
        memory = self._lend(places[-1], most)
        if self._staging is None:  # none yet, or a smaller one was released
            self._staging = _Staging(self.nbytes)
        self._staging.send(memory, arrays, places)
        return sent_to(memory, shaped, places)

    def release(self) -> None:
        """Release the memory: at once, or when the last array in it is deleted."""
        self._block = self._staging = None
        self.nbytes = 0
        self._lease = lambda: None

    def _widen(self, needed: int, most: Callable[[], int]) -> None:
        """Allocate at least `needed` bytes, or those that wider levels need."""
        ample_size = tuning.TUNING.ample_buffer if self._ample is None else self._ample
        ample = max(2 * needed, ample_size)
        self.release()  # before more is taken
        self._block = cupy().empty(max(min(most(), ample), needed, 1), dtype=np.uint8)
        self.nbytes = int(self._block.nbytes)

    def _lend(self, needed: int, most: Callable[[], int]) -> Any:
        """Return memory for `needed` bytes of arrays, and mark it as used."""
        if self._block is None or self.nbytes < needed:
            self._widen(needed, most)
        block, cuda, lease = self._block, cupy().cuda, _Lease()
        lease.block = block
        self._lease = weakref.ref(lease)
        memory = cuda.UnownedMemory(block.data.ptr, self.nbytes, lease, cuda.Device().id)
        return cuda.MemoryPointer(memory, 0)


class _Staging:
    """Page-locked memory that is copied to the device while the host goes on."""

    def __init__(self, nbytes: int) -> None:
        cuda = cupy().cuda
        locked = cuda.alloc_pinned_memory(nbytes)
        self._bytes = np.frombuffer(locked, np.uint8, nbytes)
        self._copied = cuda.Event(disable_timing=True)
        # CuPy reuses pages as soon as they are released, copied or not.
        weakref.finalize(self, _await, self._copied, locked).atexit = False

    def send(self, memory: Any, arrays: Sequence[NDArray[Any]], places: list[int]) -> None:
        """Copy arrays to their places in device memory, once the copy before is done."""
        xp, nbytes = cupy(), places[-1]
        _await(self._copied)
        _fill(self._bytes, arrays, places)
        stream = xp.cuda.get_current_stream()
        xp.ndarray((nbytes,), np.uint8, memptr=memory).set(self._bytes[:nbytes], stream=stream)
        self._copied.record(stream)


def _await(copied: Any, *_: Any) -> None:
    """Wait for the recorded event, if there is one."""
    if not copied.done:
        copied.synchronize()


class Workspace:
    """The buffers of a growth, each with up to `ample` bytes."""

    def __init__(self, ample: int | None = None) -> None:
        self.histograms = Buffer(ample), Buffer(ample)  # of a level, and of the one above
        self.counted = Buffer(ample)  # arrays sent for histograms
        self.bounds = Buffer(ample)
        self.scores = Buffer(ample)
        self.drawn = Buffer(ample)
        self.plan = Buffer(ample)
        self.subsets = Buffer(ample)
        self.splits = Buffer(ample)
        self.inside = Buffer(ample)

    @property
    def buffers(self) -> list[Buffer]:
        members = vars(self).values()
        return [*self.histograms, *(buffer for buffer in members if isinstance(buffer, Buffer))]

    @property
    def nbytes(self) -> int:
        """Device memory of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)

    def for_histograms(self) -> Buffer:
        """Return a buffer of histograms that is free, or any."""
        return next((buffer for buffer in self.histograms if buffer.is_free), self.histograms[0])

    def release(self) -> None:
        """Release all memory."""
        for buffer in self.buffers:
            buffer.release()


class DeviceChunks(NamedTuple):
    """Pieces of nodes, on the device: a block processes each."""

    number: int
    packed: Packed

    @classmethod
    def of(cls, begin: Int64s, end: Int64s, rows: int = 0) -> DeviceChunks:
        """Return the pieces of nodes ``begin[j] .. end[j]``, in order; `rows` each, or as tuned."""
        return cls.over(*send(*cut(begin, end, rows)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any) -> DeviceChunks:
        """Arrange pieces on the device, as `cut` lists them."""
        return cls(int(owner.size), CHUNKS.pack(owner, first, last, None))


def cut(begin: Int64s, end: Int64s, rows: int = 0) -> tuple[Int64s, Int64s, Int64s]:
    """Owner, first entry and end of pieces of nodes, in order; `rows` each, or as tuned."""
    return chunks(begin, end, rows or chunk_rows(int((end - begin).sum())))


def chunk_rows(rows: int) -> int:
    """Entries that one block processes of `rows` in all."""
    tuned = tuning.TUNING
    share = max(-(-rows // filling_chunks()), tuned.fewest_chunk_rows)
    return min(share, tuned.chunk_rows)


def filling_chunks() -> int:
    """Minimum number of blocks that use all multiprocessors of the current device well."""
    return _attribute(cupy().cuda.Device().id, "MultiProcessorCount") * (
        tuning.TUNING.multiprocessor_chunks
    )


def granted_bytes() -> int:
    """Bytes of shared memory that the current device grants to a block."""
    return _attribute(cupy().cuda.Device().id, "MaxSharedMemoryPerBlockOptin")


@cache
def _attribute(device: int, name: str) -> int:
    return int(cupy().cuda.Device(device).attributes[name])


class NodePieces(NamedTuple):
    """Pieces of nodes that are partitioned."""

    chunks: DeviceChunks
    begin: Any  # of each node
    chunk: Any  # (m,) int64: the first chunk of each node

    @staticmethod
    def listed(begin: Int64s, end: Int64s) -> tuple[Int64s, ...]:
        """Arrays to send, in the order of `over`."""
        pieces = cut(begin, end, tuning.TUNING.partition_rows)
        return (*pieces, begin, np.searchsorted(pieces[0], np.arange(begin.size)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any, begin: Any, chunk: Any) -> NodePieces:
        """Arrange arrays on the device, in the order of `listed`."""
        return cls(DeviceChunks.over(owner, first, last), begin, chunk)


NO_PARTS = NodePieces(DeviceChunks(0, CHUNKS.pack(None, None, None, None)), None, None)
