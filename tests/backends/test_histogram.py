"""Histograms and their differences, against one addition a row."""

import numpy as np
import pytest
from devices import host_codes, to_host
from hypothesis import given
from hypothesis import strategies as st
from oracles import row_statistics
from strategies import PROBLEMS, is_regression, make_task, problems, random_sample

from gputree.backends.base import Larger


def naive_histogram(device, task, rows):
    """Cells of one node: bin by bin, channel by channel."""
    codes, offset = host_codes(device), to_host(device.table.offset)
    statistics = row_statistics(task)
    if task.rows.weight is not None:
        statistics = np.column_stack([statistics, np.ones(len(statistics), np.int64)])
    cells = np.zeros((offset[-1], statistics.shape[1]), np.int64)
    for row in rows:
        for f in range(codes.shape[1]):
            cells[offset[f] + codes[row, f]] += statistics[row]
    return cells.ravel()


@given(problems(), st.integers(2, 6), st.data())
def test_histogram(backend, problem, max_bins, data):
    criterion, sample = problem
    task = make_task(criterion, sample)
    device = backend(sample, task)
    device.encode(max_bins)
    n = len(sample.y)
    middle = data.draw(st.integers(0, n))
    begin, end = np.array([middle, 0]), np.array([n, middle])
    out = device.new_histograms(4)
    assert to_host(out).shape == (4, device.histogram_cells * device.channels)
    assert to_host(out).nbytes == 4 * device.histogram_bytes
    assert not to_host(out).any()
    device.histogram(begin, end, out, np.array([3, 1]))
    assert (to_host(out)[3] == naive_histogram(device, task, range(middle, n))).all()
    assert (to_host(out)[1] == naive_histogram(device, task, range(middle))).all()
    assert not to_host(out)[[0, 2]].any()


@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_the_larger_sibling_is_a_difference(backend, criterion, weighted):
    sample = random_sample(3, 200, 4, 0 if is_regression(criterion) else 4, weighted)
    task = make_task(criterion, sample)
    device = backend(sample, task, 2)
    device.encode(16)
    whole, parts = device.new_histograms(3), device.new_histograms(4)
    device.histogram(np.array([0, 90]), np.array([90, 200]), whole, np.array([2, 0]))
    larger = Larger(whole, np.array([2, 0]), np.array([1, 3]), np.array([2, 0]))
    device.histogram(np.array([0, 90]), np.array([30, 100]), parts, np.array([1, 3]), larger)
    device.score(parts, np.arange(4))
    assert (to_host(parts)[2] == naive_histogram(device, task, range(30, 90))).all()
    assert (to_host(parts)[0] == naive_histogram(device, task, range(100, 200))).all()


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("squared_error", True)])
def test_chunks_add_up(backend, chunk_rows, criterion, weighted, n_threads):
    """Many chunks of a node are counted side by side and added."""
    sample = random_sample(5, 700, 3, 0 if is_regression(criterion) else 3, weighted)
    task = make_task(criterion, sample)
    device = backend(sample, task, n_threads)
    device.encode(8)
    chunk_rows(16)
    out = device.new_histograms(3)
    begin, end = np.array([0, 1, 641]), np.array([1, 641, 700])
    device.histogram(begin, end, out, np.arange(3))
    for j in range(3):
        assert (to_host(out)[j] == naive_histogram(device, task, range(begin[j], end[j]))).all()
