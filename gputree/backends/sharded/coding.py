"""Bins from the reports of all shards, and shards coded by them in place.

A column of at most as many values as bins is coded without loss. For others

    exact cuts    any bins do: the edges come from rows at even distances
    binned cuts   edges equal those of the whole table: from values picked by their hash, or
                  from all values and their numbers, where these are few enough
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends import binning
from gputree.backends.binning import Bins
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import Binning, CpuTable, encode_columns, fit_bins, with_codes
from gputree.backends.sharded.rows import Read, RowSummary, rows_of
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Bools, Int64s

# Maximum number of distinct values of a column that are counted one by one: beyond, bins of binned
# cuts come from the values picked by hash, some 65,536: quantiles have an error of 1/256 of a bin's
# rank.
MOST_DISTINCT = 1 << 20


class Layout(NamedTuple):
    """Arguments for coding all shards."""

    found: RowSummary
    categories: Int64s
    max_bins: int
    exact: bool
    dtype: np.dtype

    @property
    def missing(self) -> Bools:
        return self.found.missing

    @property
    def most(self) -> Int64s:
        """Maximum number of bins of values of each column."""
        return np.full(self.missing.size, self.max_bins) - self.missing

    @property
    def lossy(self) -> list[int]:
        """Numeric columns of more values than bins."""
        few = zip(self.found.distinct, self.most.tolist(), self.categories.tolist(), strict=True)
        return [
            f
            for f, (values, most, coded) in enumerate(few)
            if coded == 0 and (values is None or values.size > most)
        ]

    @property
    def by_value(self) -> bool:
        """True if edges come from values picked by their hash."""
        return not self.exact and self.found.n_rows > binning.SAMPLE_ROWS


# Values of each lossy column.
Samples = list[NDArray]


def sample(part: Read, layout: Layout) -> Samples:
    """Values of a shard that edges come from."""
    values, n = rows_of(part).values, len(part.values)
    if layout.by_value:
        return [coding.picked_values(values, f, layout.found.n_rows) for f in layout.lossy]
    rows = np.arange(n)
    if layout.found.n_rows > binning.SAMPLE_ROWS:
        share = -(-binning.SAMPLE_ROWS * n // layout.found.n_rows)
        rows = np.linspace(0, n - 1, share).astype(np.int64)
    return [values[rows, f] for f in layout.lossy]


def join_samples(found: list[Samples]) -> Samples:
    """Concatenate the samples of some shards."""
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]


def fit_samples(samples: Samples, layout: Layout) -> tuple[Bins, list[int]]:
    """Fit the bins of all columns; returns them, and the columns whose values must be counted."""
    lossy = dict(zip(layout.lossy, samples, strict=True))
    picked = np.zeros(layout.missing.size, np.bool_)
    picked[layout.lossy] = layout.by_value
    given = layout.missing, layout.categories, layout.most, picked, layout.exact
    how = Binning(layout.dtype, *given)

    counts = [lossy.get(f, count) for f, count in enumerate(layout.found.distinct)]

    def values_of(columns: Int64s) -> list[NDArray]:
        return [np.asarray(counts[f], layout.dtype) for f in columns.tolist()]

    bins, again = fit_bins(how, values_of, 1)
    bins.lossless[layout.lossy] = False
    return bins, again


# A column's distinct values, ascending, and the rows of each; none where they are too many.
Counted = list[tuple[NDArray, Int64s] | None]


def count_values(part: Read, columns: list[int]) -> Counted:
    """Count the distinct values of some columns of a shard."""
    found: Counted = []
    for f in columns:
        values, counts = np.unique(part.values[:, f], return_counts=True)
        present = ~np.isnan(values)
        found.append(_within(values[present], counts[present]))
    return found


def join_values(found: list[Counted]) -> Counted:
    """Add up the counts of some shards."""
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
    """Refit the bins of some columns to their values and the number of rows of each."""
    bins = Bins(*(field.copy() for field in bins))
    for f, values in zip(columns, counted, strict=True):
        if values is not None:
            coding.fit_distinct(bins, f, *values, int(layout.most[f]))
    return bins


def fit_all(tasks: Tasks, rows: list[Any], given: Any) -> Bins:
    """Fit the bins of all columns to rows on workers; `given` is the future of the layout."""
    samples = tasks.gathered(sample, join_samples, rows, given)
    bins, again = tasks.fetch([tasks.submit(fit_samples, samples, given)])[0]
    if again:
        values = tasks.gathered(count_values, join_values, rows, again)
        counted = tasks.submit(fit_counted, tasks.share(bins), again, values, given)
        bins = tasks.fetch([counted])[0]
    return Bins(*(field.copy() for field in bins))


def code(part: Read, bins: Bins, layout: Layout) -> Table:
    """Return the table of a shard, coded."""
    values = rows_of(part).values
    table = CpuTable(values, layout.missing, layout.categories).bare
    codes = np.empty(values.shape, np.uint8)
    bins = Bins(*(field.copy() for field in bins))
    encode_columns(table, bins, np.arange(bins.count.size), codes, 1)
    return with_codes(table, bins, codes, layout.exact)


def code_rows(part: Read, bins: Bins, layout: Layout) -> Read:
    """Return the rows of a partition with their codes."""
    return part._replace(codes=code(part, bins, layout).codes)


def empty_table(bins: Bins, layout: Layout) -> Table:
    """Return the coded table without rows, which all shards share."""
    return code(
        Read(np.empty((0, layout.missing.size), layout.dtype), np.empty(0), None), bins, layout
    )
