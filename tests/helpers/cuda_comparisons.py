"""Comparisons of CPU and device that find seeded bugs: one for each kind of kernel."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from category_oracle import Case, draw_case
from devices import tune
from mixed_tables import MixedTable
from sklearn.base import clone
from strategies import Sample, make_task, random_sample
from tunings import finishing
from twin_lists import grow_both_ways
from twins import assert_equal, assert_same_bins, assert_same_tree, fit_both, table

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.backends.base import Monotonic
from gputree.backends.cuda import encode, finish, kernels
from gputree.backends.cuda.memory import Copies
from gputree.backends.interactions import interactions_of
from gputree.backends.sharded import cuda_shard
from gputree.check.cases import InParts
from gputree.estimators import growing_categories


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


def compare_subtrees() -> None:
    """Grow small subtrees by blocks of many warps and of few, in shared and in global memory."""
    for warps, copied, finish_rows in ((8, (200, 200), None), (3, (0, 0), 60)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", finish_warps=warps, warp_rows=7, scratch_bytes=20_000)
            patch.setattr(finish, "shared_rows", lambda _, copied=copied: copied)
            sample = table("gini", False, n=200, d=5, dtype=np.float32, seed=5)
            for limits in ({"max_depth": 6}, {"max_features": 2, "min_samples_leaf": 3}):
                task = make_task("gini", sample, **limits)
                assert_same_tree(sample, task, finish_rows=finish_rows)


def compare_cells() -> None:
    """Bins counted into cells: of a row each, all listed; of more rows than lanes, few listed."""
    for cell_rows, listed in ((1, 100.0), (100, 0.1)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", fewest_slots=1, slot_share=0.0, cell_rows=cell_rows)
            tune(patch, "cuda", listed_share=listed)
            sample = table("gini", False, n=300, seed=3)
            task = make_task("gini", sample, max_depth=4)
            assert_same_tree(sample, task, finish_rows=20, max_bins=3)
            # No boundary is admitted, so that blocks list pairs more than once.
            values = np.random.default_rng(0).normal(size=(80, 40))
            sample = Sample(values, (values[:, 0] > values[:, 1]).astype(np.uint8), None)
            task = make_task("gini", sample, max_depth=1, min_samples_leaf=40)
            assert_same_tree(sample, task, finish_rows=1, max_bins=3)
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
        for finish_rows, max_bins, slots in ((1, 2, 0), (1, 4, 1 << 20), (None, 4, 500)):
            with pytest.MonkeyPatch.context() as patch:  # in batches, or not; by few warps
                tune(patch, "cuda", fewest_slots=slots, slot_share=0.0, candidate_blocks=2)
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)


def compare_places() -> None:
    """Columns that compete for sub-bins, slots and cuts, of which some do not suffice.

    The only cut that is admitted halves the rows, inside a bin: all bins are candidates. Few have
    more rows than there are slots, or many share few cuts.
    """
    for columns, fitting, max_bins in product((8, 24), (2, 3, 100), (4, 25)):
        rng = np.random.default_rng(columns)
        values = rng.normal(size=(60, columns))
        sample = Sample(values, rng.integers(0, 2, 60).astype(np.uint8), None)
        task = make_task("gini", sample, max_depth=1, min_weight_leaf=30)
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", fewest_slots=55 * fitting, slot_share=0.0)
            assert_same_tree(sample, task, finish_rows=1, max_bins=max_bins)


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


def compare_ahead() -> None:
    """Levels that the device splits one after another: none, one, some; memory for few nodes.

    Nodes that the host splits in between: small ones, more than fit, a crowded one.
    """
    for levels, nodes, finish_rows in ((0, 9, 1), (1, 9, 20), (3, 1, 1), (3, 3, 20), (8, 99, 1)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", ahead_levels=levels, ahead_nodes=nodes)
            for criterion, weighted in (("gini", False), ("squared_error", True)):
                sample = table(criterion, weighted, n=120, seed=7)
                twice = np.hstack([sample.values, sample.values])  # cuts tie in every node
                sample = sample._replace(values=twice)
                task = make_task(criterion, sample, max_depth=6, random_ties=True)
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=9)
    sample = crowded(1200)
    assert_same_tree(sample, make_task("gini", sample, max_depth=4), finish_rows=1, max_bins=2)


def compare_forests() -> None:
    """Grow trees of a forest together: with and without weights, categories, missing values.

    Few columns of many are drawn, some of them of one value; they are counted one by one.
    """
    rng = np.random.default_rng(4)
    X = rng.normal(size=(290, 4)).round(2)
    many = np.column_stack([X[:, :2], rng.permutation(290) % 280])
    X[rng.random(X.shape) < 0.1] = np.nan
    more = np.column_stack([np.ones((290, 3)), X])
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + 0.3 * rng.normal(size=290)
    classes = {"bootstrap": False, "max_features": 2}
    for kind, values, options in (
        (RandomForestClassifier, X, {**classes, "max_bins": 8}),
        (RandomForestClassifier, many, {**classes, "categorical_features": [2]}),
        (RandomForestRegressor, X, {"max_samples": 1200, "max_bins": 8}),
        (RandomForestClassifier, more, {"max_bins": 8, "max_features": 2}),
    ):
        target = y > 0.5 if kind is RandomForestClassifier else y
        forest = kind(3, random_state=1, max_depth=4, **options)
        with finishing(20), pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", shared_bytes=1 << (8 if values is more else 13))
            expected, found = (
                clone(forest).set_params(device=device).fit(values, target)
                for device in ("cpu", "cuda")
            )
        for one, other in zip(expected.estimators_, found.estimators_, strict=True):
            assert one.tree_.equals(other.tree_)


def compare_inspection() -> None:
    """Compare missing and infinite values of a table's columns, on the device and by NumPy."""
    rng = np.random.default_rng(0)
    kinds = [[1.0, 2.0], [1.0, np.nan], [1.0, np.inf], [1.0, -np.inf, np.nan]]
    values = np.stack([rng.choice(kind, 40) for kind in kinds], axis=1)
    missing, infinite = encode.inspect_columns(kernels.cupy().asarray(values))
    assert_equal(np.isnan(values).any(axis=0), missing)
    assert_equal(np.isinf(values).any(axis=0), infinite)


def compare_categories() -> None:
    """Subsets under limits: heads, single runs, masks; moves where few count as many."""
    # Equal shares that differ in their rows are rare: 277 has some that matter.
    drawn = [(seed, growing_categories.FEW_CATEGORIES) for seed in [277, *range(25)]]
    drawn += [(seed, 3) for seed in [55, *range(50)]]  # 55: moved to and from all without events
    cases = [(draw_case(seed), few) for seed, few in drawn]
    made = equal_categories(), small_categories_of_events()
    cases += [(case, growing_categories.FEW_CATEGORIES) for case in made]
    for case, few in sorted(cases, key=variant):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(growing_categories, "FEW_CATEGORIES", few)
            fit_both(case.model(), case.X, case.y, case.weight)
            with finishing(1):
                fit_both(case.model(), case.X, case.y, case.weight)


def equal_categories() -> Case:
    """A table whose categories 0 and 1 gain the same: the second has the lower statistics."""
    counts = np.array([[3, 0, 0], [0, 3, 0], [1, 1, 2], [1, 1, 2]])
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    codes, y = np.divmod(cells, 3)
    parameters = {"categorical_split": "one_vs_rest"}
    return Case(codes[:, None] + 0.0, np.array([True]), y, None, "gini", parameters)


def small_categories_of_events() -> Case:
    """A table whose subsets of one category moved alone are better than all prefixes, but small."""
    rows, events = np.array([2, 4, 1, 1, 4]), np.array([0, 7, 2, 2, 8])
    codes = np.repeat(np.arange(rows.size), rows)
    y = np.repeat(events / rows, rows)
    parameters = {"min_samples_leaf": 4, "max_depth": 1}
    return Case(codes[:, None] + 0.0, np.array([True]), y, None, "poisson", parameters)


def variant(drawn: tuple[Case, int]) -> tuple[str, bool]:
    """Variant of the kernels that a case uses: a mutant compiles few of them until it is caught."""
    return drawn[0].criterion, drawn[0].weight is not None


def list_table(seed: int, n: int, weighted: bool) -> MixedTable:
    """Numbers with ties, runs of one class, few and many categories, missing values."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) // 37 + (rng.random(n) < 0.1)) % 3
    X = np.stack(
        [np.arange(n) // 5, rng.integers(0, 4, n), rng.integers(0, n // 3, n),
         rng.normal(size=n).round(1), np.arange(n) // 60], axis=1,
    ).astype(float)  # fmt: skip
    X[rng.random((n, 5)) < [0.1, 0.05, 0.3, 0.0, 0.0]] = np.nan
    weight = rng.choice([0.1, 1.0, 2.5], n) if weighted else None
    return MixedTable(X, np.array([False, True, True, False, True]), y, weight)


def compare_lists() -> None:
    """Grow trees that use every kernel of lists: long and short, weighted, interleaved."""
    cases = [(1, 16 * 1024), (10**9, 16 * 1024), (40, 0)]
    for seed, (long_list, shared) in enumerate(cases):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", lists_long=long_list)
            tune(patch, "cuda", lists_most_blocks=5)
            tune(patch, "cuda", lists_shared_bytes=shared)
            tune(patch, "cuda", lists_chunk_places=50)
            for weighted in (False, True):
                table = list_table(seed, 150, weighted)
                for kind in (C45Classifier, ID3Classifier):
                    model = kind(categorical_features=table.nominal, max_depth=4, pruning=None)
                    grow_both_ways(model, table.X, table.y, table.weight)
    for seed, long_list in product((5, 6), (1, 10**9)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", lists_long=long_list)
            compare_edges(seed)


def compare_edges(seed: int) -> None:
    """Branches that end with a warp's span; whole rows; rows so light that gains tie."""
    rng, n = np.random.default_rng(seed), 640
    y = (np.arange(n) // 350 + (rng.random(n) < 0.01)) % 2
    X = np.stack([np.arange(n) // 128, np.arange(n), rng.integers(0, 40, n)], axis=1).astype(float)
    for nominal in (np.array([True, False, False]), np.zeros(3, bool)):
        model = C45Classifier(categorical_features=nominal, max_depth=3, pruning=None)
        grow_both_ways(model, X, y)
        model.set_params(min_samples_leaf=0.25, mdl_correction=False)
        for light in (2.0**-34, 2.0**-36, 2.0**-38):
            grow_both_ways(model, X, y, light_rows(rng, n, light))
        holes = np.where(np.arange(n)[:, None] % 7 == 5, np.nan, X)  # fractions of nothing
        grow_both_ways(model, holes, y, light_rows(rng, n, light))


def light_rows(rng: np.random.Generator, n: int, light: float) -> np.ndarray:
    """Weights of rows of which the first and the last outweigh all others: gains tie."""
    weight = rng.choice([0.5, 1.0], n) * light
    weight[[0, -1]] = 1.0
    return weight


def compare_monotonic() -> None:
    """Columns that means rise and fall with; refined, finished, in bins and in cells of rows."""
    signs = np.array([1, -1, 0, 1], np.int8)
    for criterion, weighted in (("gini", False), ("squared_error", True)):
        n_classes = 2 if criterion == "gini" else 0
        for seed in (2, 3, 4):
            sample = random_sample(seed, 150, 4, n_classes, weighted)
            task = make_task(
                criterion,
                sample,
                n_classes=n_classes or None,
                monotonic=Monotonic(signs),
                max_depth=6,
            )
            for finish_rows, max_bins in ((1, 4), (30, 40), (None, 4)):
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)


def compare_interactions() -> None:
    """Groups of columns: refined, finished and put off; drawn columns, categories, bounds."""
    rng = np.random.default_rng(0)
    groups = tuple(map(frozenset, ({0, 1}, {1, 2, 4}, {3, 5}, {5, 6})))
    signs = np.array([1, 0, -1, 0, 0, 1, 0], np.int8)
    for criterion, weighted in (("gini", False), ("squared_error", True)):
        n_classes = 2 if criterion == "gini" else 0
        sample = random_sample(5, 150, 7, n_classes, weighted)
        for limits in ({}, {"max_features": 2, "min_samples_leaf": 3}, {"max_features": 1}):
            task = make_task(criterion, sample, n_classes=n_classes or None, max_depth=8, **limits)
            task = replace(task, interactions=interactions_of(groups))
            for finish_rows, max_bins in ((1, 4), (30, 4), (None, 40)):
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)
        bounded = replace(task, limits=task.limits._replace(monotonic=Monotonic(signs)))
        assert_same_tree(sample, bounded, finish_rows=1, max_bins=4)
    code = np.arange(600) % 300  # more categories than bins
    X = np.stack([code, *(rng.integers(0, k, 600) for k in (4, 5, 6, 3))], axis=1).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] % 7 // 3 + X[:, 1] + X[:, 2] * X[:, 3])) % 2 > 0.5
    nominal = {"categorical_features": [0, 1, 2], "max_depth": 4, "n_jobs": 1}
    for cst in ([{0, 1}, {2, 3}, {3, 4}], [{0, 2}, {1, 4}, {3}], "no_interactions"):
        model = DecisionTreeClassifier(interaction_cst=cst, random_state=0, **nominal)
        for max_features, rows in product((None, 2), (1, 10**6)):
            with finishing(rows):
                fit_both(model.set_params(max_features=max_features), X, y)


def compare_parts() -> None:
    """Compare numbers of both widths with missing values, some repeated, and categories."""
    for dtype, seed in ((np.float32, 1), (np.float64, 2)):
        sample = random_sample(seed, 200, 4, 3, weighted=seed == 2)
        X = np.clip(sample.values, -1e38, 1e38).astype(dtype)
        assert_same_in_parts(X, sample.y, sample.weight, max_depth=3, max_bins=4)
    rng = np.random.default_rng(0)
    code = np.arange(700) % 300  # more categories than bins
    X = np.stack([code, rng.integers(0, 7, 700), rng.normal(size=700)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (code % 7 < 3) ^ (rng.random(700) < 0.2) ^ np.isnan(X[:, 0])
    search = {"categorical_split": "ordered", "categorical_features": [0, 1]}
    assert_same_in_parts(X, y, None, max_depth=3, max_bins=8, **search)


def assert_same_in_parts(X: Any, y: Any, weight: Any, **parameters: Any) -> None:
    trees = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_shard, "COPIES", Copies())
        patch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
        patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
        for device in ("cpu", "cuda"):
            model = InParts(device=device, n_jobs=1, **parameters)
            trees.append(model.fit(X, y, weight).tree_)
    assert trees[0].equals(trees[1])


COMPARISONS = {
    "subsets": compare_categories,
    "lists": compare_lists,
    "monotonic": compare_monotonic,
    "interactions": compare_interactions,
    "parts": compare_parts,
    "trees": compare_trees,
    "subtrees": compare_subtrees,
    "cells": compare_cells,
    "limits": compare_limits,
    "places": compare_places,
    "ahead": compare_ahead,
    "forests": compare_forests,
    "inspection": compare_inspection,
    "bins": compare_bins,
}
