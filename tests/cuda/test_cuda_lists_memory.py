"""Attribute lists on CUDA within a budget of device memory: the same trees, or an error."""

import gc
import re

import numpy as np
import pytest
from cuda_emulator import memory
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import MixedTable, random_mixed_tables
from strategies import examples
from test_cuda_lists import checked_rows, wide_table
from twin_lists import assert_same_trees

from gputree import BoostedC45Classifier, BoostedC45Rules, C45Classifier, ID3Classifier
from gputree.backends.cuda.lists import backend
from gputree.backends.cuda.lists.memory import in_turns, most_entries

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* holds no value:UserWarning"),
]


@pytest.fixture(autouse=True)
def _counted(emulated_device, monkeypatch):
    tune(monkeypatch, "cuda", lists_chunk_places=100, lists_long=150)


def new_model(kind, table, **parameters):
    return kind(categorical_features=table.nominal, pruning=None, n_jobs=1, **parameters)


def least_memory(model, table) -> int:
    """Bytes that the device needs, from the text of an error."""
    with pytest.raises(MemoryError, match=r"lists of [\d,]+ rows x .*max_device_memory") as error:
        model.set_params(device="cuda", max_device_memory=1).fit(table.X, table.y, table.weight)
    return int(re.search(r"at least ([\d,]+) bytes", str(error.value))[1].replace(",", ""))


def fit_within(model, table, budget: int):
    """The tree grown within a budget, which is held; and nothing stays on the device."""
    gc.collect()
    memory.peak = before = memory.live
    model.set_params(device="cuda", max_device_memory=budget).fit(table.X, table.y, table.weight)
    assert memory.peak - before <= budget
    gc.collect()
    assert memory.live == before
    return model.tree_


def check(model, table, shares=(1.0, 1.2, 2.0, 10.0)) -> None:
    expected = model.set_params(device="cpu").fit(table.X, table.y, table.weight).tree_
    least = least_memory(model, table)
    for share in shares:
        assert_same_trees(expected, fit_within(model, table, int(share * least)))


def deep_table(n: int, weighted: bool) -> MixedTable:
    """Numbers and categories of few values, some missing; its trees have many levels."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, (3, 9, 2, 4, 6, 3), (n, 6)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nansum(X, axis=1) + rng.integers(0, 3, n)) % 3
    weight = rng.choice([0.3, 1.0, 2.0], n) if weighted else None
    return MixedTable(X, np.array([0, 0, 1, 1, 0, 1], bool), y.astype(int), weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier])
def test_holes_categories_and_weights(cuda_device, kind, weighted):
    table = deep_table(checked_rows(cuda_device, 600), weighted)
    model = new_model(kind, table)
    check(model, table)
    assert model.get_depth() > 3


@pytest.mark.parametrize("shared_bytes", [0, 16 * 1024])
def test_many_classes(cuda_device, monkeypatch, shared_bytes):
    """Their weights lie in memory of blocks, which is within the budget."""
    tune(monkeypatch, "cuda", lists_shared_bytes=shared_bytes)
    table = deep_table(checked_rows(cuda_device, 600), False)
    table = table._replace(y=np.random.default_rng(0).integers(0, 20, table.y.size))
    check(new_model(C45Classifier, table), table, (1.0, 3.0))


@pytest.mark.parametrize("columns", [1, 4])
def test_columns_take_turns(cuda_device, monkeypatch, columns):
    monkeypatch.setattr(backend, "in_turns", lambda d, most: in_turns(d, columns))
    table = deep_table(checked_rows(cuda_device, 600), True)
    check(new_model(C45Classifier, table), table, (2.0,))


@pytest.mark.parametrize(("d", "most"), [(1, 9), (7, 3), (7, 7), (7, 0), (7, -5), (6, 2)])
def test_turns(d, most):
    turns = in_turns(d, most)
    assert [f for first, last in turns for f in range(first, last)] == list(range(d))
    assert max(last - first for first, last in turns) == min(max(most, 1), d)


@given(random_mixed_tables(120), st.sampled_from([C45Classifier, ID3Classifier]), st.floats(1, 9))
@examples(20)
def test_random_tables(cuda_device, table, kind, share):
    """Growth keeps to the budget, and ends with the tree or an error that says what it lacks."""
    model = new_model(kind, table)
    expected = model.set_params(device="cpu").fit(table.X, table.y, table.weight).tree_
    budget = int(share * least_memory(model, table))
    try:
        found = fit_within(model, table, budget)
    except MemoryError as error:
        assert re.search(rf"needs [\d,]+ bytes .* allows {budget:,}\.", str(error))  # noqa: PT017
    else:
        assert_same_trees(expected, found)


@pytest.mark.parametrize("kind", [BoostedC45Classifier, BoostedC45Rules])
def test_boosting_passes_it_on(cuda_device, kind):
    table = wide_table(100, 2, False)
    model = kind(n_trials=2, device="cuda", max_device_memory=1)
    with pytest.raises(MemoryError, match="max_device_memory allows 1"):
        model.fit(table.X, table.y)


def test_more_parts_than_memory_was_set_aside_for(cuda_device):
    """An id of every row, in a table of few columns and many classes."""
    n = 300
    X = np.stack([np.arange(n), np.arange(n)], axis=1)
    table = wide_table(n, 2, False)._replace(
        X=X, nominal=np.ones(2, bool), y=np.arange(n) % 100, weight=None
    )
    model = new_model(ID3Classifier, table)
    least = least_memory(model, table)
    with pytest.raises(MemoryError, match=r"A level of 300 parts needs [\d,]+ bytes .*'cpu'"):
        fit_within(model, table, least)
    fit_within(model, table, 4 * least)


def test_entries_of_a_level_by_memory():
    """At least an eighth of the table's rows, from the minimum budget on; never more than fits."""
    from gputree.backends.cuda.lists.memory import least_bytes

    class Task:
        n_classes, weight = 3, None

    for d, n in ((1, 8), (3, 1000), (50, 12_345)):
        least = least_bytes(Task, d, n)
        entries = [most_entries(Task, d, n, int(share * least)) for share in (1, 1.1, 1.5, 4, 9)]
        assert n // 8 <= entries[0] <= n // 8 + 1
        assert entries == sorted(entries)
        assert entries[-1] > 3 * n
