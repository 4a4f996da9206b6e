"""Trees of a given shape, with the rows they could have been grown on: chains and balanced ones.

    chain       0            balanced        0
               / \\                         /   \
              1   2                       1     2
                 / \\                     / \\   / \
                3   4                   3   4 5   6

Leaves split one column at every half; the class of a leaf's rows alternates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    THRESHOLD_SPLIT,
)
from gputree.criteria import node_entropies
from gputree.pruning import RoutedRows, TrainingRows
from gputree.tree import Tree
from gputree.tree.branches import BranchLists, add_up


class Shaped(NamedTuple):
    """A tree and its rows: where they stop, and as its tests see them."""

    tree: Tree
    routed: RoutedRows
    rows: TrainingRows


def chain(depth: int, rows_a_leaf: int = 2) -> Shaped:
    """A binary tree of 2 x depth + 1 nodes whose inner nodes have a leaf on the left."""
    node = np.arange(2 * depth + 1)
    inner = (node % 2 == 0) & (node < 2 * depth)
    leaf = np.append(np.arange(1, 2 * depth, 2), 2 * depth)
    n_children = np.where(inner, 2, 0)
    return _with_rows(n_children, (node + 1) // 2, leaf, node // 2 + 0.5, rows_a_leaf)


def balanced(depth: int, rows_a_leaf: int = 2) -> Shaped:
    """The binary tree of ``2**(depth + 1) - 1`` nodes with all leaves at one depth."""
    node = np.arange(2 ** (depth + 1) - 1)
    level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    half = 2.0 ** (depth - level - 1)  # leaves below each child
    threshold = 2 * half * (node + 1 - 2**level) + half - 0.5
    leaf = np.arange(2**depth - 1, node.size)
    return _with_rows(np.where(level < depth, 2, 0), level, leaf, threshold, rows_a_leaf)


def multiway_chain(depth: int, branches: int = 3) -> tuple[Tree, RoutedRows]:
    """A chain of splits by category, and rows where they stop."""
    node = np.arange(branches * depth + 1)
    inner = (node % branches == 0) & (node < branches * depth)
    leaf = np.flatnonzero(~inner)
    stop, label = np.repeat(leaf, 2), np.repeat(np.arange(leaf.size) % 2, 2)
    tree = _tree(np.where(inner, branches, 0), -(-node // branches), stop, label)
    return tree, RoutedRows(stop, label, np.ones(stop.size))


def _with_rows(
    n_children: NDArray, depth: NDArray, leaf: NDArray, threshold: NDArray, rows_a_leaf: int
) -> Shaped:
    """Rows at 0, 1, 2, ... in the leaves, in the order of their values."""
    place = np.repeat(np.arange(leaf.size), rows_a_leaf)
    stop, label, weight = leaf[place], place % 2, np.ones(place.size)
    tree = _tree(n_children, depth, stop, label, threshold)
    rows = TrainingRows(place[:, None].astype(np.float64), label, weight)
    return Shaped(tree, RoutedRows(stop, label, weight), rows)


def _tree(
    n_children: NDArray,
    depth: NDArray,
    stop: NDArray,
    label: NDArray,
    threshold: NDArray | None = None,
) -> Tree:
    """The breadth-first tree of rows that stop at its leaves; by category without thresholds."""
    inner = n_children > 0
    parent = np.append(NO_CHILD, np.repeat(np.flatnonzero(inner), n_children[inner]))
    first = np.where(inner, 1 + np.cumsum(n_children) - n_children, NO_CHILD)
    numeric = threshold is not None
    branches = BranchLists.none(inner.size)
    if not numeric:
        child = np.arange(1, inner.size)
        branches = BranchLists.of_pairs(inner.size, child, child - first[parent[1:]])
    tree = Tree(
        task="classification",
        criterion="entropy",
        n_features=1,
        first_child=first.astype(NODE),
        n_children=n_children.astype(NODE),
        parent=parent.astype(NODE),
        depth=depth.astype(NODE),
        split_kind=np.where(inner, THRESHOLD_SPLIT if numeric else BRANCH_SPLIT, LEAF).astype(
            np.uint8
        ),
        feature=np.where(inner, 0, NO_FEATURE).astype(NODE),
        threshold=np.where(inner & numeric, threshold if numeric else 0.0, NO_THRESHOLD),
        missing_child=np.full(inner.size, MISSING_STOPS, NODE),
        weight=np.zeros(inner.size),
        n_rows=np.zeros(inner.size, np.int64),
        statistics=np.zeros((inner.size, 2)),
        impurity=np.zeros(inner.size),
        gain=np.zeros(inner.size),
        **branches._asdict(),
    )
    counts = np.zeros((inner.size, 2), np.int64)
    np.add.at(counts, (stop, label), 1)
    counts = add_up(tree.parent, counts)
    impurity = node_entropies(counts)
    weight = counts.sum(axis=1)
    below = np.bincount(tree.parent[1:], (weight * impurity)[1:], minlength=inner.size)
    return replace(
        tree,
        weight=weight.astype(np.float64),
        n_rows=weight,
        statistics=counts.astype(np.float64),
        impurity=impurity,
        gain=np.where(inner, np.maximum(impurity - below / weight, 0.0), 0.0),
    )
