"""The sweep by sums of several targets: scores of the cuts of a list, in the order of `cut`.

Rows move to the left one after the other, with the sums of all their targets, in integers. A score
is made of the sums alone, so cuts of equal sides score the same; a target given twice
scores twice as much, exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import narrow, new_cut, score_to_beat
from gputree.backends.cpu.cut import precedes as cut_precedes
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.bounds import (
    ROUNDING,
    Opened,
    bound_cuts,
    error_of,
    padded,
    squares_of_cuts,
)
from gputree.backends.cpu.ranked.lists import RANK, partition_values
from gputree.base.dtypes import Floats, Int64s
from gputree.compilation import borrowing, overload, overload_pasted, pasted, pick
from gputree.criteria import dispatch
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import (
    MOST_SEEN,
    OF_CLASSES,
    OF_NUMBERS,
    OF_SUMS,
    SquaredErrors,
)

COMMON = 2.0**-44  # rounding of scores, relative to the terms that they are made of

# Cuts with a bound that may be best, at least, where the one with the largest is scored first.
FEWEST_PRUNED = 16


class Totals(NamedTuple):
    """Sums of a node; in regression also the means of the targets: integers, and their rests.

    Of classes, `rest` has two deviations of each indicator. Those of rows are those of `bounds`.
    """

    sums: Int64s
    centre: Int64s
    rest: Floats
    deviation: NDArray[np.float32]  # (rows, width)
    size: Floats  # (width,) sums of the sizes of deviations


class Sides(NamedTuple):
    """Sums of the rows left of a cut; scratch for targets and weights in another order."""

    left: Int64s
    square: Floats  # of each cut, see `bounds`
    targets: NDArray  # (rows, k), of the type of targets
    weights: Int64s


@formula(formulas.no_cut, *OF_SUMS)
def no_cut(criterion):
    return new_cut(-np.inf, -1, False, 0, False, 0.0, 0)


@formula(formulas.precedes, *OF_SUMS)
def precedes(criterion, a, b):
    return cut_precedes(a, b)


@formula(formulas.is_best, *OF_CLASSES)
def is_best_of_classes(criterion, cut, rows, size, opened):
    """The cuts of two rows have the same score."""
    return size == 2 and cut.column >= 0


@formula(formulas.is_best, *OF_NUMBERS)
def is_best_of_sums(criterion, cut, rows, size, opened):
    """The cuts of two rows have the same score, but for rounding where their weights differ."""
    return size == 2 and cut.column >= 0 and rows.weight is None


@formula(formulas.new_sides, *OF_SUMS, how=overload)
def new_sides(criterion, rows, size):
    k = rows.target.shape[1]
    return Sides(
        np.empty(n_sums(criterion), np.int64),
        np.empty(size),
        np.empty((size, k), rows.target.dtype),
        np.empty(size, np.int64),
    )


@formula(formulas.partition_targets, *OF_SUMS)
def partition_targets(criterion, rows, s, ranks, sides):
    target, spare, left, n = rows.target, sides.targets, np.uintp(0), np.int64(ranks.size)
    first, k = np.uintp(s), np.uintp(target.shape[1])
    # rows before `rank` are in `spare`, those of the right side from its end on: without a branch
    for rank in range(np.uintp(n)):
        new = np.int64(ranks[rank])
        to = np.uintp(new + (n & (new >> np.int64(63))))
        left += np.uintp(new >= 0)
        for j in range(k):
            spare[to, j] = target[first + rank, j]
    for i in range(np.uintp(n)):
        of = i if i < left else np.uintp(n) - np.uintp(1) - (i - left)
        for j in range(k):
            target[first + i, j] = spare[of, j]
    partition_values(rows.weight, s, ranks, None, 0, sides.weights)


@borrowing
def weight_of(rows, s, t):
    """Weight of the rows of a node."""
    whole = np.int64(0)
    for i in range(s, t):
        whole += np.int64(pick(rows.weight, i, 1))
    return whole


# A float64 sum over targets in four parts, taken in turn: sums of equal terms are exact.
NO_PARTS = (0.0, 0.0, 0.0, 0.0)


@pasted
def add_part(parts, value):
    """The parts with one term more."""
    return parts[1], parts[2], parts[3], parts[0] + value


@pasted
def sum_of_parts(parts):
    """The sum of all terms."""
    return (parts[0] + parts[2]) + (parts[1] + parts[3])


@borrowing
def needed_bound(opened, best, least):
    """Bound that a cut needs to score above `best`, and as much as a cut with a bound from below.

    The latter only where the bounds are those of the scores themselves.
    """
    level = (best - opened.base - opened.rounding) / opened.factor
    if opened.is_least:
        level = max(level, least - 2.0 * opened.rounding / opened.factor)
    return max(level, 0.0)


@borrowing
def most_promising(square, n, needed):
    """Number of the cut with the largest of n bounds, or -1 if few of them reach `needed`."""
    most = count = 0
    for i in range(n):
        count += square[i] >= needed
        if square[i] > square[most]:
            most = i
    return most if count >= FEWEST_PRUNED else -1


@borrowing
def last_of(square, n, needed):
    """Number of the last of n cuts with a bound that reaches `needed`, or -1."""
    while n > 0 and square[n - 1] < needed:
        n -= 1
    return n - 1


@borrowing
def score_of_cut(criterion, elements, first, last, rows, s, totals, whole, left):
    """Score of the cut after element `last`; `left` become the sums of the rows before it."""
    size, moved = elements.size, np.int64(0)
    for j in range(left.size):
        left[j] = 0
    for i in range(first, last + 1):
        rank = s + np.int64(elements[i if i >= 0 else size + i] & RANK)
        units = np.int64(pick(rows.weight, rank, 1))
        add_targets(criterion, left, 0, rows, rank, units)
        moved += units
    return score_of(criterion, totals, left, moved, whole)


# ------------------------------------------------------------------ by criterion
@dispatch.stub
def n_sums(criterion):
    """Number of sums of a node."""


@dispatch.stub
def scale_of(criterion, j):
    """Size of the units of sum j, relative to others."""


@dispatch.stub
def add_targets(criterion, sums, first, rows, i, units):
    """Add row i, of so many units of weight, to the sums from `first` on."""


@dispatch.stub
def score_of(criterion, totals, left, moved, whole):
    """Score of the cut with the sums `left`, of weight `moved` of `whole`, on its left."""


@dispatch.stub
def gain_per_weight(criterion, value, totals, whole):
    """Decrease of impurity per unit of weight by a cut of score `value`."""


@formula(formulas.gain_of, *OF_SUMS)
def gain_of(criterion, cut, out, node, totals, opened):
    gain = gain_per_weight(criterion, cut.score, totals, opened.whole)
    return gain * np.float64(out.weight[node]), gain


@formula(formulas.sweep, *OF_SUMS, how=overload_pasted)
def sweep(
    criterion, limits, elements, known, missing_left, rows, s, totals, opened, sides, cut,
    column, column_rank,
):  # fmt: skip
    """Score the cuts that no bound excludes."""
    size, whole, left, square = elements.size, opened.whole, sides.left, sides.square
    first = known - size if missing_left else 0
    moved, best, place = np.int64(0), score_to_beat(cut, column_rank), np.int64(-1)
    squares_of_cuts(elements, first, known, totals.deviation, square)
    most, least = bound_cuts(limits, elements, first, known, rows, s, opened, square)
    needed = needed_bound(opened, best, least)
    if most < needed:
        return cut
    if not opened.is_least and whole > MOST_SEEN:  # scores cost more than another pass
        promising = most_promising(square, known - first, needed)
        if promising >= 0:
            last = first + promising
            value = score_of_cut(criterion, elements, first, last, rows, s, totals, whole, left)
            needed = max(needed, needed_bound(opened, value, least))
    for j in range(left.size):
        left[j] = 0
    # `left` are the sums of the rows before element i, of weight `moved`; missing ones move first,
    # as elements below 0; `best` is the score to beat, and `place` the cut that reached it
    for i in range(first, first + last_of(square, known - first, needed) + 1):
        rank = s + np.int64(elements[i if i >= 0 else size + i] & RANK)
        units = np.int64(pick(rows.weight, rank, 1))
        add_targets(criterion, left, 0, rows, rank, units)
        moved += units
        if square[i - first] < needed:
            continue
        value = score_of(criterion, totals, left, moved, whole)
        if value > best:
            best, place = value, np.int64(i + 1)
    if place < 0:
        return cut
    return new_cut(best, column, missing_left, place, False, 0.0, column_rank)


@formula(formulas.new_totals, *OF_NUMBERS, how=overload)
def new_target_totals(criterion, rows, size):
    k = rows.target.shape[1]
    deviation = np.zeros((size, padded(k)), np.float32)
    return Totals(np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k), deviation, np.empty(k))


@formula(scale_of, *OF_NUMBERS)
def target_scale(criterion, j):
    return criterion.scale[j]


@formula(n_sums, *OF_NUMBERS)
def n_targets(criterion):
    return criterion.scale.size


@formula(formulas.measure_targets, *OF_NUMBERS)
def measure_targets(criterion, rows, s, t, out, node):
    out.weight[node] = weight_of(rows, s, t)
    out.loss[node] = 0
    for j in range(rows.target.shape[1]):
        interval = (-np.inf, np.inf)
        for i in range(s, t):
            units = np.int64(pick(rows.weight, i, 1))
            interval = narrow(interval, rows.target[i, j], units, criterion.rounded)
            if interval[0] > interval[1]:
                out.loss[node] = 1
                return


@borrowing
def sum_targets(rows, s, t, sums):
    """Write the sums of the targets of a node."""
    for j in range(sums.size):
        sums[j] = 0
    for i in range(s, t):
        for j in range(sums.size):
            sums[j] += rows.target[i, j]


@formula(formulas.open_node, SquaredErrors)
def open_targets(criterion, rows, s, t, totals):
    """Sums, means and deviations of the targets."""
    whole, sums, deviation, size = weight_of(rows, s, t), totals.sums, totals.deviation, totals.size
    sum_targets(rows, s, t, sums)
    for j in range(sums.size):
        size[j] = 0.0
        centre = sums[j] // whole
        totals.centre[j] = centre
        totals.rest[j] = np.float64(sums[j] - centre * whole) / np.float64(whole)
    for i in range(s, t if deviation.shape[0] > 0 else s):
        units = np.int64(pick(rows.weight, i, 1))
        for j in range(sums.size):
            exact = np.float64(rows.target[i, j] - totals.centre[j] * units)
            value = (exact - np.float64(units) * totals.rest[j]) * criterion.scale[j]
            deviation[i - s, j] = value
            size[j] += abs(value)
    # exact scores are of sums rounded by less than a unit, and of products with the weight
    unit = 1.0 + np.float64(whole) * ROUNDING
    error = error_of(size, t - s, unit)
    return Opened(whole, 0.0, 1.0, error, 0.0, True)


@formula(add_targets, *OF_NUMBERS)
def add_to_sums(criterion, sums, first, rows, i, units):
    first, i = np.uintp(first), np.uintp(i)
    for j in range(np.uintp(rows.target.shape[1])):
        sums[first + j] += rows.target[i, j]


@formula(score_of, SquaredErrors)
def squared_score(criterion, totals, left, moved, whole):
    """Sum of the scores of `SquaredError`."""
    a = np.float64(moved)
    parts = NO_PARTS
    for j in range(left.size):
        deviation = np.float64(left[j] - totals.centre[j] * moved) - a * totals.rest[j]
        d = deviation * criterion.scale[j]
        parts = add_part(parts, d * d)
    square = sum_of_parts(parts)
    return square / (a * np.float64(whole - moved))


@formula(gain_per_weight, SquaredErrors)
def squared_gain(criterion, value, totals, whole):
    return value * criterion.unit * criterion.unit / np.float64(criterion.scale.size)
