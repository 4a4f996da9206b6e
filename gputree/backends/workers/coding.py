"""Bins from what all parts tell, and parts coded by them where they lie.

A column of at most as many values as bins is coded without loss. Of others

    exact cuts    any bins do: the edges come from rows at even distances
    binned cuts   edges are those of the table in one piece: from values picked by their hash, or
                  from all values and their numbers, where these are few enough
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends import binning
from gputree.backends.base import Int64s
from gputree.backends.binning import MAX_BINS, Bins
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable, encode_columns, with_codes
from gputree.backends.workers.cells import FLOAT32_SHIFT
from gputree.backends.workers.refine import BinKeys, keys_of
from gputree.backends.workers.rows import Measure, Read, rows_of
from gputree.backends.workers.tasks import Tasks

# Distinct values of a column that are counted one by one, at most: beyond, bins of binned cuts
# come from the values picked by hash, 65,536 of them or so: quantiles off by 1/256 of a bin's rank.
MOST_DISTINCT = 1 << 20


class Layout(NamedTuple):
    """How all parts are coded."""

    n_rows: int
    missing: NDArray[np.bool_]
    categories: Int64s
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    distinct: list[NDArray | None]
    most: Int64s  # bins of values of each column
    exact: bool
    dtype: np.dtype

    @classmethod
    def of(
        cls, found: Measure, categories: Int64s, max_bins: int, exact: bool, dtype: np.dtype
    ) -> Layout:
        most = np.full(found.missing.size, max_bins) - found.missing
        return cls(
            found.n_rows, found.missing, categories, found.low, found.high, found.distinct, most,
            exact, dtype,
        )  # fmt: skip

    @property
    def lossy(self) -> list[int]:
        """Numeric columns of more values than bins."""
        few = zip(self.distinct, self.most.tolist(), self.categories.tolist(), strict=True)
        return [
            f
            for f, (values, most, coded) in enumerate(few)
            if coded == 0 and (values is None or values.size > most)
        ]

    @property
    def by_value(self) -> bool:
        """Whether edges come from values picked by their hash."""
        return not self.exact and self.n_rows > binning.SAMPLE_ROWS


# ------------------------------------------------------------------------ samples
# Values of each lossy column.
Samples = list[NDArray]


def sample(own: Read, layout: Layout) -> Samples:
    """The values of a part that edges come from."""
    values = rows_of(own).values
    if layout.by_value:
        share = int(2.0**63 * binning.SAMPLE_ROWS / layout.n_rows)
        room = np.empty(4 * binning.SAMPLE_ROWS, values.dtype)
        picked = []
        for f in layout.lossy:
            n = coding.pick_by_value(values, f, share, room)
            picked.append(room[:n].copy() if n >= 0 else room.copy())
        return picked
    n = len(values)
    rows = np.arange(n)
    if layout.n_rows > binning.SAMPLE_ROWS:
        own_share = -(-binning.SAMPLE_ROWS * n // layout.n_rows)
        rows = np.linspace(0, n - 1, own_share).astype(np.int64)
    return [values[rows, f] for f in layout.lossy]


def join_samples(found: list[Samples]) -> Samples:
    """Those of some parts."""
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]


def fit_bins(samples: Samples, layout: Layout) -> tuple[Bins, list[int]]:
    """The bins of all columns, and the columns whose values are to be counted for them."""
    bins = binning.empty_bins(layout.missing.size, layout.dtype)
    few = layout.categories + layout.missing <= MAX_BINS
    for f, values in enumerate(layout.distinct):
        if layout.categories[f]:
            coding.fit_categories(bins, f, int(layout.categories[f]), bool(few[f]))
        elif values is not None:
            coding.fit_column(bins, f, values.astype(layout.dtype), int(layout.most[f]))
    again = []
    for f, values in zip(layout.lossy, samples, strict=True):
        if _fit(bins, f, coding.known_ascending(values), layout):
            again.append(f)
    return bins, again


def _fit(bins: Bins, f: int, ordered: NDArray, layout: Layout) -> bool:
    """Set the bins of a lossy column from some values; whether all of them are asked for."""
    coding.fit_column(bins, f, ordered, int(layout.most[f]))
    bins.lossless[f] = False
    if not layout.by_value:
        return False
    coding.delimit(bins, f)
    picked = ordered.size if ordered.size < 4 * binning.SAMPLE_ROWS else 0
    distinct = int(np.count_nonzero(np.diff(ordered[:picked]))) + 1
    return distinct < binning.FEWEST_DISTINCT


# A column's distinct values, ascending, and the rows of each; none where they are too many.
Counted = list[tuple[NDArray, Int64s] | None]


def count_values(own: Read, columns: list[int]) -> Counted:
    """Distinct values of some columns of a part."""
    found: Counted = []
    for f in columns:
        values, counts = np.unique(own.values[:, f], return_counts=True)
        known = ~np.isnan(values)
        found.append(_within(values[known], counts[known]))
    return found


def join_values(found: list[Counted]) -> Counted:
    """Those of some parts."""
    return reduce(lambda a, b: [_join(x, y) for x, y in zip(a, b, strict=True)], found)


def _join(
    a: tuple[NDArray, Int64s] | None, b: tuple[NDArray, Int64s] | None
) -> tuple[NDArray, Int64s] | None:
    if a is None or b is None:
        return None
    values, place = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    counts = np.zeros(values.size, np.int64)
    np.add.at(counts, place, np.concatenate([a[1], b[1]]))
    return _within(values, counts)


def _within(values: NDArray, counts: Int64s) -> tuple[NDArray, Int64s] | None:
    return (values, counts) if values.size <= MOST_DISTINCT else None


def fit_counted(bins: Bins, columns: list[int], counted: Counted, layout: Layout) -> Bins:
    """The bins, those of some columns from their values and how many rows have each."""
    bins = Bins(*(field.copy() for field in bins))
    for f, own in zip(columns, counted, strict=True):
        if own is not None:
            coding.fit_distinct(bins, f, *own, int(layout.most[f]))
    return bins


def fit_all(tasks: Tasks, rows: list[Any], given: Any) -> Bins:
    """The bins of all columns, from rows on workers; `given` is the future of the layout."""
    samples = tasks.gathered(sample, join_samples, rows, given)
    bins, again = tasks.fetch([tasks.submit(fit_bins, samples, given)])[0]
    if again:
        values = tasks.gathered(count_values, join_values, rows, again)
        counted = tasks.submit(fit_counted, tasks.share(bins), again, values, given)
        bins = tasks.fetch([counted])[0]
    return Bins(*(field.copy() for field in bins))


# -------------------------------------------------------------------------- codes
def code(own: Read, bins: Bins, layout: Layout) -> Table:
    """The table of a part, coded."""
    values = rows_of(own).values
    held = CpuTable(values, layout.missing, layout.categories).bare()
    codes = np.empty(values.shape, np.uint8)
    bins = Bins(*(field.copy() for field in bins))
    encode_columns(held, bins, np.arange(bins.count.size), codes, 1)
    return with_codes(held, bins, codes, layout.exact)


def empty_table(bins: Bins, layout: Layout) -> Table:
    """The coded table without rows: what all parts share."""
    return code(
        Read(np.empty((0, layout.missing.size), layout.dtype), np.empty(0), None), bins, layout
    )


def bin_keys(bins: Bins, least: NDArray, greatest: NDArray, dtype: np.dtype) -> BinKeys:
    """The keys of the values that each bin holds; no value of a column is beyond its ends."""
    d = bins.count.size
    shift = FLOAT32_SHIFT if dtype == np.float32 else 0
    edges = keys_of(bins.edge[:, : MAX_BINS - 1].copy(), shift)
    low, high = np.zeros((d, MAX_BINS), np.uint64), np.zeros((d, MAX_BINS), np.uint64)
    low[:, 1:], high[:, :-1] = edges + np.uint64(1), edges
    low[:, 0] = keys_of(least, shift)
    high[np.arange(d), bins.count - 1] = keys_of(greatest, shift)
    return BinKeys(low, high, shift)
