"""Trees that are made field by field."""

from __future__ import annotations

import numpy as np

from gputree.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    THRESHOLD_SPLIT,
)
from gputree.tree import Tree


def multiway_tree() -> Tree:
    """A multiway tree.

            0             0: column 1, three branches
          / | \\           2: column 0 <= 0.5
         1  2  3
           / \\
          4   5
    """
    n_rows = np.array([20, 6, 10, 4, 7, 3])
    statistics = np.array([[12, 8], [6, 0], [4, 6], [2, 2], [4, 3], [0, 3]], float)
    share = statistics / n_rows[:, None]
    return Tree(
        task="classification",
        criterion="gini",
        n_features=3,
        first_child=np.array([1, -1, 4, -1, -1, -1], np.int32),
        n_children=np.array([3, 0, 2, 0, 0, 0], np.int32),
        parent=np.array([-1, 0, 0, 0, 2, 2], np.int32),
        depth=np.array([0, 1, 1, 1, 2, 2], np.int32),
        split_kind=np.array([BRANCH_SPLIT, LEAF, THRESHOLD_SPLIT, LEAF, LEAF, LEAF], np.uint8),
        feature=np.array([1, -2, 0, -2, -2, -2], np.int32),
        threshold=np.array([-2.0, -2.0, 0.5, -2.0, -2.0, -2.0]),
        missing_child=np.array([MISSING_TO_ALL, -2, 0, -2, -2, -2], np.int32),
        weight=n_rows.astype(float),
        n_rows=n_rows,
        statistics=statistics,
        impurity=1.0 - (share**2).sum(axis=1),
        gain=np.array([0.1, 0.0, 0.2, 0.0, 0.0, 0.0]),
        branch_begin=np.array([0, 0, 1, 2, 3, 3]),
        branch_end=np.array([0, 1, 2, 3, 3, 3]),
        branch_code=np.array([1, 3, 0], np.int32),
    )


def binary_tree(first_child, feature, threshold, missing_child, n_features):
    """A regression tree from its splits; a node's target is its number."""
    first_child = np.asarray(first_child, np.int32)
    n, leaf = first_child.size, first_child < 0
    inner = np.flatnonzero(~leaf)
    parent = np.full(n, NO_CHILD, np.int32)
    depth = np.zeros(n, np.int32)
    for node in inner:
        for child in (first_child[node], first_child[node] + 1):
            parent[child], depth[child] = node, depth[node] + 1
    tree = Tree(
        task="regression",
        criterion="squared_error",
        n_features=n_features,
        first_child=first_child,
        n_children=np.where(leaf, 0, 2).astype(np.int32),
        parent=parent,
        depth=depth,
        split_kind=np.where(leaf, LEAF, THRESHOLD_SPLIT).astype(np.uint8),
        feature=np.where(leaf, NO_FEATURE, feature).astype(np.int32),
        threshold=np.where(leaf, NO_THRESHOLD, threshold).astype(np.float64),
        missing_child=np.where(leaf, MISSING_STOPS, missing_child).astype(np.int32),
        weight=np.ones(n),
        n_rows=np.ones(n, np.int64),
        statistics=np.arange(n, dtype=np.float64)[:, None],
        impurity=np.zeros(n),
        gain=np.zeros(n),
    )
    tree.check()
    return tree


def chain(depth):
    """Every split cuts one leaf off: row value v ends at depth v + 1."""
    n = 2 * depth + 1
    first_child = np.full(n, -1)
    threshold = np.zeros(n)
    inner = np.append(0, 2 * np.arange(1, depth))  # the second child goes on
    first_child[inner] = 2 * np.arange(depth) + 1
    threshold[inner] = np.arange(depth)
    return binary_tree(first_child, np.zeros(n), threshold, np.ones(n), 1)
