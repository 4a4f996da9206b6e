"""The chosen split of a node against all of its cuts."""

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from devices import host_codes, to_host
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_cuts, best_cut, column_best, gain, row_statistics
from strategies import Sample, make_task, problems, random_problems

from gputree.backends.base import Bounds, Monotonic, Splits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.cut import new_cut, no_cut, precedes
from gputree.backends.cpu.table import CpuTable
from gputree.backends.rules import midpoint, midpoints
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
    values = rng.normal(size=(20_000, 10))
    sample = Sample(values, (values[:, 3] > 0.1).astype(np.uint8), None)
    task = make_task("gini", sample)
    ends = np.array([20_000])
    splits, _, device = refined(backend, sample, task, 256, np.array([0]), ends)
    assert splits.feature[0] == 3
    assert isinstance(splits, Splits)
    assert 0 < device.refined_pairs <= 0.001 * device.scanned_pairs


# -------------------------------------------------------------- rules that kernels and arrays share
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


# --------------------------------------------------------------------- scores of boundaries of bins
def scored(backend, sample, task, max_bins, middle):
    """Scores of the nodes of rows ``middle ..`` and ``.. middle``, and the backend."""
    device = backend(sample, task)
    device.encode(max_bins)
    begin, end = np.array([middle, 0]), np.array([len(sample.y), middle])
    cells = device.new_histograms(3)
    device.histogram(begin, end, cells, np.array([2, 0]))
    return device, device.score(cells, np.array([2, 0])), (range(middle, end[0]), range(middle))


def check_scores(backend, problem, max_bins, data, **limits):
    criterion, sample = problem
    task = make_task(criterion, sample, **limits)
    middle = data.draw(st.integers(1, len(sample.y) - 1))
    device, scores, nodes = scored(backend, sample, task, max_bins, middle)
    codes = host_codes(device).astype(np.float64)
    codes[np.isnan(sample.values)] = np.nan
    coded = sample._replace(values=codes)
    for j, rows in enumerate(nodes):
        rows = np.array(rows)
        total = row_statistics(task)[rows].sum(axis=0)
        assert (to_host(scores.total)[j, : total.size] == total).all()
        for f in range(codes.shape[1]):
            check_column(task, sample, coded, rows, f, [to_host(field)[j] for field in scores[:5]])


def check_column(task, sample, coded, rows, f, scores):
    """Best boundary: the best cut of the codes. Bound: above all cuts between equal codes."""
    _, best, bins, sides, bounds = (field if i == 0 else field[f] for i, field in enumerate(scores))
    expected = column_best(coded.values, task, rows, f)
    if expected is None:
        assert best == -np.inf
    else:
        goes_left = coded.values[rows, f] <= bins
        goes_left[np.isnan(coded.values[rows, f])] = sides
        assert (best, sides) == (expected.score, expected.missing_left)
        assert (goes_left == expected.goes_left).all()
    column, code = sample.values[rows, f], coded.values[rows, f]
    inside = [
        cut.score
        for cut in all_cuts(sample.values, task, rows, f)
        if splits_a_bin(cut.goes_left, column, code)
    ]
    if inside:
        margin = 1e-9 * max(abs(max(inside)), len(rows) * 16.0)
        assert bounds >= max(inside) - margin


def splits_a_bin(goes_left, column, code) -> bool:
    known = ~np.isnan(column)
    return bool(np.intersect1d(code[known & goes_left], code[known & ~goes_left]).size)


@given(problems(), st.integers(2, 6), st.data())
def test_boundaries_and_bounds(backend, problem, max_bins, data):
    check_scores(backend, problem, max_bins, data)


@given(random_problems(60), st.integers(2, 9), st.integers(1, 10), st.integers(0, 40), st.data())
def test_limits_of_the_sides(backend, problem, max_bins, leaf, weight, data):
    check_scores(backend, problem, max_bins, data, min_samples_leaf=leaf, min_weight_leaf=weight)


@given(problems(), st.data())
def test_lossless_bins_are_not_bounded(backend, problem, data):
    """Nothing can be cut in a bin of one value."""
    criterion, sample = problem
    middle = data.draw(st.integers(1, len(sample.y) - 1))
    _, scores, _ = scored(backend, sample, make_task(criterion, sample), 256, middle)
    assert (to_host(scores.bound) == -np.inf).all()


@pytest.mark.parametrize("power", [10, 25, 26, 27, 30])
def test_two_classes_of_many_rows(power):
    """Counts up to and beyond the bound up to which float64 represents their squares."""
    rng = np.random.default_rng(power)
    sample = Sample(np.arange(80.0)[:, None], np.arange(80) % 2, None)
    table = CpuTable(sample.values, np.zeros(1, bool))
    backend = CpuBackend(table, make_task("gini", sample), 1)
    backend.encode(16)
    cells = backend.new_histograms(60)
    share = rng.random(cells.shape) ** 4
    cells[:] = share / share.sum(axis=1, keepdims=True) * (2.0**power - 100)
    scores = backend.score(cells, np.arange(60))
    for histogram, best, place in zip(
        cells.tolist(), scores.best[:, 0], scores.bin[:, 0], strict=True
    ):
        first, second = (
            np.cumsum(histogram[::2], dtype=object),
            np.cumsum(histogram[1::2], dtype=object),
        )
        found = [
            share_of_squares(a, b) + share_of_squares(first[-1] - a, second[-1] - b)
            for a, b in zip(first[:-1], second[:-1], strict=True)
        ]
        assert (best, place) == (max(found), int(np.argmax(found)))


def share_of_squares(a: int, b: int) -> float:
    """Sum of squares over sum, in integers until it is divided; no side is empty."""
    return float(a * a + b * b) / float(a + b) if a + b else -np.inf


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 8, 200]),
    st.sampled_from([1, 2, 30]),
    st.sampled_from([None, (-np.inf, np.inf), (0.2, 0.7)]),
    st.sampled_from([-1, 0, 1]),
)
def test_vectors_score_as_bins_one_by_one(seed, bins, leaf, means, sign):
    """Two classes, with bins and sides without rows, missing values, limits and order."""
    rng = np.random.default_rng(seed)
    values = np.append(np.arange(400.0), np.nan)[:, None]
    sample = Sample(values, np.arange(401) % 2, None)
    task = make_task("gini", sample, min_samples_leaf=leaf)
    bounds = None
    if means is not None:
        held = Monotonic(np.array([sign], np.int8))
        task = replace(task, limits=task.limits._replace(monotonic=held))
        bounds = Bounds(*(np.full(30, mean) for mean in means))
    backend = CpuBackend(CpuTable(values, np.ones(1, bool)), task, 1)
    backend.encode(bins + 1)
    cells = backend.new_histograms(30)
    begin, end = np.sort(rng.integers(0, bins + 1, (2, 30)), axis=0)
    places = np.arange(cells.shape[1] // 2)
    filled = (begin[:, None] <= places) & (places < end[:, None]) | (places == places[-1])
    cells[:] = rng.integers(0, 9, cells.shape) * np.repeat(filled, 2, axis=1)
    cells[cells.sum(axis=1) == 0, 0] = 3
    cells *= rng.random(cells.shape) < rng.choice([0.3, 1.0])
    scores = backend.score(cells, np.arange(30), bounds)
    with mock.patch("gputree.backends.cpu.backend.new_vectors", return_value=None):
        expected = backend.score(cells, np.arange(30), bounds)
    assert (scores.best == expected.best).all()
    found = scores.best > -np.inf
    assert (scores.bin == expected.bin)[found].all()
    assert (scores.missing_left == expected.missing_left)[found].all()
    np.testing.assert_allclose(scores.bound, expected.bound, rtol=1e-13)
