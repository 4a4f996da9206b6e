"""Shapley values are those of the game by its definition, and those of other programs."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import answer, multiway_cases, random_multiway_tree, random_rows, send
from pruning_oracles import tree_of_shape
from sklearn.exceptions import NotFittedError

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.base.dtypes import MISSING_STOPS, MISSING_TO_ALL
from gputree.datasets import load_golf, load_iris
from gputree.export import shap_values, shapley
from gputree.export.shapley import expected_answer, shapley_values
from gputree.prediction import class_distributions

GOLF = load_golf()
IRIS = load_iris()


# -------------------------------------------------------------------- oracle
def expected(tree, row, known, node=0):
    """Prediction if the values of some columns are known, and weights decide the rest."""
    if tree.is_leaf[node]:
        return answer(tree, node)
    children = list(tree.children(node))
    whole = sum(float(tree.weight[child]) for child in children)
    ordinal = MISSING_TO_ALL
    if tree.feature[node] in known:
        ordinal = send(tree, node, float(row[tree.feature[node]]))
    if ordinal == MISSING_STOPS or (ordinal == MISSING_TO_ALL and whole == 0):
        return answer(tree, node)
    if ordinal >= 0:
        return expected(tree, row, known, children[ordinal])
    below = [child for child in children if tree.weight[child] > 0]
    return sum(tree.weight[c] / whole * expected(tree, row, known, c) for c in below)


def by_definition(tree, row):
    """Mean gain of each column over the subsets of the others; what no column gives."""
    d = tree.n_features
    subsets = [set(s) for size in range(d + 1) for s in combinations(range(d), size)]
    worth = {tuple(sorted(s)): expected(tree, row, s) for s in subsets}
    out = np.zeros((d, tree.n_classes))
    for j in range(d):
        for s in subsets:
            if j not in s:
                chance = factorial(len(s)) * factorial(d - len(s) - 1) / factorial(d)
                out[j] += chance * (worth[tuple(sorted(s | {j}))] - worth[tuple(sorted(s))])
    return out, worth[()]


@given(multiway_cases(max_rows=3))
def test_every_kind_of_tree_by_definition(case):
    tree, values = case
    values[:1, 3] = np.nan  # says nothing where it goes to all branches
    found, base = shapley_values(tree, values), expected_answer(tree)
    for row, phi in zip(values, found, strict=True):
        values_of_columns, of_none = by_definition(tree, row)
        np.testing.assert_allclose(phi, values_of_columns, rtol=0, atol=1e-13)
        np.testing.assert_allclose(base, of_none, rtol=0, atol=1e-13)


# --------------------------------------------------------------------- users
@pytest.mark.parametrize("kind", [ID3Classifier, C45Classifier, DecisionTreeClassifier])
def test_classes(kind):
    rows = [*GOLF.data.tolist(), ["fog", None, "high", "weak"], [None] * 4]
    rows = np.array(rows, object)
    model = kind().fit(GOLF.data, GOLF.target)
    found = shap_values(model, rows)
    assert found.values.shape == (16, 4, 2)
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict_proba(rows), atol=1e-14)


def test_weights_decide_where_columns_are_unknown():
    X, y, weight = np.array([[0.0], [1.0]]), [1.0, 5.0], [3.0, 1.0]
    model = DecisionTreeRegressor().fit(X, y, weight)
    found = shap_values(model, X)
    assert found.base_values == 2.0
    assert found.values.tolist() == [[-1.0], [3.0]]


def test_no_rows_and_threads(monkeypatch):
    tree = random_multiway_tree(np.random.default_rng(3), 40)
    values = random_rows(np.random.default_rng(4), 41)
    assert shapley_values(tree, values[:0]).shape == (0, 5, 3)
    expected_values = shapley_values(tree, values)
    monkeypatch.setattr(shapley, "_BLOCK", 1)
    assert np.array_equal(shapley_values(tree, values, n_threads=3), expected_values)


@pytest.mark.full
def test_many_columns_on_one_path():
    """A chain of 120 columns: the values of OR, which the first to be true decides."""
    d = 120
    X = np.eye(d + 1, d)
    y = np.arange(d + 1) < d
    model = DecisionTreeRegressor().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2).astype(float))
    assert model.get_depth() == d
    found = shap_values(model, X)
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict(X), atol=1e-9)
    assert (found.values[-1] < 0).all()


def test_a_deep_chain():
    n = 4001
    mean = np.arange(n)[:, None] % 7.0
    tree = tree_of_shape(
        [2, 0] * (n // 2) + [0], mean, np.ones(n), np.arange(n, 0, -1.0), "regression"
    )
    values = np.zeros((2, tree.n_features))
    total = shapley_values(tree, values).sum(axis=1) + expected_answer(tree)
    np.testing.assert_allclose(total, class_distributions(tree, values), atol=1e-9)


def test_infinity_and_other_faults():
    model = DecisionTreeRegressor(max_depth=2).fit(IRIS.data, np.arange(150.0))
    with pytest.raises(ValueError, match="infinity"):
        shap_values(model, np.full((1, 4), np.inf))
    with pytest.raises(ValueError, match="4 features"):
        shap_values(model, [[1.0]])
    with pytest.raises(NotFittedError):
        shap_values(DecisionTreeRegressor(), IRIS.data)
    with pytest.raises(
        TypeError, match="shap_values takes a fitted estimator of gputree, got Tree"
    ):
        shap_values(model.tree_, IRIS.data)
