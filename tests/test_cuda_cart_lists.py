"""CART with categories on CUDA against the CPU: level by level, and whole trees, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import tables
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from test_cuda_lists import checked_rows, wide_table
from twin_lists import assert_same_trees, grow_cart_both_ways

from benchmarks import data
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.cuda.lists import cuts, launch, partition

# Small tables of many categories: one in every row, which is told and does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a value of its own in:UserWarning")

KINDS = ["gini", "entropy", "squared_error"]
SEARCHES = ["auto", "exhaustive", "one_vs_rest"]


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch):
    monkeypatch.setattr(partition, "CHUNK_PLACES", 100)


def new_model(kind: str, nominal, **parameters):
    model = DecisionTreeRegressor if kind == "squared_error" else DecisionTreeClassifier
    return model(criterion=kind, categorical_features=nominal, random_state=0, **parameters)


def check(kind: str, table: MixedTable, **parameters) -> None:
    y = table.y * 0.3 if kind == "squared_error" else table.y
    grow_cart_both_ways(new_model(kind, table.nominal, **parameters), table.X, y, table.weight)


@pytest.mark.parametrize("long_list", [1, 10**9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_levels(cuda_device, monkeypatch, kind, weighted, long_list):
    monkeypatch.setattr(launch, "LONG_LIST", long_list)
    check(kind, wide_table(checked_rows(cuda_device, 300), 3, weighted), max_depth=7)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_searches(cuda_device, monkeypatch, search, n_classes):
    """In batches of few nodes, and with fewer blocks than nodes."""
    monkeypatch.setattr(cuts, "BATCH_CELLS", 100)
    monkeypatch.setattr(cuts, "MOST_BLOCKS", 3)
    table = random_mixed_table(5, checked_rows(cuda_device, 300), False)
    table = table._replace(y=table.y % n_classes)
    check("gini", table, categorical_split=search)


def test_more_classes_than_lanes(cuda_device):
    check("entropy", wide_table(checked_rows(cuda_device, 300), 40, True), max_depth=4)


@given(
    st.one_of(mixed_tables(), random_mixed_tables(100)),
    st.sampled_from(KINDS),
    st.sampled_from(SEARCHES),
    st.integers(1, 4),
)
@settings(max_examples=20)
def test_random_tables(cuda_device, table, kind, search, leaf):
    check(kind, table, categorical_split=search, min_samples_leaf=leaf)


@given(random_mixed_tables(100), st.sampled_from(KINDS))
@settings(max_examples=10)
def test_limits(cuda_device, table, kind):
    limits = {"max_features": 1, "min_weight_fraction_leaf": 0.05, "max_leaf_nodes": 9}
    check(kind, table, **limits)


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_on_the_device(cuda_device, kind):
    table = random_mixed_table(4, 200, True)
    found, expected = (
        new_model(kind, table.nominal, device=device).fit(table.X, table.y, table.weight).tree_
        for device in ("cuda", "cpu")
    )
    assert_same_trees(expected, found)


def test_many_categories(cuda_device):
    """More than a warp sorts at once."""
    n = checked_rows(cuda_device, 800)
    rng = np.random.default_rng(0)
    name = rng.permutation(n) // 2
    X = np.stack([name, rng.normal(size=n)], axis=1).astype(float)
    table = MixedTable(X, np.array([True, False]), (name % 7 + rng.integers(0, 2, n)) % 3, None)
    for kind in KINDS:
        check(kind, table, max_depth=2)
        check(kind, table, max_depth=2, min_samples_leaf=n // 4, categorical_split="ordered")


@pytest.mark.parametrize("name", tables.REAL or ["none"])
def test_real_tables(cuda_device, name):
    if not tables.REAL:
        pytest.skip("GPUTREE_DATA names no folder of real tables")
    pytest.importorskip("pandas")
    table = data.frame_table(name)
    model = DecisionTreeClassifier if table.classes else DecisionTreeRegressor
    rows = np.random.default_rng(0).permutation(len(table.y))[: checked_rows(cuda_device, 400)]
    grow_cart_both_ways(model(max_depth=8), table.X.iloc[rows], table.y[rows])
