"""Shannon entropy in bits."""

from __future__ import annotations

import numpy as np

from gputree.compilation import kernel
from gputree.criteria import dispatch
from gputree.criteria.dispatch import BOUND_MARGIN, formula
from gputree.criteria.kinds import Entropy, ManyClassEntropy
from gputree.criteria.logarithm import LOG2_E, fixed_xlog2x, log2, xlog2x

# Sums of x log2 x over a table stay below 2**61 units.
ENTROPY_BITS = 61


@formula(dispatch.score, Entropy)
def _entropy_score(criterion, state, left, total):
    value = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(left[k]) * criterion.unit
        b = np.float64(total[k] - left[k]) * criterion.unit
        value += xlog2x(a) + xlog2x(b)
    weight_left = np.float64(state[0]) * criterion.unit
    weight_right = np.float64(state[1]) * criterion.unit
    return value - (xlog2x(weight_left) + xlog2x(weight_right))


@formula(dispatch.gain, Entropy, ManyClassEntropy)
def _entropy_gain(criterion, value, total):
    weight = within = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(total[k]) * criterion.unit
        weight += a
        within += xlog2x(a)
    return (value - (within - xlog2x(weight))) / weight


@formula(dispatch.margin, Entropy, ManyClassEntropy)
def _entropy_margin(criterion, value, total):
    """Margin for scores near 0, which are differences of terms that grow with the weight."""
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(total[k])
    return BOUND_MARGIN * (np.float64(weight) * criterion.unit - value)


@formula(dispatch.bound, Entropy, ManyClassEntropy)
def _entropy_bound(criterion, left, cells, offset, total):
    """Separable bound: ``-A log2 A`` is concave, so its tangent in the middle is above it."""
    middle = whole = 0.0
    for k in range(criterion.n_classes):
        middle += np.float64(left[k]) + 0.5 * np.float64(cells[offset + k])
        whole += np.float64(total[k])
    middle *= criterion.unit
    whole *= criterion.unit
    slope_left = log2(middle) + LOG2_E
    slope_right = log2(whole - middle) + LOG2_E
    value = whole * LOG2_E
    for k in range(criterion.n_classes):
        t = np.float64(total[k]) * criterion.unit
        a = np.float64(left[k]) * criterion.unit
        start = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a)
        if cells[offset + k] == 0:
            value += start
        else:
            a = np.float64(left[k] + cells[offset + k]) * criterion.unit
            end = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a)
            value += max(start, end)
    return value


@formula(dispatch.restrict, Entropy)
def _entropy_restrict(criterion, n_classes):
    return Entropy(n_classes, criterion.unit)


@formula(dispatch.begin, ManyClassEntropy)
def _many_begin(criterion, left, total):
    weight_left = weight_right = terms = np.int64(0)
    for k in range(criterion.n_classes):
        a = np.int64(left[k])
        b = np.int64(total[k]) - a
        weight_left += a
        weight_right += b
        if a > 0:
            terms += fixed_xlog2x(a, criterion.unit, criterion.scale)
        if b > 0:
            terms += fixed_xlog2x(b, criterion.unit, criterion.scale)
    return weight_left, weight_right, terms


@formula(dispatch.move, ManyClassEntropy)
def _many_move(criterion, state, left, total, target, weight):
    weight_left, weight_right, terms = state
    k = np.uintp(target)
    a = left[k]
    b = total[k] - a
    left[k] = a + weight
    unit, scale = criterion.unit, criterion.scale
    terms += fixed_xlog2x(a + weight, unit, scale) - fixed_xlog2x(a, unit, scale)
    terms += fixed_xlog2x(b - weight, unit, scale) - fixed_xlog2x(b, unit, scale)
    return weight_left + weight, weight_right - weight, terms


@formula(dispatch.score, ManyClassEntropy)
def _many_score(criterion, state, left, total):
    weight_left = np.float64(state[0]) * criterion.unit
    weight_right = np.float64(state[1]) * criterion.unit
    value = np.float64(state[2]) / criterion.scale
    return value - (xlog2x(weight_left) + xlog2x(weight_right))


@formula(dispatch.restrict, ManyClassEntropy)
def _many_restrict(criterion, n_classes):
    return ManyClassEntropy(n_classes, criterion.unit, criterion.scale)


def entropy_scale(total: int, unit: float) -> float:
    """Fixed-point units per bit for tables of `total` units of weight: a power of two.

    Terms ``x log2 x`` of parts of the whole, at least one unit each, are between the whole
    times log2 of the unit and the whole times log2 of itself.
    """
    whole = np.frexp(total * unit)[1]
    exponent = max(abs(int(whole)), abs(int(np.frexp(unit)[1])) + 1, 1)
    return float(np.ldexp(1.0, ENTROPY_BITS - 1 - int(whole) - exponent.bit_length()))


@kernel
def node_entropies(weights):
    """Entropy in bits of each row of class weights, shape (n, K), by the reproducible logarithm."""
    out = np.empty(weights.shape[0])
    for j in range(weights.shape[0]):
        whole = within = 0.0
        for k in range(weights.shape[1]):
            a = np.float64(weights[j, k])
            whole += a
            within += xlog2x(a)
        out[j] = max((xlog2x(whole) - within) / whole, 0.0)
    return out
