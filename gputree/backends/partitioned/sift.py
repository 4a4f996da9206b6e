"""Exact cuts inside one bin of more rows than are gathered at once: it is counted into cells.

    the bin         |    |    |    |    |    |    |    |    |     cells: digits of the values' bits
    boundaries      scored, with the values beside them
    living cells         |xxxxxxxxx|              |xxxx|          gathered, as many as there is room
    a cell too large                              ||||||          is counted into cells in its turn

Each round takes `Tuning.digit` bits, of 64 at most, and a cell of one value holds no cut: it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Rows
from gputree.backends.partitioned import tuning
from gputree.backends.partitioned.keys import (
    count_keys,
    gather_between,
    key_of,
    scan_interval,
    sift_cells,
)

Cut = tuple[float, int, bool, int, bool, float]


class Interval(NamedTuple):
    """Values of a bin, and the statistics of the rows before them, on the side of the cut."""

    low: float
    high: float
    rows: int
    left: Int64s  # (channels,)


class Bin(NamedTuple):
    """A bin of a node to look into, missing values on one side."""

    f: int
    b: int
    missing_left: bool
    total: Int64s
    limits: Limits  # of column f, as of a table of one column


class Sifter:
    """Looks into bins whose rows lie in parts, a bounded number of rows at a time.

    Parameters
    ----------
    head : CpuBackend
        What all parts share.
    parts : list of CpuBackend
    most_rows : int
        Gathered at once.
    """

    def __init__(self, head: CpuBackend, parts: list[CpuBackend], most_rows: int) -> None:
        self.parts, self.most_rows = parts, most_rows
        self.task = head.task
        self.dtype = head.table.values.dtype
        self.weighted = head.task.weight is not None
        self.gathered = 0

    def best_cut(
        self, first: Int64s, last: Int64s, place: Bin, interval: Interval, cut: Cut
    ) -> Cut:
        """The better of `cut` and the best cut between values of `interval`, and at no end of it.

        Entries ``first[p] .. last[p]`` of part p are the node's.
        """
        if interval.low == interval.high:
            return cut
        if interval.rows <= self.most_rows:
            return self._scan(first, last, place, interval, cut)
        low, shift = _digit(interval)
        size = (int(key_of(interval.high) - low) >> shift) + 1
        channels = self.task.channels
        counts = np.zeros(size * channels, np.int64)
        least, greatest = np.full(size, np.inf), np.full(size, -np.inf)
        for part, a, z in self._parts(first, last):
            count_keys(
                self.task.criterion, part.table, part.rows, part.entries, a, z, place.f, place.b,
                interval.low, interval.high, low, np.uint64(shift), self.weighted, channels, counts,
                least, greatest,
            )  # fmt: skip
        living = np.zeros(size, np.int64)
        cut = sift_cells(
            self.task.criterion, place.limits, self.weighted, counts, least, greatest,
            interval.left, place.total, place.f, place.missing_left, place.b, cut, living,
        )  # fmt: skip
        for inside in self._intervals(counts.reshape(-1, channels), least, greatest, living):
            left = interval.left + inside.left
            cut = self.best_cut(first, last, place, inside._replace(left=left), cut)
        return cut

    def _intervals(
        self, counts: NDArray, least: NDArray, greatest: NDArray, living: Int64s
    ) -> Iterator[Interval]:
        """Living cells, those together that there is room for, with all between them."""
        upto = np.zeros((len(counts) + 1, counts.shape[1]), np.int64)
        np.cumsum(counts, axis=0, out=upto[1:])
        rows = row_counts(upto, self.task.n_classes, self.weighted)
        cells = np.flatnonzero(living)
        at = 0
        while at < cells.size:
            begin = int(cells[at])
            end = int(np.searchsorted(rows, rows[begin] + self.most_rows, side="right")) - 1
            upto_at = max(int(np.searchsorted(cells, end)), at + 1)
            final = int(cells[upto_at - 1])
            yield Interval(
                float(least[begin]), float(greatest[final]), int(rows[final + 1] - rows[begin]),
                upto[begin],
            )  # fmt: skip
            at = upto_at

    def _scan(self, first: Int64s, last: Int64s, place: Bin, interval: Interval, cut: Cut) -> Cut:
        """As `best_cut`, among rows that are gathered."""
        n, task = interval.rows, self.task
        self.gathered += n
        values, target = np.empty(n, self.dtype), np.empty(n, task.target.dtype)
        weight = np.empty(n, np.int64) if self.weighted else None
        used = 0
        for part, a, z in self._parts(first, last):
            used = gather_between(
                part.table, part.rows, part.entries, a, z, place.f, place.b, interval.low,
                interval.high, used, values, target, weight,
            )  # fmt: skip
        found: Cut = scan_interval(
            task.criterion, Rows(target, weight, None, None), place.limits, self.weighted, values,
            interval.left, place.total, place.f, place.missing_left, place.b, cut,
        )  # fmt: skip
        return found

    def _parts(self, first: Int64s, last: Int64s) -> Iterator[tuple[CpuBackend, int, int]]:
        for part, a, z in zip(self.parts, first.tolist(), last.tolist(), strict=True):
            if a < z:
                yield part, a, z


def _digit(interval: Interval) -> tuple[np.uint64, int]:
    """The key that the cells of an interval begin with, and how far keys are shifted."""
    low = key_of(interval.low)
    bits = int(key_of(interval.high) - low).bit_length()
    return low, max(bits - tuning.TUNING.digit, 0)


def row_counts(statistics: NDArray, n_classes: int, weighted: bool) -> Int64s:
    """Rows behind statistics of shape (m, channels); see `gputree.backends.cpu.score.row_count`."""
    if weighted:
        rows: Int64s = statistics[:, -1]
        return rows
    return statistics.sum(axis=1) if n_classes else statistics[:, 0]
