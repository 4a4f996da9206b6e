"""Stable partition of entries, and the statistics of nodes."""

import numpy as np
import pytest
from devices import host_codes, to_host, tune
from hypothesis import given
from hypothesis import strategies as st
from oracles import midpoint, row_statistics
from strategies import PROBLEMS, is_regression, make_task, problems, random_sample

from gputree import CodedTable, DecisionTreeClassifier
from gputree.backends.base import Splits
from gputree.backends.cpu import sub_bins
from gputree.backends.cpu.table import CpuTable
from gputree.compilation import kernel


def split_at(device, sample, rows, f, place, missing_left):
    """A split after bin `place` of column f, as `refine` describes it, and who goes left."""
    codes, column = host_codes(device)[rows, f], sample.values[rows, f]
    known = ~np.isnan(column)
    after = codes[known & (codes > place)]
    goes_left = np.where(known, codes <= place, missing_left)
    low = column[known & (codes == place)].max(initial=-np.inf)
    high = column[known & (codes == after.min(initial=255))].min(initial=np.inf)
    threshold = midpoint(low, high) if after.size else np.inf
    split = Splits.none(1)._replace(
        feature=np.array([f], np.int32),
        cut_bin=np.array([place], np.int32),
        next_bin=np.array([after.min() if after.size else -1], np.int32),
        missing_left=np.array([missing_left]),
    )
    return split, goes_left, threshold


def check_children(device, before, goes_left, begin, middle):
    """Rows of a node keep their order in both children."""
    expected = np.concatenate([before[goes_left], before[~goes_left]])
    after = to_host(device.entries)[begin : begin + before.size]
    assert after.tolist() == expected.tolist()
    assert middle == begin + goes_left.sum()


@given(problems(), st.integers(2, 6), st.booleans(), st.data())
def test_cuts_between_bins(backend, problem, max_bins, missing_left, data):
    criterion, sample = problem
    device = backend(sample, make_task(criterion, sample))
    device.encode(max_bins)
    n, d = sample.values.shape
    f = data.draw(st.integers(0, d - 1))
    known = np.flatnonzero(~np.isnan(sample.values[:, f]))
    if not known.size:
        return
    place = int(host_codes(device)[data.draw(st.sampled_from(known.tolist())), f])
    rows = np.arange(n)
    split, goes_left, threshold = split_at(device, sample, rows, f, place, missing_left)
    middle, found = device.partition(np.array([0]), np.array([n]), split)
    check_children(device, rows, goes_left, 0, middle[0])
    assert found[0] == threshold


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("rows_at_a_time", [16, 64, 1 << 16])
def test_chunks_and_threads_leave_the_order_alone(backend, chunk_rows, n_threads, rows_at_a_time):
    """Three nodes, between bins and inside one, twice in a row."""
    sample = random_sample(8, 1000, 4, 3)
    device = backend(sample, make_task("gini", sample), n_threads)
    device.encode(8)
    chunk_rows(rows_at_a_time)
    begin, end = np.array([0, 10, 500]), np.array([10, 500, 1000])
    for f in (0, 3):
        before = to_host(device.entries).copy()
        splits, left, thresholds = [], [], []
        for j in range(3):
            rows = before[begin[j] : end[j]]
            codes = host_codes(device)[rows, f][~np.isnan(sample.values[rows, f])]
            split, goes_left, threshold = split_at(
                device, sample, rows, f, int(np.median(codes)), j == 1
            )
            if j == 2:  # inside the bin, at one of its values
                column = sample.values[rows, f]
                threshold = np.median(column[~np.isnan(column)])
                place = host_codes(device)[rows[column == threshold][0], f]
                split = split._replace(
                    cut_bin=np.array([place], np.int32),
                    inside=np.array([True]),
                    threshold=np.array([threshold]),
                )
                goes_left = column <= threshold
            splits.append(split)
            left.append(goes_left)
            thresholds.append(threshold)
        joined = Splits(*(np.concatenate(field) for field in zip(*splits, strict=True)))
        middle, found = device.partition(begin, end, joined)
        assert found.tolist() == thresholds
        for j in range(3):
            check_children(device, before[begin[j] : end[j]], left[j], begin[j], middle[j])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_node_statistics(backend, criterion, weighted, n_threads):
    sample = random_sample(9, 300, 2, 0 if is_regression(criterion) else 5, weighted)
    task = make_task(criterion, sample)
    device = backend(sample, task, n_threads)
    statistics = row_statistics(task)
    if not task.n_classes:
        statistics = np.column_stack([statistics, task.rows.square_rest])
    begin, end = np.array([0, 120, 7]), np.array([300, 121, 7])
    found = to_host(device.node_statistics(begin, end))
    assert found.tolist() == [
        statistics[a:b].sum(axis=0).tolist() for a, b in zip(begin, end, strict=True)
    ]


# ------------------------------------------------------------------ rows of some bins, collected
@kernel
def collect(table, entries, begin, end, f, candidate, is_first, rows, codes, to):
    return sub_bins.collect_rows(
        table, entries, begin, end, f, candidate, is_first, rows, codes, to
    )


@kernel
def collect_fine(fine, entries, begin, end, f, candidate, rows, codes):
    return sub_bins.collect_fine(fine, entries, begin, end, f, candidate, rows, codes)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 5), st.booleans())
def test_rows_of_marked_bins_are_collected(seed, n, d, is_first):
    rng = np.random.default_rng(seed)
    table = CpuTable(rng.normal(size=(n, d)), np.zeros(d, bool)).coded(6, True, 1)
    entries = rng.permutation(n).astype(np.int32)
    begin, end = np.sort(rng.integers(0, n + 1, 2))
    f = int(rng.integers(d))
    candidate = (rng.random(6) < 0.5).astype(np.uint8)
    before = rng.integers(0, n, 3)
    rows, codes = np.append(before, np.zeros(n + 1)).astype(np.int32), np.empty(n + 4, np.uint16)
    found = collect(table, entries, begin, end, f, candidate, is_first, rows, codes, 3)
    expected = [row for row in entries[begin:end] if candidate[table.codes[row, f]]]
    assert rows[:found].tolist() == before.tolist() + expected
    assert (codes[3:found] == 256 * table.codes[expected, f].astype(int)).all()
    fine = 256 * table.codes.T.astype(np.uint16) + rng.integers(0, 256, (d, n), np.uint16)
    found = collect_fine(fine, entries, begin, end, f, candidate, rows, codes)
    assert rows[:found].tolist() == expected
    assert (codes[:found] == fine[f, expected]).all()


@pytest.mark.full
@pytest.mark.parametrize("counted_rows", [1, np.inf])
def test_nodes_of_more_rows_than_are_looked_through_at_once(monkeypatch, counted_rows):
    """One column at a time and several, sorted and counted: the tree of small nodes alone."""
    n = sub_bins.GATHER_ROWS + 700
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + rng.normal(size=n) > 0
    model = DecisionTreeClassifier(max_depth=7)
    tune(monkeypatch, "cpu", counted_rows=counted_rows, counted_table_rows=1, cell_rows=1)
    expected = model.fit(CodedTable(X, max_bins=16, device="cpu"), y).tree_
    monkeypatch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
    tree = model.fit(CodedTable(X, max_bins=16, device="cpu"), y).tree_
    assert model.growth_report_["refined_pairs"] > n
    assert tree.equals(expected)
