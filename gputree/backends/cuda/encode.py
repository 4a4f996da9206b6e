"""Coding of columns on the device; bin edges are fitted on the host, from a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu.pool import run
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.layout import HostTable, Table, to_device

# Columns of codes that are read as one word.
WORD = 4


def new_table(values: Any, missing: NDArray[np.bool_]) -> Table:
    """A table that is not coded yet: values are all there is to it."""
    d = values.shape[1]
    bits = np.uint32 if values.dtype == np.float32 else np.uint64
    host = HostTable(
        offset=np.zeros(d + 1, np.int64),
        missing=missing,
        by_code=np.zeros(d, np.bool_),
        low=np.zeros((d, coding.MAX_BINS)),
        high=np.zeros((d, coding.MAX_BINS)),
    )
    stride = -(-d // WORD) * WORD
    codes = cupy().empty((0, stride), dtype=np.uint8)
    return _with_host(values.view(bits), codes, host, np.empty(0, np.bool_))


def _with_host(values: Any, codes: Any, host: HostTable, single: NDArray[np.bool_]) -> Table:
    return Table(
        values=values,
        codes=codes,
        offset=to_device(host.offset),
        missing=to_device(host.missing, np.uint8),
        single=to_device(single, np.uint8),
        by_code=to_device(host.by_code, np.uint8),
        low=to_device(host.low),
        high=to_device(host.high),
        host=host,
    )


def encode(
    kernels: Kernels, table: Table, dtype: np.dtype, max_bins: int, exact: bool, n_threads: int
) -> Table:
    """The table, coded into at most `max_bins` bins a column, missing values included."""
    n, d = table.rows, table.columns
    missing = table.host.missing
    most = np.full(d, max_bins) - missing
    bins = coding.empty_bins(d, dtype)
    by_value = not exact and n > coding.SAMPLE_ROWS
    fit = coding.fit_columns_by_value if by_value else coding.fit_columns
    sample = _sample(table, dtype, exact)
    run(n_threads, fit, [(bins, sample, range(f, f + 1), most) for f in range(d)])
    codes = cupy().empty((n, table.stride), dtype=np.uint8)
    again = encode_values(kernels, table, bins, codes)
    if again.size:  # the sample missed values of columns that looked lossless
        for f in again:
            ordered = np.sort(table.values[:, int(f)].get().view(dtype))  # NaN comes last
            known = ordered[: np.searchsorted(ordered, np.nan)]
            coding.fit_column(bins, int(f), known, int(most[f]))
        encode_values(kernels, table, bins, codes)
    offset, single = coding.single_bins(bins, missing)
    host = HostTable(
        offset=offset,
        missing=missing,
        by_code=bins.lossless.copy() if exact else np.ones(d, np.bool_),
        low=bins.greatest.astype(np.float64),
        high=bins.least.astype(np.float64),
    )
    return _with_host(table.values, codes, host, single if exact else np.ones_like(single))


def _sample(table: Table, dtype: np.dtype, exact: bool) -> NDArray:
    """Rows on the host that place the edges: a sample of long tables, where cuts are exact."""
    n = table.rows
    if not (exact and n > coding.SAMPLE_ROWS):
        return table.values.get().view(dtype)
    places = np.linspace(0, n - 1, coding.SAMPLE_ROWS).astype(np.int64)
    return table.values[to_device(places)].get().view(dtype)


def encode_values(kernels: Kernels, table: Table, bins: coding.Bins, codes: Any) -> Int64s:
    """Code the table; returns the columns taken for lossless that are not."""
    inexact = cupy().zeros(table.columns, dtype=np.int32)
    kernels.each(
        "encode", "encode_values", codes.size, table.values, table.rows, table.columns,
        table.stride, value_keys(kernels, bins.edge[:, : coding.MAX_BINS]),
        value_keys(kernels, bins.least), coding.MAX_BINS, to_device(bins.count),
        to_device(bins.lossless, np.uint8), codes, inexact,
    )  # fmt: skip
    return np.flatnonzero(inexact.get())


def value_keys(kernels: Kernels, values: NDArray) -> Any:
    """Keys of host values, on the device."""
    bits = to_device(values).view(np.uint32 if values.dtype == np.float32 else np.uint64)
    keys = cupy().empty(bits.shape, dtype=bits.dtype)
    kernels.each("encode", "value_keys", bits.size, bits, bits.size, keys)
    return keys
