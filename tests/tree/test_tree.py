"""The tree as a struct of arrays: its invariants, its views, cutting it back."""

from dataclasses import replace

import numpy as np
import pytest
from hand_made_trees import make_tree, multiway_tree
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import DecisionTreeClassifier
from gputree.base.dtypes import BRANCH_SPLIT, LEAF, MISSING_STOPS, THRESHOLD_SPLIT
from gputree.tree import Tree
from gputree.tree.statistics import impurity_importances


def make_binary_tree() -> Tree:
    """The subtree of node 2 above, on its own."""
    tree, nodes = multiway_tree(), [2, 4, 5]
    names = ("n_children", "split_kind", "feature", "threshold", "missing_child", "weight",
             "n_rows", "statistics", "impurity", "gain")  # fmt: skip
    fields = {name: getattr(tree, name)[nodes] for name in names}
    return make_tree(task=tree.task, criterion=tree.criterion, n_features=3, **fields)


def test_sizes_and_walking():
    tree = multiway_tree()
    tree.check()
    assert (tree.n_nodes, tree.n_leaves, tree.max_depth, tree.n_classes) == (6, 4, 2, 2)
    assert not tree.is_binary
    assert [list(tree.children(t)) for t in range(6)] == [[1, 2, 3], [], [4, 5], [], [], []]
    assert tree.levels() == [slice(0, 1), slice(1, 4), slice(4, 6)]
    assert [part.tolist() for part in tree.branches(0)] == [[0, 1, 3], [2, 0, 1]]
    assert [part.size for part in tree.branches(2)] == [0, 0]
    assert [tree.categories(t).tolist() for t in range(6)] == [[], [1], [3], [0], [], []]


WRONG = {
    "children are not contiguous": {"first_child": [1, -1, 3, -1, -1, -1]},
    "a child does not name its parent": {"parent": [-1, 0, 0, 0, 2, 1]},
    "the root has a parent": {"parent": [0, 0, 0, 0, 2, 2]},
    "depth is not": {"depth": [0, 1, 1, 1, 2, 3]},
    "a leaf has a split": {"split_kind": [BRANCH_SPLIT, THRESHOLD_SPLIT, THRESHOLD_SPLIT, 0, 0, 0]},
    "a leaf has a child": {"first_child": [1, 0, 4, -1, -1, -1]},
    "a leaf has a feature": {"feature": [1, 0, 0, -2, -2, -2]},
    "a feature is out of range": {"feature": [3, -2, 0, -2, -2, -2]},
    "a threshold is NaN": {"threshold": [-2.0, -2.0, np.nan, -2.0, -2.0, -2.0]},
    "a threshold split is not binary": {"split_kind": [THRESHOLD_SPLIT, 0, 1, 0, 0, 0]},
    "side by side": {"branch_end": [0, 1, 1, 3, 3, 3]},
    "a list lies outside": {"branch_end": [0, 1, 2, 4, 4, 4]},
    "missing_child names no child": {"missing_child": [3, -2, 0, -2, -2, -2]},
    "a leaf sends missing values on": {"missing_child": [-1, -1, 0, -2, -2, -2]},
    "impurity is not finite": {"impurity": [0.1, 0.0, np.inf, 0.0, 0.0, 0.0]},
    "arrays differ in length": {"gain": [0.0]},
    "has no entry per node": {"branch_begin": [0, 4]},
    "lead to the root": {"branch_end": [1, 1, 2, 3, 3, 3]},
    "that tests none": {"branch_end": [0, 1, 2, 3, 3, 3], "branch_begin": [0, 0, 1, 2, 2, 3]},
    "a category is negative": {"branch_code": [1, -3, 0]},
    "a category leads to two children": {"branch_code": [1, 3, 1]},
}  # fmt: skip


@pytest.mark.parametrize("problem", WRONG)
def test_invalid_trees_are_named(problem):
    tree = multiway_tree()
    wrong = {
        name: np.array(values, getattr(tree, name).dtype) for name, values in WRONG[problem].items()
    }
    with pytest.raises(ValueError, match=f"Invalid tree: .*{problem}"):
        replace(tree, **wrong).check()


@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "", None])
def test_criteria_are_those_of_the_task(criterion):
    with pytest.raises(ValueError, match=r"Invalid tree: the criterion .* is none of classif"):
        replace(multiway_tree(), criterion=criterion).check()


def test_collapsing_a_node_makes_it_a_leaf():
    tree = multiway_tree()
    cut = tree.collapse(np.array([False, False, True, False, False, False]))
    cut.check()
    assert cut.n_nodes == 4
    assert [part.tolist() for part in cut.branches(0)] == [[0, 1, 3], [2, 0, 1]]
    assert cut.first_child.tolist() == [1, -1, -1, -1]
    assert (cut.feature[2], cut.threshold[2], cut.gain[2]) == (-2, -2.0, 0.0)
    assert (cut.split_kind[2], cut.missing_child[2]) == (LEAF, MISSING_STOPS)
    for name in ("weight", "n_rows", "statistics", "impurity"):
        assert (getattr(cut, name) == getattr(tree, name)[:4]).all()


def test_collapsing_the_root_or_nothing():
    tree = multiway_tree()
    stump = tree.collapse(np.arange(6) == 0)
    stump.check()
    assert (stump.n_nodes, stump.branch_code.size) == (1, 0)
    assert tree.collapse(np.zeros(6, bool)).equals(tree)


def test_views_of_binary_trees():
    tree = make_binary_tree()
    tree.check()
    assert tree.is_binary
    assert (tree.children_left.tolist(), tree.children_right.tolist()) == ([1, -1, -1], [2, -1, -1])
    assert tree.missing_go_to_left.tolist() == [1, 0, 0]
    assert tree.value.tolist() == [[[0.4, 0.6]], [[4 / 7, 3 / 7]], [[0.0, 1.0]]]
    assert tree.node_count == 3
    assert (tree.n_node_samples == tree.n_rows).all()
    assert (tree.weighted_n_node_samples == tree.weight).all()


@pytest.mark.parametrize("name", ["children_left", "children_right", "missing_go_to_left"])
def test_multiway_trees_have_no_binary_views(name):
    with pytest.raises(AttributeError, match=f"{name} is defined for binary trees only.*3 child"):
        getattr(multiway_tree(), name)


def test_equality_is_to_the_last_bit():
    tree = multiway_tree()
    assert tree.equals(multiway_tree())
    nudged = tree.gain.copy()
    nudged[0] = np.nextafter(nudged[0], 1.0)
    assert not tree.equals(replace(tree, gain=nudged))
    assert not tree.equals(replace(tree, gain=tree.gain.astype(np.float32)))
    assert not tree.equals(replace(tree, criterion="entropy"))


def test_regression_values_are_means():
    tree = replace(
        make_binary_tree(), task="regression", statistics=np.array([[1.5], [2.5], [0.0]])
    )
    assert tree.value.tolist() == [[[1.5]], [[2.5]], [[0.0]]]
    assert tree.n_classes == 1


# ------------------------------------------------------------ feature importances, by definition
def naive_importances(tree):
    """Decrease of impurity over the children, weighted, by the definition."""
    total = np.zeros(tree.n_features)
    for node in np.flatnonzero(~tree.is_leaf):
        inside = sum(tree.weight[c] * tree.impurity[c] for c in tree.children(node))
        total[tree.feature[node]] += tree.weight[node] * tree.impurity[node] - inside
    return total / tree.weight[0]


def test_a_root_alone_has_none():
    tree = DecisionTreeClassifier().fit(np.ones((4, 3)), [0, 1, 0, 1])
    assert tree.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert tree.feature_importances_.dtype == np.float64


@given(multiway_cases())
def test_importances_of_branches(case):
    """Any number of children, fractional weights, nodes without weight."""
    tree, _ = case
    expected = naive_importances(tree)
    assert impurity_importances(tree, normalize=False) == pytest.approx(expected, abs=1e-12)
    if expected.sum() > 1e-12:
        assert impurity_importances(tree).sum() == pytest.approx(1.0)
