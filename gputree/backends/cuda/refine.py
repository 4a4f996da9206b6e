"""The split of each node: best boundaries, then exact cuts inside bins that may beat them.

Every bin whose bound reaches the best score is looked into, so the order of work does not
matter. The column of the greatest bound goes first, since its cuts raise the bar for all
others. Bins of few rows are looked into with nothing asked (`gputree.backends.cuda.inside`), and
the host sees the splits at the end; else it sees the number of rows to gather.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda import finer, tuning
from gputree.backends.cuda.categories import (
    MASK_WORDS,
    Sides,
    Subsets,
    codes_of,
    score_subsets,
)
from gputree.backends.cuda.inside import CUT_WORDS, NOTHING_FOUND, look_inside
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    TALLY_WORDS,
    Chunks,
    Grower,
    Plan,
    sort_segments,
    widest,
)
from gputree.backends.cuda.partition import RECORD_WORDS, Marked, mark, read
from gputree.backends.cuda.score import Scores
from gputree.backends.cuda.structs import BOUNDARIES, LEVEL, PIECES, VISITS, Packed
from gputree.backends.cuda.workspace import Shaped, bytes_of, carve, send
from gputree.dtypes import WAITS


class Visits(NamedTuple):
    """Which columns each node visits now: those of rank ``done .. upto``."""

    orders: Any  # (m, d) int32 or None: columns by rank
    ranks: Any  # (m, d) int32 or None: ranks of columns; None where all are visited at once
    done: Any  # (m,) int32
    upto: Any  # (m,) int32


class Level(NamedTuple):
    """Nodes whose splits are looked for."""

    rows: int
    plan: Plan
    histograms: Any
    scores: Scores
    visits: Visits
    cuts: Any  # (m, CUT_WORDS) int64
    lead: Any  # (m,) int32
    results: Any  # int64: what the host reads, see `Results`
    lefts: Any  # of the parts that are partitioned, int64
    sides: Sides | None
    packed: Packed  # its histograms, for kernels
    held: Packed  # bounds of its nodes
    visited: Packed  # `visits`
    scored: Packed  # `scores`

    @property
    def nodes(self) -> int:
        return self.scores.total.shape[0]

    @property
    def chunks(self) -> Chunks:
        return self.plan.chunks

    @property
    def records(self) -> Any:
        """(m, RECORD_WORDS) int64: the splits."""
        return Results.of(self.results, self.nodes).records


class Results(NamedTuple):
    """What the host reads of m nodes, in one copy, as int64."""

    tally: Any  # (TALLY_WORDS,)
    records: Any  # (m, RECORD_WORDS): the splits
    masks: Any  # (m, MASK_WORDS): categories that go left; of no node without nominal columns

    @classmethod
    def of(cls, words: Any, m: int) -> Results:
        """All of them in a row."""
        first, last = TALLY_WORDS, TALLY_WORDS + m * RECORD_WORDS
        masks = words[last:].reshape(-1, MASK_WORDS)
        return cls(words[:first], words[first:last].reshape(-1, RECORD_WORDS), masks)


def refine(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    plan: Plan,
    scores: Scores,
    subsets: Subsets | None,
) -> tuple[Marked, int]:
    """Nodes whose entries have their sides, and the (row, column) pairs looked into."""
    level = _open(grower, begin, end, histograms, plan, scores, subsets)
    found, pairs = _visit(grower, level, is_first=True)
    while (found.records[:, 0] == WAITS).any():
        plan.tally.fill(0)
        found, more = _visit(grower, level, is_first=False)
        pairs += more
    marked = read(grower, begin, plan.parts, level.records, found.records, level.lefts)
    codes = codes_of(grower, level.sides, marked.splits.feature, found.masks)
    return marked._replace(splits=marked.splits._replace(codes=codes)), pairs


def _open(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    plan: Plan,
    scores: Scores,
    subsets: Subsets | None,
) -> Level:
    packed = LEVEL.pack(histograms, plan.slots, scores.cumulative, scores.total)
    cuts, lead, done, upto, results, lefts, *drawn = grower.workspace.splits.carve(
        _arrays(grower, begin.size, plan.parts.chunks.number), lambda: _most_bytes(grower)
    )
    sides = None
    if subsets is not None:
        masks = Results.of(results, begin.size).masks.view(np.uint32)
        masks.data.memset_async(0, masks.nbytes)
        sides = score_subsets(grower, begin, end, packed, plan, scores, subsets, masks)
    visits = Visits(*_orders(grower, plan.keys, *drawn), done, upto)
    return Level(
        rows=int((end - begin).sum()),
        plan=plan,
        histograms=histograms,
        scores=scores,
        visits=visits,
        cuts=cuts,
        lead=lead,
        results=results,
        lefts=lefts,
        sides=sides,
        packed=packed,
        held=scores.held,
        visited=VISITS.pack(*visits),
        scored=scores.pack(),
    )


def _arrays(grower: Grower, m: int, parts: int) -> list[Shaped]:
    """What is known of the splits of m nodes: cuts to `lead`, results, columns in their order."""
    i4, i8, d = np.int32, np.int64, grower.table.columns
    words, drawn = TALLY_WORDS + m * RECORD_WORDS, 2 * [((m, d), i4)] if _draws(grower) else []
    words += m * MASK_WORDS if grower.table.host.nominal.size else 0
    return [((m, CUT_WORDS), i8), (m, i4), (m, i4), (m, i4), (words, i8), (parts, i8), *drawn]


def _most_bytes(grower: Grower) -> int:
    """Of these, at most."""
    parts = grower.most_pieces(tuning.TUNING.partition_rows)
    return bytes_of(*_arrays(grower, grower.most_nodes, parts))


def _spread(grower: Grower, level: Level) -> tuple[Any, Any]:
    """Between which targets all those of a node may lie; None where they are classes."""
    if grower.task.n_classes:
        return None, None
    return _narrow(grower, level.chunks, level.plan.low, level.plan.high)


def spread(grower: Grower, chunks: Chunks, m: int) -> tuple[Any, Any]:
    """The same of m nodes in chunks, as int64: see `widest`."""
    return _narrow(grower, chunks, *send(*widest(m)))


def _narrow(grower: Grower, chunks: Chunks, low: Any, high: Any) -> tuple[Any, Any]:
    """Narrow what was sent as `widest`."""
    grower.kernels(
        "choose", "narrow_targets", (chunks.number,), grower.rules, grower.statistics,
        grower.entries, chunks.packed, low, high,
    )  # fmt: skip
    return low, high


def _draws(grower: Grower) -> bool:
    """Whether nodes visit some columns first."""
    return grower.task.limits.max_features < grower.table.columns


def _orders(grower: Grower, keys: Any, orders: Any = None, ranks: Any = None) -> tuple[Any, Any]:
    """Columns by rank, and their ranks, drawn; None where all are visited at once."""
    m, d = keys.size, grower.table.columns
    if orders is not None:
        grower.kernels.each("choose", "draw_orders", m, keys, m, d, orders, ranks)
    return orders, ranks


def _visit(grower: Grower, level: Level, is_first: bool) -> tuple[Results, int]:
    """Let each node's cut be the best of the columns it visits; returns results, and pairs."""
    targets = _spread(grower, level) if is_first else (None, None)
    boundaries = BOUNDARIES.pack(
        int(is_first), *targets, level.scores.fields, level.visits, level.cuts, level.lead
    )
    if not grower.task.exact:
        grower.kernels(
            "choose", "choose_boundary", (level.nodes,), grower.rules, grower.table.columns,
            level.scores.total, boundaries, threads=32,
        )  # fmt: skip
        return _choose_splits(grower, level, NOTHING_FOUND), 0
    inside = look_inside(grower, level, boundaries)
    results = _choose_splits(grower, level, inside)
    if not results.tally[_OVERFLOWS].any():
        return results, int(results.tally[_SLOTS].sum())
    del inside
    grower.workspace.inside.release()  # its memory is worked in
    level.plan.tally.fill(0)
    pairs = _look_inside(grower, level, lead_only=1) + _look_inside(grower, level, lead_only=0)
    return _choose_splits(grower, level, NOTHING_FOUND), pairs


# Of the tally: see record.cuh.
_SLOTS, _OVERFLOWS = slice(0, 2), slice(4, 6)


def _choose_splits(grower: Grower, level: Level, inside: Packed) -> Results:
    """Mark sides by the best cuts, `inside` bins too; returns what the host reads."""
    grower.kernels(
        "choose", "choose_splits", (level.nodes,), grower.rules, grower.table.packed,
        level.packed, level.scored, level.visited, inside, level.plan.tally,
        level.plan.parts.begin, level.cuts, level.results, threads=32,
    )  # fmt: skip
    mark(grower, level.plan.parts, level.records, level.sides, level.lefts)
    return Results.of(level.results.get(), level.nodes)


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
        level.scores.bound, level.visited, level.cuts, level.lead, lead_only, cell_rows,
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
