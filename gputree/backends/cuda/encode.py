"""Fit bins and code columns on the device; only the bins are copied to the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends import binning
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.layout import HostTable, UploadedTable, to_device
from gputree.backends.cuda.machine import device_of
from gputree.backends.cuda.source import Source, bits_of
from gputree.backends.cuda.workspace import Shaped, allocate_in, bytes_of, send, views
from gputree.base.dtypes import Int64s

# Number of columns whose codes are read as one word.
WORD = 4

# Stride of a column's edges in shared memory: see encode.cu.
EDGE_STRIDE = 265


class KeyBins(NamedTuple):
    """Bins of d columns on the device, by keys of values; padded as `binning.Bins`."""

    edge: Any  # (d, MAX_BINS)
    lowest: Any  # (d, MAX_BINS)
    highest: Any  # (d, MAX_BINS)
    count: Any  # (d,) int64
    distinct: Any  # (d,) int64: distinct values that they were fitted to
    picked: Any  # (d,) uint32: values of the sample, which may keep fewer
    inexact: Any  # (d,) int32: 1 where a column taken for lossless is not
    most: Any  # (d,) int64: maximum number of bins
    block: Any  # uint8: memory of all fields but `most`

    @classmethod
    def of(cls, most: Int64s, bits: np.dtype) -> KeyBins:
        """Bins that are not fitted yet, on the device."""
        arrays = _bin_arrays(most.size, bits)
        block = cupy().zeros(bytes_of(*arrays), dtype=np.uint8)
        return cls._make([*allocate_in(block.data, *arrays), to_device(most), block])

    def get(self) -> KeyBins:
        """Copy to the host, at once; the last two fields stay on the device."""
        fields = views(self.block.get(), *_bin_arrays(len(self.count), self.edge.dtype))
        return self._replace(**dict(zip(self._fields[:-2], fields, strict=True)))


def _bin_arrays(d: int, bits: np.dtype) -> list[Shaped]:
    """Arrays of `KeyBins` that are in one block."""
    shape, i8 = (d, binning.MAX_BINS), np.int64
    return [*3 * [(shape, bits)], (d, i8), (d, i8), (d, np.uint32), (d, np.int32)]


def row_stride(columns: int) -> int:
    """Bytes of a row of codes: whole words."""
    return -(-columns // WORD) * WORD


def new_table(source: Source, missing: NDArray[np.bool_], categories: Int64s) -> UploadedTable:
    """Return a table that is not coded; it has values if `source` has them."""
    d = source.shape[1]
    host = HostTable(
        offset=np.zeros(d + 1, np.int64),
        missing=missing,
        by_code=np.zeros(d, np.bool_),
        highest=np.zeros((d, binning.MAX_BINS)),
        lowest=np.zeros((d, binning.MAX_BINS)),
        categories=categories,
    )
    codes = cupy().empty((0, row_stride(d)), dtype=np.uint8)
    return UploadedTable.of(source.bits, None, codes, host, np.empty(0, np.bool_))


def encode(
    kernels: Kernels,
    source: Source,
    missing: NDArray[np.bool_],
    categories: Int64s,
    max_bins: int,
    exact: bool,
) -> UploadedTable:
    """The table, coded into at most `max_bins` bins a column, missing values included."""
    n, d = source.shape
    few = categories + missing <= binning.MAX_BINS  # numeric columns, too
    most = np.where(categories > 0, binning.MAX_BINS, max_bins - missing)
    bins = KeyBins.of(most, source.bits)
    delimited = _fit(kernels, source, bins, most, exact) & (categories == 0)
    for f in np.flatnonzero(categories):
        _fit_categories(bins, int(f), int(categories[f]) if few[f] else 0)
    codes = cupy().empty((n, row_stride(d)), dtype=np.uint8)
    found = _encode_values(kernels, source, bins, codes)
    again = np.flatnonzero(found.inexact)
    for f in again:  # the sample missed values of columns that looked lossless
        _fit_whole(kernels, source, bins, most, f, exact)
    if again.size:
        found = _encode_values(kernels, source, bins, codes)
    host_bins = _host_bins(found, most, delimited)
    offset, single = binning.single_bins(host_bins, missing)
    single[np.repeat(categories > 0, np.diff(offset))] = True  # no cut is in such a bin
    host = HostTable(
        offset=offset,
        missing=missing,
        by_code=host_bins.lossless if exact else few,
        highest=host_bins.highest.astype(np.float64),
        lowest=host_bins.lowest.astype(np.float64),
        categories=categories,
    )
    needed = exact or not few.all() or max_bins == 2  # too few bins for two values and missing ones
    values = source.resident() if needed else None
    single = single if exact else np.ones_like(single)
    return UploadedTable.of(source.bits, values, codes, host, single)


def _fit_categories(bins: KeyBins, f: int, count: int) -> None:
    """Set a bin for each of `count` categories; for 0, one bin for all."""
    most_bins, bits = binning.MAX_BINS, bins.edge.dtype
    codes = np.arange(most_bins).astype(f"f{bits.itemsize}").view(bits)
    sign = bits.type(1) << bits.type(8 * bits.itemsize - 1)
    beyond = np.array(np.inf, f"f{bits.itemsize}").view(bits)
    keys = to_device(codes | sign)  # keys of values that are not negative
    bins.edge[f] = beyond | sign
    bins.edge[f, : max(count - 1, 0)] = keys[: max(count - 1, 0)]
    bins.lowest[f] = bins.highest[f] = keys
    bins.count[f] = max(count, 1)
    bins.distinct[f] = count or most_bins + 1


def _fit(
    kernels: Kernels, source: Source, bins: KeyBins, most: Int64s, exact: bool
) -> NDArray[np.bool_]:
    """Fit all columns; returns those whose bins are delimited by their edges.

    To all rows; to a sample of rows where cuts are exact; or else to a sample of values.
    """
    n, d = source.shape
    if not exact and n > binning.SAMPLE_ROWS:
        return _fit_by_value(kernels, source, bins, most)
    places = np.linspace(0, n - 1, min(n, binning.SAMPLE_ROWS)).astype(np.int64)
    values, places = source.rows(places)
    keys = cupy().empty((d, places.size), dtype=source.bits)
    kernels.each("encode", "column_keys", keys.size, values, places, places.size, d, keys)
    _fit_keys(kernels, keys, np.arange(d), most, bins, exact)
    return np.zeros(d, np.bool_)


def _fit_by_value(
    kernels: Kernels, source: Source, bins: KeyBins, most: Int64s
) -> NDArray[np.bool_]:
    """Counterpart of `picked_values` and `fit_picked` of `gputree.backends.cpu.encode`."""
    xp = cupy()
    n, d = source.shape
    picks = min(4 * binning.SAMPLE_ROWS, n)
    share = int(2.0**63 * binning.SAMPLE_ROWS / n)
    picked = xp.empty((d, picks), dtype=source.bits)
    picked.fill(~source.bits.type(0))  # MISSING_KEY
    source.visit(
        lambda block, first: kernels.each(
            "encode", "pick_values", block.size, block, block.shape[0], d, share, picks,
            bins.picked, picked,
        )
    )  # fmt: skip
    _fit_keys(kernels, picked, np.arange(d), most, bins, exact=False)
    found = bins.get()
    few = (found.distinct <= binning.FEWEST_DISTINCT) | (found.picked > picks)
    for f in np.flatnonzero(few):
        _fit_whole(kernels, source, bins, most, f, exact=False)
    return ~few


def _fit_whole(
    kernels: Kernels, source: Source, bins: KeyBins, most: Int64s, f: Any, exact: bool
) -> None:
    """Fit column f to all of its values."""
    n = source.shape[0]
    keys = cupy().empty((1, n), dtype=source.bits)
    kernels.each("encode", "column_keys", n, source.column(int(f)), None, n, 1, keys)
    _fit_keys(kernels, keys, np.array([f]), most, bins, exact)


def _fit_keys(
    kernels: Kernels, keys: Any, columns: Int64s, most: Int64s, bins: KeyBins, exact: bool
) -> None:
    """Fit `columns` to the rows of `keys`."""
    quantiles = np.zeros((columns.size if exact else 0, binning.MAX_BINS))
    for fractions, f in zip(quantiles, columns.tolist(), strict=False):
        fractions[: most[f] - 1] = binning.uneven_quantiles(int(most[f]))
    numbers, padded = send(columns, quantiles)
    kernels(
        "encode", "fit_bins", (columns.size,), cupy().sort(keys, axis=1), keys.shape[1],
        numbers, bins.most, padded if exact else None, *bins[:5], threads=binning.MAX_BINS,
    )  # fmt: skip


def _encode_values(kernels: Kernels, source: Source, bins: KeyBins, codes: Any) -> KeyBins:
    """Code the table; returns the bins on the host, with the columns that are `inexact`."""
    d, words, chunk = source.shape[1], codes.shape[1] // WORD, tuning.TUNING.chunk_rows
    word_bytes = WORD * EDGE_STRIDE * source.bits.itemsize  # of edges
    groups = -(-words // max(tuning.TUNING.shared_bytes // word_bytes, 1))
    width = -(-words // groups)
    lossless = (bins.distinct <= bins.most).astype(np.uint8)
    source.visit(
        lambda block, first: kernels(
            "encode", "encode_values", (-(-block.shape[0] // chunk) * groups,), block,
            block.shape[0], d, words, chunk, width, bins.edge, bins.lowest, bins.count, lossless,
            codes[first : first + block.shape[0]], bins.inexact, shared=width * word_bytes,
        )
    )  # fmt: skip
    return bins.get()


def _host_bins(found: KeyBins, most: Int64s, delimited: NDArray[np.bool_]) -> binning.Bins:
    """Bins of keys on the host; those `delimited` extend from edge to edge."""
    edge, lowest, highest = map(values_of, found[:3])
    highest[delimited] = edge[delimited]
    lowest[delimited, 1:] = edge[delimited, :-1]
    return binning.empty_bins(len(lowest), lowest.dtype)._replace(
        edge=edge,
        count=found.count,
        lossless=found.distinct <= most,
        lowest=lowest,
        highest=highest,
    )


def values_of(keys: NDArray[Any]) -> NDArray[np.floating]:
    """Values of keys, the inverse of `key_of` in values.cuh."""
    sign = np.array(1, keys.dtype) << np.array(8 * keys.dtype.itemsize - 1, keys.dtype)
    bits = np.where(keys & sign, keys & ~sign, ~keys)
    return bits.view(f"f{keys.dtype.itemsize}")


def inspect_columns(values: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Columns of a table on the device with missing values, and those with infinite ones."""
    n, d = values.shape
    threads = d * min(n, max(tuning.TUNING.inspecting // d, 1))
    with device_of(values):
        found = cupy().zeros(d, dtype=np.int32)
        Kernels(None, False, 8 * values.dtype.itemsize).each(
            "encode", "inspect_values", threads, values.view(bits_of(values.dtype)), n, d,
            threads, found,
        )  # fmt: skip
        seen = found.get()
    return seen & 1 != 0, seen & 2 != 0
