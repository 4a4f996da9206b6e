"""Histograms of a level in blocks of columns; only scores leave the workers.

    shard 0   | columns 0 .. a | a .. b | ...     counted block by block
    shard 1   | columns 0 .. a | a .. b | ...
                     v             v
                    sum           sum             larger siblings are subtracted from the block
                     v             v              of the level above
                  scores        scores            few numbers per node and column

On one machine all columns are one block. On a cluster a block is the result of pure tasks and stays
on a worker: a lost one is made again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Splits
from gputree.backends.cpu.layout import Nodes, Scores
from gputree.backends.sharded.cells import Scoring, beside_best, candidate_bins
from gputree.backends.sharded.table import TableSummary
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Bools, Floats, Int64s, writable
from gputree.base.threads import run

# Maximum number of bins that one call lists candidates among, unless one node has more.
LISTED_BINS = 1 << 16


class HistogramBlock(NamedTuple):
    """Histograms of columns ``first .. last``."""

    first: int
    last: int
    cells: Any  # (m, bins of these columns x channels), or a future of it

    @property
    def columns(self) -> tuple[int, int]:
        return self.first, self.last


class Scored(NamedTuple):
    """Scores, and the bins next to each best boundary: see `beside_best`."""

    scores: Scores
    next_bin: Int64s  # (m, d)
    seen_missing: Bools  # (m, d)


class Candidates(NamedTuple):
    """k bins that may contain a better cut than their nodes', by node, then column, then bin."""

    node: Int64s
    column: Int64s
    bin: Int64s
    rows: Int64s
    left: Int64s  # (k, channels) statistics before it, missing values right
    missing: Int64s  # (k, channels) of missing values

    @classmethod
    def empty(cls, k: int, channels: int) -> Candidates:
        shapes = [(k,)] * 4 + [(k, channels)] * 2
        return cls(*(np.empty(shape, np.int64) for shape in shapes))


class Histograms:
    """Histograms of m nodes; `shared` is the summary, or its future for tasks."""

    def __init__(self, m: int, tasks: Tasks, summary: TableSummary, shared: Any) -> None:
        self.m, self.tasks, self.summary, self.shared = m, tasks, summary, shared
        self.blocks: list[HistogramBlock] = []  # ascending; empty until they are counted
        self.number = 1  # number of blocks, before those without a column are dropped

    def around(self, columns: tuple[int, int]) -> HistogramBlock:
        """Return the block that contains the given columns."""
        first, last = columns
        return next(block for block in self.blocks if block.first <= first and last <= block.last)

    def score(self, slots: Int64s, bounds: Bounds | None) -> Scored:
        """Score all columns of the nodes in some slots."""
        given = self.tasks.share((slots, bounds))
        found: list[Scored] = self.tasks.fetch(
            [
                self.tasks.submit(score_block, self.shared, block.cells, block.columns, given)
                for block in self.blocks
            ]
        )
        if len(found) == 1:
            return found[0]
        fields = zip(*(scored.scores[1:] for scored in found), strict=True)
        scores = Scores(found[0].scores.total.copy(), *(np.hstack(field) for field in fields))
        others = zip(*(scored[1:] for scored in found), strict=True)
        return Scored(scores, *(np.hstack(field) for field in others))

    def candidates(
        self, slots: Int64s, scoring: Scoring, best: Floats, bounds: Floats, columns: Int64s
    ) -> Candidates:
        """Find the bins of some columns of m nodes that may contain a cut better than `best`.

        `bounds` (m, d) are the highest of the bins of each column; `columns` (m, k) are searched.
        """
        columns, sent, futures = np.sort(columns, axis=1), [], []
        for block in self.blocks:
            inside = (columns >= block.first) & (columns < block.last)
            node = np.flatnonzero(inside.any(axis=1))
            if node.size:
                first = np.append(0, np.cumsum(inside[node].sum(axis=1)))
                chosen = columns[node][inside[node]] - block.first
                sent.append((node, block.first))
                of_block = self.shared, block.cells, block.columns
                of_nodes = slots[node], scoring.totals[node], best[node]
                found_bounds = bounds[node, slice(*block.columns)]
                given = *of_block, *of_nodes, found_bounds, chosen, first
                futures.append(self.tasks.submit(candidates_in_block, *given))
        found = [
            candidates._replace(node=node[candidates.node], column=candidates.column + first)
            for (node, first), candidates in zip(sent, self.tasks.fetch(futures), strict=True)
        ]
        return joined([Candidates.empty(0, scoring.totals.shape[1]), *found])

    def list_left(
        self, slots: Int64s, scores: Scores, node: Int64s, column: Int64s
    ) -> NDArray[np.object_]:
        """Categories that go left of nodes that are split by columns of few categories."""
        codes, places, futures = np.full(node.size, None), [], []
        for block in self.blocks:
            chosen = np.flatnonzero((column >= block.first) & (column < block.last))
            j, f = node[chosen], column[chosen]
            if chosen.size:
                places.append(chosen)
                of_block = self.shared, block.cells, block.columns
                of_nodes = slots[j], scores.total[j], f - block.first
                subset = scores.bin[j, f], scores.order[j, f]
                futures.append(self.tasks.submit(list_in_block, *of_block, *of_nodes, *subset))
        for chosen, found in zip(places, self.tasks.fetch(futures), strict=True):
            codes[chosen] = found
        return codes


def cut_columns(offset: Int64s, number: int) -> list[tuple[int, int]]:
    """Divide columns into blocks of similar numbers of bins; twice as many subdivide these."""
    bins = int(offset[-1]) * np.arange(number + 1) // number
    edges = np.unique(np.searchsorted(offset, bins)).tolist()
    return list(zip(edges, edges[1:], strict=False))


def joined(found: list[Candidates]) -> Candidates:
    """Concatenate the bins of some blocks, in order."""
    if len(found) == 2:
        return found[1]
    fields = [np.concatenate(field) for field in zip(*found, strict=True)]
    order = np.lexsort((fields[1], fields[0]))
    return Candidates(*(field[order] for field in fields))


def add_up(pieces: list[NDArray]) -> NDArray:
    """Return the sum of some arrays."""
    total = pieces[0].copy()
    for piece in pieces[1:]:
        total += piece
    return total


def all_nodes(
    summary: TableSummary,
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
    offset = summary.table.offset
    start = int(offset[columns[0]] - offset[parent_first]) * summary.task.channels
    for whole, part, slot in zip(*derived, strict=True):
        np.subtract(parent[whole, start : start + cells.shape[1]], cells[part], out=cells[slot])
    return cells


def score_block(
    summary: TableSummary,
    cells: NDArray,
    columns: tuple[int, int],
    given: tuple[Int64s, Bounds | None],
) -> Scored:
    """Score the columns of a block."""
    slots, bounds = given
    slots, cells = writable(slots), writable(cells)
    block = summary.writable().of_columns(*columns)
    scores = block.on_cpu().score(cells, slots, bounds and Bounds(*map(writable, bounds)))
    few = block.of_few_categories()
    nodes = _nodes(block, cells, slots, scores.total)
    few.on_cpu().score_subsets(nodes, scores, np.flatnonzero(few.table.categories))
    others = np.empty(scores.bin.shape, np.int64), np.empty(scores.bin.shape, np.bool_)
    counted = block.task.criterion, block.table, block.weighted, cells, slots
    beside_best(*counted, scores.best, scores.bin, *others)
    if columns[0] > 0:  # one block has the totals, which are the same in all
        scores = scores._replace(total=scores.total[:, :0])
    return Scored(scores, *others)


def candidates_in_block(
    summary: TableSummary,
    cells: NDArray,
    columns: tuple[int, int],
    slots: Int64s,
    totals: Int64s,
    best: Floats,
    bounds: Floats,
    chosen: Int64s,
    first: Int64s,
) -> Candidates:
    """List the candidates among columns ``chosen[first[i] .. first[i + 1]]`` of nodes."""
    block = summary.writable().of_columns(*columns)
    slots, totals, best, chosen, first = map(writable, (slots, totals, best, chosen, first))
    bounds, cells = np.ascontiguousarray(bounds), writable(cells)
    task, bins = block.task, np.append(0, np.cumsum(np.diff(block.table.offset)[chosen]))
    offset = bins[first]  # offset of each node
    group = offset[:-1] // LISTED_BINS
    ends = np.append(np.flatnonzero(np.diff(group, prepend=-1)), slots.size)

    def list_some(a: int, b: int) -> Candidates:
        out = Candidates.empty(int(offset[b] - offset[a]), task.channels)
        keys = np.zeros(b - a, np.uint64)  # no random draws
        scoring = Scoring(task.criterion, task.limits, block.weighted, None, totals[a:b], keys)
        given = scoring, block.table, cells, slots[a:b], best[a:b], bounds[a:b]
        n = candidate_bins(*given, chosen, first[a : b + 1], out)
        listed = Candidates(*(field[:n].copy() for field in out))
        return listed._replace(node=listed.node + a)

    spans = list(zip(ends.tolist(), ends[1:].tolist(), strict=False))
    found = run(block.n_threads, list_some, spans)
    return Candidates(*(np.concatenate(field) for field in zip(*found, strict=True)))


def list_in_block(
    summary: TableSummary,
    cells: NDArray,
    columns: tuple[int, int],
    slots: Int64s,
    totals: Int64s,
    column: Int64s,
    place: Int64s,
    order: Int64s,
) -> NDArray[np.object_]:
    """Categories that go left of nodes that are split by a column of the block."""
    block = summary.writable().of_columns(*columns).of_few_categories()
    shape = column.size, columns[1] - columns[0]
    indices = np.arange(column.size)
    places, orders = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    places[indices, column], orders[indices, column] = place, order
    none, no = np.empty(shape), np.empty(shape, np.bool_)
    totals, slots, cells = writable(totals), writable(slots), writable(cells)
    splits = Splits.none(column.size)
    splits.feature[:] = column
    scores = Scores(totals, none, places, no, none, orders)
    block.on_cpu().list_subsets(_nodes(block, cells, slots, totals), scores, splits, indices)
    return splits.codes


def _nodes(summary: TableSummary, cells: NDArray, slots: Int64s, totals: Int64s) -> Nodes:
    """Make nodes with histograms and totals, but without rows."""
    rows = summary.row_counts(totals)
    return Nodes(np.zeros(slots.size, np.int64), rows, cells, slots)
