"""The backend of a table in parts of rows: each part counts, sums decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Finishing, Int64s, Larger, Splits, Subtrees, Task
from gputree.backends.cpu import tuning as host_tuning
from gputree.backends.cpu.backend import CpuBackend, Nodes, Scores
from gputree.backends.cpu.layout import Chosen, Rows
from gputree.backends.cpu.refine import pure_nodes, record_cut_of
from gputree.backends.partitioned import tuning
from gputree.backends.partitioned.finish import (
    Finished,
    Gatherer,
    grow_gathered,
    join_subtrees,
    split_pairs,
)
from gputree.backends.partitioned.gather import target_interval
from gputree.backends.partitioned.ranges import Ranges
from gputree.backends.partitioned.reduction import (
    LocalReducer,
    Reducer,
    Sum,
    count_histograms,
    count_statistics,
)
from gputree.backends.partitioned.refine import Node, Refiner, column_of, nodes_of
from gputree.backends.partitioned.table import PartitionedTable, rows_of
from gputree.backends.thresholds import thresholds
from gputree.dtypes import ROW
from gputree.threads import run


class PartitionedBackend:
    """Primitives of `gputree.backends.base.Backend` over a table in parts, on the host.

    Parameters
    ----------
    table : PartitionedTable
    task : Task
    n_threads : int
    entries : int array, ascending, or None
        Rows to grow on; None for all.
    """

    name = "cpu"

    @property
    def gathered_bytes(self) -> int:
        """Of the rows of small nodes that are grown at once."""
        return tuning.TUNING.gathered_bytes

    def __init__(
        self, table: PartitionedTable, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        self.held, self.task, self.n_threads = table, task, n_threads
        self.channels = task.channels
        none = np.empty(0, np.int64)
        self.head = CpuBackend(table.part(0, 0), part_of(task, 0, 0), n_threads, none)
        self.parts = [
            CpuBackend(table.part(a, b), part_of(task, a, b), n_threads, between(entries, a, b))
            for a, b in table.spans()
        ]
        self.reducer: Reducer = LocalReducer(self.parts)
        self.ranges = Ranges(np.array([part.entries.size for part in self.parts]))
        self.finished = Finished()
        self.refined_pairs = 0
        self.scanned_pairs = 0

    def report(self) -> dict[str, int]:
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    def encode(self, max_bins: int) -> None:
        coded = self.held.coded(max_bins, self.task.exact, self.n_threads)
        self.head.table = rows_of(coded, 0, 0)
        for part, (a, b) in zip(self.parts, self.held.spans(), strict=True):
            part.table = rows_of(coded, a, b)

    # ------------------------------------------------------- histograms
    @property
    def histogram_cells(self) -> int:
        return self.head.histogram_cells

    @property
    def histogram_bytes(self) -> int:
        return self.head.histogram_bytes

    @property
    def uncoded_cells(self) -> int:
        return 0

    @property
    def most_histogram_bytes(self) -> int:
        half = self.held.whole.values.nbytes // 2
        most = min(half, tuning.TUNING.most_histogram_bytes)
        most = max(host_tuning.TUNING.least_histogram_bytes, most)
        return max(most, self.histogram_bytes)  # or the whole table would be gathered instead

    @property
    def finishing(self) -> Finishing:
        columns = self.head.table.missing.size
        return Finishing(tuning.TUNING.rows_per_statistic, columns, np.iinfo(ROW).max)

    def new_histograms(self, m: int) -> Any:
        return self.head.new_histograms(m)

    def histogram(
        self,
        begin: Int64s,
        end: Int64s,
        out: Any,
        slots: Int64s,
        larger: Larger | None = None,
    ) -> None:
        self.reducer.map_reduce(count_histograms, [Sum(out)], *self.ranges.of(begin, end), slots)
        if larger is not None:
            self.head.subtract(out, larger)

    # ----------------------------------------------------------- splits
    def score(self, histograms: Any, slots: Int64s, bounds: Bounds | None = None) -> Any:
        return self.head.score(histograms, slots, bounds)

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Any,
        slots: Int64s,
        scores: Any,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Splits:
        nodes = Nodes(begin, end, histograms, slots)
        first, last = self.ranges.of(begin, end)
        few, many = self._nominal()
        self.head.score_subsets(nodes, scores, few)
        splits = Splits.none(begin.size)
        pure = np.empty(begin.size, np.bool_)
        pure_nodes(self.task.criterion, scores.total, pure)
        at_once = max(min(self.n_threads, begin.size), 1)
        refiner = Refiner(self.head, self.parts, tuning.TUNING.gathered_bytes // at_once)
        chosen = Chosen(*splits[:-1])

        def choose(j: int, node: Node) -> None:
            if pure[j] or self._has_one_target(node):
                return
            for f in many:
                self._score_many(node, scores, j, int(f))
            cut = refiner.choose(node)
            record_cut_of(
                self.task.criterion, self.head.table, self.task.limits,
                self.task.weight is not None, node.cells, node.total, cut, j, chosen,
            )  # fmt: skip
            if splits.feature[j] in many:
                splits.codes[j] = self._list_many(node, scores, j, int(splits.feature[j]))

        work = list(enumerate(nodes_of(nodes, scores, keys, first, last, bounds)))
        run(self.n_threads, choose, sorted(work, key=lambda item: -item[1].rows))
        own = np.flatnonzero(np.isin(splits.feature, few))
        self.head.list_subsets(nodes, scores, splits, own)
        self.refined_pairs += refiner.refined_pairs
        self.scanned_pairs += int((end - begin).sum()) * self.held.shape[1]
        return splits

    def _has_one_target(self, node: Node) -> bool:
        """Whether one target may stand for all rows of the node; never of classes."""
        if self.task.square is None:
            return False
        low, high = -np.inf, np.inf
        for part, first, last in zip(self.parts, node.first, node.last, strict=True):
            own = target_interval(part.rows, part.entries, first, last, self.task.limits.rounded)
            low, high = max(low, own[0]), min(high, own[1])
            if low > high:
                return False
        return True

    def _nominal(self) -> tuple[Int64s, Int64s]:
        """Nominal columns whose categories are bins, and those of more categories."""
        nominal = np.flatnonzero(self.held.categories)
        by_code = self.head.table.by_code[nominal]
        return nominal[by_code], nominal[~by_code]

    # ------------------------------------ columns of more categories than bins
    def _score_many(self, node: Node, scores: Scores, j: int, f: int) -> None:
        """Find the best subset of column f, whose rows are gathered."""
        one, nodes, own = self._alone(node, scores, j, f)
        one.score_subsets(nodes, own, np.zeros(1, np.int64))
        for whole, part in zip(scores[1:], own[1:], strict=True):
            whole[j, f] = part[0, 0]

    def _list_many(self, node: Node, scores: Scores, j: int, f: int) -> NDArray[np.uint32]:
        """The categories that go left."""
        one, nodes, own = self._alone(node, scores, j, f)
        split = Splits.none(1)
        split.feature[0] = 0
        one.list_subsets(nodes, own, split, np.zeros(1, np.int64))
        codes: NDArray[np.uint32] = split.codes[0]
        return codes

    def _alone(
        self, node: Node, scores: Scores, j: int, f: int
    ) -> tuple[CpuBackend, Nodes, Scores]:
        """Column f of a node as a table of its own: its backend, its node and its scores."""
        table, task = self.head.table, self.task
        n, channels = node.rows, self.channels
        at, end = (int(table.offset[k]) * channels for k in (f, f + 1))
        value = np.empty((n, 1), table.values.dtype)
        columns = [
            None if column is None else np.empty(n, column.dtype)
            for column in (task.target, task.weight, task.square, task.square_rest)
        ]
        upto = 0
        for part, first, last in zip(self.parts, node.first, node.last, strict=True):
            rows = part.entries[first:last]
            place = slice(upto, upto + rows.size)
            value[place, 0] = part.table.values[rows, f]
            for out, column in zip(columns, part.rows, strict=True):
                if out is not None and column is not None:
                    out[place] = column[rows]
            upto += rows.size
        bare = self.held.part(0, 0)
        one = CpuBackend(bare, self.head.task, self.n_threads, np.empty(0, np.int64))
        one.entries = np.arange(n, dtype=ROW)
        one.table = column_of(table, f, np.empty((0, 1), table.codes.dtype), value)
        one.rows = Rows(*columns)  # type: ignore[arg-type]
        fields: list[NDArray] = [field[j : j + 1, f : f + 1].copy() for field in scores[1:]]
        own = Scores(scores.total[j : j + 1], *fields)
        zero = np.zeros(1, np.int64)
        nodes = Nodes(zero, np.array([n]), node.cells[None, at:end], zero)
        return one, nodes, own

    def partition(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64]]:
        middle, low, high = self._partition(*self.ranges.of(begin, end), splits)
        table = self.head.table
        cuts = thresholds(splits, low, high, table.by_code, table.greatest, table.least)
        return self.ranges.split(begin, end, middle), cuts

    def _partition(
        self, first: NDArray, last: NDArray, splits: Splits
    ) -> tuple[NDArray, NDArray[np.float64], NDArray[np.float64]]:
        """Partition the entries of nodes in all parts: middles (m, parts), values beside cuts."""
        middle = np.empty_like(first)
        low, high = np.full(len(first), -np.inf), np.full(len(first), np.inf)
        for p, part in enumerate(self.parts):
            middle[:, p], own_low, own_high = part.partition_rows(first[:, p], last[:, p], splits)
            np.maximum(low, own_low, out=low)
            np.minimum(high, own_high, out=high)
        return middle, low, high

    # --------------------------------------------------------- subtrees
    def finish(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Subtrees:
        return join_subtrees(self._subtrees(begin, end, depth, keys, bounds))

    def _subtrees(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None,
    ) -> Iterator[Subtrees]:
        """Grow the subtrees of nodes, some at a time, whose rows are gathered."""
        gatherer = Gatherer(self.head, self.parts, self.gathered_bytes)
        for own in gatherer.groups(end - begin):
            rows = self._grower(gatherer.gather(*self.ranges.of(begin[own], end[own])))
            yield grow_gathered(
                rows, self.finished, begin[own], end[own] - begin[own], depth[own], keys[own],
                bounds and bounds.take(own),
            )  # fmt: skip

    def _grower(self, rows: CpuBackend) -> Any:
        """What grows the subtrees of nodes whose rows were gathered: where they are."""
        return rows

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        known, out = self.finished.statistics(begin, end, self.task.statistics)
        open_ = ~known
        sums = Sum(np.zeros((int(open_.sum()), self.task.statistics), np.int64))
        self.reducer.map_reduce(count_statistics, [sums], *self.ranges.of(begin[open_], end[open_]))
        out[open_] = sums.array
        return out

    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        nodes = list(zip(begin.tolist(), end.tolist(), strict=True))
        found = [self.finished.categories(*node) for node in nodes]
        open_ = np.flatnonzero([codes is None for codes in found])
        own = self._categories(begin[open_], end[open_], feature[open_])
        for j, codes in zip(open_, own, strict=True):
            found[j] = codes
        listed = [codes for codes in found if codes is not None]
        counts = np.array([codes.size for codes in listed], np.int64)
        return counts, np.concatenate([np.empty(0, np.uint32), *listed])

    def _categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> list[NDArray[np.uint32]]:
        """Categories of a column that each of m nodes holds, from all parts."""
        first, last = self.ranges.of(begin, end)
        owner, code = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
        for p, part in enumerate(self.parts):
            counts, own = part.categories(first[:, p], last[:, p], feature)
            owner.append(np.repeat(np.arange(begin.size), counts))
            code.append(own)
        pairs = np.unique(np.stack([np.concatenate(owner), np.concatenate(code)]), axis=1)
        return split_pairs(pairs, begin.size)


def part_of(task: Task, begin: int, end: int) -> Task:
    """The task of some rows of the table."""
    rows = (task.target, task.weight, task.square, task.square_rest)
    target, weight, square, rest = (None if x is None else x[begin:end] for x in rows)
    assert target is not None
    return replace(task, target=target, weight=weight, square=square, square_rest=rest)


def between(entries: Int64s | None, begin: int, end: int) -> Int64s | None:
    """Ascending rows ``begin .. end`` among `entries`, counted from `begin`."""
    if entries is None:
        return None
    first, last = np.searchsorted(entries, [begin, end])
    return entries[first:last] - begin
