"""A table in parts of rows grows the tree of the table in one piece, field by field."""

from __future__ import annotations

import numpy as np
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from part_cases import KINDS, mixed_case
from strategies import examples, random_sample

from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.held import Held, Parts, View

# Small tables of many categories: one in every row, which is told and does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")


def in_parts(table: CodedTable, bounds) -> CodedTable:
    """The same table, worked on in parts."""
    held = table._view.held
    parts = Parts(np.asarray(bounds, np.int64))
    own = Held(held.columns, held.values, held.names, "cpu", held.max_bins, parts)
    return CodedTable.of(View(own))


def random_bounds(rng, n):
    """Up to 5 parts, of which some may be empty."""
    return np.concatenate([[0], np.sort(rng.integers(0, n + 1, rng.integers(0, 5))), [n]])


def assert_same(model, table, y, weight, seed):
    rng = np.random.default_rng(seed)
    expected = model.fit(table, y, weight).tree_
    found = model.fit(in_parts(table, random_bounds(rng, len(table))), y, weight).tree_
    found.check()
    assert found.equals(expected)


@pytest.mark.full
@pytest.mark.parametrize(("criterion", "weighted", "limits"), KINDS)
def test_trees_of_mixed_tables(finish_rows, criterion, weighted, limits):
    sample, kind, y = mixed_case(criterion, weighted)
    table = CodedTable(sample.X, sample.nominal, max_bins=12)
    for seed in range(3):
        assert_same(kind(criterion=criterion, n_jobs=1, **limits), table, y, sample.weight, seed)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_answers_that_only_rise_or_fall(finish_rows, criterion):
    sample = random_sample(7, 300, 4, 2 if criterion == "gini" else 0, weighted=True)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    table = CodedTable(sample.values, max_bins=12)
    for limits in ({}, {"max_features": 2, "random_state": 4, "min_samples_leaf": 12}):
        model = kind(criterion=criterion, n_jobs=1, monotonic_cst=[1, -1, 0, 1], **limits)
        assert_same(model, table, sample.y, sample.weight, 3)


@pytest.mark.full
@pytest.mark.parametrize("split", ["auto", "exhaustive", "ordered", "one_vs_rest"])
def test_columns_of_more_categories_than_bins(finish_rows, split):
    rng = np.random.default_rng(1)
    n = 900
    code = (n * 0.9 * rng.random(n) ** 2).astype(int) + 300 * (rng.random(n) < 0.3)
    X = np.stack([code, rng.integers(0, 5, n), rng.standard_normal(n)], axis=1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (code % 7 < 3) + (X[:, 2] > 0) * 1
    table = CodedTable(X, [0, 1], max_bins=16)
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor):
        for leaf in (1, 6):
            model = kind(categorical_split=split, min_samples_leaf=leaf, n_jobs=1)
            assert_same(model, table, y, None, leaf)


def test_some_rows_of_a_table(finish_rows):
    sample = random_mixed_table(5, 400, True)
    table = CodedTable(sample.X, sample.nominal, max_bins=12)
    rows = np.random.default_rng(0).permutation(400)[:250]
    parted = in_parts(table, [0, 130, 131, 400])
    model = DecisionTreeClassifier(n_jobs=2)
    expected = model.fit(table.take(rows), sample.y[rows], sample.weight[rows]).tree_
    assert model.fit(parted.take(rows), sample.y[rows], sample.weight[rows]).tree_.equals(expected)


@pytest.mark.full
@pytest.mark.parametrize("gathered", [1, 30_000])
def test_small_nodes_are_gathered_some_at_a_time(monkeypatch, gathered):
    tune(monkeypatch, "partitioned", gathered_bytes=gathered)
    sample = random_mixed_table(6, 900, False)
    table = CodedTable(sample.X, sample.nominal, max_bins=12)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 60)
    assert_same(DecisionTreeClassifier(n_jobs=1), table, sample.y, sample.weight, 3)


@pytest.mark.full
def test_large_nodes_are_sifted(monkeypatch):
    """As `gputree.backends.cpu.finer` does; the cut does not depend on it."""
    rng = np.random.default_rng(2)
    table = CodedTable(rng.standard_normal((20_000, 3)), max_bins=16)
    tune(monkeypatch, "cpu", counted_table_rows=0, counted_rows=1000, sift_rows=64, sifted_rows=8)
    y = rng.integers(0, 2, 20_000)
    assert_same(DecisionTreeClassifier(max_depth=3, n_jobs=1), table, y, None, 1)


# Of so many bytes no two rows are gathered at once, some bins, or all.
BUDGETS = [1, 700, 1 << 27]


@pytest.mark.full
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("digit", [1, 12])
def test_bins_of_more_rows_than_are_gathered(monkeypatch, criterion, digit):
    """Values of all sizes and signs, repeated and missing; the classes are noise, or nearly."""
    tune(monkeypatch, "partitioned", digit=digit)
    rng = np.random.default_rng(digit)
    n = 400
    spread = rng.choice([-1.0, 1.0], n) * np.exp(rng.normal(0, 40, n))
    coarse = np.round(rng.standard_normal(n), 1)
    coarse[rng.random(n) < 0.3] = 0.25
    X = np.stack([spread, coarse, rng.standard_normal(n).astype(np.float32)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:5, 0] = [-0.0, 0.0, np.finfo(float).max, -np.finfo(float).max, 5e-324]
    y = (rng.random(n) < 0.5) ^ (X[:, 2] > 1)
    signs = [0, 0, 1]
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    table = CodedTable(X, max_bins=4)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
    for weight in (None, rng.integers(1, 4, n) / 2):
        for budget in BUDGETS[:2]:
            tune(monkeypatch, "partitioned", gathered_bytes=budget)
            for limits in ({}, {"min_samples_leaf": 7, "monotonic_cst": signs}):
                assert_same(kind(n_jobs=1, max_depth=4, **limits), table, y, weight, 2)


@pytest.mark.full
@examples(15)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 700),
    weighted=st.booleans(),
    exact=st.booleans(),
    rows=st.sampled_from([1, 40, None]),
    budget=st.sampled_from(BUDGETS),
    threads=st.sampled_from([1, 3]),
)
def test_random_tables(seed, n, weighted, exact, rows, budget, threads):
    sample = random_mixed_table(seed, n, weighted)
    table = CodedTable(sample.X, sample.nominal, max_bins=8)
    splitter = "exact" if exact else "binned"
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "partitioned", gathered_bytes=budget)
        if rows is not None:
            patch.setattr("gputree.growth.grower.finish_rows", lambda *_: rows)
            patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
        model = DecisionTreeClassifier(splitter=splitter, n_jobs=threads)
        assert_same(model, table, sample.y, sample.weight, seed)
