"""Sorting of pairs, and radix sort of columns against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gputree.backends.cpu import sort as sorting
from gputree.backends.cpu.sort import Sorter, new_sorter, radix_argsort, sort_pairs
from gputree.backends.devices import code_columns
from gputree.base.dtypes import MISSING_CODE
from gputree.compilation import kernel
from gputree.compilation.tiers import is_never

VALUES = st.one_of(
    st.integers(0, 3).map(float), st.floats(allow_nan=False), st.sampled_from([-0.0, 5e-324])
)


@pytest.fixture(autouse=True, scope="module")
def insertion_as_compiled():
    """Sort short runs by rank also where kernels are interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        if is_never():
            patch.setattr(sorting, "insertion_pairs", lambda: sorting.FEWEST_PAIRS)
        yield


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


# --------------------------------------------------------------------------------------- radix sort
def floats(width):
    return st.floats(width=width, allow_infinity=True, allow_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_order_is_numpys(dtype, data):
    width = 8 * np.dtype(dtype).itemsize
    shape = st.integers(1, 60)
    column = data.draw(arrays(dtype, shape, elements=floats(width)))
    order, keys = radix_argsort(column.copy())
    expected = np.argsort(column, kind="stable")
    np.testing.assert_array_equal(order, expected)
    ordered = column[order]
    same = (ordered[1:] == ordered[:-1]) | (np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    np.testing.assert_array_equal(keys[1:] == keys[:-1], same)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_columns(dtype):
    rng = np.random.default_rng(0)
    for column in (rng.normal(size=5000), rng.integers(0, 50, 5000), np.zeros(900)):
        column = column.astype(dtype)
        column[::7] = np.nan
        np.testing.assert_array_equal(radix_argsort(column)[0], np.argsort(column, kind="stable"))


def test_codes_number_the_distinct_values():
    values = np.array(
        [[2.5, 1.0], [np.nan, 0.0], [-1.0, np.nan], [2.5, 1.0], [0.0, 3.0], [-0.0, 1.0]]
    )
    codes, distinct = code_columns(np.asfortranarray(values), np.array([False, True]), 1)
    np.testing.assert_array_equal(distinct[0], [-1.0, 0.0, 2.5])
    assert distinct[1].size == 0
    by_row = np.empty((2, 6), np.uint32)
    for f in range(2):
        by_row[f, codes.order[f]] = codes.code[f]
    np.testing.assert_array_equal(by_row[0], [2, MISSING_CODE, 0, 2, 1, 1])
    np.testing.assert_array_equal(by_row[1], [1, 0, MISSING_CODE, 1, 3, 1])


def test_a_column_without_values():
    codes, distinct = code_columns(np.full((3, 1), np.nan, np.float32), np.array([False]), 1)
    assert (codes.code == MISSING_CODE).all()
    assert distinct[0].size == 0


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    values = np.array([[0.0, 1.0], [np.nan, value], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"infinity .* in column 1"):
        code_columns(values, np.array([False, False]), 1)
