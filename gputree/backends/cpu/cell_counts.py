"""Which nodes and columns are counted into cells, and the counts kept from level to level.

parent      | counts of its cells                     |
children    | counted: the smaller | parent - smaller |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Int64s, Task
from gputree.backends.cpu import tuning
from gputree.backends.cpu.cut import count_row
from gputree.backends.cpu.jit import PREFETCH_ROWS, borrowing, kernel, prefetch
from gputree.backends.cpu.layout import Nodes, Rows, Rules, Scores, Source, Table
from gputree.backends.cpu.refine import candidate_rows
from gputree.backends.cpu.sub_bins import Cells, Finer, cell_of
from gputree.threads import even_spans, run

# Cells to a bin, at most: beyond, cells to a unit could overflow in a narrow bin.
WIDEST_SCALE = 1 << 24

# Entries that are counted at once, column by column: their values stay in a cache, and so do the
# counters of a column.
COUNTED_ROWS = 1 << 10


@kernel
def count_cells(criterion, source, cells, channels, begin, end, columns, out):
    """Add entries ``begin .. end`` to the sub-bins of `columns`, flat, `channels` each."""
    for first in range(begin, end, COUNTED_ROWS):
        last = min(first + COUNTED_ROWS, end)
        for f in columns:
            count_column(criterion, source, cells, channels, first, last, f, f == columns[0], out)


@borrowing
def count_column(criterion, source, cells, channels, begin, end, f, is_first, out):
    """As `count_cells`, of one column; the first brings the rows of the others."""
    table, rows, entries = source
    codes, values = table.codes, table.values
    final = np.uintp(entries.size - 1)
    width, column = np.uintp(channels), np.uintp(f)
    for i in range(np.uintp(begin), np.uintp(end)):
        if is_first:
            ahead = entries[min(i + np.uintp(PREFETCH_ROWS), final)]
            prefetch(codes, ahead, column)
            prefetch(values, ahead, column)
            prefetch(rows.target, ahead, 0)
        row = np.uintp(entries[i])
        cell = cell_of(cells, column, codes[row, column], values[row, column])
        count_row(criterion, rows, row, out, cell * width, channels)


class Counts(NamedTuple):
    """The cells of one node, in the columns that are counted."""

    begin: int
    end: int
    counted: Bools  # (d,)
    cells: NDArray  # flat

    @property
    def rows(self) -> int:
        return self.end - self.begin


class CellCounts:
    """Counts of cells, node by node, of a coded table; `dtype` is that of a counter."""

    def __init__(
        self, task: Task, table: Table, rows: Rows, dtype: np.dtype, n_threads: int
    ) -> None:
        self.task, self.table, self.rows = task, table, rows
        self.dtype, self.channels = dtype, task.channels
        self.n_threads = n_threads
        self.tuning = tuning.TUNING
        self.cells = new_cells(table, self._size())
        self._parents: list[Counts] = []
        self._counts: list[Counts] = []

    def _size(self) -> int:
        """Cells to a bin: a power of two, 1 if counting is not worth it."""
        own, table = self.tuning, self.table
        bins = int(np.diff(table.offset).max())
        most = own.column_bytes // (bins * self.channels * self.dtype.itemsize)
        most = min(most, table.values.shape[0] // (bins * own.cell_rows))
        return 1 << (max(most, 1).bit_length() - 1)

    def candidates(self, rules: Rules, nodes: Nodes, scores: Scores, chosen: Int64s) -> Int64s:
        """Rows (m, d) of m nodes in candidate bins; 0 where columns are drawn, node by node."""
        out = np.zeros((chosen.size, self.table.missing.size), np.int64)
        if self.task.limits.max_features < out.shape[1]:
            return out
        bins = int(self.table.offset[-1])
        parts = even_spans(chosen.size, bins, self.n_threads, self.tuning.scored_cells)
        given = rules, self.table, nodes, scores, chosen, out
        run(self.n_threads, lambda a, b: candidate_rows(*given, a, b), parts)
        return out

    def refine_with(
        self, entries: NDArray, begin: Int64s, end: Int64s, nodes: Int64s, candidates: Int64s
    ) -> list[tuple[Finer, Int64s]]:
        """What some nodes of a level are refined with, and which: some alone, the others together.

        Columns that are worth it are counted into cells. One column goes first, to raise the best
        score for the others, unless it has most of the `candidates`: rows of shape (m, d).
        """
        first, last = begin[nodes], end[nodes]
        counts = self.count(entries, first, last, self._wanted(last - first, candidates))
        at_once = np.zeros(begin.size, np.bool_)
        at_once[nodes] = candidates.sum(axis=1) <= 2 * candidates.max(axis=1)
        none = Counts(0, 0, np.zeros(candidates.shape[1], np.bool_), np.empty(0, self.dtype))
        others = nodes[[c is None for c in counts]]
        alone = [(own, nodes[i : i + 1]) for i, own in enumerate(counts) if own is not None]
        return [(self._finer(own, at_once), those) for own, those in [*alone, (none, others)]]

    def _wanted(self, rows: Int64s, candidates: Int64s) -> Bools:
        """Columns (m, d) that are worth counting: those of many candidates, in large nodes.

        Together they have as many candidates as the node has rows: to count one takes as long as
        to find most of its rows.
        """
        few = np.maximum(self.tuning.candidate_share * rows, 1)
        wanted = candidates >= few[:, None]
        wanted &= (np.where(wanted, candidates, 0).sum(axis=1) >= rows)[:, None]
        wanted &= (rows >= self.tuning.node_share * self.table.values.shape[0])[:, None]
        return wanted & (self.cells.size > 1)

    def _finer(self, counts: Counts, at_once: Bools) -> Finer:
        own, rows = self.tuning, self.tuning.subdivided_rows
        return Finer(self.cells, counts.counted, counts.cells, at_once, rows, own.sub_bin_rows)

    def next_level(self) -> None:
        """The nodes counted so far become parents."""
        self._parents, self._counts = self._counts, []

    def count(
        self, entries: NDArray, begin: Int64s, end: Int64s, wanted: NDArray
    ) -> list[Counts | None]:
        """Count nodes ``begin .. end`` in the columns wanted, those wanting none left out."""
        nodes: list[Counts | None] = [None] * begin.size
        work: list[tuple[Counts, Bools]] = []
        less: list[tuple[Counts, Counts, Bools]] = []
        for j in np.argsort(begin - end, kind="stable"):  # larger siblings first
            if nodes[j] is not None or not wanted[j].any():
                continue
            a, b = int(begin[j]), int(end[j])
            parent = self._take_parent(a, b, wanted[j])
            if parent is None:
                nodes[j] = counts = self._new(a, b, wanted[j])
                work.append((counts, wanted[j]))
                continue
            known = parent.counted & wanted[j]
            other = (b, parent.end) if a == parent.begin else (parent.begin, a)
            twin = np.flatnonzero((begin == other[0]) & (end == other[1]))
            both = known | wanted[twin[0]] if twin.size else known
            smaller = self._new(*other, both)
            nodes[j] = larger = parent._replace(begin=a, end=b, counted=wanted[j])
            for cells in self._columns(larger.cells, wanted[j] & ~known):
                cells[:] = 0
            work += [(smaller, both), (larger, wanted[j] & ~known)]
            less.append((larger, smaller, known))
            if twin.size and wanted[twin[0]].any():
                nodes[twin[0]] = smaller
        self._run(entries, work)
        for larger, smaller, columns in less:
            parts = self._columns(smaller.cells, columns)
            for cells, part in zip(self._columns(larger.cells, columns), parts, strict=True):
                cells -= part
        self._counts += [node for node in nodes if node is not None]
        return nodes

    def _take_parent(self, begin: int, end: int, wanted: Bools) -> Counts | None:
        """The parent of a larger sibling, if it has columns that are wanted: it is used up."""
        for i, parent in enumerate(self._parents):
            inside = parent.begin <= begin and end <= parent.end
            if inside and 2 * (end - begin) >= parent.rows and (parent.counted & wanted).any():
                return self._parents.pop(i)
        return None

    def _new(self, begin: int, end: int, counted: Bools) -> Counts:
        cells = np.zeros(int(self.cells.first[-1]) * self.channels, self.dtype)
        return Counts(begin, end, counted, cells)

    def _columns(self, cells: NDArray, columns: Bools) -> list[NDArray]:
        """The cells of some columns."""
        first = self.cells.first * self.channels
        return [cells[first[f] : first[f + 1]] for f in np.flatnonzero(columns)]

    def _run(self, entries: NDArray, work: list[tuple[Counts, Bools]]) -> None:
        """Count columns of nodes; threads share those of one."""
        source = Source(self.table, self.rows, entries)
        tasks = []
        for counts, columns in sorted(work, key=lambda item: -item[0].rows):
            parts = np.array_split(np.flatnonzero(columns), self.n_threads)
            tasks += [(counts, chosen) for chosen in parts if chosen.size]
        given = self.task.criterion, source, self.cells, self.channels

        def count(counts: Counts, columns: Int64s) -> None:
            count_cells(*given, counts.begin, counts.end, columns, counts.cells)

        run(self.n_threads, count, tasks)


def new_cells(table: Table, size: int) -> Cells:
    """Cut each bin into `size` cells of equal width, in columns that codes do not decide.

    Between the least and the greatest value that its edges were found from: others that fall
    into the bin are in its first cell or in its last.
    """
    dtype = table.values.dtype.type
    half = dtype(0.5)
    narrow = np.finfo(dtype).tiny * dtype(WIDEST_SCALE)
    low = table.least.astype(dtype) * half
    width = table.greatest.astype(dtype) * half - low
    scale = np.zeros_like(width)
    np.divide(dtype(size), width, out=scale, where=width > narrow)
    bins = np.where(table.by_code, 0, np.diff(table.offset))
    first = np.append(0, np.cumsum(bins * size))
    return Cells(size, first, low, scale, half, dtype(size - 1), narrow)
