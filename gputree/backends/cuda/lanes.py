"""Copies of host memory to the device through page-locked buffers.

host memory     |  block 0  |  block 1  |  block 2  | ...
pinned buffers  |  0  |  1  |  0  | ...      filled by host threads, alternately
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
