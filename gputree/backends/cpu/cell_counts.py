"""Which nodes and columns are counted into cells, and the counts kept from level to level.

parent      | counts of its cells                     |
children    | counted: the smaller | parent - smaller |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.cpu import tuning
from gputree.backends.cpu.counted import count_cells
from gputree.backends.cpu.finer import Cells, Finer
from gputree.backends.cpu.layout import Rows, Table
from gputree.backends.cpu.refine import alive_rows
from gputree.threads import even_spans, run

# Cells to a bin, at most: beyond, cells to a unit could overflow in a narrow bin.
WIDEST_SCALE = 1 << 24


class Counts(NamedTuple):
    """The cells of one node, in the columns that are counted."""

    begin: int
    end: int
    counted: NDArray[np.bool_]  # (d,)
    cells: NDArray  # flat

    @property
    def rows(self) -> int:
        return self.end - self.begin


class CellCounts:
    """Counts of cells, node by node, on the host.

    Parameters
    ----------
    task : Task
    table : Table
        Coded.
    rows : Rows
    dtype : np.dtype
        Of a counter.
    n_threads : int
    """

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

    def alive(
        self, histograms: NDArray, slots: Int64s, nodes: Int64s, total: Int64s, best: NDArray,
        bound: NDArray,
    ) -> Int64s:  # fmt: skip
        """Rows (m, d) of m nodes in living bins; 0 where columns are drawn, node by node."""
        task = self.task
        alive = np.zeros((nodes.size, self.table.missing.size), np.int64)
        if task.limits.max_features < alive.shape[1]:
            return alive
        bins = int(self.table.offset[-1])
        parts = even_spans(nodes.size, bins, self.n_threads, self.tuning.scored_cells)
        run(
            self.n_threads,
            alive_rows,
            [
                (
                    task.criterion, self.table, task.limits, self.rows.weight is not None,
                    histograms, slots, nodes, a, b, total, best, bound, alive,
                )
                for a, b in parts
            ],
        )  # fmt: skip
        return alive

    def refine_with(
        self, entries: NDArray, begin: Int64s, end: Int64s, nodes: Int64s, alive: Int64s
    ) -> list[tuple[Finer, Int64s]]:
        """What some nodes of a level are refined with, and which: some alone, the others together.

        Columns that are worth it are counted into cells. One column goes first, to raise the bar
        for the others, unless it has most of what is alive.
        """
        first, last = begin[nodes], end[nodes]
        counts = self.count(entries, first, last, self._wanted(last - first, alive))
        at_once = np.zeros(begin.size, np.bool_)
        at_once[nodes] = alive.sum(axis=1) <= 2 * alive.max(axis=1)
        none = Counts(0, 0, np.zeros(alive.shape[1], np.bool_), np.empty(0, self.dtype))
        others = nodes[[c is None for c in counts]]
        alone = [
            (self._finer(c, at_once), nodes[i : i + 1])
            for i, c in enumerate(counts)
            if c is not None
        ]
        return [*alone, (self._finer(none, at_once), others)]

    def _wanted(self, rows: Int64s, alive: Int64s) -> NDArray[np.bool_]:
        """Columns (m, d) that are worth counting."""
        few = np.maximum(self.tuning.alive_share * rows, 1)
        wanted = alive >= few[:, None]
        wanted &= (rows >= self.tuning.node_share * self.table.values.shape[0])[:, None]
        return wanted & (self.cells.size > 1)

    def _finer(self, counts: Counts, at_once: NDArray[np.bool_]) -> Finer:
        return Finer(
            cells=self.cells,
            counted=counts.counted,
            counts=counts.cells,
            at_once=at_once,
            sift_rows=self.tuning.sift_rows,
            cell_rows=self.tuning.sifted_rows,
        )

    def next_level(self) -> None:
        """The nodes counted so far become parents."""
        self._parents, self._counts = self._counts, []

    def count(
        self, entries: NDArray, begin: Int64s, end: Int64s, wanted: NDArray
    ) -> list[Counts | None]:
        """Count nodes ``begin .. end`` in the columns wanted, those wanting none left out."""
        nodes: list[Counts | None] = [None] * begin.size
        work: list[tuple[Counts, NDArray[np.bool_]]] = []
        less: list[tuple[Counts, Counts, NDArray[np.bool_]]] = []
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
            self._clear(larger, wanted[j] & ~known)
            work += [(smaller, both), (larger, wanted[j] & ~known)]
            less.append((larger, smaller, known))
            if twin.size and wanted[twin[0]].any():
                nodes[twin[0]] = smaller
        self._run(entries, work)
        for larger, smaller, columns in less:
            self._subtract(larger, smaller, columns)
        self._counts += [node for node in nodes if node is not None]
        return nodes

    def _take_parent(self, begin: int, end: int, wanted: NDArray[np.bool_]) -> Counts | None:
        """The parent of a larger sibling, if it has columns that are wanted: it is used up."""
        for i, parent in enumerate(self._parents):
            inside = parent.begin <= begin and end <= parent.end
            if inside and 2 * (end - begin) >= parent.rows and (parent.counted & wanted).any():
                return self._parents.pop(i)
        return None

    def _new(self, begin: int, end: int, counted: NDArray[np.bool_]) -> Counts:
        cells = np.zeros(int(self.cells.first[-1]) * self.channels, self.dtype)
        return Counts(begin, end, counted, cells)

    def _columns(self, cells: NDArray, columns: NDArray[np.bool_]) -> list[NDArray]:
        """The cells of some columns."""
        first = self.cells.first * self.channels
        return [cells[first[f] : first[f + 1]] for f in np.flatnonzero(columns)]

    def _clear(self, counts: Counts, columns: NDArray[np.bool_]) -> None:
        for cells in self._columns(counts.cells, columns):
            cells[:] = 0

    def _subtract(self, whole: Counts, part: Counts, columns: NDArray[np.bool_]) -> None:
        parts = self._columns(part.cells, columns)
        for cells, less in zip(self._columns(whole.cells, columns), parts, strict=True):
            cells -= less

    def _run(self, entries: NDArray, work: list[tuple[Counts, NDArray[np.bool_]]]) -> None:
        """Count columns of nodes, some at a time so that their counters stay in a cache."""
        widest = int(np.diff(self.cells.first).max()) * self.channels * self.dtype.itemsize
        width = max(self.tuning.group_bytes // max(widest, 1), 1)
        tasks = []
        for counts, columns in sorted(work, key=lambda item: -item[0].rows):
            chosen = np.flatnonzero(columns)
            for i in range(0, chosen.size, width):
                tasks.append(
                    (self.task.criterion, self.table, self.rows, self.cells, entries, counts.begin,
                     counts.end, chosen[i : i + width], self.channels, counts.cells)
                )  # fmt: skip
        run(self.n_threads, count_cells, tasks)


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
