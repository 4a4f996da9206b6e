"""A shard: some rows of a coded table, and the statistics of nodes that it reports.

A node is a range of the shard's order. The CPU and a CUDA device report the same.

Rows of nodes in intervals are counted and listed, an interval being inside one bin. Values are read
only in bins with intervals:

    bins of a column   |   |xxx|   |   |xxx|         x: bins that have intervals, found by codes
    values of these        ---    ---                intervals, found by keys of values

Keys are integers that increase with the values, so that ranges of values are ranges of integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Rows, Splits
from gputree.backends.binning import MAX_BINS, Bins
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.cut import count_row, narrow
from gputree.backends.cpu.layout import Table
from gputree.backends.sharded.rows import ShardRanges
from gputree.base.dtypes import Floats, Int32s, Int64s
from gputree.compilation import PREFETCH_ROWS, borrowing, jitable, kernel, pick, prefetch
from gputree.tree.branches import concatenated_ranges

Keys = NDArray[np.uint64]

# Bits of a float64 that are zero in values of float32.
FLOAT32_SHIFT = 29


@jitable
def key_of(x):
    """Bits of a float64 as an integer that increases with it: negative numbers are inverted."""
    bits = np.float64(np.float64(x) + 0.0).view(np.int64)  # -0.0 and 0.0 are one value
    flipped = bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(flipped).view(np.uint64) ^ np.uint64(0x8000000000000000)


@kernel
def _fill_keys(values, shift, keys):
    for i in range(values.size):
        keys[i] = key_of(values[i]) >> np.uint64(shift)


def keys_of(values: NDArray, shift: int) -> Keys:
    """Keys of values without their last `shift` bits, which are all zero."""
    keys = np.empty(values.shape, np.uint64)
    _fill_keys(values.ravel(), shift, keys.reshape(-1))
    return keys


class BinKeys(NamedTuple):
    """Keys of the values in the bins of d columns."""

    low: Keys  # (d, 256)
    high: Keys  # (d, 256), included
    shift: int  # number of low bits dropped

    @classmethod
    def of(cls, bins: Bins, lowest: NDArray, highest: NDArray) -> BinKeys:
        """Compute keys from bins; no value of a column is beyond its `lowest` and `highest`."""
        d = bins.count.size
        shift = FLOAT32_SHIFT if bins.edge.dtype == np.float32 else 0
        edges = keys_of(bins.edge[:, : MAX_BINS - 1].copy(), shift)
        low, high = np.zeros((d, MAX_BINS), np.uint64), np.zeros((d, MAX_BINS), np.uint64)
        low[:, 1:], high[:, :-1] = edges + np.uint64(1), edges
        low[:, 0] = keys_of(lowest, shift)
        high[np.arange(d), bins.count - 1] = keys_of(highest, shift)
        return cls(low, high, shift)


# Rows of a node that are counted together, column by column: their codes stay in a cache.
BLOCK_ROWS = 1 << 13


class IntervalSource(NamedTuple):
    """Rows of m nodes: ``entries[begin[j]] .. entries[end[j]]`` of a table."""

    table: Table
    rows: Rows
    entries: Int32s
    begin: Int64s
    end: Int64s


class RequestedIntervals(NamedTuple):
    """Intervals whose rows shards count or list.

    Pairs ``node_pairs[j] .. node_pairs[j + 1]`` are columns of node j, and pair p has the intervals
    ``pair_intervals[p] .. pair_intervals[p + 1]``.
    """

    key_shift: int
    node_pairs: Int64s
    column: Int64s
    pair_intervals: Int64s
    low: Keys
    high: Keys
    shift: Keys  # right shift from keys to cells
    first: Int64s  # cells
    bins: Int32s  # (pairs, bins + 1): first interval of each bin


class IntervalRows(NamedTuple):
    """Rows in intervals: interval, value, statistics."""

    interval: Int32s
    value: NDArray
    rows: Rows


@borrowing
def rows_in_bins(source, intervals, start, stop, p, is_first, found):
    """Collect rows among entries ``start .. stop`` in bins with intervals of pair p; how many.

    Without a branch; the first column of a node loads the cache lines with the codes of the others.
    """
    table, entries, bins = source.table, source.entries, intervals.bins
    f, final, n = np.uintp(intervals.column[p]), stop - 1, np.uintp(0)
    for i in range(start, stop):
        if is_first:
            prefetch(table.codes, entries[min(i + PREFETCH_ROWS, final)], f)
        row = entries[i]
        code = np.uintp(table.codes[row, f])
        found[n] = row
        n += np.uintp(bins[p, code + np.uintp(1)] > bins[p, code])
    for i in range(n):
        prefetch(table.values, found[i], f)
    return n


@borrowing
def interval_of(intervals, p, code, key):
    """The interval of pair p that contains a key, whose value is in bin `code`; or -1."""
    first, last = np.int64(intervals.bins[p, code]), np.int64(intervals.bins[p, code + 1])
    if key < intervals.low[first]:
        return -1
    while last - first > 1:  # the last interval that begins at the key or before
        middle = (first + last) // 2
        if intervals.low[middle] <= key:
            first = middle
        else:
            last = middle
    return first if key <= intervals.high[first] else -1


@borrowing
def count_rows(criterion, source, intervals, p, found, n, counts, lowest, highest):
    """Add rows ``found[:n]`` to the cells of pair p."""
    table, rows, f = source.table, source.rows, intervals.column[p]
    channels = counts.size // lowest.size
    for i in range(n):
        row = found[i]
        x = np.float64(table.values[row, f])
        key = key_of(x) >> np.uint64(intervals.key_shift)
        a = interval_of(intervals, p, table.codes[row, f], key)
        if a < 0:
            continue
        c = intervals.first[a] + np.int64((key - intervals.low[a]) >> intervals.shift[a])
        count_row(criterion, rows, row, counts, c * channels, channels)
        lowest[c] = min(lowest[c], x)
        highest[c] = max(highest[c], x)


@borrowing
def list_rows(source, intervals, p, found, n, used, out):
    """List the rows of ``found[:n]`` that are in intervals of pair p, from place `used` on.

    `out` are arrays of intervals, values and rows. Returns the number of places used so far.
    """
    table, f = source.table, intervals.column[p]
    interval, values, row_of = out
    for i in range(n):
        row = found[i]
        x = table.values[row, f]
        a = interval_of(
            intervals, p, table.codes[row, f], key_of(x) >> np.uint64(intervals.key_shift)
        )
        if a >= 0:
            interval[used], values[used], row_of[used] = a, x, row
            used += 1
    return used


@kernel
def visit_intervals(criterion, source, intervals, sums, out):
    """Add the rows of nodes in intervals to sums of cells, or list them; returns the number listed.

    `sums` are counts, minimum and maximum values, or None; `out` is as for `list_rows`, or None.
    """
    used = np.int64(0)
    found = np.empty(BLOCK_ROWS + 1, source.entries.dtype)
    for j in range(source.begin.size):
        first, last = intervals.node_pairs[j], intervals.node_pairs[j + 1]
        if first == last:
            continue
        for start in range(source.begin[j], source.end[j], BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, source.end[j])
            for p in range(first, last):
                n = rows_in_bins(source, intervals, start, stop, p, p == first, found)
                if sums is not None:
                    count_rows(criterion, source, intervals, p, found, n, *sums)
                if out is not None:
                    used = list_rows(source, intervals, p, found, n, used, out)
    return used


@kernel
def count_categories(criterion, source, f, channels, counts):
    """Add the rows of node j to the cells of their categories in ``counts[j]``, missing last."""
    table, rows, entries = source.table, source.rows, source.entries
    for j in range(source.begin.size):
        cells = counts[j]
        for i in range(source.begin[j], source.end[j]):
            row = entries[i]
            prefetch(table.values, entries[min(i + PREFETCH_ROWS, source.end[j] - 1)], f)
            x = table.values[row, f]
            c = np.int64(x) if x == x else np.int64(cells.size // channels - 1)
            count_row(criterion, rows, row, cells, c * channels, channels)


@kernel
def narrow_targets(source, rounded, lows, highs):
    """Narrow the interval of a target that all rows of each node may have, as `narrow` does."""
    rows, entries = source.rows, source.entries
    for j in range(source.begin.size):
        if source.begin[j] == source.end[j]:  # its rows may be another thread's
            continue
        low, high = -np.inf, np.inf
        for i in range(source.begin[j], source.end[j]):
            row = entries[i]
            low, high = narrow((low, high), rows.target[row], pick(rows.weight, row, 1), rounded)
            if low > high:
                break
        lows[j] = max(lows[j], low)
        highs[j] = min(highs[j], high)


Arrays = Sequence[NDArray[Any]]


class Partitioned(NamedTuple):
    """The order of a shard's rows with m nodes partitioned."""

    entries: Int32s
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

    def categories(self, begin: Int64s, end: Int64s, feature: Int32s) -> Int64s:
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
