"""The chosen split of a node against all of its cuts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import best_cut, gain, row_statistics
from strategies import Sample, make_task, problems, random_problems

from gputree.backends.base import Splits
from gputree.backends.binning import midpoint, midpoints
from gputree.backends.cpu.cut import new_cut, no_cut, precedes
from gputree.compilation import kernel


def refined(backend, sample, task, max_bins, begin, end, keys=None):
    """Splits of the nodes, the thresholds that partitioning gives them, and the backend."""
    device = backend(sample, task)
    device.encode(max_bins)
    slots = np.arange(begin.size)
    cells = device.new_histograms(begin.size)
    device.histogram(begin, end, cells, slots)
    keys = np.zeros(begin.size, np.uint64) if keys is None else keys
    splits = device.refine(begin, end, cells, slots, device.score(cells, slots), keys)
    found = splits.feature >= 0
    threshold = np.full(begin.size, np.nan)
    if found.any():
        threshold[found] = device.partition(begin[found], end[found], splits.take(found))[1]
    return splits, threshold, device


def check(backend, problem, max_bins, data, **limits):
    criterion, sample = problem
    task = make_task(criterion, sample, **limits)
    n = len(sample.y)
    middle = data.draw(st.integers(1, n - 1))
    begin, end = np.array([middle, 0]), np.array([n, middle])
    keys = np.array([5, 2**63 + 11], np.uint64)
    splits, threshold, _ = refined(backend, sample, task, max_bins, begin, end, keys)
    for j in range(2):
        rows = np.arange(begin[j], end[j])
        cut = best_cut(sample.values, task, rows, int(keys[j]))
        total = row_statistics(task)[rows].sum(axis=0)
        weight = int(total[0] if not task.n_classes else total.sum())
        if (
            cut is None
            or gain(task.criterion, cut.score, total) * weight < task.limits.min_decrease
        ):
            assert splits.feature[j] == -1
            continue
        assert splits.feature[j] == cut.feature
        assert splits.gain[j] == gain(task.criterion, cut.score, total)
        assert splits.weight[j] == weight
        assert splits.missing_left[j] == cut.missing_left
        assert splits.seen_missing[j] == np.isnan(sample.values[rows, cut.feature]).any()
        assert threshold[j] == cut.threshold


@given(problems(), st.integers(2, 6), st.data())
def test_the_best_cut_is_found(backend, problem, max_bins, data):
    check(backend, problem, max_bins, data)


@given(random_problems(200), st.integers(2, 40), st.integers(1, 8), st.integers(0, 9), st.data())
def test_the_best_admissible_cut_is_found(backend, problem, max_bins, leaf, weight, data):
    check(
        backend, problem, max_bins, data,
        min_samples_leaf=leaf, min_weight_leaf=weight, min_decrease=0.01 * len(problem[1].y),
        max_features=data.draw(st.integers(1, problem[1].values.shape[1])),
        random_ties=data.draw(st.booleans()),
    )  # fmt: skip


# -------------------------------------------------------------------- tie rule


@pytest.mark.parametrize("unit", [0.0, 2.0**-53])
def test_targets_a_unit_apart(backend, unit):
    """Building a small subtree and refining agree about equal targets."""
    y = np.array([0.0, 1.0, 0.25, 0.25 + unit, 0.25 + unit])
    sample = Sample(np.array([[0.0, 0, 1, 2, 2]]).T, y, np.array([1.0, 1, 1, 1, 3]))
    task = make_task("squared_error", sample)
    cut = best_cut(sample.values, task, np.array([2, 3, 4]))
    splits, _, _ = refined(backend, sample, task, 256, np.array([2]), np.array([5]))
    assert (splits.feature[0] == -1) == (cut is None)
    assert cut is None or unit


@pytest.mark.parametrize("weight", [None, [1.0, 1.0, 1.0, 9.0, 1.0, 1.0]])
def test_equal_targets_are_not_split(backend, weight):
    """The sum of the first five passes 2**54 units: their mean in float64 is not their value."""
    y = np.array([0.9, 0.9, 0.9, 0.9, 0.9, -0.9])
    weight = None if weight is None else np.array(weight)
    sample = Sample(np.arange(6.0)[:, None], y, weight)
    task = make_task("squared_error", sample)
    splits, _, _ = refined(backend, sample, task, 256, np.array([0, 0]), np.array([5, 6]))
    assert splits.feature.tolist() == [-1, 0]


# ---------------------------------------------------------------------- drawing


def test_few_bins_are_looked_into(backend):
    """One column separates the classes: the bounds of all others are below its score."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5000, 10))
    sample = Sample(values, (values[:, 3] > 0.1).astype(np.uint8), None)
    task = make_task("gini", sample)
    ends = np.array([5000])
    splits, _, device = refined(backend, sample, task, 256, np.array([0]), ends)
    assert splits.feature[0] == 3
    assert isinstance(splits, Splits)
    assert 0 < device.refined_pairs <= 0.001 * device.scanned_pairs


# ------------------------ thresholds of cuts, and their order: rules that kernels and arrays share
KNOWN = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(KNOWN, KNOWN).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_thresholds_part_neighbours(pairs):
    low, high = np.array(pairs).T
    threshold = midpoints(low, high)
    assert ((low <= threshold) & (threshold < high)).all()
    assert threshold.tolist() == [midpoint(a, b) for a, b in pairs]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threshold_of_values_next_to_each_other(dtype):
    low = dtype(1)
    high = np.nextafter(low, dtype(2))
    assert midpoint(low, high) == (low if dtype is np.float64 else 1 + 2.0**-24)


@kernel
def is_chosen(a, b):
    one, other = new_cut(*a, rank=9 - a[1]), new_cut(*b, rank=9 - b[1])
    return precedes(one, other), precedes(no_cut(), one)


def test_one_of_two_cuts_precedes():
    """Order of cuts: score, rank of column, missing values right, bin, at its end, threshold."""
    fields = [1.0, 0.5], [1, 0], [False, True], [0, 1], [False, True], [-1.0, 2.0]
    cuts = list(enumerate(itertools.product(*fields)))
    for (i, a), (j, b) in itertools.product(cuts, repeat=2):
        assert is_chosen(a, b) == (i < j, False)
