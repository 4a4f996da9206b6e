"""Histograms of sub-bins in some nodes and columns, kept from one level for the next.

parent      | counts of its cells                     |
children    | counted: the smaller | parent - smaller |
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Rows, Task
from gputree.backends.cpu import tuning
from gputree.backends.cpu.cut import count_row
from gputree.backends.cpu.layout import EntrySource, Fine, Nodes, Scores, SearchRules, Table
from gputree.backends.cpu.refine import candidate_rows
from gputree.backends.cpu.sub_bins import FINE_BITS, FINE_CELLS, Finer, SubBinGrid, make_fine
from gputree.backends.cpu.table import FineCodes
from gputree.base.dtypes import Bools, Int64s
from gputree.base.threads import even_spans, run
from gputree.compilation import kernel

# Width of the narrowest bin that is divided: the scale of narrower ones could overflow.
NARROWEST = 1 << 24


@kernel
def count_cells(criterion, source, fine, cells, channels, begin, end, columns, out):
    """Add entries ``begin .. end`` to the sub-bins of `columns`, flat, `channels` each."""
    width, shift = np.uintp(channels), np.uintp(cells.shift)
    for f in columns:
        column, first = np.uintp(f), np.uintp(cells.first[f])
        for i in range(np.uintp(begin), np.uintp(end)):
            row = np.uintp(source.entries[i])
            cell = first + (np.uintp(fine.code[column, row]) >> shift)
            count_row(criterion, source.rows, row, out, cell * width, channels)


class Counts(NamedTuple):
    """Sub-bin histograms of one node, in the columns that are counted."""

    begin: int
    end: int
    counted: Bools  # (d,)
    cells: NDArray  # flat

    @property
    def rows(self) -> int:
        return self.end - self.begin


class CellCounts:
    """Sub-bin histograms, node by node, of a coded table; `dtype` is the type of a counter."""

    def __init__(
        self,
        task: Task,
        table: Table,
        rows: Rows,
        dtype: np.dtype,
        store: FineCodes,
        n_threads: int,
    ) -> None:
        self.task, self.table, self.rows = task, table, rows
        self.dtype, self.channels = dtype, task.channels
        self.n_threads = n_threads
        self.tuning = tuning.TUNING
        self.cells = new_cells(table, self._size())
        self._store, d = store, table.missing.size
        self.fine = Fine(store.code, np.zeros(d, np.bool_))
        self._led = np.zeros(d)  # rows of nodes in which the column had the highest bound
        self._parents: list[Counts] = []
        self._counts: list[Counts] = []

    def _size(self) -> int:
        """Sub-bins per bin: a power of two, 1 if counting is not worth it."""
        tuned, table = self.tuning, self.table
        bins = int(np.diff(table.offset).max())
        most = tuned.column_bytes // (bins * self.channels * self.dtype.itemsize)
        most = min(most, table.values.shape[0] // (bins * tuned.cell_rows), FINE_CELLS)
        return 1 << (max(most, 1).bit_length() - 1)

    def refine_with(
        self, rules: SearchRules, entries: NDArray, nodes: Nodes, scores: Scores, chosen: Int64s
    ) -> list[tuple[Finer, Int64s]]:
        """Groups of nodes with the sub-bins that each group is refined with.

        A node with counted columns is a group by itself; the others are one. Columns that are worth
        it, by the rows of a node in candidate bins, are counted into sub-bins.
        """
        candidates = np.zeros((chosen.size, self.table.missing.size), np.int64)
        if self.task.limits.max_features == candidates.shape[1]:  # else drawn, node by node
            bins = int(self.table.offset[-1])
            parts = even_spans(chosen.size, bins, self.n_threads, self.tuning.scored_cells)
            given = rules, self.table, nodes, scores, chosen, candidates
            run(self.n_threads, lambda a, b: candidate_rows(*given, a, b), parts)
        first, last = nodes.begin[chosen], nodes.end[chosen]
        wanted = self._wanted(last - first, candidates)
        lead = scores.bound[chosen].argmax(axis=1)
        is_read = candidates[np.arange(lead.size), lead] > 0
        self._make_fine(wanted, np.where(is_read, last - first, 0), lead)
        wanted &= self.fine.known
        counts = self.count(entries, first, last, wanted)
        none = Counts(0, 0, np.zeros(candidates.shape[1], np.bool_), np.empty(0, self.dtype))
        rows = float(self.channels * self.tuning.sub_bin_rows)
        others = chosen[[c is None for c in counts]]
        alone = [(count, chosen[i : i + 1]) for i, count in enumerate(counts) if count is not None]
        return [
            (Finer(self.cells, self.fine, count.counted, count.cells, rows), those)
            for count, those in [*alone, (none, others)]
        ]

    def _make_fine(self, wanted: Bools, rows: Int64s, lead: Int64s) -> None:
        """Make the fine codes of columns that are wanted, or whose reads would have paid for them.

        In each of m nodes one column, `lead`, has the highest bound, and `rows` of it are read.
        """
        n, coded, store = self.table.codes.shape[0], self.fine.known, self._store
        self._led += np.bincount(lead, rows, coded.size)
        worth = wanted.any(axis=0) | (self._led >= self.tuning.led_share * n)
        columns = np.flatnonzero(worth & ~coded & ~self.table.by_code)
        if columns.size == 0 or store.code.size == 0:
            return
        with store.lock:  # other growths over the table use the same codes
            columns_to_make = columns[~store.known[columns]]
            given = self.table, self.cells, columns_to_make
            parts = even_spans(n, columns_to_make.size, self.n_threads, self.tuning.chunk_rows)
            run(self.n_threads, lambda a, b: make_fine(*given, a, b, store.code), parts)
            store.known[columns_to_make] = True
        coded[columns] = True

    def _wanted(self, rows: Int64s, candidates: Int64s) -> Bools:
        """Columns (m, d) that are worth counting: they have many candidates, in large nodes.

        Together they have as many candidates as the node has rows: to count one takes as long as
        to find most of its rows.
        """
        few = np.maximum(self.tuning.candidate_share * rows, 1)
        wanted = candidates >= few[:, None]
        wanted &= (np.where(wanted, candidates, 0).sum(axis=1) >= rows)[:, None]
        wanted &= (rows >= self.tuning.node_share * self.table.values.shape[0])[:, None]
        return wanted & (self.cells.size > 1)

    def next_level(self) -> None:
        """The nodes counted so far become parents."""
        self._parents, self._counts = self._counts, []

    def count(
        self, entries: NDArray, begin: Int64s, end: Int64s, wanted: NDArray
    ) -> list[Counts | None]:
        """Count nodes ``begin .. end`` in the columns wanted; None for nodes that want none."""
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
            counted = parent.counted & wanted[j]
            other = (b, parent.end) if a == parent.begin else (parent.begin, a)
            twin = np.flatnonzero((begin == other[0]) & (end == other[1]))
            both = counted | wanted[twin[0]] if twin.size else counted
            smaller = self._new(*other, both)
            nodes[j] = larger = parent._replace(begin=a, end=b, counted=wanted[j])
            for cells in self._columns(larger.cells, wanted[j] & ~counted):
                cells[:] = 0
            work += [(smaller, both), (larger, wanted[j] & ~counted)]
            less.append((larger, smaller, counted))
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
        """Remove and return the parent of a larger sibling, if it has wanted columns."""
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
        """Count columns of nodes; threads share the columns of a node."""
        source = EntrySource(self.table, self.rows, entries)
        tasks = []
        for counts, columns in sorted(work, key=lambda item: -item[0].rows):
            parts = np.array_split(np.flatnonzero(columns), self.n_threads)
            tasks += [(counts, chosen) for chosen in parts if chosen.size]
        given = self.task.criterion, source, self.fine, self.cells, self.channels

        def count(counts: Counts, columns: Int64s) -> None:
            count_cells(*given, counts.begin, counts.end, columns, counts.cells)

        run(self.n_threads, count, tasks)


def new_cells(table: Table, size: int) -> SubBinGrid:
    """Divide each bin into sub-bins of equal width, in columns whose cuts need the values.

    They are between the minimum and maximum value that the bin was fitted to; other values of the
    bin are in its first or last one. `size` per bin are counted.
    """
    dtype = table.values.dtype.type
    half = dtype(0.5)
    narrow = np.finfo(dtype).tiny * dtype(NARROWEST)
    low = table.lowest.astype(dtype) * half
    width = table.highest.astype(dtype) * half - low
    scale = np.zeros_like(width)
    np.divide(dtype(FINE_CELLS), width, out=scale, where=width > narrow)
    bins = np.where(table.by_code, 0, np.diff(table.offset))
    first = np.append(0, np.cumsum(bins * size))
    shift = FINE_BITS - (size.bit_length() - 1)
    return SubBinGrid(size, shift, first, low, scale, half, dtype(FINE_CELLS - 1))
