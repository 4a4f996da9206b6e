"""A table on the host: its values, and their codes once they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree._memory import require_memory
from gputree.backends import binning
from gputree.backends.base import Int64s
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu import tuning
from gputree.backends.cpu.layout import Table
from gputree.compilation.arrays import writable
from gputree.dtypes import CODE
from gputree.threads import even_spans, run

# Makes room for the codes of (n, d) values.
NewCodes = Callable[[tuple[int, int]], NDArray]


def codes_in_memory(shape: tuple[int, int]) -> NDArray:
    """Room for codes.

    Raises
    ------
    MemoryError
        They would clearly exceed the memory.
    """
    n, d = shape
    require_memory(n * d, f"Coding {n:,} rows x {d:,} columns", "Use fewer rows or columns.")
    return np.empty(shape, CODE)


class CpuTable:
    """`gputree.backends.base.DeviceTable` on the host.

    Parameters
    ----------
    values : (n, d) float32 or float64 array, C-contiguous
        NaN where missing.
    missing : (d,) bool array
        Columns that hold missing values.
    categories : (d,) int64 array, or None
        How many a nominal column has, whose values are their codes; 0 for a numeric one.
    new_codes : callable, or None
        Makes room for codes, uint8 of the shape that it is given; None for memory.
    """

    name = "cpu"

    def __init__(
        self,
        values: NDArray,
        missing: NDArray[np.bool_],
        categories: Int64s | None = None,
        new_codes: NewCodes | None = None,
    ) -> None:
        self.values = values
        self.missing = missing
        self.categories = np.zeros(missing.size, np.int64) if categories is None else categories
        self.shape: tuple[int, int] = values.shape
        self._new_codes = new_codes or codes_in_memory
        self._coded: dict[tuple[int, bool], Table] = {}
        self._lock = Lock()  # tasks may grow at once

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self.missing, self.categories, self._coded

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        values, missing, categories, coded = state
        self.__init__(writable(values), missing, categories)  # type: ignore[misc]
        for key, table in coded.items():
            self._coded[key] = Table(*map(writable, table._replace(values=self.values)))

    def bare(self) -> Table:
        """The table without codes."""
        d = self.shape[1]
        return Table(
            values=self.values,
            codes=np.empty((0, d), CODE),
            offset=np.zeros(d + 1, np.int64),
            missing=self.missing,
            single=np.empty(0, np.bool_),
            by_code=np.zeros(d, np.bool_),
            greatest=np.empty((0, 0)),
            least=np.empty((0, 0)),
            categories=self.categories,
        )

    def prepare(self, max_bins: int, n_threads: int) -> None:
        """Code the table as exact cuts need it."""
        self.coded(max_bins, True, n_threads)

    def coded(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        """The table in at most `max_bins` bins a column, missing values included.

        Where cuts are not `exact`, codes decide them all. Tasks that ask for the same share it.
        """
        with self._lock:
            if (max_bins, exact) not in self._coded:
                self._coded[max_bins, exact] = _code(
                    self.bare(), self._new_codes, max_bins, exact, n_threads
                )
            return self._coded[max_bins, exact]


def _code(table: Table, new_codes: NewCodes, max_bins: int, exact: bool, n_threads: int) -> Table:
    values = table.values
    n, d = values.shape
    most = np.full(d, max_bins) - table.missing
    few = table.categories + table.missing <= binning.MAX_BINS  # numeric columns, too
    codes = new_codes((n, d))
    bins = binning.empty_bins(d, values.dtype)
    sampled = exact and n > binning.SAMPLE_ROWS
    sample = values
    if sampled:
        sample = values[np.linspace(0, n - 1, binning.SAMPLE_ROWS).astype(np.int64)]
    by_value = not exact and n > binning.SAMPLE_ROWS
    run(
        n_threads if sample.size > tuning.TUNING.chunk_rows else 1,
        coding.fit_columns_by_value if by_value else coding.fit_columns,
        [(bins, sample, range(f, f + 1), most) for f in np.flatnonzero(table.categories == 0)],
    )
    for f in np.flatnonzero(table.categories):
        coding.fit_categories(bins, int(f), int(table.categories[f]), bool(few[f]))
    _encode(table, bins, most, codes, sampled, n_threads)
    return with_codes(table, bins, codes, exact)


def with_codes(table: Table, bins: binning.Bins, codes: NDArray, exact: bool) -> Table:
    """The table with the codes of its values; where cuts are not `exact`, codes decide them all."""
    few = table.categories + table.missing <= binning.MAX_BINS  # numeric columns, too
    offset, single = binning.single_bins(bins, table.missing)
    single[np.repeat(table.categories > 0, np.diff(offset))] = True  # no cut lies in such a bin
    return table._replace(
        codes=codes,
        offset=offset,
        single=single if exact else np.ones_like(single),
        by_code=bins.lossless if exact else few,
        greatest=bins.greatest.astype(np.float64),
        least=bins.least.astype(np.float64),
    )


def _encode(
    table: Table, bins: binning.Bins, most: Int64s, codes: NDArray, sampled: bool, n_threads: int
) -> None:
    """Code the table; columns with values that the sample missed get their bins anew."""
    checked = np.flatnonzero(bins.lossless) if sampled else np.empty(0, np.int64)
    unseen = encode_columns(table, bins, None, checked, codes, n_threads)
    again = [int(f) for f in checked if unseen[f].size]
    for f in again:
        values = table.values[:, f]
        if unseen[f].size >= coding.MOST_UNSEEN:
            known = np.sort(values)
            known = known[: np.searchsorted(known, np.nan)]
        else:
            known = np.union1d(bins.least[f, : bins.count[f]], unseen[f])
        coding.fit_column(bins, f, known, int(most[f]))
    if again:
        encode_columns(table, bins, np.array(again), np.empty(0, np.int64), codes, n_threads)


def encode_columns(
    table: Table,
    bins: binning.Bins,
    columns: Int64s | None,
    checked: Int64s,
    codes: NDArray,
    n_threads: int,
) -> list[NDArray]:
    """Code `columns`, or all; returns the values unseen so far in those `checked`."""
    values = table.values
    n, d = values.shape
    one = values.dtype.type(1)
    half, top = one / 2, one * (binning.GRID_CELLS - 1)
    crowded = np.flatnonzero(bins.steps > 1) if columns is None else columns
    missing = np.flatnonzero(table.missing)
    parts = even_spans(n, d, n_threads, tuning.TUNING.chunk_rows)
    places = coding.MOST_UNSEEN if checked.size else 0
    unseen = [np.empty((d, places), values.dtype) for _ in parts]
    counts = [np.zeros(d, np.int64) for _ in parts]
    run(
        n_threads,
        coding.encode_rows,
        [
            (values, bins, columns is None, crowded, missing, checked, a, b, half, top, codes,
             unseen[i], counts[i])
            for i, (a, b) in enumerate(parts)
        ],
    )  # fmt: skip
    return [
        np.concatenate([u[f, : c[f]] for u, c in zip(unseen, counts, strict=True)])
        for f in range(d)
    ]
