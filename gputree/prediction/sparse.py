"""Rows of a sparse table that descend trees without the rest of the table becoming dense."""

from __future__ import annotations

from collections.abc import Iterator
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Int64s, Values

# Bytes of rows that are dense at a time, in each thread.
DENSE_BYTES = 1 << 22
FEWEST_ROWS = 8  # that are dense at a time, since so many descend together


class SparseRows:
    """A table of n rows and d columns by the values that it stores; all others are 0.

    A slice of it is dense, and valid until the same thread takes another one: blocks of rows are
    written to one buffer, of which only what a block has set is cleared. So time and memory are
    those of the stored values.

    Parameters
    ----------
    values : float32 or float64 array
        The stored values, row by row; NaN where missing.
    column : int array
        Their columns, none twice in a row.
    first : int array of shape (n + 1,)
        Places where rows begin, and where the last one ends.
    n_columns : int
    """

    def __init__(self, values: Values, column: NDArray[Any], first: Int64s, n_columns: int) -> None:
        self.values, self.column, self.first = values, column, first
        self.shape, self.dtype = (first.size - 1, n_columns), values.dtype
        self._buffers = local()

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def block_rows(self) -> int:
        """Number of rows to take at a time."""
        return max(DENSE_BYTES // (self.shape[1] * self.dtype.itemsize), FEWEST_ROWS)

    def __getitem__(self, rows: slice) -> Values:
        begin, end, _ = rows.indices(len(self))
        n, d = max(end - begin, 0), self.shape[1]
        buffer, cells = getattr(self._buffers, "last", (np.zeros((0, d), self.dtype), slice(0)))
        buffer.ravel()[cells] = 0
        if len(buffer) < n:
            buffer = np.zeros((n, d), self.dtype)
        stored = slice(self.first[begin], self.first[begin + n])
        counts = np.diff(self.first[begin : begin + n + 1])
        cells = np.repeat(np.arange(0, n * d, d), counts) + self.column[stored]
        buffer.ravel()[cells] = self.values[stored]
        self._buffers.last = buffer, cells
        return buffer[:n]

    def blocks(self) -> Iterator[Values]:
        """Yield copies of all rows, at least one block."""
        for begin in range(0, max(len(self), 1), self.block_rows):
            yield self[begin : begin + self.block_rows].copy()

    def inspect(self, begin: int, end: int, missing: Bools, infinite: Bools) -> None:
        """Mark columns (d,) with missing, and with infinite values in rows ``begin .. end``."""
        stored = slice(self.first[begin], self.first[end])
        values, column = self.values[stored], self.column[stored]
        if not np.isfinite(values).all():
            missing[column[np.isnan(values)]] = True
            infinite[column[np.isinf(values)]] = True
