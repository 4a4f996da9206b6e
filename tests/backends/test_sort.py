"""Sorting of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.compilation import kernel

VALUES = st.one_of(
    st.integers(0, 3).map(float), st.floats(allow_nan=False), st.sampled_from([-0.0, 5e-324])
)


@kernel
def sort(values, items, begin, end, depth):
    whole = new_sorter()
    sorter = Sorter(whole.stack[:depth], whole.values, whole.items, whole.rank)
    sort_pairs(values, items, begin, end, sorter)


def check(values, begin, end, depth):
    values = np.array(values)
    items = np.arange(values.size)
    found, moved = values.copy(), items.copy()
    sort(found, moved, begin, end, depth)
    assert (found[begin:end] == np.sort(values[begin:end])).all()
    assert (np.sort(moved[begin:end]) == items[begin:end]).all()
    assert (values[moved] == found).all()
    outside = (items < begin) | (items >= end)
    assert (moved[outside] == items[outside]).all()


@given(st.lists(VALUES, min_size=1, max_size=200), st.data())
def test_ranges_are_sorted_and_the_rest_is_left_alone(values, data):
    begin = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(begin, len(values)))
    check(values, begin, end, 64)


SHAPES = {
    "sorted": np.arange(1000.0),
    "reversed": np.arange(1000.0)[::-1],
    "equal": np.ones(1000),
    "organ pipe": np.minimum(np.arange(1000.0), np.arange(1000.0)[::-1]),
    "saw": np.arange(1000.0) % 7,
    "two values": np.arange(1000.0) % 2,
    "infinities": np.where(np.arange(1000) % 2, np.inf, -np.inf),
    "shuffled": np.random.default_rng(0).permutation(1000.0 * np.arange(1000)),
}


@pytest.mark.parametrize("depth", [64, 1, 3])  # past so many halvings Shell's sort takes over
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_trouble_quicksort(shape, depth):
    check(SHAPES[shape], 0, 1000, depth)
