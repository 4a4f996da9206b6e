"""Forests of several targets, of exact and of drawn cuts: shapes of scikit-learn, and shares."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gputree
from gputree import RandomForestClassifier, RandomForestRegressor, load_model, save_model

N = 50


@pytest.fixture(scope="module")
def table():
    """Columns with missing values, targets, and labels of two and of three classes."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 4))
    noisy = X + 0.5 * rng.normal(size=X.shape)
    targets = np.column_stack([noisy[:, 0], 3 * noisy[:, 1] + 100])
    labels = np.column_stack([noisy[:, 0] > 0, np.digitize(noisy[:, 1], [-0.5, 0.7])]).astype(int)
    return np.where(rng.random(X.shape) < 0.05, np.nan, X), targets, labels


@pytest.fixture(scope="module", params=["RandomForest", "ExtraTrees"])
def forests(table, request):
    X, targets, labels = table
    params = {"n_estimators": 12, "oob_score": True, "random_state": 3, "bootstrap": True}
    kinds = (getattr(gputree, request.param + of) for of in ("Regressor", "Classifier"))
    return tuple(kind(**params).fit(X, y) for kind, y in zip(kinds, (targets, labels), strict=True))


def test_means_over_trees(table, forests):
    X, targets, _ = table
    forest, _ = forests
    assert forest.n_outputs_ == 2
    each = np.mean([tree.predict(X) for tree in forest.estimators_], axis=0)
    assert_allclose(forest.predict(X), each, rtol=1e-12)
    assert forest.score(X, targets) > 0.8
    assert forest.oob_prediction_.shape == (N, 2)
    residual = ((targets - forest.oob_prediction_) ** 2).sum(axis=0)
    total = ((targets - targets.mean(axis=0)) ** 2).sum(axis=0)
    assert forest.oob_score_ == pytest.approx((1 - residual / total).mean())


def test_shares_over_trees(table, forests):
    X, _, labels = table
    _, forest = forests
    assert forest.n_classes_ == [2, 3]
    found = forest.predict_proba(X)
    for j, shares in enumerate(found):
        each = np.mean([tree.predict_proba(X)[j] for tree in forest.estimators_], axis=0)
        assert_allclose(shares, each, rtol=1e-12)
        assert_allclose(shares.sum(axis=1), 1.0)
        assert_array_equal(forest.predict(X)[:, j], shares.argmax(axis=1))
    assert forest.score(X, labels) == (forest.predict(X) == labels).all(axis=1).mean()
    decision = forest.oob_decision_function_
    assert decision.shape == (N, 3, 2)  # as scikit-learn's; zeros for the class that one lacks
    assert not decision[:, 2, 0].any()
    assert_allclose(decision.sum(axis=1), 1.0)
    hits = decision.argmax(axis=1) == labels
    assert forest.oob_score_ == pytest.approx(hits.all(axis=1).mean())


def test_scores_of_the_user_have_labels(table):
    X, _, labels = table
    words = np.array(["no", "so", "yes"])[labels]

    def first(true, found):
        assert true.shape == found.shape
        return float((true[:, 0] == found[:, 0]).mean())

    forest = RandomForestClassifier(n_estimators=20, oob_score=first, random_state=0)
    assert 0.5 < forest.fit(X, words).oob_score_ <= 1.0
    assert set(np.unique(forest.predict(X))) <= {"no", "so", "yes"}


@pytest.mark.parametrize("weight", ["balanced", "balanced_subsample", [{0: 1, 1: 2}, {0: 3}]])
def test_class_weights(table, weight):
    X, _, labels = table
    forest = RandomForestClassifier(n_estimators=4, class_weight=weight, random_state=0)
    forest.fit(X, labels)
    if weight == "balanced_subsample":
        drawn = forest.estimators_samples_[0]
        of_row = np.ones(drawn.size)
        for column in labels[drawn].T:
            of_row /= np.bincount(column)[column]
        root = forest.estimators_[0].tree_.value[0]
        expected = np.bincount(labels[drawn, 1], of_row) / of_row.sum()
        assert_allclose(root[1], expected, rtol=1e-6)


def test_importances_and_errors(table, forests):
    X, targets, labels = table
    numbers, classes = forests
    for forest, y in ((numbers, targets), (classes, labels)):
        assert forest.feature_importances_.sum() == pytest.approx(1.0)
        found = forest.oob_permutation_importance(X, y)
        assert set(np.argsort(found.importances_mean)[2:]) == {0, 1}
        with pytest.raises(ValueError, match=r"y must have|targets, as in fit"):
            forest.oob_permutation_importance(X, y[:, 0])
    with pytest.warns(UserWarning, match="trees are too few"):
        found = numbers.predict_standard_error(X)
    assert found.shape == (N, 2)
    with pytest.warns(UserWarning, match="trees are too few"):
        found = classes.predict_standard_error(X)
    assert [errors.shape for errors in found] == [(N, 2), (N, 3)]


def test_cut_join_and_grow_on(table, forests):
    X, targets, labels = table
    for forest, y in zip(forests, (targets, labels), strict=True):
        joined = forest[:5] + forest[5:]
        assert_array_equal(joined.predict(X), forest.predict(X))
        more = copy.copy(forest[:5]).set_params(warm_start=True, n_estimators=12)
        assert_array_equal(more.fit(X, y).predict(X), forest.predict(X))
        more.set_params(n_estimators=13, oob_score=False)
        with pytest.raises(ValueError, match=r"the (targets|classes) of the fit before"):
            more.fit(X, np.hstack([y, y]))
        one = type(forest)(n_estimators=2).fit(X, y[:, 0])
        with pytest.raises(ValueError, match=r"must have (the same classes|as many targets)"):
            forest + one


def test_files(table, forests, tmp_path):
    X, _, labels = table
    balanced = RandomForestClassifier(n_estimators=2, class_weight="balanced_subsample")
    for forest in (*forests, balanced.fit(X, labels)):
        save_model(forest, tmp_path / "forest.gputree")
        again = load_model(tmp_path / "forest.gputree")
        assert again.n_outputs_ == 2
        assert_array_equal(again.predict(X), forest.predict(X))


def test_quantiles_are_those_of_each_target(table, tmp_path):
    """A forest of a target given twice is that of one, and has its quantiles twice."""
    X, targets, _ = table
    given = {"n_estimators": 6, "random_state": 0, "quantreg": True, "max_depth": 3}
    forest = RandomForestRegressor(**given).fit(X, targets)
    levels = [0.9, 0.1]
    for rows in (X, None):
        found = forest.predict_quantiles(rows, levels)
        assert found.shape == (N, 2, 2)
        assert_array_equal(forest.predict_quantiles(rows, 0.9), found[..., 0])
    twice = RandomForestRegressor(**given).fit(X, np.stack([targets[:, 0]] * 2, axis=1))
    once = RandomForestRegressor(**given).fit(X, targets[:, 0])
    for rows in (X, None):
        expected = once.predict_quantiles(rows, levels)
        assert_array_equal(twice.predict_quantiles(rows, levels), np.stack([expected] * 2, axis=1))
    one = [of.target for of in forest._leaf_targets]
    assert_array_equal(one, np.sort(targets.T, axis=1))
    save_model(forest, tmp_path / "forest.gputree")
    for again in (load_model(tmp_path / "forest.gputree"), forest[:3] + forest[3:]):
        found = again.predict_quantiles(X, levels)
        assert_array_equal(found, forest.predict_quantiles(X, levels))


def test_parameters_of_one_target(table):
    X, targets, labels = table
    with pytest.raises(ValueError, match="max_samples by class of RandomForestClassifier takes"):
        RandomForestClassifier(max_samples="balanced").fit(X, labels)
    with pytest.raises(ValueError, match="splitter='binned'"):
        RandomForestRegressor(splitter="binned").fit(X, targets)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_drawn_ranks_of_columns_have_one_type(table, monkeypatch, criterion):
    """Compiled kernels return Python integers: one of 2**63 or more would not be an int64."""
    from gputree.backends.cpu.ranked import grower

    search, split, types = grower.search_node, grower.split_node, set()

    def as_compiled(*arguments):
        cut = search(*arguments)
        return cut._replace(rank=int(cut.rank))

    def recorded(ranked, node, cut, *others):
        types.add(type(cut.rank))
        return split(ranked, node, cut, *others)

    monkeypatch.setattr(grower, "search_node", as_compiled)
    monkeypatch.setattr(grower, "split_node", recorded)
    monkeypatch.setattr(grower, "MOST_WHOLE", 10)
    monkeypatch.setattr(grower, "MOST_SECONDS", 0.0)
    X, targets, _ = table
    y = targets if criterion == "squared_error" else targets[:, 0]
    RandomForestRegressor(criterion=criterion, n_estimators=2, random_state=0, n_jobs=1).fit(X, y)
    assert types == {np.uint64}
