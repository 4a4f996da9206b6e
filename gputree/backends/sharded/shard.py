"""A shard: some rows of a coded table, and the statistics of nodes that it reports.

A node is a range of the shard's order. The CPU and a CUDA device report the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Floats, Int64s, Rows, Splits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.sharded.intervals import (
    IntervalRows,
    IntervalSource,
    RequestedIntervals,
    count_categories,
    narrow_targets,
    visit_intervals,
)
from gputree.backends.sharded.rows import ShardRanges
from gputree.tree.branches import concatenated_ranges

Arrays = Sequence[NDArray[Any]]


class Partitioned(NamedTuple):
    """The order of a shard's rows with m nodes partitioned."""

    entries: NDArray[np.int32]
    middle: Int64s  # (m,) first place of the second child
    low: Floats  # (m,) maximum value before each cut, -inf where there is none
    high: Floats  # (m,) minimum value behind it, or inf


def join_partitions(
    ranges: ShardRanges, found: Iterable[tuple[int, Partitioned]]
) -> tuple[Int64s, Floats, Floats]:
    """Join the results of shards: see `Shards.partition`."""
    middle = ranges.first.copy()
    low, high = np.full(len(middle), -np.inf), np.full(len(middle), np.inf)
    for p, part in found:
        middle[:, p] = part.middle
        np.maximum(low, part.low, out=low)
        np.minimum(high, part.high, out=high)
    return middle, low, high


class RowBlock(NamedTuple):
    """n rows with their codes and statistics."""

    values: NDArray  # (n, d)
    codes: NDArray[np.uint8]  # (n, d); (0, d) where the table is not coded
    rows: Rows  # (n,) each

    @classmethod
    def empty(cls, n: int, like: RowBlock, *, coded: bool) -> RowBlock:
        """Allocate n rows of the widths and types of `like`."""

        def room(array: NDArray, n: int) -> NDArray:
            return np.empty((n, *array.shape[1:]), array.dtype)

        rows: list[Any] = [None if array is None else room(array, n) for array in like.rows]
        return cls(room(like.values, n), room(like.codes, n if coded else 0), Rows(*rows))

    def put(self, places: Int64s, other: RowBlock, rows: NDArray | slice = slice(None)) -> None:
        """Copy `rows` of another block to some places."""
        self.values[places] = other.values[rows]
        if len(self.codes):
            self.codes[places] = other.codes[rows]
        for out, column in zip(self.rows, other.rows, strict=True):
            if out is not None and column is not None:
                out[places] = column[rows]


class HostShard:
    """The rows of `host`, in the order of its entries: a shard that the CPU counts.

    Statistics are those of m nodes, ``begin[j] .. end[j]`` of the order, perhaps empty. They are
    added to `sums`, whose places differ between nodes: threads may have nodes each, and those of
    empty nodes are not touched.
    """

    def __init__(self, host: CpuBackend) -> None:
        self.host = host

    def _source(self, begin: Int64s, end: Int64s) -> IntervalSource:
        return IntervalSource(self.host.table, self.host.rows, self.host.entries, begin, end)

    def count(
        self, sums: Arrays, begin: Int64s, end: Int64s, slots: Int64s, columns: tuple[int, int]
    ) -> None:
        """Add the histogram of node j, of columns first .. last only, to ``sums[0][slots[j]]``."""
        nodes = begin < end
        if nodes.any():
            self.host.count(begin[nodes], end[nodes], sums[0], slots[nodes], columns)

    def node_statistics(self, sums: Arrays, begin: Int64s, end: Int64s) -> None:
        """Add the row statistics of node j to ``sums[0][j]``."""
        nodes = np.flatnonzero(begin < end)
        sums[0][nodes] += self.host.node_statistics(begin[nodes], end[nodes])

    def count_intervals(
        self, sums: Arrays, begin: Int64s, end: Int64s, intervals: RequestedIntervals
    ) -> None:
        """Add rows to the cells of intervals: `sums` are counts, minimum and maximum values."""
        sums = tuple(sums)
        visit_intervals(self.host.task.criterion, self._source(begin, end), intervals, sums, None)

    def count_categories(self, sums: Arrays, begin: Int64s, end: Int64s, column: int) -> None:
        """Add rows to the categories of a column, then missing ones, in ``sums[0][j]``."""
        criterion, channels = self.host.task.criterion, self.host.channels
        count_categories(criterion, self._source(begin, end), column, channels, sums[0])

    def narrow_targets(self, sums: Arrays, begin: Int64s, end: Int64s) -> None:
        """Narrow the interval of a target that all rows of each node may have: lows, highs."""
        narrow_targets(self._source(begin, end), self.host.task.limits.rounded, *sums)

    def gather_intervals(
        self, begin: Int64s, end: Int64s, intervals: RequestedIntervals, most: int
    ) -> IntervalRows:
        """List the rows in intervals; all shards together have `most`."""
        pairs = int(((end - begin) * np.diff(intervals.node_pairs)).sum())
        size = min(most, pairs)
        values = np.empty(size, self.host.table.values.dtype)
        interval, row = np.empty(size, np.int32), np.empty(size, self.host.entries.dtype)
        out = interval, values, row
        n = visit_intervals(
            self.host.task.criterion, self._source(begin, end), intervals, None, out
        )
        arrays: list[Any] = [None if x is None else x[row[:n]] for x in self.host.rows[:3]]
        return IntervalRows(
            interval[:n].copy(), values[:n].copy(), Rows(arrays[0], arrays[1], arrays[2], None)
        )

    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Pairs (2, k) of a node and a category that it has in column ``feature[j]``, ascending."""
        counts, code = self.host.categories(begin, end, feature)
        return np.stack([np.repeat(np.arange(begin.size), counts), code.astype(np.int64)])

    def partition(self, begin: Int64s, end: Int64s, splits: Splits) -> Partitioned:
        """Partition the rows of nodes, stably; the order before is not changed."""
        nodes = np.flatnonzero(begin < end)
        middle, low, high = begin.copy(), np.full(begin.size, -np.inf), np.full(begin.size, np.inf)
        self.host.entries = self.host.entries.copy()
        middle[nodes], low[nodes], high[nodes] = self.host.partition_rows(
            begin[nodes], end[nodes], splits.take(nodes)
        )
        return Partitioned(self.host.entries, middle, low, high)

    def block(self) -> RowBlock:
        """Return all rows in the order of the table."""
        return RowBlock(self.host.table.values, self.host.table.codes, self.host.rows)

    def gather(self, begin: Int64s, end: Int64s, out: RowBlock, places: Int64s) -> None:
        """Copy the rows of nodes, one after another, to some places of `out`."""
        rows = self.host.entries[concatenated_ranges(begin, end - begin)]
        ascending = np.argsort(rows, kind="stable")  # a file is read from front to back
        out.put(places[ascending], self.block(), rows[ascending])
