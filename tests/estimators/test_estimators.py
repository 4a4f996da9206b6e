"""The face: parameters, attributes and the promises of the class docstrings."""

import inspect

import numpy as np
import pytest
from sklearn import tree as sklearn_tree
from sklearn.datasets import load_iris

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.base.threads import n_threads
from gputree.pruning import CostComplexity

KINDS = [DecisionTreeClassifier, DecisionTreeRegressor]


def make_table(kind, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.05] = np.nan
    signal = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 3]) + rng.normal(scale=0.5, size=n)
    y = np.digitize(signal, [-1, 0, 1.5]) if kind is DecisionTreeClassifier else signal
    return X, y, rng.integers(1, 4, n) / 2.0


# ------------------------------------------------------------- a drop-in part
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_scikit_learn(kind):
    """Names and defaults are scikit-learn's, but for what its builder alone needs."""
    ours = inspect.signature(kind).parameters
    theirs = inspect.signature(getattr(sklearn_tree, kind.__name__)).parameters
    assert set(theirs) <= set(ours)
    for name in set(theirs) & set(ours) - {"splitter"}:
        assert ours[name].default == theirs[name].default, name
        assert ours[name].kind == inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_documented_and_checked(kind):
    names = set(inspect.signature(kind).parameters)
    assert set(kind._parameter_constraints) == names
    assert "{" not in kind.__doc__
    told = inspect.getdoc(kind).splitlines()
    for name in names:
        assert any(line.startswith(f"{name} : ") for line in told), name


@pytest.mark.parametrize("kind", KINDS)
def test_attributes(kind):
    X, y, _ = make_table(kind)
    model = kind(max_depth=3, max_bins=4).fit(X, y)  # few bins: histograms pay for few rows
    assert model.n_features_in_ == 4
    assert model.n_outputs_ == 1
    assert not hasattr(model, "feature_names_in_")
    assert model.get_depth() == model.tree_.max_depth == 3
    assert model.get_n_leaves() == model.tree_.n_leaves
    assert model.unpruned_tree_ is model.tree_
    assert 0 < model.growth_report_["refined_pairs"] < model.growth_report_["scanned_pairs"]
    assert set(vars(model)) - set(model.get_params()) >= {"tree_", "n_features_in_"}


# ------------------------------------------------------------- the same tree


@pytest.mark.parametrize("kind", KINDS)
def test_more_bins_than_values_are_exact(kind):
    X, y, _ = make_table(kind)
    X = np.round(X * 20)
    exact = kind(max_depth=6).fit(X, y)
    assert kind(max_depth=6, splitter="binned").fit(X, y).tree_.equals(exact.tree_)
    coarse = kind(max_depth=6, splitter="binned", max_bins=3).fit(X, y)
    assert coarse.score(X, y) < exact.score(X, y)
    assert np.unique(coarse.tree_.threshold[~coarse.tree_.is_leaf]).size <= 2 * 4 + 1


@pytest.mark.parametrize(
    ("kind", "criterion", "allowed"),
    [
        (DecisionTreeClassifier, "hellinger", r"\('gini', 'entropy'\), got 'hellinger'"),
        (DecisionTreeClassifier, "squared_error", r"\('gini', 'entropy'\), got 'squared_error'"),
        (DecisionTreeRegressor, "mae", r"\('squared_error', .*'quantile'\), got 'mae'"),
        (DecisionTreeRegressor, "gini", r"\('squared_error', .*'quantile'\), got 'gini'"),
    ],
)
@pytest.mark.parametrize("nominal", [None, [0]])
def test_a_criterion_that_growth_does_not_know(monkeypatch, kind, criterion, allowed, nominal):
    """One that came past the check of parameters is no other one."""
    constraints = {**kind._parameter_constraints, "criterion": "no_validation"}
    monkeypatch.setattr(kind, "_parameter_constraints", constraints)
    monkeypatch.setattr(kind, "_refuses", {})
    model = kind(criterion=criterion, categorical_features=nominal)
    with pytest.raises(ValueError, match=f"must be one of {allowed}"):
        model.fit([[0], [1], [1]], [0, 1, 1])


@pytest.mark.parametrize(
    ("max_features", "same_as"), [("sqrt", 2), ("log2", 2), (0.5, 2), (0.01, 1), (1.0, None)]
)
def test_shares_of_columns(max_features, same_as):
    X, y, _ = make_table(DecisionTreeClassifier)
    trees = [
        DecisionTreeClassifier(max_features=m, max_depth=4, random_state=0).fit(X, y).tree_
        for m in (max_features, same_as)
    ]
    assert trees[0].equals(trees[1])


# -------------------------------------------------------------------- pruning
@pytest.mark.parametrize("kind", KINDS)
def test_pruning_while_fitting_and_after(kind):
    X, y, weight = make_table(kind)
    full = kind().fit(X, y, weight)
    pruner = CostComplexity(0.01)
    fitted = kind(pruning=pruner).fit(X, y, weight)
    assert fitted.tree_.equals(pruner.prune(full).tree_)
    assert fitted.tree_.equals(kind(ccp_alpha=0.01).fit(X, y, weight).tree_)
    assert fitted.unpruned_tree_.equals(full.tree_)
    assert fitted.get_n_leaves() < full.get_n_leaves()


# ----------------------------------------------------------------------- rest
def test_threads_for_jobs(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "4")
    assert [n_threads(jobs) for jobs in (None, 1, 3, 8, -1, -2, -9)] == [4, 1, 3, 8, 4, 3, 1]


@pytest.mark.parametrize(
    "wrong", [{"sample_weight": -np.ones(150)}, {"X": np.ones((150, 2)) * np.inf}]
)
def test_a_failed_refit_changes_nothing(wrong):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"Negative values|infinity"):
        model.fit(**{"X": X, "y": 2 - y} | wrong)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "pruning", ["reduced_error", "validation_pre_pruning", "cost_complexity_cv"]
)
def test_a_seed_reaches_the_pruner(pruning):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(pruning=pruning, random_state=0)
    trees = [model.fit(X, y).tree_ for _ in range(2)]
    assert all(tree.equals(trees[0]) for tree in trees)


def test_shares_of_rows_count_those_without_weight():
    """Count all rows for the minimum fraction of a leaf, as scikit-learn does."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 6, (60, 3)).astype(float), rng.integers(0, 3, 60)
    weight = np.repeat([0.0, 1.0], 30)
    model = DecisionTreeClassifier(min_samples_leaf=0.2).fit(X, y, weight)
    assert model.tree_.n_node_samples[model.tree_.is_leaf].min() >= 12
