"""Device memory that growth works in, lent to one level after another.

Each purpose has a room: memory that is taken when it is first asked for, of the size that no level
of the growth exceeds, or of what is asked where that is far less. What is carved from it is lent:
once no array refers to it any more, the next level has the same memory. Work on a device is in
order, so it may be written again as soon as what read it is launched. Rooms end with the growth.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy

# Bytes between the arrays of one allocation: as CuPy's pool aligns.
ALIGNMENT = 512

Shaped = tuple[Any, Any]  # shape and dtype of an array


# -------------------------------------------------------------------- one allocation
def carve(*arrays: Shaped) -> list[Any]:
    """Arrays of these shapes and dtypes with anything in them, of one allocation."""
    places = _places(_sizes(arrays))
    return _over(cupy().empty(max(places[-1], 1), dtype=np.uint8).data, places, arrays)


def carve_from(block: Any, *arrays: Shaped) -> list[Any]:
    """The same of memory that is there, as bytes."""
    return _over(block.data, _places(_sizes(arrays)), arrays)


def send(*arrays: NDArray[Any]) -> list[Any]:
    """Copies of host arrays on the device, which one copy brings there."""
    places, shaped = _places([array.nbytes for array in arrays]), _shaped(arrays)
    block = np.zeros(max(places[-1], 1), np.uint8)
    _fill(block, places, arrays)
    return _over(cupy().asarray(block).data, places, shaped)


def bytes_of(*arrays: Shaped) -> int:
    """What arrays of these shapes and dtypes take together."""
    return _places(_sizes(arrays))[-1]


def _sizes(arrays: Sequence[Shaped]) -> list[int]:
    return [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in arrays]


def _shaped(arrays: Sequence[NDArray[Any]]) -> list[Shaped]:
    return [(array.shape, array.dtype) for array in arrays]


def _places(sizes: list[int]) -> list[int]:
    """Where each of some arrays begins, and the end."""
    return [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]


def _fill(block: NDArray[np.uint8], places: list[int], arrays: Sequence[NDArray[Any]]) -> None:
    """Copy arrays to their places in a block."""
    for place, array in zip(places, arrays, strict=False):
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block[place : place + plain.size] = plain


def _over(memory: Any, places: list[int], arrays: Sequence[Shaped]) -> list[Any]:
    """Arrays of these shapes and dtypes at places of some memory, which they keep."""
    new = cupy().ndarray
    return [
        new(shape, dtype, memptr=memory + place)
        for place, (shape, dtype) in zip(places, arrays, strict=False)
    ]


# ----------------------------------------------------------------------------- rooms
class _Lease:
    """Lives as long as any array in the memory that it lends."""

    def __init__(self, block: Any) -> None:
        self.block = block


class Room:
    """Memory for one purpose, lent again once nothing refers to what lay in it.

    Parameters
    ----------
    ample : int or None
        Bytes that it may have before they are needed; None as tuned.
    """

    def __init__(self, ample: int | None = None) -> None:
        self._ample = ample
        self._block: Any = None  # (bytes,) uint8
        self._lease: Callable[[], _Lease | None] = lambda: None

    @property
    def is_free(self) -> bool:
        """Whether no array refers to what was carved from it last."""
        return self._lease() is None

    @property
    def nbytes(self) -> int:
        return 0 if self._block is None else int(self._block.nbytes)

    def carve(self, arrays: Sequence[Shaped], most: Callable[[], int]) -> list[Any]:
        """As `carve`, of this room where it is free.

        Parameters
        ----------
        arrays : shapes and dtypes
        most : () -> int
            Bytes that may be asked for in this growth.
        """
        if not self.is_free:
            return carve(*arrays)
        places = _places(_sizes(arrays))
        self._widen(places[-1], most)
        return _over(self._lend(), places, arrays)

    def release(self) -> None:
        """Give the memory back: at once, or when the last array in it goes."""
        self._block = None
        self._lease = lambda: None

    def _widen(self, needed: int, most: Callable[[], int]) -> None:
        """Have so many bytes, and those of wider levels with them."""
        if self.nbytes >= max(needed, 1):
            return
        own = tuning.TUNING.ample_room if self._ample is None else self._ample
        ample = max(2 * needed, own)
        self.release()  # before more is taken
        self._block = cupy().empty(max(min(most(), ample), needed, 1), dtype=np.uint8)

    def _lend(self) -> Any:
        """The memory, for arrays to be made over."""
        block, cuda = self._block, cupy().cuda
        lease = _Lease(block)
        self._lease = weakref.ref(lease)
        memory = cuda.UnownedMemory(block.data.ptr, block.nbytes, lease, cuda.Device().id)
        return cuda.MemoryPointer(memory, 0)


class SendingRoom(Room):
    """A room for copies of host arrays, which come through page-locked memory of its own."""

    def __init__(self, ample: int | None = None) -> None:
        super().__init__(ample)
        self._staging: _Staging | None = None

    def send(self, arrays: Sequence[NDArray[Any]], most: Callable[[], int]) -> list[Any]:
        """As `send`, to this room where it is free; `most` as for `carve`."""
        if not self.is_free:
            return send(*arrays)
        places = _places([array.nbytes for array in arrays])
        self._widen(places[-1], most)
        if self._staging is None:  # none yet, or one for a smaller room was given up
            self._staging = _Staging(self.nbytes)
        memory = self._lend()
        self._staging.send(memory, places, arrays)
        return _over(memory, places, _shaped(arrays))

    def release(self) -> None:
        super().release()
        self._staging = None


class _Staging:
    """Page-locked memory that copies to the device come from, while the host goes on."""

    def __init__(self, nbytes: int) -> None:
        cuda = cupy().cuda
        locked = cuda.alloc_pinned_memory(nbytes)
        self._bytes = np.frombuffer(locked, np.uint8, nbytes)
        self._copied = cuda.Event(disable_timing=True)
        # CuPy lends pages again as soon as they are given back, on their way or not.
        weakref.finalize(self, _await, self._copied, locked).atexit = False

    def send(self, memory: Any, places: list[int], arrays: Sequence[NDArray[Any]]) -> None:
        """Copy arrays to their places in device memory, once the copy before is done."""
        xp, nbytes = cupy(), places[-1]
        _await(self._copied)
        _fill(self._bytes, places, arrays)
        stream = xp.cuda.get_current_stream()
        xp.ndarray((nbytes,), np.uint8, memptr=memory).set(self._bytes[:nbytes], stream=stream)
        self._copied.record(stream)


def _await(copied: Any, *_: Any) -> None:
    """Wait for what was recorded, if anything was."""
    if not copied.done:
        copied.synchronize()


class Workspace:
    """The rooms of a growth.

    Parameters
    ----------
    ample : int or None
        Of each room, see `Room`.
    """

    def __init__(self, ample: int | None = None) -> None:
        self.histograms = Room(ample), Room(ample)  # of a level, and of the one above
        self.counted = SendingRoom(ample)  # what histograms are told
        self.bounds = SendingRoom(ample)
        self.scores = Room(ample)
        self.plan = SendingRoom(ample)
        self.subsets = Room(ample)
        self.splits = Room(ample)
        self.inside = Room(ample)

    @property
    def rooms(self) -> tuple[Room, ...]:
        return (
            *self.histograms, self.counted, self.bounds, self.scores, self.plan, self.subsets,
            self.splits, self.inside,
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Device memory of all rooms."""
        return sum(room.nbytes for room in self.rooms)

    def for_histograms(self) -> Room:
        """One that is free, or any."""
        return next((room for room in self.histograms if room.is_free), self.histograms[0])

    def release(self) -> None:
        """Give all memory back."""
        for room in self.rooms:
            room.release()
