"""Formulas that several criteria share, and decreases of impurity by cuts.

A criterion in a separate file takes them by `dispatch.share`.
"""

from __future__ import annotations

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


@formula(dispatch.margin, Gini, WideGini, SquaredError)
def share_of_value(criterion, value, total):
    return BOUND_MARGIN * value


@formula(dispatch.restrict, TwoClassGini, *OF_TARGETS)
def unrestricted(criterion, n_classes):
    return criterion


# ------------------------------------------------------------- of classification
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


# ------------------------------------------------------------------ of regression
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
    class_move_cell, class_means, class_weight, class_add_row, class_is_pure,
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
