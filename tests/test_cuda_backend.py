"""The CUDA backend against the CPU backend: equal to the bit, on the emulator and on a device.

``GPUTREE_REQUIRE_GPU=1 pytest -m gpu`` runs the same bodies on a device.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from cuda_emulator import emulated_cuda, transfers, unavailable
from hypothesis import given, settings
from strategies import PROBLEMS, make_task, problems, random_sample

from gputree import DecisionTreeClassifier
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda import finish, histogram, kernels, layout, partition, refine
from gputree.backends.cuda.backend import CudaBackend
from gputree.criteria import ManyClassEntropy
from gputree.growth import grower
from gputree.growth.assembly import Nodes, renumber
from gputree.growth.grower import Plan, grow
from gputree.growth.progress import Progress

# Orders of blocks, warps and lanes, and a random one with every access checked.
EMULATED = ["ascending", "descending", "random", "check"]


def no_device() -> str | None:
    """Why there is no device, or None."""
    try:
        cupy = importlib.import_module("cupy")
        cupy.arange(3).sum().item()  # a kernel runs
    except Exception as error:
        return f"no CUDA device answers ({type(error).__name__})"
    return None


@pytest.fixture(
    scope="module",
    params=[*EMULATED, pytest.param("gpu", marks=pytest.mark.gpu)],
)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the kernels run: on the emulator, in some order, or on a device."""
    if request.param == "gpu":
        reason = no_device()
        if reason and os.environ.get("GPUTREE_REQUIRE_GPU") == "1":
            pytest.fail(reason)
        if reason:
            pytest.skip(reason)
        yield "gpu"
        return
    if unavailable():
        pytest.skip(str(unavailable()))
    check = request.param == "check"
    with emulated_cuda("random" if check else request.param, check):
        yield request.param


def pair(sample, task, max_bins=None):
    """Both backends over one table, coded where `max_bins` is given."""
    both = [kind(sample.values, sample.missing, task, 1) for kind in (CpuBackend, CudaBackend)]
    for backend in both:
        if max_bins:
            backend.encode(max_bins)
    return both


def host(array):
    return array.get() if hasattr(array, "get") else np.asarray(array)


def assert_equal(expected, found, name=""):
    """Equal dtype for dtype and bit for bit; NaN equals NaN."""
    expected, found = host(expected), host(found)
    assert expected.shape == found.shape, name
    same = (expected == found) | ((expected != expected) & (found != found))
    assert same.all(), (name, np.argwhere(~same)[:5], expected[~same][:5], found[~same][:5])


def grown(backend, sample, task, max_bins=64, finish_rows=None, key=7, max_leaf_nodes=None):
    """Nodes in breadth-first order, entries and statistics of a tree."""
    budget = 1 << 26
    plan = Plan(max_bins, task.exact, max_leaf_nodes, budget, finish_rows, key)
    with pytest.MonkeyPatch.context() as patch:
        if finish_rows is not None:
            patch.setattr(grower, "FEWEST_ROWS", 0)
        progress = Progress(len(sample.y), enabled=False)
        nodes = grow(backend, sample.values.shape, task.limits, plan, progress)
    nodes, _, depth = renumber(nodes)
    return nodes, depth, host(backend.entries), backend.node_statistics(nodes.begin, nodes.end)


def assert_same_tree(sample, task, **options):
    cpu, cuda = pair(sample, task)
    (expected, *rest), (found, *others) = (
        grown(backend, sample, task, **options) for backend in (cpu, cuda)
    )
    for name, a, b in zip(Nodes._fields, expected, found, strict=True):
        assert_equal(a, b, name)
    for name, a, b in zip(("depth", "entries", "statistics"), rest, others, strict=True):
        assert_equal(a, b, name)


def table(criterion, weighted, n=250, d=4, seed=3, dtype=np.float64):
    sample = random_sample(seed, n, d, 0 if criterion == "squared_error" else 3, weighted)
    with np.errstate(over="ignore"):
        return sample._replace(values=np.ascontiguousarray(sample.values.astype(dtype)))


# ------------------------------------------------------------------ primitives
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [True, False])
def test_codes(device, dtype, exact):
    sample = table("gini", False, dtype=dtype, d=7)
    cpu, cuda = pair(sample, make_task("gini", sample, exact=exact), 32)
    assert_equal(cpu.table.codes, host(cuda.table.codes)[:, :7])
    for name in ("offset", "single", "by_code", "low", "high"):
        assert_equal(getattr(cpu.table, name), getattr(cuda.table, name), name)


def test_a_column_that_only_looks_lossless_is_fitted_again(device, monkeypatch):
    """Its bins are the backend's own business: exact cuts do not depend on them."""
    monkeypatch.setattr("gputree.backends.cpu.encode.SAMPLE_ROWS", 20)
    values = np.where(np.arange(300) % 16 == 7, np.arange(300), 0).astype(np.float32)[:, None]
    sample = table("gini", False, n=300)._replace(values=values)
    assert_same_tree(sample, make_task("gini", sample), finish_rows=1, max_bins=8)


@pytest.mark.parametrize("shared_bytes", [48 * 1024, 4096, 64])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_histograms(device, monkeypatch, criterion, weighted, shared_bytes):
    """In shared memory at once, in groups of columns, and in global memory."""
    monkeypatch.setattr(histogram, "SHARED_BYTES", shared_bytes)
    monkeypatch.setattr(layout, "CHUNK_ROWS", 70)
    sample = table(criterion, weighted, d=9)
    cells = []
    for backend in pair(sample, make_task(criterion, sample), 16):
        whole, parts = backend.new_histograms(2), backend.new_histograms(3)
        backend.histogram(np.array([100, 0]), np.array([250, 100]), whole, np.array([1, 0]))
        backend.histogram(np.array([20]), np.array([60]), parts, np.array([2]))
        backend.subtract(whole, np.array([0]), parts, np.array([2]), np.array([0]))
        cells.append((whole, parts))
    for expected, found in zip(*cells, strict=True):
        assert host(expected).dtype == host(found).dtype
        assert_equal(expected, found)


@pytest.mark.parametrize("leaf", [1, 15])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_scores_and_splits(device, criterion, weighted, leaf):
    sample = table(criterion, weighted)
    task = make_task(criterion, sample, min_samples_leaf=leaf, min_weight_leaf=9, max_features=3)
    begin, end = np.array([120, 0, 90]), np.array([250, 90, 120])
    slots, keys = np.array([1, 0, 2]), np.array([1, 2**63 + 5, 77], np.uint64)
    results = []
    for backend in pair(sample, task, 12):
        cells = backend.new_histograms(3)
        backend.histogram(begin, end, cells, slots)
        scores = backend.score(cells, slots)
        results.append((*scores[:5], *backend.refine(begin, end, cells, slots, scores, keys)))
    for place, (expected, found) in enumerate(zip(*results, strict=True)):
        assert_equal(expected, found, place)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [True, False])
def test_partition(device, monkeypatch, dtype, exact):
    monkeypatch.setattr(partition, "PARTITION_ROWS", 300)
    sample = table("gini", False, n=900, dtype=dtype)
    task = make_task("gini", sample, exact=exact)
    begin, end = np.array([0, 500]), np.array([480, 900])
    results = []
    for backend in pair(sample, task, 10):
        cells = backend.new_histograms(2)
        slots, keys = np.arange(2), np.zeros(2, np.uint64)
        backend.histogram(begin, end, cells, slots)
        scores = backend.score(cells, slots)
        splits = backend.refine(begin, end, cells, slots, scores, keys)
        assert (splits.feature >= 0).all()
        results.append((*backend.partition(begin, end, splits), backend.entries))
    for expected, found in zip(*results, strict=True):
        assert_equal(expected, found)


@pytest.mark.parametrize("shared_bytes", [48 * 1024, 8])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_node_statistics(device, monkeypatch, criterion, weighted, shared_bytes):
    if criterion != "squared_error":  # its four sums always fit
        monkeypatch.setattr(partition, "SHARED_BYTES", shared_bytes)
    monkeypatch.setattr(layout, "CHUNK_ROWS", 100)
    sample = table(criterion, weighted)
    cpu, cuda = pair(sample, make_task(criterion, sample))
    begin, end = np.array([0, 30, 30]), np.array([30, 250, 31])
    assert_equal(cpu.node_statistics(begin, end), cuda.node_statistics(begin, end))


@pytest.mark.parametrize("max_features", [4, 2])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_subtrees(device, monkeypatch, criterion, weighted, max_features):
    monkeypatch.setattr(finish, "SORTED_PAIRS", 500)  # more than one batch
    sample = table(criterion, weighted)
    task = make_task(criterion, sample, max_features=max_features, max_depth=6)
    begin, end, depth = np.array([150, 0, 60]), np.array([250, 60, 150]), np.array([0, 3, 6])
    keys = np.array([1, 2**63 + 5, 77], np.uint64)
    cpu, cuda = pair(sample, task)
    expected, found = (b.finish(begin, end, depth, keys) for b in (cpu, cuda))
    assert_equal(cpu.entries, cuda.entries)
    for a, b in zip(expected.root, found.root, strict=True):  # numbered in different orders
        trees = breadth_first(expected, int(a)), breadth_first(found, int(b))
        for name, x, y in zip(Nodes._fields, *trees, strict=True):
            assert_equal(x, y, name)


def breadth_first(subtrees, root):
    """The subtree under `root`, numbered breadth-first."""
    child = subtrees.first_child
    moved = np.where(child < 0, -1, (child - root) % child.size)
    fields = (np.roll(field, -root) for field in (moved, *subtrees[2:]))
    return renumber(Nodes(*fields))[0]


# ----------------------------------------------------------------------- trees
@pytest.mark.parametrize("finish_rows", [1, 40, None])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_trees(device, criterion, weighted, exact, finish_rows):
    n = 90 if device == "check" else 200
    dtype = np.float32 if weighted else np.float64
    sample = table(criterion, weighted, n=n, dtype=dtype, seed=11)
    task = make_task(criterion, sample, exact=exact)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=12)


@pytest.mark.parametrize("finish_rows", [1, 30])
def test_drawn_columns(device, finish_rows):
    sample = table("gini", False, n=120, d=6)
    task = make_task("gini", sample, max_features=1, min_samples_leaf=4)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=6)


@pytest.mark.parametrize("finish_rows", [1, 30])
def test_entropy_of_many_classes(device, finish_rows):
    sample = table("entropy", True, n=120)
    task = make_task("entropy", sample)
    criterion = ManyClassEntropy(3, task.criterion.unit, 2.0**40)
    task = dataclasses.replace(task, criterion=criterion)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=6)


def test_more_columns_than_lanes(device):
    sample = table("entropy", False, n=60, d=70)
    for max_features in (70, 3):
        task = make_task("entropy", sample, max_features=max_features)
        assert_same_tree(sample, task, finish_rows=25, max_bins=8)


def test_rows_are_refined_in_batches(device, monkeypatch):
    monkeypatch.setattr(refine, "GATHERED_PAIRS", 40)
    sample = table("squared_error", False, n=150)
    assert_same_tree(sample, make_task("squared_error", sample), finish_rows=20, max_bins=4)


def test_levels_make_few_copies_to_the_host(device):
    if device == "gpu":
        pytest.skip("copies are counted by the emulator")
    sample = table("gini", False, n=400)
    task = make_task("gini", sample, max_depth=5)
    _, cuda = pair(sample, task, 16)
    cuda.encode = lambda max_bins: None
    before = transfers["to host"]
    grown(cuda, sample, task, finish_rows=1)
    # a level: slots to gather, twice; splits; middles. Then finishing, entries, statistics
    assert transfers["to host"] - before <= 5 * 4 + 12


@given(problem=problems())
@settings(max_examples=15)
def test_tables_where_everything_ties(device, problem):
    criterion, sample = problem
    task = make_task(criterion, sample)
    for finish_rows in (1, None):
        assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=3)


# ------------------------------------------------------------------- estimators
def test_an_estimator_on_the_device(device):
    sample = table("gini", True, n=300)
    trees = []
    for name in ("cpu", "cuda"):
        model = DecisionTreeClassifier(device=name, criterion="entropy", max_depth=4)
        trees.append(model.fit(sample.values, sample.y, sample.weight).tree_)
    for field in ("feature", "threshold", "statistics", "impurity", "gain", "n_rows"):
        assert_equal(*(getattr(tree, field) for tree in trees), field)


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"device='cuda' needs cupy.*gputree-learn\[cuda13\]"):
        kernels.cupy()
