"""The CPU backend: NumPy arrays, numba kernels, a pool of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Finishing, Int64s, Larger, Splits, Subtrees, Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu import cell_counts, tuning
from gputree.backends.cpu import histogram as histograms_
from gputree.backends.cpu.categories import (
    Many,
    Scratch,
    list_left,
    many_categories,
    new_scratch,
    score_subsets,
)
from gputree.backends.cpu.encode import encode_rows
from gputree.backends.cpu.finer import Finer
from gputree.backends.cpu.finish import finish_nodes
from gputree.backends.cpu.layout import Chosen, Lead, Left, Rows
from gputree.backends.cpu.partition import (
    list_categories,
    node_statistics,
    partition_chunks,
    place_chunks,
)
from gputree.backends.cpu.refine import refine_nodes
from gputree.backends.cpu.score import score_nodes
from gputree.backends.cpu.table import CpuTable
from gputree.backends.cpu.two_classes import new_vectors
from gputree.backends.thresholds import thresholds
from gputree.compilation.tiers import is_cheaper_without
from gputree.dtypes import CODE, ROW
from gputree.threads import chunks, even_spans, run, spans


def left_of(splits: Splits) -> Left:
    """The categories that go left of some splits, for kernels."""
    none = np.empty(0, np.uint32)
    codes = [none if code is None else code for code in splits.codes]
    begin = np.cumsum([0] + [code.size for code in codes], dtype=np.int64)
    return Left(begin, np.concatenate([none, *codes]))


class Scores(NamedTuple):
    """Best boundary or subset of every (node, column), and the greatest bound of its bins."""

    total: NDArray[np.int64]  # (m, channels)
    best: NDArray[np.float64]  # (m, d)
    bin: NDArray[np.int64]  # (m, d); of a subset its place
    missing_left: NDArray[np.bool_]  # (m, d)
    bound: NDArray[np.float64]  # (m, d)
    order: NDArray[np.int64]  # (m, d); of a subset


class Nodes(NamedTuple):
    """Nodes with histograms: that of node j is ``cells[slots[j]]``."""

    begin: Int64s
    end: Int64s
    cells: NDArray
    slots: Int64s


# What takes longest to compile of all that levels take.
LEVEL_KERNELS = (encode_rows, score_nodes, refine_nodes, partition_chunks)


class CpuBackend:
    """Primitives of `gputree.backends.base.Backend` on the host.

    Parameters
    ----------
    table : CpuTable
    task : Task
    n_threads : int
    entries : int array, or None
        Rows to grow on; None for all.
    """

    name = "cpu"

    def __init__(
        self, table: CpuTable, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        self.held = table
        self.table = table.bare()
        self.task = task
        self.channels = task.channels
        self.n_threads = n_threads
        self.rows = Rows(task.target, task.weight, task.square, task.square_rest)
        # a copy: growth permutes them
        self.entries = (
            np.arange(table.shape[0], dtype=ROW) if entries is None else entries.astype(ROW)
        )
        self.refined_pairs = 0
        self.scanned_pairs = 0
        self.cell_counts: cell_counts.CellCounts | None = None
        self._many: Many | None = None
        self._codes_read = np.empty(0, CODE)
        self._leads: list[tuple[Int64s, NDArray[np.int32]]] = []  # begin, column: since partition

    def report(self) -> dict[str, int]:
        """Pairs (row, column) at nodes split by histogram, and how many were refined."""
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    def encode(self, max_bins: int) -> None:
        self.table = self.held.coded(max_bins, self.task.exact, self.n_threads)
        self._many = None

    # ------------------------------------------------------- histograms
    @property
    def histogram_cells(self) -> int:
        return int(self.table.offset[-1])

    @property
    def uncoded_cells(self) -> int:
        cells = self.entries.size * self.held.shape[1]
        if cells > tuning.TUNING.uncoded_cells:
            return 0
        seconds = cells * tuning.TUNING.uncoded_cell_seconds
        return cells if is_cheaper_without(LEVEL_KERNELS, seconds) else 0

    @property
    def most_histogram_bytes(self) -> int:
        return max(tuning.TUNING.least_histogram_bytes, self.table.values.nbytes // 2)

    @property
    def histogram_bytes(self) -> int:
        return self.histogram_cells * self.task.channels * self._cell_dtype.itemsize

    @property
    def finishing(self) -> Finishing:
        own = tuning.TUNING
        coded = np.count_nonzero(self.table.by_code)
        columns = self.table.by_code.size - (1.0 - own.coded_column) * coded
        most = max(self.entries.size // (2 * self.n_threads), own.shared_rows)
        return Finishing(own.rows_per_statistic, columns, most, own.level_cells)

    @property
    def _cell_dtype(self) -> np.dtype:
        counted = self.rows.weight is None and self.rows.square is None
        return np.dtype(np.uint32 if counted else np.int64)

    def new_histograms(self, m: int) -> NDArray:
        return np.zeros((m, self.histogram_cells * self.task.channels), self._cell_dtype)

    def histogram(
        self,
        begin: Int64s,
        end: Int64s,
        out: NDArray,
        slots: Int64s,
        larger: Larger | None = None,
    ) -> None:
        self.count(begin, end, out, slots, (0, self.table.missing.size))
        if larger is not None:
            self.subtract(out, larger)

    def count(
        self, begin: Int64s, end: Int64s, out: NDArray, slots: Int64s, columns: tuple[int, int]
    ) -> None:
        """Add the histogram of node j, of columns first .. last alone, to ``out[slots[j]]``."""
        rows = int((end - begin).sum())
        share = max(tuning.TUNING.chunk_rows // 4, -(-rows // (2 * self.n_threads)))
        share = max(share, -(-rows // max(tuning.TUNING.partial_bytes // out[:1].nbytes, 1)))
        least = max(2 * tuning.TUNING.chunk_rows // max(columns[1] - columns[0], 1), 1)
        if self.n_threads == 1 or rows < 2 * least:
            share = max(rows, 1)
        owner, first, last = chunks(begin, end, share)
        extra = np.flatnonzero(np.diff(owner, prepend=-1) == 0)  # chunks after a node's first
        partial = np.zeros((extra.size, out.shape[1]), out.dtype)
        target = [out[slots[j]] for j in owner]
        for i, c in enumerate(extra):
            target[c] = partial[i]
        sizes = last - first
        order = np.argsort(-sizes, kind="stable")
        groups = spans(sizes[order], self.n_threads, least)
        run(
            self.n_threads,
            self._histogram_chunks,
            [(order[a:b], first, last, columns, target) for a, b in groups],
        )
        for i, c in enumerate(extra):
            out[slots[owner[c]]] += partial[i]

    def _histogram_chunks(
        self,
        chunk: Int64s,
        first: Int64s,
        last: Int64s,
        columns: tuple[int, int],
        target: list[NDArray],
    ) -> None:
        for c in chunk:
            histograms_.histogram(
                self.task.criterion, self.table.of_codes(), self.rows, self.entries, first[c],
                last[c], columns, self.task.channels, target[c],
            )  # fmt: skip

    def subtract(self, out: NDArray, larger: Larger) -> None:
        """Let histograms of `out` be the differences."""
        whole, whole_slots, part_slots, slots = larger
        parts = even_spans(slots.size, out.shape[1], self.n_threads, 1 << 18)
        run(
            self.n_threads,
            histograms_.subtract_nodes,
            [(whole, whole_slots, out, part_slots, slots, a, b) for a, b in parts],
        )

    # ----------------------------------------------------------- splits
    def score(self, histograms: NDArray, slots: Int64s, bounds: Bounds | None = None) -> Scores:
        m, d = slots.size, self.table.codes.shape[1]
        scores = Scores(
            total=np.empty((m, self.task.channels), np.int64),
            best=np.empty((m, d)),
            bin=np.empty((m, d), np.int64),
            missing_left=np.empty((m, d), np.bool_),
            bound=np.empty((m, d)),
            order=np.empty((m, d), np.int64),
        )
        parts = even_spans(m, self.histogram_cells, self.n_threads, tuning.TUNING.scored_cells)
        run(
            self.n_threads,
            score_nodes,
            [
                (
                    new_vectors(self.task), self.task.criterion, self.table.of_codes(),
                    self.task.limits, self.rows.weight is not None, histograms, slots, a, b,
                    bounds, *scores[:-1],
                )
                for a, b in parts
            ],
        )  # fmt: skip
        return scores

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: NDArray,
        slots: Int64s,
        scores: Scores,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Splits:
        nodes = Nodes(begin, end, histograms, slots)
        self.score_subsets(nodes, scores, np.flatnonzero(self.table.categories))
        splits = Splits.none(begin.size)
        rows = end - begin
        least = tuning.TUNING
        counts = self.task.exact and self.table.values.shape[0] >= least.counted_table_rows
        counts = counts and not self.table.single.all()  # else no cut lies inside a bin
        is_large = (rows >= least.counted_rows) & counts
        large, small = np.flatnonzero(is_large), np.flatnonzero(~is_large)
        groups: list[tuple[Finer | None, Int64s]] = [(None, small)]
        if large.size:
            groups = [*self._finer(nodes, scores, large), *groups]
        parts = [
            (finer, own, a, b)
            for finer, own in groups
            for a, b in spans(rows[own], self.n_threads, least.chunk_rows // 4)
            if a < b
        ]
        reports = [np.zeros(1, np.int64) for _ in parts]
        lead = self._new_lead(begin)
        run(
            self.n_threads,
            refine_nodes,
            [
                (
                    f, self.task.criterion, self.table, self.rows, self.entries, begin, end,
                    self.task.limits, self.rows.weight is not None, self.task.exact, keys,
                    histograms, slots, own, a, b, bounds, *scores[:-1], Chosen(*splits[:-1]),
                    lead, report,
                )
                for (f, own, a, b), report in zip(parts, reports, strict=True)
            ],
        )  # fmt: skip
        nominal = (splits.feature >= 0) & (self.table.categories[splits.feature] > 0)
        self.list_subsets(nodes, scores, splits, np.flatnonzero(nominal))
        self.refined_pairs += sum(int(report[0]) for report in reports)
        self.scanned_pairs += int(rows.sum()) * self.table.codes.shape[1]
        return splits

    def _new_lead(self, begin: Int64s) -> Lead:
        """Room for the codes that are read to refine nodes, until these are partitioned."""
        if self._codes_read.size == 0:
            self._codes_read = np.empty(self.entries.size, CODE)
        column = np.full(begin.size, -1, np.int32)
        self._leads.append((begin, column))
        return Lead(column, self._codes_read)

    def _take_lead(self, begin: Int64s) -> Lead:
        """What was read of the nodes that begin there."""
        column = np.full(begin.size, -1, np.int32)
        if self._leads:
            known, columns = map(np.concatenate, zip(*self._leads, strict=True))
            at = np.minimum(np.searchsorted(known, begin), known.size - 1)
            column = np.where(known[at] == begin, columns[at], column)
        self._leads = []
        return Lead(column, self._codes_read)

    def _finer(self, nodes: Nodes, scores: Scores, large: Int64s) -> list[tuple[Finer, Int64s]]:
        """What large nodes are refined with, and which of them."""
        if self.cell_counts is None:
            self.cell_counts = cell_counts.CellCounts(
                self.task, self.table, self.rows, self._cell_dtype, self.n_threads
            )
        alive = self.cell_counts.alive(
            nodes.cells, nodes.slots, large, scores.total, scores.best, scores.bound
        )
        return self.cell_counts.refine_with(self.entries, nodes.begin, nodes.end, large, alive)

    def score_subsets(self, nodes: Nodes, scores: Scores, nominal: Int64s) -> None:
        """Find the best subset of every column of `nominal`."""
        limits = self.task.limits._replace(monotonic=None)  # of numeric columns alone
        m = nodes.begin.size
        pairs = np.repeat(np.arange(m), nominal.size), np.tile(nominal, m)
        parts, many = self._pair_spans(nodes, *pairs), self._many_categories()
        run(
            self.n_threads,
            lambda a, b: score_subsets(
                self.task.criterion, self.table, many, self.rows, self.entries, *nodes[:2],
                limits, self._scratch(nodes), *nodes[2:], *pairs, a, b,
                scores.total, scores.best, scores.bin, scores.order, scores.missing_left,
            ),
            parts,
        )  # fmt: skip

    def list_subsets(self, nodes: Nodes, scores: Scores, splits: Splits, node: Int64s) -> None:
        """Give the splits of some nodes, of nominal columns, the categories that go left."""
        column = splits.feature[node].astype(np.int64)
        most = np.minimum((nodes.end - nodes.begin)[node], self.table.categories[column])
        counts = np.empty(node.size, np.int64)
        parts, many = self._pair_spans(nodes, node, column), self._many_categories()
        codes = [np.empty(int(most[a:b].sum()), np.uint32) for a, b in parts]
        run(
            self.n_threads,
            lambda a, b, code: list_left(
                self.task.criterion, self.table, many, self.rows, self.entries, *nodes[:2],
                self._scratch(nodes), *nodes[2:], node, column, a, b, scores.total,
                scores.bin, scores.order, counts, code,
            ),
            [(a, b, code) for (a, b), code in zip(parts, codes, strict=True)],
        )  # fmt: skip
        for (a, b), code in zip(parts, codes, strict=True):
            each = np.split(code, np.cumsum(counts[a:b]))[:-1]
            for j, own in zip(node[a:b], each, strict=True):
                splits.codes[j] = own

    def _pair_spans(self, nodes: Nodes, node: Int64s, column: Int64s) -> list[tuple[int, int]]:
        """Spans of pairs of nodes and nominal columns; those of many categories cost by rows."""
        if node.size == 0:
            return []
        many = ~self.table.by_code[column]
        cost = np.where(many, (nodes.end - nodes.begin)[node], MAX_BINS)
        return spans(cost, self.n_threads, tuning.TUNING.chunk_rows // 4)

    def _many_categories(self) -> Many:
        """The categories of columns of many, once they are needed."""
        if self._many is None:
            self._many = many_categories(self.table, self.n_threads)
        return self._many

    def _scratch(self, nodes: Nodes) -> Scratch | None:
        most_rows = int((nodes.end - nodes.begin).max())
        return new_scratch(self.table, self.task, most_rows, sorted_=False)

    def partition(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64]]:
        middle, low, high = self.partition_rows(begin, end, splits)
        table = self.table
        return middle, thresholds(splits, low, high, table.by_code, table.greatest, table.least)

    def partition_rows(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64], NDArray[np.float64]]:
        """As `partition`, with the values beside each cut in place of its threshold."""
        if self.cell_counts is not None:
            self.cell_counts.next_level()
        node, first, last = chunks(begin, end, tuning.TUNING.chunk_rows)
        parts = spans(last - first, self.n_threads, 2 * tuning.TUNING.chunk_rows)
        lefts = np.zeros(node.size, np.int64)
        low = np.empty(node.size)
        high = np.empty(node.size)
        out = np.empty_like(self.entries)
        chosen, left, lead = Chosen(*splits[:-1]), left_of(splits), self._take_lead(begin)
        run(
            self.n_threads,
            partition_chunks,
            [
                (
                    self.table, self.entries, chosen, left, lead, self._flags(), node, first, last,
                    a, b,
                    lefts, low, high, out,
                )
                for a, b in parts
            ],
        )  # fmt: skip
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        middle = begin + np.add.reduceat(lefts, starts)
        before = np.cumsum(lefts) - lefts
        to_left = begin[node] + before - before[starts][node]
        to_right = middle[node] + (first - begin[node]) - (to_left - begin[node])
        run(
            self.n_threads,
            place_chunks,
            [(out, first, last, lefts, to_left, to_right, a, b, self.entries) for a, b in parts],
        )
        return middle, np.maximum.reduceat(low, starts), np.minimum.reduceat(high, starts)

    def _flags(self) -> NDArray[np.bool_]:
        """A false flag for every category of any column."""
        return np.zeros(int(self.table.categories.max(initial=0)), np.bool_)

    # --------------------------------------------------------- subtrees
    def finish(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Subtrees:
        self.cell_counts = None
        sizes = end - begin
        order = np.argsort(-sizes, kind="stable")
        parts = spans(sizes[order], self.n_threads, 1 << 10)
        done = run(
            self.n_threads,
            self._finish_span,
            [
                (begin[s], end[s], depth[s], keys[s], bounds and bounds.take(s))
                for s in (order[a:b] for a, b in parts)
            ],
        )
        root = np.empty(begin.size, np.int64)
        if len(done) == 1:
            root[order] = done[0].root
            return done[0]._replace(root=root)
        starts = np.cumsum([0] + [part.feature.size for part in done])
        shifted = []
        for (a, b), start, part in zip(parts, starts, done, strict=False):
            root[order[a:b]] = part.root + start
            child = part.first_child
            shifted.append(part._replace(first_child=np.where(child < 0, -1, child + start)))
        fields = [np.concatenate(column) for column in zip(*shifted, strict=True)]
        return Subtrees(root, *fields[1:])

    def _finish_span(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None,
    ) -> Subtrees:
        return finish_nodes(
            self.table, self.task, self.rows, self.entries, begin, end, depth, keys, bounds
        )

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        out = np.zeros((begin.size, self.task.statistics), np.int64)
        parts = spans(end - begin, self.n_threads, tuning.TUNING.chunk_rows // 4)
        run(
            self.n_threads,
            node_statistics,
            [
                (self.task.criterion, self.rows, self.entries, begin, end, a, b, out)
                for a, b in parts
            ],
        )
        return out

    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        most = max(int(self.table.categories.max(initial=0)), 2)
        sizes = np.minimum(end - begin, most)
        counts = np.zeros(begin.size, np.int64)
        parts = spans(end - begin, self.n_threads, tuning.TUNING.chunk_rows // 4)
        codes = [np.empty(int(sizes[a:b].sum()), np.uint32) for a, b in parts]
        run(
            self.n_threads,
            list_categories,
            [
                (
                    self.table, self.entries, begin, end, feature, a, b, np.zeros(most, np.bool_),
                    counts, code,
                )
                for (a, b), code in zip(parts, codes, strict=True)
            ],
        )  # fmt: skip
        used = [code[: int(counts[a:b].sum())] for (a, b), code in zip(parts, codes, strict=True)]
        found = np.concatenate(used)
        owner = np.repeat(np.arange(begin.size), counts)
        return counts, found[np.lexsort((found, owner))]
