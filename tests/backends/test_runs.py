"""Runs of the categories of a node: their rows, against dictionaries, and their order."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.base import Rows, SubsetSearch
from gputree.backends.cpu import categories as categories_
from gputree.backends.cpu import runs as runs_
from gputree.backends.cpu import subsets
from gputree.backends.cpu.runs import new_runs
from gputree.compilation import kernel
from gputree.criteria.dispatch import Gini


@kernel
def order(runs, count, channels):
    runs_.order_runs(runs, count, channels)


@given(st.integers(0, 10**6), st.integers(1, 400), st.sampled_from([3, 70]), st.booleans())
def test_order_of_runs(seed, count, most_rows, weighted):
    """Few and many runs of two classes, of few and of many rows, of weight 1 and of others."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, most_rows + 1, count)
    weight = rows * rng.integers(1, 3, count) if weighted else rows
    first = rng.integers(0, weight + 1)
    runs = runs_.new_runs(count + 2, 2 * (count + 2))
    runs.begin[: count + 1] = np.append(0, np.cumsum(rows))
    runs.cells[: 2 * count : 2], runs.cells[1 : 2 * count : 2] = first, weight - first
    runs.share[:count] = first / weight
    order(runs, count, 2)
    expected = sorted(
        range(count),
        key=lambda r: (first[r] / weight[r], rows[r], first[r], weight[r] - first[r], r),
    )
    assert runs.order[:count].tolist() == expected


# ------------------ rows of a node by their categories, of columns of many, against dictionaries
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
        last=np.empty(2, np.int64),
        weighted=True,
        regression=False,
    )


@kernel
def collect(scratch, criterion, codes, categories, rows, entries, first, last, held):
    count = categories_.meet_categories(scratch, codes, categories, entries, first, last)
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
    codes = rng.integers(0, categories, n).astype(np.int32)
    codes[rng.random(n) < missing] = -1
    target = rng.integers(0, CLASSES, n).astype(np.uint8)
    weight = rng.integers(1, 9, n)
    entries = rng.permutation(n).astype(np.int32)
    scratch = scratch_for(categories, n)
    for first, last in ((0, n), (n // 3, n)):
        count = collect(
            scratch, Gini(CLASSES, 1.0), codes, categories, Rows(target, weight, None, None),
            entries, first, last, held,
        )  # fmt: skip
        rows = entries[first:last]
        present = sorted(set(codes[rows].tolist()) - {-1})
        runs = scratch.runs
        assert runs.code[:count].tolist() == present
        assert not scratch.seen.any()
        for r, code in enumerate([*present, -1]):
            mine = rows[codes[rows] == code]
            begin, end = runs.begin[r : r + 2]
            assert end - begin == mine.size
            if held:
                sums = np.bincount(target[mine], weight[mine], CLASSES)
                assert runs.cells[r * CLASSES : (r + 1) * CLASSES].tolist() == sums.tolist()
            else:
                assert scratch.item[begin:end].tolist() == mine.tolist()


@pytest.mark.parametrize(("count", "most"), [(5, 5), (5, 3), (1, 1)])
def test_moves_of_one_run(count, most, monkeypatch):
    """Move each run across the cut after every prefix, or after the first and the last."""
    monkeypatch.setattr(subsets, "MOST_MOVED", most)
    rng = np.random.default_rng(count)
    cells, rows = rng.integers(0, 9, (count, 2)), rng.integers(1, 5, count)
    runs = runs_.new_runs(count + 2, 2 * (count + 2))
    runs.begin[: count + 1] = np.append(0, np.cumsum(rows))
    runs.cells[: 2 * count] = cells.ravel()
    runs.order[:count] = order = rng.permutation(count)
    node = SimpleNamespace(number=count, runs=runs, has_sums=True, listed=None, left=np.zeros(2))
    heads = runs.spare[: subsets.list_heads(runs, subsets.MOVED, count)].tolist()
    assert heads == (list(range(count + 1)) if count <= most else [0, count])
    seen, n = set(), 0
    for i in range(len(heads) * count):
        place, added = subsets.next_subset(node, subsets.MOVED, i + 1, 0)
        n += added
        left = [subsets.is_left_of(place, k) for k in range(count)]
        head, moved = heads[i // count], i % count
        assert left == [(k < head) != (k == moved) for k in range(count)]
        assert node.left.tolist() == cells[order[left]].sum(axis=0).tolist()
        assert n == rows[order[left]].sum()
        seen.add(tuple(left))
    assert len(seen) > count or count == 1
