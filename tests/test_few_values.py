"""Distinct values of columns that have few, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.cpu.few_values import MOST, few_values

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
@pytest.mark.parametrize("count", [0, 1, MOST - 1, MOST, MOST + 1, 10 * MOST])
def test_as_many_as_there_is_room_for(dtype, count):
    values = np.tile(np.random.default_rng(count).normal(size=count).astype(dtype), 2)
    found = few_values(values, MOST)
    if count > MOST:
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
    np.testing.assert_array_equal(few_values(values[::2], MOST), distinct(pool))
    np.testing.assert_array_equal(few_values(values, MOST), distinct(pool))
