"""Formulas that the criteria of classification share."""

from __future__ import annotations

import numpy as np

from gputree.criteria.dispatch import add_row, begin, formula, is_pure, left_weight, move
from gputree.criteria.kinds import Entropy, Gini, ManyClassEntropy, WideGini


@formula(begin, WideGini, Entropy)
def _weights_begin(criterion, left, total):
    weight_left = weight_right = np.int64(0)
    for k in range(criterion.n_classes):
        weight_left += np.int64(left[k])
        weight_right += np.int64(total[k]) - np.int64(left[k])
    return weight_left, weight_right


@formula(move, WideGini, Entropy)
def _weights_move(criterion, state, left, total, target, weight):
    left[target] += weight
    return state[0] + weight, state[1] - weight


@formula(left_weight, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_weight(criterion, statistics, at):
    weight = np.int64(0)
    for k in range(criterion.n_classes):
        weight += np.int64(statistics[at + k])
    return weight


@formula(add_row, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_add_row(criterion, statistics, at, target, weight, square):
    statistics[at + target] += weight


@formula(is_pure, Gini, WideGini, Entropy, ManyClassEntropy)
def _class_is_pure(criterion, total):
    present = 0
    for k in range(criterion.n_classes):
        present += total[k] > 0
    return present < 2
