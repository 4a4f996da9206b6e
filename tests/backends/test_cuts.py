"""Thresholds of cuts, and their order: rules that kernels and arrays share."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.cpu.cut import new_cut, no_cut, precedes
from gputree.backends.rules import midpoint, midpoints
from gputree.compilation import kernel

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
