"""Squared error of regression targets."""

import numpy as np

from gputree.compilation import jitable
from gputree.criteria import dispatch
from gputree.criteria.dispatch import SquaredError, formula
from gputree.criteria.shared import target_means

# Relative error of the float64 sums and products of a bound, with much to spare.
ROUNDING = 1e-12

# Error of sums that nearly cancel, relative to their terms.
CANCELLED = 2.0**-50

# Units of squares in those of targets: below it, products with weights were rounded, by up to a
# half per row (`gputree.arithmetic.fixed_point`); else deviations were before, by up to a half per
# unit of weight.
ROUNDED_PRODUCTS = 2.0**29

_TAN_PI_8 = 0.41421356237309503


@formula(dispatch.begin, SquaredError)
def _squared_begin(criterion, left, total):
    """Begin with sums relative to the node's mean: centre and rest, in exact integers."""
    weight = np.int64(total[0])
    centre = np.int64(total[1]) // weight
    rest = np.float64(np.int64(total[1]) - centre * weight) / np.float64(weight)
    return np.int64(left[0]), weight, np.int64(left[1]) - centre * left[0], centre, rest


@formula(dispatch.move, SquaredError)
def _squared_move(criterion, state, left, total, target, weight):
    weight_left, whole, deviation, centre, rest = state
    return weight_left + weight, whole, deviation + (target - centre * weight), centre, rest


@formula(dispatch.means, SquaredError)
def _squared_means(criterion, state, left, total):
    weight_left, whole, deviation, centre, _ = state
    sum_left = deviation + centre * weight_left
    return target_means(weight_left, sum_left, whole, np.int64(total[1]))


@formula(dispatch.score, SquaredError)
def _squared_score(criterion, state, left, total):
    """Score ``w_l w_r (mean_l - mean_r)**2 / w**2`` over w, from the deviation of the left sum."""
    weight_left, whole, deviation, _, rest = state
    a = np.float64(weight_left)
    d = np.float64(deviation) - a * rest
    return (d * d) / (a * np.float64(whole - weight_left))


@formula(dispatch.may_exceed, SquaredError)
def _squared_may_exceed(criterion, state, left, total, value):
    """Compare the score multiplied out: its rounding errors are far less than the slack."""
    weight_left, whole, deviation, _, rest = state
    a = np.float64(weight_left)
    d = np.float64(deviation) - a * rest
    return d * d > value * (a * np.float64(whole - weight_left)) * (1.0 - ROUNDING)


@formula(dispatch.gain, SquaredError)
def _squared_gain(criterion, value, total):
    return value * criterion.unit * criterion.unit


@formula(dispatch.bound, SquaredError)
def _squared_bound(criterion, left, cells, offset, total):
    """Bound from the bin's weight b, sum and within-bin sum of squares V.

    A part of weight c deviates from c times the bin's mean by at most
    ``sqrt(V c (b - c) / b)`` (Cauchy-Schwarz): an ellipse in (c, deviation). The score is
    convex, so the corners of an octagon around the ellipse, cut to 0 <= c <= b, bound it.
    V is of exact deviations, and the score is of sums of rounded ones: the largest error of these
    widens the octagon (`off`, proved in ``docs/exact_splits.md``).
    """
    weight = np.int64(total[0])
    centre = np.int64(total[1]) // weight
    rest = np.float64(np.int64(total[1]) - centre * weight) / np.float64(weight)
    n = np.float64(weight)
    a0 = np.float64(left[0])
    b = np.float64(cells[offset])
    d0 = np.float64(np.int64(left[1]) - centre * left[0]) - a0 * rest
    s = np.float64(np.int64(cells[offset + 1]) - centre * cells[offset]) - b * rest
    mean = s / b
    bin_sum = np.float64(cells[offset + 1])
    rows = np.float64(
        cells[offset + 3] if total.size == 4 else cells[offset]
    )  # each lost less than a unit
    off = 0.5 * (rows if criterion.square_unit < ROUNDED_PRODUCTS else b)
    cancelled = (abs(d0) + abs(s)) * CANCELLED + 1.0
    low = max(abs(bin_sum) - off, 0.0)
    spread = (np.float64(cells[offset + 2]) + rows) * criterion.square_unit * (1.0 + ROUNDING)
    spread = max(spread - low * (low / b) * (1.0 - ROUNDING), 0.0)
    half = 0.5 * np.sqrt(spread * b)
    free_left = a0 == 0.0
    free_right = a0 + b == n
    most_left = most_right = most_both = 0.0
    for i in range(4):
        outer = i == 0 or i == 3  # the tangents at both ends, and those between
        share = i / 3.0 if outer else 0.5 + (i - 1.5) * _TAN_PI_8
        height = (half * _TAN_PI_8 if outer else half) + off + cancelled
        c = share * b
        a = a0 + c
        r = n - a
        d = max(abs(d0 + mean * c + height), abs(d0 + mean * c - height))
        if not free_left:
            most_left = max(most_left, d * d / a)
        if not free_right:
            most_right = max(most_right, d * d / r)
        if not free_left and not free_right:
            most_both = max(most_both, d * d / a + d * d / r)
    side = abs(s) + off + cancelled
    root = np.sqrt(spread + side * (side / b)) + np.sqrt(0.5 * off)
    alone = root * root  # only the bin: S**2 / c <= its sum of squares
    if free_left and free_right:
        return 2.0 * alone / n
    if free_left:
        return (alone + most_right) / n
    if free_right:
        return (alone + most_left) / n
    return most_both / n


@formula(dispatch.target_impurity, SquaredError)
def _squared_impurity(criterion, weight, total, squares, units):
    return variance(weight, total, squares, units.unit, units.square_unit)


@jitable
def variance(weight, total, squares, unit, square_unit):
    """Variances of nodes, or that of one, from sums in units of weight, targets and squares."""
    deviation = total * unit / weight
    mean_square = squares * square_unit / weight
    found = mean_square - deviation * deviation
    # a difference below its rounding error is no variance
    return abs(found) * (found > 8.0 * 2.0**-52 * mean_square)
