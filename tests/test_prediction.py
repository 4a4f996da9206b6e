"""Descent against a row-by-row oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree import prediction
from gputree.prediction import answers
from gputree.dtypes import LEAF, MISSING_STOPS, NO_CHILD, NO_FEATURE, NO_THRESHOLD, THRESHOLD_SPLIT
from gputree.tree import Tree


def make_tree(first_child, feature, threshold, missing_child, n_features):
    """A regression tree from its splits; a node's target is its number."""
    first_child = np.asarray(first_child, np.int32)
    n, leaf = first_child.size, first_child < 0
    inner = np.flatnonzero(~leaf)
    parent = np.full(n, NO_CHILD, np.int32)
    depth = np.zeros(n, np.int32)
    for node in inner:
        for child in (first_child[node], first_child[node] + 1):
            parent[child], depth[child] = node, depth[node] + 1
    tree = Tree(
        task="regression",
        criterion="squared_error",
        n_features=n_features,
        first_child=first_child,
        n_children=np.where(leaf, 0, 2).astype(np.int32),
        parent=parent,
        depth=depth,
        split_kind=np.where(leaf, LEAF, THRESHOLD_SPLIT).astype(np.uint8),
        feature=np.where(leaf, NO_FEATURE, feature).astype(np.int32),
        threshold=np.where(leaf, NO_THRESHOLD, threshold).astype(np.float64),
        missing_child=np.where(leaf, MISSING_STOPS, missing_child).astype(np.int32),
        weight=np.ones(n),
        n_rows=np.ones(n, np.int64),
        statistics=np.arange(n, dtype=np.float64)[:, None],
        impurity=np.zeros(n),
        gain=np.zeros(n),
    )
    tree.check()
    return tree


def random_tree(rng, n_splits, n_features=4):
    """Leaves are split at random, breadth-first."""
    first_child, size = [], 1
    while len(first_child) < size:
        splits = n_splits > 0 and (rng.random() < 0.6 or len(first_child) == size - 1)
        first_child.append(size if splits else -1)
        size += 2 * splits
        n_splits -= splits
    values = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0 + 2**-30, 3e38, np.inf])[1:]
    return make_tree(
        first_child,
        rng.integers(0, n_features, size),
        rng.choice(values, size),
        rng.integers(0, 2, size),
        n_features,
    )


def chain(depth):
    """Every split cuts one leaf off: row value v ends at depth v + 1."""
    n = 2 * depth + 1
    first_child = np.full(n, -1)
    threshold = np.zeros(n)
    inner = np.append(0, 2 * np.arange(1, depth))  # the second child goes on
    first_child[inner] = 2 * np.arange(depth) + 1
    threshold[inner] = np.arange(depth)
    return make_tree(first_child, np.zeros(n), threshold, np.ones(n), 1)


def random_rows(rng, n, n_features=4, dtype=np.float64):
    special = [np.nan, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-30, 1.0 + 2**-29, -3e38, 3e38, 1e-45]
    return rng.choice(special, (n, n_features)).astype(dtype)


def walk_slowly(tree, row):
    """Nodes that a row passes."""
    path = [0]
    while not tree.is_leaf[path[-1]]:
        node = path[-1]
        x = float(row[tree.feature[node]])
        ordinal = tree.missing_child[node] if np.isnan(x) else int(x > tree.threshold[node])
        path.append(int(tree.first_child[node]) + int(ordinal))
    return path


@given(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from([np.float32, np.float64]))
def test_apply(seed, n_splits, dtype):
    rng = np.random.default_rng(seed)
    tree, rows = random_tree(rng, n_splits), random_rows(rng, 50, dtype=dtype)
    expected = [walk_slowly(tree, row)[-1] for row in rows]
    np.testing.assert_array_equal(prediction.apply(tree, rows), expected)


@given(st.integers(0, 10**6), st.integers(0, 40))
def test_decision_path(seed, n_splits):
    rng = np.random.default_rng(seed)
    tree, rows = random_tree(rng, n_splits), random_rows(rng, 30)
    indicator = prediction.decision_path(tree, rows)
    assert indicator.shape == (30, tree.n_nodes)
    for row, (begin, end) in enumerate(zip(indicator.indptr, indicator.indptr[1:], strict=False)):
        assert indicator.indices[begin:end].tolist() == walk_slowly(tree, rows[row])
    assert (indicator.data == 1).all()


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 100])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_blocks_and_threads(monkeypatch, n_rows, n_threads):
    """Spans of threads, and of rows that walk together, end anywhere."""
    monkeypatch.setattr(answers, "FEWEST_ROWS", 7)
    rng = np.random.default_rng(n_rows)
    tree, rows = random_tree(rng, 30), random_rows(rng, n_rows)
    expected = [walk_slowly(tree, row)[-1] for row in rows]
    leaves = prediction.apply(tree, rows, n_threads)
    assert leaves.dtype == np.int32
    np.testing.assert_array_equal(leaves, expected)


def test_root_alone():
    tree = make_tree([-1], [0], [0], [0], 2)
    rows = random_rows(np.random.default_rng(0), 10, 2)
    leaves = prediction.apply(tree, rows, 2)
    assert leaves.tolist() == [0] * 10
    assert prediction.decision_path(tree, rows).toarray().tolist() == [[1]] * 10


def test_deep_chain():
    tree = chain(2000)
    assert tree.max_depth == 2000
    values = np.array([-5.0, 0.0, 0.5, 7.0, 1000.25, 1998.5, 1999.0, 1999.5, 1e9, np.nan])
    leaves = prediction.apply(tree, values[:, None])
    assert leaves.tolist() == [walk_slowly(tree, [v])[-1] for v in values]
    assert tree.depth[leaves].tolist() == [1, 1, 2, 8, 1002, 2000, 2000, 2000, 2000, 2000]
    lengths = np.diff(prediction.decision_path(tree, values[:, None]).indptr)
    np.testing.assert_array_equal(lengths, tree.depth[leaves] + 1)


def test_a_threshold_of_infinity_parts_missing_from_known():
    tree = make_tree([1, -1, -1], [0, 0, 0], [np.inf, 0, 0], [1, 0, 0], 1)
    rows = np.array([[-np.inf], [3e38], [np.inf], [np.nan]])
    assert prediction.apply(tree, rows).tolist() == [1, 1, 1, 2]


def test_float32_rows_meet_float64_thresholds():
    """A value is widened before it is compared; the threshold is never narrowed."""
    just_below_one = np.nextafter(1.0, 0.0)
    tree = make_tree([1, -1, -1], [0, 0, 0], [just_below_one, 0, 0], [0, 0, 0], 1)
    assert prediction.apply(tree, np.ones((1, 1), np.float32)).tolist() == [2]
    assert prediction.apply(tree, np.full((1, 1), just_below_one)).tolist() == [1]
