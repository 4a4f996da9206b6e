"""The split of each node: best boundaries, then exact cuts inside bins that may beat them.

Every bin whose bound reaches the best score is looked into, so the order of work does not
matter. The column of the greatest bound goes first, since its cuts raise the bar for all
others. The host sees the number of rows to gather, and at the end the splits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Bounds, Int64s
from gputree.backends.cuda import finer, tuning
from gputree.backends.cuda.categories import Sides, score_subsets
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, Grower, Plan, carve, pack_bounds, sort_segments
from gputree.backends.cuda.partition import RECORD_WORDS
from gputree.backends.cuda.score import Scores
from gputree.backends.cuda.structs import LEVEL, PIECES, VISITS, Packed

# A cut on the device, as int64: see cut.cuh.
CUT_WORDS = 4


class Visits(NamedTuple):
    """Which columns each node visits now: those of rank ``done .. upto``."""

    orders: Any  # (m, d) int32 or None: columns by rank
    ranks: Any  # (m, d) int32 or None: ranks of columns; None where all are visited at once
    done: Any  # (m,) int32
    upto: Any  # (m,) int32

    def pack(self) -> Packed:
        """For kernels."""
        return VISITS.pack(*self)


class Level(NamedTuple):
    """Nodes whose splits are looked for."""

    rows: int
    chunks: Chunks
    histograms: Any
    scores: Scores
    visits: Visits
    cuts: Any  # (m, CUT_WORDS) int64
    lead: Any  # (m,) int32
    packed: Packed  # its histograms, for kernels
    held: Packed  # bounds of its nodes

    @property
    def nodes(self) -> int:
        return self.scores.total.shape[0]


def refine(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    plan: Plan,
    scores: Scores,
    bounds: Bounds | None,
) -> tuple[Any, Sides | None, int]:
    """Records of the splits, sides of categories, and the (row, column) pairs looked into."""
    m, i4 = begin.size, np.int32
    sides = score_subsets(grower, begin, end, histograms, plan.slots, scores)
    cuts, lead, done, upto = carve(((m, CUT_WORDS), np.int64), (m, i4), (m, i4), (m, i4))
    level = Level(
        rows=int((end - begin).sum()),
        chunks=plan.chunks,
        histograms=histograms,
        scores=scores,
        visits=Visits(*_orders(grower, plan.keys), done, upto),
        cuts=cuts,
        lead=lead,
        packed=LEVEL.pack(histograms, plan.slots, scores.cumulative, scores.total),
        held=pack_bounds(grower, bounds),
    )
    pairs = _visit(grower, level, is_first=True)
    while level.visits.orders is not None and _visit_further(grower, level):
        pairs += _visit(grower, level, is_first=False)
    return _splits(grower, level, plan.parts.begin), sides, pairs


def _spread(grower: Grower, level: Level) -> tuple[Any, Any]:
    """Between which targets all those of a node may lie; None where they are classes."""
    if grower.task.n_classes:
        return None, None
    low, high = carve((level.nodes, np.int64), (level.nodes, np.int64))
    low.fill(np.iinfo(np.int64).min)
    high.fill(np.iinfo(np.int64).max)
    grower.kernels(
        "choose", "narrow_targets", (level.chunks.number,), grower.rules, grower.statistics,
        grower.entries, level.chunks.packed, low, high,
    )  # fmt: skip
    return low, high


def _orders(grower: Grower, keys: Any) -> tuple[Any, Any]:
    """Columns by rank, and their ranks; None where all are visited at once."""
    m, d = keys.size, grower.table.columns
    if grower.task.limits.max_features >= d:
        return None, None
    orders, ranks = carve(((m, d), np.int32), ((m, d), np.int32))
    grower.kernels.each("choose", "draw_orders", m, keys, m, d, orders, ranks)
    return orders, ranks


def _visit(grower: Grower, level: Level, is_first: bool) -> int:
    """Let each node's cut be the best of the columns it visits."""
    scores = level.scores
    low, high = _spread(grower, level) if is_first else (None, None)
    grower.kernels(
        "choose", "choose_boundary", (level.nodes,), grower.rules, grower.table.packed,
        scores.total, scores.pack(), int(is_first), low, high, level.visits.pack(), level.cuts,
        level.lead, threads=32,
    )  # fmt: skip
    if not grower.task.exact:
        return 0
    return _look_inside(grower, level, lead_only=1) + _look_inside(grower, level, lead_only=0)


def _visit_further(grower: Grower, level: Level) -> bool:
    """Send nodes without a cut to their next column; returns whether there are any."""
    waiting = cupy().zeros(1, dtype=np.int32)
    grower.kernels.each(
        "choose", "visit_further", level.nodes, grower.table.packed, level.nodes,
        level.scores.pack(), level.visits.pack(), level.cuts, waiting,
    )  # fmt: skip
    return bool(waiting.get()[0])


# ----------------------------------------------------------------- inside bins
class Alive(NamedTuple):
    """Bins that may hold the best cut, and what their rows take, by (node, column).

    Where they were counted into `cells`, ``used`` and ``starts`` are those of living cells.
    """

    place: Any  # (m, cells) int32
    taken: Any  # (m, cells) uint32
    used: Any  # (m x d,) int64: rows
    starts: Any  # (2, m x d + 1) int64: rows, and chunks of them, in the columns before
    cells: finer.Cells | None = None


class Batch(NamedTuple):
    """Columns ``begin .. end``, counted through all nodes, that are refined at once."""

    begin: int
    end: int
    rows: int
    chunks: int
    row_start: Any  # (m x d + 1,) int64: counted from the batch's first
    chunk_start: Any


def _look_inside(grower: Grower, level: Level, lead_only: int) -> int:
    """Refine the leading column of each node, or all others; returns the pairs gathered."""
    alive = _mark_alive(grower, level, lead_only)
    rows, chunks = _totals(alive)
    if finer.is_worth_it(rows, level.rows):
        alive = _sift(grower, level, lead_only, alive, rows)
        rows, chunks = _totals(alive)
    columns = alive.used.size
    if rows <= min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs):
        if rows:
            batch = Batch(0, columns, rows, chunks, alive.starts[0], alive.starts[1])
            _refine_columns(grower, level, alive, batch)
        return rows
    starts = alive.starts.get()
    begin = 0
    while starts[0, begin] < rows:
        batch = _next_batch(grower, alive, starts, begin)
        if batch.rows:
            _refine_columns(grower, level, alive, batch)
        begin = batch.end
    return rows


def _totals(alive: Alive) -> tuple[int, int]:
    """Rows, or cells, and chunks of all columns."""
    rows, chunks = cupy().ascontiguousarray(alive.starts[:, -1]).get()
    return int(rows), int(chunks)


def _sift(grower: Grower, level: Level, lead_only: int, alive: Alive, rows: int) -> Alive:
    """Living cells in the place of living bins, unless memory has no room for any."""
    cell_rows = tuning.TUNING.cell_rows
    while cell_rows < rows:
        bins = _mark_alive(grower, level, lead_only, cell_rows)
        n_cells, _ = _totals(bins)
        if n_cells <= finer.most_cells(grower, level):
            return finer.mark_cells(grower, level, bins, n_cells)
        cell_rows *= 8
    return alive


def _next_batch(grower: Grower, alive: Alive, starts: Int64s, begin: int) -> Batch:
    """As many columns from `begin` as fit memory, or one."""
    first, first_chunk = starts[:, begin]
    most = first + min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs)
    end = max(int(np.searchsorted(starts[0], most, side="right")) - 1, begin + 1)
    rows, chunks = starts[:, end] - starts[:, begin]
    moved = alive.starts[0] - int(first), alive.starts[1] - int(first_chunk)
    return Batch(begin, end, int(rows), int(chunks), *moved)


def _mark_alive(grower: Grower, level: Level, lead_only: int, cell_rows: int = 0) -> Alive:
    """Living bins, and the rows they take, or the cells of `cell_rows` rows."""
    xp = cupy()
    table = grower.table
    m, d, cells = level.nodes, table.columns, int(table.host.offset[-1])
    place, taken = carve(((m, cells), np.int32), ((m, cells), np.uint32))
    counts = xp.zeros((2, m * d + 1), dtype=np.int64)
    used = counts[0, 1:]
    grower.kernels(
        "refine", "mark_alive", (m * d,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visits.pack(), level.cuts, level.lead, lead_only, cell_rows,
        place, taken, used, counts[1, 1:], threads=32,
    )  # fmt: skip
    return Alive(place, taken, used, xp.cumsum(counts, axis=1))


class Pieces(NamedTuple):
    """Chunks of sorted slots: their (node, column), bin and slots."""

    column: Any
    bin: Any
    first: Any
    last: Any
    number: int
    packed: Packed
    cell: Any = None  # where bins were counted into cells


def _refine_columns(grower: Grower, level: Level, alive: Alive, batch: Batch) -> None:
    """Refine the columns of a batch."""
    keys, items = _gather(grower, level, alive, batch)
    pieces = _list_chunks(grower, level, alive, batch)
    cuts = _scan(grower, level, alive, pieces, keys, items)
    grower.kernels(
        "refine", "pick_cuts", (level.nodes,), batch.begin, batch.end, grower.table.columns,
        batch.chunk_start, cuts, level.cuts, threads=32,
    )  # fmt: skip


def _gather(grower: Grower, level: Level, alive: Alive, batch: Batch) -> tuple[Any, Any]:
    """Keys and rows of the alive bins, sorted by bin and value."""
    n = batch.rows
    segments, keys, items = carve((n, np.uint32), (n, grower.table.bits), (n, np.int32))
    if alive.cells is None:
        _gather_rows(grower, level, alive, batch, segments, keys, items)
    else:
        finer.gather_cells(grower, level, alive.cells, batch, segments, keys, items)
    order = sort_segments(segments, keys)
    return keys[order], items[order]


def _gather_rows(
    grower: Grower, level: Level, alive: Alive, batch: Batch, segments: Any, keys: Any, items: Any
) -> None:
    """Keys and rows of the living bins, in no order; segments are the bins' first slots."""
    table = grower.table
    grower.kernels(
        "refine", "gather_rows", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, batch.begin, batch.end, alive.used, batch.row_start,
        alive.place, alive.taken, segments, keys, items,
    )  # fmt: skip


def _list_chunks(grower: Grower, level: Level, alive: Alive, batch: Batch) -> Pieces:
    n, i8 = batch.chunks, np.int64
    column, bins, first, last = carve((n, i8), (n, np.int32), (n, i8), (n, i8))
    packed = PIECES.pack(column, bins, first, last)
    pieces = Pieces(column, bins, first, last, batch.chunks, packed)
    if alive.cells is not None:
        return pieces._replace(cell=finer.list_cells(grower, alive.cells, batch, packed))
    grower.kernels.each(
        "refine", "list_chunks", batch.end - batch.begin, grower.rules, grower.table.packed,
        level.packed, batch.begin, batch.end, alive.used, batch.row_start, batch.chunk_start,
        alive.place, packed,
    )  # fmt: skip
    return pieces


def _scan(grower: Grower, level: Level, alive: Alive, pieces: Pieces, keys: Any, items: Any) -> Any:
    """The best cut of each chunk."""
    count, channels = pieces.number, grower.task.channels
    lefts, cuts = carve(((count, channels), np.int64), ((count, CUT_WORDS), np.int64))
    grower.kernels.each(
        "refine", "sum_chunks", count, count, channels, grower.statistics, items, pieces.packed,
        lefts,
    )  # fmt: skip
    if alive.cells is not None:
        finer.accumulate_cells(grower, alive.cells, pieces.cell, lefts)
    else:
        grower.kernels.each(
            "refine", "accumulate_chunks", count * channels, count, channels,
            grower.table.packed, level.packed, pieces.packed, lefts,
        )  # fmt: skip
    grower.kernels.each(
        "refine", "scan_chunks", count, grower.rules, grower.table.packed, level.packed,
        level.held, count, grower.statistics, keys, items, pieces.packed, lefts, cuts,
    )  # fmt: skip
    return cuts


# ----------------------------------------------------------------- splits
def _splits(grower: Grower, level: Level, begin: Any) -> Any:
    """What the cuts are worth: records of the splits, on the device."""
    m = level.nodes
    records = cupy().empty((m, RECORD_WORDS), dtype=np.int64)
    grower.kernels.each(
        "choose", "choose_splits", m, grower.rules, grower.table.packed, m, level.packed,
        begin, level.cuts, records,
    )  # fmt: skip
    return records
