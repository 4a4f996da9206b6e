"""Bounds on the means of nodes under monotonic constraints.

    mean      -inf                 0.4                  inf
    node        |-------------------|---------------------|     cut of a rising column
    children    |  at most 0.4      |       at least 0.4  |     the middle of their means

A cut of such a column is admitted if its sides are in order and within the node's bounds; then each
child stays on its side of the middle. Other cuts pass the bounds on, and may lead to means outside:
such nodes predict the nearest bound, as in scikit-learn, so that no prediction left of a cut
exceeds any on its right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Bounds, Floats, Int64s, Limits
from gputree.backends.interactions import Interactions
from gputree.backends.rules import child_bounds
from gputree.base.dtypes import NO_CHILD
from gputree.growth.frontier import Frontier
from gputree.tree import Tree


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
    feature: NDArray[np.int32],
) -> Bounds | None:
    """Constraints of the children of the split nodes, in pairs; None where there are none.

    Entries are partitioned: the second child of each node, by a cut of column `feature`, begins at
    `middle`.
    """
    if opened.bounds is None:
        return None
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
            indices: NDArray[np.intp], child: NDArray[np.int32] = child, bounds: Bounds = bounds
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
