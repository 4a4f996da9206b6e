"""Sums of several targets that are counts or rates: the decrease of their Poisson deviances.

With m the mean of a target, a the weight of a side and ``m a + d`` its sum,

    (m a + d) ln((m a + d) / (m a)) <= d + d**2 / (m a)

since ``ln x <= x - 1``: deviations over the roots of the means bound the decrease as those of
`bounds` do. No cut leaves a side without events of a target, as for one target.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.bounds import Opened, error_of
from gputree.backends.cpu.ranked.sums import (
    COMMON,
    NO_PARTS,
    add_part,
    gain_per_weight,
    score_of,
    sum_of_parts,
    sum_targets,
    weight_of,
)
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import Deviances
from gputree.criteria.poisson import LN_2, excess
from gputree.criteria.shared import LOG2_E, log2


@formula(formulas.open_node, Deviances)
def open_rates(criterion, rows, s, t, totals):
    """Sums of the targets, and their deviations over the roots of their means."""
    whole, deviation, size = weight_of(rows, s, t), totals.deviation, totals.size
    sum_targets(rows, s, t, totals.sums)
    largest = 0.0
    for j in range(size.size):
        mean, scale = np.float64(totals.sums[j]) / np.float64(whole), criterion.scale[j]
        largest += np.float64(totals.sums[j]) * scale
        factor = np.sqrt(scale / mean) if mean > 0.0 else 0.0
        size[j] = 2.0 * np.float64(totals.sums[j]) * factor  # the terms of all deviations
        for i in range(s, t if deviation.shape[0] > 0 else s):
            units = np.float64(pick(rows.weight, i, 1))
            deviation[i - s, j] = (np.float64(rows.target[i, j]) - mean * units) * factor
    rounding = COMMON * largest * (log2(np.float64(whole)) + 2.0)
    error = error_of(size, t - s, 0.0)
    return Opened(whole, 0.0, np.float64(whole) * LOG2_E, error, rounding, False)


@formula(score_of, Deviances)
def rate_score(criterion, totals, left, moved, whole):
    """Sum of the scores of `Poisson`."""
    a, b = np.float64(moved), np.float64(whole - moved)
    parts = NO_PARTS
    for j in range(left.size):
        if left[j] <= 0 or left[j] >= totals.sums[j]:
            return -np.inf
        mean = np.float64(totals.sums[j]) / np.float64(whole)
        side = excess(np.float64(left[j]), a, mean)
        other = excess(np.float64(totals.sums[j] - left[j]), b, mean)
        parts = add_part(parts, (side + other) * criterion.scale[j])
    return sum_of_parts(parts)


@formula(gain_per_weight, Deviances)
def rate_gain(criterion, value, totals, whole):
    decrease = value * (criterion.unit * LN_2) / np.float64(whole)
    return decrease / np.float64(criterion.scale.size)
