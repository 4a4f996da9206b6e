"""Trees grown on CUDA and trees grown on the CPU: equal field by field, bit for bit."""

import dataclasses
import importlib
import re
import sys
from unittest.mock import Mock

import numpy as np
import pytest
import tables
from cuda_comparisons import crowded
from cuda_emulator import launches
from cuda_traffic import CASES, Traffic, traffic, traffic_ahead
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from strategies import PROBLEMS, examples, make_task, problems, random_problems, random_sample
from twins import as_dtype, assert_equal, assert_same_tree, fit_both, grown, pair, table

from gputree import DecisionTreeClassifier
from gputree.backends.cuda import encode, finish, kernels
from gputree.criteria import ManyClassEntropy
from gputree.growth import grower


def test_a_column_that_only_looks_lossless_is_fitted_again(cuda_device, monkeypatch):
    """Its bins are the backend's own business: exact cuts do not depend on them."""
    monkeypatch.setattr("gputree.backends.binning.SAMPLE_ROWS", 20)
    values = np.where(np.arange(300) % 16 == 7, np.arange(300), 0).astype(np.float32)[:, None]
    sample = table("gini", False, n=300)._replace(values=values)
    assert_same_tree(sample, make_task("gini", sample), finish_rows=1, max_bins=8)


@pytest.mark.parametrize("finish_rows", [1, 40, None])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_trees(cuda_device, criterion, weighted, exact, finish_rows):
    n = 90 if cuda_device.endswith("checked") else 200
    dtype = np.float32 if weighted else np.float64
    sample = table(criterion, weighted, n=n, dtype=dtype, seed=11)
    task = make_task(criterion, sample, exact=exact)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=12)


@pytest.mark.parametrize(
    ("warps", "copied", "finish_rows"),
    [(1, (0, 0), None), (3, (200, 0), 60), (8, (200, 200), None)],
)
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_subtrees_in_global_and_in_shared_memory(
    cuda_device, monkeypatch, criterion, weighted, warps, copied, finish_rows
):
    """Rows of the largest roots whose statistics and lists are in shared memory; few at once."""
    tune(monkeypatch, "cuda", scratch_bytes=5000, finish_warps=warps, warp_rows=7, few_classes=2)
    monkeypatch.setattr(finish, "shared_rows", lambda _: copied)
    sample = table(criterion, weighted, n=200, d=5, dtype=np.float32, seed=5)
    for limits in ({}, {"max_features": 2, "max_depth": 7, "min_samples_leaf": 3}):
        assert_same_tree(sample, make_task(criterion, sample, **limits), finish_rows=finish_rows)


@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("squared_error", True)])
def test_subtrees_of_many_rows(cuda_device, monkeypatch, criterion, weighted):
    """Roots of more rows than 16 bits number have lists of 32 bits, in shared memory, too."""
    monkeypatch.setattr(finish, "MOST_ROWS", 30)
    sample = table(criterion, weighted, n=200, d=5, dtype=np.float32, seed=5)
    for finish_rows in (None, 40):
        assert_same_tree(sample, make_task(criterion, sample), finish_rows=finish_rows)


def test_a_subtree_of_more_rows_than_16_bits_number(cuda_device):
    """It is a small node since a histogram of its classes exceeds the memory limit."""
    rng = np.random.default_rng(0)
    values = rng.permutation(66_000).astype(np.float32)[:, np.newaxis]
    target = np.where(values[:, 0] < 65_700, rng.integers(0, 2000, 66_000), 2000)
    model = DecisionTreeClassifier(max_depth=1, max_device_memory=20_000_000)
    fit_both(model, values, target)
    assert model.tree_.threshold[0] == 65_699.5


@pytest.mark.parametrize("finish_rows", [1, 30])
def test_entropy_of_many_classes(cuda_device, finish_rows):
    sample = table("entropy", True, n=120)
    task = make_task("entropy", sample)
    criterion = ManyClassEntropy(3, task.criterion.unit, 2.0**40)
    task = dataclasses.replace(task, criterion=criterion)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=6)


def test_more_columns_than_lanes(cuda_device):
    sample = table("entropy", False, n=60, d=70)
    for max_features in (70, 3):
        task = make_task("entropy", sample, max_features=max_features)
        assert_same_tree(sample, task, finish_rows=25, max_bins=8)


def test_bins_of_more_rows_than_a_warp_sorts(cuda_device, monkeypatch):
    """They are seen at the end of a level; with drawn columns too."""
    tune(monkeypatch, "cuda", cell_rows=10_000)  # sub-bins are bins
    sample = random_sample(1, 2300, 2, 2, False)
    for max_features in (2, 1):
        task = make_task("gini", sample, max_features=max_features, max_depth=1)
        assert_same_tree(sample, task, finish_rows=1, max_bins=2)


def test_sub_bins_of_more_rows_than_a_warp_sorts(cuda_device):
    """Takes 0.2 s."""
    sample = crowded(2200)
    task = make_task("gini", sample, max_depth=1)
    assert_same_tree(sample, task, finish_rows=1, max_bins=2)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 1.0])
@pytest.mark.parametrize(("slots", "pairs"), [(1 << 20, 1 << 25), (0, 1 << 25), (0, 40)])
def test_pairs_of_candidate_bins_are_listed_where_there_is_room(
    cuda_device, monkeypatch, share, slots, pairs
):
    """For none, one, a few of 100 rows, or all; gathered unseen, at once, or in batches."""
    tune(monkeypatch, "cuda", fewest_slots=slots, slot_share=0.0, gathered_pairs=pairs)
    tune(monkeypatch, "cuda", cell_rows=4, listed_share=share, chunk_rows=30)
    sample = table("gini", True, n=100)
    task = make_task("gini", sample, max_depth=1)
    launches.clear()
    assert_same_tree(sample, task, finish_rows=1, max_bins=16)
    assert (launches["gather_rows"] == 1) == (slots > 0)


def test_rows_are_refined_in_batches(cuda_device, monkeypatch):
    tune(monkeypatch, "cuda", gathered_pairs=40)
    sample = table("squared_error", False, n=150)
    assert_same_tree(sample, make_task("squared_error", sample), finish_rows=20, max_bins=4)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_bins_are_not_subdivided_where_memory_is_short(cuda_device, monkeypatch, criterion):
    """Each has one sub-bin, and one column is refined after another."""
    tune(monkeypatch, "cuda", cell_rows=1)
    sample = table(criterion, False, n=120)
    task = make_task(criterion, sample)
    cpu, cuda = pair(sample, task)
    memory = cuda.grower.memory._replace(gathered_pairs=2)
    cuda.grower = cuda.grower._replace(memory=memory)
    expected, found = (
        grown(device, sample, task, finish_rows=20, max_bins=4) for device in (cpu, cuda)
    )
    for name, field in expected.items():
        assert_equal(field, found[name], name)


def test_every_kernel_runs(emulated_device, monkeypatch):
    """Only launched kernels are checked: the trees here use every one."""
    launches.clear()
    monkeypatch.setattr("gputree.backends.binning.SAMPLE_ROWS", 50)
    for criterion, shared_bytes in (("gini", 48 * 1024), ("squared_error", 64)):
        tune(monkeypatch, "cuda", shared_bytes=shared_bytes)
        sample = table(criterion, False, n=120)
        for max_features, exact in ((4, True), (1, False)):
            task = make_task(criterion, sample, max_features=max_features, exact=exact)
            assert_same_tree(sample, task, finish_rows=20, max_bins=6)
    monkeypatch.setattr(grower, "finish_rows", lambda *_: 20)
    monkeypatch.setattr(grower, "FEWEST_ROWS", 0)
    tune(monkeypatch, "cuda", shared_bytes=48 * 1024)
    few, many = np.arange(300) % 5, np.arange(300)  # many: more than there are bins
    model = DecisionTreeClassifier(categorical_features=[0, 1], max_depth=1, n_jobs=1)
    with pytest.warns(UserWarning, match="has a unique value"):
        fit_both(model, np.stack([few, many], axis=1), many % 2)
    encode.inspect_columns(kernels.cupy().asarray(sample.values))
    pattern = r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\("
    others = ("lists", "cells")  # of entropy trees, and of parts of tables
    modules = [name for name in kernels.HEADERS if not name.startswith(others)]
    written = {k for name in modules for k in re.findall(pattern, kernels.source(name))}
    assert written - set(launches) == set()


# A level by histograms, on average: kernels, copies to the device and from it, waits, arrays; and
# the buffers of all levels.
MOST_TRAFFIC = {
    "exact": Traffic(12.9, 2, 1, 1, 0, 7),
    "binned": Traffic(6.9, 2, 1, 1, 0, 6),
    "of targets": Traffic(13.9, 2, 1, 1, 0, 7),
    # Runs are in the memory that rows are gathered in afterwards: a buffer that is allocated anew
    # once a tree.
    "nominal": Traffic(13.9, 2, 1, 1, 0, 9),
    "monotonic": Traffic(13.9, 4, 2, 2, 0, 8),
    # Orders of visits, which are drawn before the columns are counted, have a buffer.
    "interactions": Traffic(13.9, 3, 1, 1, 0, 9),
}


@pytest.mark.parametrize("name", CASES)
def test_what_levels_ask_of_the_device(emulated_device, name):
    found = traffic(CASES[name], rows=1000 if emulated_device.endswith("checked") else 3000)
    limits = zip(Traffic._fields, found, MOST_TRAFFIC[name], strict=True)
    assert {name: (used, most) for name, used, most in limits if used > most} == {}


def test_what_levels_that_are_not_waited_for_ask_of_the_device(emulated_device):
    """For 8 levels a copy to the device and one from it; arrays are the buffers."""
    rows = 1000 if emulated_device.endswith("checked") else 3000
    assert traffic_ahead(CASES["exact"], rows=rows) == Traffic(1 + 8 * 12, 1, 1, 1, 7)
    assert traffic_ahead(CASES["binned"], rows=rows) == Traffic(1 + 8 * 6, 1, 1, 1, 6)


def test_what_fit_asks_of_the_device_before_growth(emulated_device, monkeypatch):
    """A long table costs as many calls as a short one."""
    cupy, counts = importlib.import_module("cupy"), []
    monkeypatch.setattr("gputree.estimators.growing.new_backend", Mock(side_effect=StopIteration))
    for n in (50, 400):
        X, y = cupy.zeros((n, 3), dtype=np.float32), cupy.asarray(np.arange(n, dtype=np.int32) % 2)
        before = Traffic.now()
        with pytest.raises(StopIteration):
            DecisionTreeClassifier(device="cuda").fit(X, y)
        counts.append(np.subtract(Traffic.now(), before).tolist())
    assert counts[0] == counts[1]


# ----------------------------------------------------------------------- random tables
@given(problems())
@examples(15)
def test_tables_where_everything_ties(cuda_device, problem):
    criterion, sample = problem
    task = make_task(criterion, sample)
    for finish_rows in (1, None):
        assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=3)


@given(
    random_problems(150),
    st.booleans(),
    st.integers(2, 20),
    st.sampled_from([1, 25, None]),
    st.integers(1, 5),
    st.sampled_from([None, 6]),
    st.booleans(),
)
def test_random_tables(
    cuda_device, problem, exact, max_bins, finish_rows, max_features, max_leaf_nodes, ties
):
    """Classes and targets, weighted or not, with missing values and repeated rows."""
    criterion, sample = problem
    sample = as_dtype(sample, np.float64 if sample.weight is None else np.float32)
    limits = {
        "max_features": min(max_features, sample.values.shape[1]),
        "min_samples_leaf": max_features,
        "random_ties": ties,
        "min_decrease": 0.0,
    }
    task = make_task(criterion, sample, exact=exact, **limits)
    options = {"max_bins": max_bins, "max_leaf_nodes": max_leaf_nodes}
    assert_same_tree(sample, task, finish_rows=finish_rows, **options)


# ------------------------------------------------------------------ tables of people


@tables.each_real_table
def test_real_tables(cuda_device, name):
    rows = 150 if cuda_device.endswith("checked") else 600
    criterion, sample = tables.real(name, rows)
    for exact in (True, False):
        task = make_task(criterion, sample, exact=exact)
        assert_same_tree(sample, task, finish_rows=40, max_bins=32)


# ------------------------------------------------------------------- estimators


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"device='cuda' needs cupy.*gputree-learn\[cuda13\]"):
        kernels.cupy()
