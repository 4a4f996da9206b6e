"""The split of each node: best boundaries, then exact cuts inside bins that may be better.

Every bin whose bound reaches the score of the best boundary is searched, in one pass over all
columns (`gputree.backends.cuda.sub_bins`); the host reads the splits at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.backends.cuda.categories import MASK_WORDS, SubsetPlan, codes_of, score_subsets
from gputree.backends.cuda.kernels import LANES, LEVEL, VISITS, Packed
from gputree.backends.cuda.layout import Grower, LevelPlan
from gputree.backends.cuda.level import CUT_WORDS, Results, SearchExtent, SearchLevel, Tally
from gputree.backends.cuda.partition import RECORD_WORDS, Marked, mark, read
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.sub_bins import SubBinSearch, search_in_batches, search_sub_bins
from gputree.backends.cuda.workspace import DeviceChunks, Shaped, bytes_of
from gputree.base.dtypes import WAITS, Int64s


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
    sizes = end - begin
    extent = SearchExtent(begin.size, int(sizes.sum()), int(sizes.max()))
    drawn = draw_orders(grower, begin.size, plan.keys, scores.sets)
    level = open_search(grower, extent, histograms, plan, scores, drawn)
    if subsets is not None:
        masks = Results.of(level.results, begin.size).masks.view(np.uint32)
        masks.data.memset_async(0, masks.nbytes)
        sides = score_subsets(grower, begin, end, level.packed, plan, scores, subsets, masks)
        level = level._replace(sides=sides)
    found, pairs = _visit(grower, level, is_first=True)
    while (found.records[:, 0] == WAITS).any():
        found, more = _visit(grower, level, is_first=False)
        pairs += more
    marked = read(grower, begin, plan.parts, level.records, found.records, level.lefts)
    codes = codes_of(grower, level.sides, marked.splits.feature, found.masks)
    return marked._replace(splits=marked.splits._replace(codes=codes)), pairs


def draw_orders(grower: Grower, m: int, keys: Any, sets: Any = None) -> tuple[Any, Any]:
    """Columns of m nodes in the order of visits, and their ranks; None where all are visited."""
    d = grower.table.columns
    if grower.task.limits.max_features >= d:
        return None, None
    of = lambda nodes: 2 * [((nodes, d), np.int32)]  # noqa: E731
    orders, ranks = grower.workspace.drawn.allocate(of(m), lambda: bytes_of(*of(grower.most_nodes)))
    grower.kernels.each(
        "choose", "draw_orders", m, keys, m, d, grower.interactions, sets, orders, ranks
    )
    return orders, ranks


def open_search(
    grower: Grower,
    extent: SearchExtent,
    histograms: Any,
    plan: LevelPlan,
    scores: DeviceScores,
    drawn: tuple[Any, Any],  # see `draw_orders`
    results: Any = None,
) -> SearchLevel:
    """Allocate the search of nodes; `results` is other memory for what the host reads."""
    m = extent.nodes
    keys = plan.keys if grower.task.limits.random_ties else None
    cuts, best_boundaries, best_scores, latest, done, upto, read, lefts = (
        grower.workspace.splits.allocate(
            _arrays(grower, m, plan.parts.chunks.number), lambda: _most_bytes(grower)
        )
    )
    results = read if results is None else results
    return SearchLevel(
        extent=extent,
        plan=plan,
        chunks=plan.chunks,
        scores=scores,
        cuts=cuts,
        best_boundaries=best_boundaries,
        best_scores=best_scores,
        latest=latest,
        results=results,
        records=Results.of(results, m).records,
        lefts=lefts,
        sides=None,
        packed=LEVEL.pack(
            histograms, plan.slots, scores.cumulative, scores.total, keys, plan.number
        ),
        visited=VISITS.pack(*drawn, done, upto),
        scored=scores.pack(),
    )


def _arrays(grower: Grower, m: int, parts: int) -> list[Shaped]:
    """Arrays of the splits of m nodes, in the order of `open_search`."""
    i4, i8, words = np.int32, np.int64, len(Tally._fields) + m * RECORD_WORDS
    words += m * MASK_WORDS if grower.table.host.categorical.size else 0
    return [((m, CUT_WORDS), i8), *2 * [(m, i8)], *3 * [(m, i4)], (words, i8), (parts, i8)]


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


def queue_search(
    grower: Grower, level: SearchLevel, is_first: bool
) -> tuple[SubBinSearch | None, Packed]:
    """Queue the search of the columns that nodes visit; returns that inside bins, and the cuts."""
    plan, targets, search, found = level.plan, (None, None), None, level.found()
    if is_first and not grower.task.n_classes:
        targets = narrow_targets(grower, plan.chunks, plan.low, plan.high)
    grower.kernels(
        "choose", "choose_boundary", (level.extent.nodes,), grower.rules, grower.table.columns,
        level.packed, int(is_first), *targets, level.scored, level.visited, level.cuts, found,
        threads=LANES,
    )  # fmt: skip
    if grower.table.divisible:
        search, found = search_sub_bins(grower, level)
    _choose_splits(grower, level, found)
    return search, found


def _visit(grower: Grower, level: SearchLevel, is_first: bool) -> tuple[Results, int]:
    """Set each node's cut to the best of the columns it visits; returns results, and pairs."""
    search, _ = queue_search(grower, level, is_first)
    results = Results.of(level.results.get(), level.extent.nodes)
    tally = Tally(*results.tally.tolist())
    if search is not None and tally.overflows:
        _choose_splits(grower, level, search_in_batches(grower, level, search, tally))
        results = Results.of(level.results.get(), level.extent.nodes)
    return results, tally.slots


def _choose_splits(grower: Grower, level: SearchLevel, found: Packed) -> None:
    """Choose splits by the best cuts, including those `found`, and mark sides by them."""
    grower.kernels(
        "choose", "choose_splits", (level.extent.nodes,), grower.rules, grower.table.packed,
        level.packed, level.scored, level.visited, found, level.plan.parts.begin, level.cuts,
        threads=LANES,
    )  # fmt: skip
    mark(grower, level.plan.parts, level.records, level.sides, level.lefts)
