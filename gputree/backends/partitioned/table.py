"""A table on the host that is worked on in parts of rows, such as one mapped from a file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable, NewCodes


class PartitionedTable:
    """`gputree.backends.base.DeviceTable` on the host, in parts of rows.

    Parameters
    ----------
    values : (n, d) float32 or float64 array, C-contiguous
        NaN where missing; in memory or mapped from a file.
    missing : (d,) bool array
    categories : (d,) int64 array, or None
    bounds : int64 array of shape (parts + 1,)
        Part p holds the rows ``bounds[p] .. bounds[p + 1]``.
    new_codes : callable
        Makes room for codes, see `gputree.backends.cpu.table.CpuTable`.
    """

    name = "cpu"

    def __init__(
        self,
        values: NDArray,
        missing: NDArray[np.bool_],
        categories: Int64s | None = None,
        bounds: Int64s | None = None,
        new_codes: NewCodes | None = None,
    ) -> None:
        self.whole = CpuTable(values, missing, categories, new_codes)
        self.missing, self.categories = self.whole.missing, self.whole.categories
        self.shape = self.whole.shape
        self.bounds = np.array([0, len(values)]) if bounds is None else bounds

    def prepare(self, max_bins: int, n_threads: int) -> None:
        """Code the table as exact cuts need it."""
        self.whole.prepare(max_bins, n_threads)

    def spans(self) -> list[tuple[int, int]]:
        """The rows of each part."""
        return [(int(a), int(b)) for a, b in zip(self.bounds, self.bounds[1:], strict=False)]

    def part(self, begin: int, end: int) -> CpuTable:
        """Some rows as a table of their own, without codes."""
        return CpuTable(self.whole.values[begin:end], self.missing, self.categories)

    def coded(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        """All parts together, coded; see `gputree.backends.cpu.table.CpuTable.coded`."""
        return self.whole.coded(max_bins, exact, n_threads)


def rows_of(table: Table, begin: int, end: int) -> Table:
    """Some rows of a coded table."""
    return table._replace(values=table.values[begin:end], codes=table.codes[begin:end])
