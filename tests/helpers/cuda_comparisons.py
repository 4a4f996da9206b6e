"""Comparisons of CPU and device that find seeded bugs: trees, bins, inspected columns."""

from itertools import product

import numpy as np
import pytest
from devices import tune
from strategies import Sample, make_task
from twins import assert_equal, assert_same_bins, assert_same_tree, table

from gputree.backends.cuda import encode, kernels


def compare_trees() -> None:
    """Grow trees that use every kernel: refined, small, binned; draws, ties, missing values."""
    for criterion, weighted in (("gini", False), ("squared_error", True)):
        sample = table(criterion, weighted, n=120, seed=11)
        task = make_task(criterion, sample, max_depth=6)
        assert_same_tree(sample, task, finish_rows=20, max_bins=40)
        task = make_task(criterion, sample, max_features=2, min_samples_leaf=3)
        assert_same_tree(sample, task, finish_rows=20, max_bins=6)
    rng = np.random.default_rng(0)
    for _ in range(6):
        values = rng.choice([0.0, -0.0, 1.0, 2.0, 3.0, np.nan], (30, 3))
        sample = Sample(values, rng.integers(0, 2, 30).astype(np.uint8), None)
        task = make_task("gini", sample, max_depth=8)  # a bug may split off no row, for ever
        for finish_rows in (1, None):
            assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=3)
    twice = sample._replace(values=np.hstack([values, values]))  # cuts tie in every node
    task = make_task("gini", twice, max_depth=8, random_ties=True)
    for finish_rows in (1, None):
        assert_same_tree(twice, task, finish_rows=finish_rows, max_bins=3)


def compare_cells() -> None:
    """Bins counted into cells: of a row each, and of more rows than a warp has lanes."""
    for cell_rows in (1, 100):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", counted_pairs=1, candidate_share=0.0, cell_rows=cell_rows)
            sample = table("gini", False, n=300, seed=3)
            task = make_task("gini", sample, max_depth=4)
            assert_same_tree(sample, task, finish_rows=20, max_bins=3)
            sample = crowded(2200)
            task = make_task("gini", sample, max_depth=1)
            assert_same_tree(sample, task, finish_rows=1, max_bins=2)


def crowded(rows: int) -> Sample:
    """Half of so many values lie in one sub-bin, the best cut among them: no warp sorts them."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.permutation(rows) * 2.0**-40, np.arange(1.0, 30.0)])
    classes = (values > 0.75 * rows * 2.0**-40) ^ (rng.random(values.size) < 0.1)
    return Sample(values[:, None], classes.astype(np.uint8), None)


def compare_limits() -> None:
    """The best cut leaves 39 rows; bins in many chunks; columns that have no cut if drawn."""
    rng = np.random.default_rng(0)
    values = np.zeros((300, 4))
    values[:, 1] = rng.normal(size=300)
    rank = np.argsort(np.argsort(values[:, 1]))
    values[:, 0] = np.where(rank < 39, 0, 1 + rank % 3)
    classes = np.where(rank < 160, rank < 39, rng.random(300) < 0.5).astype(np.uint8)
    sample = Sample(values, classes, None)
    for limits in ({"max_features": 1}, {"min_samples_leaf": 40}, {"min_weight_leaf": 40}):
        task = make_task("gini", sample, max_depth=4, **limits)
        for finish_rows, max_bins, pairs in ((1, 2, 0), (1, 4, 1 << 20), (None, 4, 500)):
            with pytest.MonkeyPatch.context() as patch:  # subdivided, or not; by few warps
                tune(patch, "cuda", candidate_pairs=pairs, candidate_blocks=2)
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)


def compare_places() -> None:
    """Columns that compete for places in the list of candidate bins, which does not hold them all.

    No boundary is admitted, so every bin of two rows is a candidate.
    """
    rng = np.random.default_rng(0)
    for columns in range(16, 21):
        values = rng.normal(size=(240, columns))
        sample = Sample(values, rng.integers(0, 2, 240).astype(np.uint8), None)
        task = make_task("gini", sample, max_depth=1, min_weight_leaf=121)
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", candidate_pairs=1200)
            assert_same_tree(sample, task, finish_rows=1, max_bins=120)


def compare_bins() -> None:
    """Bins of plain, heavy and few values, zeros of both signs; samples that show few values."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5, 250))
    columns[1, rng.random(250) < 0.6] = 0.0
    columns[2, ::3] = np.finfo(np.float64).min
    columns[3, ::5] = np.nan
    columns[4] = rng.choice([-0.0, 0.0, 1.0, 2.0], 250)
    sample = Sample(columns.T.copy(), np.zeros(250, np.uint8), None)
    for exact, max_bins in product((True, False), (4, 9)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", shared_bytes=1 << (13 if exact else 14))  # edges of 4 columns, or 8
            assert_same_bins(sample, make_task("gini", sample, exact=exact), max_bins)
    rare = np.where(np.arange(300) % 16 == 7, np.arange(300.0), 0.0)
    sample = Sample(rare[:, None], (np.arange(300) % 48 == 7).astype(np.uint8), None)
    assert_same_tree(sample, make_task("gini", sample), finish_rows=1, max_bins=8)


def compare_inspection() -> None:
    """Compare missing and infinite values of a table's columns, on the device and by NumPy."""
    rng = np.random.default_rng(0)
    kinds = [[1.0, 2.0], [1.0, np.nan], [1.0, np.inf], [1.0, -np.inf, np.nan]]
    values = np.stack([rng.choice(kind, 40) for kind in kinds], axis=1)
    missing, infinite = encode.inspect_columns(kernels.cupy().asarray(values))
    assert_equal(np.isnan(values).any(axis=0), missing)
    assert_equal(np.isinf(values).any(axis=0), infinite)
