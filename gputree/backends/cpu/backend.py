"""The CPU backend: NumPy arrays, numba kernels, a pool of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._memory import require_memory
from gputree.backends.base import Int64s, Splits, Subtrees, Task
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu import finish as finishing
from gputree.backends.cpu import histogram as histograms_
from gputree.backends.cpu.block import new_block
from gputree.backends.cpu.layout import Rows, Table
from gputree.backends.cpu.partition import node_statistics, partition_chunks, place_chunks
from gputree.backends.cpu.pool import chunks, run, spans
from gputree.backends.cpu.refine import refine_nodes
from gputree.backends.cpu.score import score_nodes
from gputree.backends.thresholds import thresholds
from gputree.dtypes import CODE, ROW

# Rows of a node that one thread takes at a time.
CHUNK_ROWS = 1 << 16

# Partial histograms, in all, that threads may fill side by side.
PARTIAL_BYTES = 1 << 25


# Histograms of one level, at least; beyond it the table's own size sets the budget.
LEAST_HISTOGRAM_BYTES = 1 << 25


class Scores(NamedTuple):
    """Best boundary of every (node, column), and the greatest bound of its bins."""

    total: NDArray[np.int64]  # (m, channels)
    best: NDArray[np.float64]  # (m, d)
    bin: NDArray[np.int32]  # (m, d)
    missing_left: NDArray[np.bool_]  # (m, d)
    bound: NDArray[np.float64]  # (m, d)


class CpuBackend:
    """Primitives of `gputree.backends.base.Backend` on the host.

    Parameters
    ----------
    values : (n, d) float32 or float64 array, C-contiguous
        The table, NaN where missing.
    missing : (d,) bool array
        Columns that hold missing values.
    task : Task
    n_threads : int
    """

    name = "cpu"

    def __init__(self, values: NDArray, missing: NDArray[np.bool_], task: Task, n_threads: int):
        self.task = task
        self.channels = task.channels
        self.n_threads = n_threads
        self.rows = Rows(task.target, task.weight, task.square, task.square_rest)
        self.entries = np.arange(values.shape[0], dtype=ROW)
        self.refined_pairs = 0
        self.scanned_pairs = 0
        d = values.shape[1]
        self.table = Table(
            values=values,
            codes=np.empty((0, d), CODE),
            offset=np.zeros(d + 1, np.int64),
            missing=missing,
            single=np.empty(0, np.bool_),
            by_code=np.zeros(d, np.bool_),
            greatest=np.empty((0, 0)),
            least=np.empty((0, 0)),
        )

    def report(self) -> dict[str, int]:
        """Pairs (row, column) at nodes split by histogram, and how many were refined."""
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    # ----------------------------------------------------------- coding
    def encode(self, max_bins: int) -> None:
        table = self.table
        values = table.values
        n, d = values.shape
        most = np.full(d, max_bins) - table.missing
        require_memory(n * d, f"Coding {n:,} rows x {d:,} columns", "Use fewer rows or columns.")
        codes = np.empty((n, d), CODE)
        bins = coding.empty_bins(d, values.dtype)
        sampled = self.task.exact and n > coding.SAMPLE_ROWS
        sample = values
        if sampled:
            sample = values[np.linspace(0, n - 1, coding.SAMPLE_ROWS).astype(np.int64)]
        by_value = not self.task.exact and n > coding.SAMPLE_ROWS
        run(
            self.n_threads if sample.size > CHUNK_ROWS else 1,
            coding.fit_columns_by_value if by_value else coding.fit_columns,
            [(bins, sample, range(f, f + 1), most) for f in range(d)],
        )
        self._encode(bins, most, codes, sampled)
        offset, single = coding.single_bins(bins, table.missing)
        self.table = table._replace(
            codes=codes,
            offset=offset,
            single=single if self.task.exact else np.ones_like(single),
            by_code=bins.lossless if self.task.exact else np.ones(d, np.bool_),
            greatest=bins.greatest.astype(np.float64),
            least=bins.least.astype(np.float64),
        )

    def _encode(self, bins: coding.Bins, most: Int64s, codes: NDArray, sampled: bool) -> None:
        """Code the table; columns with values that the sample missed get their bins anew."""
        checked = np.flatnonzero(bins.lossless) if sampled else np.empty(0, np.int64)
        unseen = self._encode_columns(bins, None, checked, codes)
        again = [int(f) for f in checked if unseen[f].size]
        for f in again:
            values = self.table.values[:, f]
            if unseen[f].size >= coding.MOST_UNSEEN:
                known = np.sort(values)
                known = known[: np.searchsorted(known, np.nan)]
            else:
                known = np.union1d(bins.least[f, : bins.count[f]], unseen[f])
            coding.fit_column(bins, f, known, int(most[f]))
        if again:
            self._encode_columns(bins, np.array(again), np.empty(0, np.int64), codes)

    def _encode_columns(
        self, bins: coding.Bins, columns: Int64s | None, checked: Int64s, codes: NDArray
    ) -> list[NDArray]:
        """Code `columns`, or all; returns the values unseen so far in those `checked`."""
        values = self.table.values
        n, d = values.shape
        one = values.dtype.type(1)
        half, top = one / 2, one * (coding.GRID_CELLS - 1)
        crowded = np.flatnonzero(bins.steps > 1) if columns is None else columns
        missing = np.flatnonzero(self.table.missing)
        parts = spans(np.full(n, d), self.n_threads, CHUNK_ROWS)
        places = coding.MOST_UNSEEN if checked.size else 0
        unseen = [np.empty((d, places), values.dtype) for _ in parts]
        counts = [np.zeros(d, np.int64) for _ in parts]
        run(
            self.n_threads,
            coding.encode_rows,
            [
                (values, bins, columns is None, crowded, missing, checked, a, b, half, top, codes,
                 unseen[i], counts[i])
                for i, (a, b) in enumerate(parts)
            ],
        )  # fmt: skip
        return [
            np.concatenate([u[f, : c[f]] for u, c in zip(unseen, counts, strict=True)])
            for f in range(d)
        ]

    # ------------------------------------------------------- histograms
    @property
    def histogram_cells(self) -> int:
        return int(self.table.offset[-1])

    @property
    def most_histogram_bytes(self) -> int:
        return max(LEAST_HISTOGRAM_BYTES, self.table.values.nbytes // 2)

    @property
    def histogram_bytes(self) -> int:
        return self.histogram_cells * self.task.channels * self._cell_dtype.itemsize

    @property
    def _cell_dtype(self) -> np.dtype:
        counted = self.rows.weight is None and self.rows.square is None
        return np.dtype(np.uint32 if counted else np.int64)

    def new_histograms(self, m: int) -> NDArray:
        return np.zeros((m, self.histogram_cells * self.task.channels), self._cell_dtype)

    def histogram(self, begin: Int64s, end: Int64s, out: NDArray, slots: Int64s) -> None:
        rows = int((end - begin).sum())
        share = max(CHUNK_ROWS // 4, -(-rows // (2 * self.n_threads)))
        share = max(share, -(-rows // max(PARTIAL_BYTES // self.histogram_bytes, 1)))
        if self.n_threads == 1:
            share = max(rows, 1)
        owner, first, last = chunks(begin, end, share)
        extra = np.flatnonzero(np.diff(owner, prepend=-1) == 0)  # chunks after a node's first
        partial = self.new_histograms(extra.size)
        target = [out[slots[j]] for j in owner]
        for i, c in enumerate(extra):
            target[c] = partial[i]
        sizes = last - first
        order = np.argsort(-sizes, kind="stable")
        groups = spans(sizes[order], self.n_threads, CHUNK_ROWS // 16)
        run(
            self.n_threads,
            self._histogram_chunks,
            [(order[a:b], first, last, target) for a, b in groups],
        )
        for i, c in enumerate(extra):
            out[slots[owner[c]]] += partial[i]

    def _histogram_chunks(
        self, chunk: Int64s, first: Int64s, last: Int64s, target: list[NDArray]
    ) -> None:
        for c in chunk:
            histograms_.histogram(
                self.task.criterion, self.table, self.rows, self.entries, first[c], last[c],
                self.task.channels, target[c],
            )  # fmt: skip

    def subtract(
        self, whole: NDArray, whole_slots: Int64s, out: NDArray, part_slots: Int64s, slots: Int64s
    ) -> None:
        parts = spans(np.full(slots.size, out.shape[1]), self.n_threads, 1 << 18)
        run(
            self.n_threads,
            histograms_.subtract_nodes,
            [(whole, whole_slots, out, part_slots, slots, a, b) for a, b in parts],
        )

    # ----------------------------------------------------------- splits
    def score(self, histograms: NDArray, slots: Int64s) -> Scores:
        m, d = slots.size, self.table.codes.shape[1]
        scores = Scores(
            total=np.empty((m, self.task.channels), np.int64),
            best=np.empty((m, d)),
            bin=np.empty((m, d), np.int32),
            missing_left=np.empty((m, d), np.bool_),
            bound=np.empty((m, d)),
        )
        parts = spans(np.full(m, self.histogram_cells), self.n_threads, 1)
        run(
            self.n_threads,
            score_nodes,
            [
                (
                    self.task.criterion, self.table, self.task.limits, self.rows.weight is not None,
                    histograms, slots, a, b, *scores,
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
    ) -> Splits:
        splits = Splits.none(begin.size)
        parts = spans(end - begin, self.n_threads, 1)
        reports = [np.zeros(1, np.int64) for _ in parts]
        run(
            self.n_threads,
            refine_nodes,
            [
                (
                    self.task.criterion, self.table, self.rows, self.entries, begin, end,
                    self.task.limits, self.rows.weight is not None, self.task.exact, keys,
                    histograms, slots, a, b, *scores, splits, report,
                )
                for (a, b), report in zip(parts, reports, strict=True)
            ],
        )  # fmt: skip
        self.refined_pairs += sum(int(report[0]) for report in reports)
        self.scanned_pairs += int((end - begin).sum()) * self.table.codes.shape[1]
        return splits

    def partition(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64]]:
        node, first, last = chunks(begin, end, CHUNK_ROWS)
        parts = spans(last - first, self.n_threads, CHUNK_ROWS // 4)
        lefts = np.zeros(node.size, np.int64)
        low = np.empty(node.size)
        high = np.empty(node.size)
        out = np.empty_like(self.entries)
        run(
            self.n_threads,
            partition_chunks,
            [
                (self.table, self.entries, splits, node, first, last, a, b, lefts, low, high, out)
                for a, b in parts
            ],
        )
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
        low = np.maximum.reduceat(low, starts)
        high = np.minimum.reduceat(high, starts)
        table = self.table
        return middle, thresholds(splits, low, high, table.by_code, table.greatest, table.least)

    # --------------------------------------------------------- subtrees
    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
    ) -> Subtrees:
        sizes = end - begin
        order = np.argsort(-sizes, kind="stable")
        parts = spans(sizes[order], self.n_threads, 1 << 10)
        done = run(
            self.n_threads,
            self._finish_span,
            [(begin[s], end[s], depth[s], keys[s]) for s in (order[a:b] for a, b in parts)],
        )
        starts = np.cumsum([0] + [part.feature.size for part in done])
        root = np.empty(begin.size, np.int64)
        shifted = []
        for (a, b), start, part in zip(parts, starts, done, strict=False):
            root[order[a:b]] = part.root + start
            child = part.first_child
            shifted.append(part._replace(first_child=np.where(child < 0, -1, child + start)))
        fields = [np.concatenate(column) for column in zip(*shifted, strict=True)]
        return Subtrees(root, *fields[1:])

    def _finish_span(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
    ) -> Subtrees:
        sizes = end - begin
        block = new_block(self.table, self.task, int(sizes.max()), self.entries.dtype)
        out = finishing.new_subtrees(sizes, depth, self.task.limits)
        free = finishing.finish_nodes(
            self.task.criterion, self.table, self.rows, self.entries, begin, end, depth, keys,
            self.task.limits, block, out,
        )  # fmt: skip
        return Subtrees._make([out.root, *(field[:free].copy() for field in out[1:])])

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        out = np.zeros((begin.size, self.task.statistics), np.int64)
        parts = spans(end - begin, self.n_threads, CHUNK_ROWS // 4)
        run(
            self.n_threads,
            node_statistics,
            [
                (self.task.criterion, self.rows, self.entries, begin, end, a, b, out)
                for a, b in parts
            ],
        )
        return out
