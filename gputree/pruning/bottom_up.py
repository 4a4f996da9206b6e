"""Sums over subtrees, and the bottom-up choice between a subtree and a leaf.

Collapse of subtrees that save no training error, as C4.5 and J48 do before they prune.
"""

from __future__ import annotations

import numpy as np

from gputree.base.dtypes import Bools, Floats, Int32s
from gputree.compilation import kernel
from gputree.errors import InputError
from gputree.inputs.targets import forbid_targets
from gputree.tree import Tree


def sum_over_subtrees(tree: Tree, values: Floats) -> Floats:
    """Sum of `values` over the leaves of the subtree at each node; for a leaf its value."""
    total = np.where(tree.is_leaf, values, 0.0)
    _sum_up(tree.first_child, tree.n_children, total)
    return total


@kernel
def _sum_up(first_child: Int32s, n_children: Int32s, total: Floats) -> None:
    for node in range(total.size - 1, -1, -1):
        for child in range(first_child[node], first_child[node] + n_children[node]):
            total[node] += total[child]


def best_pruning(
    tree: Tree, leaf_cost: Floats, stopped_cost: Floats | float = 0.0, slack: float = 0.0
) -> Bools:
    """Inner nodes to collapse for the minimum total cost of the leaves.

    Dynamic programming from the last node to the first: a node becomes a leaf unless its subtree,
    itself pruned best, costs less by more than `slack`. `leaf_cost` is the cost of each node as a
    leaf, `stopped_cost` the cost of rows that stop at an inner node. With no slack the result has
    the minimum cost of all prunings of the tree and, as ties prune, it is the smallest of those.
    """
    cost = leaf_cost.astype(np.float64)
    stopped = np.broadcast_to(np.float64(stopped_cost), cost.shape)
    collapse = np.zeros(tree.n_nodes, dtype=np.bool_)
    _prune(tree.first_child, tree.n_children, stopped, slack, cost, collapse)
    return collapse


@kernel
def _prune(
    first_child: Int32s,
    n_children: Int32s,
    stopped: Floats,
    slack: float,
    cost: Floats,
    collapse: Bools,
) -> None:
    """Mark the nodes that cost no more as leaves; `cost` becomes the one of the pruned subtrees."""
    for node in range(cost.size - 1, -1, -1):  # children before parents
        if n_children[node] == 0:
            continue
        first = first_child[node]
        others = 0.0
        for child in range(first + 1, first + n_children[node]):
            others += cost[child]
        subtree = stopped[node] + (cost[first] + others)
        collapse[node] = cost[node] <= subtree + slack
        if not collapse[node]:
            cost[node] = subtree


LEAST_SAVING = 1e-3  # a subtree must save more errors than this, in C4.5 and J48 alike


def collapse_splits(tree: Tree) -> Tree:
    """The tree without subtrees that reduce no training errors.

    A subtree whose leaves make as many training errors as its root would as a leaf, less at
    most 0.001, becomes a leaf. Every subtree is evaluated as grown, as in J48; C4.5 Release 8
    evaluates it with those below it collapsed, so that the 0.001 adds up.

    Parameters
    ----------
    tree : Tree
        Classification tree.

    Returns
    -------
    Tree
        Renumbered breadth-first.

    Raises
    ------
    ValueError
        If `tree` is a regression tree.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    """
    if tree.task != "classification":
        raise InputError(
            "collapse_splits counts misclassified rows and needs a classification tree. "
            f"Got a {tree.task} tree."
        )
    forbid_targets(tree.n_outputs, "collapse_splits", "Prune by CostComplexity.")
    errors = tree.weight - tree.statistics.max(axis=1)
    return tree.collapse(sum_over_subtrees(tree, errors) >= errors - LEAST_SAVING)
