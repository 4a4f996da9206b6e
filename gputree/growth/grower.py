"""The level loop: one grower for every backend.

while the frontier has nodes:
    small nodes     are set aside; their subtrees are built at the end
    queued levels   are split by the device in advance; the host reads their splits
    large nodes     histogram -> score -> refine -> partition -> their children
"""

from typing import NamedTuple

import numpy as np

from gputree.backends.base import (
    Ahead,
    Backend,
    Bounds,
    GrowsAhead,
    Larger,
    Limits,
    Splits,
    Uint64s,
)
from gputree.backends.binning import fewest_rows
from gputree.backends.interactions import Interactions
from gputree.base.dtypes import Int64s
from gputree.base.progress import Progress
from gputree.growth.assembly import GrownNodes, NodeTable
from gputree.growth.frontier import (
    FEWEST_ROWS,
    BestFirst,
    Frontier,
    LevelHistograms,
    bounds_below,
    can_split,
    children_of,
    finish_rows,
)


class GrowthPlan(NamedTuple):
    """Options of growth. Memory limits and sizes do not change the tree."""

    max_bins: int
    exact: bool  # tables may be grown without codes: cuts are found among values, not bins
    max_leaf_nodes: int | None
    histogram_bytes: int  # memory limit of the histograms of one level
    finish_rows: int | None  # size up to which nodes are small; None to choose by cost
    coded_again: int = 0  # number of columns of more categories than bins
    interactions: Interactions | None = None


def grow_roots(
    backend: Backend,
    sizes: Int64s,
    keys: Uint64s,
    columns: int,
    limits: Limits,
    plan: GrowthPlan,
    progress: Progress,
) -> tuple[GrownNodes, Int64s]:
    """Grow trees of `sizes` entries, one after another: all nodes, and which are roots.

    `keys` are the seeds of the columns that trees draw at their nodes.
    """
    coded = encode(backend, (int(sizes.max()), columns), plan)
    table = NodeTable(sizes)
    best_first = BestFirst(plan.max_leaf_nodes, sizes)
    frontier = Frontier.roots(sizes, keys, Bounds.of_roots(limits, plan.interactions, sizes.size))
    parents = LevelHistograms.none()
    aside: list[Frontier] = []
    # levels that backends split in advance, unless a limit depends on all of a level
    ahead: list[Ahead] = []
    queuing = backend if isinstance(backend, GrowsAhead) and frontier.bounds is None else None
    small = depth = 0
    while frontier.size:
        progress.level(depth, frontier.size, frontier.rows, table.n_nodes)
        frontier = frontier.take(can_split(frontier.end - frontier.begin, depth, limits))
        sizes = frontier.end - frontier.begin
        if not ahead:  # else as it was when these levels were grown
            levels = limits.max_depth - depth
            small = _small_rows(backend, sizes, columns, plan, levels, coded=coded)
        is_small = sizes <= small
        aside.append(frontier.take(is_small))
        depth += 1
        if is_small.all():
            break
        frontier = frontier.take(~is_small)
        if queuing and not ahead and (levels := best_first.levels(frontier.begin, levels)):
            fewest = max(fewest_rows(limits), small + 1)
            nodes = frontier.begin, frontier.end, frontier.key
            progress.ahead(depth - 1, frontier.rows)
            ahead = queuing.grow_ahead(*nodes, levels, fewest)
        known, ahead = ahead[0] if ahead else None, ahead[1:]
        frontier, parents = _grow_level(
            backend, frontier, parents, known, table, best_first, limits, plan
        )
    del parents  # small nodes need no histograms
    roots = Frontier.join(aside)
    progress.level(depth, 0, roots.rows, table.n_nodes)
    if roots.size == 0:
        return table.join(roots.node, None)
    depths = np.repeat(np.arange(len(aside)), [f.size for f in aside])
    subtrees = backend.finish(roots.begin, roots.end, depths, roots.key, roots.bounds)
    return table.join(roots.node, subtrees)


def encode(backend: Backend, shape: tuple[int, int], plan: GrowthPlan) -> bool:
    """Code the backend's table, if a tree of `shape` (rows, columns) needs codes; True if so."""
    n_rows, columns = shape
    # Last: a backend counts the additional time.
    coded = not plan.exact or not (
        n_rows <= FEWEST_ROWS or n_rows * columns <= backend.uncoded_cells
    )
    if coded:
        backend.encode(plan.max_bins)
    return coded


def is_small_root(
    backend: Backend, shape: tuple[int, int], limits: Limits, plan: GrowthPlan
) -> bool:
    """Return True if the root of a tree of `shape` entries is small; codes the table if need be."""
    n_rows, columns = shape
    coded = encode(backend, shape, plan)
    sizes = np.array([n_rows])
    return _small_rows(backend, sizes, columns, plan, limits.max_depth, coded=coded) >= n_rows


def _small_rows(
    backend: Backend, sizes: Int64s, columns: int, plan: GrowthPlan, levels: int, *, coded: bool
) -> int:
    """Maximum number of rows of small nodes in a level of nodes of these sizes."""
    if not coded or backend.histogram_bytes > plan.histogram_bytes:
        return int(sizes.sum())  # there are no codes, or one histogram exceeds the memory limit
    if plan.finish_rows is not None:
        return plan.finish_rows
    statistics = backend.histogram_cells * backend.channels
    finishing = backend.finishing
    if plan.max_leaf_nodes is not None:  # few nodes of a level may remain
        finishing = finishing._replace(level_cells=0)
    return finish_rows(finishing, sizes, columns, statistics, levels, plan.coded_again)


def _grow_level(
    backend: Backend,
    frontier: Frontier,
    parents: LevelHistograms,
    ahead: Ahead | None,
    table: NodeTable,
    best_first: BestFirst,
    limits: Limits,
    plan: GrowthPlan,
) -> tuple[Frontier, LevelHistograms]:
    """Split the nodes of one level, in batches that fit memory, and return their children.

    Nodes that were split in advance come first, and are partitioned.
    """
    frontier, known = _known_first(frontier, ahead)
    batch_size = max(plan.histogram_bytes // backend.histogram_bytes, 1) if frontier.size else 1
    histograms = LevelHistograms.none()
    parts = [known.splits]
    for first in range(known.begin.size, frontier.size, batch_size):
        batch = frontier.slice(first, first + batch_size)
        del histograms  # of the batch before
        histograms = _build(backend, batch, parents)
        scores = backend.score(histograms.cells, histograms.slot, batch.bounds)
        entries, place = (batch.begin, batch.end), histograms.slot
        parts.append(
            backend.refine(*entries, histograms.cells, place, scores, batch.key, batch.bounds)
        )
        del scores
    if len(parts) > 2:
        histograms = LevelHistograms.none()  # children count all of theirs: the level did not fit
    splits = Splits(*map(np.concatenate, zip(*parts, strict=True)))
    found, gain = splits.feature >= 0, splits.gain * splits.weight
    worth = best_first.worth(frontier.begin, frontier.path_gain, found, gain)
    chosen = np.flatnonzero(worth)
    opened, splits = frontier.take(chosen), splits.take(chosen)
    if opened.size == 0:
        return opened, LevelHistograms.none()
    done = int(np.searchsorted(chosen, known.begin.size))
    middle, threshold = known.middle[chosen[:done]], known.threshold[chosen[:done]]
    if done < chosen.size:
        rest = slice(done, None)
        cut = backend.partition(opened.begin[rest], opened.end[rest], splits.take(rest))
        middle, threshold = np.append(middle, cut[0]), np.append(threshold, cut[1])
    bounds = None
    if opened.bounds is not None:
        bounds = bounds_below(backend, limits, plan.interactions, opened, middle, splits.feature)
    numbers = table.add_children(opened.node, splits, threshold, middle)
    slots = histograms.slots_of(chosen - known.begin.size)
    return children_of(opened, numbers, middle, slots, gain[chosen], bounds), histograms


def _known_first(frontier: Frontier, ahead: Ahead | None) -> tuple[Frontier, Ahead]:
    """Put nodes that were split in advance first, and their splits in the same order."""
    if ahead is None:
        return frontier, Ahead(frontier.begin[:0], Splits.none(0), frontier.begin[:0], np.empty(0))
    nodes = np.intersect1d(frontier.begin, ahead.begin, assume_unique=True, return_indices=True)
    _, place, found = nodes
    others = np.delete(np.arange(frontier.size), place)
    splits = ahead.splits.take(found)
    known = Ahead(ahead.begin[found], splits, ahead.middle[found], ahead.threshold[found])
    return frontier.take(np.concatenate([place, others])), known


def _build(backend: Backend, batch: Frontier, parents: LevelHistograms) -> LevelHistograms:
    """Make the histograms of a batch: the smaller of two siblings is counted, the other subtracted.

    A smaller sibling that is not in the frontier is counted all the same, in the larger one's
    place.
    """
    derived = np.flatnonzero(batch.is_larger() & (batch.parent_slot >= 0))
    smaller = batch.sibling()[derived]
    alone = derived[smaller < 0]
    smaller[smaller < 0] = alone
    begin, end = batch.begin.copy(), batch.end.copy()
    begin[alone], end[alone] = batch.sibling_begin[alone], batch.sibling_end[alone]
    slot = np.arange(batch.size)
    counted = np.union1d(np.delete(slot, derived), alone)
    cells = backend.new_histograms(batch.size)
    larger = Larger(parents.cells, batch.parent_slot[derived], smaller, derived)
    backend.histogram(
        begin[counted], end[counted], cells, counted, larger if derived.size else None
    )
    return LevelHistograms(cells, slot)
