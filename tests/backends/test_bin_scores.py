"""Scores of boundaries of bins, and bounds of what is inside, against all of a node's cuts."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from devices import host_codes, to_host
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_cuts, column_best, row_statistics
from strategies import Sample, make_task, problems, random_problems

from gputree.backends.base import Bounds, Monotonic
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.table import CpuTable


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
        bounds = Bounds(*(np.full(30, mean) for mean in means), np.zeros(30, np.int64))
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
