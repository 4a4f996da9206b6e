"""Nodes of a level that may still be split, and the histograms kept for their children.

Best-first growth is a selection from level-wise growth. It expands the node of highest weighted
gain until the tree has `max_leaf_nodes` leaves. A node's split does not depend on the order of
expansion, so the same tree is a part of the fully grown one. A node is expanded after every node
whose path from the root (itself included) has a higher minimum gain; once M - 1 splits with a
higher minimum gain are known, it never is. This bounds the nodes that the level loop has to split.

A node of few rows is grown as a small subtree instead of by histograms (`finish_rows`). Under
monotonic constraints the means of nodes have bounds:

    mean      -inf                 0.4                  inf
    node        |-------------------|---------------------|     cut of a rising column
    children    |  at most 0.4      |       at least 0.4  |     the middle of their means

A cut of such a column is admitted if its sides are in order and within the node's bounds; then each
child stays on its side of the middle. Other cuts pass the bounds on, and may lead to means outside:
such nodes predict the nearest bound, as in scikit-learn, so that no prediction left of a cut
exceeds any on its right.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import child_key
from gputree.backends.base import Backend, Bounds, Finishing, Limits, Uint64s
from gputree.backends.binning import child_bounds, fewest_rows
from gputree.backends.interactions import Interactions
from gputree.base.dtypes import NO_CHILD, Bools, Floats, Int32s, Int64s
from gputree.tree import Tree


@dataclass(frozen=True)
class Frontier:
    """Nodes that may still be split; two siblings that both may be are adjacent."""

    node: Int64s  # numbers in the node table
    begin: Int64s  # entries of each node
    end: Int64s
    sibling_begin: Int64s  # entries of its sibling, in the frontier or not
    sibling_end: Int64s
    key: Uint64s  # hash of the path from the root
    parent_slot: Int64s  # the parent's histogram, -1 where it was not kept
    path_gain: Floats  # lowest weighted gain of the splits above
    bounds: Bounds | None = None  # None without constraints

    @classmethod
    def roots(cls, sizes: Int64s, keys: Uint64s, bounds: Bounds | None = None) -> Frontier:
        """Return the frontier of the roots of trees of `sizes` entries, one after another."""
        end, none = np.cumsum(sizes), np.full(sizes.size, -1)
        return cls(
            node=np.arange(sizes.size),
            begin=end - sizes,
            end=end,
            sibling_begin=none,
            sibling_end=none,
            key=keys,
            parent_slot=none,
            path_gain=np.full(sizes.size, np.inf),
            bounds=bounds,
        )

    @classmethod
    def join(cls, levels: list[Frontier]) -> Frontier:
        """Return the nodes of one or more levels, one level after another."""
        if len(levels) == 1:
            return levels[0]
        arrays = {
            f.name: np.concatenate([getattr(level, f.name) for level in levels])
            for f in fields(cls)
            if f.name != "bounds"
        }
        bounds = [level.bounds for level in levels if level.bounds is not None]
        joined = Bounds._make(map(np.concatenate, zip(*bounds, strict=True))) if bounds else None
        return cls(**arrays, bounds=joined)

    @property
    def size(self) -> int:
        return self.node.size

    @property
    def rows(self) -> int:
        """Number of entries in all nodes."""
        return int((self.end - self.begin).sum())

    def take(self, nodes: NDArray[Any]) -> Frontier:
        if nodes.dtype == bool and nodes.all():
            return self
        return self._take(nodes)

    def slice(self, first: int, last: int) -> Frontier:
        return self._take(slice(first, last))

    def _take(self, nodes: Any) -> Frontier:
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        bounds = arrays.pop("bounds")
        taken = {name: field[nodes] for name, field in arrays.items()}
        return Frontier(**taken, bounds=bounds and bounds.take(nodes))

    def sibling(self) -> Int64s:
        """Place of each node's sibling in the frontier, -1 where it is not there."""
        place = np.full(self.size, -1)
        first = np.flatnonzero(self.sibling_begin[:-1] == self.begin[1:])
        place[first] = first + 1
        place[first + 1] = first
        return place

    def is_larger(self) -> Bools:
        """Nodes larger than their sibling; of two equals, the second child."""
        size = self.end - self.begin
        other = self.sibling_end - self.sibling_begin
        return (size > other) | ((size == other) & (self.begin > self.sibling_begin))


@dataclass(frozen=True)
class LevelHistograms:
    """Histograms on the device, and the slot of each node of a level."""

    cells: Any
    slot: Int64s

    @classmethod
    def none(cls) -> LevelHistograms:
        return cls(None, np.empty(0, np.int64))

    def slots_of(self, nodes: Int64s) -> Int64s:
        """Return the slots of some nodes of the level; -1 where there is no histogram."""
        if self.slot.size == 0:
            return np.full(nodes.size, -1)
        return np.where(nodes < 0, -1, self.slot[np.maximum(nodes, 0)])


def children_of(
    opened: Frontier,
    numbers: Int64s,
    middle: Int64s,
    slot: Int64s,
    weighted_gain: Floats,
    bounds: Bounds | None,
) -> Frontier:
    """Return the children of the split nodes, in pairs."""
    begin = np.stack([opened.begin, middle], axis=1)
    end = np.stack([middle, opened.end], axis=1)
    return Frontier(
        node=numbers,
        begin=begin.ravel(),
        end=end.ravel(),
        sibling_begin=begin[:, ::-1].ravel(),
        sibling_end=end[:, ::-1].ravel(),
        key=child_keys(opened.key),
        parent_slot=np.repeat(slot, 2),
        path_gain=np.repeat(np.minimum(opened.path_gain, weighted_gain), 2),
        bounds=bounds,
    )


def child_keys(key: Uint64s) -> Uint64s:
    """Keys of both children of each node: hashes of the path from the root."""
    return child_key(key[:, None], np.arange(2)).ravel()


class BestFirst:
    """The lowest path gain that may still be among the splits of each final tree.

    Every split is, where `max_leaf_nodes` is None. Trees have `sizes` entries, one after another.
    """

    def __init__(self, max_leaf_nodes: int | None, sizes: Int64s) -> None:
        self._most = None if max_leaf_nodes is None else max_leaf_nodes - 1
        self._ends = np.cumsum(sizes)
        self._highest: list[Floats] = [np.empty(0)] * sizes.size

    def levels(self, begin: Int64s, most: int) -> int:
        """Number of levels, `most` at most, from that of the nodes on, all of whose splits count.

        The entries of the nodes begin at `begin`.
        """
        if self._most is None:
            return most
        trees, nodes = np.unique(self._trees(begin), return_counts=True)
        missing = [self._most - self._highest[t].size for t in trees]
        return min(most, int((missing // nodes + 1).min()).bit_length() - 1)

    def worth(self, begin: Int64s, path_gain: Floats, found: Bools, weighted_gain: Floats) -> Bools:
        """Mark nodes that have a split and may be expanded.

        Per node: its first entry, the lowest weighted gain above it, True if a split was `found`,
        and its weighted gain.
        """
        if self._most is None:
            return found
        gain, worth, trees = np.minimum(path_gain, weighted_gain), found.copy(), self._trees(begin)
        for t in np.unique(trees):
            mine = found & (trees == t)
            gains = np.sort(np.concatenate([self._highest[t], gain[mine]]))
            self._highest[t] = gains[max(gains.size - self._most, 0) :]
            if self._highest[t].size == self._most:
                worth[mine] = gain[mine] >= self._highest[t][0]
        return worth

    def _trees(self, begin: Int64s) -> Int64s:
        return np.searchsorted(self._ends, begin, side="right")


def best_first_leaves(
    first_child: NDArray[np.signedinteger], weighted_gain: Floats, max_leaf_nodes: int
) -> Bools:
    """Mark nodes of a breadth-first binary tree that best-first growth does not expand.

    Of nodes of equal gain, the one of the lower number comes first: shallower, or further left.
    """
    closed = np.ones(first_child.size, np.bool_)
    heap = [(-weighted_gain[0], 0)] if first_child[0] >= 0 else []
    for _ in range(max_leaf_nodes - 1):
        if not heap:
            break
        _, node = heapq.heappop(heap)
        closed[node] = False
        for child in (first_child[node], first_child[node] + 1):
            if first_child[child] >= 0:
                heapq.heappush(heap, (-weighted_gain[child], int(child)))
    return closed


# Sorting pays over the remaining levels: with few, it does for fewer rows. Measured on the first
# table at depth 8, CPU seconds: 1.05 without this limit, 0.75 with.
ROWS_PER_STATISTIC_LEVEL = 1.5

# In a column of very many categories, the rows of a node are counted again on every level: building
# a small subtree saves so many statistics per row there. Measured on 1,000,000 rows x 14 and a
# column of 100,000 categories, skewed, CPU seconds with 0.5 and 2.5: 1.25 and 1.50 at depth 8, 5.8
# and 7.0 at depth 16, 23.6 and 23.1 grown to full depth.
STATISTICS_PER_CODE = 0.5
ROWS_PER_STATISTIC_OF_MANY = 6.0  # with which that was measured

# Maximum number of levels that building all subtrees of a level saves: more are seldom as large.
# CPU ms of 4,500 x 28, depth 1, 2, 3, 4, 8, by histograms and with the root as a small node: 5.3
# and 7.4, 6.2 and 8.0, 7.9 and 8.6, 10.4 and 9.7, 13.0 and 12.3.
LEVELS_SAVED = 4

# Levels below which a number of nodes is too large to matter.
DEEPEST = 40

# The root of a table this small is a small node: coding the table costs more than it saves.
FEWEST_ROWS = 256

# Maximum rows x columns of a small node: its sorted columns, at 8 bytes each, stay in a shared
# cache.
MOST_CELLS = 1 << 19


def can_split(rows: Int64s, depth: int, limits: Limits) -> Bools:
    """Mark nodes of `rows` rows that may be split by depth and size."""
    return (rows >= fewest_rows(limits)) & (depth < limits.max_depth)


def finish_rows(
    finishing: Finishing, sizes: Int64s, columns: int, statistics: int, levels: int, many: int
) -> int:
    """Maximum number of rows of small nodes of a level, `levels` above the depth limit.

    A node's histogram costs its statistics, over all columns, whatever its rows; building its
    subtree costs its rows. `sizes` are the rows of the level's nodes; `many` of the columns have
    more categories than bins.
    """
    rows = int(sizes.sum())
    if rows * columns <= min(levels, LEVELS_SAVED) * finishing.level_cells:
        return rows
    cost, share = finishing.columns, finishing.rows_per_statistic
    if many:
        cost, share = columns, min(share, ROWS_PER_STATISTIC_OF_MANY)
    share = min(share, ROWS_PER_STATISTIC_LEVEL * levels)
    most = min(MOST_CELLS // columns, finishing.most_rows)
    row = cost / share - many * STATISTICS_PER_CODE if share > 0.0 else np.inf
    small = max(FEWEST_ROWS, most if row * most <= statistics else int(statistics / row))
    deepest = sizes.size << min(max(levels - 1, 0), DEEPEST)  # nodes of the last level, at most
    is_whole = deepest * statistics <= finishing.whole_statistics and sizes.max(initial=0) > small
    return 0 if is_whole else small


def hand_down(
    sign: NDArray[np.int8],
    bounds: Bounds,
    means: Callable[[NDArray[np.intp]], tuple[Floats, Floats]],
) -> Bounds:
    """Bounds of both children of each of m nodes, in pairs.

    `sign` (m,) are the signs of the nodes' columns. ``means(places)`` are the means of the first
    and of the second children of the nodes at some places, one or more. Sets of columns stay.
    """
    both = bounds.take(np.repeat(np.arange(sign.size), 2))
    constrained = np.flatnonzero(sign)
    if constrained.size == 0:
        return both
    first, second = means(constrained)
    lower, upper = both.lower.reshape(-1, 2), both.upper.reshape(-1, 2)
    for one in (1, -1):
        is_own = sign[constrained] == one
        places, sides = constrained[is_own], (first[is_own], second[is_own])
        above = bounds.lower[places], bounds.upper[places]
        first_lower, first_upper, second_lower, second_upper = child_bounds(one, *above, *sides)
        lower[places] = np.stack([first_lower, second_lower], axis=1)
        upper[places] = np.stack([first_upper, second_upper], axis=1)
    return both


def bounds_below(
    backend: Backend,
    limits: Limits,
    interactions: Interactions | None,
    opened: Frontier,
    middle: Int64s,
    feature: Int32s,
) -> Bounds:
    """Constraints of the children, in pairs, of split nodes that have some.

    Entries are partitioned: the second child of each node, by a cut of column `feature`, begins at
    `middle`.
    """
    assert opened.bounds is not None
    bounds = opened.bounds
    if interactions is not None:
        bounds = bounds._replace(columns=interactions.children(bounds.columns, feature))
    if limits.monotonic is None:
        return bounds.take(np.repeat(np.arange(opened.size), 2))

    def means(indices: NDArray[np.intp]) -> tuple[Floats, Floats]:
        begin, end = opened.begin[indices], opened.end[indices]
        sums = backend.node_statistics(
            np.concatenate([begin, middle[indices]]), np.concatenate([middle[indices], end])
        )
        both = _means(sums, is_class=sums.shape[1] == 2)
        return both[: indices.size], both[indices.size :]

    return hand_down(limits.monotonic.signs[feature], bounds, means)


def _means(sums: Int64s, *, is_class: bool) -> Floats:
    """Probability of class 1, or mean target in units, from statistics of nodes."""
    weight = sums.sum(axis=1) if is_class else sums[:, 0]
    return np.asarray(sums[:, 1] / weight, np.float64)


def bound_answers(tree: Tree, signs: NDArray[np.int8]) -> Tree:
    """Return the tree with its predictions clipped to the bounds of its nodes.

    The bounds are computed from the predictions after scaling, so that these are in order to the
    last bit. The tree is binary, of two classes or regression.
    """
    mean = tree.predictions[:, -1]
    lower, upper = np.full(tree.n_nodes, -np.inf), np.full(tree.n_nodes, np.inf)
    for level in tree.levels():
        nodes = level.start + np.flatnonzero(tree.first_child[level] != NO_CHILD)
        child = tree.first_child[nodes]
        bounds = Bounds(lower[nodes], upper[nodes], np.zeros_like(nodes))

        def means(
            indices: NDArray[np.intp], child: Int32s = child, bounds: Bounds = bounds
        ) -> tuple[Floats, Floats]:
            node_bounds = bounds.take(indices)
            first, second = (
                np.clip(mean[child[indices] + side], node_bounds.lower, node_bounds.upper)
                for side in (0, 1)
            )
            return first, second

        below = hand_down(signs[tree.feature[nodes]], bounds, means)
        for side in (0, 1):
            lower[child + side] = below.lower[side::2]
            upper[child + side] = below.upper[side::2]
    return tree.within(lower, upper)
