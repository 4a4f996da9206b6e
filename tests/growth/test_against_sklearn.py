"""Continuous columns: the tree is scikit-learn's, node for node."""

import numpy as np
import pytest
from sklearn_twins import TWIN, assert_same_tree, fit_both, make_table

from gputree import DecisionTreeClassifier, DecisionTreeRegressor


def weights(name, n):
    rng = np.random.default_rng(5)
    return {
        "unweighted": None,
        "integers": rng.integers(1, 6, n),
        "eighths": rng.integers(1, 25, n) / 8.0,
        "with zeros": rng.integers(0, 3, n),
        "floats": rng.uniform(0.1, 3.0, n),
    }[name]


CASES = ["unweighted", "integers", "eighths", "with zeros"]


@pytest.mark.parametrize("weighting", CASES)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6, 7])
def test_classification(n_classes, criterion, weighting):
    X, y = make_table(n_classes, seed=n_classes)
    weight = weights(weighting, len(y))
    ours, theirs = fit_both(DecisionTreeClassifier, X, y, weight, criterion=criterion)
    i, _ = assert_same_tree(ours, theirs, ties=3)
    untied = np.isin(ours.apply(X), i)
    assert untied.mean() > 0.85
    X = X[untied]
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-12)
    if i.size == ours.tree_.node_count:
        importances = ours.feature_importances_
        np.testing.assert_allclose(importances, theirs.feature_importances_, rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_weights_of_full_precision(criterion):
    """Weights are rounded to 2**-50 of their total."""
    kind = DecisionTreeRegressor if criterion == "squared_error" else DecisionTreeClassifier
    X, y = make_table(0 if kind is DecisionTreeRegressor else 4, seed=3)
    ours, theirs = fit_both(kind, X, y, weights("floats", len(y)), criterion=criterion)
    assert_same_tree(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighting", CASES)
def test_regression(weighting, seed):
    X, y = make_table(0, seed=seed)
    ours, theirs = fit_both(DecisionTreeRegressor, X, y, weights(weighting, len(y)))
    assert_same_tree(ours, theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-9)


@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_regression_far_from_zero(offset):
    """The scale of the deviations decides, not that of the targets."""
    X, y = make_table(0)
    y = np.round(y * 1024) / 1024  # moving by the offset is exact
    near, _ = fit_both(DecisionTreeRegressor, X, y)
    far, _ = fit_both(DecisionTreeRegressor, X, y + offset)
    np.testing.assert_array_equal(near.tree_.feature, far.tree_.feature)
    np.testing.assert_array_equal(near.tree_.threshold, far.tree_.threshold)
    np.testing.assert_allclose(near.tree_.impurity, far.tree_.impurity, rtol=1e-12)


# ------------------------------------------------------------------ stopping
STOPS = {
    "depth": {"max_depth": 3},
    "split share": {"min_samples_split": 0.11},
    "split": {"min_samples_split": 97},
    "leaf share": {"min_samples_leaf": 0.031},
    "weight share": {"min_weight_fraction_leaf": 0.043},
    "decrease": {"min_impurity_decrease": 0.004},
    "leaves 2": {"max_leaf_nodes": 2},
    "leaves 9": {"max_leaf_nodes": 9},
    "leaves and depth": {"max_leaf_nodes": 12, "max_depth": 4},
    "leaves and decrease": {"max_leaf_nodes": 12, "min_impurity_decrease": 0.002},
    "leaves, all": {"max_leaf_nodes": 10_000},
    "alpha": {"ccp_alpha": 0.004},
    "alpha and leaves": {"ccp_alpha": 0.002, "max_leaf_nodes": 14},
}


@pytest.mark.full
@pytest.mark.parametrize("weighting", ["unweighted", "eighths"])
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("kind", TWIN, ids=lambda kind: kind.__name__)
def test_stopping(kind, stop, weighting):
    X, y = make_table(3 if kind is DecisionTreeClassifier else 0, seed=11)
    both = fit_both(kind, X, y, weights(weighting, len(y)), **STOPS[stop])
    assert_same_tree(*both, ties=3 if y.dtype.kind == "i" and weighting == "unweighted" else 0)


@pytest.mark.parametrize("weighting", ["unweighted", "integers"])
def test_class_weight(weighting):
    X, y = make_table(3, seed=2)
    weight = weights(weighting, len(y))
    class_weight = {0: 1.0, 1: 4.0, 2: 0.25}
    both = fit_both(DecisionTreeClassifier, X, y, weight, class_weight=class_weight)
    assert_same_tree(*both, ties=3)


def test_balanced_class_weight():
    X, y = make_table(3, seed=2)
    y = np.where(np.arange(y.size) % 3 == 0, 0, y)
    balanced = fit_both(DecisionTreeClassifier, X, y, class_weight="balanced")
    assert_same_tree(*balanced, rtol=1e-10, ties=3)


# ------------------------------------------------------------- missing values
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("kind", TWIN, ids=lambda kind: kind.__name__)
def test_missing_values(kind, rate):
    X, y = make_table(3 if kind is DecisionTreeClassifier else 0, missing=rate, seed=4)
    ours, theirs = fit_both(kind, X, y, weights("eighths", len(y)))
    i, j = assert_same_tree(ours, theirs)
    inner = ours.tree_.children_left[i] >= 0
    left = ours.tree_.missing_go_to_left[i][inner]
    np.testing.assert_array_equal(left, theirs.tree_.missing_go_to_left[j][inner])
    unseen, _ = make_table(0, missing=0.5, seed=99)
    np.testing.assert_allclose(ours.predict(unseen), theirs.predict(unseen), rtol=1e-12)


# ------------------------------------------------------------------ precision
@pytest.mark.full
@pytest.mark.parametrize("moved", ["seconds", "identifiers"])
def test_columns_keep_their_precision(moved):
    """Differences below float32: scikit-learn's copy of X is constant, ours is not."""
    X, y = make_table(2)
    rank = np.argsort(np.argsort(X, axis=0), axis=0)
    wide = 1.7e9 + rank * 2.0**-20 if moved == "seconds" else rank + 2**50
    assert np.unique(wide.astype(np.float32)).size == 1
    ours, theirs = fit_both(DecisionTreeClassifier, wide, y)
    assert theirs.tree_.node_count == 1
    near, theirs = fit_both(DecisionTreeClassifier, rank, y)
    assert_same_tree(near, theirs, ties=3)
    np.testing.assert_array_equal(ours.tree_.feature, near.tree_.feature)
    np.testing.assert_array_equal(ours.tree_.n_node_samples, near.tree_.n_node_samples)
    np.testing.assert_array_equal(ours.apply(wide), near.apply(rank))


# ----------------------------------------------------------- more of the face


@pytest.mark.parametrize("kind", TWIN, ids=lambda kind: kind.__name__)
def test_descent(kind):
    """Same leaves and paths, once their numbers are translated."""
    X, y = make_table(5 if kind is DecisionTreeClassifier else 0, missing=0.1)
    ours, theirs = fit_both(kind, X, y, weights("eighths", len(y)))
    i, j = assert_same_tree(ours, theirs)
    translate = np.empty(i.size, np.int64)
    translate[i] = j
    np.testing.assert_array_equal(translate[ours.apply(X)], theirs.apply(X))
    path = ours.decision_path(X).toarray()
    np.testing.assert_array_equal(path[:, i], theirs.decision_path(X).toarray()[:, j])
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-12)


@pytest.mark.parametrize("n", [200, 2000])
def test_fractional_weights_keep_targets_apart(n):
    """A full tree has a leaf for every distinct target, whatever the weights."""
    rng = np.random.default_rng(n)
    X = rng.random((n, 1))
    weight = rng.random(n) + 0.5
    model = DecisionTreeRegressor().fit(X, X[:, 0], weight)
    assert model.get_n_leaves() == n
    np.testing.assert_allclose(model.predict(X), X[:, 0], rtol=0, atol=1e-12)


def test_entropy_takes_splits_that_gain_nothing():
    """Exclusive or: no cut gains, two levels of them do; rounding must not refuse the first."""
    for k in range(1, 30):
        X = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], k, axis=0)
        y = X[:, 0] ^ X[:, 1]
        assert DecisionTreeClassifier(criterion="entropy").fit(X, y).get_n_leaves() == 4
