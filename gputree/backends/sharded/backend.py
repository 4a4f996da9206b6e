"""Grow over shards: shards count, and the coordinator sums and chooses splits.

For columns of more categories than bins, shards report statistics by category, whose size does not
depend on the number of rows. To the coordinator, the categories of a node are then the bins of a
table of one column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Finishing, Larger, Splits, Subtrees, Uint64s
from gputree.backends.binning import thresholds
from gputree.backends.cpu.categories import (
    LeftLists,
    NodeColumns,
    Scratch,
    list_left,
    many_categories,
    new_scratch,
    score_subsets,
)
from gputree.backends.cpu.layout import EntrySource, Nodes, Scores, Table
from gputree.backends.cpu.runs import new_runs
from gputree.backends.sharded import tuning
from gputree.backends.sharded.cells import pure_nodes, record_cuts
from gputree.backends.sharded.histograms import Histograms, Scored
from gputree.backends.sharded.rows import RangeMap, ShardRanges
from gputree.backends.sharded.search import CutSearch, ShardLevel
from gputree.backends.sharded.shards import Finished, Shards, SubtreeRoots, Sum
from gputree.backends.sharded.table import TableSummary
from gputree.base.dtypes import ROW, Bools, Floats, Int32s, Int64s


class ShardedBackend:
    """Primitives of `gputree.backends.base.Backend` over shards, wherever they are counted."""

    def __init__(self, shards: Shards) -> None:
        self.shards, self.name = shards, shards.name
        self.task = shards.summary.task
        self.channels = self.task.channels
        self.ranges = RangeMap(shards.sizes)
        self.finished = Finished()
        self.refined_pairs = self.scanned_pairs = 0

    def report(self) -> dict[str, int]:
        pairs = {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}
        return {**pairs, **self.shards.report()}

    def encode(self, max_bins: int) -> None:
        self.shards.encode(max_bins)
        self.ranges = RangeMap(self.shards.sizes)  # the device's memory may have changed the shards

    @property
    def histogram_cells(self) -> int:
        return self.shards.summary.histogram_cells

    @property
    def histogram_bytes(self) -> int:
        return self.shards.summary.histogram_bytes

    @property
    def uncoded_cells(self) -> int:
        return 0

    @property
    def most_histogram_bytes(self) -> int:
        return self.shards.budget.histograms

    @property
    def finishing(self) -> Finishing:
        columns, most = self.shards.summary.columns, np.iinfo(ROW).max
        return Finishing(tuning.TUNING.rows_per_statistic, columns, most)

    def new_histograms(self, m: int) -> Histograms:
        return self.shards.new_histograms(m)

    def histogram(
        self,
        begin: Int64s,
        end: Int64s,
        out: Histograms,
        slots: Int64s,
        larger: Larger | None = None,
    ) -> None:
        self.shards.count(out, self.ranges.of(begin, end), slots, larger)

    def score(self, histograms: Histograms, slots: Int64s, bounds: Bounds | None = None) -> Scored:
        return histograms.score(slots, bounds)

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Histograms,
        slots: Int64s,
        scores: Scored,
        keys: Uint64s,
        bounds: Bounds | None = None,
    ) -> Splits:
        ranges, scored = self.ranges.of(begin, end), scores.scores
        nodes = np.flatnonzero(self._may_split(scored, ranges))
        few, many = self.shards.summary.categorical()
        for f in many.tolist():
            for j, counts in self._count_categories(nodes, ranges, f):
                score_counted(self.shards.summary, f, counts, scored, j)
        search = CutSearch(self.shards, ShardLevel(histograms, slots, scores, ranges, bounds, keys))
        cuts = search.choose(nodes)
        splits = Splits.none(begin.size)
        table, scoring = self.shards.summary.table, search.scoring._replace(means=None)
        neighbors = scores.seen_missing, scores.next_bin
        record_cuts(scoring, table, nodes, cuts, *neighbors, splits.chosen)
        placed = np.flatnonzero(np.isin(splits.feature, few))
        column = splits.feature[placed].astype(np.int64)
        splits.codes[placed] = histograms.list_left(slots, scored, placed, column)
        for f in many.tolist():
            chosen = np.flatnonzero(splits.feature == f)
            for j, counts in self._count_categories(chosen, ranges, f):
                found = list_counted(self.shards.summary, f, counts, scored, j)
                splits.codes[j] = found
        self.refined_pairs += search.refined_pairs
        self.scanned_pairs += int((end - begin).sum()) * self.shards.summary.columns
        return splits

    def _may_split(self, scores: Scores, ranges: ShardRanges) -> Bools:
        """Return the nodes that are not pure, by their sums and targets."""
        m = len(scores.total)
        pure = np.empty(m, np.bool_)
        pure_nodes(self.task.criterion, scores.total, pure)
        if self.task.rows.square is None:
            return ~pure
        low, high = Sum(np.full(m, -np.inf), "maximum"), Sum(np.full(m, np.inf), "minimum")
        self.shards.sum("narrow_targets", [low, high], ranges)
        return ~pure & (low.array > high.array)

    def _count_categories(self, nodes: Int64s, ranges: ShardRanges, f: int) -> Any:
        """Statistics (categories and missing, channels) of column f in each of some nodes."""
        cells = int(self.shards.summary.table.categories[f]) + 1
        batch_size = max(self.shards.budget.category_bytes // (8 * cells * self.channels), 1)
        for first in range(0, nodes.size, batch_size):
            some = nodes[first : first + batch_size]
            counts = np.zeros((some.size, cells * self.channels), np.int64)
            self.shards.sum("count_categories", [Sum(counts)], ranges.take(some), f)
            for j, found in zip(some.tolist(), counts, strict=True):
                yield j, found.reshape(cells, self.channels)

    def partition(self, begin: Int64s, end: Int64s, splits: Splits) -> tuple[Int64s, Floats]:
        middle, low, high = self.shards.partition(self.ranges.of(begin, end), splits)
        table = self.shards.summary.table
        cuts = thresholds(splits, low, high, table.by_code, table.highest, table.lowest)
        return self.ranges.split(begin, end, middle), cuts

    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: Uint64s, bounds: Bounds | None = None
    ) -> Subtrees:
        nodes = SubtreeRoots(self.ranges.of(begin, end), begin, depth, keys, bounds)
        groups: list[Subtrees] = []
        for subtrees, finished in self.shards.subtrees(nodes):
            groups.append(subtrees)
            self.finished.take(finished)
        return Subtrees.join(groups)

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        finished, out = self.finished.statistics(begin, end, self.task.statistics)
        open_ = ~finished
        sums = Sum(np.zeros((int(open_.sum()), self.task.statistics), np.int64))
        ranges = self.ranges.of(begin[open_], end[open_])
        self.shards.sum("node_statistics", [sums], ranges)
        out[open_] = sums.array
        return out

    def categories(
        self, begin: Int64s, end: Int64s, feature: Int32s
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        nodes = list(zip(begin.tolist(), end.tolist(), strict=True))
        found = [self.finished.categories(*node) for node in nodes]
        open_ = np.flatnonzero([codes is None for codes in found])
        ranges = self.ranges.of(begin[open_], end[open_])
        pairs = join_pairs(
            [
                np.empty((2, 0), np.int64),
                *self.shards.collect("categories", ranges, feature[open_], join=join_pairs),
            ]
        )
        bounds = np.searchsorted(pairs[0], np.arange(open_.size + 1))
        for j, a, b in zip(open_, bounds, bounds[1:], strict=False):
            found[j] = pairs[1, a:b].astype(np.uint32)
        listed = [codes for codes in found if codes is not None]
        counts = np.array([codes.size for codes in listed], np.int64)
        return counts, np.concatenate([np.empty(0, np.uint32), *listed])


def join_pairs(found: list[Int64s]) -> Int64s:
    """Join (node, category) pairs, (2, k), of some shards: ascending, each once."""
    return np.unique(np.concatenate(found, axis=1), axis=1)


def score_counted(summary: TableSummary, f: int, counts: NDArray, scores: Scores, j: int) -> None:
    """Set the scores of node j in column f to the scores of the best subset."""
    codes = _present(counts)
    if codes.size == 0:
        return
    found = _of_column(scores, j, f)
    score_subsets(*_search(summary, counts, codes, found))
    for whole, part in zip(scores[1:], found[1:], strict=True):
        whole[j, f] = part[0, 0]


def list_counted(
    summary: TableSummary, f: int, counts: NDArray, scores: Scores, j: int
) -> NDArray[np.uint32]:
    """Categories of column f that go left in node j."""
    categories = _present(counts)
    left = LeftLists(np.empty(1, np.int64), np.empty(categories.size, np.uint32))
    list_left(*_search(summary, counts, categories, _of_column(scores, j, f)), left)
    return categories[left.codes[: left.counts[0]]].astype(np.uint32)


def _of_column(scores: Scores, j: int, f: int) -> Scores:
    """Copy the scores of column f of node j to a table of one node and column."""
    one: list[Any] = [field[j : j + 1, f : f + 1].copy() for field in scores[1:]]
    return Scores(scores.total[j : j + 1], *one)


def _search(
    summary: TableSummary, counts: NDArray, categories: Int64s, scores: Scores
) -> tuple[Any, ...]:
    """Arguments of the kernels of subsets: one node of a table of one column."""
    host, zero = summary.on_cpu(), np.zeros(1, np.int64)
    table, cells = _table(summary, counts, categories)
    return (
        host.subset_rules,
        EntrySource(table, host.rows, host.entries),
        many_categories(table, 1),
        Nodes(zero, zero, cells, zero),
        scores,
        NodeColumns(zero, zero),
        0,
        1,
        _scratch(summary, categories.size),
    )


def _present(counts: NDArray) -> Int64s:
    """Categories that rows of a node have, ascending."""
    return np.flatnonzero(counts[:-1].any(axis=1))


def _table(summary: TableSummary, counts: NDArray, categories: Int64s) -> tuple[Table, NDArray]:
    """Make a table with some categories of a column as bins, and the histogram of a node."""
    bins = categories.size + 1  # with that of missing values
    table = summary.table._replace(
        offset=np.array([0, bins]),
        missing=np.ones(1, np.bool_),
        single=np.ones(bins, np.bool_),
        by_code=np.ones(1, np.bool_),
        categories=np.array([categories.size]),
    )
    cells = counts[np.append(categories, -1)].reshape(1, -1)
    return table, cells.astype(summary.cell_dtype)


def _scratch(summary: TableSummary, count: int) -> Scratch:
    scratch = new_scratch(summary.table, summary.task, 1, sorted_=False)
    assert scratch is not None
    size = count + 2
    return scratch._replace(runs=new_runs(size, size * max(summary.task.n_classes, 3)))
