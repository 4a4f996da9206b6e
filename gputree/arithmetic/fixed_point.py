"""Weights and targets in fixed point: sums of integers have no order.

A unit is a power of two, so that scaling back is exact. Errors: a weight that is not a
integer of units is off by at most a unit, ``2**-49`` of the total weight; a target by
half a unit of about ``2**-60`` of (total weight x range), and at least ``2**-52`` of the range.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import ROW, Floats, Int32s, Int64s
from gputree.compilation import jitable, kernel
from gputree.criteria.poisson import deviance_terms

WEIGHT_BITS = 50  # total weight, in units: exact in float64, with space for sums
EXACT_WEIGHT_BITS = 31  # weights this short multiply targets without a second rounding
SUM_BITS = 60  # sums over all rows, in units: int64 with space for centring
TARGET_BITS = 52  # one target: exact in float64
LEAST_MEAN_WEIGHT = 2.0**-4  # of rows whose gains are compared in steps of 2**-20 of a weight
MOST_TOTAL_WEIGHT = 2.0**36  # whose terms ``x log2 x`` are finer than these steps
LEAST_REACH = 2.0**-400  # targets nearer to each other are equal: their squares underflow
LEAST_UNIT = 2.0**-1022  # the smallest normal float64
REST_BITS = 30  # what a square loses is kept in a second integer
_BLOCK = 1 << 16  # numbers that are converted at once
Ends = tuple[float, float]  # the minimum and the maximum of some targets


class Weights(NamedTuple):
    """Fixed-point weights: ``weight x unit x scale``; None where all are equal."""

    weight: Int64s | None
    unit: float  # a power of two
    scale: float  # 1, or the weight that all rows share, or see `about_one`
    total: int  # sum of all weights, in units


class Targets(NamedTuple):
    """Fixed-point targets: per row weight x (y - centre), and its square."""

    target: Int64s
    square: Int64s
    square_rest: Int64s
    centre: float
    unit: float  # of `target`, a unit of weight
    square_unit: float  # of `square`, a unit of weight
    rounded: bool  # weight x target is not an integer of units
    reach: float  # a power of two, an upper bound of deviations from the centre


def power_of_two(x: float) -> float:
    """The smallest power of two that is at least x > 0."""
    mantissa, exponent = math.frexp(x)
    return float(np.ldexp(1.0, exponent - (1 if mantissa == 0.5 else 0)))


def fix_weights(sample_weight: NDArray[Any] | None, n: int, fractions: bool = False) -> Weights:
    """Weights in units: exactly, where a unit divides them all, else rounded.

    Of the rows, n have weight; those of weight zero have no units, or any where all others have
    the same weight. With `fractions` all have weight, and parts of rows will be weighed: the unit
    is the finest that sums allow.
    """
    highest = 1.0 if sample_weight is None else float(sample_weight.max())
    if sample_weight is None or np.count_nonzero(sample_weight == highest) == n:
        if not fractions:
            return Weights(None, 1.0, highest, n)
        units = int(2.0**WEIGHT_BITS / power_of_two(n))
        return Weights(np.full(n, units), 1.0 / units, highest, n * units)
    coarse = coarse_unit(highest, n)
    unit = finest_unit(coarse, count_units(sample_weight, coarse))
    weight = round_weights(sample_weight, unit)
    shift = 0 if fractions else common_shift(int(np.bitwise_or.reduce(weight)))
    weight >>= shift
    return Weights(weight, unit * 2.0**shift, 1.0, int(weight.sum()))


def fix_counts(counts: Int32s) -> tuple[Int64s | None, Weights]:
    """Rows with weight, None for all; and weights that are numbers of times rows are drawn."""
    entries, weight, (found,) = counted(counts[None])
    n, total, highest, n_highest, common = found.tolist()
    taken = None if n == counts.size else entries.astype(np.int64)
    if n == n_highest:
        return taken, Weights(None, 1.0, float(highest), n)
    shift = common_shift(common)
    if shift > 0:
        weight >>= shift
    return taken, Weights(weight[0], 2.0**shift, 1.0, total >> shift)


def counted(counts: NDArray[Any]) -> tuple[NDArray[np.int32], Int64s, Int64s]:
    """Rows that T trees have drawn, tree after tree, and their numbers of draws as int64 (T, n).

    Also returns (T, 5): how many rows a tree has drawn, the sum of its counts, the highest one and
    how many rows have it, and the bitwise or of all.
    """
    entries, weight = np.empty(counts.size, ROW), np.empty(counts.shape, np.int64)
    found = np.empty((len(counts), 5), np.int64)
    return entries[: take_counts(counts, entries, weight, found)], weight, found


@kernel
def take_counts(counts: Any, entries: Any, weight: Any, found: Any) -> Any:
    """Fill the arrays that `counted` returns; returns the number of entries."""
    end = np.int64(0)
    for t in range(counts.shape[0]):
        begin, total, common = end, np.int64(0), np.int64(0)
        highest, n_highest = np.int64(1), np.int64(0)
        for i in range(np.uintp(counts.shape[1])):
            count = np.int64(counts[t, i])
            entries[end] = i
            weight[t, i] = count
            end += count > 0
            total += count
            common |= count
            if count > highest:
                highest, n_highest = count, np.int64(0)
            n_highest += count == highest
        found[t, 0] = end - begin
        found[t, 1] = total
        found[t, 2] = highest
        found[t, 3] = n_highest
        found[t, 4] = common
    return end


def coarse_unit(highest: float, n: int) -> float:
    """A unit in which the sum of n weights of at most `highest` cannot overflow."""
    return power_of_two(highest) * power_of_two(n) * 2.0**-WEIGHT_BITS


def count_units(sample_weight: Floats, coarse: float) -> int:
    """The total weight in units of `coarse`, each weight rounded up.

    A sum of integers bounds the total in any order of rows, and closely where weights differ.
    """
    return int(as_integers(_in_place(np.ceil, sample_weight / coarse)).sum())


def finest_unit(coarse: float, total: int) -> float:
    """Unit of weights whose total is `total` units of `coarse`."""
    return power_of_two(float(total)) * coarse * 2.0**-WEIGHT_BITS


def round_weights(sample_weight: Floats, unit: float) -> Int64s:
    """Weights in units, one at least where there is weight."""
    units = _in_place(np.rint, sample_weight / unit)
    return as_integers(np.maximum(units, sample_weight > 0.0, out=units))


def as_integers(values: Floats) -> Int64s:
    """Convert integers from float64 to int64 in place: tables may nearly fill the memory."""
    integers = values.view(np.int64)
    for begin in range(0, values.size, _BLOCK):
        integers[begin : begin + _BLOCK] = values[begin : begin + _BLOCK].astype(np.int64)
    return integers


def _in_place(round_: np.ufunc, values: Floats) -> Floats:
    """The values rounded, in the same memory."""
    return round_(values, out=values)


def common_shift(common: int) -> int:
    """Number of low bits that are zero in all weights; `common` is their bitwise or."""
    return (common & -common).bit_length() - 1


def in_units(values: Floats) -> tuple[Int64s, float]:
    """Values of 0 and more as integers whose sums fit int64, and their unit, a power of two.

    Integers stay so while they add up to less than ``2**53``.
    """
    highest = float(values.max(initial=0.0))
    if highest == 0.0:
        return np.zeros(values.size, np.int64), 1.0
    coarse = max(power_of_two(highest) * power_of_two(values.size) * 2.0**-SUM_BITS, LEAST_UNIT)
    total = int(np.ceil(values / coarse).astype(np.int64).sum())
    unit = max(power_of_two(float(total)) * coarse * 2.0**-SUM_BITS, LEAST_UNIT)
    return np.rint(values / unit).astype(np.int64), unit


@jitable
def fraction(weight: Any, part: Any, whole: Any) -> Any:
    """Multiply a weight by ``part / whole``, in units."""
    return np.int64(np.rint(np.float64(weight) * (np.float64(part) / np.float64(whole))))


def about_one(weights: Weights, n: int) -> Weights:
    """Weights of n rows, in a unit that brings the mean of tiny or huge ones near 1."""
    total = weights.total * weights.unit
    if n * LEAST_MEAN_WEIGHT <= total <= MOST_TOTAL_WEIGHT:
        return weights
    size = power_of_two(total / n)
    return weights._replace(unit=weights.unit / size, scale=weights.scale * size)


def frame(low: float, high: float) -> tuple[float, float]:
    """Middle of a range of targets, and a power of two that their deviations from it are up to."""
    centre = 0.5 * low + 0.5 * high
    return centre, power_of_two(max(high - centre, centre - low, LEAST_REACH))


def target_unit(reach: float, total: int) -> float:
    """Unit of targets that deviate by up to `reach`, of rows with a `total` weight."""
    return max(reach * 2.0**-TARGET_BITS, reach * power_of_two(total) * 2.0**-SUM_BITS)


def square_unit(reach: float, total: int) -> float:
    """Unit of the squares of these targets."""
    return reach * reach * power_of_two(total) * 2.0**-SUM_BITS


def fix_targets(y: Floats, weights: Weights, ends: Ends | None = None) -> Targets:
    """Targets in units, from the middle of their range, which no order of rows changes.

    `ends` are the minimum and the maximum of all, where `y` has some of them.
    """
    centre, reach = frame(*(ends or (float(y.min()), float(y.max()))))
    deviation = y - centre
    target, unit, rounded = _fix_deviations(deviation, reach, weights)
    square, rest, square_unit = _fix_squares(deviation, reach, weights)
    return Targets(target, square, rest, centre, unit, square_unit, rounded, reach)


def fix_rates(y: Floats, weights: Weights, ends: Ends | None = None) -> Targets:
    """Non-negative targets in units, from 0, so that a sum of no events is detected; see `poisson`.

    `ends` are as for `fix_targets`; `square` is what the Poisson criterion knows deviations by, in
    units of `target`.
    """
    high = float(y.max()) if ends is None else ends[1]
    reach = power_of_two(max(high, LEAST_REACH))
    target, unit, rounded = _fix_deviations(y, reach, weights)
    weight = np.ones(y.size, np.int64)
    if weights.weight is not None:  # terms are per weight, of rows without any, too
        np.maximum(weights.weight, 1, out=weight)
    term, rest = np.empty_like(target), np.empty_like(target)
    deviance_terms(target, weight, unit / reach, REST_BITS, term, rest)
    return Targets(target, term, rest, 0.0, unit, unit, rounded, reach)


def _fix_deviations(
    deviation: Floats, reach: float, weights: Weights
) -> tuple[Int64s, float, bool]:
    """Weight x deviation in units, the unit, and whether products had to be rounded."""
    if weights.weight is None or weights.total < 2**EXACT_WEIGHT_BITS:
        unit = target_unit(reach, weights.total)
        target = as_integers(_in_place(np.rint, deviation * (1.0 / unit)))
        if weights.weight is not None:
            target *= weights.weight
        return target, unit, False
    unit = reach * power_of_two(weights.total) * 2.0**-SUM_BITS
    units = deviation / unit
    units *= weights.weight
    return as_integers(_in_place(np.rint, units)), unit, True


def _fix_squares(deviation: Floats, reach: float, weights: Weights) -> tuple[Int64s, Int64s, float]:
    """Weight x squared deviation, as whole units and a rest in 2**-30 of one."""
    unit = square_unit(reach, weights.total)
    square = deviation * deviation
    if weights.weight is not None:
        square *= weights.weight
    square *= 1.0 / unit
    whole = np.floor(square)
    square -= whole
    square *= 2.0**REST_BITS
    return as_integers(whole), as_integers(_in_place(np.rint, square)), unit


def fix_drawn_targets(y: Floats, weight: Int64s, totals: Int64s) -> Targets:
    """Targets as `fix_targets` has them for each of T trees, whose counts are `weight` (T, n).

    All fields but `rounded` have a row for each tree; rows that it has not drawn have 0.
    """
    ends = np.empty((totals.size, 2))
    find_ends(y, weight, ends)
    units = []
    for (low, high), total in zip(ends.tolist(), totals.tolist(), strict=True):
        centre, reach = frame(low, high)
        units.append((centre, target_unit(reach, total), square_unit(reach, total), reach))
    centre, unit, of_squares, reach = np.array(units).T
    fixed: tuple[Any, ...] = tuple(np.empty(weight.shape, np.int64) for _ in range(3))
    fix_deviations(y, weight, centre, unit, of_squares, *fixed)
    return Targets._make((*fixed, centre, unit, of_squares, False, reach))


def fix_drawn_rates(y: Floats, weight: Int64s, totals: Int64s) -> Targets:
    """Targets as `fix_rates` has them for each of T trees; see `fix_drawn_targets`."""
    ends = np.empty((totals.size, 2))
    find_ends(y, weight, ends)
    each = [
        fix_rates(y.clip(low, high), Weights(counts, 1.0, 1.0, total), (low, high))
        for (low, high), counts, total in zip(ends.tolist(), weight, totals.tolist(), strict=True)
    ]
    fields = [np.array(field) for field in zip(*each, strict=True)]
    return Targets._make(fields)._replace(rounded=False)


@kernel
def find_ends(y: Any, counts: Any, ends: Any) -> None:
    """Write the lowest and the highest target that each of T trees has drawn to `ends` (T, 2)."""
    for t in range(counts.shape[0]):
        low, high = np.inf, -np.inf
        for i in range(np.uintp(counts.shape[1])):
            if counts[t, i] > 0:
                low, high = min(low, y[i]), max(high, y[i])
        ends[t, 0] = low
        ends[t, 1] = high


@kernel
def fix_deviations(
    y: Any,
    weight: Any,
    centre: Any,
    unit: Any,
    of_squares: Any,
    target: Any,
    square: Any,
    rest: Any,
) -> None:
    """Fill the targets of `fix_drawn_targets`."""
    for t in range(weight.shape[0]):
        per_unit, per_square = 1.0 / unit[t], 1.0 / of_squares[t]
        for i in range(np.uintp(weight.shape[1])):
            count = weight[t, i]
            deviation = y[i] - centre[t] if count > 0 else 0.0
            target[t, i] = np.int64(np.rint(deviation * per_unit)) * count
            units = deviation * deviation * np.float64(count) * per_square
            whole = np.floor(units)
            square[t, i] = np.int64(whole)
            rest[t, i] = np.int64(np.rint((units - whole) * 2.0**REST_BITS))
