import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases
from sklearn.datasets import load_iris

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.importance import impurity_importances


def naive_importances(tree):
    """Decrease of impurity over the children, weighted, by the definition."""
    total = np.zeros(tree.n_features)
    for node in np.flatnonzero(~tree.is_leaf):
        inside = sum(tree.weight[c] * tree.impurity[c] for c in tree.children(node))
        total[tree.feature[node]] += tree.weight[node] * tree.impurity[node] - inside
    return total / tree.weight[0]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_importances(criterion):
    X, y = load_iris(return_X_y=True)
    kind = DecisionTreeRegressor if criterion == "squared_error" else DecisionTreeClassifier
    weight = np.arange(1, 151) % 7 + 1
    tree = kind(criterion=criterion, max_depth=4).fit(X, y, weight).tree_
    expected = naive_importances(tree)
    assert impurity_importances(tree, normalize=False) == pytest.approx(expected, abs=1e-12)
    assert impurity_importances(tree) == pytest.approx(expected / expected.sum(), abs=1e-12)


def test_they_add_up_to_the_impurity_that_is_gone():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y).tree_  # to pure leaves
    assert impurity_importances(tree, normalize=False).sum() == pytest.approx(2 / 3)


def test_a_root_alone_has_none():
    tree = DecisionTreeClassifier().fit(np.ones((4, 3)), [0, 1, 0, 1])
    assert tree.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert tree.feature_importances_.dtype == np.float64


def test_they_follow_pruning():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(ccp_alpha=0.2).fit(X, y)
    assert tree.get_n_leaves() < tree.unpruned_tree_.n_leaves
    expected = naive_importances(tree.tree_)
    assert tree.feature_importances_ == pytest.approx(expected / expected.sum())


@given(multiway_cases())
def test_importances_of_branches(case):
    """Any number of children, fractional weights, nodes without weight."""
    tree, _ = case
    expected = naive_importances(tree)
    assert impurity_importances(tree, normalize=False) == pytest.approx(expected, abs=1e-12)
    if expected.sum() > 1e-12:
        assert impurity_importances(tree).sum() == pytest.approx(1.0)


def test_missing_values_lower_the_importance_of_their_column():
    """C4.5 counts a gain by the share of the rows that it knows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 2)).astype(float)
    y = X[:, 0].astype(int)
    whole = C45Classifier(pruning=None, collapse=False).fit(X, y)
    assert whole.feature_importances_.tolist() == [1.0, 0.0]
    X[:100, 0] = np.nan
    holes = C45Classifier(pruning=None, collapse=False).fit(X, y)
    tree = holes.tree_
    assert tree.feature[0] == 0
    gain = impurity_importances(tree, normalize=False)[0]
    known = y[100:].mean()
    entropy = -known * np.log2(known) - (1 - known) * np.log2(1 - known)
    assert gain == pytest.approx(0.75 * entropy)
