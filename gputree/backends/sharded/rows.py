"""Rows of a partition with weight, and their minimum, maximum and distinct values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Floats
from gputree.backends.binning import MAX_BINS
from gputree.backends.sharded import tuning
from gputree.compilation.arrays import writable


class Read(NamedTuple):
    """The rows of a partition that have weight."""

    values: NDArray  # (n, d)
    target: NDArray  # class codes or float64
    weight: Floats | None
    codes: NDArray | None = None  # (n, d) of the values, once bins are fitted

    def that_count(self) -> Read:
        """Return the rows that have weight."""
        if self.weight is None or self.weight.all():
            return self
        rows = np.flatnonzero(self.weight)
        codes = None if self.codes is None else self.codes[rows]
        return Read(self.values[rows], self.target[rows], self.weight[rows], codes)


@dataclass(frozen=True)
class RowSummary:
    """Number, ranges, missing and distinct values of the rows with weight in some partitions."""

    n_rows: int
    missing: Bools
    low: Floats  # (d,) minimum of numeric columns
    high: Floats
    distinct: list[NDArray | None]  # of numeric columns; None where they are more than bins
    ends: tuple[float, float]  # of targets
    weights: tuple[float, float]  # minimum and maximum


def join_ends(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Join two (minimum, maximum) ranges."""
    return min(a[0], b[0]), max(a[1], b[1])


def measure(part: Read, nominal: Bools) -> RowSummary:
    """Measure the rows of a partition."""
    values = part.values
    if len(values) == 0:
        none = [None if coded else values[:0, f] for f, coded in enumerate(nominal)]
        start = np.full(nominal.size, np.inf)
        ends = (np.inf, -np.inf)
        return RowSummary(0, np.zeros(nominal.size, np.bool_), start, -start, none, ends, ends)
    distinct = [None if coded else distinct_values(values[:, f]) for f, coded in enumerate(nominal)]
    weight = part.weight
    return RowSummary(
        len(values),
        np.isnan(values).any(axis=0),
        np.fmin.reduce(values, axis=0, initial=np.inf).astype(np.float64),
        np.fmax.reduce(values, axis=0, initial=-np.inf).astype(np.float64),
        distinct,
        (float(part.target.min()), float(part.target.max())),
        (1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
    )


def distinct_values(column: NDArray) -> NDArray | None:
    """The distinct values of a column, ascending; None if they exceed the number of bins."""
    for rows in (column[: tuning.TUNING.first_look], column):
        found = np.unique(rows)
        found = found[~np.isnan(found)]
        if found.size > MAX_BINS:
            return None
    return found


def join_measures(found: list[RowSummary]) -> RowSummary:
    """Join the measures of some partitions."""
    return reduce(_join_measures, found)


def _join_measures(a: RowSummary, b: RowSummary) -> RowSummary:
    return RowSummary(
        a.n_rows + b.n_rows,
        a.missing | b.missing,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        [_union(x, y) for x, y in zip(a.distinct, b.distinct, strict=True)],
        join_ends(a.ends, b.ends),
        join_ends(a.weights, b.weights),
    )


def _union(a: NDArray | None, b: NDArray | None) -> NDArray | None:
    if a is None or b is None:
        return None
    both = np.union1d(a, b)
    return both if both.size <= MAX_BINS else None


def rows_of(part: Read) -> Read:
    """Return the rows with arrays of the types of kernels."""
    weight = None if part.weight is None else writable(part.weight)
    return Read(writable(part.values), writable(part.target), weight)
