"""The split of each node: best boundaries, then exact cuts inside bins that may be better.

Every bin whose bound reaches the score of the best boundary is searched, in one pass over all
columns. Bins of few rows are searched without the host (`gputree.backends.cuda.inside`), which
reads the splits at the end. Other candidate bins are counted into sub-bins on the device: those
whose bound reaches the best score are gathered, sorted and scanned, and the host reads their number
of rows. It does not know the number of sub-bins, and allocates memory for the maximum. The size of
the largest node decides between the two, before any bin is searched.
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
    GRID,
    LANES,
    LEVEL,
    PAIR_LIST,
    SLOTS,
    SUB_BINS,
    VISITS,
    Packed,
)
from gputree.backends.cuda.layout import TALLY_WORDS, Grower, LevelPlan, batches, sort_segments
from gputree.backends.cuda.memory import GATHERED_BYTES
from gputree.backends.cuda.partition import RECORD_WORDS, Marked, mark, read
from gputree.backends.cuda.pieces import DeviceChunks
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.workspace import Shaped, allocate, allocate_in, bytes_of
from gputree.base.dtypes import WAITS

# Fields of the tally: see record.cuh.
_SLOTS, _OVERFLOWS = 0, 2


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
    cuts, done, upto, results, lefts, *drawn = grower.workspace.splits.allocate(
        _arrays(grower, m, plan.parts.chunks.number), lambda: _most_bytes(grower)
    )
    sides = None
    if subsets is not None:
        masks = Results.of(results, m).masks.view(np.uint32)
        masks.data.memset_async(0, masks.nbytes)
        sides = score_subsets(grower, begin, end, packed, plan, scores, subsets, masks)
    if drawn:
        grower.kernels.each("choose", "draw_orders", m, plan.keys, m, d, *drawn)
    return SearchLevel(
        rows=int((end - begin).sum()),
        largest=int((end - begin).max()),
        plan=plan,
        histograms=histograms,
        scores=scores,
        cuts=cuts,
        results=results,
        lefts=lefts,
        sides=sides,
        packed=packed,
        visited=VISITS.pack(*(drawn or (None, None)), done, upto),
        scored=scores.pack(),
    )


def _arrays(grower: Grower, m: int, parts: int) -> list[Shaped]:
    """Arrays of the splits of m nodes: cuts to `lefts`, then columns by rank, and ranks.

    The last two exist only where nodes visit some columns first.
    """
    i4, i8, d = np.int32, np.int64, grower.table.columns
    words, draws = TALLY_WORDS + m * RECORD_WORDS, grower.task.limits.max_features < d
    words += m * MASK_WORDS if grower.table.host.categorical.size else 0
    arrays: list[Shaped] = [((m, CUT_WORDS), i8), *2 * [(m, i4)], (words, i8), (parts, i8)]
    return arrays + draws * 2 * [((m, d), i4)]


def _most_bytes(grower: Grower) -> int:
    """Upper bound on the bytes of `_arrays`."""
    return bytes_of(*_arrays(grower, grower.most_nodes, grower.most_parts))


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
    grower.kernels(
        "choose", "choose_boundary", (level.nodes,), grower.rules, grower.table.columns,
        level.packed, int(is_first), *targets, level.scored, level.visited, level.cuts,
        threads=LANES,
    )  # fmt: skip
    if not grower.table.divisible:
        return _choose_splits(grower, level, NOTHING_FOUND), 0
    if has_small_bins(grower, level):
        results = _choose_splits(grower, level, look_inside(grower, level))
        if not results.tally[_OVERFLOWS]:
            return results, int(results.tally[_SLOTS])
        plan.tally.fill(0)
    pairs = _look_inside(grower, level)
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
def _look_inside(grower: Grower, level: SearchLevel) -> int:
    """Refine the columns of each node by sub-bins; returns the pairs gathered."""
    candidates = subdivide(grower, level)
    *counts, pairs = candidates.totals.get().tolist()
    most = max(candidates.free_bytes // GATHERED_BYTES, 1)
    for batch in _batches(candidates, counts, min(most, tuning.TUNING.gathered_pairs)):
        _refine_columns(grower, level, candidates, batch, pairs)
    return counts[0]


def _batches(candidates: CandidateSubBins, counts: list[int], most: int) -> Iterator[Batch]:
    """Columns whose rows, up to `most`, are gathered at once: all, or those that fit."""
    starts = candidates.starts
    rows, number, large = counts
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
    grower: Grower, level: SearchLevel, candidates: CandidateSubBins, batch: Batch, pairs: int
) -> None:
    """Refine the columns of a batch; there are so many `pairs` in candidate bins of all columns."""
    kernels, table, n = grower.kernels, grower.table, batch.rows
    blocks = scanning_blocks(grower, batch.candidates)
    segments, keys, items, lefts, cuts = allocate(
        (0 if batch.sorts else n, np.uint32), (n, table.bits), (n, np.int32),
        ((blocks, grower.channels, LANES), np.int64),
        ((batch.candidates, CUT_WORDS), np.int64),
    )  # fmt: skip
    slots = SLOTS.pack(
        batch.begin, batch.end, batch.row_start, None if batch.sorts else segments, keys, items
    )
    gathered = candidates.grid, candidates.counted, slots
    if pairs <= candidates.room:
        kernels.each("refine", "gather_listed", pairs, candidates.listed, pairs, *gathered)
    else:
        kernels(
            "refine", "gather_rows", (level.chunks.number,), table.values, table.packed,
            grower.entries, level.chunks.packed, *gathered,
        )  # fmt: skip
    if not batch.sorts:
        order = sort_segments(segments, keys)
        keys, items = keys[order], items[order]
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


def _rows_and_number(grower: Grower, level: SearchLevel) -> tuple[int, int]:
    """Average rows of a sub-bin, and maximum number of sub-bins.

    Where memory is short, sub-bins have more rows: they use a quarter of the memory for pairs, or
    are one for each bin.
    """
    pairs = level.rows * grower.table.columns
    bins = min(level.nodes * grower.table.cells, pairs // 2)  # a candidate has two rows, or more
    rows = tuning.TUNING.cell_rows
    most = grower.memory.gathered_bytes // 4 // _cell_bytes(grower)
    while rows < level.largest and bins + 2 * pairs // rows > most:
        rows *= 8
    return rows, bins + (2 * pairs // rows if rows < level.largest else 0)


def _cell_bytes(grower: Grower) -> int:
    """Bytes of a sub-bin: counts, sums, its bin, its number, place and cursor."""
    return grower.cell_bytes + 8 * grower.channels + 16


def _listed_pairs(grower: Grower, level: SearchLevel) -> int:
    """Maximum number of pairs that are listed, in a quarter of the memory for pairs at most."""
    pair_bytes = 8 + grower.table.bits.itemsize  # its sub-bin, row and value
    most = grower.memory.gathered_bytes // 4 // pair_bytes
    return min(int(tuning.TUNING.listed_share * level.rows), most)


def subdivide(grower: Grower, level: SearchLevel) -> CandidateSubBins:
    """Candidates among the sub-bins of candidate bins, with their numbers of rows."""
    kernels, table, channels = grower.kernels, grower.table, grower.channels
    m, columns = level.nodes, level.nodes * table.columns
    cell_rows, n = _rows_and_number(grower, level)
    room, buffer = _listed_pairs(grower, level), grower.workspace.inside
    zeroed: list[Shaped] = [
        (n * channels, grower.cell_dtype), ((4, columns + 1), np.int64), (5, np.int64)
    ]  # fmt: skip
    arrays: list[Shaped] = [
        (bytes_of(*zeroed), np.uint8), (m, np.int64), ((m, grower.table.cells), np.int32),
        ((m, grower.table.cells), np.uint32), (n * channels, np.int64), (n, np.int32),
        (n, np.int32), (n, np.uint32), (n, np.int32), (room, np.int32), (room, np.int32),
        (room, table.bits),
    ]  # fmt: skip
    if buffer.nbytes > 2 * bytes_of(*arrays):
        buffer.release()  # rows are gathered in its memory
    zeros, best_scores, bin_place, size, sums, bin_of, place, taken, listed, *pairs = (
        buffer.allocate(arrays, lambda: bytes_of(*arrays))
    )
    zeros.data.memset_async(0, zeros.nbytes)
    counts, starts, totals = allocate_in(zeros.data, *zeroed)
    used = starts[0]
    kernels(
        "sub_bins", "mark_candidates", (columns,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visited, level.cuts, cell_rows, bin_place, size, used[1:],
        best_scores,
    )  # fmt: skip
    kernels("sub_bins", "sum_counts", (1,), used, used.size, totals, threads=1024)
    candidates = CandidateSubBins(
        starts=starts[1:],
        totals=totals[1:],
        grid=GRID.pack(used, bin_place, size, *table.scales),
        counted=SUB_BINS.pack(counts, sums, bin_of, place, taken, listed),
        listed=PAIR_LIST.pack(room, totals[4:], *pairs),
        room=room,
        free_bytes=grower.memory.gathered_bytes - buffer.nbytes,
    )
    _mark_sub_bins(grower, level, candidates, best_scores)
    return candidates


def _mark_sub_bins(
    grower: Grower, level: SearchLevel, candidates: CandidateSubBins, best_scores: Any
) -> None:
    """Count the rows of sub-bins, list their pairs, and mark the candidates."""
    kernels, table, columns = grower.kernels, grower.table, level.nodes * grower.table.columns
    grid, counted, starts = candidates.grid, candidates.counted, candidates.starts
    kernels(
        "sub_bins", "count_sub_bins", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, grower.channels, grid,
        counted, candidates.listed,
    )  # fmt: skip
    kernels(
        "sub_bins", "accumulate_sub_bins", (columns,), table.packed, grower.channels,
        level.packed, grid, counted,
    )  # fmt: skip
    slices = max(MARKING_BLOCKS // columns, 1)
    scored = (
        grower.rules, table.packed, level.packed, level.scores.monotonic, grid, counted, slices,
        best_scores,
    )  # fmt: skip
    kernels("sub_bins", "raise_best", (columns * slices,), *scored)
    kernels("sub_bins", "mark_sub_bins", (columns * slices,), *scored)
    kernels("sub_bins", "list_sub_bins", (columns,), grower.rules, grid, counted, *starts[:, 1:])
    kernels("sub_bins", "sum_counts", (3,), starts, columns + 1, candidates.totals, threads=1024)
