"""Host memory on its way to the device, through page-locked buffers.

host memory     |  block 0  |  block 1  |  block 2  | ...
pinned buffers  |  0  |  1  |  0  | ...      filled by host threads, in turn
streams         |  0  |  1  |  0  | ...      while one is copied the other is filled
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.threads import even_spans, run

# Items that a host thread copies, at least.
COPIED_ITEMS = 1 << 18

# ``fill(out, first, last)`` puts rows ``first .. last`` of what is sent to `out`.
Fill = Callable[[NDArray[Any], int, int], None]


class Lane:
    """A stream with its pinned buffer of so many bytes."""

    def __init__(self, size: int) -> None:
        xp = cupy()
        self.stream = xp.cuda.Stream(non_blocking=True)
        self._memory = xp.cuda.alloc_pinned_memory(size)
        # Where a growth fails, CuPy uses pages again as soon as they are released.
        weakref.finalize(self, _finish, self.stream, self._memory).atexit = False

    def send(self, block: Any, fill: Fill, n_threads: int) -> None:
        """Copy what `fill` makes to `block` on the device, once what used the buffer is done."""
        self.stream.synchronize()
        staged = np.frombuffer(self._memory, block.dtype, block.size).reshape(block.shape)
        pieces = even_spans(len(staged), staged[:1].size, n_threads, COPIED_ITEMS)
        run(n_threads, fill, [(staged[a:b], a, b) for a, b in pieces])
        block.set(staged, stream=self.stream)


def _finish(stream: Any, _: Any) -> None:
    """Wait for copies from pages, which are kept until then."""
    stream.synchronize()


class Lanes:
    """Two lanes that take the blocks of arrays alternately; host threads fill their buffers."""

    def __init__(self, n_threads: int, row_bytes: int) -> None:
        self.n_threads = n_threads
        self.size = max(tuning.TUNING.block_bytes, row_bytes)  # rows are that long at most
        self.sent = 0  # bytes to the device
        self._lanes: list[Lane] = []
        self._turn = 0

    def send(self, out: Any, fill: Fill) -> None:
        """Copy what `fill` makes to `out` on the device; it is there after `wait`."""
        height = max(self.size // max(out[:1].nbytes, 1), 1)
        for first in range(0, len(out), height):
            block = out[first : first + height]
            self._next().send(block, _from(fill, first), self.n_threads)
            self.sent += block.nbytes

    def _next(self) -> Lane:
        """The lane whose turn it is."""
        if len(self._lanes) < 2:
            self._lanes.append(Lane(self.size))
        self._turn += 1
        return self._lanes[self._turn % len(self._lanes)]

    def wait(self) -> None:
        """Until all that was sent is there."""
        for lane in self._lanes:
            lane.stream.synchronize()


def _from(fill: Fill, first: int) -> Fill:
    """`fill` of a block that begins at a row."""
    return lambda out, a, b: fill(out, first + a, first + b)


def rows_from(array: NDArray[Any]) -> Fill:
    """Fills in the rows of an array, converted; columns that it does not have become 0."""

    def fill(out: NDArray[Any], first: int, last: int) -> None:
        own = array[first:last]
        if out.shape == own.shape:
            np.copyto(out, own, casting="same_kind")
        else:
            np.copyto(out[:, : own.shape[1]], own)
            out[:, own.shape[1] :] = 0

    return fill


def columns_from(array: NDArray[Any], columns: NDArray[np.int64]) -> Fill:
    """The same of some columns."""
    if columns.size == array.shape[1]:
        return rows_from(array)

    def fill(out: NDArray[Any], first: int, last: int) -> None:
        np.take(array[first:last], columns, axis=1, out=out, mode="clip")  # else through a copy

    return fill
