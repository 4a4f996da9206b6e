"""Formulas that the criteria of classification share."""

from __future__ import annotations

import numpy as np

from gputree.criteria.dispatch import (
    add_row,
    begin,
    formula,
    is_pure,
    left_weight,
    may_exceed,
    means,
    move,
)
from gputree.criteria.kinds import Entropy, Gini, ManyClassEntropy, TwoClassGini, WideGini


@formula(begin, WideGini, Entropy)
def _weights_begin(criterion, left, total):
    weight_left = weight_right = np.int64(0)
    for k in range(criterion.n_classes):
        weight_left += np.int64(left[k])
        weight_right += np.int64(total[k]) - np.int64(left[k])
    return weight_left, weight_right


@formula(move, WideGini, Entropy)
def _weights_move(criterion, state, left, total, target, weight):
    left[np.uintp(target)] += weight
    return state[0] + weight, state[1] - weight


@formula(means, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_means(criterion, state, left, total):
    second = np.int64(left[1])
    rest = np.int64(total[1]) - second
    return np.float64(second) / np.float64(state[0]), np.float64(rest) / np.float64(state[1])


@formula(may_exceed, WideGini, Entropy, ManyClassEntropy)
def _may_always_exceed(criterion, state, left, total, value):
    return True


@formula(left_weight, Gini, TwoClassGini, WideGini, Entropy, ManyClassEntropy)
def _class_weight(criterion, statistics, at):
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(statistics[at + k])
    return weight


@formula(add_row, Gini, TwoClassGini, WideGini, Entropy, ManyClassEntropy)
def _class_add_row(criterion, statistics, at, target, weight, square):
    statistics[np.uintp(at) + np.uintp(target)] += weight


@formula(is_pure, Gini, TwoClassGini, WideGini, Entropy, ManyClassEntropy)
def _class_is_pure(criterion, total):
    present = 0
    for k in range(criterion.n_classes):
        present += total[k] > 0
    return present < 2
