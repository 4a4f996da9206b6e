"""Sums of several targets that are classes, or counts and rates; the order of categories by them.

Categories are ordered along the principal direction of their means. Classes have sums of class
weights, and the decrease of their impurities. Counts and rates have the
decrease of their Poisson deviances. With m the mean of a target, a the weight of a side and
``m a + d`` its sum,

    (m a + d) ln((m a + d) / (m a)) <= d + d**2 / (m a)

since ``ln x <= x - 1``: deviations over the roots of the means bound the decrease as those of
`bounds` do. No cut leaves a side without events of a target, as for one target.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.bounds import Opened, error_of, padded
from gputree.backends.cpu.ranked.lists import RANK
from gputree.backends.cpu.ranked.sums import (
    COMMON,
    NO_PARTS,
    Totals,
    add_part,
    add_targets,
    gain_per_weight,
    n_sums,
    scale_of,
    score_of,
    sum_of_parts,
    sum_targets,
    weight_of,
)
from gputree.compilation import borrowing, inner, overload, pick
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import (
    OF_CLASSES,
    OF_SUMS,
    Deviances,
    Entropies,
    Ginis,
    WideGinis,
)
from gputree.criteria.poisson import LN_2, excess
from gputree.criteria.shared import LOG2_E, log2, xlog2x


@formula(formulas.new_totals, *OF_CLASSES, how=overload)
def new_class_totals(criterion, rows, size):
    width = n_deviations(criterion)
    return Totals(
        np.empty(n_sums(criterion), np.int64), np.empty(0, np.int64), np.empty(2 * width),
        np.zeros((size, padded(width)), np.float32), np.empty(width),
    )  # fmt: skip


@borrowing
def n_deviations(criterion):
    """Number of indicators of classes that deviate: one of two classes, and all of more."""
    count = 0
    for j in range(criterion.offset.size - 1):
        classes = criterion.offset[j + 1] - criterion.offset[j]
        count += classes if classes > 2 else classes - 1
    return count


@formula(scale_of, *OF_CLASSES)
def class_scale(criterion, j):
    return 1.0


@formula(n_sums, *OF_CLASSES)
def n_cells(criterion):
    return criterion.offset[-1]


@formula(formulas.measure_targets, *OF_CLASSES)
def measure_classes(criterion, rows, s, t, out, node):
    out.weight[node] = weight_of(rows, s, t)
    out.loss[node] = 0
    for i in range(s + 1, t):
        for j in range(rows.target.shape[1]):
            if rows.target[i, j] != rows.target[s, j]:
                out.loss[node] = 1
                return


@borrowing
def sum_classes(criterion, rows, s, t, sums):
    """Write the class weights of a node."""
    for c in range(sums.size):
        sums[c] = 0
    for i in range(s, t):
        add_targets(criterion, sums, 0, rows, i, np.int64(pick(rows.weight, i, 1)))


@borrowing
def deviate(criterion, rows, s, t, whole, totals, by_share):
    """Write deviations of indicators of classes from their shares, over the roots of the latter.

    The last only if `by_share`. Both of two classes deviate alike: one indicator stands for both.
    """
    sums, offset, deviation, size = totals.sums, criterion.offset, totals.deviation, totals.size
    n, k, deviates = np.float64(t - s), offset.size - 1, totals.rest
    column = 0
    # `column` is the first indicator of target j; `deviates` are 0 and 1 less the shares
    for j in range(k):
        classes = offset[j + 1] - offset[j]
        first = offset[j] + (classes == 2)
        for c in range(first, offset[j + 1] if classes > 1 else first):
            share = np.float64(sums[c]) / np.float64(whole)
            square = 1.0 / share if by_share else 1.0
            if classes == 2:
                square += 1.0 / (1.0 - share) if by_share else 1.0
            scale = np.sqrt(square) if 0 < sums[c] < whole else 0.0
            deviates[2 * column] = -share * scale
            deviates[2 * column + 1] = (1.0 - share) * scale
            # absolute deviations in all, and a margin for the rounding of the share
            size[column] = (2.0 * (1.0 - share) * share + 1.0 / (n + 8.0)) * whole * scale
            column += 1
    for i in range(s, t if deviation.shape[0] > 0 else s):
        units, column = np.float64(pick(rows.weight, i, 1)), 0
        for j in range(k):
            classes = offset[j + 1] - offset[j]
            first, found = offset[j] + (classes == 2), np.int64(rows.target[i, j])
            for c in range(first, offset[j + 1] if classes > 1 else first):
                deviation[i - s, column] = units * deviates[2 * column + (c == found)]
                column += 1


@formula(formulas.open_node, Entropies)
def open_entropies(criterion, rows, s, t, totals):
    """Class weights, and deviations of indicators of classes."""
    sum_classes(criterion, rows, s, t, totals.sums)
    whole, unit = weight_of(rows, s, t), criterion.unit
    deviate(criterion, rows, s, t, whole, totals, True)
    size = np.float64(totals.sums.size + 2 * criterion.offset.size)
    rounding = COMMON * size * (abs(xlog2x(np.float64(whole) * unit)) + 1.0)
    base, factor = entropy_base(criterion, totals), np.float64(whole) * unit * LOG2_E
    return Opened(whole, base, factor, error_of(totals.size, t - s, 0.0), rounding, False)


@formula(formulas.open_node, Ginis, WideGinis)
def open_ginis(criterion, rows, s, t, totals):
    """Class weights, and deviations of indicators of classes."""
    sum_classes(criterion, rows, s, t, totals.sums)
    whole, base = weight_of(rows, s, t), 0.0
    deviate(criterion, rows, s, t, whole, totals, False)
    for c in range(totals.sums.size):
        base += np.float64(totals.sums[c]) * np.float64(totals.sums[c])
    base /= np.float64(whole)
    error = error_of(totals.size, t - s, 0.0)
    return Opened(whole, base, np.float64(whole), error, COMMON * base, True)


@formula(add_targets, *OF_CLASSES)
def add_to_classes(criterion, sums, first, rows, i, units):
    first, i = np.uintp(first), np.uintp(i)
    for j in range(np.uintp(rows.target.shape[1])):
        sums[first + np.uintp(rows.target[i, j])] += units


@formula(score_of, Ginis)
def gini_score(criterion, totals, left, moved, whole):
    square_left = square_right = np.int64(0)
    for c in range(left.size):
        b = totals.sums[c] - left[c]
        square_left += left[c] * left[c]
        square_right += b * b
    return np.float64(square_left) / np.float64(moved) + np.float64(square_right) / np.float64(
        whole - moved
    )


@formula(score_of, WideGinis)
def wide_gini_score(criterion, totals, left, moved, whole):
    parts = NO_PARTS
    for j in range(criterion.offset.size - 1):
        square_left = square_right = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            a, b = np.float64(left[c]), np.float64(totals.sums[c] - left[c])
            square_left += a * a
            square_right += b * b
        value = square_left / np.float64(moved) + square_right / np.float64(whole - moved)
        parts = add_part(parts, value)
    return sum_of_parts(parts)


@formula(gain_per_weight, Ginis, WideGinis)
def gini_gain(criterion, value, totals, whole):
    weight = np.float64(whole)
    parts = NO_PARTS
    for j in range(criterion.offset.size - 1):
        square = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            square += np.float64(totals.sums[c]) * np.float64(totals.sums[c])
        parts = add_part(parts, square)
    square = sum_of_parts(parts)
    return (value - square / weight) / weight / np.float64(criterion.offset.size - 1)


@borrowing
def term(criterion, weight):
    """``x log2 x`` of a weight in units; threads that keep it at a time write the same."""
    if weight >= criterion.seen.size:
        return xlog2x(np.float64(weight) * criterion.unit)
    value = criterion.seen[np.uintp(weight)]
    if np.isnan(value):
        criterion.seen[np.uintp(weight)] = value = xlog2x(np.float64(weight) * criterion.unit)
    return value


@formula(score_of, Entropies)
def entropy_score(criterion, totals, left, moved, whole):
    sides = term(criterion, moved) + term(criterion, whole - moved)
    parts = NO_PARTS
    for j in range(criterion.offset.size - 1):
        value = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            value += term(criterion, left[c]) + term(criterion, totals.sums[c] - left[c])
        parts = add_part(parts, value - sides)
    return sum_of_parts(parts)


@borrowing
def entropy_base(criterion, totals):
    """Score of a node without a cut."""
    unit = criterion.unit
    parts = NO_PARTS
    for j in range(criterion.offset.size - 1):
        weight = within = 0.0
        for c in range(criterion.offset[j], criterion.offset[j + 1]):
            a = np.float64(totals.sums[c]) * unit
            weight += a
            within += xlog2x(a)
        parts = add_part(parts, within - xlog2x(weight))
    return sum_of_parts(parts)


@formula(gain_per_weight, Entropies)
def entropy_gain(criterion, value, totals, whole):
    weight = np.float64(whole) * criterion.unit
    decrease = value - entropy_base(criterion, totals)
    return decrease / weight / np.float64(criterion.offset.size - 1)


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
