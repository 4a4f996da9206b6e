import numpy as np
import pytest
from sklearn.datasets import load_iris

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
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
