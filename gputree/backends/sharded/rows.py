"""Rows of a partition with weight, and their minimum, maximum and distinct values.

Weights and targets of all parts are in the same fixed-point units, which depend on sums. A node is
a range of each shard's row order:

row order of all   |  node 0: begin .. end                  | node 1  ...
shard 0            |  first .. last  |                         of node 0, and so on
shard 1                              |  first .. last  |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import (
    Ends,
    Weights,
    coarse_unit,
    common_shift,
    count_units,
    finest_unit,
    round_weights,
)
from gputree.backends.base import Rows
from gputree.backends.binning import MAX_BINS
from gputree.backends.sharded import tuning
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Bools, Floats, Int64s, Weight, writable
from gputree.criteria.named import fix


class Read(NamedTuple):
    """The rows of a partition that have weight."""

    values: NDArray  # (n, d)
    target: NDArray  # class codes or float64
    weight: Weight
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


class Rounding(NamedTuple):
    """Rounding of weights to units; `finest` is None where all weights are equal."""

    finest: float | None
    shift: int


def weight_units(tasks: Tasks, parts: list[Any], found: RowSummary) -> tuple[Rounding, Weights]:
    """Choose the units of all weights, as `gputree.arithmetic.fixed_point.fix_weights` does.

    The weights that are returned have no rows.
    """
    lowest, highest = found.weights
    if lowest == highest:
        return Rounding(None, 0), Weights(None, 1.0, highest, found.n_rows)
    coarse = coarse_unit(highest, found.n_rows)
    finest = finest_unit(coarse, tasks.combine(total_units, sum, parts, coarse))
    common, total = tasks.combine(rounded_sums, join_sums, parts, finest)
    shift = common_shift(common)
    weights = Weights(np.empty(0, np.int64), finest * 2.0**shift, 1.0, total >> shift)
    return Rounding(finest, shift), weights


def total_units(part: Read, coarse: float) -> int:
    """Weight of a part in coarse units."""
    return 0 if part.weight is None else count_units(part.weight, coarse)


def rounded_sums(part: Read, finest: float) -> tuple[int, int]:
    """Bitwise OR of the weights of a part in units, and their sum."""
    assert part.weight is not None
    weight = round_weights(part.weight, finest)
    return int(np.bitwise_or.reduce(weight)), int(weight.sum())


def join_sums(found: list[tuple[int, int]]) -> tuple[int, int]:
    """Join the bits and the sums of some parts."""
    common = 0
    for bits, _ in found:
        common |= bits
    return common, sum(total for _, total in found)


def in_units(
    part: Read, weights: Weights, rounding: Rounding, criterion: str | None, ends: Ends
) -> Rows:
    """Statistics of the rows of a part in units; `criterion` is of regression, or None."""
    part = rows_of(part)
    if rounding.finest is not None:
        assert part.weight is not None
        weight = round_weights(part.weight, rounding.finest) >> rounding.shift
        weights = weights._replace(weight=weight)
    if criterion is None:
        return Rows(part.target, weights.weight, None, None)
    targets = fix(criterion, part.target, weights, ends)
    return Rows(targets.target, weights.weight, targets.square, targets.square_rest)


class ShardRanges(NamedTuple):
    """Ranges of m nodes in P shards."""

    first: Int64s  # (m, P)
    last: Int64s  # (m, P)

    @property
    def rows(self) -> Int64s:
        """Number of rows of each node in each shard."""
        return self.last - self.first

    def take(self, nodes: NDArray[Any] | slice) -> ShardRanges:
        return ShardRanges(self.first[nodes], self.last[nodes])

    def shards(self) -> list[int]:
        """Shards that have rows of any node."""
        return np.flatnonzero((self.first < self.last).any(axis=0)).tolist()

    def in_shard(self, p: int) -> tuple[Int64s, Int64s]:
        """First and last of all nodes in one shard, as arrays of the types of kernels."""
        return np.ascontiguousarray(self.first[:, p]), np.ascontiguousarray(self.last[:, p])


class RangeMap:
    """Map from ranges of nodes in the order of all rows to ranges in P shards of `sizes`."""

    def __init__(self, sizes: Int64s) -> None:
        self._shards = sizes.size
        self._of = {(0, int(sizes.sum())): (np.zeros_like(sizes), sizes)}

    def of(self, begin: Int64s, end: Int64s) -> ShardRanges:
        """Return the ranges of m nodes."""
        found = [self._of[node] for node in zip(begin.tolist(), end.tolist(), strict=True)]
        both = np.array(found, np.int64).reshape(-1, 2, self._shards)
        return ShardRanges(both[:, 0], both[:, 1])

    def split(self, begin: Int64s, end: Int64s, middle: Int64s) -> Int64s:
        """Register the children of m nodes: the second ones begin at `middle` (m, P).

        Returns the first place of the second children in the order of all rows.
        """
        first, last = self.of(begin, end)
        whole: Int64s = begin + (middle - first).sum(axis=1)
        for j, (a, m, b) in enumerate(
            zip(begin.tolist(), whole.tolist(), end.tolist(), strict=True)
        ):
            self._of[a, m] = first[j], middle[j]
            self._of[m, b] = middle[j], last[j]
        return whole
