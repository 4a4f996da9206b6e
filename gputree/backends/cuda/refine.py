"""The split of each node: best boundaries, then exact cuts inside bins that may beat them.

Every bin whose bound reaches the best score is searched, so the order of work does not matter. The
column of the largest bound goes first, since its cuts raise the best score for all others. Bins of
few rows are searched without the host (`gputree.backends.cuda.inside`), which sees the splits at
the end; else it sees the number of rows to gather. The rows of the largest node say which, before
any bin is searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda import sub_bins, tuning
from gputree.backends.cuda.categories import MASK_WORDS, Subsets, codes_of, score_subsets
from gputree.backends.cuda.inside import CUT_WORDS, NOTHING_FOUND, has_small_bins, look_inside
from gputree.backends.cuda.kernels import LANES, cupy
from gputree.backends.cuda.layout import TALLY_WORDS, Chunks, Grower, Plan, sort_segments
from gputree.backends.cuda.levels import Batch, Candidates, Level, Results
from gputree.backends.cuda.partition import RECORD_WORDS, Marked, mark, read
from gputree.backends.cuda.score import Scores
from gputree.backends.cuda.structs import BOUNDARIES, GRID, LEVEL, PIECES, SUB_BINS, VISITS, Packed
from gputree.backends.cuda.workspace import Shaped, allocate, bytes_of
from gputree.dtypes import WAITS

# Of the tally: see record.cuh.
_SLOTS, _OVERFLOWS = slice(0, 2), slice(4, 6)

_NOT_COUNTED = SUB_BINS.pack(None, None, None)


def refine(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    plan: Plan,
    scores: Scores,
    subsets: Subsets | None,
) -> tuple[Marked, int]:
    """Nodes whose entries have their sides, and the (row, column) pairs searched."""
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
    m, d = begin.size, grower.table.columns
    keys = plan.keys if grower.task.limits.random_ties else None
    packed = LEVEL.pack(histograms, plan.slots, scores.cumulative, scores.total, keys)
    cuts, lead, done, upto, results, lefts, *drawn = grower.workspace.splits.allocate(
        _arrays(grower, m, plan.parts.chunks.number), lambda: _most_bytes(grower)
    )
    sides = None
    if subsets is not None:
        masks = Results.of(results, m).masks.view(np.uint32)
        masks.data.memset_async(0, masks.nbytes)
        sides = score_subsets(grower, begin, end, packed, plan, scores, subsets, masks)
    if drawn:
        grower.kernels.each("choose", "draw_orders", m, plan.keys, m, d, *drawn)
    visits = (*(drawn or (None, None)), done, upto)
    return Level(
        rows=int((end - begin).sum()),
        largest=int((end - begin).max()),
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
        visited=VISITS.pack(*visits),
        scored=scores.pack(),
    )


def _arrays(grower: Grower, m: int, parts: int) -> list[Shaped]:
    """What is known of the splits of m nodes: cuts to `lefts`, then columns by rank, and ranks.

    The last two only where nodes visit some columns first.
    """
    i4, i8, d = np.int32, np.int64, grower.table.columns
    words, draws = TALLY_WORDS + m * RECORD_WORDS, grower.task.limits.max_features < d
    words += m * MASK_WORDS if grower.table.host.categorical.size else 0
    arrays: list[Shaped] = [((m, CUT_WORDS), i8), *3 * [(m, i4)], (words, i8), (parts, i8)]
    return arrays + draws * 2 * [((m, d), i4)]


def _most_bytes(grower: Grower) -> int:
    """Of these, at most."""
    parts = grower.most_pieces(tuning.TUNING.partition_rows)
    return bytes_of(*_arrays(grower, grower.most_nodes, parts))


def narrow_targets(grower: Grower, chunks: Chunks, low: Any, high: Any) -> tuple[Any, Any]:
    """Narrow the interval of the targets of each node, which was sent as `widest`."""
    grower.kernels(
        "choose", "narrow_targets", (chunks.number,), grower.rules, grower.statistics,
        grower.entries, chunks.packed, low, high,
    )  # fmt: skip
    return low, high


def _visit(grower: Grower, level: Level, is_first: bool) -> tuple[Results, int]:
    """Let each node's cut be the best of the columns it visits; returns results, and pairs."""
    plan, targets = level.plan, (None, None)
    if is_first and not grower.task.n_classes:
        targets = narrow_targets(grower, plan.chunks, plan.low, plan.high)
    boundaries = BOUNDARIES.pack(
        int(is_first), *targets, level.scores.fields, level.visits, level.cuts, level.lead
    )
    divisible, pairs = grower.table.divisible > 0, 0
    if divisible and has_small_bins(grower, level):
        inside = look_inside(grower, level, boundaries)
        results = _choose_splits(grower, level, inside)
        if not results.tally[_OVERFLOWS].any():
            return results, int(results.tally[_SLOTS].sum())
        del inside
        plan.tally.fill(0)
    else:
        grower.kernels(
            "choose", "choose_boundary", (level.nodes,), grower.rules, grower.table.columns,
            level.packed, boundaries, threads=LANES,
        )  # fmt: skip
    if divisible:
        grower.workspace.inside.release()  # its memory is worked in
        pairs = sum(_look_inside(grower, level, lead_only) for lead_only in (1, 0))
    return _choose_splits(grower, level, NOTHING_FOUND), pairs


def _choose_splits(grower: Grower, level: Level, inside: Packed) -> Results:
    """Mark sides by the best cuts, `inside` bins too; returns what the host reads."""
    grower.kernels(
        "choose", "choose_splits", (level.nodes,), grower.rules, grower.table.packed,
        level.packed, level.scored, level.visited, inside, level.plan.tally,
        level.plan.parts.begin, level.cuts, level.results, threads=LANES,
    )  # fmt: skip
    mark(grower, level.plan.parts, level.records, level.sides, level.lefts)
    return Results.of(level.results.get(), level.nodes)


# ----------------------------------------------------------------- inside bins
def _look_inside(grower: Grower, level: Level, lead_only: int) -> int:
    """Refine the leading column of each node, or all others; returns the pairs gathered."""
    candidates = _mark_candidates(grower, level, lead_only)
    rows, chunks = _totals(candidates)
    if rows >= sub_bins.least_worth(level.rows):
        candidates = _subdivide(grower, level, lead_only, candidates, rows)
        rows, chunks = _totals(candidates)
    if rows <= grower.most_gathered_pairs:
        if rows:
            batch = Batch(
                0, candidates.used.size, rows, chunks, candidates.starts[0], candidates.starts[1]
            )
            _refine_columns(grower, level, candidates, batch)
        return rows
    starts = candidates.starts.get()
    begin = 0
    while starts[0, begin] < rows:
        batch = _next_batch(grower, candidates, starts, begin)
        if batch.rows:
            _refine_columns(grower, level, candidates, batch)
        begin = batch.end
    return rows


def _totals(candidates: Candidates) -> tuple[int, int]:
    """Rows, or sub-bins, and chunks of all columns."""
    rows, chunks = cupy().ascontiguousarray(candidates.starts[:, -1]).get()
    return int(rows), int(chunks)


def _subdivide(
    grower: Grower, level: Level, lead_only: int, candidates: Candidates, rows: int
) -> Candidates:
    """Candidates among sub-bins instead of bins, unless none fit memory."""
    cell_rows = tuning.TUNING.cell_rows
    while cell_rows < rows:
        bins = _mark_candidates(grower, level, lead_only, cell_rows)
        n, _ = _totals(bins)
        if n <= sub_bins.most_sub_bins(grower, level):
            return sub_bins.subdivide(grower, level, bins, n)
        cell_rows *= 8
    return candidates


def _next_batch(grower: Grower, candidates: Candidates, starts: Int64s, begin: int) -> Batch:
    """As many columns from `begin` as fit memory, or one."""
    most = starts[0, begin] + grower.most_gathered_pairs
    end = max(int(np.searchsorted(starts[0], most, side="right")) - 1, begin + 1)
    rows, chunks = starts[:, end] - starts[:, begin]
    moved = [candidates.starts[i] - int(starts[i, begin]) for i in range(2)]
    return Batch(begin, end, int(rows), int(chunks), *moved)


def _mark_candidates(
    grower: Grower, level: Level, lead_only: int, cell_rows: int = 0
) -> Candidates:
    """Candidate bins, and the rows they take, or the sub-bins of `cell_rows` rows."""
    xp, table, m = cupy(), grower.table, level.nodes
    place, taken = allocate(((m, grower.cells), np.int32), ((m, grower.cells), np.uint32))
    counts = xp.zeros((2, m * table.columns + 1), dtype=np.int64)
    used = counts[0, 1:]
    grower.kernels(
        "refine", "mark_candidates", (used.size,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visited, level.cuts, level.lead, lead_only, cell_rows,
        place, taken, used, counts[1, 1:], threads=LANES,
    )  # fmt: skip
    grid = GRID.pack(used, None, place, None, None, None)
    return Candidates(place, taken, used, xp.cumsum(counts, axis=1), grid, _NOT_COUNTED)


def _refine_columns(grower: Grower, level: Level, candidates: Candidates, batch: Batch) -> None:
    """Refine the columns of a batch."""
    keys, items = _gather(grower, level, candidates, batch)
    cuts = _scan(grower, level, candidates, batch, keys, items)
    grower.kernels(
        "refine", "pick_cuts", (level.nodes,), batch.begin, batch.end, grower.table.columns,
        batch.chunk_start, cuts, level.cuts, threads=LANES,
    )  # fmt: skip


def _gather(grower: Grower, level: Level, candidates: Candidates, batch: Batch) -> tuple[Any, Any]:
    """Keys and rows of the candidates, sorted by candidate and value."""
    table, n = grower.table, batch.rows
    segments, keys, items = allocate((n, np.uint32), (n, table.bits), (n, np.int32))
    grower.kernels(
        "refine", "gather_rows", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, batch.begin, batch.end, candidates.grid,
        batch.row_start, candidates.place, candidates.taken, segments, keys, items,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    return keys[order], items[order]


def _scan(
    grower: Grower, level: Level, candidates: Candidates, batch: Batch, keys: Any, items: Any
) -> Any:
    """The best cut of each chunk of the sorted rows of candidates."""
    kernels, n, i8 = grower.kernels, batch.chunks, np.int64
    rules, table, channels = grower.rules, grower.table.packed, grower.task.channels
    column, bins, first, last, owner, lefts, cuts = allocate(
        (n, i8), (n, np.int32), (n, i8), (n, i8), (n, i8), ((n, channels), i8), ((n, CUT_WORDS), i8)
    )
    pieces = PIECES.pack(column, bins, first, last)
    kernels(
        "refine", "list_chunks", (batch.end - batch.begin,), rules, table, level.packed,
        batch.begin, candidates.grid, candidates.counted, candidates.place, batch.row_start,
        batch.chunk_start, pieces, owner, threads=LANES,
    )  # fmt: skip
    kernels.each("refine", "sum_chunks", n, n, channels, grower.statistics, items, pieces, lefts)
    kernels.each(
        "refine", "accumulate_chunks", n * channels, n, channels, table, level.packed,
        candidates.counted, pieces, owner, lefts,
    )  # fmt: skip
    kernels.each(
        "refine", "scan_chunks", n, rules, table, level.packed, level.scores.monotonic, n,
        grower.statistics, keys, items, pieces, lefts, cuts,
    )  # fmt: skip
    return cuts
