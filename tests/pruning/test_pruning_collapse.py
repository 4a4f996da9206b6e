"""Collapse: J48's rule, node by node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases
from pruning_oracles import leaves_after, tree_of_shape, trees

from gputree.pruning import collapse_splits


def _errors(tree, node):
    return tree.weight[node] - tree.statistics[node].max()


def _training_errors(tree, node):
    """Errors of the leaves as grown below `node`."""
    children = tree.children(node)
    return sum(_training_errors(tree, t) for t in children) if children else _errors(tree, node)


def _rule(tree, node=0):
    """Leaves left below `node`, top-down."""
    if tree.is_leaf[node] or _training_errors(tree, node) >= _errors(tree, node) - 1e-3:
        return frozenset([node])
    return frozenset().union(*(_rule(tree, child) for child in tree.children(node)))


@given(trees(classes=(2, 3), max_inner=15))
def test_collapsed_tree_follows_the_rule(tree):
    collapsed = collapse_splits(tree)
    collapsed.check()
    assert leaves_after(tree, collapsed) == _rule(tree)


@given(multiway_cases())
def test_trees_of_every_kind(case):
    tree, _ = case
    collapsed = collapse_splits(tree)
    collapsed.check()
    assert leaves_after(tree, collapsed) == _rule(tree)
    assert collapse_splits(collapsed).equals(collapsed)


@pytest.mark.parametrize(("saved", "n_leaves"), [(0.0009, 1), (0.0011, 2)])
def test_a_thousandth_of_an_error_is_nothing(saved, n_leaves):
    counts = [[6.0, 4.0], [6.0 - saved, 4.0 - 2 * saved], [saved, 2 * saved]]
    tree = tree_of_shape([2, 0, 0], counts, np.ones(3), np.sum(counts, axis=1))
    assert collapse_splits(tree).n_leaves == n_leaves


def test_a_subtree_is_judged_as_grown():
    """Splits that save too little one by one stay where they save enough together."""
    saved = 0.0006  # by each of the two lower splits
    pure, mixed = [0.0, saved], [10.0, 5.0 - saved]
    whole = np.add(pure, mixed)
    counts = [2 * whole, whole, whole, pure, mixed, pure, mixed]
    tree = tree_of_shape([2, 2, 2, 0, 0, 0, 0], counts, np.ones(7), np.sum(counts, axis=1))
    assert leaves_after(tree, collapse_splits(tree)) == {1, 2}
    assert collapse_splits(collapse_splits(tree)).n_leaves == 1


def test_leaves_without_weight_make_no_errors():
    tree = tree_of_shape([3, 0, 0, 0], [[3, 3], [3, 0], [0, 0], [0, 3]], np.ones(4), [6, 3, 0, 3])
    assert collapse_splits(tree).equals(tree)


def test_regression_trees_are_refused():
    tree = tree_of_shape([0], [[1.0]], [0.0], [3], "regression")
    with pytest.raises(ValueError, match=r"needs a classification tree\. Got a regression tree"):
        collapse_splits(tree)
