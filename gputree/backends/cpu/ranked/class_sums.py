"""Sums of several targets of classes: their class weights, and the decrease of their impurities."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import borrowing, pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.bounds import Opened, error_of, padded
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
    weight_of,
)
from gputree.compilation import overload
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_CLASSES, Entropies, Ginis, WideGinis
from gputree.criteria.shared import LOG2_E, xlog2x


@formula(formulas.new_totals, *OF_CLASSES, how=overload)
def new_class_totals(criterion, rows, size):
    width = n_deviations(criterion)
    return Totals(
        np.empty(n_sums(criterion), np.int64), np.empty(0, np.int64), np.empty(2 * width),
        np.zeros((size, padded(width))), np.empty(width),
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
