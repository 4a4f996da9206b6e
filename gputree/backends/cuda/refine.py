"""The split of each node: best boundaries, then exact cuts inside bins that may beat them.

Every bin whose bound reaches the best score is looked into, so the order of work does not
matter. The column of the greatest bound goes first, since its cuts raise the bar for all
others. The host sees the number of rows to gather, and at the end the splits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, Grower, sort_segments, to_device
from gputree.backends.cuda.partition import RECORD_WORDS
from gputree.backends.cuda.score import Scores

# (row, column) pairs that are gathered and sorted at once, at most.
GATHERED_PAIRS = 1 << 25

# A cut on the device, as int64: see cut.cuh.
CUT_WORDS = 4


class Visits(NamedTuple):
    """Which columns each node visits now: those of rank ``done .. upto``."""

    orders: Any  # (m, d) int32 or None: columns by rank
    ranks: Any  # (m, d) int32 or None: ranks of columns; None where all are visited at once
    done: Any  # (m,) int32
    upto: Any  # (m,) int32


class Level(NamedTuple):
    """Nodes whose splits are looked for."""

    chunks: Chunks
    histograms: Any
    slots: Any
    scores: Scores
    visits: Visits
    cuts: Any  # (m, CUT_WORDS) int64
    lead: Any  # (m,) int32

    @property
    def nodes(self) -> int:
        return self.scores.total.shape[0]


def refine(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    slots: Int64s,
    scores: Scores,
    keys: NDArray[np.uint64],
) -> tuple[Any, int]:
    """Records of the split of each node, and the (row, column) pairs looked into."""
    xp = cupy()
    m = begin.size
    level = Level(
        chunks=Chunks.of(begin, end),
        histograms=histograms,
        slots=to_device(slots),
        scores=scores,
        visits=_visits(grower, keys),
        cuts=xp.empty((m, CUT_WORDS), dtype=np.int64),
        lead=xp.empty(m, dtype=np.int32),
    )
    _start(grower, level)
    pairs = _visit(grower, level)
    while level.visits.orders is not None and _visit_further(grower, level):
        pairs += _visit(grower, level)
    return _splits(grower, level), pairs


def _start(grower: Grower, level: Level) -> None:
    """No node has a cut yet; those whose targets are all equal will visit no column."""
    table, task, rows, visits = grower.table, grower.task, grower.rows, level.visits
    m, chunks = level.nodes, level.chunks
    low, high = cupy().empty(m, dtype=np.int64), cupy().empty(m, dtype=np.int64)
    low.fill(np.iinfo(np.int64).min)
    high.fill(np.iinfo(np.int64).max)
    if task.n_classes == 0:
        grower.kernels(
            "choose", "narrow_targets", (chunks.number,), int(task.limits.rounded),
            rows.target, rows.weight, grower.entries, chunks.owner, chunks.first, chunks.last,
            low, high,
        )  # fmt: skip
    grower.kernels.each(
        "choose", "start_cuts", m, task.n_classes, m, table.columns, task.channels,
        min(task.limits.max_features, table.columns), level.scores.total, low, high, level.cuts,
        visits.done, visits.upto,
    )  # fmt: skip


def _visits(grower: Grower, keys: NDArray[np.uint64]) -> Visits:
    xp = cupy()
    m, d = keys.size, grower.table.columns
    orders = ranks = None
    if grower.task.limits.max_features < d:
        orders, ranks = (xp.empty((m, d), dtype=np.int32) for _ in range(2))
        grower.kernels.each("choose", "draw_orders", m, to_device(keys), m, d, orders, ranks)
    return Visits(orders, ranks, xp.empty(m, dtype=np.int32), xp.empty(m, dtype=np.int32))


def _visit(grower: Grower, level: Level) -> int:
    """Let each node's cut be the best of the columns it visits."""
    scores, visits = level.scores, level.visits
    n_classes, unit, _ = grower.criterion
    grower.kernels(
        "choose", "choose_boundary", (level.nodes,), n_classes, unit, grower.table.columns,
        grower.task.channels, scores.total, scores.best, scores.bin, scores.missing_left,
        scores.bound, visits.ranks, visits.done, visits.upto, level.cuts, level.lead, threads=32,
    )  # fmt: skip
    if not grower.task.exact:
        return 0
    return _look_inside(grower, level, lead_only=1) + _look_inside(grower, level, lead_only=0)


def _visit_further(grower: Grower, level: Level) -> bool:
    """Send nodes without a cut to their next column; returns whether there are any."""
    visits = level.visits
    waiting = cupy().zeros(1, dtype=np.int32)
    grower.kernels.each(
        "choose", "visit_further", level.nodes, level.nodes, grower.table.columns,
        level.scores.best, level.scores.bound, visits.orders, level.cuts, visits.done,
        visits.upto, waiting,
    )  # fmt: skip
    return bool(waiting.get()[0])


# ----------------------------------------------------------------- inside bins
class Alive(NamedTuple):
    """Bins that may hold the best cut, and what their rows take, by (node, column)."""

    place: Any  # (m, cells) int32
    taken: Any  # (m, cells) uint32
    used: Any  # (m x d,) int64: rows
    starts: Any  # (2, m x d + 1) int64: rows, and chunks of them, in the columns before


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
    rows, chunks = map(int, cupy().ascontiguousarray(alive.starts[:, -1]).get())
    columns = alive.used.size
    if rows <= min(GATHERED_PAIRS, grower.memory.gathered_pairs):
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


def _next_batch(grower: Grower, alive: Alive, starts: Int64s, begin: int) -> Batch:
    """As many columns from `begin` as fit memory, or one."""
    first, first_chunk = starts[:, begin]
    most = first + min(GATHERED_PAIRS, grower.memory.gathered_pairs)
    end = max(int(np.searchsorted(starts[0], most, side="right")) - 1, begin + 1)
    rows, chunks = starts[:, end] - starts[:, begin]
    moved = alive.starts[0] - int(first), alive.starts[1] - int(first_chunk)
    return Batch(begin, end, int(rows), int(chunks), *moved)


def _mark_alive(grower: Grower, level: Level, lead_only: int) -> Alive:
    xp = cupy()
    table, task, scores, visits = grower.table, grower.task, level.scores, level.visits
    m, d, cells = level.nodes, table.columns, int(table.host.offset[-1])
    place = xp.empty((m, cells), dtype=np.int32)
    taken = xp.empty((m, cells), dtype=np.uint32)
    counts = xp.zeros((2, m * d + 1), dtype=np.int64)
    used = counts[0, 1:]
    grower.kernels(
        "refine", "mark_alive", (m * d,), *grower.criterion, task.limits.min_samples_leaf, d,
        task.channels, table.offset, table.missing, table.single, level.histograms, level.slots,
        scores.cumulative, scores.total, scores.bound, visits.ranks, visits.done, visits.upto,
        level.cuts, level.lead, lead_only, place, taken, used, counts[1, 1:], threads=32,
    )  # fmt: skip
    return Alive(place, taken, used, xp.cumsum(counts, axis=1))


class Pieces(NamedTuple):
    """Chunks of sorted slots: their (node, column), bin and slots."""

    column: Any
    bin: Any
    first: Any
    last: Any
    number: int


def _refine_columns(grower: Grower, level: Level, alive: Alive, batch: Batch) -> None:
    """Refine the columns of a batch."""
    keys, items = _gather(grower, level, alive, batch)
    pieces = _list_chunks(grower, level, alive, batch)
    cuts = _scan(grower, level, pieces, keys, items)
    grower.kernels(
        "refine", "pick_cuts", (level.nodes,), batch.begin, batch.end, grower.table.columns,
        batch.chunk_start, cuts, level.cuts, threads=32,
    )  # fmt: skip


def _gather(grower: Grower, level: Level, alive: Alive, batch: Batch) -> tuple[Any, Any]:
    """Keys and rows of the alive bins, sorted by bin and value."""
    xp = cupy()
    table = grower.table
    segments = xp.empty(batch.rows, dtype=np.uint32)
    keys = xp.empty(batch.rows, dtype=table.bits)
    items = xp.empty(batch.rows, dtype=np.int32)
    grower.kernels(
        "refine", "gather_rows", (level.chunks.number,), table.values, table.codes, table.stride,
        grower.entries, level.chunks.owner, level.chunks.first, level.chunks.last, table.columns,
        table.offset, batch.begin, batch.end, alive.used, batch.row_start, alive.place,
        alive.taken, segments, keys, items,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    return keys[order], items[order]


def _list_chunks(grower: Grower, level: Level, alive: Alive, batch: Batch) -> Pieces:
    xp = cupy()
    table = grower.table
    column, first, last = (xp.empty(batch.chunks, dtype=np.int64) for _ in range(3))
    bins = xp.empty(batch.chunks, dtype=np.int32)
    grower.kernels.each(
        "refine", "list_chunks", batch.end - batch.begin, grower.task.n_classes, table.columns,
        grower.task.channels, table.offset, table.missing, level.histograms, level.slots,
        batch.begin, batch.end, alive.used, batch.row_start, batch.chunk_start, alive.place,
        column, bins, first, last,
    )  # fmt: skip
    return Pieces(column, bins, first, last, batch.chunks)


def _scan(grower: Grower, level: Level, pieces: Pieces, keys: Any, items: Any) -> Any:
    """The best cut of each chunk."""
    xp = cupy()
    table, task, rows = grower.table, grower.task, grower.rows
    count, d, channels = pieces.number, table.columns, task.channels
    lefts = xp.empty((count, channels), dtype=np.int64)
    grower.kernels.each(
        "refine", "sum_chunks", count, count, channels, rows.target, rows.weight, items,
        pieces.first, pieces.last, lefts,
    )  # fmt: skip
    grower.kernels.each(
        "refine", "accumulate_chunks", count * channels, count, d, channels, table.offset,
        level.histograms, level.slots, level.scores.cumulative, pieces.column, pieces.bin, lefts,
    )  # fmt: skip
    cuts = xp.empty((count, CUT_WORDS), dtype=np.int64)
    grower.kernels.each(
        "refine", "scan_chunks", count, *grower.criterion, task.limits.min_samples_leaf,
        task.limits.min_weight_leaf, count, d, channels, table.offset, table.missing,
        level.histograms, level.slots, level.scores.total, rows.target, rows.weight, keys, items,
        pieces.column, pieces.bin, pieces.first, pieces.last, lefts, cuts,
    )  # fmt: skip
    return cuts


# ----------------------------------------------------------------- splits
def _splits(grower: Grower, level: Level) -> Any:
    """What the cuts are worth: records of the splits, on the device."""
    table, task, m = grower.table, grower.task, level.nodes
    records = cupy().empty((m, RECORD_WORDS), dtype=np.int64)
    grower.kernels.each(
        "choose", "choose_splits", m, *grower.criterion, float(task.limits.min_decrease), m,
        table.columns, task.channels, table.offset, table.missing, level.histograms, level.slots,
        level.scores.total, level.cuts, records,
    )  # fmt: skip
    return records
