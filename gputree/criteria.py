"""Split criteria: what a cut is worth, and how much a cut inside a bin can be worth.

A criterion is a named tuple whose type selects the formulas at compile time. All
kernels see the same channels of fixed-point int64 statistics:

    classification   channel k: weight of class k   (K channels)
    regression       channel 0: weight, 1: sum of targets, 2: sum of squares
    weighted tables  one channel more, last: number of rows

Integer sums have no order, so the float64 scores below, computed from them by one
fixed sequence of IEEE operations, are equal whoever added up the rows.

The *score* of a cut is a quantity that grows with the decrease of impurity within a
node: sums of squares over weights (gini), negative weighted entropy in bits
(entropy), squared difference of means (squared error). `gain` turns it into the
decrease of impurity per unit of weight. The *bound* of a bin is at least the score
of every cut inside it: scores are convex in the statistics of the left side, being
sums of perspectives of convex functions (Boyd and Vandenberghe, Convex
Optimization, section 3.2.6), so the corners of a polytope around the possible left
sides bound them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

# Sums of squared integer weights stay below 2**63 while the total does not pass this.
INTEGER_GINI_LIMIT = 2**31

# A bin is looked into when its bound reaches the best score within this share: far
# more than the rounding error of a bound, so that no tie is ever lost.
BOUND_MARGIN = 1e-9

# Above so many classes, entropy sums up in fixed point: measured equal at about 40.
MANY_CLASSES = 64

# Sums of x log2 x over a table stay below 2**61 units.
ENTROPY_BITS = 61

# 2**K corners bound a bin most tightly; beyond so many classes they cost more than they save.
MOST_CORNER_CLASSES = 8

_LOG2_E = 1.4426950408889634
_SQRT2 = 1.4142135623730951
_TAN_PI_8 = 0.41421356237309503
_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000


class Gini(NamedTuple):
    """Gini impurity, ``1 - sum p_k**2``, on totals of at most 2**31 units."""

    n_classes: int
    unit: float


class WideGini(NamedTuple):
    """Gini impurity on larger totals: squares are taken in float64."""

    n_classes: int
    unit: float


class Entropy(NamedTuple):
    """Shannon entropy in bits, ``-sum p_k log2 p_k``; weights count in `unit`."""

    n_classes: int
    unit: float


class ManyClassEntropy(NamedTuple):
    """Shannon entropy in bits over many classes: sums of x log2 x in fixed point.

    A row that crosses a cut changes two terms of the sum, whatever the number of classes;
    `scale` is the number of fixed-point units in a bit.
    """

    n_classes: int
    unit: float
    scale: float


class SquaredError(NamedTuple):
    """Variance of the target; `square_unit` turns channel 2 into channel 1 squared a weight."""

    unit: float
    square_unit: float


Criterion = Gini | WideGini | Entropy | ManyClassEntropy | SquaredError


@register_jitable
def log2(x):
    """Base-2 logarithm of a positive normal float64, from IEEE + - * / alone.

    With x = 2**e m, sqrt(1/2) < m <= sqrt(2) and s = (m - 1) / (m + 1),
    ``log2 x = e + 2 log2(e) (s + s**3/3 + s**5/5 + ...)``. The series is cut where its
    next term is below 2**-53. Exact at powers of two; error below 4 ulp elsewhere.
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> 52) - 1023
    m = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    if m > _SQRT2:
        m = m * 0.5
        exponent += 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 0.2
    p = p * z + 1.0 / 3.0
    p = p * z
    return np.float64(exponent) + (s + s * p) * (2.0 * _LOG2_E)


@register_jitable
def xlog2x(x):
    """``x log2 x``, and 0 at 0."""
    return x * log2(x) if x > 0.0 else 0.0


# ------------------------------------------------------------------ dispatch
# These names exist for the kernels: each is compiled for the criterion it is given.


def begin(criterion, left, total):
    """State of a scan that has `left` behind it in a node of `total`."""


def move(criterion, state, left, total, target, weight):
    """State after a row crosses to the left; `left` is updated."""


def score(criterion, state, left, total):
    """Score of the cut at this state."""


def bound(criterion, left, cells, at, total):
    """At least the score of every cut inside the bin at ``cells[at]`` that follows `left`."""


def tighten(criterion, left, cells, at, total, value):
    """A bound as `bound` gives, at most `value`, at greater cost."""


def margin(criterion, value, total):
    """How far below the best score `value` a bound is still looked into."""


def gain(criterion, value, total):
    """Decrease of impurity per unit of weight by a cut of score `value`."""


def left_weight(criterion, statistics, at):
    """Weight, in units, of the statistics at ``statistics[at]``."""


def add_row(criterion, statistics, at, target, weight, square):
    """Add one row to the channels that start at ``statistics[at]``."""


def restrict(criterion, n_classes):
    """The same criterion over `n_classes` classes."""


def is_pure(criterion, total):
    """Whether the class weights show one class only (never true for regression)."""


_OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _formula(function: Callable, *criteria: type) -> Callable:
    """Register a formula of `function` for the criteria named."""

    def register(implementation: Callable) -> Callable:
        def choose(criterion: Any, *rest: Any) -> Callable | None:
            chosen = isinstance(criterion, types.BaseNamedTuple) and (
                criterion.instance_class in criteria
            )
            return implementation if chosen else None

        choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        overload(function, jit_options=_OPTIONS, strict=False)(choose)
        return implementation

    return register


# ---------------------------------------------------------------------- gini
@_formula(begin, Gini)
def _gini_begin(criterion, left, total):
    weight_left = weight_right = square_left = square_right = np.int64(0)
    for k in range(criterion.n_classes):
        a = np.int64(left[k])
        b = np.int64(total[k]) - a
        weight_left += a
        weight_right += b
        square_left += a * a
        square_right += b * b
    return weight_left, weight_right, square_left, square_right


@_formula(move, Gini)
def _gini_move(criterion, state, left, total, target, weight):
    weight_left, weight_right, square_left, square_right = state
    a = left[target]
    b = total[target] - a
    left[target] = a + weight
    square_left += weight * (2 * a + weight)
    square_right -= weight * (2 * b - weight)
    return weight_left + weight, weight_right - weight, square_left, square_right


@_formula(score, Gini)
def _gini_score(criterion, state, left, total):
    weight_left, weight_right, square_left, square_right = state
    return np.float64(square_left) / np.float64(weight_left) + np.float64(
        square_right
    ) / np.float64(weight_right)


@_formula(begin, WideGini, Entropy)
def _weights_begin(criterion, left, total):
    weight_left = weight_right = np.int64(0)
    for k in range(criterion.n_classes):
        weight_left += np.int64(left[k])
        weight_right += np.int64(total[k]) - np.int64(left[k])
    return weight_left, weight_right


@_formula(move, WideGini, Entropy)
def _weights_move(criterion, state, left, total, target, weight):
    left[target] += weight
    return state[0] + weight, state[1] - weight


@_formula(score, WideGini)
def _wide_gini_score(criterion, state, left, total):
    square_left = square_right = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(left[k])
        b = np.float64(total[k] - left[k])
        square_left += a * a
        square_right += b * b
    return square_left / np.float64(state[0]) + square_right / np.float64(state[1])


@_formula(gain, Gini, WideGini)
def _gini_gain(criterion, value, total):
    weight = square = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(total[k])
        weight += a
        square += a * a
    return (value - square / weight) / weight


@_formula(bound, Gini, WideGini)
def _gini_bound(criterion, left, cells, at, total):
    """Separable bound of ``Q(a)/A + Q(r)/R``, a the left side, r = t - a, Q = sum of squares.

    For any l, ``Q/A = l + (Q - l A)/A``, and the last term is at most
    ``u/A_max + max(u, 0) (1/A_min - 1/A_max)`` with ``u = Q - l A``. With l the ratio in
    the middle of the bin, u is small and its factor smaller; what remains is a sum over
    classes, each convex, so each at its greatest at one of its two ends.
    """
    a0 = b = n = 0.0
    q_left = q_right = 0.0
    greatest = 0.0
    for k in range(criterion.n_classes):
        width = np.float64(cells[at + k])
        start = np.float64(left[k])
        whole = np.float64(total[k])
        middle = start + 0.5 * width
        a0 += start
        b += width
        n += whole
        q_left += middle * middle
        q_right += (whole - middle) * (whole - middle)
        greatest = max(greatest, width)
    a1 = a0 + b
    r0 = n - a0
    r1 = n - a1
    ratio_left = q_left / (a0 + 0.5 * b)
    ratio_right = q_right / (n - a0 - 0.5 * b)
    free_left = a0 == 0.0  # nothing is left of the bin: Q/A <= the greatest class inside
    free_right = r1 == 0.0
    factor_left = 0.0 if free_left else 1.0 / a1
    factor_right = 0.0 if free_right else 1.0 / r0
    both = most_left = most_right = 0.0
    for k in range(criterion.n_classes):
        start = np.float64(left[k])
        end = start + np.float64(cells[at + k])
        whole = np.float64(total[k])
        left_start = start * (start - ratio_left)
        left_end = end * (end - ratio_left)
        right_start = (whole - start) * (whole - start - ratio_right)
        right_end = (whole - end) * (whole - end - ratio_right)
        both += max(
            left_start * factor_left + right_start * factor_right,
            left_end * factor_left + right_end * factor_right,
        )
        most_left += max(left_start, left_end)
        most_right += max(right_start, right_end)
    value = both
    if free_left:
        value += greatest
    else:
        value += ratio_left + max(most_left, 0.0) * (1.0 / a0 - factor_left)
    if free_right:
        value += greatest
    else:
        value += ratio_right + max(most_right, 0.0) * (1.0 / r1 - factor_right)
    return value


@_formula(tighten, Gini, WideGini)
def _gini_tighten(criterion, left, cells, at, total, value):
    """The greatest score at the corners: each class present wholly left or wholly right.

    Corners follow a Gray code, one class crossing at a time.
    """
    present = 0
    a = n = square_left = square_right = 0.0
    for k in range(criterion.n_classes):
        present += cells[at + k] > 0
        start = np.float64(left[k])
        whole = np.float64(total[k])
        a += start
        n += whole
        square_left += start * start
        square_right += (whole - start) * (whole - start)
    if present > MOST_CORNER_CLASSES:
        return value
    best = 0.0
    crossed = np.int64(0)
    for corner in range(1, (1 << present) + 1):
        share_left = square_left / a if a > 0.0 else 0.0
        share_right = square_right / (n - a) if n > a else 0.0
        best = max(best, share_left + share_right)
        bit = 0
        while corner >> bit & 1 == 0:
            bit += 1
        k = -1
        for _ in range(min(bit, present - 1) + 1):
            k += 1
            while cells[at + k] == 0:
                k += 1
        width = np.float64(cells[at + k])
        start = np.float64(left[k])
        if crossed >> bit & 1:
            start += width
            width = -width
        rest = np.float64(total[k]) - start
        crossed ^= 1 << bit
        a += width
        square_left += width * (2.0 * start + width)
        square_right -= width * (2.0 * rest - width)
    return min(best, value)


@_formula(tighten, Entropy, ManyClassEntropy, SquaredError)
def _keep_bound(criterion, left, cells, at, total, value):
    return value


@_formula(margin, Gini, WideGini, SquaredError)
def _relative_margin(criterion, value, total):
    return BOUND_MARGIN * value


# ------------------------------------------------------------------- entropy
@_formula(margin, Entropy, ManyClassEntropy)
def _entropy_margin(criterion, value, total):
    """Scores near 0 are differences of terms that grow with the weight."""
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(total[k])
    return BOUND_MARGIN * (np.float64(weight) * criterion.unit - value)


@_formula(score, Entropy)
def _entropy_score(criterion, state, left, total):
    value = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(left[k]) * criterion.unit
        b = np.float64(total[k] - left[k]) * criterion.unit
        value += xlog2x(a) + xlog2x(b)
    weight_left = np.float64(state[0]) * criterion.unit
    weight_right = np.float64(state[1]) * criterion.unit
    return value - (xlog2x(weight_left) + xlog2x(weight_right))


@register_jitable
def fixed_xlog2x(criterion, weight):
    """``x log2 x`` of a weight in units, as an integer."""
    return np.int64(np.rint(xlog2x(np.float64(weight) * criterion.unit) * criterion.scale))


@_formula(begin, ManyClassEntropy)
def _many_begin(criterion, left, total):
    weight_left = weight_right = terms = np.int64(0)
    for k in range(criterion.n_classes):
        a = np.int64(left[k])
        b = np.int64(total[k]) - a
        weight_left += a
        weight_right += b
        if a > 0:
            terms += fixed_xlog2x(criterion, a)
        if b > 0:
            terms += fixed_xlog2x(criterion, b)
    return weight_left, weight_right, terms


@_formula(move, ManyClassEntropy)
def _many_move(criterion, state, left, total, target, weight):
    weight_left, weight_right, terms = state
    a = left[target]
    b = total[target] - a
    left[target] = a + weight
    terms += fixed_xlog2x(criterion, a + weight) - fixed_xlog2x(criterion, a)
    terms += fixed_xlog2x(criterion, b - weight) - fixed_xlog2x(criterion, b)
    return weight_left + weight, weight_right - weight, terms


@_formula(score, ManyClassEntropy)
def _many_score(criterion, state, left, total):
    weight_left = np.float64(state[0]) * criterion.unit
    weight_right = np.float64(state[1]) * criterion.unit
    value = np.float64(state[2]) / criterion.scale
    return value - (xlog2x(weight_left) + xlog2x(weight_right))


def entropy_scale(total: float) -> float:
    """Fixed-point units in a bit for tables of `total` weight: a power of two."""
    bits = total * max(np.log2(total), 1.0)
    return float(2.0 ** (ENTROPY_BITS - np.ceil(np.log2(bits)) - 1))


@njit(cache=True, error_model="numpy")
def node_entropies(weights):
    """Entropy in bits of each row of class weights, shape (n, K), by our own logarithm."""
    out = np.empty(weights.shape[0])
    for j in range(weights.shape[0]):
        whole = within = 0.0
        for k in range(weights.shape[1]):
            a = np.float64(weights[j, k])
            whole += a
            within += xlog2x(a)
        out[j] = max((xlog2x(whole) - within) / whole, 0.0)
    return out


@_formula(gain, Entropy, ManyClassEntropy)
def _entropy_gain(criterion, value, total):
    weight = within = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(total[k]) * criterion.unit
        weight += a
        within += xlog2x(a)
    return (value - (within - xlog2x(weight))) / weight


@_formula(bound, Entropy, ManyClassEntropy)
def _entropy_bound(criterion, left, cells, at, total):
    """Separable bound: ``-A log2 A`` is concave, so its tangent in the middle lies above it."""
    middle = whole = 0.0
    for k in range(criterion.n_classes):
        middle += np.float64(left[k]) + 0.5 * np.float64(cells[at + k])
        whole += np.float64(total[k])
    middle *= criterion.unit
    whole *= criterion.unit
    slope_left = log2(middle) + _LOG2_E
    slope_right = log2(whole - middle) + _LOG2_E
    value = whole * _LOG2_E
    for k in range(criterion.n_classes):
        t = np.float64(total[k]) * criterion.unit
        a = np.float64(left[k]) * criterion.unit
        start = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a)
        if cells[at + k] == 0:
            value += start
        else:
            a = np.float64(left[k] + cells[at + k]) * criterion.unit
            end = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a)
            value += max(start, end)
    return value


@_formula(left_weight, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_weight(criterion, statistics, at):
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(statistics[at + k])
    return weight


@_formula(add_row, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_add_row(criterion, statistics, at, target, weight, square):
    statistics[at + target] += weight


@_formula(is_pure, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_is_pure(criterion, total):
    present = 0
    for k in range(criterion.n_classes):
        present += total[k] > 0
    return present < 2


# ------------------------------------------------------------- squared error
@_formula(begin, SquaredError)
def _squared_begin(criterion, left, total):
    """Sums are taken from the node's own mean: centre and rest, in exact integers."""
    weight = np.int64(total[0])
    centre = np.int64(total[1]) // weight
    rest = np.float64(np.int64(total[1]) - centre * weight) / np.float64(weight)
    return np.int64(left[0]), weight, np.int64(left[1]) - centre * left[0], centre, rest


@_formula(move, SquaredError)
def _squared_move(criterion, state, left, total, target, weight):
    weight_left, whole, deviation, centre, rest = state
    return weight_left + weight, whole, deviation + (target - centre * weight), centre, rest


@_formula(score, SquaredError)
def _squared_score(criterion, state, left, total):
    """``w_l w_r (mean_l - mean_r)**2 / w**2`` over w, from the deviation of the left sum."""
    weight_left, whole, deviation, _, rest = state
    a = np.float64(weight_left)
    d = np.float64(deviation) - a * rest
    return (d * d) / (a * np.float64(whole - weight_left))


@_formula(gain, SquaredError)
def _squared_gain(criterion, value, total):
    return value * criterion.unit * criterion.unit


@_formula(bound, SquaredError)
def _squared_bound(criterion, left, cells, at, total):
    """Bound from the bin's weight b, sum and within-bin sum of squares V.

    A part of weight c deviates from c times the bin's mean by at most
    ``sqrt(V c (b - c) / b)`` (Cauchy-Schwarz): an ellipse in (c, deviation). The score is
    convex, so the corners of an octagon around the ellipse, cut to 0 <= c <= b, bound it.
    """
    weight = np.int64(total[0])
    centre = np.int64(total[1]) // weight
    rest = np.float64(np.int64(total[1]) - centre * weight) / np.float64(weight)
    n = np.float64(weight)
    a0 = np.float64(left[0])
    b = np.float64(cells[at])
    d0 = np.float64(np.int64(left[1]) - centre * left[0]) - a0 * rest
    s = np.float64(np.int64(cells[at + 1]) - centre * cells[at]) - b * rest
    mean = s / b
    own = np.float64(cells[at + 1])
    spread = (np.float64(cells[at + 2]) + b) * criterion.square_unit * (1.0 + 1e-12) - own * (
        own / b
    )
    spread = max(spread + 1e-12 * own * (own / b), 0.0)
    half = 0.5 * np.sqrt(spread * b)
    free_left = a0 == 0.0
    free_right = a0 + b == n
    most_left = most_right = most_both = 0.0
    for i in range(4):
        share = 0.5 + (i - 1.5) if i == 0 or i == 3 else 0.5 + (i - 1.5) * _TAN_PI_8
        share = min(max(share, 0.0), 1.0)
        height = half if i == 1 or i == 2 else half * _TAN_PI_8
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
    alone = spread + s * mean  # nothing beside the bin: S**2 / c <= its sum of squares
    if free_left and free_right:
        return 2.0 * alone / n
    if free_left:
        return (alone + most_right) / n
    if free_right:
        return (alone + most_left) / n
    return most_both / n


@_formula(left_weight, SquaredError)
def _sum_weight(criterion, statistics, at):
    return np.int64(statistics[at])


@_formula(add_row, SquaredError)
def _sum_add_row(criterion, statistics, at, target, weight, square):
    statistics[at] += weight
    statistics[at + 1] += target
    statistics[at + 2] += square


@_formula(is_pure, SquaredError)
def _sum_is_pure(criterion, total):
    return False


@_formula(restrict, Gini)
def _gini_restrict(criterion, n_classes):
    return Gini(n_classes, criterion.unit)


@_formula(restrict, WideGini)
def _wide_gini_restrict(criterion, n_classes):
    return WideGini(n_classes, criterion.unit)


@_formula(restrict, Entropy)
def _entropy_restrict(criterion, n_classes):
    return Entropy(n_classes, criterion.unit)


@_formula(restrict, ManyClassEntropy)
def _many_restrict(criterion, n_classes):
    return ManyClassEntropy(n_classes, criterion.unit, criterion.scale)


@_formula(restrict, SquaredError)
def _squared_restrict(criterion, n_classes):
    return criterion
