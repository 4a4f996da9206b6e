"""Coding of columns into bins."""

import numpy as np
import pytest
from devices import host_codes, to_host
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import Sample, make_task

from gputree.backends import binning
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu.table import CpuTable

TINY = [5e-324, -5e-324, 1e-310, 0.0, -0.0]
EXTREME = [1e308, -1e308, np.finfo(np.float64).max, -np.finfo(np.float64).max]
NEIGHBOURS = [1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53]
VALUES = st.one_of(
    st.sampled_from(TINY + EXTREME + NEIGHBOURS + [float("nan")]),
    st.integers(-5, 5).map(float),
    st.floats(allow_infinity=False),
)


def encode(backend, columns, max_bins=256, n_threads=1, exact=True):
    """A coded backend over `columns`, and its codes."""
    values = np.ascontiguousarray(np.array(columns).T)
    sample = Sample(values, np.zeros(len(values), np.uint8), None)
    device = backend(sample, make_task("gini", sample, exact=exact), n_threads)
    device.encode(max_bins)
    return device, host_codes(device)


def check_codes(device, f, column, codes, max_bins):
    """Codes rise with the values, are dense enough, and single bins hold one value."""
    offset, single = to_host(device.table.offset), to_host(device.table.single)
    bins = int(offset[f + 1] - offset[f])
    known = ~np.isnan(column)
    has_missing = not known.all()
    assert bins <= max(max_bins, 1 + has_missing)
    assert (codes[~known] == bins - 1).all()
    order = np.argsort(column[known], kind="stable")
    ordered, coded = column[known][order], codes[known][order].astype(int)
    assert (coded < bins - has_missing).all()
    assert (np.diff(coded) >= 0).all()
    assert (np.diff(coded)[ordered[1:] == ordered[:-1]] == 0).all()
    for b in np.flatnonzero(single[offset[f] : offset[f + 1] - has_missing]):
        assert np.unique(ordered[coded == b]).size <= 1
    if np.unique(ordered).size <= max_bins - has_missing:
        assert (coded == np.unique(ordered, return_inverse=True)[1]).all()
        assert single[offset[f] : offset[f + 1]].all()


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(2, 12))
def test_codes_are_monotone(backend, column, max_bins):
    column = np.array(column)
    device, codes = encode(backend, [column, column[::-1]], max_bins)
    check_codes(device, 0, column, codes[:, 0], max_bins)
    check_codes(device, 1, column[::-1], codes[:, 1], max_bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("distinct", [1, 2, 255, 256, 257, 1000])
def test_columns_around_256_distinct_values(backend, distinct, missing, dtype):
    rng = np.random.default_rng(distinct)
    levels = np.unique(np.exp(rng.normal(size=distinct) * 5).astype(dtype))
    column = np.concatenate([levels, rng.choice(levels, 3000)])
    if missing:
        column[rng.choice(np.arange(levels.size, column.size), 300)] = np.nan
    device, codes = encode(backend, [column])
    check_codes(device, 0, column, codes[:, 0], 256)
    lossless = levels.size + missing <= 256
    assert (device.histogram_cells == levels.size + missing) == lossless
    assert to_host(device.table.by_code)[0] == lossless


def test_all_missing_and_constant_columns(backend):
    device, codes = encode(backend, [np.full(9, np.nan), np.full(9, 7.0)])
    assert (np.diff(to_host(device.table.offset)) == [2, 1]).all()
    assert (codes == [1, 0]).all()


def test_bins_are_even_on_continuous_data(backend):
    column = np.random.default_rng(0).normal(size=20_000)
    device, codes = encode(backend, [column, np.exp(9 * column)])
    assert device.histogram_cells == 2 * 256
    for f in range(2):
        assert np.bincount(codes[:, f]).max() <= 2 * 20_000 / 256


@pytest.mark.parametrize("exact", [False, True])
def test_bins_of_exact_cuts_hold_fewer_rows_towards_the_ends(exact):
    n = 20_000
    table = CpuTable(np.arange(n, dtype=np.float32)[:, None], np.zeros(1, bool))
    rows = np.bincount(table.coded(100, exact, 1).codes[:, 0])
    assert rows.size == 100
    if exact:
        assert (np.diff(rows[:20]) > 0).all()
        assert (np.diff(rows[-20:]) < 0).all()
        assert rows[0] < n / 800
        assert rows.max() < 1.25 * n / 100
    else:
        assert np.ptp(rows) <= 1


def test_a_heavy_value_is_alone_in_its_bin(backend):
    rng = np.random.default_rng(1)
    column = np.where(rng.random(5000) < 0.6, 0.0, rng.normal(size=5000))
    device, codes = encode(backend, [column], max_bins=20)
    at_zero = codes[column == 0.0, 0][0]
    assert (column[codes[:, 0] == at_zero] == 0.0).all()
    assert to_host(device.table.single)[at_zero]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_heavy_value_at_the_end_of_the_dtype(backend, sign, dtype):
    """The smallest or largest finite number marks missing values in many a table."""
    column = np.random.default_rng(2).normal(size=2000).astype(dtype)
    column[::3] = sign * np.finfo(dtype).max
    device, codes = encode(backend, [column], max_bins=16)
    check_codes(device, 0, column, codes[:, 0], 16)
    at_end = codes[0, 0]
    assert (column[codes[:, 0] == at_end] == column[0]).all()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_sample_that_misses_values_is_fitted_again(backend, monkeypatch, n_threads):
    """9 values in the sample, 400 in the column: it is not lossless after all."""
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 50)
    n = 500
    column = np.arange(n) % 9 * 1.0
    sampled = np.linspace(0, n - 1, 50).astype(int)
    hidden = np.setdiff1d(np.arange(n), sampled)[:400]
    column[hidden] = 10.0 + np.arange(400)
    few = np.where(np.isin(np.arange(n), hidden), 99.0, column)
    device, codes = encode(backend, [column, few, np.sqrt(np.arange(n))], 256, n_threads)
    check_codes(device, 0, column, codes[:, 0], 256)
    check_codes(device, 1, few, codes[:, 1], 256)
    assert list(to_host(device.table.by_code)) == [False, True, False]


@pytest.mark.full
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("hidden", [1, 40, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_the_sample_missed_get_bins_of_their_own(
    backend, monkeypatch, n_threads, hidden, dtype
):
    """In few rows and in many, with missing values, below, between and above the others."""
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 50)
    rng = np.random.default_rng(hidden)
    n = 20_000
    column = rng.integers(9, size=n).astype(dtype)
    others = np.setdiff1d(np.arange(n), np.linspace(0, n - 1, 50).astype(int))
    column[rng.choice(others, hidden, replace=False)] = rng.choice([-3.0, 2.5, 99.0], hidden)
    holes = np.where(rng.random(n) < 0.1, dtype(np.nan), column)
    device, codes = encode(backend, [column, holes, -column], 256, n_threads)
    for f, values in enumerate([column, holes, -column]):
        check_codes(device, f, values, codes[:, f], 256)
    assert to_host(device.table.by_code).all()


@given(st.lists(VALUES, min_size=1, max_size=80), st.integers(2, 8))
def test_without_exact_cuts_bins_know_their_ends(backend, column, max_bins):
    column = np.array(column)
    device, codes = encode(backend, [column], max_bins, exact=False)
    assert to_host(device.table.by_code).all()
    greatest, least = to_host(device.table.highest), to_host(device.table.lowest)
    for b in np.unique(codes[~np.isnan(column), 0]):
        inside = column[codes[:, 0] == b]
        assert greatest[0, b] == inside.max()
        assert least[0, b] == inside.min()


# ------------------------------------------------- the grid, against searchsorted
@given(
    arrays(np.float64, st.integers(1, 255), elements=st.floats(allow_nan=False, width=64)),
    st.lists(VALUES, min_size=1, max_size=50),
)
def test_grid_finds_what_searchsorted_finds(edges, values):
    edges = np.unique(edges[np.isfinite(edges)])
    inner = edges[np.abs(edges) < 1e308]
    column = np.concatenate([values, edges, np.nextafter(inner, np.inf)])
    column = column[np.isfinite(column)][:, None]
    bins = binning.empty_bins(1, column.dtype)
    bins.edge[0, : edges.size] = edges
    bins.count[0] = edges.size + 1
    with np.errstate(over="ignore"):
        coding.fit_grid(bins, 0, edges)
    codes = np.empty(column.shape, np.uint8)
    no, ends = np.zeros(1, np.bool_), coding.grid_ends(column.dtype)
    unseen = coding.Unseen.none(0, column.dtype)
    coding.encode_rows(column, bins, np.arange(1), no, no, 0, len(column), ends, codes, unseen)
    assert (codes[:, 0] == np.searchsorted(edges, column[:, 0], side="left")).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_with_holes_and_infinities_are_told(dtype):
    values = np.ones((4, 4), dtype)
    values[1, 0], values[2, 1], values[3, 2], values[0, 2] = np.nan, np.inf, -np.inf, np.nan
    missing, infinite = np.zeros(4, np.bool_), np.zeros(4, np.bool_)
    coding.inspect_columns(values, 0, 4, missing, infinite)
    assert missing.tolist() == [True, False, True, False]
    assert infinite.tolist() == [False, True, True, False]


# ---------------------------------------------------------------------------- columns of few values
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
@given(
    pool=st.lists(st.floats(width=32, allow_infinity=False), min_size=1, max_size=20),
    seed=st.integers(0, 99),
    most=st.integers(2, 12),
    even=st.booleans(),
)
def test_bins_of_distinct_values(dtype, pool, seed, most, even):
    values = np.random.default_rng(seed).permutation(np.repeat(np.array(pool, dtype), 3))
    bins = binning.empty_bins(1, np.dtype(dtype), even)
    coding.fit_values(bins, 0, values, most)
    expected = np.unique(values[~np.isnan(values)])
    assert bins.lossless[0] == (expected.size <= most)
    if bins.lossless[0] and expected.size:
        assert bins.count[0] == expected.size
        for ends in (bins.lowest, bins.highest):
            found = ends[0, : expected.size]
            np.testing.assert_array_equal(found, expected)
            assert not np.signbit(found[found == 0]).any()


def test_zeros_of_both_signs_are_picked_alike():
    out = np.empty(1)
    for share in np.arange(1, 50) << 57:
        counts = {coding.pick_by_value(np.array([[x]]), 0, share, out) for x in (0.0, -0.0)}
        assert len(counts) == 1
