"""The CPU backend: NumPy arrays, numba kernels, a pool of threads."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Finishing, Larger, Splits, Subtrees, Task, Uint64s
from gputree.backends.binning import MAX_BINS, thresholds
from gputree.backends.cpu import cell_counts, tuning
from gputree.backends.cpu.block import block_bytes
from gputree.backends.cpu.categories import (
    LeftLists,
    Many,
    NodeColumns,
    Scratch,
    list_left,
    many_categories,
    new_scratch,
    score_subsets,
)
from gputree.backends.cpu.drawn_columns import grow_of_drawn, grow_ranked_some
from gputree.backends.cpu.encode import encode_rows
from gputree.backends.cpu.finish import SmallNodes, finish_nodes
from gputree.backends.cpu.layout import EntrySource, Fine, Left, Nodes, Scores, SearchRules
from gputree.backends.cpu.partition import (
    Chunks,
    Parted,
    left_statistics,
    node_categories,
    node_statistics,
    partition_chunks,
    place_chunks,
)
from gputree.backends.cpu.ranks import rank_table
from gputree.backends.cpu.refine import NodeHistogram, refine_nodes
from gputree.backends.cpu.score import histogram, new_vectors, score_nodes, subtract_nodes
from gputree.backends.cpu.sub_bins import Finer
from gputree.backends.cpu.table import CpuTable, draws_few
from gputree.base.dtypes import ROW, Bools, Floats, Int32s, Int64s
from gputree.base.threads import chunks, even_spans, run, spans
from gputree.compilation.tiers import is_cheaper_without
from gputree.prediction.sparse import SparseRows


def left_of(splits: Splits) -> Left:
    """The categories that go left of some splits, for kernels."""
    none = np.empty(0, np.uint32)
    codes = [none if code is None else code for code in splits.codes]
    begin = np.cumsum([0] + [code.size for code in codes], dtype=np.int64)
    return Left(begin, np.concatenate([none, *codes]))


# The kernels that take longest to compile among those that a level needs.
LEVEL_KERNELS = (encode_rows, score_nodes, refine_nodes, partition_chunks)


class CpuBackend:
    """Primitives of `gputree.backends.base.Backend` on the host."""

    name = "cpu"

    def __init__(
        self, table: CpuTable, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        reads_nonzeros = task.exact and isinstance(table.source, SparseRows) and table.is_sparse
        self.data, self.table = table, table.empty if reads_nonzeros else table.bare
        self.task, self.channels = task, task.channels
        self._draws_few = draws_few(table.categories, task.limits.max_features)
        self.n_threads, self._run = n_threads, partial(run, n_threads)
        self.rows = task.rows
        # a copy: growth permutes them
        self.entries = (
            np.arange(table.shape[0], dtype=ROW) if entries is None else entries.astype(ROW)
        )
        self.refined_pairs = self.scanned_pairs = 0
        self.cell_counts: cell_counts.CellCounts | None = None
        self._max_bins = 0  # of the coded table
        self._many: Many | None = None

    def report(self) -> dict[str, int]:
        """Pairs (row, column) at nodes split by histogram, and how many were refined."""
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    def encode(self, max_bins: int) -> None:
        self.table = self.data.coded(max_bins, self.task.exact, self.n_threads)
        self._max_bins, self._many = max_bins, None

    @property
    def _source(self) -> EntrySource:
        return EntrySource(self.table, self.rows, self.entries)

    def _rules(self, bounds: Bounds | None) -> SearchRules:
        """Return the rules that choose between cuts of nodes whose means have `bounds`."""
        task = self.task
        rules = task.criterion, task.limits, task.rows.weight is not None, task.exact
        return SearchRules(*rules, bounds, task.interactions)

    @property
    def histogram_cells(self) -> int:  # that are counted for a node
        cells = int(self.table.offset[-1])
        if self._counts_drawn:
            cells = cells * self.task.limits.max_features // self.table.missing.size
        return cells

    @property
    def _counts_drawn(self) -> bool:
        """True where nodes have no histograms, and only the columns that they draw are counted."""
        return self._draws_few and not self._reads_ranks

    @property
    def _reads_ranks(self) -> bool:
        """True where small nodes read ranks of the columns that they draw."""
        if self._grows_sparse:
            return True
        draws_all = self.task.limits.max_features >= self.table.missing.size
        if self.task.draws_cuts or draws_all or self._grows_uncoded:
            return False
        return self._is_coded or (self._is_ranked and not self._draws_few)

    @property
    def _is_coded(self) -> bool:
        """True if codes decide the cuts of most columns."""
        return bool(self.table.by_code.mean() >= tuning.TUNING.ranked_share)

    @property
    def _is_ranked(self) -> bool:
        """True if the table is ranked as a whole."""
        if self._grows_sparse or (self.data.is_ranked and self.table.codes.size == 0):
            return True
        shared = self.data.grows_many and self._is_coded
        most = tuning.TUNING.coded_ranked_cells if shared else tuning.TUNING.ranked_cells
        return math.prod(self.data.shape) <= most

    @property
    def uncoded_cells(self) -> int:
        cells = self.entries.size * self.data.shape[1]
        if self.task.draws_cuts:
            return cells
        if self._grows_uncoded or self._grows_sparse or (self.task.exact and self.data.is_wide):
            return cells
        if self.n_threads == 1 and self.data.is_ranked and self._reads_ranks:
            return cells
        if cells > tuning.TUNING.uncoded_cells:
            return 0
        seconds = cells * tuning.TUNING.uncoded_cell_seconds
        return cells if is_cheaper_without(LEVEL_KERNELS, seconds) else 0

    @property
    def most_histogram_bytes(self) -> int:
        return max(tuning.TUNING.least_histogram_bytes, self.table.values.nbytes // 2)

    @property
    def histogram_bytes(self) -> int:
        return self.histogram_cells * self.channels * self._cell_dtype.itemsize

    @property
    def _grows_uncoded(self) -> bool:
        """True where nodes sort the columns that they draw from the root on."""
        few_rows = self.data.shape[0] <= tuning.TUNING.drawn_rows
        return self.task.exact and self._draws_few and few_rows and not self._grows_sparse

    @property
    def _grows_sparse(self) -> bool:
        """True where nodes read the values other than 0 from the root on."""
        return self.task.exact and self.table.codes.size == 0 and self.data.is_sparse

    def _sorts_each(self, nodes: SmallNodes) -> bool:
        """Return whether nodes sort columns one by one, because a block would be too large."""
        if not self.task.exact or self.table.categories.any() or self._reads_ranks:
            return False
        most = int((nodes.end - nodes.begin).max())
        return block_bytes(self.table, most) > tuning.TUNING.block_bytes

    @property
    def _sorts_drawn(self) -> bool:
        """True where small nodes sort the columns that they draw, instead of all columns once."""
        return self._counts_drawn and self.task.exact

    @property
    def finishing(self) -> Finishing:
        tuned = tuning.TUNING
        coded = self.table.by_code
        columns = float(coded.size - (1.0 - tuned.coded_column) * np.count_nonzero(coded))
        most = max(self.entries.size // (2 * self.n_threads), tuned.shared_rows)
        level_cells, drawn = tuned.level_cells, self.task.limits.max_features
        if self._sorts_drawn:
            columns = tuned.sorted_column * drawn
        elif drawn < coded.size:
            level_cells = int(tuned.drawn_level_cells * coded.size / columns)
            if self._reads_ranks:
                columns *= drawn / coded.size
                if self._is_ranked and self.n_threads == 1:  # else threads share levels
                    level_cells = max(tuned.ranked_cells, math.prod(self.data.shape))
        return Finishing(tuned.rows_per_statistic, columns, most, level_cells)

    @property
    def _cell_dtype(self) -> np.dtype:
        counted = self.rows.weight is None and self.rows.square is None
        return np.dtype(np.uint32 if counted else np.int64)

    def new_histograms(self, m: int) -> NDArray:
        cells = 0 if self._counts_drawn else self.histogram_cells
        return np.zeros((m, cells * self.channels), self._cell_dtype)

    def histogram(
        self, begin: Int64s, end: Int64s, out: NDArray, slots: Int64s, larger: Larger | None = None
    ) -> None:
        if out.shape[1] == 0:  # the columns that nodes draw are counted as these are refined
            return
        self.count(begin, end, out, slots, (0, self.table.missing.size))
        if larger is not None:
            self.subtract(out, larger)

    def count(
        self, begin: Int64s, end: Int64s, out: NDArray, slots: Int64s, columns: tuple[int, int]
    ) -> None:
        """Add the histogram of node j, of columns first .. last only, to ``out[slots[j]]``."""
        rows = int((end - begin).sum())
        share = max(tuning.TUNING.chunk_rows // 4, -(-rows // (2 * self.n_threads)))
        share = max(share, -(-rows // max(tuning.TUNING.partial_bytes // out[:1].nbytes, 1)))
        min_rows = max(2 * tuning.TUNING.chunk_rows // max(columns[1] - columns[0], 1), 1)
        if self.n_threads == 1 or rows < 2 * min_rows:
            share = max(rows, 1)
        owner, first, last = chunks(begin, end, share)
        extra = np.flatnonzero(np.diff(owner, prepend=-1) == 0)  # chunks after a node's first
        sums = np.zeros((extra.size, out.shape[1]), out.dtype)
        target = [out[slots[j]] for j in owner]
        for i, c in enumerate(extra):
            target[c] = sums[i]
        sizes = last - first
        order = np.argsort(-sizes, kind="stable")
        criterion, source = self.task.criterion, self._source._replace(table=self.table.of_codes())

        def count(a: int, b: int) -> None:
            for c in order[a:b]:
                histogram(criterion, source, first[c], last[c], columns, self.channels, target[c])

        self._run(count, spans(sizes[order], self.n_threads, min_rows))
        for i, c in enumerate(extra):
            out[slots[owner[c]]] += sums[i]

    def subtract(self, out: NDArray, larger: Larger) -> None:
        """Overwrite histograms of `out` by the differences of `larger`."""
        parts = even_spans(larger.slots.size, out.shape[1], self.n_threads, 1 << 18)
        self._run(lambda a, b: subtract_nodes(larger, out, a, b), parts)

    def score(self, histograms: NDArray, slots: Int64s, bounds: Bounds | None = None) -> Scores:
        m, d = slots.size, self.table.codes.shape[1]
        scores = Scores(
            total=np.empty((m, self.channels), np.int64),
            best=np.empty((m, d)),
            bin=np.empty((m, d), np.int64),
            missing_left=np.empty((m, d), np.bool_),
            bound=np.empty((m, d)),
            order=np.empty((m, d), np.int64),
        )
        if histograms.shape[1] == 0:
            return scores
        parts = even_spans(m, self.histogram_cells, self.n_threads, tuning.TUNING.scored_cells)
        rules, table = self._rules(bounds), self.table.of_codes()

        def score(a: int, b: int) -> None:
            score_nodes(new_vectors(self.task), rules, table, histograms, slots, a, b, scores)

        self._run(score, parts)
        return scores

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: NDArray,
        slots: Int64s,
        scores: Scores,
        keys: Uint64s,
        bounds: Bounds | None = None,
    ) -> Splits:
        nodes = Nodes(begin, end, histograms, slots)
        self.score_subsets(nodes, scores, self._nominal)
        return self._choose(nodes, scores, keys, bounds)

    def splits_by_column(
        self, key: np.uint64, columns: Int64s, allowed: Bools | None = None
    ) -> Splits:
        """Find the best split of the node of all entries by each of some columns.

        -1 among them stands for all, of which growth chooses one; those that are not `allowed`
        (d,) have none. For tasks that draw no columns.
        Each column is searched in a copy of the node, in which the others have no boundary and no
        bin to search.
        """
        begin, end, d = np.array([0]), np.array([self.entries.size]), self.table.missing.size
        cells, slots, copies = self.new_histograms(1), np.array([0]), np.zeros_like(columns)
        self.histogram(begin, end, cells, slots)
        scores = self.score(cells, slots)
        self.score_subsets(Nodes(begin, end, cells, slots), scores, self._nominal)
        scores = Scores(*(field[copies] for field in scores))
        hidden = (columns[:, None] != np.arange(d)) & (columns[:, None] >= 0)
        if allowed is not None:
            hidden |= ~allowed
        scores.best[hidden] = -np.inf
        scores.bound[hidden] = np.nan  # reaches nothing: -inf would where no boundary is admitted
        nodes = Nodes(begin[copies], end[copies], cells, copies)
        return self._choose(nodes, scores, np.full(columns.size, key, np.uint64), None)

    @property
    def _nominal(self) -> Int64s:
        return np.flatnonzero(self.table.categories)

    def _choose(self, nodes: Nodes, scores: Scores, keys: Uint64s, bounds: Bounds | None) -> Splits:
        """Choose the split of each node by the scores of its boundaries, bins and subsets."""
        begin, end = nodes.begin, nodes.end
        splits = Splits.none(begin.size)
        rows = end - begin
        tuned = tuning.TUNING
        counts = self.task.exact and self.table.values.shape[0] >= tuned.counted_table_rows
        counts = counts and not self.table.single.all()  # else no cut is inside a bin
        counts = counts and not self._counts_drawn
        is_large = (rows >= tuned.counted_rows) & counts
        large, small = np.flatnonzero(is_large), np.flatnonzero(~is_large)
        groups: list[tuple[Finer | None, Int64s]] = [(None, small)]
        if large.size:
            groups = [*self._finer(nodes, scores, large), *groups]
        parts = [
            (finer, group[a:b])
            for finer, group in groups
            for a, b in spans(rows[group], self.n_threads, tuned.chunk_rows // 4)
            if a < b
        ]
        rules, source = self._rules(bounds), self._source
        chosen = splits.chosen

        def refine(finer: Finer | None, group: Int64s) -> int:
            report, drawn = np.zeros(1, np.int64), None
            if self._counts_drawn:
                cells = np.empty(int(self.table.offset[-1]) * self.channels, self._cell_dtype)
                drawn = NodeHistogram(new_vectors(self.task), cells)
            given = rules, source, nodes, scores, keys, group, chosen, report
            refine_nodes(finer, drawn, *given)
            return int(report[0])

        self.refined_pairs += sum(self._run(refine, parts))
        nominal = (splits.feature >= 0) & (self.table.categories[splits.feature] > 0)
        self.list_subsets(nodes, scores, splits, np.flatnonzero(nominal))
        counted = self.table.codes.shape[1]
        if self._counts_drawn:
            counted = self.task.limits.max_features
        self.scanned_pairs += int(rows.sum()) * counted
        return splits

    @property
    def _fine(self) -> Fine:
        """Fine codes made so far."""
        if self.cell_counts is None:
            d = self.table.missing.size
            return Fine(np.empty((d, 0), np.uint16), np.zeros(d, np.bool_))
        return self.cell_counts.fine

    def _finer(self, nodes: Nodes, scores: Scores, large: Int64s) -> list[tuple[Finer, Int64s]]:
        """Large nodes with the sub-bins that they are refined with."""
        if self.cell_counts is None:
            given = self.task, self.table, self.rows, self._cell_dtype
            store = self.data.fine_codes(self._max_bins)
            self.cell_counts = cell_counts.CellCounts(*given, store, self.n_threads)
        return self.cell_counts.refine_with(self._rules(None), self.entries, nodes, scores, large)

    def score_subsets(self, nodes: Nodes, scores: Scores, nominal: Int64s) -> None:
        """Find the best subset of every column of `nominal`."""
        if nominal.size == 0:
            return
        m = nodes.begin.size
        pairs = NodeColumns(np.repeat(np.arange(m), nominal.size), np.tile(nominal, m))
        given = self._of_pairs(nodes, scores, pairs)
        parts = self._pair_spans(nodes, pairs)
        self._run(lambda a, b: score_subsets(*given, a, b, self._scratch(nodes)), parts)

    @property
    def subset_rules(self) -> SearchRules:
        """Rules of nominal columns, on which there is no monotonic constraint."""
        limits = self.task.limits._replace(monotonic=None)
        return self._rules(None)._replace(limits=limits)

    def list_subsets(self, nodes: Nodes, scores: Scores, splits: Splits, node: Int64s) -> None:
        """Fill in the categories that go left, of the splits of nodes on nominal columns."""
        if node.size == 0:
            return
        pairs = NodeColumns(node, splits.feature[node].astype(np.int64))
        most = np.minimum((nodes.end - nodes.begin)[node], self.table.categories[pairs.column])
        counts = np.empty(node.size, np.int64)
        given = self._of_pairs(nodes, scores, pairs)

        def list_some(a: int, b: int) -> None:
            codes = np.empty(int(most[a:b].sum()), np.uint32)
            list_left(*given, a, b, self._scratch(nodes), LeftLists(counts, codes))
            each = np.split(codes, np.cumsum(counts[a:b]))[:-1]
            for j, categories in zip(node[a:b], each, strict=True):
                splits.codes[j] = categories

        self._run(list_some, self._pair_spans(nodes, pairs))

    def _pair_spans(self, nodes: Nodes, pairs: NodeColumns) -> list[tuple[int, int]]:
        """Spans of (node, nominal column) pairs; columns of many categories cost by rows."""
        many = ~self.table.by_code[pairs.column]
        cost = np.where(many, (nodes.end - nodes.begin)[pairs.node], MAX_BINS)
        return spans(cost, self.n_threads, tuning.TUNING.chunk_rows // 4)

    def _of_pairs(self, nodes: Nodes, scores: Scores, pairs: NodeColumns) -> tuple[Any, ...]:
        """Arguments of the kernels of subsets; categories of columns of many are cached."""
        if self._many is None:
            self._many = many_categories(self.table, self.n_threads)
        return self.subset_rules, self._source, self._many, nodes, scores, pairs

    def _scratch(self, nodes: Nodes) -> Scratch | None:
        most_rows = int((nodes.end - nodes.begin).max())
        return new_scratch(self.table, self.task, most_rows, sorted_=False)

    def partition(self, begin: Int64s, end: Int64s, splits: Splits) -> tuple[Int64s, Floats]:
        middle, low, high = self.partition_rows(begin, end, splits)
        table = self.table
        return middle, thresholds(splits, low, high, table.by_code, table.highest, table.lowest)

    def partition_rows(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, Floats, Floats]:
        """Like `partition`, with the values on both sides of each cut in place of its threshold."""
        if self.cell_counts is not None:
            self.cell_counts.next_level()
        pieces = Chunks(*chunks(begin, end, tuning.TUNING.chunk_rows))
        sizes = pieces.end - pieces.begin
        parts = spans(sizes, self.n_threads, 2 * tuning.TUNING.chunk_rows)
        m = sizes.size
        parted = Parted(
            np.empty_like(self.entries), np.zeros(m, np.int64), np.empty(m), np.empty(m)
        )
        given = self.table, self.entries, splits.chosen, left_of(splits), self._fine, pieces

        def partition(a: int, b: int) -> None:
            is_left = np.zeros(int(self.table.categories.max(initial=0)), np.bool_)
            partition_chunks(*given, is_left, a, b, parted)

        self._run(partition, parts)
        lefts, node = parted.left, pieces.node
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        middle = begin + np.add.reduceat(lefts, starts)
        before = np.cumsum(lefts) - lefts
        to_left = begin[node] + before - before[starts][node]
        to_right = middle[node] + (pieces.begin - begin[node]) - (to_left - begin[node])
        moved = parted.entries, pieces, lefts, to_left, to_right, self.entries
        self._run(lambda a, b: place_chunks(*moved, a, b), parts)
        low = np.maximum.reduceat(parted.low, starts)
        high = np.minimum.reduceat(parted.high, starts)
        return middle, low, high

    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: Uint64s, bounds: Bounds | None = None
    ) -> Subtrees:
        self.cell_counts = None
        return self._finish(SmallNodes(begin, end, depth, keys, bounds, np.zeros_like(begin)))

    def grow_whole(
        self, sizes: Int64s, keys: Uint64s, rows_each: int
    ) -> tuple[Subtrees, Int64s] | None:
        """Grow trees of `sizes` entries, one after another, from their roots on as small nodes.

        Each has `rows_each` of the weights, and of targets that are no classes; 0 if all have the
        same. Also returns the places of row 0 of each. None where they must be grown one by one.
        """
        end, none = np.cumsum(sizes), np.zeros_like(sizes)
        roots = Bounds.of_roots(self.task.limits, self.task.interactions, sizes.size)
        nodes = SmallNodes(end - sizes, end, none, keys, roots, none)
        if sizes.size > 1 and rows_each > 0:
            in_parts = self._reads_ranks and not self._is_ranked
            if self.task.draws_cuts or in_parts or self._sorts_drawn or self._sorts_each(nodes):
                return None
            nodes = nodes._replace(first_row=np.arange(sizes.size) * rows_each)
        return self._finish(nodes), nodes.first_row

    def _finish(self, nodes: SmallNodes) -> Subtrees:
        """Build the subtrees of small nodes."""
        begin, end = nodes.begin, nodes.end
        by_column = ranks = None  # in place of codes: larger tables are not copied
        if self._grows_uncoded:
            by_column = self.data.by_column()
        if self._reads_ranks and self._is_ranked:
            coded = len(self.table.codes) > 0
            if coded and not self._max_bins:  # rows of a shard, which others have coded
                ranks = rank_table(self.table, self.n_threads)
            else:
                ranks = self.data.ranks(self._max_bins, self.task.exact, coded, self.n_threads)
        if self.task.draws_cuts:  # forests grow other trees in other threads
            return grow_of_drawn(self._source, self.task, by_column, ranks, nodes)
        order = np.argsort(begin - end, kind="stable")
        parts = spans((end - begin)[order], self.n_threads, 1 << 10)

        def finish(a: int, b: int) -> Subtrees:
            group = nodes.take(order[a:b])
            if self._reads_ranks and ranks is None:
                return grow_ranked_some(self._source, self.task, group)
            if ranks is not None or self._sorts_drawn or self._sorts_each(group):
                return grow_of_drawn(self._source, self.task, by_column, ranks, group)
            return finish_nodes(self._source, self.task, group)

        done = Subtrees.join(self._run(finish, parts))
        root = np.empty_like(begin)
        root[order] = done.root
        return done._replace(root=root)

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        out = np.zeros((begin.size, self.task.statistics), np.int64)
        parts = spans(end - begin, self.n_threads, tuning.TUNING.chunk_rows // 4)
        given = self.task.criterion, self.rows, self.entries, begin, end, out
        self._run(lambda a, b: node_statistics(*given, a, b), parts)
        return out

    def left_statistics(self, splits: Splits) -> list[tuple[int, Int64s]]:
        """Count and sum up the entries that go left by m cuts of the node of all entries.

        Each has its threshold: it is numeric, and ``inside`` a bin. Nothing is moved.
        """
        n, m = self.entries.size, splits.feature.size

        def add_up(begin: int, end: int) -> tuple[Int64s, Int64s]:
            sums, counts = np.zeros((2 * m, self.task.statistics), np.int64), np.zeros(m, np.int64)
            given = self.task.criterion, self.rows, self.entries, self.table.values
            left_statistics(*given, splits.chosen, sums, counts, begin, end)
            return counts, sums[1::2]

        parts = self._run(add_up, even_spans(n, m, self.n_threads, tuning.TUNING.chunk_rows))
        counts, sums = (sum(part) for part in zip(*parts, strict=True))
        return list(zip(counts.tolist(), sums, strict=True))

    def categories(
        self, begin: Int64s, end: Int64s, feature: Int32s
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        return node_categories(self.table, self.entries, begin, end, feature, self.n_threads)
