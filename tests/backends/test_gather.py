"""Rows of some bins, collected."""

from __future__ import annotations

import numpy as np
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from strategies import Sample, make_task

from gputree import CodedTable, DecisionTreeClassifier
from gputree.backends.cpu import gather
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.jit import kernel
from gputree.backends.cpu.table import CpuTable


@kernel
def collect(table, entries, begin, end, f, bins, is_first, rows, kept, codes_read):
    return gather.collect_rows(
        table, entries, begin, end, f, bins, is_first, rows, kept, codes_read
    )


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 5), st.booleans(), st.booleans()
)
def test_rows_of_marked_bins_are_collected(seed, n, d, is_first, kept):
    rng = np.random.default_rng(seed)
    table = CpuTable(rng.normal(size=(n, d)), np.zeros(d, bool)).coded(6, True, 1)
    entries = rng.permutation(n).astype(np.int32)
    begin, end = np.sort(rng.integers(0, n + 1, 2))
    bins = np.where(rng.random(6) < 0.5, rng.integers(0, 9, 6), -1)
    f = int(rng.integers(d))
    rows = np.empty(n, np.int32)
    codes_read = np.full(n, 77, np.uint8)
    found = collect(table, entries, begin, end, f, bins, is_first, rows, kept, codes_read)
    expected = [row for row in entries[begin:end] if bins[table.codes[row, f]] >= 0]
    assert rows[:found].tolist() == expected
    codes = np.full(n, 77, np.uint8)
    if kept:
        codes[begin:end] = table.codes[entries[begin:end], f]
    assert (codes_read == codes).all()


def test_codes_that_were_read_are_those_that_partition_takes():
    """By node, wherever batches begin; nodes that are not split are passed over."""
    sample = Sample(np.zeros((100, 3)), np.arange(100) % 2, None)
    table = CpuTable(sample.values, np.zeros(3, bool))
    backend = CpuBackend(table, make_task("gini", sample), 1)
    for begin, columns in (([0, 20], [2, -1]), ([50, 70], [0, 1])):
        lead = backend._new_lead(np.array(begin))
        lead.column[:] = columns
        assert lead.code.size == 100
    assert backend._take_lead(np.array([20, 50, 70])).column.tolist() == [-1, 0, 1]
    assert backend._take_lead(np.array([0, 50])).column.tolist() == [-1, -1]


@pytest.mark.full
@pytest.mark.parametrize("counted_rows", [1, np.inf])
def test_nodes_of_more_rows_than_are_looked_through_at_once(monkeypatch, counted_rows):
    """One column at a time and several, sorted and counted: the tree of small nodes alone."""
    n = gather.GATHER_ROWS + 700
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
