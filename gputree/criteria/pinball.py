"""Absolute error and the pinball loss, whose leaves predict medians and other quantiles.

A row of target y has the loss ``up * (y - m)`` at a prediction m below it, and ``down * (m - y)``
at one above, in integers: the absolute error has 1 and 1, the quantile ``up / (up + down)`` a
fraction of a small denominator. The best prediction of a set of rows is that quantile: the lowest
target up to which they have ``up / (up + down)`` of the weight. Targets have the bits that weights
leave of `MOST_BITS`, so that no sum overflows.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from gputree.arithmetic.fixed_point import (
    EXACT_WEIGHT_BITS,
    LEAST_REACH,
    TARGET_BITS,
    Weights,
    power_of_two,
)
from gputree.base.dtypes import Floats, Int32s, Int64s

LARGEST_DENOMINATOR = 1000  # of a quantile: three digits are exact
MOST_BITS = 61  # of a loss, which is at most weight x range x the denominator
LEAST_WEIGHT_BITS = 13  # of the mean weight of a row, where weights are not small integers


class Pinball(NamedTuple):
    """Losses per unit of target above and below a prediction; `unit` is that of a loss."""

    up: int
    down: int
    unit: float


class RankedTargets(NamedTuple):
    """Targets (k, n) in fixed point, per unit of weight, and weights in the units they allow."""

    criterion: Pinball
    target: Int64s
    weights: Weights


def fraction_of(quantile: float) -> Fraction:
    """Return the nearest fraction of a small denominator."""
    return Fraction(quantile).limit_denominator(LARGEST_DENOMINATOR)


def fix_ranked(y: Floats, weights: Weights, quantile: float | None) -> RankedTargets:
    """Fixed point of the targets and weights of all rows that have weight.

    The absolute error is that of `quantile` None. Weights that are no small integers are rounded
    again: see `_coarser`. Of several targets, shape (k, n), the loss is the mean, in one unit.
    """
    level = Fraction(1, 2) if quantile is None else fraction_of(quantile)
    up, down = level.numerator, level.denominator - level.numerator
    y = np.atleast_2d(y)
    k, n = y.shape
    weights = _coarser(weights, n)
    bits = MOST_BITS - (up + down).bit_length() - int(weights.total).bit_length()
    bits -= (k - 1).bit_length()
    low, high = y.min(axis=1), y.max(axis=1)
    centre = 0.5 * low + 0.5 * high
    reach = float(np.maximum(high - centre, centre - low).max())
    unit = power_of_two(max(reach, LEAST_REACH)) * 2.0 ** -min(bits, TARGET_BITS)
    target = np.rint((y - centre[:, None]) / unit).astype(np.int64)
    share = 1.0 / k if quantile is None else 1.0 / (k * (up + down))
    return RankedTargets(Pinball(up, down, unit * share), target, weights)


def _coarser(weights: Weights, n: int) -> Weights:
    """The weights of n rows in units that leave bits for targets; at least one unit each."""
    if weights.weight is None:
        return weights
    spare = int(weights.total).bit_length() - max(
        EXACT_WEIGHT_BITS, n.bit_length() + LEAST_WEIGHT_BITS
    )
    if spare <= 0:
        return weights
    weight = np.maximum((weights.weight + (1 << spare - 1)) >> spare, weights.weight > 0)
    return Weights(weight, weights.unit * 2.0**spare, weights.scale, int(weight.sum()))


def absolute_errors(
    parent: Int32s,
    predictions: Floats,
    stop: Int32s,
    target: Floats,
    weight: Floats,
    power: int,
) -> tuple[Floats, Floats]:
    """Weight x absolute error, or its square, of rows that reach each node, or stop there."""
    order = np.lexsort((weight, target, stop))  # float sums in a canonical order
    node, target, weight = stop[order], target[order], weight[order]
    below = np.zeros(parent.size)
    stopped = _sums(node, predictions, target, weight, power)
    while node.size:  # rows at the node where they stop, then one level higher each
        below += _sums(node, predictions, target, weight, power)
        node = parent[node]
        inside = node >= 0
        node, target, weight = node[inside], target[inside], weight[inside]
    return below, stopped


def _sums(node: Int32s, predictions: Floats, target: Floats, weight: Floats, power: int) -> Floats:
    """Losses of rows at the predictions of some nodes, summed by node."""
    loss = weight * np.abs(target - predictions[node]) ** power
    return np.bincount(node, loss, predictions.size).astype(np.float64, copy=False)
