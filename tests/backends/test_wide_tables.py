"""Tables of more columns than bins are worth: no code, and no memory for a column but its cells."""

import tracemalloc

import numpy as np
import pytest
from devices import new_backend, tune
from strategies import is_regression, make_task, random_sample
from test_finish import check

from gputree import DecisionTreeClassifier, RandomForestClassifier
from gputree.backends.cpu import drawn_values
from gputree.backends.cpu import table as tables
from gputree.backends.cpu.table import CpuTable


@pytest.mark.parametrize(
    ("shape", "dtype", "wide"),
    [
        ((300, 4_000), np.float32, True),
        ((2_048, 4_000), np.float32, True),
        ((2_049, 4_000), np.float32, False),  # to sort costs more than to fit bins
        ((300, 3_000), np.float32, False),  # bins take less than 32 MB
        ((300, 3_000), np.float64, True),
    ],
)
def test_tables_are_wide_where_bins_take_much_and_save_little(shape, dtype, wide):
    values = np.broadcast_to(np.zeros(1, dtype), shape)
    assert CpuTable(values, np.zeros(shape[1], np.bool_)).is_wide == wide


@pytest.fixture
def always_wide(monkeypatch):
    """Every table of few rows is wide, and none may be coded."""

    def code(*_):
        pytest.fail("A wide table was coded")

    tune(monkeypatch, "cpu", wide_bin_bytes=0)
    monkeypatch.setattr(tables, "code", code)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(n_estimators=2, max_features=None, max_depth=4, random_state=0),
    ],
)
def test_wide_tables_are_not_coded(always_wide, model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    assert model.fit(X, y).score(X, y) > 0.6


def test_bins_that_decide_all_cuts_are_made_of_wide_tables_too(monkeypatch):
    tune(monkeypatch, "cpu", wide_bin_bytes=0)
    X = np.arange(300.0)[:, None]
    tree = DecisionTreeClassifier(splitter="binned", max_bins=2).fit(X, X[:, 0] > 20)
    assert tree.tree_.threshold[0] == pytest.approx(149.5, abs=1)


@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("poisson", True)])
def test_columns_may_be_sorted_some_at_a_time_in_each_node(monkeypatch, criterion, weighted):
    """In place of a block that is too large; also where more are drawn than are read at once."""
    tune(monkeypatch, "cpu", block_bytes=0)
    monkeypatch.setattr(drawn_values, "BLOCK_COLUMNS", 2)
    sample = random_sample(3, 30, 5, 0 if is_regression(criterion) else 3, weighted)
    begin, end = np.array([0, 22]), np.array([22, 30])
    for max_features in (5, 3):
        task = make_task(criterion, sample, max_features=max_features)
        check(lambda *given: new_backend("cpu", *given), sample, task, begin, end)


@pytest.mark.full
def test_memory_of_a_wide_table_grows_with_its_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20_000)).astype(np.float32)
    y = (X[:, 5] > 0) * 1
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)  # compiles
    tracemalloc.start()
    tree.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tree.tree_.feature[0] == 5
    assert peak < 2 / 3 * X.nbytes
