"""Attribute lists: scores and parts against plain NumPy, and what must not change the tree."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table
from numba import njit

from gputree import C45Classifier, ID3Classifier
from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends import lists
from gputree.backends.cpu.layout import NodeList
from gputree.backends.cpu.lists import score
from gputree.backends.cpu.lists.backend import CpuLevel, CpuLists
from gputree.backends.cuda.lists.backend import CudaLists
from gputree.backends.devices import code_columns
from gputree.backends.lists import BranchLimits, ListTask
from gputree.base.dtypes import MISSING_CODE
from gputree.criteria.entropy import GAIN_BITS, in_steps, new_information
from gputree.estimators import growing_lists

NO_LIMITS = BranchLimits(least=0.0, cut_share=0.0, most=0.0, slack=0.0)


def new_task(table: MixedTable, limits: BranchLimits = NO_LIMITS) -> ListTask:
    weights = fix_weights(table.weight, table.y.size, fractions=True)
    return ListTask(
        information=new_information(weights.total, weights.unit),
        n_classes=int(table.y.max()) + 1,
        target=table.y.astype(np.uint8),
        weight=weights.weight,
        nominal=table.nominal,
        missing_is_category=False,
        limits=limits,
    )


def root_level(table: MixedTable, n_threads: int = 1):
    task = new_task(table)
    codes, _ = code_columns(np.asfortranarray(table.X), table.nominal, 1)
    return CpuLists(codes, task, n_threads).root(), task


@given(mixed_tables(), st.data())
def test_parts_and_lists_after_a_split(table, data):
    level, task = root_level(table)
    found = level.score()
    splittable = np.flatnonzero(found.gain[:, 0] > 0)
    if splittable.size == 0:
        return
    f = int(data.draw(st.sampled_from(list(splittable))))
    tests = lists.Tests(
        node=np.array([0]),
        feature=np.array([f], np.int32),
        cut=found.cut[[f], 0],
        part=np.array([0, found.parts[f, 0]], np.int64),
    )
    before = level.weights.sum()
    parts = level.assign(tests)
    # fractions of a row add up to the row, but for the rounding of each
    assert abs(parts.weights.sum() - before) <= table.y.size * parts.code.size
    below = level.descend(np.arange(parts.code.size))
    np.testing.assert_array_equal(below.end - below.begin, parts.rows)
    np.testing.assert_array_equal(below.weights, parts.weights)
    for j in range(parts.code.size):
        _check_lists(below, j, task)


def _check_lists(level, j, task):
    """Every list of node j holds its entries once, by code; weights are those of the node."""
    entries = np.arange(level.begin[j], level.end[j])
    weights = np.zeros(task.n_classes, np.int64)
    np.add.at(weights, level.entries.target[entries], level.entries.weight[entries])
    np.testing.assert_array_equal(weights, level.weights[j])
    for f in np.flatnonzero(~level.resting[:, j]):
        items, codes = level.lists.item[f, entries], level.lists.code[f, entries]
        np.testing.assert_array_equal(np.sort(items), entries)
        assert (np.diff(codes.astype(np.int64)) >= 0).all()
        assert (codes[codes != MISSING_CODE] < 1 << 16).all()


@pytest.mark.full
@pytest.mark.usefixtures("always_compiled")
def test_rows_are_spread_over_the_parts_that_are_opened_alone():
    """Fractions of half the rows in all of 1,000 branches would be 5 million places."""
    n, categories = 10_000, 1_000
    rows = np.arange(n)
    column = np.where(rows % 2, rows // 2 % categories, np.nan)
    table = MixedTable(column[:, None], np.array([True]), rows // 2 // categories % 2, None)
    level, _ = root_level(table)
    found = level.score()
    tests = lists.Tests(
        np.array([0]), np.array([0], np.int32), found.cut[:, 0], np.array([0, categories])
    )
    rows = level.assign(tests).rows
    few = np.array([3, 7])
    level.descend(few)  # compiles
    tracemalloc.start()
    below = level.descend(few)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert below.rows == rows[few].sum() > n
    assert peak < n // 2 * categories  # bytes


# ------------------------------------------------------ what does not matter
MODELS = {
    "c45": lambda table, **given: C45Classifier(categorical_features=table.nominal, **given),
    "id3": lambda table, **given: ID3Classifier(categorical_features=table.nominal, **given),
}


def tree_of(model: str, table: MixedTable, **parameters):
    fitted = MODELS[model](table, pruning=None, device="cpu", **parameters)
    return fitted.fit(table.X, table.y, table.weight).tree_


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_do_not_matter(model, weighted, monkeypatch):
    table = random_mixed_table(1, 250, weighted)
    expected = tree_of(model, table, n_jobs=1)
    tune(monkeypatch, "cpu", lists_span_cells=64)
    for n_jobs in (2, 3, 5):
        assert tree_of(model, table, n_jobs=n_jobs).equals(expected)


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("entries", [1, 300, 3000])
def test_the_budget_does_not_matter(model, entries, monkeypatch):
    table = random_mixed_table(2, 3000, False)
    expected = tree_of(model, table)
    monkeypatch.setattr(growing_lists, "_most_entries", lambda *_: entries)
    assert tree_of(model, table).equals(expected)


def test_cuda_refuses_what_it_does_not_grow():
    task = new_task(random_mixed_table(0, 20, False))._replace(one_against_rest=True)
    with pytest.raises(NotImplementedError, match="One-vs-rest splits of categories"):
        CudaLists(None, task, 1)


@pytest.mark.full
def test_many_categories():
    """100,000 categories: one split of as many branches, and none of them lost."""
    rng = np.random.default_rng(0)
    n = 300_000
    name = rng.integers(0, 100_000, n).astype(float)
    y = (name % 2).astype(int)
    model = C45Classifier(categorical_features=[0], pruning=None).fit(name[:, None], y)
    tree = model.tree_
    tree.check()
    categories = np.unique(name).size
    assert tree.n_nodes == categories + 1
    assert tree.weight[1:].sum() == n
    assert model.score(name[:, None], y) == 1.0


def test_gains_of_tiny_weights_are_no_steps():
    """The fixed point of terms is so fine there that a step has more bits than an integer."""
    measure = new_information(2**20, 2.0**-90)
    steps = njit(in_steps)
    assert measure.scale > 2.0**63 * 2**GAIN_BITS
    assert steps(measure, np.int64(2**60)) == 0


def test_the_largest_group_of_nodes_is_the_last(monkeypatch):
    """A level waits for the others, so that those that wait are of half as many rows each."""
    monkeypatch.setattr(growing_lists, "_most_entries", lambda *_: 1)
    opened: dict[Any, list[int]] = {}
    descend = CpuLevel.descend

    def recorded(level: CpuLevel, parts: Any) -> CpuLevel:
        below = descend(level, parts)
        opened.setdefault(level, []).append(below.rows)
        return below

    monkeypatch.setattr(CpuLevel, "descend", recorded)
    tree_of("c45", random_mixed_table(2, 600, False))
    assert sum(len(sizes) > 1 for sizes in opened.values()) > 3
    assert all(sizes[-1] == max(sizes) for sizes in opened.values())


@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_missing_values_are_taken_from_the_end_of_a_list(begin, missing):
    """And never from the list before it, which ends with missing values, too."""
    code = np.full(begin + 3, MISSING_CODE)
    code[begin : begin + 3 - missing] = np.arange(3 - missing)
    target, weight = np.arange(code.size) % 2, np.arange(1, code.size + 1)
    column = NodeList(np.arange(code.size), code, target, weight, begin, begin + 3)
    known = np.bincount(target[begin:], weight[begin:], 2).astype(np.int64)
    kept = slice(begin, begin + 3 - missing)
    assert score.take_missing(column, known) == (kept.stop, weight[kept.stop :].sum())
    assert known.tolist() == np.bincount(target[kept], weight[kept], 2).tolist()
