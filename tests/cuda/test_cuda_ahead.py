"""Levels that a device splits one after another, which the host does not wait for."""

import numpy as np
import pytest
from cuda_comparisons import compare_ahead, crowded
from cuda_emulator import launches, transfers
from devices import new_backend, tune
from hypothesis import given
from hypothesis import strategies as st
from strategies import PROBLEMS, examples, make_task, random_problems
from twins import assert_equal, assert_same_tree, grown, pair, table

from gputree.backends.base import Ahead, Monotonic
from gputree.backends.cuda import ahead
from gputree.growth.frontier import Frontier, children_of

ROOT = np.array([7], np.uint64)


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_trees_do_not_depend_on_levels_ahead(cuda_device, monkeypatch, criterion, weighted, levels):
    tune(monkeypatch, "cuda", ahead_levels=levels, chunk_rows=20, fewest_chunk_rows=10)
    sample = table(criterion, weighted, n=90, dtype=np.float32)
    assert_same_tree(sample, make_task(criterion, sample), finish_rows=1, max_bins=8)


def test_nodes_put_off_and_small_ones(cuda_device):
    compare_ahead()


@given(
    random_problems(100),
    st.integers(1, 5),
    st.integers(0, 6),
    st.integers(2, 20),
    st.sampled_from([1, 9, 25]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 6),
)
@examples(15)
def test_random_tables_with_memory_for_few_nodes(
    cuda_device, problem, levels, nodes, max_bins, finish_rows, exact, ties, drawn
):
    """Missing values, repeated rows, and nodes that are put off on any level."""
    criterion, sample = problem
    limits = {"min_samples_leaf": 2, "max_features": min(drawn, sample.values.shape[1])}
    task = make_task(criterion, sample, exact=exact, random_ties=ties, **limits)
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "cuda", ahead_levels=levels, ahead_nodes=nodes, partition_rows=30)
        assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)


# -------------------------------------------------------------- against a level at a time
def level_by_level(backend, frontier: Frontier, levels: int, fewest: int) -> list[Ahead]:
    """The same by the primitives of a level."""
    found = []
    for _ in range(levels):
        slots, cells = np.arange(frontier.size), backend.new_histograms(frontier.size)
        backend.histogram(frontier.begin, frontier.end, cells, slots)
        nodes = frontier.begin, frontier.end
        splits = backend.refine(*nodes, cells, slots, backend.score(cells, slots), frontier.key)
        split = np.flatnonzero(splits.feature >= 0)
        middle, threshold = np.zeros(frontier.size, np.int64), np.zeros(frontier.size)
        opened = frontier.take(split)
        middle[split], threshold[split] = backend.partition(
            opened.begin, opened.end, splits.take(split)
        )
        found.append(Ahead(frontier.begin, splits, middle, threshold))
        number = np.zeros(2 * split.size, np.int64)
        frontier = children_of(
            opened, number, middle[split], number[: split.size], splits.gain[split], None
        )
        frontier = frontier.take(frontier.end - frontier.begin >= fewest)
    return found


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_splits_of_levels(cuda_device, criterion, weighted, exact):
    """Splits, entries and work done are those of a level at a time."""
    sample = table(criterion, weighted, n=150)
    task = make_task(criterion, sample, exact=exact, min_decrease=1e-3, random_ties=True)
    backends = [new_backend(name, sample, task) for name in ("cpu", "cuda", "cuda")]
    for backend in backends:
        backend.encode(8)
    n, (cpu, cuda, whole) = len(sample.y), backends
    found = whole.grow_ahead(np.array([0]), np.array([n]), ROOT, 4, 20)
    for backend in (cpu, cuda):
        root = Frontier.roots(np.array([n]), ROOT)
        expected = level_by_level(backend, root, 4, 20)
        assert len(found) == len(expected) == 4
        for mine, theirs in zip(found, expected, strict=True):
            split = theirs.splits.feature >= 0
            assert_equal(theirs.begin, mine.begin)
            for name, field in theirs.splits._asdict().items():
                rows = slice(None) if name == "feature" else split
                if name != "codes":
                    assert_equal(field[rows], getattr(mine.splits, name)[rows], name)
            assert_equal(theirs.middle[split], mine.middle[split])
            assert_equal(theirs.threshold[split], mine.threshold[split])
        assert_equal(backend.entries, whole.entries)
    assert whole.report() == cuda.report()


def test_memory_for_some_nodes(cuda_device, monkeypatch):
    """The first nodes of a level fit; the host gets no others, nor any below."""
    sample = table("gini", False, n=150)
    task = make_task("gini", sample)
    numbers = []
    for most in (100, 3):
        tune(monkeypatch, "cuda", ahead_nodes=most)
        backend = new_backend("cuda", sample, task)
        backend.encode(8)
        found = backend.grow_ahead(np.array([0]), np.array([150]), ROOT, 5, 2)
        numbers.append([level.begin.tolist() for level in found])
    assert [len(level) for level in numbers[0][:3]] == [1, 2, 4]
    assert numbers[1][:2] == numbers[0][:2]
    assert numbers[1][2] == numbers[0][2][:3]
    assert all(0 < len(level) <= 3 for level in numbers[1])


def test_a_crowded_level_is_put_off(cuda_device):
    """No warp sorts a candidate: the host does, and the device goes on with fewer levels."""
    sample = crowded(2200)
    task = make_task("gini", sample, max_depth=3)
    cpu, cuda = pair(sample, task, 2)
    entries = np.arange(len(sample.y))
    assert cuda.grow_ahead(np.array([0]), entries[-1:] + 1, ROOT, 3, 2) == []
    assert cuda.ahead_levels == 0
    assert_equal(entries, cuda.entries)
    trees = [grown(backend, sample, task, max_bins=2, finish_rows=1) for backend in (cpu, cuda)]
    for name, field in trees[0].items():
        assert_equal(field, trees[1][name], name)


def test_what_the_device_does_not_decide(cuda_device):
    sample = table("squared_error", False, n=60)
    signs = Monotonic(np.array([1, 0, 0, 0], np.int8))
    backend = new_backend("cuda", sample, make_task("squared_error", sample, monotonic=signs))
    backend.encode(8)
    assert not ahead.is_plain(backend.grower)
    assert backend.grow_ahead(np.array([0]), np.array([60]), ROOT, 3, 2) == []


def test_nodes_whose_drawn_columns_have_no_cut_are_put_off(cuda_device):
    """The host has them visit further columns; others of their level are split in advance."""
    sample = table("gini", False, n=200, d=6)
    constant = np.where(np.arange(6) < 4, 1.0, sample.values)
    sample = sample._replace(values=np.where(np.isnan(constant), 1.0, constant))
    task = make_task("gini", sample, max_features=2)
    backend = new_backend("cuda", sample, task)
    backend.encode(8)
    put_off = []
    for key in range(8):
        found = backend.grow_ahead(np.array([0]), np.array([200]), ROOT + np.uint64(key), 3, 2)
        put_off.append(len(found) == 0)
    assert True in put_off
    assert False in put_off
    assert_same_tree(sample, task, finish_rows=1, max_bins=8)


@pytest.mark.parametrize(
    ("criterion", "weighted", "shared_bytes", "kernel"),
    [
        ("gini", False, 48 * 1024, "histogram"),
        ("entropy", True, 1024, "histogram"),  # a column at once
        ("squared_error", False, 2048, "histogram"),
        ("poisson", True, 64, "histogram"),  # in global memory
        ("of two", False, 48 * 1024, "histogram_of_two"),
    ],
)
def test_drawn_columns_are_counted(
    cuda_device, monkeypatch, criterion, weighted, shared_bytes, kernel
):
    """Count those that nodes visit first, in both siblings, of pieces of few rows."""
    tune(monkeypatch, "cuda", shared_bytes=shared_bytes, chunk_rows=70, fewest_chunk_rows=10)
    of_two, criterion = criterion == "of two", criterion.replace("of two", "gini")
    sample = table(criterion, weighted, n=200, d=9)
    if of_two:
        sample = sample._replace(y=sample.y % 2)
    for drawn in (4, 5):
        task = make_task(
            criterion.replace("of two", "gini"), sample, max_features=drawn, max_depth=5
        )
        launches.clear()
        assert_same_tree(sample, task, finish_rows=10, max_bins=16)
        assert launches[kernel] > 1
        assert pair(sample, task, 16)[1].counting_ahead.draws == (drawn == 4)  # of 9


def test_a_tree_waits_once_for_its_levels(emulated_device):
    """Queue two levels of few leaves: which nodes below are split depends on others."""
    sample = table("gini", False, n=200)
    waits, queued = [], []

    def noted(*given):
        queued.append(type(backend).grow_ahead(backend, *given))
        return queued[-1]

    for max_leaf_nodes in (None, 5):
        task = make_task("gini", sample, max_depth=5)
        backend = new_backend("cuda", sample, task)
        backend.encode(16)
        backend.encode = lambda max_bins: None
        backend.grow_ahead = noted
        before = transfers["waits"]
        grown(backend, sample, task, finish_rows=1, max_leaf_nodes=max_leaf_nodes)
        waits.append(transfers["waits"] - before)
    assert [len(levels) for levels in queued] == [5, 2]
    assert waits[0] <= 3 < waits[1]
