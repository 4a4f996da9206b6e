"""Boosting: the trees of a plain loop over fresh fits, and what may not change them."""

import inspect
import logging

import numpy as np
import pytest
from mixed_tables import mixed_table
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

from gputree import BoostedC45Classifier, C45Classifier, CodedTable, export_json
from gputree.arithmetic.fixed_point import fix_weights
from gputree.inputs import tables
from gputree.pruning import Pessimistic

C50 = {"mdl_gain_threshold": True, "exclude_high_cardinality": True}


def oracle(X, y, n_trials, weight=None, max_leaf_ratio=1.1, **params):
    """The loop as it is published, over fresh fits: trees and their errors."""
    leaves_per_weight = 0.0
    fixed = fix_weights(weight, len(y), fractions=True)
    shift = max(fixed.total.bit_length() - 48, 0)
    units = [int(w) >> shift for w in fixed.weight]
    unit, first = fixed.unit * fixed.scale * 2.0**shift, list(units)
    trees, errors = [], []
    for trial in range(n_trials):
        tree = C45Classifier(**C50 | params)
        tree._leaves_per_weight = leaves_per_weight
        tree.fit(X, y, weight)
        if not trial and max_leaf_ratio is not None:
            leaves = sum(tree.tree_.is_leaf & (tree.tree_.weight > 0))
            leaves_per_weight = max_leaf_ratio * leaves / tree.tree_.weight[0]
        wrong = (tree.predict(X) != y).tolist()
        lost = sum(u for u, w in zip(units, wrong, strict=True) if w)
        kept = sum(units) - lost
        if trial and lost >= kept:
            break
        trees.append(tree)
        errors.append(lost / (lost + kept))
        if lost * unit < 0.1 or lost >= kept:
            break
        midpoint = ((kept + lost) / 2 - lost) / 2
        first_of_wrong = sum(f for f, w in zip(first, wrong, strict=True) if w)
        units = [
            u + round(f * (midpoint / first_of_wrong))
            if w
            else round(u * ((kept - midpoint) / kept))
            for u, f, w in zip(units, first, wrong, strict=True)
        ]
        weight = np.array([max(u, 1) * unit for u in units])
    return trees, errors


def same_trees(boosted, other):
    ours, theirs = boosted.estimators_, getattr(other, "estimators_", other)
    pairs = zip(ours, theirs, strict=True)
    return all(
        a.tree_.equals(b.tree_) and a.unpruned_tree_.equals(b.unpruned_tree_) for a, b in pairs
    )


# ------------------------------------------------------------------ the loop
@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_trees_are_those_of_fresh_fits(seed, weighted):
    X, y = mixed_table(seed)
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, len(y)) if weighted else None
    boosted = BoostedC45Classifier(n_trials=6).fit(X, y, weight)
    trees, errors = oracle(X, y, 6, weight)
    assert len(trees) > 3
    assert same_trees(boosted, trees)
    assert boosted.estimator_errors_.tolist() == errors


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*boosting reduced to 1 of 4 trials")
@pytest.mark.parametrize(
    "params",
    [
        {"pruning": None, "min_samples_leaf": 1},
        {"pruning": Pessimistic(0.1, subtree_raising=False), "collapse": False},
        {"max_depth": 2, "mdl_correction": False, "threshold_placement": "data"},
        {"min_samples_split": 0.1, "average_gain_rule": False, "min_gain": 0.01},
        {"pruning": "reduced_error", "random_state": 0},
        {"binary_splits": True},
        {"soft_thresholds": True},
        {"max_leaf_ratio": None, **dict.fromkeys(C50, False)},
        {"max_leaf_ratio": 0.5, "pruning": None},
    ],
)
def test_parameters_are_those_of_each_tree(params):
    X, y = mixed_table(3)
    boosted = BoostedC45Classifier(n_trials=4, **params).fit(X, y)
    assert same_trees(boosted, oracle(X, y, 4, **params)[0])


def test_every_parameter_of_c45_is_taken():
    ours, its = (inspect.signature(k).parameters for k in (BoostedC45Classifier, C45Classifier))
    ours = {name: p.default for name, p in ours.items()}
    assert (ours.pop("n_trials"), ours.pop("max_leaf_ratio")) == (10, 1.1)
    its = {name: p.default for name, p in its.items() if name != "laplace"}  # votes are smoothed
    assert ours == its | C50
    assert not any(its[name] for name in C50)


# ------------------------------------------------------------ what may change nothing
def test_the_table_is_coded_once(monkeypatch):
    X, y = load_wine(return_X_y=True)
    coded, code_columns = [], tables.code_columns
    monkeypatch.setattr(tables, "code_columns", lambda *a: coded.append(a) or code_columns(*a))
    boosted = BoostedC45Classifier(n_trials=3).fit(X, y)
    assert len(boosted.estimators_) == 3
    assert len(coded) == 1


@pytest.mark.full
def test_a_coded_table():
    X, y = load_wine(return_X_y=True)
    table, plain = CodedTable(X), BoostedC45Classifier(n_trials=4).fit(X, y)
    for _ in range(2):  # growth leaves the table as it is
        boosted = BoostedC45Classifier(n_trials=4).fit(table, y)
        assert same_trees(boosted, plain)
    np.testing.assert_array_equal(boosted.predict(table), plain.predict(X))
    even = BoostedC45Classifier(n_trials=4).fit(table[::2], y[::2])
    assert same_trees(even, BoostedC45Classifier(n_trials=4).fit(X[::2], y[::2]))
    np.testing.assert_array_equal(even.predict_proba(table[1::2]), even.predict_proba(X[1::2]))


# ------------------------------------------------------------------- early ends
def test_a_tree_without_errors_is_the_last(caplog):
    X = np.arange(40.0)[:, None]
    with caplog.at_level(logging.INFO, "gputree"):
        boosted = BoostedC45Classifier().fit(X, X[:, 0] > 17)
    assert len(boosted.estimators_) == 1
    assert boosted.estimator_errors_.tolist() == [0.0]
    assert boosted.stop_reason_ == "last classifier is very accurate"
    assert (
        "BoostedC45Classifier: boosting reduced to 1 of 10 trials, since last classifier is very "
        "accurate."
    ) in caplog.messages
    one = BoostedC45Classifier(n_trials=1).fit(X, X[:, 0] > 17)
    assert one.stop_reason_ is None  # no trial is missing


def test_a_first_tree_that_errs_for_half_of_the_weight_is_the_only_one():
    X = np.zeros((40, 1))
    with pytest.warns(UserWarning, match="reduced to 1 of 10 trials, since last .* inaccurate"):
        boosted = BoostedC45Classifier().fit(X, np.arange(40) % 2)
    assert boosted.stop_reason_ == "last classifier is very inaccurate"
    assert len(boosted.estimators_) == 1
    assert boosted.estimator_errors_.tolist() == [0.5]
    np.testing.assert_array_equal(boosted.predict_proba(X), np.full((40, 2), 0.5))


def test_a_later_tree_that_errs_for_half_of_the_weight_is_not_kept():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (30, 2)).astype(float), rng.integers(0, 3, 30)
    params = {"pruning": None, "max_leaf_ratio": None}
    boosted = BoostedC45Classifier(n_trials=30, **params).fit(X, y)
    assert boosted.stop_reason_ == "last classifier is very inaccurate"
    assert 1 < len(boosted.estimators_) < 30
    assert boosted.estimator_errors_.max() < 0.5
    assert same_trees(boosted, oracle(X, y, 30, **params)[0])


# --------------------------------------------------------------- C5.0's rules
def test_trees_after_the_first_have_about_as_many_leaves():
    """A node of weight w has one leaf where r w < 1.5, r being 1.1 leaves a weight of the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(rng.random(300) < 0.3, rng.integers(0, 2, 300), X[:, 0] > 0)
    free = BoostedC45Classifier(n_trials=4, max_leaf_ratio=None).fit(X, y)
    bound = BoostedC45Classifier(n_trials=4).fit(X, y)
    first, *others = (tree.tree_ for tree in bound.estimators_)
    assert first.equals(free.estimators_[0].tree_)
    assert len(others) > 2
    least = 1.5 * first.weight[0] / (1.1 * first.n_leaves)
    for tree in others:
        assert (tree.weight[~tree.is_leaf] >= least - 1e-9).all()
    grown = [sum(t.unpruned_tree_.n_leaves for t in m.estimators_[1:]) for m in (bound, free)]
    assert grown[0] < grown[1] / 2
    assert not any("_leaves_per_weight" in vars(tree) for tree in bound.estimators_)


# ------------------------------------------------------------------------ votes
def test_votes_are_confidences_of_leaves():
    X, y = np.array([[0.0]] * 6 + [[1.0]] * 4), np.array([0] * 5 + [1] * 5)
    one = BoostedC45Classifier(n_trials=1, pruning=None).fit(X, y)
    expected = [[5.5 / 7, 1.5 / 7], [0.5 / 5, 4.5 / 5]]
    np.testing.assert_allclose(one.predict_proba([[0.0], [1.0]]), expected, rtol=1e-12)


def test_stages_end_in_the_answers():
    X, y = mixed_table(2, 60)
    boosted = BoostedC45Classifier(n_trials=3).fit(X, y)
    shares = list(boosted.staged_predict_proba(X))
    labels = list(boosted.staged_predict(X))
    assert len(shares) == len(labels) == len(boosted.estimators_)
    np.testing.assert_array_equal(shares[-1], boosted.predict_proba(X))
    np.testing.assert_array_equal(labels[-1], boosted.predict(X))
    two = BoostedC45Classifier(n_trials=2).fit(X, y)
    np.testing.assert_array_equal(shares[1], two.predict_proba(X))
    np.testing.assert_allclose(shares[-1].sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(boosted.predict_log_proba(X)), shares[-1])


def test_importances_are_the_mean_of_the_trees():
    X, y = load_iris(return_X_y=True)
    boosted = BoostedC45Classifier(n_trials=4).fit(X, y)
    mean = np.mean([tree.feature_importances_ for tree in boosted.estimators_], axis=0)
    np.testing.assert_allclose(boosted.feature_importances_, mean)
    flat = BoostedC45Classifier(n_trials=1).fit(np.zeros((4, 2)), [0, 0, 1, 1])
    assert flat.feature_importances_.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------- a drop-in part


def test_what_asks_for_one_tree_says_so():
    boosted = BoostedC45Classifier(n_trials=2).fit(*load_iris(return_X_y=True))
    with pytest.raises(TypeError, match=r"takes one of .*'C45Classifier'.*got Boosted.* save_"):
        export_json(boosted)
    with pytest.raises(NotFittedError, match="This BoostedC45Classifier instance is not fitted"):
        BoostedC45Classifier().predict([[0.0]])
