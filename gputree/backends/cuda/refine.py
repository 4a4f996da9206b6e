"""The split of each node: best boundaries, then exact cuts inside bins that may be better.

Every bin whose bound reaches the best score is searched, so the order of work does not matter. The
column of the highest bound goes first, since its cuts raise the best score for all others. Bins of
few rows are searched without the host (`gputree.backends.cuda.inside`), which reads the splits at
the end; otherwise bins are counted into sub-bins (`gputree.backends.cuda.refine`), and the host
reads the number of rows to gather. The size of the largest node decides which, before any bin is
searched.

Candidate bins counted into sub-bins on the device, so that few of their rows are sorted.

The result is marks of candidate sub-bins and their numbers of rows, which are gathered, sorted and
scanned. The host does not know the number of sub-bins: memory is allocated for the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.categories import MASK_WORDS, SubsetPlan, codes_of, score_subsets
from gputree.backends.cuda.inside import (
    CUT_WORDS,
    NOTHING_FOUND,
    Batch,
    CandidateSubBins,
    Results,
    SearchLevel,
    has_small_bins,
    look_inside,
    scanning_blocks,
)
from gputree.backends.cuda.kernels import (
    BOUNDARIES,
    GRID,
    LANES,
    LEVEL,
    SUB_BINS,
    VISITS,
    Packed,
    cupy,
)
from gputree.backends.cuda.layout import (
    TALLY_WORDS,
    DeviceChunks,
    Grower,
    LevelPlan,
    batches,
    sort_segments,
)
from gputree.backends.cuda.memory import GATHERED_BYTES
from gputree.backends.cuda.partition import RECORD_WORDS, Marked, mark, read
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.workspace import Shaped, allocate, bytes_of
from gputree.base.dtypes import WAITS

# Fields of the tally: see record.cuh.
_SLOTS, _OVERFLOWS = slice(0, 2), slice(4, 6)


def refine(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    histograms: Any,
    plan: LevelPlan,
    scores: DeviceScores,
    subsets: SubsetPlan | None,
) -> tuple[Marked, int]:
    """Choose splits: nodes whose entries have their sides, and the (row, column) pairs searched."""
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
    plan: LevelPlan,
    scores: DeviceScores,
    subsets: SubsetPlan | None,
) -> SearchLevel:
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
    return SearchLevel(
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
    """Arrays of the splits of m nodes: cuts to `lefts`, then columns by rank, and ranks.

    The last two exist only where nodes visit some columns first.
    """
    i4, i8, d = np.int32, np.int64, grower.table.columns
    words, draws = TALLY_WORDS + m * RECORD_WORDS, grower.task.limits.max_features < d
    words += m * MASK_WORDS if grower.table.host.categorical.size else 0
    arrays: list[Shaped] = [((m, CUT_WORDS), i8), *3 * [(m, i4)], (words, i8), (parts, i8)]
    return arrays + draws * 2 * [((m, d), i4)]


def _most_bytes(grower: Grower) -> int:
    """Upper bound on the bytes of `_arrays`."""
    parts = grower.most_pieces(tuning.TUNING.partition_rows)
    return bytes_of(*_arrays(grower, grower.most_nodes, parts))


def narrow_targets(grower: Grower, chunks: DeviceChunks, low: Any, high: Any) -> tuple[Any, Any]:
    """Narrow the interval of the targets of each node from `widest`."""
    grower.kernels(
        "choose", "narrow_targets", (chunks.number,), grower.rules, grower.statistics,
        grower.entries, chunks.packed, low, high,
    )  # fmt: skip
    return low, high


def _visit(grower: Grower, level: SearchLevel, is_first: bool) -> tuple[Results, int]:
    """Set each node's cut to the best of the columns it visits; returns results, and pairs."""
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


def _choose_splits(grower: Grower, level: SearchLevel, inside: Packed) -> Results:
    """Mark sides by the best cuts, including those `inside` bins; returns results for the host."""
    grower.kernels(
        "choose", "choose_splits", (level.nodes,), grower.rules, grower.table.packed,
        level.packed, level.scored, level.visited, inside, level.plan.tally,
        level.plan.parts.begin, level.cuts, level.results, threads=LANES,
    )  # fmt: skip
    mark(grower, level.plan.parts, level.records, level.sides, level.lefts)
    return Results.of(level.results.get(), level.nodes)


# ----------------------------------------------------------------- inside bins
def _look_inside(grower: Grower, level: SearchLevel, lead_only: int) -> int:
    """Refine the leading column of each node, or all others; returns the pairs gathered."""
    candidates = subdivide(grower, level, lead_only)
    counts = cupy().ascontiguousarray(candidates.starts[:, -1]).get()
    most = max(candidates.free_bytes // GATHERED_BYTES, 1)
    for batch in _batches(candidates, counts, min(most, tuning.TUNING.gathered_pairs)):
        _refine_columns(grower, level, candidates, batch)
    return int(counts[0])


def _batches(candidates: CandidateSubBins, counts: Int64s, most: int) -> Iterator[Batch]:
    """Columns whose rows, up to `most`, are gathered at once: all, or those that fit."""
    starts = candidates.starts
    rows, number, large = map(int, counts)
    if rows <= most:
        if rows:
            yield Batch(0, starts.shape[1] - 1, rows, number, not large, *starts[:2])
        return
    on_host = starts.get()
    bounds = batches(np.diff(on_host[0]), most)
    for begin, end in zip(bounds, bounds[1:], strict=False):
        rows, number, large = map(int, on_host[:, end] - on_host[:, begin])
        if rows:
            moved = (starts[i] - int(on_host[i, begin]) for i in range(2))
            yield Batch(begin, end, rows, number, not large, *moved)


def _refine_columns(
    grower: Grower, level: SearchLevel, candidates: CandidateSubBins, batch: Batch
) -> None:
    """Refine the columns of a batch."""
    kernels, table, n = grower.kernels, grower.table, batch.rows
    segments, keys, items = allocate(
        (0 if batch.sorts else n, np.uint32), (n, table.bits), (n, np.int32)
    )
    kernels(
        "refine", "gather_rows", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, batch.begin, batch.end, candidates.grid,
        candidates.counted, batch.row_start, None if batch.sorts else segments, keys, items,
    )  # fmt: skip
    if not batch.sorts:
        order = sort_segments(segments, keys)
        keys, items = keys[order], items[order]
    blocks = scanning_blocks(grower, batch.candidates)
    lefts, cuts = allocate(
        ((blocks, grower.task.channels, LANES), np.int64), ((batch.candidates, CUT_WORDS), np.int64)
    )
    kernels(
        "refine", "scan_candidates", (blocks,), grower.rules, table.packed, level.packed,
        level.scores.monotonic, grower.statistics, batch.end, candidates.grid, candidates.counted,
        batch.row_start, batch.first, int(batch.sorts), keys, items, lefts, cuts, threads=LANES,
    )  # fmt: skip
    kernels(
        "refine", "pick_cuts", (level.nodes,), batch.begin, batch.end, table.columns, batch.first,
        cuts, level.cuts, threads=LANES,
    )  # fmt: skip


# Approximate number of blocks that mark sub-bins: where nodes are few, many blocks share a column.
MARKING_BLOCKS = 1024


def _rows_and_number(grower: Grower, level: SearchLevel, columns: int) -> tuple[int, int]:
    """Average rows of a sub-bin, and maximum number of sub-bins in `columns` columns of each node.

    Where memory is short, sub-bins have more rows: they use a quarter of the memory for pairs, or
    are one for each bin.
    """
    pairs = level.rows * columns
    bins = min(level.nodes * grower.cells, pairs // 2)  # a candidate has two rows, or more
    rows = tuning.TUNING.cell_rows
    most = grower.memory.gathered_bytes // 4 // _cell_bytes(grower)
    while rows < level.largest and bins + 2 * pairs // rows > most:
        rows *= 8
    return rows, bins + (2 * pairs // rows if rows < level.largest else 0)


def _cell_bytes(grower: Grower) -> int:
    """Bytes of a sub-bin: counts, sums, its bin, its number, place and cursor."""
    return grower.cell_bytes + 8 * grower.task.channels + 16


def subdivide(grower: Grower, level: SearchLevel, lead_only: int) -> CandidateSubBins:
    """Candidates among the sub-bins of candidate bins, with their numbers of rows.

    Only of the leading column of each node, or of all others.
    """
    kernels, table = grower.kernels, grower.table
    m, d, channels = level.nodes, table.columns, grower.task.channels
    cell_rows, n = _rows_and_number(grower, level, 1 if lead_only else d)
    bin_place, size, sums, bin_of, listed, place, taken, best_scores = allocate(
        ((m, grower.cells), np.int32), ((m, grower.cells), np.uint32), (n * channels, np.int64),
        (n, np.int32), (n, np.int32), (n, np.int32), (n, np.uint32), (m, np.int64),
    )  # fmt: skip
    counts = cupy().zeros(n * channels, dtype=grower.cell_dtype)
    starts = cupy().zeros((4, m * d + 1), dtype=np.int64)
    used, rows = starts[0], starts[1:]
    kernels(
        "sub_bins", "mark_candidates", (m * d,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visited, level.cuts, level.lead, lead_only, cell_rows,
        bin_place, size, used[1:], best_scores,
    )  # fmt: skip
    kernels("sub_bins", "sum_counts", (1,), used, used.size, threads=1024)
    grid = GRID.pack(used, bin_place, size, *table.scales)
    packed = SUB_BINS.pack(counts, sums, bin_of, place, taken, listed)
    kernels(
        "sub_bins", "count_sub_bins", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, channels, grid, packed,
    )  # fmt: skip
    kernels(
        "sub_bins", "accumulate_sub_bins", (m * d,), table.packed, channels, level.packed, grid,
        packed,
    )  # fmt: skip
    slices = max(MARKING_BLOCKS // (m * d), 1)
    scored = (
        grower.rules, table.packed, level.packed, level.scores.monotonic, grid, packed, slices,
        best_scores,
    )  # fmt: skip
    kernels("sub_bins", "raise_best", (m * d * slices,), *scored)
    kernels("sub_bins", "mark_sub_bins", (m * d * slices,), *scored)
    kernels("sub_bins", "list_sub_bins", (m * d,), grower.rules, grid, packed, *rows[:, 1:])
    kernels("sub_bins", "sum_counts", (3,), rows, used.size, threads=1024)
    return CandidateSubBins(
        rows, grid, packed, grower.memory.gathered_bytes - n * _cell_bytes(grower)
    )
