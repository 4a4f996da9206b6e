r"""Error-based pruning with subtree raising (Quinlan 1993, section 4.2).

Bottom-up, each inner node has three futures, by the upper limit of their errors:

    stay as it is           become a leaf           give way to its largest branch

          t                       t                        b
        / | \                                            / \
       a  b  c                                           .   .
         / \
        .   .

The rows of a and c then go down b's tests, and what they reach there is pruned
again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gputree.criteria.named import class_impurity
from gputree.dtypes import (
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    ROW,
    THRESHOLD_SPLIT,
)
from gputree.errors import InputError
from gputree.fixed_point import fix_weights
from gputree.prediction.descent import pack_alike
from gputree.pruning.base import TrainingRows
from gputree.pruning.bottom_up import sum_over_children
from gputree.pruning.error_limit import ErrorLimit, limit_errors
from gputree.pruning.raising_entries import NODE_STATE, STEP, Rows
from gputree.pruning.raising_splits import column_ends, find_plain
from gputree.pruning.raising_walk import make_ready, number, settle, walk
from gputree.tree import Tree


def prune_and_raise(tree: Tree, data: TrainingRows, limit: ErrorLimit, slack: float) -> Tree:
    """Replace subtrees by leaves, or by their largest branch.

    Parameters
    ----------
    tree : Tree
        Classification tree.
    data : TrainingRows
        The rows it was grown on.
    limit : ErrorLimit
        Upper limit of the errors of leaves.
    slack : float
        Errors that a replacement may cost.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        If the total weight of the rows is not that of those the tree was grown on.
    """
    if not np.isclose(data.weight.sum(), tree.weight[0]):
        raise InputError(
            "Subtree raising needs the rows that the tree was grown on, with their weights. "
            f"The tree has a weight of {tree.weight[0]:g}; got rows of {data.weight.sum():g}."
        )
    nodes = _as_grown(tree, limit)
    settle(nodes, slack)
    if nodes["settled"][0]:
        return _rebuild(tree, nodes, tree.statistics)
    plain = find_plain(tree, column_ends(data.X, data.n_threads))
    rows = _rows(tree, data.X, plain)
    make_ready(rows, nodes, plain)
    weight, label = np.asarray(data.weight, np.float64), np.asarray(data.target)
    taking_part: NDArray[np.integer] = np.arange(weight.size, dtype=ROW)
    if not weight.all():
        taking_part = np.flatnonzero(weight)
        weight, label = weight[taking_part], label[taking_part]
    weights = fix_weights(weight, taking_part.size, fractions=True)
    threads = data.n_threads
    visited = walk(rows, label, nodes, weights, taking_part, tree.n_classes, limit, slack, threads)
    refilled = visited.units * (weights.unit * weights.scale)
    return _rebuild(tree, nodes, np.where(nodes["refilled"][:, None], refilled, tree.statistics))


def _rows(tree: Tree, X: NDArray[np.floating], plain: NDArray[np.bool_]) -> Rows:
    """The tree's splits and the rows as the walk reads them."""
    n, d = X.shape
    packed = pack_alike(tree, filled=not plain.all())
    steps = np.empty(tree.n_nodes, STEP)
    steps["feature"] = tree.feature  # those of leaves are set in `make_ready`
    steps["child"] = tree.first_child
    steps["threshold"] = tree.threshold
    steps["threshold"][tree.tests_categories] = np.nan
    nodes, target, lists = packed
    assert target is not None
    assert lists is not None
    if X.flags.f_contiguous:
        return Rows(nodes, target, lists, steps, X.reshape(-1, order="F"), 1, n)
    return Rows(nodes, target, lists, steps, np.ascontiguousarray(X).reshape(-1), d, 1)


def _as_grown(tree: Tree, limit: ErrorLimit) -> NDArray:
    """Every node with its own training rows."""
    nodes = np.zeros(tree.n_nodes, NODE_STATE)
    nodes["spreads"] = tree.missing_child == MISSING_TO_ALL
    sent_on = (tree.split_kind == THRESHOLD_SPLIT) & (tree.missing_child >= 0)
    nodes["settled"] = tree.is_leaf | nodes["spreads"] | sent_on
    for name in ("first_child", "n_children", "n_rows", "weight"):
        nodes[name] = getattr(tree, name)
    nodes["as_leaf"] = limit_errors(tree.statistics, limit)
    return nodes


def _rebuild(tree: Tree, state: NDArray, statistics: NDArray[np.float64]) -> Tree:
    """What is left, numbered breadth-first."""
    nodes, parent, depth = np.empty((3, tree.n_nodes), NODE)
    n = number(state, nodes, parent, depth)
    nodes, parent, depth = nodes[:n], parent[:n].copy(), depth[:n].copy()
    # a record has more than is used
    taken = {name: state[name][nodes] for name in ("split_of", "n_children", "weight", "n_rows")}
    tree = _renumbered(tree, taken, statistics[nodes], parent, depth)
    return _measure(tree, state["refilled"][nodes])


def _renumbered(
    old: Tree,
    nodes: dict[str, NDArray],
    statistics: NDArray[np.float64],
    parent: NDArray,
    depth: NDArray,
) -> Tree:
    """The tree of `nodes`, each with the split it carries now."""
    split, count = nodes["split_of"], nodes["n_children"]
    leaf = count == 0
    # children are reached as those of the split that their parent carries
    above = parent[1:]
    own = np.arange(1, parent.size) - (1 + np.cumsum(count) - count)[above]
    lists = old.branch_lists.take(np.append(0, old.first_child[split[above]] + own))

    def carried(values: NDArray, at_leaf: float) -> NDArray:
        return np.where(leaf, np.array(at_leaf, values.dtype), values[split])

    first = np.where(leaf, NO_CHILD, 1 + np.cumsum(count) - count)
    return replace(
        old,
        first_child=first.astype(NODE),
        n_children=count,
        parent=parent,
        depth=depth,
        split_kind=carried(old.split_kind, LEAF),
        feature=carried(old.feature, NO_FEATURE),
        threshold=carried(old.threshold, NO_THRESHOLD),
        missing_child=carried(old.missing_child, MISSING_STOPS),
        weight=nodes["weight"],
        n_rows=nodes["n_rows"],
        statistics=statistics,
        impurity=old.impurity[split],
        gain=carried(old.gain, 0.0),
        **lists._asdict(),
        **old.bounds_of(split),
        **old.soft_bounds_of(carried),
    )


def _measure(tree: Tree, refilled: NDArray[np.bool_]) -> Tree:
    """`tree` with the impurity and the gain of refilled nodes computed anew.

    The impurity of empty ones is 0.
    """
    if not refilled.any():
        return tree
    filled = refilled & (tree.weight > 0)
    impurity = np.where(refilled, 0.0, tree.impurity)
    impurity[filled] = class_impurity(tree.criterion, tree.statistics[filled])
    children = sum_over_children(tree, tree.weight * impurity)
    gain = impurity - children / np.where(tree.weight > 0, tree.weight, 1.0)
    renewed = refilled & ~tree.is_leaf
    return replace(tree, impurity=impurity, gain=np.where(renewed, gain, tree.gain))
