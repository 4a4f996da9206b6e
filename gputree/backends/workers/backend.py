"""The backend of a table whose parts lie on workers: they count, the client decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Larger, Splits, Subtrees, Task
from gputree.backends.binning import Bins
from gputree.backends.cpu.backend import CpuBackend, Scores
from gputree.backends.cpu.layout import Chosen, Table
from gputree.backends.cpu.refine import pure_nodes, put_cut_of
from gputree.backends.cpu.table import CpuTable
from gputree.backends.partitioned.backend import PartitionedBackend
from gputree.backends.partitioned.finish import Finished, split_pairs
from gputree.backends.partitioned.ranges import Ranges
from gputree.backends.partitioned.reduction import Sum
from gputree.backends.workers import subsets, tuning
from gputree.backends.workers.coding import Layout, bin_keys, code, empty_table, fit_all
from gputree.backends.workers.counters import Counter
from gputree.backends.workers.finish import finish_groups
from gputree.backends.workers.parts import Part, WorkerParts
from gputree.backends.workers.refine import BinKeys, Cuts, CutSearch
from gputree.backends.workers.rows import Read
from gputree.backends.workers.shards import Scored, ShardedHistograms
from gputree.backends.workers.tasks import Tasks
from gputree.backends.workers.units import Rounding, in_units
from gputree.fixed_point import Weights

# 32-bit counters hold so many rows.
MOST_COUNTED = 2**32 - 1


class WorkersBackend(PartitionedBackend):
    """Primitives of `gputree.backends.base.Backend` over parts on workers.

    Parameters
    ----------
    parts : WorkerParts
    head : CpuBackend
        Over a coded table without rows: what all parts share.
    keys : BinKeys

    Attributes
    ----------
    round_bytes, category_bytes : int
        Counts of cells, and of categories, that are asked for at once.
    """

    def __init__(self, parts: WorkerParts, head: CpuBackend, keys: BinKeys) -> None:
        self.round_bytes = tuning.TUNING.round_bytes
        self.category_bytes = tuning.TUNING.category_bytes
        self.remote, self.head, self.keys = parts, head, keys
        self.reducer = parts
        self.task, self.n_threads = head.task, head.n_threads
        self.channels = head.task.channels
        self.ranges = Ranges(parts.sizes)
        self.finished = Finished()
        self.refined_pairs = 0
        self.scanned_pairs = 0

    def report(self) -> dict[str, int]:
        """As elsewhere, and the bytes of arrays that have come to the client."""
        return {**super().report(), "received_bytes": self.remote.tasks.received}

    def encode(self, max_bins: int) -> None:
        """Do nothing: parts are coded where they are made."""

    # ------------------------------------------------------- histograms
    @property
    def most_histogram_bytes(self) -> int:
        own = tuning.TUNING
        level = own.level_bytes_per_worker * self.remote.tasks.workers
        return max(min(level, own.most_level_bytes), self.histogram_bytes)

    def new_histograms(self, m: int) -> ShardedHistograms:
        few = self.remote.sizes.sum() <= MOST_COUNTED
        dtype = self.head.new_histograms(0).dtype if few else np.dtype(np.int64)
        return ShardedHistograms(self.remote, self.head, dtype, m)

    def histogram(
        self,
        begin: Int64s,
        end: Int64s,
        out: ShardedHistograms,
        slots: Int64s,
        larger: Larger | None = None,
    ) -> None:
        out.fill(*self.ranges.of(begin, end), slots, larger)

    # ----------------------------------------------------------- splits
    def score(
        self, histograms: ShardedHistograms, slots: Int64s, bounds: Bounds | None = None
    ) -> Scored:
        return histograms.score(slots, bounds)

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: ShardedHistograms,
        slots: Int64s,
        scores: Scored,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Splits:
        scored, ranges = scores, self.ranges.of(begin, end)
        open_ = self._may_split(scored.scores, ranges)
        few, many = self._nominal()
        for f in many.tolist():
            for j, counts in self._count_categories(np.flatnonzero(open_), ranges, f):
                subsets.score_counted(self.head, f, counts, scored.scores, j)
        search = CutSearch(
            self.head, self.keys, self.reducer, histograms, slots, scored.scores, ranges, bounds,
            self.round_bytes,
        )  # fmt: skip
        splits = self._splits(search.choose(open_, keys), scored, np.flatnonzero(open_))
        own = np.flatnonzero(np.isin(splits.feature, few))
        column = splits.feature[own].astype(np.int64)
        splits.codes[own] = histograms.list_left(slots, scored.scores, own, column)
        self._list_counted(scored.scores, splits, ranges, many)
        self.refined_pairs += search.counted_pairs
        self.scanned_pairs += int((end - begin).sum()) * self.head.table.missing.size
        return splits

    def _splits(self, cuts: Cuts, scored: Scored, nodes: Int64s) -> Splits:
        """The splits of some nodes by their cuts, but for categories that go left."""
        splits = Splits.none(len(scored.scores.total))
        chosen, task = Chosen(*splits[:-1]), self.task
        for j in nodes.tolist():
            cut = cuts.of(j)
            f, at_end = cut[1], cut[4]
            put_cut_of(
                task.criterion, self.head.table, task.limits, scored.scores.total[j], cut,
                bool(scored.seen_missing[j, f]), int(scored.next_bin[j, f]) if at_end else -1, j,
                chosen,
            )  # fmt: skip
        return splits

    def _nominal(self) -> tuple[Int64s, Int64s]:
        """Nominal columns whose categories are bins, and those of more categories."""
        nominal = np.flatnonzero(self.head.table.categories)
        by_code = self.head.table.by_code[nominal]
        return nominal[by_code], nominal[~by_code]

    def _may_split(self, scores: Scores, ranges: tuple[NDArray, NDArray]) -> NDArray[np.bool_]:
        """Nodes that are not pure, as far as their sums and targets tell."""
        m = len(scores.total)
        pure = np.empty(m, np.bool_)
        pure_nodes(self.task.criterion, scores.total, pure)
        if self.task.square is None:
            return ~pure
        low, high = Sum(np.full(m, -np.inf), "maximum"), Sum(np.full(m, np.inf), "minimum")
        self.reducer.map_reduce(count_targets, [low, high], *ranges)
        return ~pure & (low.array > high.array)

    # ------------------------------------ columns of more categories than bins
    def _count_categories(self, nodes: Int64s, ranges: tuple[NDArray, NDArray], f: int) -> Any:
        """Statistics (categories and missing, channels) of column f in each of some nodes."""
        cells = int(self.head.table.categories[f]) + 1
        room = max(self.category_bytes // (8 * cells * self.channels), 1)
        for at in range(0, nodes.size, room):
            own = nodes[at : at + room]
            counts = np.zeros((own.size, cells * self.channels), np.int64)
            first, last = ranges[0][own], ranges[1][own]
            self.reducer.map_reduce(subsets.count_column, [Sum(counts)], first, last, f)
            for j, found in zip(own.tolist(), counts, strict=True):
                yield j, found.reshape(cells, self.channels)

    def _list_counted(
        self, scores: Scores, splits: Splits, ranges: tuple[NDArray, NDArray], many: Int64s
    ) -> None:
        """Give splits of columns of more categories than bins the categories that go left."""
        for f in many.tolist():
            chosen = np.flatnonzero(splits.feature == f)
            for j, counts in self._count_categories(chosen, ranges, f):
                splits.codes[j] = subsets.list_counted(self.head, f, counts, scores, j)

    def _partition(
        self, first: NDArray, last: NDArray, splits: Splits
    ) -> tuple[NDArray, NDArray[np.float64], NDArray[np.float64]]:
        return self.remote.partition(first, last, splits)

    # --------------------------------------------------------- subtrees
    def _subtrees(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None,
    ) -> Iterator[Subtrees]:
        ranges = self.ranges.of(begin, end)
        for subtrees, finished in finish_groups(
            self.remote, self.head, ranges, begin, end, depth, keys, bounds
        ):
            self.finished.take(finished)
            yield subtrees

    def _categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> list[NDArray[np.uint32]]:
        ranges = self.ranges.of(begin, end)
        pairs = self.remote.map_combine(list_pairs, join_pairs, *ranges, feature)
        pairs = np.empty((2, 0), np.int64) if pairs is None else pairs
        return split_pairs(pairs, begin.size)


def count_targets(part: Counter, sums: list[NDArray], first: Int64s, last: Int64s) -> None:
    """Narrow where one target for all rows of each node may lie."""
    part.narrow_targets(first, last, *sums)


def list_pairs(
    part: Counter, first: Int64s, last: Int64s, feature: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Nodes, and categories of a column that they hold, of shape (2, k), ascending."""
    counts, code = part.categories(first, last, feature)
    return np.stack([np.repeat(np.arange(first.size), counts), code.astype(np.int64)])


def join_pairs(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The same of some parts."""
    return np.unique(np.concatenate(found, axis=1), axis=1)


# ----------------------------------------------------------------------- from rows
# Weights and their rounding, the criterion of regression or None, the ends of targets.
Statistics = tuple[Weights, Rounding, str | None, tuple[float, float]]


def spread(
    tasks: Tasks,
    rows: list[Any],
    layout: Layout,
    how: Statistics,
    task: Task,
    n_threads: int,
    choose: Callable[[], str],
) -> WorkersBackend:
    """The backend of rows on workers, which are coded there.

    Parameters
    ----------
    tasks : Tasks
    rows : list of futures of Read
    layout : Layout
    how : Statistics
    task : Task
        Without rows.
    n_threads : int
        Of the client; a task has one.
    choose : callable
        The device that a worker counts on, "cpu" or "cuda"; it is called there.
    """
    given = tasks.share(layout)
    bins = fit_all(tasks, rows, given)
    table = empty_table(bins, layout)
    own, shared = (_head(table, layout, task, threads) for threads in (n_threads, 1))
    shared_bins, shared_how = tasks.share(bins), tasks.share(how)
    parts = tasks.each(make_part, rows, shared_bins, given, shared_how)
    sizes = np.array(tasks.fetch(tasks.each(count_rows, rows)), np.int64)
    remote = WorkerParts(tasks, tasks.share(shared), choose, parts, sizes)
    keys = bin_keys(bins, layout.low, layout.high, layout.dtype)
    return WorkersBackend(remote, own, keys)


def _head(table: Table, layout: Layout, task: Task, n_threads: int) -> CpuBackend:
    """What parts share, for so many threads."""
    bare = CpuTable(table.values, layout.missing, layout.categories)
    head = CpuBackend(bare, task, n_threads, np.empty(0, np.int64))
    head.table = table
    return head


def make_part(own: Read, bins: Bins, layout: Layout, how: Statistics) -> Part:
    """The rows of a partition, coded, with their statistics in units."""
    return Part(code(own, bins, layout), in_units(own, *how))


def count_rows(own: Read) -> int:
    """Rows of a part."""
    return len(own.values)
