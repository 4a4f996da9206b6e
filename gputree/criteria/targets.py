"""Formulas that the criteria of regression share."""

from __future__ import annotations

import numpy as np

from gputree.compilation import jitable
from gputree.criteria.dispatch import add_row, formula, is_pure, left_weight, restrict
from gputree.criteria.kinds import OF_TARGETS


@formula(left_weight, *OF_TARGETS)
def _sum_weight(criterion, statistics, at):
    return np.int64(statistics[at])


@formula(add_row, *OF_TARGETS)
def _sum_add_row(criterion, statistics, at, target, weight, square):
    statistics[at] += weight
    statistics[at + 1] += target
    statistics[at + 2] += square


@formula(is_pure, *OF_TARGETS)
def _sum_is_pure(criterion, total):
    return False


@formula(restrict, *OF_TARGETS)
def _sum_restrict(criterion, n_classes):
    return criterion


@jitable
def target_means(weight_left, sum_left, weight, whole):
    """Mean targets on both sides of a cut, in units, from sums of the left and of the node."""
    return (
        np.float64(sum_left) / np.float64(weight_left),
        np.float64(whole - sum_left) / np.float64(weight - weight_left),
    )
