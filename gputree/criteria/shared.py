"""Formulas that several criteria share; a logarithm, the same bits everywhere; decreases by cuts.

A criterion in a separate file takes them by `dispatch.share`.
"""

import numpy as np

from gputree.compilation import jitable, kernel
from gputree.criteria import dispatch
from gputree.criteria.dispatch import (
    BOUND_MARGIN,
    Entropy,
    Gini,
    ManyClassEntropy,
    Poisson,
    SquaredError,
    TwoClassGini,
    WideGini,
    begin,
    formula,
    gain,
    move,
    refused_score,
    score,
)

LOG2_E = 1.4426950408889634
_SQRT2 = 1.4142135623730951
_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000


@jitable
def log2(x):
    """Base-2 logarithm of a positive normal float64, from IEEE + - * / only.

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
    return np.float64(exponent) + (s + s * p) * (2.0 * LOG2_E)


@jitable
def xlog2x(x):
    """Return ``x log2 x``, and 0 at 0."""
    return x * log2(x) if x > 0.0 else 0.0


@jitable
def fixed_xlog2x(weight, unit, scale):
    """Return ``x log2 x`` of a weight in units, as an integer of steps ``1 / scale``."""
    return np.int64(np.rint(xlog2x(np.float64(weight) * unit) * scale))


OF_CLASSES = (Gini, TwoClassGini, WideGini, Entropy, ManyClassEntropy)
OF_TARGETS = (SquaredError, Poisson)


@formula(dispatch.may_exceed, WideGini, Entropy, ManyClassEntropy, Poisson)
def may_always_exceed(criterion, state, left, total, value):
    return True


@formula(dispatch.tighten, Entropy, ManyClassEntropy, *OF_TARGETS)
def tight_already(criterion, left, cells, offset, total, value, needed):
    return value


@formula(dispatch.refused_score, *OF_CLASSES, SquaredError)
def nothing_refused(criterion, state, left, total):
    return -np.inf


@formula(dispatch.target_impurity, *OF_CLASSES)
def no_targets(criterion, weight, total, squares, units):
    return 0.0


@formula(dispatch.margin, Gini, WideGini, SquaredError)
def share_of_value(criterion, value, total):
    return BOUND_MARGIN * value


@formula(dispatch.restrict, TwoClassGini, *OF_TARGETS)
def unrestricted(criterion, n_classes):
    return criterion


@formula(dispatch.begin, WideGini, Entropy)
def weights_begin(criterion, left, total):
    weight_left = weight_right = np.int64(0)
    for k in range(criterion.n_classes):
        weight_left += np.int64(left[k])
        weight_right += np.int64(total[k]) - np.int64(left[k])
    return weight_left, weight_right


@formula(dispatch.move, WideGini, Entropy)
def weights_move(criterion, state, left, total, target, weight):
    left[np.uintp(target)] += weight
    return state[0] + weight, state[1] - weight


@formula(dispatch.move_cell, WideGini, Entropy, ManyClassEntropy)
def class_move_cell(criterion, state, left, total, cells, offset):
    for k in range(criterion.n_classes):
        weight = cells[offset + k]
        if weight > 0:
            state = move(criterion, state, left, total, k, weight)
    return state


@formula(dispatch.means, Gini, WideGini, Entropy, ManyClassEntropy)
def class_means(criterion, state, left, total):
    second = np.int64(left[1])
    rest = np.int64(total[1]) - second
    return np.float64(second) / np.float64(state[0]), np.float64(rest) / np.float64(state[1])


@formula(dispatch.left_weight, *OF_CLASSES)
def class_weight(criterion, statistics, offset):
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(statistics[offset + k])
    return weight


@formula(dispatch.add_row, *OF_CLASSES)
def class_add_row(criterion, statistics, offset, target, weight, square):
    statistics[np.uintp(offset) + np.uintp(target)] += weight


@formula(dispatch.is_pure, *OF_CLASSES)
def class_is_pure(criterion, total):
    present = 0
    for k in range(criterion.n_classes):
        present += total[k] > 0
    return present < 2


@formula(dispatch.left_weight, *OF_TARGETS)
def sum_weight(criterion, statistics, offset):
    return np.int64(statistics[offset])


@formula(dispatch.add_row, *OF_TARGETS)
def sum_add_row(criterion, statistics, offset, target, weight, square):
    statistics[offset] += weight
    statistics[offset + 1] += target
    statistics[offset + 2] += square


@formula(dispatch.move_cell, *OF_TARGETS)
def sum_move_cell(criterion, state, left, total, cells, offset):
    return move(criterion, state, left, total, cells[offset + 1], cells[offset])


@formula(dispatch.is_pure, *OF_TARGETS)
def sum_is_pure(criterion, total):
    return False


@jitable
def target_means(weight_left, sum_left, weight, whole):
    """Mean targets on both sides of a cut, in units, from sums of the left and of the node."""
    return (
        np.float64(sum_left) / np.float64(weight_left),
        np.float64(whole - sum_left) / np.float64(weight - weight_left),
    )


# What a criterion of classes, or of targets, may take by `share`; its score, gain and bound are
# separate.
CLASS_FORMULAS = (
    may_always_exceed, tight_already, nothing_refused, share_of_value, weights_begin, weights_move,
    class_move_cell, class_means, class_weight, class_add_row, class_is_pure, no_targets,
)  # fmt: skip
TARGET_FORMULAS = (
    may_always_exceed, tight_already, nothing_refused, share_of_value, unrestricted, sum_weight,
    sum_move_cell, sum_add_row, sum_is_pure,
)  # fmt: skip


@kernel
def decreases(criterion, scores, totals):
    """Decrease of impurity per unit of weight by cuts of m nodes with statistics `totals`."""
    out = np.empty(scores.size)
    for j in range(scores.size):
        out[j] = gain(criterion, scores[j], totals[j])
    return out


@kernel
def decrease(criterion, left, total):
    """Decrease of impurity per unit of weight by the cut of a node that sends `left` of `total`."""
    state = begin(criterion, left, total)
    value = score(criterion, state, left, total)
    if value == -np.inf:
        value = refused_score(criterion, state, left, total)
    return gain(criterion, value, total) if value > -np.inf else 0.0
