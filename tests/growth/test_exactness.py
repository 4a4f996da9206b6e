"""Whole trees against the reference tree, field by field and to the last bit."""

import numpy as np
import pytest
from devices import host_codes
from hypothesis import given
from hypothesis import strategies as st
from oracles import best_cut, exact_tree
from strategies import PROBLEMS, is_regression, make_task, problems, random_problems, random_sample
from tunings import DRAWN, RANKED, SORTED, SPARSE, WIDE, tuned


@given(problems())
def test_tiny_tables_of_ties(grow_tree, problem):
    criterion, sample = problem
    task = make_task(criterion, sample)
    expected = exact_tree(sample.values, task)
    assert grow_tree(sample, task) == expected
    assert grow_tree(sample, task, finish_rows=1, max_bins=4) == expected


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_random_tables(grow_tree, criterion, weighted, seed):
    rng = np.random.default_rng([seed, len(criterion), weighted])
    n, d, n_classes = int(rng.integers(3, 161)), int(rng.integers(1, 7)), int(rng.integers(2, 13))
    if is_regression(criterion):
        n_classes = 0
    sample = random_sample(seed, n, d, n_classes, weighted)
    if criterion == "gini" and seed % 2:  # one criterion: kernels are compiled for each type
        sample = sample._replace(values=sample.values.astype(np.float32))
    task = make_task(criterion, sample, n_classes=n_classes)
    expected = exact_tree(sample.values, task)
    assert grow_tree(sample, task, n_threads=2) == expected
    assert grow_tree(sample, task, finish_rows=6, max_bins=9) == expected


@given(
    random_problems(120),
    st.integers(0, 6),
    st.integers(1, 8),
    st.integers(2, 20),
    st.sampled_from([0.0, 1e-3, 0.05]),
    st.integers(1, 3),
    st.booleans(),
)
def test_limits(grow_tree, device, problem, max_depth, leaf, split, decrease, max_features, ties):
    criterion, sample = problem
    plain = make_task(criterion, sample)
    total = len(sample.y) if plain.rows.weight is None else int(plain.rows.weight.sum())
    task = make_task(
        criterion,
        sample,
        max_depth=max_depth,
        min_samples_leaf=leaf,
        min_samples_split=split,
        min_weight_leaf=total // 20,
        min_decrease=decrease * total,
        max_features=min(max_features, sample.values.shape[1]),
        random_ties=ties,
    )
    expected = exact_tree(sample.values, task)
    assert grow_tree(sample, task) == expected
    assert grow_tree(sample, task, finish_rows=1, max_bins=5) == expected
    for tuning in [*DRAWN, *RANKED, SORTED, *SPARSE, WIDE] if device == "cpu" else []:
        with tuned(tuning):
            assert grow_tree(sample, task, n_threads=2) == expected
            assert grow_tree(sample, task, finish_rows=1, max_bins=5) == expected
            assert grow_tree(sample, task, finish_rows=20, max_bins=5) == expected


_CUTS: dict = {}  # what the oracle says of the rows of a node, for all devices


@pytest.mark.full
@pytest.mark.parametrize(("criterion", "weighted", "n_classes"), [
    ("gini", False, 2), ("gini", True, 7), ("entropy", False, 12), ("squared_error", False, 0),
])  # fmt: skip
def test_every_split_of_a_larger_table_is_the_best(grow_tree, criterion, weighted, n_classes):
    """5,000 rows: a few hundred nodes are split by histogram and refinement."""
    sample = random_sample(11, 5000, 6, n_classes, weighted)
    task = make_task(criterion, sample)
    tree = grow_tree(sample, task, n_threads=2, finish_rows=40, max_bins=64)
    assert len(tree.rows) > 500
    known = _CUTS.setdefault((criterion, n_classes), {})
    for node, rows in enumerate(tree.rows):
        if tuple(rows) not in known:
            known[tuple(rows)] = best_cut(sample.values, task, np.array(rows))
        cut = known[tuple(rows)]
        if tree.first_child[node] < 0:
            assert cut is None
            continue
        assert (tree.feature[node], tree.threshold[node]) == (cut.feature, cut.threshold)
        assert tree.rows[tree.first_child[node]] == np.sort(np.array(rows)[cut.goes_left]).tolist()


@given(random_problems(150), st.integers(2, 9))
def test_binned_tree_is_the_exact_tree_of_the_codes(backend, grow_tree, problem, max_bins):
    criterion, sample = problem
    task = make_task(criterion, sample, exact=False)
    device = backend(sample, task)
    device.encode(max_bins)
    codes = host_codes(device).astype(np.float64)
    codes[np.isnan(sample.values)] = np.nan
    expected = exact_tree(codes, make_task(criterion, sample._replace(values=codes)))
    for finish_rows in (None, 1):
        tree = grow_tree(sample, task, max_bins=max_bins, finish_rows=finish_rows)
        assert tree._replace(threshold=[]) == expected._replace(threshold=[])
        for node, rows in enumerate(tree.rows):
            if tree.first_child[node] >= 0:
                column = sample.values[rows, tree.feature[node]]
                at_left = set(tree.rows[tree.first_child[node]])
                goes_left = column <= tree.threshold[node]
                goes_left[np.isnan(column)] = tree.missing_left[node]
                assert {r for r, left in zip(rows, goes_left, strict=True) if left} == at_left
