"""What the numeric tests above a node leave of its column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import NO_CHILD, THRESHOLD_SPLIT
from gputree.tree import Tree


def bounds_above(tree: Tree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of known numbers in the column that each node tests: ``lower < x <= upper``.

    Returns
    -------
    lower, upper : float64 arrays of shape (N,)
        Infinite where no test above bounds the column, and at leaves.
    """
    lower, upper = np.full(tree.n_nodes, -np.inf), np.full(tree.n_nodes, np.inf)
    known: dict[int, tuple[float, float]] = {}
    rest: list[tuple[int, tuple[int, tuple[float, float]] | None]] = [(0, None)]
    while rest:
        node, undo = rest.pop()
        if node == NO_CHILD:  # all below the node is done
            assert undo is not None
            known[undo[0]] = undo[1]
            continue
        if undo is not None:
            known[undo[0]] = undo[1]
        if tree.is_leaf[node]:
            continue
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        bounds = known.get(feature, (-np.inf, np.inf))
        lower[node], upper[node] = bounds
        children = tree.children(node)
        if tree.split_kind[node] != THRESHOLD_SPLIT:
            rest += [(child, None) for child in children]
            continue
        sides = (bounds[0], min(threshold, bounds[1])), (max(threshold, bounds[0]), bounds[1])
        rest.append((NO_CHILD, (feature, bounds)))
        rest += [(c, (feature, side)) for c, side in zip(children, sides, strict=True)]
    return lower, upper
