"""Trees that are made field by field."""

import numpy as np

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    THRESHOLD_SPLIT,
)
from gputree.persistence.trees import ARRAYS
from gputree.tree import Tree


def make_tree(n_children, **given) -> Tree:
    """A tree of these breadth-first child counts; one of regression on one column by default."""
    n_children = np.asarray(n_children, NODE)
    n, leaf = n_children.size, n_children == 0
    inner = np.flatnonzero(n_children)
    parent = np.append(NO_CHILD, np.repeat(inner, n_children[inner]))
    depth = np.zeros(n, NODE)
    for node in range(1, n):
        depth[node] = depth[parent[node]] + 1
    fields = {
        "task": "regression",
        "criterion": "squared_error",
        "n_features": 1,
        "first_child": np.where(leaf, NO_CHILD, 1 + np.cumsum(n_children) - n_children),
        "n_children": n_children,
        "parent": parent,
        "depth": depth,
        "split_kind": np.where(leaf, LEAF, THRESHOLD_SPLIT),
        "feature": np.where(leaf, NO_FEATURE, 0),
        "threshold": np.full(n, NO_THRESHOLD),
        "missing_child": np.full(n, MISSING_STOPS),
        "weight": np.ones(n),
        "n_rows": np.ones(n),
        "statistics": np.zeros((n, 1)),
        "impurity": np.zeros(n),
        "gain": np.zeros(n),
    } | given
    for name in ARRAYS.keys() & fields.keys():
        fields[name] = np.asarray(fields[name], ARRAYS[name][0])
    tree = Tree(**fields)
    tree.check()
    return tree


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
    return make_tree(
        [3, 0, 2, 0, 0, 0],
        task="classification",
        criterion="gini",
        n_features=3,
        split_kind=[BRANCH_SPLIT, LEAF, THRESHOLD_SPLIT, LEAF, LEAF, LEAF],
        feature=[1, -2, 0, -2, -2, -2],
        threshold=[-2.0, -2.0, 0.5, -2.0, -2.0, -2.0],
        missing_child=[MISSING_TO_ALL, -2, 0, -2, -2, -2],
        weight=n_rows,
        n_rows=n_rows,
        statistics=statistics,
        impurity=1.0 - (share**2).sum(axis=1),
        gain=[0.1, 0.0, 0.2, 0.0, 0.0, 0.0],
        branch_begin=[0, 0, 1, 2, 3, 3],
        branch_end=[0, 1, 2, 3, 3, 3],
        branch_code=[1, 3, 0],
    )


def binary_tree(first_child, feature, threshold, missing_child, n_features):
    """A regression tree from its splits; a node's target is its number."""
    leaf = np.asarray(first_child) < 0
    return make_tree(
        np.where(leaf, 0, 2),
        n_features=n_features,
        feature=np.where(leaf, NO_FEATURE, feature),
        threshold=np.where(leaf, NO_THRESHOLD, threshold),
        missing_child=np.where(leaf, MISSING_STOPS, missing_child),
        statistics=np.arange(leaf.size)[:, None],
    )


def chain(depth):
    """Every split cuts one leaf off: row value v ends at depth v + 1."""
    n = 2 * depth + 1
    first_child = np.full(n, -1)
    threshold = np.zeros(n)
    inner = np.append(0, 2 * np.arange(1, depth))  # the second child goes on
    first_child[inner] = 2 * np.arange(depth) + 1
    threshold[inner] = np.arange(depth)
    return binary_tree(first_child, np.zeros(n), threshold, np.ones(n), 1)
