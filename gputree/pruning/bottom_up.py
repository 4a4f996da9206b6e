"""Sums over children and the bottom-up choice between a subtree and a leaf."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.tree import Tree


def sum_over_children(tree: Tree, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of `values` over the children of each node; 0 at leaves."""
    total = np.zeros(tree.n_nodes)
    inner = ~tree.is_leaf
    if inner.any():
        # Breadth-first, nodes 1, 2, ... are the children of the inner nodes in turn.
        total[inner] = np.add.reduceat(values[1:], tree.first_child[inner] - 1)
    return total


def sum_over_subtrees(tree: Tree, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of `values` over the leaves of the subtree at each node; a leaf's own."""
    total = np.where(tree.is_leaf, values, 0.0)
    for level in tree.levels()[:0:-1]:
        np.add.at(total, tree.parent[level], total[level])
    return total


def best_pruning(
    tree: Tree,
    leaf_cost: NDArray[np.float64],
    stopped_cost: NDArray[np.float64] | float = 0.0,
    slack: float = 0.0,
) -> NDArray[np.bool_]:
    """Inner nodes to collapse for the least total cost of the leaves.

    Dynamic programming from the deepest level up: a node becomes a leaf unless
    its subtree, itself pruned best, costs less by more than `slack`. With no
    slack the result has the least cost of all prunings of the tree and, as
    ties prune, it is the smallest of those.

    Parameters
    ----------
    tree : Tree
    leaf_cost : float64 array of shape (N,)
        Cost of each node as a leaf.
    stopped_cost : float64 array of shape (N,) or float
        Cost of what stays at an inner node instead of reaching a child.
    slack : float

    Returns
    -------
    bool array of shape (N,)
    """
    cost = leaf_cost.astype(np.float64)
    stopped = np.broadcast_to(stopped_cost, cost.shape)
    collapse = np.zeros(tree.n_nodes, dtype=bool)
    levels = tree.levels()
    for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        inner = level.start + np.flatnonzero(tree.n_children[level])
        begins = tree.first_child[inner] - below.start
        subtree = stopped[inner] + np.add.reduceat(cost[below], begins)
        collapse[inner] = leaf_cost[inner] <= subtree + slack
        cost[inner] = np.where(collapse[inner], leaf_cost[inner], subtree)
    return collapse
