"""Bounds that the tests above a node set to the columns that they test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from gputree.dtypes import THRESHOLD_SPLIT, Floats
from gputree.tree import Tree

Known = TypeVar("Known")


def walk(
    tree: Tree, narrowed: Callable[[int, Known | None], Known]
) -> Iterator[tuple[int, dict[int, Known]]]:
    """Iterate over nodes in preorder, each with the bounds that tests above set to columns.

    ``narrowed(node, before)`` returns the bounds of the column that the node's parent tests, from
    those above the parent. All nodes get the same dictionary, which is changed in between.
    """
    known: dict[int, Known] = {}
    # A node to visit, or a column and the bounds to restore after its subtree.
    rest: list[tuple[int, int, Known | None]] = [(0, -1, None)]
    while rest:
        node, feature, before = rest.pop()
        if node < 0:
            if before is None:
                del known[feature]
            else:
                known[feature] = before
            continue
        if node > 0:
            known[feature] = narrowed(node, before)
        yield node, known
        if tree.n_children[node]:
            feature = int(tree.feature[node])
            before = known.get(feature)
            rest.append((-1, feature, before))
            rest += [(child, feature, before) for child in reversed(tree.children(node))]


def bounds_above(tree: Tree) -> tuple[Floats, Floats]:
    """Bounds of known numbers in the column that each node tests: ``lower < x <= upper``.

    Infinite where no test above bounds the column, and at leaves.
    """
    lower, upper = np.full(tree.n_nodes, -np.inf), np.full(tree.n_nodes, np.inf)

    def narrowed(node: int, before: tuple[float, float] | None) -> tuple[float, float]:
        low, high = before or (-np.inf, np.inf)
        parent = int(tree.parent[node])
        if tree.split_kind[parent] != THRESHOLD_SPLIT:
            return low, high
        threshold = float(tree.threshold[parent])
        is_first = node == tree.first_child[parent]
        return (low, min(threshold, high)) if is_first else (max(threshold, low), high)

    for node, known in walk(tree, narrowed):
        if tree.n_children[node]:
            lower[node], upper[node] = known.get(int(tree.feature[node]), (-np.inf, np.inf))
    return lower, upper
