"""The split of a node whose rows lie in parts: exact cuts among rows gathered from all of them.

    boundaries of bins      scored from the histogram, as anywhere
    living bins             the rows of one column, or some, gathered, as many as there is room
                            for; refined as a table of one column, by the CPU's own kernels
    a bin of too many       counted into cells (`sift`)

Which rows are gathered depends on the cuts found before; the best cut does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Limits
from gputree.backends.cpu import cell_counts, tuning
from gputree.backends.cpu.backend import CpuBackend, Nodes, Scores
from gputree.backends.cpu.draw import drawn_columns
from gputree.backends.cpu.finer import GATHER_SHARE, Finer
from gputree.backends.cpu.layout import Rows, Table
from gputree.backends.cpu.refine import best_boundary_of
from gputree.backends.partitioned.gather import (
    Gathered,
    count_living,
    gather_living,
    refine_column,
)
from gputree.backends.partitioned.sift import Bin, Cut, Interval, Sifter

# Of a row that is gathered: its code, its statistics and two places, beside two copies of its
# value.
ROW_BYTES = 1 + 3 * 8 + 2 * 4


class Node(NamedTuple):
    """A node to split: its entries in every part, what its histogram and scores say."""

    first: Int64s  # (parts,)
    last: Int64s
    cells: NDArray
    total: NDArray[np.int64]  # (channels,)
    best: NDArray[np.float64]  # (d,)
    bin: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    bound: NDArray[np.float64]
    key: np.uint64
    mean: tuple[float, float]  # what its mean lies between

    @property
    def rows(self) -> int:
        return int((self.last - self.first).sum())


class Refiner:
    """Chooses the cuts of nodes, of several at once where threads ask.

    Parameters
    ----------
    head : CpuBackend
        Over a coded table without rows: what all parts share.
    parts : list of CpuBackend
    most_bytes : int
        Of the rows that are gathered at once for a node.
    """

    def __init__(self, head: CpuBackend, parts: list[CpuBackend], most_bytes: int) -> None:
        self.head, self.parts = head, parts
        self.table, self.task = head.table, head.task
        value = self.table.values.dtype.itemsize
        self.most_rows = max(most_bytes // (2 * value + ROW_BYTES), 1)
        self.weighted = self.task.weight is not None
        self._refined: list[int] = []  # many threads append
        self._cells = cell_counts.new_cells(self.table, 1)

    @property
    def refined_pairs(self) -> int:
        """Pairs (row, column) that were sorted."""
        return sum(self._refined)

    def choose(self, node: Node) -> Cut:
        """Best cut of a node: over all columns, or over those drawn for it.

        As `gputree.backends.cpu.refine.choose_cut`.
        """
        order = drawn_columns(self.task.limits.max_features, node.key, node.best.size)
        cut: Cut = (-np.inf, 0, False, 0, False, 0.0)
        done = 0
        while done < order.size and (done == 0 or cut[0] == -np.inf):
            upto = max(self.task.limits.max_features, done + 1)
            columns = order[done:upto]
            cut = best_boundary_of(columns, node.best, node.bin, node.missing_left, cut)
            if self.task.exact:
                cut = self._refine(node, columns, cut)
            done = upto
        return cut

    def _refine(self, node: Node, columns: Int64s, cut: Cut) -> Cut:
        """The better of `cut` and the best cut inside the bins of some columns.

        That of the greatest bound goes alone first, since it raises the bar for the others.
        """
        pending = columns[np.argsort(-node.bound[columns], kind="stable")]
        closed = np.zeros(int(self.table.offset[-1]), np.bool_)
        counts = np.zeros(closed.size, np.int64)
        room = 1
        while True:
            bar = count_living(
                self.task.criterion, self.table, self.task.limits, self.weighted, node.cells,
                node.total, cut[0], pending, counts,
            )  # fmt: skip
            counts[closed] = 0
            pending = pending[
                (node.bound[pending] >= bar) & (self._of_columns(counts) > 0)[pending]
            ]
            if pending.size == 0:
                return cut
            bins = self._together(pending, counts, room)
            closed[bins] = True
            cut = self._look_into(node, bins, counts[bins], cut)
            room = GATHER_SHARE * node.rows

    def _of_columns(self, counts: Int64s) -> Int64s:
        """Sums over the bins of each column."""
        upto = np.append(0, np.cumsum(counts))
        sums: Int64s = upto[self.table.offset[1:]] - upto[self.table.offset[:-1]]
        return sums

    def _together(self, columns: Int64s, counts: Int64s, room: int) -> Int64s:
        """Bins that are looked into at once: those of columns until `room` rows are reached.

        They have `most_rows` at most, unless it is one.
        """
        upto = np.cumsum(self._of_columns(counts)[columns])
        columns = columns[: int(np.searchsorted(upto, room)) + 1]
        offset = self.table.offset
        bins = np.concatenate([np.arange(offset[f], offset[f + 1]) for f in columns])
        bins = bins[counts[bins] > 0]
        fit = int(np.searchsorted(np.cumsum(counts[bins]), self.most_rows, side="right"))
        return bins[: max(fit, 1)]

    def _look_into(self, node: Node, bins: Int64s, rows: Int64s, cut: Cut) -> Cut:
        """The better of `cut` and the best cut inside some bins."""
        column = np.searchsorted(self.table.offset, bins, side="right") - 1
        if rows[0] > self.most_rows:
            return self._sift(node, int(column[0]), int(bins[0]), int(rows[0]), cut)
        alive = np.zeros(int(self.table.offset[-1]), np.bool_)
        alive[bins] = True
        columns, owner = np.unique(column, return_inverse=True)
        counts = np.bincount(owner, rows).astype(np.int64)
        for f, gathered in self._gather(node, columns, counts, alive):
            cut = self._refine_column(node, f, gathered, alive, cut)
        return cut

    def _sift(self, node: Node, f: int, bin_: int, rows: int, cut: Cut) -> Cut:
        """The better of `cut` and the best cut inside one bin of too many rows."""
        offset, missing = self.table.offset, self.table.missing[f]
        cells = node.cells.reshape(-1, self.task.channels)
        of_missing = cells[offset[f + 1] - 1].astype(np.int64)
        before = cells[offset[f] : bin_].sum(axis=0, dtype=np.int64)
        sifter = Sifter(self.head, self.parts, self.most_rows)
        for missing_left in (False, True)[: 2 if missing and of_missing.any() else 1]:
            left = before + of_missing if missing_left else before
            place = Bin(f, bin_ - int(offset[f]), missing_left, node.total, self._limits(node, f))
            whole = Interval(-np.inf, np.inf, rows, left)
            cut = sifter.best_cut(node.first, node.last, place, whole, cut)
        self._refined.append(sifter.gathered)
        return cut

    def _gather(
        self, node: Node, columns: Int64s, counts: Int64s, alive: NDArray[np.bool_]
    ) -> Iterator[tuple[int, Gathered]]:
        """The rows of living bins of each of `columns`, from all parts."""
        begin = np.cumsum(counts) - counts
        k, task = int(counts.sum()), self.task
        out = Gathered(
            code=np.empty((k, 1), self.table.codes.dtype),
            value=np.empty((k, 1), self.table.values.dtype),
            target=np.empty(k, task.target.dtype),
            weight=np.empty(k, np.int64) if self.weighted else None,
            square=np.empty(k, np.int64) if task.square is not None else None,
        )
        none = np.empty(0, np.int64)
        places = np.zeros(columns.size, np.int64)
        for part, first, last in zip(self.parts, node.first, node.last, strict=True):
            if first < last:
                gather_living(
                    part.table, part.rows, part.entries, first, last, columns, alive, begin, places,
                    out.code, out.value, out.target, none if out.weight is None else out.weight,
                    none if out.square is None else out.square,
                )  # fmt: skip
        for f, a, n in zip(columns.tolist(), begin.tolist(), counts.tolist(), strict=True):
            own: list[Any] = [None if field is None else field[a : a + n] for field in out]
            yield f, Gathered(*own)

    def _refine_column(
        self, node: Node, f: int, rows: Gathered, alive: NDArray[np.bool_], cut: Cut
    ) -> Cut:
        """The better of `cut` and the best cut inside the gathered bins of column f."""
        channels = self.task.channels
        first, last = int(self.table.offset[f]), int(self.table.offset[f + 1])
        table = column_of(self.table, f, rows.code, rows.value)
        table = table._replace(single=~alive[first:last])  # others are not looked into
        n = rows.target.size
        report = np.zeros(1, np.int64)
        beside = int(np.sign(cut[1] - f))  # ties are decided by columns: f is 0 there
        found: Cut = refine_column(
            self._finer(node), self.task.criterion, table,
            Rows(rows.target, rows.weight, rows.square, None), np.arange(n, dtype=np.int32),
            self._limits(node, f), self.weighted, node.cells[first * channels : last * channels],
            node.total, node.bound[f : f + 1],
            (cut[0], beside, *cut[2:]), report,
        )  # fmt: skip
        self._refined.append(int(report[0]))
        if found[0] == -np.inf or found[1] != 0:
            return cut
        return found[0], f, *found[2:]

    def _limits(self, node: Node, f: int) -> Limits:
        """The limits of cuts of column f, which is alone in its table, in a node."""
        limits = self.task.limits
        if limits.monotonic is None:
            return limits
        lower, upper = node.mean
        own = limits.monotonic._replace(
            signs=limits.monotonic.signs[f : f + 1], lower=lower, upper=upper
        )
        return limits._replace(monotonic=own)

    def _finer(self, node: Node) -> Finer | None:
        """Bins of large nodes are sifted before they are sorted."""
        own = tuning.TUNING
        if node.rows < own.counted_rows or self.table_rows < own.counted_table_rows:
            return None
        return Finer(
            cells=self._cells,
            counted=np.zeros(1, np.bool_),
            counts=np.empty(0, node.cells.dtype),
            at_once=np.zeros(1, np.bool_),
            sift_rows=own.sift_rows,
            cell_rows=own.sifted_rows,
        )

    @property
    def table_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.table.values.shape[0] for part in self.parts)


def column_of(table: Table, f: int, code: NDArray, value: NDArray) -> Table:
    """Column f of a coded table as a table of one column, of the rows given."""
    first, last = table.offset[f], table.offset[f + 1]
    return Table(
        values=value,
        codes=code,
        offset=np.array([0, last - first]),
        missing=table.missing[f : f + 1],
        single=table.single[first:last],
        by_code=table.by_code[f : f + 1],
        greatest=table.greatest[f : f + 1],
        least=table.least[f : f + 1],
        categories=table.categories[f : f + 1],
    )


def nodes_of(
    nodes: Nodes,
    scores: Scores,
    keys: NDArray[np.uint64],
    first: NDArray,
    last: NDArray,
    bounds: Bounds | None,
) -> Iterator[Node]:
    """The nodes one by one."""
    for j in range(nodes.begin.size):
        mean = (-np.inf, np.inf) if bounds is None else (bounds.lower[j], bounds.upper[j])
        yield Node(
            first[j], last[j], nodes.cells[nodes.slots[j]], scores.total[j], scores.best[j],
            scores.bin[j], scores.missing_left[j], scores.bound[j], keys[j], mean,
        )  # fmt: skip
