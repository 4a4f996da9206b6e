"""Histograms that stay on workers, in shards of columns; what is scored there comes to the client.

    part 0   | columns 0 .. a | a .. b | ...     a task a part and shard
    part 1   | columns 0 .. a | a .. b | ...
                    v             v
                   sum           sum             a tree of tasks a shard; larger siblings are
                    v             v              subtracted from the shard of the level above
                  scores        scores           a few numbers a node and column: to the client

A shard is the result of pure tasks, as parts are: one that is lost is made again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Larger, Splits
from gputree.backends.cpu.backend import CpuBackend, Nodes, Scores
from gputree.backends.cpu.layout import Table
from gputree.backends.partitioned.sift import row_counts
from gputree.backends.workers.cells import beside_best, living_bins
from gputree.backends.workers.counters import Counter
from gputree.backends.workers.parts import WorkerParts, own_arrays
from gputree.compilation.arrays import writable


class Shard(NamedTuple):
    """Histograms of columns ``first .. last``."""

    first: int
    last: int
    cells: Any  # future of (m, cells of these columns x channels)

    @property
    def columns(self) -> tuple[int, int]:
        return self.first, self.last


class Scored(NamedTuple):
    """Scores, and what lies beside each best boundary: see `beside_best`."""

    scores: Scores
    next_bin: Int64s  # (m, d)
    seen_missing: NDArray[np.bool_]  # (m, d)


class Living(NamedTuple):
    """k bins that may hold a better cut than their nodes', by node, then column, then bin."""

    node: Int64s
    column: Int64s
    bin: Int64s
    rows: Int64s
    left: Int64s  # (k, channels) statistics before it, missing values right
    missing: Int64s  # (k, channels) of missing values


class ShardedHistograms:
    """Histograms of m nodes.

    Parameters
    ----------
    remote : WorkerParts
    head : CpuBackend
        Over a coded table without rows: what all parts share.
    dtype : dtype of counts
    m : int
    """

    def __init__(self, remote: WorkerParts, head: CpuBackend, dtype: np.dtype, m: int) -> None:
        self.remote, self.tasks, self.head, self.shared = remote, remote.tasks, head, remote.head
        self.dtype, self.m = dtype, m
        self.number = 1  # of shards, but for those that would have no column
        self.shards: list[Shard] = []

    # ----------------------------------------------------------------- sums
    def fill(self, first: NDArray, last: NDArray, slots: Int64s, larger: Larger | None) -> None:
        """Count nodes whose entries in each part are ``first .. last`` (k, parts), and subtract.

        Nothing is waited for.
        """
        offset, whole = self.head.table.offset, None if larger is None else larger.whole
        size = slots.size * int(offset[-1]) * self.head.channels * self.dtype.itemsize
        most = self.tasks.pieces(size, self.remote.sizes.size)
        self.number = 1 << (most.bit_length() - 1)  # a power of two, see `cut_columns`
        if whole is not None:  # a shard lies within one of the level above
            self.number = max(self.number, whole.number)
        none = np.empty(0, np.int64)
        derived = (none, none, none) if larger is None else larger[1:]
        level = self.tasks.share((self.m, slots, derived))
        for columns in cut_columns(offset, self.number):
            found = self.remote.map(count_columns, first, last, columns, self.dtype.str)
            pieces = self.tasks.narrowed(add_up, found)
            parent = None if whole is None else whole.around(columns)
            cells = self.tasks.submit(
                all_nodes, self.shared, pieces, columns, level, parent and parent.first,
                parent and parent.cells,
            )  # fmt: skip
            self.shards.append(Shard(*columns, cells))

    def around(self, columns: tuple[int, int]) -> Shard:
        """The shard that has some columns among its own."""
        first, last = columns
        return next(own for own in self.shards if own.first <= first and last <= own.last)

    # --------------------------------------------------------------- scores
    def score(self, slots: Int64s, bounds: Bounds | None) -> Scored:
        """Scores of all columns."""
        given = self.tasks.share((slots, bounds))
        found: list[Scored] = self.tasks.fetch(
            [
                self.tasks.submit(score_shard, self.shared, own.cells, own.columns, given)
                for own in self.shards
            ]
        )
        fields = zip(*(own.scores[1:] for own in found), strict=True)
        scores = Scores(found[0].scores.total.copy(), *(np.hstack(field) for field in fields))
        beside = zip(*(own[1:] for own in found), strict=True)
        return Scored(scores, *(np.hstack(field) for field in beside))

    def living(
        self, slots: Int64s, totals: Int64s, best: NDArray[np.float64], columns: dict[int, Int64s]
    ) -> Living:
        """The bins, of some columns of each of some nodes, that may hold a better cut.

        ``best[j]`` is the score of the best cut of node j so far.
        """
        asked, futures = [], []
        for own in self.shards:
            inside = {j: f[(f >= own.first) & (f < own.last)] for j, f in columns.items()}
            chosen = {j: f - own.first for j, f in inside.items() if f.size}
            node = np.array(list(chosen), np.int64)
            if node.size:
                asked.append((node, own.first))
                futures.append(
                    self.tasks.submit(
                        living_in_shard, self.shared, own.cells, own.columns, slots[node],
                        totals[node], best[node], list(chosen.values()),
                    )
                )  # fmt: skip
        found = [
            living._replace(node=node[living.node], column=living.column + first)
            for (node, first), living in zip(asked, self.tasks.fetch(futures), strict=True)
        ]
        return _joined([no_living(totals.shape[1]), *found])

    def list_left(
        self, slots: Int64s, scores: Scores, node: Int64s, column: Int64s
    ) -> NDArray[np.object_]:
        """Categories that go left of nodes that are split by columns of few categories."""
        codes, places, futures = np.full(node.size, None), [], []
        for own in self.shards:
            at = np.flatnonzero((column >= own.first) & (column < own.last))
            j, f = node[at], column[at]
            if at.size:
                places.append(at)
                futures.append(
                    self.tasks.submit(
                        list_in_shard, self.shared, own.cells, own.columns, slots[j],
                        scores.total[j], f - own.first, scores.bin[j, f], scores.order[j, f],
                    )
                )  # fmt: skip
        for at, found in zip(places, self.tasks.fetch(futures), strict=True):
            codes[at] = found
        return codes


def cut_columns(offset: Int64s, number: int) -> list[tuple[int, int]]:
    """Columns in shards of about as many bins; of twice as many, each lies within one of these."""
    bins = int(offset[-1]) * np.arange(number + 1) // number
    edges = np.unique(np.searchsorted(offset, bins)).tolist()
    return list(zip(edges, edges[1:], strict=False))


def no_living(channels: int) -> Living:
    """No bins."""
    none, of_none = np.empty(0, np.int64), np.empty((0, channels), np.int64)
    return Living(none, none, none, none, of_none, of_none)


def _joined(found: list[Living]) -> Living:
    """Bins of some shards, in order."""
    fields = [np.concatenate(field) for field in zip(*found, strict=True)]
    order = np.lexsort((fields[1], fields[0]))
    return Living(*(field[order] for field in fields))


# ------------------------------------------------------------------------- tasks
def count_columns(
    part: Counter, first: Int64s, last: Int64s, columns: tuple[int, int], dtype: str
) -> NDArray:
    """Histograms of some columns of nodes in one part."""
    offset, own = part.table.offset, np.flatnonzero(first < last)
    cells = int(offset[columns[1]] - offset[columns[0]])
    counts = np.zeros((first.size, cells * part.channels), dtype)
    part.count(first[own], last[own], counts, own, columns)
    return counts


def add_up(pieces: list[NDArray]) -> NDArray:
    """The sum of some arrays."""
    total = pieces[0].copy()
    for piece in pieces[1:]:
        total += piece
    return total


def all_nodes(
    head: CpuBackend,
    pieces: list[NDArray],
    columns: tuple[int, int],
    level: tuple[int, Int64s, tuple[Int64s, Int64s, Int64s]],
    parent_first: int | None,
    parent: NDArray | None,
) -> NDArray:
    """Histograms of all nodes of a level: counted ones from pieces, others by subtraction."""
    m, slots, derived = level
    total = add_up(pieces)
    cells = np.empty((m, total.shape[1]), total.dtype)
    cells[slots] = total
    if parent is None:
        return cells
    offset = head.table.offset
    at = int(offset[columns[0]] - offset[parent_first]) * head.channels
    for whole, part, slot in zip(*derived, strict=True):
        np.subtract(parent[whole, at : at + cells.shape[1]], cells[part], out=cells[slot])
    return cells


def score_shard(
    head: CpuBackend,
    cells: NDArray,
    columns: tuple[int, int],
    given: tuple[Int64s, Bounds | None],
) -> Scored:
    """Scores of the columns of a shard."""
    slots, bounds = given
    slots, cells = writable(slots), writable(cells)
    own = head_of(head, columns)
    scores = own.score(cells, slots, bounds and Bounds(*map(writable, bounds)))
    few = of_few(own)
    few.score_subsets(
        _nodes(few, cells, slots, scores.total), scores, np.flatnonzero(few.table.categories)
    )
    next_bin = np.empty(scores.bin.shape, np.int64)
    seen_missing = np.empty(scores.bin.shape, np.bool_)
    beside_best(
        own.task.criterion, own.table, own.task.weight is not None, cells, slots, scores.best,
        scores.bin, next_bin, seen_missing,
    )  # fmt: skip
    if columns[0] > 0:  # one shard tells the totals, which are the same in all
        scores = scores._replace(total=scores.total[:, :0])
    return Scored(scores, next_bin, seen_missing)


def living_in_shard(
    head: CpuBackend,
    cells: NDArray,
    columns: tuple[int, int],
    slots: Int64s,
    totals: Int64s,
    best: NDArray[np.float64],
    chosen: list[Int64s],
) -> Living:
    """The living bins of columns `chosen` of each of some nodes."""
    own, totals = head_of(head, columns), writable(totals)
    task, bins = own.task, own.histogram_cells
    column, place, rows = (np.empty(bins, np.int64) for _ in range(3))
    left, missing = (np.empty((bins, task.channels), np.int64) for _ in range(2))
    found = [no_living(task.channels)]
    for j, f in enumerate(chosen):
        n = living_bins(
            task.criterion, own.table, task.limits, task.weight is not None,
            writable(cells)[slots[j]], totals[j], best[j], writable(f), column, place, rows, left,
            missing,
        )  # fmt: skip
        fields = (column[:n], place[:n], rows[:n], left[:n], missing[:n])
        found.append(Living(np.full(n, j), *(field.copy() for field in fields)))
    return Living(*(np.concatenate(field) for field in zip(*found, strict=True)))


def list_in_shard(
    head: CpuBackend,
    cells: NDArray,
    columns: tuple[int, int],
    slots: Int64s,
    totals: Int64s,
    column: Int64s,
    place: Int64s,
    order: Int64s,
) -> NDArray[np.object_]:
    """Categories that go left of nodes, of which each is split by a column of the shard."""
    own = of_few(head_of(head, columns))
    shape = column.size, columns[1] - columns[0]
    at = np.arange(column.size)
    places, orders = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    places[at, column], orders[at, column] = place, order
    none, no = np.empty(shape), np.empty(shape, np.bool_)
    totals, slots, cells = writable(totals), writable(slots), writable(cells)
    splits = Splits.none(column.size)
    splits.feature[:] = column
    scores = Scores(totals, none, places, no, none, orders)
    own.list_subsets(_nodes(own, cells, slots, totals), scores, splits, at)
    return splits.codes


def head_of(head: CpuBackend, columns: tuple[int, int]) -> CpuBackend:
    """What parts share, of some columns alone."""
    own, inside = own_arrays(head), slice(*columns)
    table, limits = own.table, own.task.limits
    offset = table.offset[columns[0] : columns[1] + 1]
    bins = slice(int(offset[0]), int(offset[-1]))
    width = columns[1] - columns[0]
    own.table = Table(
        values=np.empty((0, width), table.values.dtype),
        codes=np.empty((0, width), table.codes.dtype),
        offset=offset - offset[0],
        missing=table.missing[inside],
        single=table.single[bins],
        by_code=table.by_code[inside],
        greatest=table.greatest[inside],
        least=table.least[inside],
        categories=table.categories[inside],
    )
    if limits.monotonic is not None:
        signs = limits.monotonic.signs[inside]
        limits = limits._replace(monotonic=limits.monotonic._replace(signs=signs))
        own.task = replace(own.task, limits=limits)
    return own


def of_few(own: CpuBackend) -> CpuBackend:
    """The same, but columns of more categories than bins are as if they were none."""
    few = own_arrays(own)
    table = few.table
    few.table = table._replace(categories=np.where(table.by_code, table.categories, 0))
    return few


def _nodes(own: CpuBackend, cells: NDArray, slots: Int64s, totals: Int64s) -> Nodes:
    """Nodes of as many rows as their totals tell, which lie elsewhere."""
    rows = row_counts(totals, own.task.n_classes, own.task.weight is not None)
    return Nodes(np.zeros(slots.size, np.int64), rows, cells, slots)
