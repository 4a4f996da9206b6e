"""Subtrees that are grown whole, against the reference tree."""

from functools import partial
from itertools import product
from types import SimpleNamespace

import devices
import numpy as np
import pytest
from devices import to_host
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_tree
from scipy.sparse import csr_array
from strategies import PROBLEMS, is_regression, make_task, problems, random_sample
from tunings import DRAWN, RANKED, SORTED, SPARSE, finishing, tuned

from gputree import DecisionTreeClassifier
from gputree.backends.cpu import block as blocks
from gputree.backends.cpu import drawn_columns, drawn_ranks, nonzeros
from gputree.backends.cpu.drawn_ranks import sort_keys
from gputree.backends.cpu.ranks import rank_columns, rank_table
from gputree.backends.cpu.table import CpuTable
from gputree.base import memory
from gputree.prediction.sparse import SparseRows


def check_subtree(sample, task, device, subtrees, j, rows, depth, key):
    """Walk subtree j and the reference tree side by side; leaves in order hold the entries."""
    expected = exact_tree(sample.values, task, rows, depth, key)
    entries = to_host(device.entries)
    pairs = [(int(subtrees.root[j]), 0)]
    leaves = []
    while pairs:
        node, twin = pairs.pop()
        begin, end = int(subtrees.begin[node]), int(subtrees.end[node])
        child = int(subtrees.first_child[node])
        assert (child < 0) == (expected.first_child[twin] < 0)
        assert sorted(entries[begin:end].tolist()) == sorted(expected.rows[twin])
        if child < 0:
            assert entries[begin:end].tolist() == expected.rows[twin]
            leaves.append((begin, end))
            continue
        for name in ("feature", "threshold", "missing_left", "gain"):
            assert getattr(subtrees, name)[node] == getattr(expected, name)[twin], name
        pairs += [(child + 1, expected.first_child[twin] + 1), (child, expected.first_child[twin])]
    assert all(a[1] == b[0] for a, b in zip(leaves, leaves[1:], strict=False))


def check(backend, sample, task, begin, end, *, n_threads=1, max_bins=None):
    device = backend(sample, task, n_threads)
    if max_bins is not None:
        device.encode(max_bins)
    depth = np.arange(begin.size) % 3
    keys = np.arange(begin.size).astype(np.uint64) + np.uint64(2**63)
    subtrees = device.finish(begin, end, depth, keys)
    for j in range(begin.size):
        rows = np.arange(begin[j], end[j])
        check_subtree(sample, task, device, subtrees, j, rows, int(depth[j]), int(keys[j]))


@given(problems(), st.sampled_from([None, 256, 3]), st.data())
def test_subtrees(backend, problem, max_bins, data):
    """Coded or not, by codes where these decide and by values where not."""
    criterion, sample = problem
    n = len(sample.y)
    bounds = sorted({0, n, *data.draw(st.lists(st.integers(1, n), max_size=3))})
    begin, end = np.array(bounds[:-1]), np.array(bounds[1:])
    check(backend, sample, make_task(criterion, sample), begin, end, max_bins=max_bins)


@pytest.mark.full
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_many_subtrees_with_limits(backend, criterion, weighted, n_threads):
    sample = random_sample(2, 1500, 5, 0 if is_regression(criterion) else 9, weighted)
    task = make_task(criterion, sample, max_depth=6, min_samples_leaf=2, max_features=3)
    begin = np.array([0, 700, 702, 1499, 710])
    end = np.array([700, 702, 710, 1500, 1499])
    check(backend, sample, task, begin, end, n_threads=n_threads, max_bins=32)


@pytest.mark.full
@pytest.mark.parametrize("block_rows", [1, 10, 1500])
def test_nodes_that_share_a_block(monkeypatch, block_rows):
    """One by one, some together, or all: larger nodes than a block have a separate one."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block_rows)
    sample = random_sample(2, 1500, 5, 9, True)
    begin = np.array([0, 700, 702, 1499, 710])
    end = np.array([700, 702, 710, 1500, 1499])
    backend = partial(devices.new_backend, "cpu")
    check(backend, sample, make_task("gini", sample), begin, end, max_bins=32)


@pytest.mark.parametrize("max_bins", [None, 64])
def test_wide_keys_of_many_rows(backend, monkeypatch, max_bins):
    """Ranks and row numbers past 16 bits give the same tree."""
    monkeypatch.setattr(blocks, "MANY_ROWS", 10)
    sample = random_sample(21, 150, 4, 3)
    task = make_task("gini", sample)
    check(backend, sample, task, np.array([0, 140]), np.array([140, 150]), max_bins=max_bins)


@pytest.mark.full
def test_more_rows_than_16_bits_count(backend):
    """70,000 rows and as many distinct values in one node."""
    n = 70_000
    column = np.random.default_rng(0).permutation(n).astype(float)
    y = (column >= 69_000).astype(np.uint8) + (column < 100)
    sample = random_sample(0, n, 1, 2)._replace(values=column[:, None], y=y)
    device = backend(sample, make_task("gini", sample))
    subtrees = device.finish(np.array([0]), np.array([n]), np.array([0]), np.array([1], np.uint64))
    inner = subtrees.first_child >= 0
    assert sorted(subtrees.threshold[inner]) == [99.5, 68_999.5]


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_two_values_and_missing_ones(seed):
    """In subtrees below histograms, where codes say which columns are such."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (80, 4)).astype(float)
    X[:, 0] = rng.normal(size=80)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = (np.nan_to_num(X[:, 1], nan=seed % 2) + X[:, 2:].sum(axis=1) > 1).astype(int)
    trees = []
    for rows in (1, 60):
        with finishing(rows):
            trees.append(DecisionTreeClassifier().fit(X, y).tree_)
    assert trees[0].equals(trees[1])


@pytest.mark.parametrize("alike", [0.0, 0.9])
@pytest.mark.parametrize(
    ("m", "bits", "ranks"), [(40, 16, 30), (60, 16, 60_000), (700, 16, 900), (50, 32, 2**20)]
)
def test_keys_are_sorted_digit_by_digit(m, bits, ranks, alike):
    """Stably: by one digit, two, or three, where most keys have the same first bits, too."""
    rng = np.random.default_rng(m)
    rank = rng.integers(ranks // 3, ranks, m)
    rank[rng.random(m) < alike] = ranks // 3 + rng.integers(0, 3)
    keys = ((rank << bits) | np.arange(m)).astype(f"u{bits // 4}")
    counts, out = np.empty(max(2 * m, 256) + 1, np.int64), np.empty_like(keys)
    sort_keys(keys.copy(), m, bits, rank.min(), rank.max(), counts, out)
    assert out.tolist() == sorted(keys.tolist())


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_counted_in_columns_of_two_values(weighted):
    """In nodes of more than 16 rows, of which others have a third value or miss one."""
    rng = np.random.default_rng(1)
    values = (rng.random((150, 6)) < [0.5, 0.9, 0.1, 0.5, 0.5, 1.0]).astype(float)
    values[:40, 3], values[40:60, 4] = 2.0, np.nan
    sample = random_sample(1, 150, 1, 2, weighted)
    y = ((values[:, 0] + values[:, 1] > 1) ^ (rng.random(150) < 0.2)).astype(sample.y.dtype)
    backend = partial(devices.new_backend, "cpu")
    with tuned(RANKED[0]):
        task = make_task("gini", sample._replace(y=y), max_features=4, random_ties=True)
        sample = sample._replace(values=values, y=y)
        check(backend, sample, task, np.array([0, 60]), np.array([60, 150]))


@pytest.mark.full
def test_missing_values_are_not_counted_as_the_highest_rank():
    """Ranks are 16 bits, and a node that may count as many has 33,000 rows: 3 s."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (33_600, 4)).astype(np.float64)
    y = rng.random(len(X)) < np.where(X[:, 0] < 3, 0.9, 0.1)
    X[X[:, 0] == 0, 0] = np.nan
    tree = DecisionTreeClassifier(max_depth=2, max_features=3, random_state=0).fit(X, y).tree_
    assert (tree.feature[0], tree.threshold[0], tree.missing_child[0]) == (0, 2.5, 0)


@pytest.mark.parametrize(
    ("criterion", "n_classes", "most_cells"),
    [("gini", 2, 999), ("gini", 5, 999), ("entropy", 3, 999), ("gini", 5, 1)],
)
def test_cuts_in_bins_of_ranks(monkeypatch, criterion, n_classes, most_cells):
    """In bins of some rows, or in one; ties of cuts at the ends of bins, and in them, are many."""
    sizes = {"BINNED_ROWS": 17, "ROWS_PER_BIN": 3, "LEAST_BITS": 2, "MOST_CELLS": most_cells}
    for name, size in sizes.items():
        monkeypatch.setattr(drawn_ranks, name, size)
    sample = random_sample(7, 120, 4, n_classes)
    rng = np.random.default_rng(7)
    values = rng.normal(size=(120, 4)) ** np.array([1, 3, 5, 1])
    values[:, 3] = np.repeat(np.arange(30.0), 4)
    sample = sample._replace(values=values, y=(sample.y + (values[:, 3] > 20)) % n_classes)
    backend = partial(devices.new_backend, "cpu")
    task = make_task(criterion, sample, max_features=3, random_ties=True)
    check(backend, sample, task, np.array([0]), np.array([120]))


def test_of_equal_cuts_in_a_bin_and_between_bins_the_lowest_is_taken(monkeypatch):
    """The cut before the last two of 18 rows is between bins, that after the first two inside."""
    monkeypatch.setattr(drawn_ranks, "BINNED_ROWS", 17)
    monkeypatch.setattr(drawn_ranks, "ROWS_PER_BIN", 3)
    rows = np.arange(180)
    values = np.column_stack([np.concatenate([rows[::10], rows[rows % 10 > 0]]), np.ones(180)])
    sample = random_sample(0, 180, 2, 2)
    y = ((rows < 2) | (rows > 15)).astype(sample.y.dtype)
    sample = sample._replace(values=values.astype(float), y=y)
    task = make_task("gini", sample, max_features=1)
    backend = partial(devices.new_backend, "cpu")
    check(backend, sample, task, np.array([0]), np.array([18]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_of_distinct_values(dtype):
    """Columns that are counted and others; zeros of both signs, missing and infinite values."""
    rng = np.random.default_rng(0)
    wide = np.concatenate([rng.normal(size=40), [-0.0, 0.0, 1e-30, -1e-30, 3e38, np.inf, -np.inf]])
    narrow = np.concatenate([rng.integers(-90, 60, wide.size - 2), [-0.0, 0.0]])
    constant, missing = np.full(wide.size, 7.0), np.full(wide.size, np.nan)
    columns = [wide, narrow, constant, missing, 0.5 * narrow, 1e6 * narrow]
    values = rng.permutation(np.repeat(np.column_stack(columns).astype(dtype), 2, axis=0))
    values[::5] = np.nan
    rank, none = np.empty(values.shape[::-1], np.uint16), 0xFFFF
    chosen = np.array([5, 0, 1, 2, 3])
    ranked = rank_columns(values, chosen, none, rank)
    for f, (count, found) in zip(chosen, ranked, strict=True):
        assert count == found.size
        is_known = ~np.isnan(values[:, f])
        known = values[is_known, f]
        assert found.tolist() == sorted(set(known.tolist()))
        assert not np.signbit(found[found == 0]).any()
        assert (found[rank[f, is_known]] == known).all()
        assert (rank[f, ~is_known] == none).all()


@pytest.mark.parametrize("per_row", [2, 256])
@pytest.mark.parametrize("some", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_of_values_other_than_0(monkeypatch, dtype, some, per_row):
    """The same as those of all values; rows by column in order, with a bit each if they are many.

    Also from sparse rows, which may store zeros.
    """
    rng = np.random.default_rng(0)
    values = rng.integers(-2, 4, (43, 5)) * rng.choice([0.0, -1.0, 0.5], (43, 5))
    values[:, 1], values[:, 2] = 1.5, np.abs(values[:, 2])
    values[rng.random(43) < 0.3, 3], values[:, 4] = np.nan, 0.0
    values = values.astype(dtype) if some else np.zeros(values.shape, dtype)
    missing = np.isnan(values).any(axis=0)
    monkeypatch.setattr(nonzeros, "BLOCK_CELLS", 20)
    stored = csr_array(np.where(rng.random(values.shape) < 0.2, 1.0, values)).astype(dtype)
    stored.data[:] = values[stored.nonzero()]
    with tuned(SPARSE[0]._replace(bits_per_row=per_row)):
        table = CpuTable(values, missing)
        found = table.ranks(0, True, False, 1)
        again = CpuTable(SparseRows.of(stored), missing).ranks(0, True, False, 1)
    dense = rank_table(table.bare, 1)
    for one, other in zip([*found[:-1], *found.sparse], [*again[:-1], *again.sparse], strict=True):
        np.testing.assert_array_equal(one, other)
    for name in ("first", "lowest", "highest", "missing"):
        assert (getattr(found, name) == getattr(dense, name)).all()
    for f in range(5):
        listed = slice(*found.sparse.first[f : f + 2])
        rows = np.flatnonzero(values[:, f] != 0)
        assert found.sparse.row[listed].tolist() == rows.tolist()
        assert (found.sparse.place_of_bits[f] < 0) == (rows.size * per_row < 43)
        if found.sparse.place_of_bits[f] >= 0:
            bits = found.sparse.is_set[found.sparse.place_of_bits[f]]
            assert (np.flatnonzero(np.unpackbits(bits, bitorder="little")) == rows).all()
        rank = np.full(43, found.sparse.zero[f])
        rank[rows] = found.sparse.rank[listed]
        assert (rank == dense.rank[f]).all()
        assert found.sparse.alike[f] == (np.unique(rank[rows]).size < 2)


def test_values_that_do_not_fit_are_not_ranked(monkeypatch):
    monkeypatch.setattr(memory, "NEGLIGIBLE", 1)
    monkeypatch.setattr(memory, "available_bytes", lambda: 100)
    with pytest.raises(MemoryError, match="Ranking 6 values other than 0 of 3 rows x 2 columns"):
        nonzeros.rank_nonzeros(np.ones((3, 2)), np.zeros(2, np.bool_))


@pytest.mark.parametrize("tuning", [*RANKED, SORTED, *SPARSE, DRAWN[0]])
@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("squared_error", True)])
def test_drawn_columns_that_become_constant(criterion, weighted, tuning):
    """Most columns are constant in most nodes: others are drawn, until one can be cut."""
    rng = np.random.default_rng(4)
    values = (rng.random((60, 12)) < 0.1).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    values[:, 3], values[:, 4], values[:, 5] = 1.0, np.nan, rng.integers(0, 4, 60)
    values[:, 6:9] = rng.choice([-4.0, -1.0, 0.0, 3.0], (60, 3), p=[0.4, 0.2, 0.1, 0.3])
    sample = random_sample(4, 60, 1, 0 if is_regression(criterion) else 3, weighted)
    sample = sample._replace(values=values)
    backend, begin, end = partial(devices.new_backend, "cpu"), np.array([0, 25]), np.array([25, 60])
    for max_features, leaf, max_bins in ((1, 1, None), (2, 2, 64), (4, 2, 64), (6, 3, None)):
        limits = {"max_features": max_features, "min_samples_leaf": leaf, "random_ties": True}
        with tuned(tuning):
            task = make_task(criterion, sample, **limits)
            check(backend, sample, task, begin, end, max_bins=max_bins)


@pytest.mark.parametrize("n", [9, 16, 41])
def test_statistics_of_two_classes_by_rank(n):
    """Sums of words of 32 bits a class where a node's weight fits, else one by one."""
    rng = np.random.default_rng(n)
    criterion = make_task("gini", random_sample(0, 20, 2, 2, True)).criterion
    for weight, span in product((1, 2**26, 2**40), (2, 3, 8)):
        rank = (5 + rng.integers(0, span, 60)).astype(np.uint16)
        rows = rng.permutation(60)[:n].astype(np.int32)
        target, weights = rng.integers(0, 2, n), rng.integers(1, 2 * weight, n)
        word, total = np.empty(n, np.int64), np.empty(2, np.int64)
        drawn_columns.sum_words(target, weights, word, total)
        assert total.tolist() == np.bincount(target, weights, 2).tolist()
        scan = SimpleNamespace(
            criterion=criterion, total=total, target=target, weight=weights, whole=total.sum()
        )
        cells = np.full(4 * n, -1)
        drawn_ranks.count_ranks(scan, word, rank, rows, 5, span, cells)
        expected = np.zeros((span, 2), np.int64)
        np.add.at(expected, (rank[rows] - 5, target), weights)
        assert cells[: 2 * span].tolist() == expected.ravel().tolist()
