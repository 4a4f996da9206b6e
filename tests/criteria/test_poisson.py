"""The Poisson deviance: its formulas against definitions, its trees against scikit-learn's."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from pruning_oracles import tree_of_shape
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn_twins import assert_same_tree, fit_both
from test_criteria import bound_and_margin, gain, ints, score

from gputree import DecisionTreeRegressor
from gputree.arithmetic.fixed_point import fix_rates, fix_weights
from gputree.check.cases import counted, numbers
from gputree.criteria import Poisson
from gputree.criteria.named import target_impurity
from gputree.prediction.losses import node_loss
from gputree.pruning import CostComplexityCV, ReducedError, RoutedRows

RATES = st.one_of(
    st.just(0.0),
    st.integers(0, 5).map(float),
    st.sampled_from([1e-9, 0.125, 1e6, 3.0, 3.0 + 2.0**-30]),
)
ROWS = st.tuples(RATES, st.sampled_from([0.25, 1.0, 1.0, 3.0]))


def fixed(rows):
    """The criterion for rows of (target, weight), and their statistics, one by one."""
    y, weight = np.array(rows).T
    if not y.any():
        reject()  # no rate to deviate from
    weights = fix_weights(weight, len(rows))
    targets = fix_rates(y, weights)
    units = np.ones(len(rows), np.int64) if weights.weight is None else weights.weight
    statistics = np.stack([units, targets.target, targets.square], axis=1)
    return Poisson(targets.unit / targets.reach, targets.reach), statistics, targets


def deviance(y, weight):
    """Half the mean deviance of rows from their own mean."""
    mean = np.average(y, weights=weight)
    terms = [w * t * math.log(t / mean) for t, w in zip(y, weight, strict=True) if t > 0]
    return math.fsum(terms) / weight.sum()


# ------------------------------------------------------------------- formulas
@given(st.lists(ROWS, min_size=2, max_size=12), st.data())
def test_gain_is_the_decrease_of_deviance(rows, data):
    cut = data.draw(st.integers(1, len(rows) - 1))
    criterion, statistics, _ = fixed(rows)
    y, weight = np.array(rows).T
    left, total = statistics[:cut].sum(axis=0), statistics.sum(axis=0)
    value = score(criterion, left, total)
    assert value == oracles.scores(criterion, left, total)[0]
    if not y[:cut].any() or not y[cut:].any():
        assert value == -np.inf
        return
    share = weight[:cut].sum() / weight.sum()
    inside = share * deviance(y[:cut], weight[:cut]) + (1 - share) * deviance(y[cut:], weight[cut:])
    expected = deviance(y, weight) - inside
    found = gain(criterion, value, total)
    assert found == oracles.gain(criterion, value, total)
    assert found == pytest.approx(expected, abs=1e-12 * y.max())


@given(
    st.lists(ROWS, min_size=2, max_size=8), st.lists(ROWS, max_size=4), st.lists(ROWS, max_size=4)
)
def test_bound_of_every_subset_inside_a_bin(inside, before, after):
    """Every part of the bin, whatever is around it; none of them exceeds the bound."""
    criterion, statistics, _ = fixed([*inside, *before, *after])
    n, k = len(inside), len(inside) + len(before)
    cells, left = statistics[:n].sum(axis=0), statistics[n:k].sum(axis=0)
    total = statistics.sum(axis=0)
    masks = np.array(list(itertools.product([0, 1], repeat=n))[1:-1])
    best = oracles.scores(criterion, left + masks @ statistics[:n], total).max()
    assume(best > -np.inf)
    bound, margin = bound_and_margin(criterion, left, cells, total, best)
    assert margin >= 0
    assert bound >= best - 0.1 * margin


def test_bound_of_equal_rates_is_met_at_the_ends_of_the_bin():
    """Rows of one rate cannot be distinguished: no cut among them is better than both ends."""
    criterion, rows, _ = fixed([(2.0, 1.0)] * 10 + [(1.0, 1.0)] * 50 + [(5.0, 1.0)] * 40)
    left, cells, total = rows[10:60].sum(axis=0), rows[:10].sum(axis=0), rows.sum(axis=0)
    ends = oracles.scores(criterion, ints([left, left + cells]), total)
    bound, _ = bound_and_margin(criterion, left, cells, total, ends.max())
    assert ends.max() <= bound * (1 + 1e-12) < 1.001 * ends.max()


@given(st.lists(ROWS, min_size=1, max_size=20))
def test_impurity_is_half_the_mean_deviance(rows):
    _, statistics, targets = fixed(rows)
    y, weight = np.array(rows).T
    sums = np.append(statistics.sum(axis=0), targets.square_rest.sum())[None]
    found = target_impurity("poisson", sums, targets)[0]
    assert found == pytest.approx(deviance(y, weight), rel=1e-9, abs=1e-12 * y.max())
    if (y == y[0]).all():
        assert found == 0.0


@given(st.lists(RATES, min_size=2, max_size=6))
def test_zeros_are_zeros_in_fixed_point(y):
    assume(any(y))
    targets = fix_rates(np.array(y), fix_weights(None, len(y)))
    held = [Fraction(int(t)) * Fraction(targets.unit) for t in targets.target]
    assert all(
        abs(h - Fraction(t)) <= Fraction(max(y)) / 2**51 for h, t in zip(held, y, strict=True)
    )
    assert all(h == 0 for h, t in zip(held, y, strict=True) if t == 0)


# ------------------------------------------------------------------------ trees
def counts(n=400, seed=0, missing=0.0, rate=0.5):
    """Columns of distinct values, and events whose rate depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    y = rng.poisson(rate * np.exp(X[:, 0] + 0.5 * X[:, 1] * X[:, 2])).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "weighting"),
    [
        ("counts", "none"), ("counts", "integers"), ("rare", "none"), ("rare", "integers"),
        ("rates", "none"), ("rates", "integers"), ("rates", "floats"),
    ],
)  # fmt: skip
def test_the_tree_is_that_of_scikit_learn(kind, weighting, seed):
    """Few events tie. Sums of floats leave a side without events a trace of some in scikit-learn,
    which then takes that cut for the best and gives it up: rates here are above zero.
    """
    is_rare = kind == "rare"  # many of its nodes have one event, and tied cuts
    X, y = counts(600 if is_rare else 400, seed, rate=0.03 if is_rare else 0.8)
    rng = np.random.default_rng(seed)
    if kind == "rates":
        y = (y + 0.1) * rng.uniform(0.5, 2.0, y.size)
    weight = {
        "none": None,
        "integers": rng.integers(1, 6, y.size),
        "floats": rng.uniform(0.1, 3.0, y.size),
    }[weighting]
    ours, theirs = fit_both(DecisionTreeRegressor, X, y, weight, criterion="poisson")
    i, _ = assert_same_tree(ours, theirs, rtol=1e-9, ties=0 if kind == "rates" else 6)
    untied = np.isin(ours.apply(X), i)
    assert untied.mean() > 0.7
    np.testing.assert_allclose(ours.predict(X[untied]), theirs.predict(X[untied]), rtol=1e-9)
    if i.size == ours.tree_.node_count:
        importances = theirs.feature_importances_
        np.testing.assert_allclose(ours.feature_importances_, importances, rtol=1e-7)


def test_missing_values_go_where_scikit_learn_sends_them():
    X, y = counts(500, missing=0.2)
    ours, theirs = fit_both(DecisionTreeRegressor, X, y, criterion="poisson")
    assert_same_tree(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, -1, 2], "Some value.s. of y are negative which is not allowed for Poisson regression"),
        ([0, 0, 0], "Sum of y is not positive which is necessary for Poisson regression"),
    ],
)
def test_targets_that_have_no_rate(y, message):
    for kind in (DecisionTreeRegressor, SklearnRegressor):
        with pytest.raises(ValueError, match=message):
            kind(criterion="poisson").fit([[1], [2], [3]], y)
    DecisionTreeRegressor().fit([[1], [2], [3]], y)


def test_events_without_weight_do_not_count():
    model = DecisionTreeRegressor(criterion="poisson")
    model.fit([[1], [2], [3]], [0, 0, 5], sample_weight=[1, 1, 0])
    assert model.tree_.n_nodes == 1
    assert model.predict([[3]]) == [0.0]
    assert model.tree_.impurity.tolist() == [0.0]


# ------------------------------------------------------------- around the tree


def test_check_cases_have_events():
    table = counted(numbers(900, 6, 0, np.float64))
    assert (table.y >= 0).all()
    assert 0.05 < (table.y == 0).mean() < 0.95


# ------------------------------------------------------------------------- pruning
def grown_on_counts(n):
    X, y = counts(n, rate=2.0)
    return X, y, DecisionTreeRegressor(criterion="poisson", min_samples_leaf=5)


def test_cross_validated_errors_are_deviances():
    X, y, model = grown_on_counts(200)
    pruner = CostComplexityCV(cv=4, random_state=0)
    pruner.prune(model.fit(X, y), X, y)
    rows = [row for row in pruner.cp_table_ if row["n_leaves"] == 1]
    folds = KFold(4, shuffle=True, random_state=0).split(X)
    held_out = np.empty(len(y))
    for train, test in folds:
        held_out[test] = y[train].mean()
    found = mean_poisson_deviance(y, held_out) / mean_poisson_deviance(y, np.full(len(y), y.mean()))
    assert rows[0]["xerror"] == pytest.approx(found, rel=1e-10)


def test_negative_counts_on_validation_rows_are_refused():
    X, y, model = grown_on_counts(100)
    model.fit(X, y)
    with pytest.raises(ValueError, match="negative which is not allowed for Poisson"):
        ReducedError().prune(model, X, -y)


def test_events_where_a_tree_expects_none_cost_much_but_not_infinitely():
    tree = tree_of_shape([2, 0, 0], [[0.5], [0.0], [1.0]], [0.4, 0, 0], [4, 2, 2], "regression")
    rows = RoutedRows(np.array([1, 1, 2]), np.array([0.0, 2.0, 1.0]), np.ones(3))
    loss = node_loss(replace(tree, criterion="poisson"), rows)
    assert np.isfinite(loss.as_leaf).all()
    assert loss.as_leaf[1] > 1000
    assert loss.as_leaf[2] == pytest.approx(0.0, abs=1e-12)
