"""Trees with categories grown on CUDA equal those of the CPU, field by field, bit for bit."""

import numpy as np
import pytest
import tables
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from strategies import examples
from test_cuda_lists import checked_rows, wide_table
from twins import fit_both

from benchmarks import data
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.cuda import categories

# Small tables of many categories: one in every row, whose warning does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")

SPLITS = ("auto", "exhaustive", "ordered", "one_vs_rest")


def assert_same(kind, X, y, weight, nominal, **parameters):
    fit_both(kind(categorical_features=nominal, n_jobs=1, **parameters), X, y, weight)


def small_table(cuda_device, seed, weighted):
    n = 70 if cuda_device.endswith("checked") else 160
    return random_mixed_table(seed, n, weighted)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_trees_of_mixed_tables(cuda_device, finish_rows, criterion, split):
    for seed in (1, 2):
        table = small_table(cuda_device, seed, weighted=seed == 2)
        kind, y = DecisionTreeClassifier, table.y
        if criterion == "squared_error":
            kind, y = DecisionTreeRegressor, table.y + np.sin(np.arange(table.y.size))
        if criterion == "poisson":
            kind, y = DecisionTreeRegressor, table.y * 1.0
        assert_same(
            kind, table.X, y, table.weight, table.nominal, criterion=criterion,
            categorical_split=split,
        )  # fmt: skip


@pytest.mark.parametrize(
    "limits",
    [
        {"min_samples_leaf": 9},
        {"min_weight_fraction_leaf": 0.08},
        {"max_leaf_nodes": 6},
        {"max_features": 1, "random_state": 3},
        {"max_features": 2, "random_state": 4, "min_samples_leaf": 12},
        {"ties": "random", "random_state": 5},
        {"splitter": "binned", "max_bins": 5},
    ],
)
def test_limits(cuda_device, finish_rows, limits):
    for seed in (3, 4):
        table = small_table(cuda_device, seed, weighted=seed == 3)
        assert_same(DecisionTreeClassifier, table.X, table.y, table.weight, table.nominal, **limits)


@pytest.mark.parametrize("split", SPLITS)
def test_columns_of_many_categories(cuda_device, finish_rows, split, monkeypatch):
    """More than there are bins: their rows are sorted."""
    rng = np.random.RandomState(1)
    n = 90 if cuda_device.endswith("checked") else 400
    code = (n * 0.9 * rng.random_sample(n) ** 2).astype(int) + 300 * (rng.random_sample(n) < 0.3)
    X = np.stack([code, rng.randint(0, 5, n), rng.standard_normal(n)], axis=1)
    X[rng.random_sample(X.shape) < 0.05] = np.nan
    y = (code % 7 < 3) + (X[:, 2] > 0) * 1
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor):
        for leaf in (1, 6):
            assert_same(kind, X, y, None, [0, 1], categorical_split=split, min_samples_leaf=leaf)


def test_rows_are_sorted_within_memory(cuda_device, monkeypatch):
    """Nodes together, of columns of many categories, or one that is larger alone."""
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
    monkeypatch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
    tune(monkeypatch, "cuda", gathered_pairs=450)
    sort, sorted_ = categories._sort_rows, []

    def watched(grower, begin, end, column):
        sorted_.append(end - begin)
        return sort(grower, begin, end, column)

    monkeypatch.setattr(categories, "_sort_rows", watched)
    code = np.repeat(np.arange(300), 2)
    y = np.random.RandomState(5).randint(0, 2, code.size)
    assert_same(
        DecisionTreeClassifier, code[:, None], y, None, [0], max_depth=3,
        categorical_split="ordered",
    )  # fmt: skip
    assert all(rows.size == 1 or rows.sum() <= 450 for rows in sorted_)
    assert any(rows.size > 1 for rows in sorted_)


def test_more_classes_than_lanes_and_few_nodes_at_once(cuda_device, finish_rows, monkeypatch):
    tune(monkeypatch, "cuda", batch_cells=100)
    table = wide_table(checked_rows(cuda_device, 300), 40, True)
    assert_same(DecisionTreeClassifier, table.X, table.y, table.weight, table.nominal, max_depth=4)


@tables.each_real_table
def test_real_tables(cuda_device, name):
    pytest.importorskip("pandas")
    table = data.frame_table(name)
    model = DecisionTreeClassifier if table.classes else DecisionTreeRegressor
    rows = np.random.default_rng(0).permutation(len(table.y))[: checked_rows(cuda_device, 400)]
    fit_both(model(max_depth=8), table.X.iloc[rows], table.y[rows])


@examples(8)
@given(seed=st.integers(0, 10**6), split=st.sampled_from(SPLITS))
def test_random_tables(cuda_device, seed, split):
    table = small_table(cuda_device, seed, weighted=seed % 2 == 0)
    assert_same(
        DecisionTreeClassifier, table.X, table.y, table.weight, table.nominal,
        categorical_split=split,
    )  # fmt: skip
