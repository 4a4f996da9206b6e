"""Importance by permutation out of the bag, tree by tree; and scikit-learn's own inspection."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from frames import mixed
from scipy.stats import chisquare
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.inspection import partial_dependence, permutation_importance

from gputree import (
    CodedTable,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)
from gputree.ensemble import out_of_bag
from gputree.ensemble.draws import permutation

KINDS = (
    RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor,
)  # fmt: skip


@cache
def fitted_once(kind):
    X, labels, y = mixed()
    y = labels if issubclass(kind, ClassifierMixin) else y
    forest = kind(n_estimators=4, bootstrap=True, max_depth=3, random_state=2)
    return forest.fit(X, y), X, y


@pytest.fixture(params=KINDS)
def fitted(request):
    return deepcopy(fitted_once(request.param))  # some tests change it


@pytest.mark.parametrize("weighted", [False, True])
def test_importance_is_the_increase_of_the_error_out_of_the_bag(fitted, weighted):
    forest, X, y = fitted
    weight = np.arange(len(X)) % 3 + 0.5 if weighted else None
    if weighted:
        weight[:10] = 0.0
        forest.fit(X, y, weight)
    found = forest.oob_permutation_importance(X, y, weight)
    for t, (tree, drawn) in enumerate(
        zip(forest.estimators_, forest.estimators_samples_, strict=True)
    ):
        rows = np.setdiff1d(np.arange(len(X)), drawn)
        if weighted:
            rows = rows[weight[rows] > 0.0]

        def error(table, tree=tree, rows=rows):
            answers = tree.predict(table)
            is_class = isinstance(forest, ClassifierMixin)
            losses = answers != y[rows] if is_class else (answers - y[rows]) ** 2
            return np.average(losses, weights=weight[rows] if weighted else None)

        before = error(X.iloc[rows])
        for f, name in enumerate(X.columns):
            order = permutation(forest._draws.seed, t, f, rows.size)
            table = X.iloc[rows].assign(**{name: X[name].iloc[rows[order]].to_numpy()})
            np.testing.assert_allclose(
                found.importances[f, t], error(table) - before, atol=1e-14, rtol=1e-12
            )
    np.testing.assert_array_equal(found.importances_mean, found.importances.mean(axis=1))
    np.testing.assert_array_equal(found.importances_std, found.importances.std(axis=1))
    assert (found.importances_mean > 0.0).any()


def test_threads_and_tables_find_the_same(fitted):
    forest, X, y = fitted
    found = forest.oob_permutation_importance(X, y).importances
    for threads in (1, 3):
        forest.set_params(n_jobs=threads)
        assert (forest.oob_permutation_importance(CodedTable(X), y).importances == found).all()


def test_blocks_of_rows_add_up(fitted, monkeypatch):
    forest, X, y = fitted
    found = forest.oob_permutation_importance(X, y).importances
    monkeypatch.setattr(out_of_bag, "BLOCK_BYTES", 7 * 8 * X.shape[1])
    again = forest.oob_permutation_importance(X, y).importances
    np.testing.assert_allclose(again, found, rtol=1e-12, atol=1e-14)


def test_permutations_are_drawn_evenly():
    every = list(permutations(range(4)))
    counts = np.zeros(len(every))
    for tree in range(120):
        for column in range(20):
            counts[every.index(tuple(permutation(5, tree, column, 4).tolist()))] += 1
    assert chisquare(counts).pvalue > 1e-3
    assert sorted(permutation(5, 0, 0, 1000)) == list(range(1000))
    assert permutation(5, 0, 0, 0).size == 0


def test_columns_that_no_tree_tests_have_no_importance():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.zeros(len(X))])
    found = RandomForestClassifier(n_estimators=30, random_state=0).fit(X, y)
    found = found.oob_permutation_importance(X, y)
    assert found.feature_names == ["x0", "x1", "x2", "x3", "x4"]
    assert not found.importances[4].any()
    assert found.importances_mean[[2, 3]].min() > found.importances_mean[[0, 1]].max()


def test_trees_that_have_drawn_all_rows_tell_nothing():
    X, y = np.arange(3.0)[:, None], [0.0, 1.0, 2.0]
    forest = RandomForestRegressor(n_estimators=40, random_state=0).fit(X, y)
    whole = [np.unique(rows).size == 3 for rows in forest.estimators_samples_]
    found = forest.oob_permutation_importance(X, y)
    assert np.isnan(found.importances[0]).tolist() == whole
    assert any(whole)
    assert np.isfinite(found.importances_mean).all()
    alone = RandomForestRegressor(n_estimators=2).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="there are none out of the bag"):
        alone.oob_permutation_importance(X[:1], y[:1])


def test_what_is_refused(fitted, tmp_path):
    forest, X, y = fitted
    for table, target, weight, message in [
        (X[:5], y[:5], None, r"X has 5, and estimators_\[0\] was grown on 60"),
        (X, y[:5], None, r"inconsistent numbers of samples: \[60, 5\]"),
        (X, y, np.ones(5), "sample_weight.shape"),
        (X.assign(a=np.inf), y, None, "infinity"),
    ]:
        with pytest.raises(ValueError, match=message):
            forest.oob_permutation_importance(table, target, weight)
    if isinstance(forest, ClassifierMixin):
        with pytest.raises(ValueError, match="y must have the classes of fit"):
            forest.oob_permutation_importance(X, np.where(y == "low", "mid", y))
    save_model(forest.fit(X, y, np.arange(len(X))), tmp_path / "forest.gputree")
    with pytest.raises(ValueError, match="drawn in proportion to weights"):
        load_model(tmp_path / "forest.gputree").oob_permutation_importance(X, y)
    every = clone(forest).set_params(bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="only available if bootstrap=True"):
        every.oob_permutation_importance(X, y)


def test_scikit_learns_inspection_takes_forests(fitted):
    forest, X, y = fitted
    found = permutation_importance(forest, X, y, n_repeats=2, random_state=0)
    assert found.importances.shape == (4, 2)
    assert found.importances_mean.max() > 0.0
    is_class = isinstance(forest, ClassifierMixin)
    told = partial_dependence(forest, X, ["d"], grid_resolution=5, kind="both")
    assert told["average"].shape == (3 if is_class else 1, 5)
    rows = X.assign(d=told["grid_values"][0][2])
    answers = forest.predict_proba(rows).T if is_class else forest.predict(rows)
    np.testing.assert_allclose(told["individual"][..., 2].squeeze(), answers)
    told = partial_dependence(forest, X, ["c"], categorical_features=["c"])
    assert told["grid_values"][0].tolist() == ["w", "x", "y", "z"]
