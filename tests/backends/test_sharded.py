"""A table in shards grows the tree of the table in one piece, field by field, wherever they are."""

from types import SimpleNamespace

import numpy as np
import pytest
import shard_kinds
from devices import names, opened, tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from shard_kinds import Case, in_shards
from strategies import examples, random_sample

from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.base import Rows
from gputree.backends.sharded import table as summary

# Small tables of many categories: one in every row, whose warning does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")

HOSTS = ["local", "dask", pytest.param("tasks", marks=pytest.mark.full)]


LIMITS = [
    {},
    {"min_samples_leaf": 9},
    {"min_weight_fraction_leaf": 0.08, "max_depth": 6},
    {"max_leaf_nodes": 6},
    {"max_features": 1, "random_state": 3},
    {"max_features": 2, "random_state": 4, "min_samples_leaf": 12},
    {"splitter": "binned"},
    {"ties": "random", "random_state": 5},
]
# Few of the many kinds of kernels that there are: each takes seconds to compile.
KINDS = [("gini", place % 2 == 0, limits) for place, limits in enumerate(LIMITS)]
KINDS += [("squared_error", True, limits) for limits in LIMITS[:4]]
KINDS += [("entropy", False, {}), ("poisson", True, {})]


def pytest_generate_tests(metafunc):
    if "shards" in metafunc.fixturenames:
        kinds = [*HOSTS, *names(metafunc.config.getoption("--emulate"), cpu=False)]
        metafunc.parametrize("shards", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def shards(request):
    """Kinds of shards: ``shards(case, seed)`` yields trees that are grown over random ones."""
    if hasattr(shard_kinds, request.param):
        yield getattr(shard_kinds, request.param)
    else:
        with opened(request.param):
            yield shard_kinds.device


@pytest.fixture(autouse=True)
def small_work(monkeypatch):
    """Histograms in many blocks of columns; small nodes are few, and no table is one."""
    tune(monkeypatch, "sharded", task_bytes=8, pieces_per_thread=100)
    finish(monkeypatch, 30)


def finish(patch, rows):
    """Make nodes of up to `rows` rows small; None as growth chooses."""
    if rows is not None:
        patch.setattr("gputree.growth.grower.finish_rows", lambda *_: rows)
        patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)


def skip_on_device(shards, is_slow):
    """Leave a case to the CPU that takes half a minute on an emulated device."""
    if is_slow and shards is shard_kinds.device:
        pytest.skip("the CPU has this case")


def assert_same(shards, case, seed=0):
    expected = case.expected()
    for found in shards(case, seed):
        found.check()
        assert found.equals(expected)


@pytest.mark.parametrize(("criterion", "weighted", "limits"), KINDS)
@pytest.mark.parametrize("rows", [1, pytest.param(30, marks=pytest.mark.full)])
def test_trees_of_mixed_tables(shards, monkeypatch, criterion, weighted, limits, rows):
    skip_on_device(shards, rows == 1)
    finish(monkeypatch, rows)
    sample = random_mixed_table(1 + weighted, 70, weighted)
    kind, y = DecisionTreeClassifier, sample.y
    if criterion in ("squared_error", "poisson"):
        kind, y = DecisionTreeRegressor, y + np.sin(np.arange(y.size)) ** 2
    model = kind(criterion=criterion, max_bins=12, **limits)
    nominal = np.flatnonzero(sample.nominal)
    assert_same(shards, Case(model, sample.X, y, sample.weight, nominal), len(limits))


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.full)])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_answers_that_only_rise_or_fall(shards, criterion, dtype):
    sample = random_sample(7, 300, 4, 2 if criterion == "gini" else 0, weighted=True)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    values = np.clip(sample.values, -1e38, 1e38).astype(dtype)
    for limits in ({}, {"max_features": 2, "random_state": 4, "min_samples_leaf": 12}):
        model = kind(criterion=criterion, monotonic_cst=[1, -1, 0, 1], max_bins=12, **limits)
        assert_same(shards, Case(model, values, sample.y, sample.weight), 3)


@pytest.mark.full
@pytest.mark.parametrize("split", ["auto", "exhaustive", "ordered", "one_vs_rest"])
@pytest.mark.parametrize("splitter", ["exact", "binned"])
def test_columns_of_more_categories_than_bins(shards, split, splitter):
    skip_on_device(shards, split != "auto")
    rng = np.random.default_rng(1)
    n = 600
    code = (n * 0.9 * rng.random(n) ** 2).astype(int) + 300 * (rng.random(n) < 0.3)
    X = np.stack([code, rng.integers(0, 5, n), rng.standard_normal(n)], axis=1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (code % 7 < 3) + (X[:, 2] > 0) * 1
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor):
        for leaf in (1, 6):
            model = kind(categorical_split=split, min_samples_leaf=leaf, max_bins=16)
            model.set_params(splitter=splitter)
            assert_same(shards, Case(model, X, y, None, [0, 1]), leaf)


# Of the search inside bins: rounds of one interval or of all; rows are never gathered, or at once.
SEARCHES = {
    "cells of cells": {"most_bits": 2, "sorted_share": 0.0},
    "an interval a round": {"local_round_bytes": 1, "round_bytes": 1, "sorted_share": 0.0},
    "an interval, or a node, in mind": {"listed_bytes": 1, "sorted_share": 0.0},
    "rows at once": {"sorted_share": 1.0},
    "some rows": {"sorted_bytes": 3000, "sorted_share": 1.0, "partial_bytes": 1},
}


@pytest.mark.full
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("search", SEARCHES)
def test_cuts_inside_bins(shards, monkeypatch, criterion, search):
    """Values of all sizes and signs, repeated and missing; the classes are noise, or nearly."""
    tune(monkeypatch, "sharded", **SEARCHES[search])
    finish(monkeypatch, 1)
    rng = np.random.default_rng(len(search))
    n = 400
    size = rng.choice([-1.0, 1.0], n) * np.exp(rng.normal(0, 40, n))
    coarse = np.round(rng.standard_normal(n), 1)
    coarse[rng.random(n) < 0.3] = 0.25
    X = np.stack([size, coarse, rng.standard_normal(n).astype(np.float32)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:5, 0] = [-0.0, 0.0, np.finfo(float).max, -np.finfo(float).max, 5e-324]
    y = (rng.random(n) < 0.5) ^ (X[:, 2] > 1)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    for weight in (None, rng.integers(1, 4, n) / 2):
        for limits in ({}, {"min_samples_leaf": 7, "monotonic_cst": [0, 0, 1]}):
            model = kind(max_depth=4, max_bins=4, **limits)
            assert_same(shards, Case(model, X, y, weight), 2)
    model = kind(max_depth=4, max_bins=4)
    assert_same(shards, Case(model, X[:, 1:].astype(np.float32), y), 3)


@examples(12)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(80, 300),
    weighted=st.booleans(),
    regression=st.booleans(),
    exact=st.booleans(),
    rows=st.sampled_from([1, 40, 79]),
    gathered=st.sampled_from([1, 30_000, 1 << 27]),
)
def test_random_tables(shards, seed, n, weighted, regression, exact, rows, gathered):
    """Small nodes are gathered one by one, some at a time, or all at once."""
    sample = random_mixed_table(seed, n, weighted)
    kind = DecisionTreeRegressor if regression else DecisionTreeClassifier
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "sharded", gathered_bytes=gathered)
        finish(patch, rows)
        model = kind(max_bins=8, max_depth=6, splitter="exact" if exact else "binned")
        nominal = np.flatnonzero(sample.nominal)
        assert_same(shards, Case(model, sample.X, sample.y, sample.weight, nominal), seed)


@pytest.mark.parametrize("n", [2, 9, 60])
def test_tables_of_few_rows(shards, monkeypatch, n):
    """They are grown without codes, unless forbidden; shards may be empty."""
    if shards is shard_kinds.device:
        pytest.skip("tables of few rows fit any device")
    monkeypatch.undo()
    sample = random_mixed_table(n, n, True)
    model = DecisionTreeClassifier(max_bins=8)
    nominal = np.flatnonzero(sample.nominal)
    for seed in range(3):
        assert_same(shards, Case(model, sample.X, sample.y, sample.weight, nominal), seed)


def test_some_rows_of_a_table():
    """Views of a table in files; Dask has none."""
    sample = random_mixed_table(5, 400, True)
    table = CodedTable(sample.X, sample.nominal, max_bins=12)
    rows = np.random.default_rng(0).permutation(400)[:250]
    shards = in_shards(table, [0, 130, 131, 400])
    model = DecisionTreeClassifier(n_jobs=2)
    expected = model.fit(table.take(rows), sample.y[rows], sample.weight[rows]).tree_
    assert model.fit(shards.take(rows), sample.y[rows], sample.weight[rows]).tree_.equals(expected)


@pytest.mark.parametrize(
    ("n_rows", "weighted", "square", "cell"),
    [
        (10, False, None, np.uint32),
        (11, False, None, np.int64),
        (10, True, None, np.int64),
        (10, False, np.empty(0), np.int64),
    ],
)
def test_counts_are_as_wide_as_rows_need(n_rows, weighted, square, cell, monkeypatch):
    monkeypatch.setattr(summary, "MOST_COUNTED", 10)
    task = SimpleNamespace(rows=Rows(np.empty(0), None, square, None))
    given = SimpleNamespace(n_rows=n_rows, weighted=weighted, task=task)
    assert summary.TableSummary.cell_dtype.fget(given) == cell
