"""Exact cuts of all nodes of a level at once: only counts of cells, or few rows, leave the shards.

    round     intervals of all nodes are counted into cells; the best cuts are compared with those
              between cells; cells that may contain a better cut are the next intervals
    last      where the rows of all intervals are few, they are gathered and sorted instead

A pass over rows is expensive, so each round serves all nodes, columns and bins. The choice of
intervals, cells and rounds does not change a cut: all that may be best are compared, by one order
(`gputree.backends.cpu.cut.precedes`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Rows, Uint64s
from gputree.backends.cpu.cut import drawn_columns
from gputree.backends.sharded import tuning
from gputree.backends.sharded.cells import (
    Cells,
    Cuts,
    Intervals,
    Scoring,
    candidate_cells,
    compare_boundaries,
    merge_cuts,
    place_rows,
    scan_intervals,
    score_cells,
)
from gputree.backends.sharded.histograms import Histograms, Scored
from gputree.backends.sharded.rows import ShardRanges
from gputree.backends.sharded.shard import IntervalRows, Keys, RequestedIntervals, keys_of
from gputree.backends.sharded.shards import Shards, Sum
from gputree.base.dtypes import Bools, Int64s
from gputree.base.threads import cut as cut_spans
from gputree.base.threads import run

# Bytes of a gathered row in addition to its value: interval, statistics, and two places.
ROW_BYTES = 4 + 3 * 8 + 2 * 8


class ShardLevel(NamedTuple):
    """The m nodes of a search."""

    histograms: Histograms
    slots: Int64s
    scored: Scored
    ranges: ShardRanges
    bounds: Bounds | None
    keys: Uint64s  # of nodes, for the columns that are drawn


class CutSearch:
    """Search of the cuts of the nodes of a level, over coded shards."""

    def __init__(self, shards: Shards, level: ShardLevel) -> None:
        assert shards.summary.keys is not None
        self.shards, self.level = shards, level
        self.summary, self.keys = shards.summary, shards.summary.keys
        self.budget = shards.budget
        task, self.scores = self.summary.task, level.scored.scores
        self.scoring = Scoring(
            task.criterion, task.limits, self.summary.weighted, level.bounds, self.scores.total,
            level.keys,
        )  # fmt: skip
        self.cuts = Cuts.none(level.slots.size)
        self.refined_pairs = 0  # (row, column) pairs counted into cells, in all rounds, or sorted

    def choose(self, nodes: Int64s) -> Cuts:
        """Best cuts of some nodes: over all columns, or over those drawn for each.

        Like `gputree.backends.cpu.refine.choose_cut`: columns beyond `max_features` are visited one
        by one until some cut is admissible.
        """
        task, d = self.summary.task, self.summary.columns
        most = task.limits.max_features
        allowed = self._allowed()
        if not allowed.all():  # NaN reaches nothing: -inf would where no boundary is admitted
            self.scores.best[~allowed], self.scores.bound[~allowed] = -np.inf, np.nan
        orders = {int(j): drawn_columns(most, self.level.keys[j], allowed[j]) for j in nodes}
        done = 0
        while done < d and orders:
            upto = min(max(most, done + 1), d)
            open_ = np.array(list(orders), np.int64)
            columns = np.concatenate([order[done:upto] for order in orders.values()])
            first = np.arange(open_.size + 1) * (upto - done)
            compare_boundaries(self.scoring, open_, columns, first, self.scores, self.cuts)
            if task.exact:
                self._look_inside(open_, columns.reshape(open_.size, -1))
            done = upto
            orders = {j: order for j, order in orders.items() if self.cuts.score[j] == -np.inf}
        return self.cuts

    def _allowed(self) -> Bools:
        """The columns that may split each node, shape (m, d)."""
        d, bounds = self.summary.columns, self.level.bounds
        interactions = self.summary.task.interactions
        if interactions is None or bounds is None:
            return np.ones((self.level.slots.size, d), np.bool_)
        return interactions.mask(bounds.columns, d)

    def _look_inside(self, nodes: Int64s, columns: Int64s) -> None:
        """Compare cuts with the best inside bins of some columns, and keep the better ones.

        Nodes are processed in groups by an estimate of the bins listed: those of columns that may
        contain a better cut.
        """
        reach = self.scores.bound[nodes[:, None], columns] >= self.cuts.score[nodes][:, None]
        bins = (np.diff(self.summary.table.offset)[columns] * reach).sum(axis=1)
        for group in _groups(bins * self._interval_bytes, self.budget.listed_bytes):
            for some in self._in_order(nodes[group], columns[group]):
                self._refine(self._candidates(nodes[group], some))

    def _in_order(self, nodes: Int64s, columns: Int64s) -> Iterator[Int64s]:
        """Iterate over groups of columns of nodes, searched one after another.

        The column of the highest bound goes first, since it raises the best score for the others:
        that costs rounds, and saves rows.
        """
        if not self.budget.one_first or columns.shape[1] == 1:
            yield columns
            return
        order = np.argsort(-self.scores.bound[nodes[:, None], columns], axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        yield columns[:, :1]
        yield columns[:, 1:]

    def _candidates(self, nodes: Int64s, columns: Int64s) -> Intervals:
        """Bins of some columns of each of some nodes that may contain a better cut."""
        found = self.level.histograms.candidates(
            self.level.slots[nodes],
            self.scoring._replace(totals=self.scores.total[nodes], keys=self.level.keys[nodes]),
            self.cuts.score[nodes],
            self.scores.bound[nodes],
            columns,
        )
        low, high = (keys[found.column, found.bin] for keys in self.keys[:2])
        return Intervals(nodes[found.node], found.column, found.bin, low, high, *found[3:])

    def _refine(self, intervals: Intervals) -> None:
        """Compare cuts with the best inside intervals, and keep the better ones."""
        while intervals.node.size:
            pairs = int(intervals.rows.sum())
            self.refined_pairs += pairs
            if pairs <= self._most_gathered(intervals):
                self._gather(intervals)
                return
            shift, cells = _cells(intervals, self._bits(intervals.rows))
            found: list[Intervals] = []
            for group in _groups(cells * self._cell_bytes, self.budget.round_bytes):
                found.append(self._count(intervals.take(group), shift[group], cells[group]))
                most = self.budget.listed_bytes // self._interval_bytes
                if sum(some.node.size for some in found) > most:  # more than a round may keep
                    self._refine(Intervals.join(found))
                    found = []
            intervals = Intervals.join(found) if found else intervals.take(slice(0))

    @property
    def _cell_bytes(self) -> int:
        return 8 * (self.summary.task.channels + 2)

    @property
    def _interval_bytes(self) -> int:
        return 8 * (2 * self.summary.task.channels + 6)

    def _bits(self, rows: Int64s) -> Int64s:
        """Binary logarithms of the numbers of cells of intervals, which fit the memory together."""
        tuned = tuning.TUNING
        bits = np.log2(np.maximum(rows / tuned.cell_rows, 1)).astype(np.int64)
        bits = bits.clip(tuned.least_bits, tuned.most_bits)
        while (bits > tuned.least_bits).any() and (
            1 << bits
        ).sum() * self._cell_bytes > self.budget.round_bytes:
            bits = np.maximum(bits - 1, tuned.least_bits)
        return bits

    def _count(self, intervals: Intervals, shift: Keys, sizes: Int64s) -> Intervals:
        """Count intervals into cells; returns the cells that are the next intervals."""
        channels = self.summary.task.channels
        first = np.append(0, np.cumsum(sizes))
        n = int(first[-1])
        counts = Sum(np.zeros(n * channels, np.int64))
        lowest, highest = Sum(np.full(n, np.inf), "minimum"), Sum(np.full(n, -np.inf), "maximum")
        nodes, requested = self._asked(intervals, shift, first)
        self.shards.sum(
            "count_intervals", [counts, lowest, highest], self.level.ranges.take(nodes), requested
        )
        cells = Cells(first, counts.array, lowest.array, highest.array)
        self._compare(score_cells, intervals, sizes, cells)
        rows, left = np.zeros(n, np.int64), np.empty((n, channels), np.int64)
        given = self.scoring, intervals, cells, self.cuts.score, rows, left
        spans = self._spans(sizes)
        run(self.summary.n_threads, lambda a, b: candidate_cells(*given, a, b), spans)
        kept = np.flatnonzero(rows)
        owner = np.searchsorted(first, kept, side="right") - 1
        low, high = (keys_of(end[kept], self.keys.shift) for end in (cells.lowest, cells.highest))
        node, column, b = (field[owner] for field in intervals[:3])
        return Intervals(
            node, column, b, low, high, rows[kept], left[kept], intervals.missing[owner]
        )

    def _asked(
        self, intervals: Intervals, shift: Keys, first: Int64s
    ) -> tuple[Int64s, RequestedIntervals]:
        """Return the nodes of intervals, and the arrays that shards need to count them."""
        is_first = _begins_pair(intervals)
        pair = np.flatnonzero(is_first)
        nodes = np.unique(intervals.node)
        node_pairs = np.append(np.searchsorted(intervals.node[pair], nodes), pair.size)
        width = int(np.diff(self.summary.table.offset).max()) + 1
        place = (np.cumsum(is_first) - 1) * width + intervals.bin + 1
        bins = np.cumsum(np.bincount(place, minlength=pair.size * width)).astype(np.int32)
        return nodes, RequestedIntervals(
            self.keys.shift, node_pairs, intervals.column[pair],
            np.append(pair, intervals.node.size), intervals.low, intervals.high, shift, first,
            bins.reshape(-1, width),
        )  # fmt: skip

    def _spans(self, sizes: Int64s) -> list[tuple[int, int]]:
        """Spans of intervals for threads, of similar total sizes."""
        threads = self.summary.n_threads
        return cut_spans(sizes, 4 * threads if threads > 1 else 1)

    def _compare(
        self, kernel: Callable[..., Any], intervals: Intervals, sizes: Int64s, *given: Any
    ) -> None:
        """Compare the best cuts with cuts that a kernel finds in intervals."""
        spans = self._spans(sizes)
        found = [self.cuts.copy() for _ in spans]
        work = [
            (self.scoring, intervals, *given, cuts, a, b)
            for (a, b), cuts in zip(spans, found, strict=True)
        ]
        run(self.summary.n_threads, kernel, work)
        for cuts in found:
            merge_cuts(self.cuts, cuts)

    def _most_gathered(self, intervals: Intervals) -> int:
        """Maximum number of rows in intervals that are gathered: limited by memory and by cost."""
        size = self.summary.table.values.dtype.itemsize + ROW_BYTES
        is_first = _begins_pair(intervals)
        passed = int(self.level.ranges.rows.sum(axis=1)[intervals.node[is_first]].sum())
        return min(self.budget.sorted_bytes // size, int(tuning.TUNING.sorted_share * passed))

    def _gather(self, intervals: Intervals) -> None:
        """Compare cuts with the best between the rows of intervals, and keep the better ones."""
        first = np.append(0, np.cumsum(intervals.rows))
        shift = np.zeros(intervals.node.size, np.uint64)
        nodes, requested = self._asked(intervals, shift, first)
        found: list[IntervalRows] = self.shards.collect(
            "gather_intervals", self.level.ranges.take(nodes), requested, int(first[-1])
        )
        values = np.empty(int(first[-1]), self.summary.table.values.dtype)
        items, next_ = np.empty(values.size, np.int64), first.copy()
        used = 0
        for listed in found:
            place_rows(listed, used, next_, values, items)
            used += listed.value.size
        rows: list[Any] = [
            _joined(field) for field in zip(*(gathered.rows for gathered in found), strict=True)
        ]
        self._compare(scan_intervals, intervals, intervals.rows, Rows(*rows), first, values, items)


def _begins_pair(intervals: Intervals) -> Bools:
    """Mark the first interval of each node and column."""
    node, column = (np.diff(field, prepend=-1) != 0 for field in intervals[:2])
    return node | column


def _groups(sizes: Int64s, most: int) -> Iterator[slice]:
    """Consecutive groups of items whose sizes add up to about `most`, or of one item."""
    group = np.cumsum(sizes) // most
    ends = np.append(np.flatnonzero(np.diff(group)) + 1, sizes.size)
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield slice(begin, end)


def _joined(columns: tuple[NDArray | None, ...]) -> NDArray | None:
    """Concatenate one column of statistics of the rows of all shards."""
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None


def _cells(intervals: Intervals, bits: Int64s) -> tuple[Keys, Int64s]:
    """Right shift of keys in each interval, and the number of cells that result."""
    span = intervals.high - intervals.low
    length = np.frexp(span.astype(np.float64))[1]  # one more where it is rounded up
    shift = np.maximum(length - bits, 0).astype(np.uint64)
    return shift, (span >> shift).astype(np.int64) + 1
