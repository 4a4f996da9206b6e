"""The order of the runs of categories, against a sort of tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.backends.base import Finishing
from gputree.backends.cpu import runs as runs_
from gputree.backends.cpu.jit import kernel
from gputree.growth import stopping


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


@pytest.mark.parametrize("levels", [1, 8, 1 << 31])
def test_columns_of_many_categories_finish_larger_nodes(levels):
    """Their rows are counted on each level; without others, nodes are finished as they come."""
    cost, one = Finishing(6.0, 15.0, 10**9), Finishing(6.0, 1.0, 10**9)
    sizes = [stopping.finish_rows(cost, (10**6, 15), 14 * 512, levels, many) for many in range(4)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] <= stopping.MOST_CELLS // 15
    assert stopping.finish_rows(one, (10**6, 1), 2, 1 << 31, 1) == stopping.MOST_CELLS
    assert stopping.finish_rows(one, (10**6, 1), 2, 0, 1) == stopping.FEWEST_ROWS


@kernel
def different(runs, count, channels):
    return runs_.list_different(runs, True, count, channels)


@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 60, 70, 3000]),
    st.integers(2, 4),
    st.sampled_from([1, 3, 1 << 40]),
)
def test_runs_of_the_same_statistics(seed, count, channels, most):
    """Each run that is not listed is the same as one listed before it; those listed ascend."""
    rng = np.random.default_rng(seed)
    runs = runs_.new_runs(count + 2, channels * (count + 2))
    rows = rng.integers(1, 4, count)
    cells = rng.integers(0, most + 1, (count, channels))
    runs.begin[: count + 1] = np.append(0, np.cumsum(rows))
    runs.cells[: cells.size] = cells.ravel()
    listed = runs.order[: different(runs, count, channels)].tolist()
    assert listed == sorted(set(listed))
    seen = set()
    for r in range(count):
        statistics = (rows[r], *cells[r])
        assert r in listed or statistics in seen
        seen.add(statistics)
