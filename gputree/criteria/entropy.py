"""Shannon entropy in bits, from integers: ``x log2 x`` of weights is summed in fixed point.

The information of class weights n_1, ..., n_K of a node of weight N, in bits x weight, is ``N H = N
log2 N - sum n_k log2 n_k``. With every term an integer, sums have no order: a scan that adds and
subtracts terms row by row agrees to the last bit with one that adds up whole branches.

Total gains are compared in steps of ``2**-20`` bits x weight: far above the rounding of
the terms, so that cuts of equal gain are equal, and far below what one row can change.
"""

from typing import NamedTuple

import numpy as np

from gputree.base.dtypes import Int64s
from gputree.compilation import jitable, kernel
from gputree.criteria import dispatch
from gputree.criteria.dispatch import BOUND_MARGIN, Entropy, ManyClassEntropy, formula
from gputree.criteria.shared import LOG2_E, fixed_xlog2x, log2, xlog2x

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


# Gains and ratios that differ by less are equal, as in J48; less split information counts as none.
TOLERANCE = 1e-6

GAIN_BITS = 20  # total gains are compared in steps of 2**-20 bits x weight

# Weights and terms have fewer bits, so that a shift by this gives 0; a shift by 64 is undefined.
MOST_SHIFT = 62

# Terms of integer weights up to here come from a table: a row that crosses a cut changes four of
# them.
TABLE_SIZE = 1 << 20


class Information(NamedTuple):
    """Fixed-point terms of weights counted in `unit`."""

    unit: float  # weight of one unit, a power of two
    scale: float  # steps of a term per bit x weight, a power of two
    shift: int  # right shift from a term to steps of ``2**-GAIN_BITS``
    row_bits: int  # units of a row of weight 1, as a power of two
    terms: Int64s  # of the weights of ``0 .. size`` rows


def new_information(total: int, unit: float) -> Information:
    """Return the measure for tables of `total` units of weight."""
    scale = entropy_scale(total, unit)
    shift = min(max(int(np.frexp(scale)[1]) - 1 - GAIN_BITS, 0), MOST_SHIFT)
    row_bits = 1 - int(np.frexp(unit)[1])
    size = min((total >> row_bits) + 1, TABLE_SIZE) if row_bits >= 0 else 1
    row_bits = min(max(row_bits, 0), MOST_SHIFT)
    return Information(unit, scale, shift, row_bits, _terms(size, scale))


@jitable
def term(information, weight):
    """``x log2 x`` of a weight in units, in fixed point, from the table if it is there."""
    rows = weight >> information.row_bits
    if rows < information.terms.size and rows << information.row_bits == weight:
        return information.terms[rows]
    return fixed_xlog2x(weight, information.unit, information.scale)


@kernel
def _terms(size, scale):
    terms = np.empty(size, np.int64)
    for rows in range(size):
        terms[rows] = fixed_xlog2x(rows, 1.0, scale)
    return terms


@jitable
def in_steps(information, total):
    """Convert a sum of terms to steps of ``2**-GAIN_BITS``, rounded."""
    half = (np.int64(1) << information.shift) >> 1
    return (total + half) >> information.shift


@kernel
def logarithms(values):
    """Compute `log2` of each positive value of an array; 0 where it is not positive."""
    out = np.zeros(values.size)
    for i in range(values.size):
        if values[i] > 0:
            out[i] = log2(np.float64(values[i]))
    return out
