"""Distinct values of columns that have few, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.few_values import SLOTS, SORTED_MOST, few_values, sort_few

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def distinct(values):
    return np.unique(values[~np.isnan(values)])


@DTYPES
@given(
    pool=st.lists(st.floats(width=32, allow_infinity=False), max_size=20),
    seed=st.integers(0, 99),
    most=st.integers(1, 12),
)
def test_what_numpy_finds(dtype, pool, seed, most):
    values = np.random.default_rng(seed).permutation(np.repeat(np.array(pool, dtype), 3))
    expected = distinct(values)
    found = few_values(values, most)
    if expected.size > most:
        assert found is None
    else:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        assert not np.signbit(found[found == 0]).any()


@DTYPES
@pytest.mark.parametrize("count", [0, 1, MAX_BINS - 1, MAX_BINS, MAX_BINS + 1, 10 * MAX_BINS])
def test_as_many_as_there_is_room_for(dtype, count):
    assert 4 * MAX_BINS <= SLOTS
    values = np.tile(np.random.default_rng(count).normal(size=count).astype(dtype), 2)
    found = few_values(values, MAX_BINS)
    if count > MAX_BINS:
        assert found is None
    else:
        np.testing.assert_array_equal(found, distinct(values))


@DTYPES
def test_values_that_share_a_slot(dtype):
    """Neighbours, powers of two and their negatives; every other value of a wider array."""
    steps = np.arange(-60, 60)
    pool = np.concatenate([2.0**steps, -(2.0**steps)]).astype(dtype)
    values = np.empty(2 * pool.size, dtype)
    values[::2], values[1::2] = pool, np.nan
    np.testing.assert_array_equal(few_values(values[::2], MAX_BINS), distinct(pool))
    np.testing.assert_array_equal(few_values(values, MAX_BINS), distinct(pool))


def check_order(values):
    order = np.full(values.size, -1, np.int32)
    count = sort_few(values, order)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    known = values[~np.isnan(values)]
    np.testing.assert_array_equal(count[:-1], np.unique(known, return_counts=True)[1])
    assert count[-1] == values.size - known.size


@DTYPES
@given(
    pool=st.lists(st.floats(width=32) | st.sampled_from([-0.0, 0.0]), min_size=1, max_size=20),
    seed=st.integers(0, 99),
)
def test_rows_in_order_of_few_values(dtype, pool, seed):
    check_order(np.random.default_rng(seed).permutation(np.repeat(np.array(pool, dtype), 3)))


@DTYPES
@pytest.mark.parametrize("count", [0, 1, SORTED_MOST - 1, SORTED_MOST, SORTED_MOST + 1])
def test_as_many_as_are_put_in_order(dtype, count):
    values = np.tile(np.random.default_rng(count).normal(size=count).astype(dtype), 2)
    if count <= SORTED_MOST:
        check_order(values)
        check_order(np.append(values, dtype(np.nan)))
        return
    order = np.full(values.size, -1, np.int32)
    assert sort_few(values, order) is None
    assert (order == -1).all()
