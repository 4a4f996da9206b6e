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
from gputree.backends.cpu.jit import borrowing, inner, pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.bounds import (
    LANES,
    ROUNDING,
    Opened,
    bound_cuts,
    error_of,
    squares_of_cuts,
)
from gputree.backends.cpu.ranked.lists import RANK, partition_values
from gputree.base.dtypes import Floats, Int64s
from gputree.compilation import jitable, overload
from gputree.criteria import dispatch
from gputree.criteria.dispatch import formula
from gputree.criteria.logarithm import xlog2x
from gputree.criteria.multi_output import Entropies, Ginis, SquaredErrors, WideGinis

ROOT_2 = 1.4142135623730951
COMMON = 2.0**-44  # rounding of scores, relative to their base

OF_CLASSES = (Ginis, WideGinis, Entropies)
OF_SUMS = (SquaredErrors, *OF_CLASSES)


class Totals(NamedTuple):
    """Sums of a node; in regression also the means of the targets: integers, and their rests.

    Deviations of its rows from the means are those of `bounds`; none where cuts are not bounded.
    """

    sums: Int64s
    centre: Int64s
    rest: Floats
    deviation: NDArray[np.float64]  # (rows, width)
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


@formula(formulas.is_best, SquaredErrors)
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
def partition_targets(criterion, rows, s, ranks, left, sides):
    target, spare, k = rows.target, sides.targets, rows.target.shape[1]
    for rank in range(ranks.size):
        new = ranks[rank]
        for j in range(k):
            if new >= 0:
                target[s + new, j] = target[s + rank, j]
            else:
                spare[~new, j] = target[s + rank, j]
    for i in range(ranks.size - left):
        for j in range(k):
            target[s + left + i, j] = spare[i, j]
    partition_values(rows.weight, s, ranks, left, sides.weights)


@borrowing
def weight_of(rows, s, t):
    """Weight of the rows of a node."""
    whole = np.int64(0)
    for i in range(s, t):
        whole += np.int64(pick(rows.weight, i, 1))
    return whole


@jitable
def padded(width):
    """Columns of deviations, for so many targets."""
    return -(-width // LANES) * LANES


@borrowing
def needed_bound(opened, best, least):
    """Bound that a cut needs to score above `best`, and as much as a cut with a bound from below.

    Scores are rounded relative to the base that they have in common.
    """
    rounding = COMMON * opened.base / opened.factor
    return max(max((best - opened.base) / opened.factor, least) - rounding, 0.0)


# ------------------------------------------------------------------ by criterion
@dispatch.stub
def n_sums(criterion):
    """Number of sums of a node."""


@dispatch.stub
def scale_of(criterion, j):
    """Size of the units of sum j, relative to others."""


@dispatch.stub
def add_targets(criterion, sums, rows, i, units):
    """Add row i, of so many units of weight, to sums."""


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


@formula(formulas.sweep, *OF_SUMS)
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
    for j in range(left.size):
        left[j] = 0
    # `left` are the sums of the rows before element i, of weight `moved`; missing ones move first,
    # as elements below 0; `best` is the score to beat, and `place` the cut that reached it
    for i in range(first, known):
        rank = s + np.int64(elements[i if i >= 0 else size + i] & RANK)
        units = np.int64(pick(rows.weight, rank, 1))
        add_targets(criterion, left, rows, rank, units)
        moved += units
        if square[i - first] < needed:
            continue
        value = score_of(criterion, totals, left, moved, whole)
        if value > best:
            best, place = value, np.int64(i + 1)
    if place < 0:
        return cut
    return new_cut(best, column, missing_left, place, False, 0.0, column_rank)


# ----------------------------------------------------------------- of regression
@formula(formulas.new_totals, SquaredErrors, how=overload)
def new_target_totals(criterion, rows, size):
    k = rows.target.shape[1]
    deviation = np.zeros((size, padded(k)))
    return Totals(np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k), deviation, np.empty(k))


@formula(scale_of, SquaredErrors)
def target_scale(criterion, j):
    return criterion.scale[j]


@formula(n_sums, SquaredErrors)
def n_targets(criterion):
    return criterion.scale.size


@formula(formulas.measure_targets, SquaredErrors)
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


@formula(formulas.open_node, SquaredErrors)
def open_targets(criterion, rows, s, t, totals):
    """Sums, means and deviations of the targets."""
    whole, sums, deviation, size = weight_of(rows, s, t), totals.sums, totals.deviation, totals.size
    for j in range(sums.size):
        sums[j] = 0
        size[j] = 0.0
    for i in range(s, t):
        for j in range(sums.size):
            sums[j] += rows.target[i, j]
    for j in range(sums.size):
        centre = sums[j] // whole
        totals.centre[j] = centre
        totals.rest[j] = np.float64(sums[j] - centre * whole) / np.float64(whole)
    for i in range(s, t):
        units = np.int64(pick(rows.weight, i, 1))
        for j in range(sums.size):
            exact = np.float64(rows.target[i, j] - totals.centre[j] * units)
            value = (exact - np.float64(units) * totals.rest[j]) * criterion.scale[j]
            deviation[i - s, j] = value
            size[j] += abs(value)
    # exact scores are of sums rounded by less than a unit, and of products with the weight
    unit = 1.0 + np.float64(whole) * ROUNDING
    error = error_of(size, t - s, unit)
    return Opened(whole, 0.0, 1.0, error)


@formula(add_targets, SquaredErrors)
def add_to_sums(criterion, sums, rows, i, units):
    for j in range(sums.size):
        sums[j] += rows.target[i, j]


@formula(score_of, SquaredErrors)
def squared_score(criterion, totals, left, moved, whole):
    """Sum of the scores of `SquaredError`, in four parts: sums of equal terms are exact."""
    a = np.float64(moved)
    parts = (0.0, 0.0, 0.0, 0.0)
    for j in range(left.size):
        deviation = np.float64(left[j] - totals.centre[j] * moved) - a * totals.rest[j]
        d = deviation * criterion.scale[j]
        parts = (parts[1], parts[2], parts[3], parts[0] + d * d)
    square = (parts[0] + parts[2]) + (parts[1] + parts[3])
    return square / (a * np.float64(whole - moved))


@formula(gain_per_weight, SquaredErrors)
def squared_gain(criterion, value, totals, whole):
    return value * criterion.unit * criterion.unit / np.float64(criterion.scale.size)


# ------------------------------------------------------------- of classification
@formula(formulas.new_totals, *OF_CLASSES, how=overload)
def new_class_totals(criterion, rows, size):
    width = n_deviations(criterion)
    return Totals(
        np.empty(n_sums(criterion), np.int64), np.empty(0, np.int64), np.empty(0),
        np.zeros((size, padded(width))), np.empty(width),
    )  # fmt: skip


@dispatch.stub
def n_deviations(criterion):
    """Number of deviations of a row that bound scores."""


@formula(n_deviations, Ginis, WideGinis)
def n_indicators(criterion):
    """One of two classes, and all of more."""
    count = 0
    for j in range(criterion.offset.size - 1):
        classes = criterion.offset[j + 1] - criterion.offset[j]
        count += classes if classes > 2 else classes - 1
    return count


@formula(n_deviations, Entropies)
def no_deviations(criterion):
    return 0


@formula(scale_of, *OF_CLASSES)
def class_scale(criterion, j):
    return 1.0


@formula(n_sums, *OF_CLASSES)
def n_cells(criterion):
    return criterion.offset[-1]


@formula(formulas.measure_targets, *OF_CLASSES)
def measure_classes(criterion, rows, s, t, out, node):
    out.weight[node] = weight_of(rows, s, t)
    out.loss[node] = 0
    for i in range(s + 1, t):
        for j in range(rows.target.shape[1]):
            if rows.target[i, j] != rows.target[s, j]:
                out.loss[node] = 1
                return


@borrowing
def sum_classes(criterion, rows, s, t, sums):
    """Write the class weights of a node."""
    for c in range(sums.size):
        sums[c] = 0
    for i in range(s, t):
        add_targets(criterion, sums, rows, i, np.int64(pick(rows.weight, i, 1)))


@formula(formulas.open_node, Entropies)
def open_unbounded(criterion, rows, s, t, totals):
    """Class weights; all cuts are scored."""
    sum_classes(criterion, rows, s, t, totals.sums)
    return Opened(weight_of(rows, s, t), 0.0, 1.0, np.inf)


@formula(formulas.open_node, Ginis, WideGinis)
def open_classes(criterion, rows, s, t, totals):
    """Class weights, and deviations of indicators of classes from their shares.

    Both of two classes deviate alike: they count by one indicator, times the root of 2.
    """
    sums, offset, deviation, size = totals.sums, criterion.offset, totals.deviation, totals.size
    sum_classes(criterion, rows, s, t, sums)
    whole, base = weight_of(rows, s, t), 0.0
    for c in range(sums.size):
        base += np.float64(sums[c]) * np.float64(sums[c])
    base /= np.float64(whole)
    column = 0
    # `column` is the first indicator of target j
    for j in range(offset.size - 1):
        classes = offset[j + 1] - offset[j]
        first = offset[j] + (classes == 2)
        for c in range(first, offset[j + 1] if classes > 1 else first):
            share = np.float64(sums[c]) / np.float64(whole)
            size[column] = 0.0
            for i in range(s, t):
                units = np.float64(pick(rows.weight, i, 1))
                value = units - units * share if rows.target[i, j] == c else -units * share
                value *= ROOT_2 if classes == 2 else 1.0
                deviation[i - s, column] = value
                size[column] += abs(value)
            column += 1
    return Opened(whole, base, np.float64(whole), error_of(size, t - s, 0.0))


@formula(add_targets, *OF_CLASSES)
def add_to_classes(criterion, sums, rows, i, units):
    for j in range(rows.target.shape[1]):
        sums[np.intp(rows.target[i, j])] += units


@formula(score_of, Ginis)
def gini_score(criterion, totals, left, moved, whole):
    square_left = square_right = np.int64(0)
    for c in range(left.size):
        b = totals.sums[c] - left[c]
        square_left += left[c] * left[c]
        square_right += b * b
    return np.float64(square_left) / np.float64(moved) + np.float64(square_right) / np.float64(
        whole - moved
    )


@formula(score_of, WideGinis)
def wide_gini_score(criterion, totals, left, moved, whole):
    parts = (0.0, 0.0, 0.0, 0.0)
    for j in range(criterion.offset.size - 1):
        square_left = square_right = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            a, b = np.float64(left[c]), np.float64(totals.sums[c] - left[c])
            square_left += a * a
            square_right += b * b
        value = square_left / np.float64(moved) + square_right / np.float64(whole - moved)
        parts = (parts[1], parts[2], parts[3], parts[0] + value)
    return (parts[0] + parts[2]) + (parts[1] + parts[3])


@formula(gain_per_weight, Ginis, WideGinis)
def gini_gain(criterion, value, totals, whole):
    weight = np.float64(whole)
    parts = (0.0, 0.0, 0.0, 0.0)
    for j in range(criterion.offset.size - 1):
        square = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            square += np.float64(totals.sums[c]) * np.float64(totals.sums[c])
        parts = (parts[1], parts[2], parts[3], parts[0] + square)
    square = (parts[0] + parts[2]) + (parts[1] + parts[3])
    return (value - square / weight) / weight / np.float64(criterion.offset.size - 1)


@formula(score_of, Entropies)
def entropy_score(criterion, totals, left, moved, whole):
    unit = criterion.unit
    sides = xlog2x(np.float64(moved) * unit) + xlog2x(np.float64(whole - moved) * unit)
    parts = (0.0, 0.0, 0.0, 0.0)
    for j in range(criterion.offset.size - 1):
        value = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            a = np.float64(left[c]) * unit
            b = np.float64(totals.sums[c] - left[c]) * unit
            value += xlog2x(a) + xlog2x(b)
        parts = (parts[1], parts[2], parts[3], parts[0] + (value - sides))
    return (parts[0] + parts[2]) + (parts[1] + parts[3])


@formula(gain_per_weight, Entropies)
def entropy_gain(criterion, value, totals, whole):
    unit = criterion.unit
    parts = (0.0, 0.0, 0.0, 0.0)
    for j in range(criterion.offset.size - 1):
        weight = within = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            a = np.float64(totals.sums[c]) * unit
            weight += a
            within += xlog2x(a)
        parts = (parts[1], parts[2], parts[3], parts[0] + (within - xlog2x(weight)))
    weight = np.float64(whole) * unit
    found = (parts[0] + parts[2]) + (parts[1] + parts[3])
    return (value - found) / weight / np.float64(criterion.offset.size - 1)


# ------------------------------------------------------------------- categories
# Steps towards the first principal direction: its order of the groups is what counts.
STEPS = 16


@borrowing
def group_weight(elements, begin, end, rows, s):
    """Weight of some elements."""
    weight = np.int64(0)
    for i in range(begin, end):
        weight += np.int64(pick(rows.weight, s + np.int64(elements[i] & RANK), 1))
    return weight


@formula(formulas.group_keys, *OF_SUMS, how=overload)
def principal_keys(criterion, elements, begin, rows, s):
    """Places of groups along the first principal direction of their means, and first means.

    Of one target, or of two classes, that is the order of the means, which is optimal.
    """
    m, k = begin.size - 1, n_sums(criterion)
    means, weights, sums = np.empty((m, k)), np.empty(m), np.empty(k, np.int64)
    for g in range(m):
        sums[:] = 0
        weights[g] = np.float64(group_weight(elements, begin[g], begin[g + 1], rows, s))
        for i in range(begin[g], begin[g + 1]):
            rank = s + np.int64(elements[i] & RANK)
            add_targets(criterion, sums, rows, rank, np.int64(pick(rows.weight, rank, 1)))
        for j in range(k):
            means[g, j] = np.float64(sums[j]) * scale_of(criterion, j) / weights[g]
    return project(means, weights), means[:, 0].copy()


@inner
def project(means, weights):
    """Project means (m, k) of some weights on their first principal direction.

    Its last component that is not 0 is positive.
    """
    m, k = means.shape
    middle, direction, following = np.zeros(k), np.zeros(k), np.zeros(k)
    for g in range(m):
        for j in range(k):
            middle[j] += weights[g] * means[g, j]
    middle /= weights.sum()
    # from the group that varies most, by steps of the power method
    farthest, most = 0, -1.0
    for g in range(m):
        spread = 0.0
        for j in range(k):
            spread += (means[g, j] - middle[j]) ** 2
        if weights[g] * spread > most:
            farthest, most = g, weights[g] * spread
    direction[:] = means[farthest] - middle
    for _ in range(STEPS):
        largest = np.abs(direction).max()
        if largest == 0.0:
            break
        direction /= largest
        following[:] = 0.0
        for g in range(m):
            along = 0.0
            for j in range(k):
                along += (means[g, j] - middle[j]) * direction[j]
            for j in range(k):
                following[j] += weights[g] * along * (means[g, j] - middle[j])
        direction[:] = following
    for j in range(k - 1, -1, -1):
        if direction[j] != 0.0:
            direction /= direction[j]
            break
    places = np.zeros(m)
    for g in range(m):
        for j in range(k):
            places[g] += (means[g, j] - middle[j]) * direction[j]
    return places
