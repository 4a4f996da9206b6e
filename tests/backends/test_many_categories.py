"""Rows of a node by their categories, of columns of many, against dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.cpu import categories as categories_
from gputree.backends.cpu.jit import kernel
from gputree.backends.cpu.layout import Rows
from gputree.backends.cpu.runs import new_runs
from gputree.backends.subsets import SubsetSearch
from gputree.criteria.kinds import Gini

CLASSES = 3


def scratch_for(categories, rows):
    return categories_.Scratch(
        search=SubsetSearch(0, 0.0, 0, 0),
        categories=np.array([categories]),
        runs=new_runs(rows + 2, CLASSES * (rows + 2)),
        sums=np.empty((3, CLASSES), np.int64),
        class_of=np.arange(CLASSES, dtype=np.int32),
        seen=np.zeros(-(-categories // 64), np.uint64),
        place=np.empty(categories, np.int32),
        met=np.empty(rows, np.int32),
        item=np.empty(rows, np.int32),
        weighted=True,
        regression=False,
    )


@kernel
def collect(scratch, criterion, own, categories, rows, entries, first, last, held):
    count = categories_.meet_categories(scratch, own, categories, entries, first, last)
    if held:
        categories_.add_rows(scratch, criterion, rows, entries, first, last, count, CLASSES)
    else:
        categories_.list_rows(scratch, entries, first, last, count)
    return count


@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 64, 65, 700, 300_000]),
    st.integers(1, 400),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_runs_of_a_node(seed, categories, n, held, missing):
    """Few and many of the categories are present; what was seen is forgotten for the next node."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, categories, n).astype(np.int32)
    own[rng.random(n) < missing] = -1
    target = rng.integers(0, CLASSES, n).astype(np.uint8)
    weight = rng.integers(1, 9, n)
    entries = rng.permutation(n).astype(np.int32)
    scratch = scratch_for(categories, n)
    for first, last in ((0, n), (n // 3, n)):
        count = collect(
            scratch, Gini(CLASSES, 1.0), own, categories, Rows(target, weight, None, None), entries,
            first, last, held,
        )  # fmt: skip
        rows = entries[first:last]
        present = sorted(set(own[rows].tolist()) - {-1})
        runs = scratch.runs
        assert runs.code[:count].tolist() == present
        assert not scratch.seen.any()
        for r, code in enumerate([*present, -1]):
            mine = rows[own[rows] == code]
            begin, end = runs.begin[r : r + 2]
            assert end - begin == mine.size
            if held:
                sums = np.bincount(target[mine], weight[mine], CLASSES)
                assert runs.cells[r * CLASSES : (r + 1) * CLASSES].tolist() == sums.tolist()
            else:
                assert scratch.item[begin:end].tolist() == mine.tolist()
