"""Trees of ours and of scikit-learn over one table, compared node for node."""

import numpy as np
import pytest
from sklearn import tree as sklearn_tree

from gputree import DecisionTreeClassifier, DecisionTreeRegressor

TWIN = {
    DecisionTreeClassifier: sklearn_tree.DecisionTreeClassifier,
    DecisionTreeRegressor: sklearn_tree.DecisionTreeRegressor,
}


def make_table(n_classes, *, n=600, d=5, seed=0, missing=0.0, dtype=np.float32):
    """Normal columns, all values distinct; `n_classes` 0 for regression."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    signal = X[:, 0] + X[:, 1] * X[:, -1] + rng.normal(scale=0.7, size=n)
    X[rng.random((n, d)) < missing] = np.nan
    if n_classes == 0:
        return X, signal
    return X, np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)


def fit_both(kind, X, y, sample_weight=None, **params):
    params = {"min_samples_leaf": 20} | params
    ours = kind(**params).fit(X, y, sample_weight)
    theirs = TWIN[kind](random_state=0, **params).fit(X, y, sample_weight)
    ours.tree_.check()
    return ours, theirs


def decrease(tree, node):
    left, right = tree.children_left[node], tree.children_right[node]
    risk = tree.weighted_n_node_samples * tree.impurity
    return risk[node] - risk[left] - risk[right]


def matched_nodes(a, b):
    """Nodes of both trees that stand at the same place, and those among them that tie.

    Cuts of two columns may leave the same class counts; scikit-learn then takes either,
    and the trees are not compared below.
    """
    found, ties = [(0, 0)], []
    for i, j in found:  # the list grows as it is read
        assert (a.children_left[i] < 0) == (b.children_left[j] < 0), (i, j)
        if a.children_left[i] < 0:
            continue
        if (a.feature[i], a.threshold[i]) != (b.feature[j], b.threshold[j]):
            assert decrease(a, i) == pytest.approx(decrease(b, j), rel=1e-12), (i, j)
            ties.append((i, j))
            continue
        found.append((int(a.children_left[i]), int(b.children_left[j])))
        found.append((int(a.children_right[i]), int(b.children_right[j])))
    return np.array(found).T, len(ties)


def assert_same_tree(ours, theirs, rtol=1e-12, ties=0):
    """Compare node for node; at most `ties` nodes may have two best cuts."""
    a, b = ours.tree_, theirs.tree_
    (i, j), found = matched_nodes(a, b)
    assert found <= ties
    assert a.node_count > 1
    assert found or a.node_count == b.node_count == i.size
    np.testing.assert_array_equal(a.n_node_samples[i], b.n_node_samples[j])
    weight = b.weighted_n_node_samples
    np.testing.assert_allclose(a.weighted_n_node_samples[i], weight[j], rtol=rtol)
    np.testing.assert_allclose(a.impurity[i], b.impurity[j], rtol=rtol, atol=1e-14)
    np.testing.assert_allclose(a.value[i], b.value[j], rtol=rtol, atol=1e-14)
    return i, j
