"""The order of categories by several targets: along the principal direction of their means."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import borrowing, inner, pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.lists import RANK
from gputree.backends.cpu.ranked.sums import add_targets, n_sums, scale_of
from gputree.compilation import overload
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_SUMS

# Steps towards the first principal direction: its order of the groups is what counts.
STEPS = 16


@borrowing
def group_weight(elements, begin, end, rows, s):
    """Weight of some elements."""
    weight = np.int64(0)
    for i in range(begin, end):
        weight += np.int64(pick(rows.weight, s + np.int64(elements[i] & RANK), 1))
    return weight


@formula(formulas.group_keys, *OF_SUMS, how=overload)
def principal_keys(criterion, elements, begin, rows, s):
    """Places of groups along the first principal direction of their means, and first means.

    Of one target, or of two classes, that is the order of the means, which is optimal.
    """
    m, k = begin.size - 1, n_sums(criterion)
    means, weights, sums = np.empty((m, k)), np.empty(m), np.empty(k, np.int64)
    leading = np.empty(m)
    for g in range(m):
        for j in range(k):
            sums[j] = 0
        weights[g] = np.float64(group_weight(elements, begin[g], begin[g + 1], rows, s))
        for i in range(begin[g], begin[g + 1]):
            rank = s + np.int64(elements[i] & RANK)
            add_targets(criterion, sums, 0, rows, rank, np.int64(pick(rows.weight, rank, 1)))
        for j in range(k):
            means[g, j] = np.float64(sums[j]) * scale_of(criterion, j) / weights[g]
        leading[g] = means[g, 0]
    return project(means, weights), leading


@inner
def project(means, weights):
    """Project means (m, k) of some weights on their first principal direction.

    Its last component that is not 0 is positive.
    """
    m, k = means.shape
    middle, direction, following = np.zeros(k), np.empty(k), np.empty(k)
    whole = 0.0  # in loops, for expressions of arrays take seconds to compile
    for g in range(m):
        whole += weights[g]
        for j in range(k):
            middle[j] += weights[g] * means[g, j]
    for j in range(k):
        middle[j] /= whole
    # from the group that varies most, by steps of the power method
    farthest, most = 0, -1.0
    for g in range(m):
        spread = 0.0
        for j in range(k):
            spread += (means[g, j] - middle[j]) ** 2
        if weights[g] * spread > most:
            farthest, most = g, weights[g] * spread
    for j in range(k):
        direction[j] = means[farthest, j] - middle[j]
    for _ in range(STEPS):
        largest = 0.0
        for j in range(k):
            largest = max(largest, abs(direction[j]))
        if largest == 0.0:
            break
        for j in range(k):
            direction[j] /= largest
            following[j] = 0.0
        for g in range(m):
            along = 0.0
            for j in range(k):
                along += (means[g, j] - middle[j]) * direction[j]
            for j in range(k):
                following[j] += weights[g] * along * (means[g, j] - middle[j])
        for j in range(k):
            direction[j] = following[j]
    last = 1.0
    for j in range(k):
        last = direction[j] if direction[j] != 0.0 else last
    for j in range(k):
        direction[j] /= last
    places = np.zeros(m)
    for g in range(m):
        for j in range(k):
            places[g] += (means[g, j] - middle[j]) * direction[j]
    return places
