"""Gini impurity."""

import numpy as np

from gputree.compilation import borrowing, kernel
from gputree.criteria import dispatch
from gputree.criteria.dispatch import Gini, TwoClassGini, WideGini, begin, formula, move

# Relative error of the float64 products of a score multiplied out, with much to spare.
ROUNDING = 1e-12

# Relative error of a sum of squares when a class crosses, with that class.
CROSSING = 2.0**-51

# 2**K corners give the tightest bound of a bin; for more classes they cost more than they save.
MOST_CORNER_CLASSES = 8


# Maximum number of classes whose rows of a cell cross one class at a time.
FEW_CLASSES = 8


@formula(dispatch.begin, Gini)
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


@formula(dispatch.move, Gini)
def _gini_move(criterion, state, left, total, target, weight):
    weight_left, weight_right, square_left, square_right = state
    k = np.uintp(target)
    a = left[k]
    b = total[k] - a
    left[k] = a + weight
    square_left += weight * (2 * a + weight)
    square_right -= weight * (2 * b - weight)
    return weight_left + weight, weight_right - weight, square_left, square_right


@formula(dispatch.move_cell, Gini)
def _gini_move_cell(criterion, state, left, total, cells, offset):
    if criterion.n_classes <= FEW_CLASSES:  # most of which have no row in a cell
        for k in range(criterion.n_classes):
            weight = cells[offset + k]
            if weight > 0:
                state = move(criterion, state, left, total, k, weight)
        return state
    for k in range(criterion.n_classes):
        left[k] += np.int64(cells[offset + k])
    return begin(criterion, left, total)


@formula(dispatch.begin, TwoClassGini)
def _two_begin(criterion, left, total):
    """Weight of the left side and of its second class; weights of both classes."""
    first, second = np.int64(total[0]), np.int64(total[1])
    return np.int64(left[0]) + np.int64(left[1]), first + second, np.int64(left[1]), first, second


@formula(dispatch.move, TwoClassGini)
def _two_move(criterion, state, left, total, target, weight):
    weight_left, whole, second_left, first, second = state
    second_left += weight if target == 1 else 0
    return weight_left + weight, whole, second_left, first, second


@formula(dispatch.move_cell, TwoClassGini)
def _two_move_cell(criterion, state, left, total, cells, offset):
    weight_left, whole, second_left, first, second = state
    weight = np.int64(cells[offset + 1])
    weight_left += np.int64(cells[offset]) + weight
    return weight_left, whole, second_left + weight, first, second


@borrowing
def _two_squares(state):
    """Weights of both sides and their sums of squares, as float64."""
    weight_left, whole, second_left, first, second = state
    first_left = weight_left - second_left
    first_right, second_right = first - first_left, second - second_left
    return (
        np.float64(weight_left),
        np.float64(whole - weight_left),
        np.float64(first_left * first_left + second_left * second_left),
        np.float64(first_right * first_right + second_right * second_right),
    )


@formula(dispatch.means, TwoClassGini)
def _two_means(criterion, state, left, total):
    weight_left, whole, second_left, _, second = state
    return (
        np.float64(second_left) / np.float64(weight_left),
        np.float64(second - second_left) / np.float64(whole - weight_left),
    )


@formula(dispatch.score, TwoClassGini)
def _two_score(criterion, state, left, total):
    weight_left, weight_right, square_left, square_right = _two_squares(state)
    return square_left / weight_left + square_right / weight_right


@formula(dispatch.may_exceed, TwoClassGini)
def _two_may_exceed(criterion, state, left, total, value):
    """Compare the score multiplied out: its rounding errors are far less than the slack."""
    a, b, square_left, square_right = _two_squares(state)
    return square_left * b + square_right * a > value * (a * b) * (1.0 - ROUNDING)


@formula(dispatch.score, Gini)
def _gini_score(criterion, state, left, total):
    weight_left, weight_right, square_left, square_right = state
    return np.float64(square_left) / np.float64(weight_left) + np.float64(
        square_right
    ) / np.float64(weight_right)


@formula(dispatch.may_exceed, Gini)
def _gini_may_exceed(criterion, state, left, total, value):
    """Like `_two_may_exceed`, for more classes."""
    a, b = np.float64(state[0]), np.float64(state[1])
    products = np.float64(state[2]) * b + np.float64(state[3]) * a
    return products > value * (a * b) * (1.0 - ROUNDING)


@formula(dispatch.score, WideGini)
def _wide_gini_score(criterion, state, left, total):
    square_left = square_right = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(left[k])
        b = np.float64(total[k] - left[k])
        square_left += a * a
        square_right += b * b
    return square_left / np.float64(state[0]) + square_right / np.float64(state[1])


@formula(dispatch.gain, Gini, TwoClassGini, WideGini)
def _gini_gain(criterion, value, total):
    weight = square = 0.0
    for k in range(criterion.n_classes):
        a = np.float64(total[k])
        weight += a
        square += a * a
    return (value - square / weight) / weight


@borrowing
def corner_score(a, b, n_a, n_b, whole):
    """Score of a cut of two classes, with weights a and b left; `whole` if a side is empty."""
    rest_a, rest_b = n_a - a, n_b - b
    left, right = a + b, rest_a + rest_b
    product = left * right
    squares = (a * a + b * b) * right + (rest_a * rest_a + rest_b * rest_b) * left
    return squares / product if product > 0.0 else whole


@borrowing
def boundary_score(a, b, n_a, n_b):
    """Like `_two_score`, where the sums are exact as float64; NaN if a side is empty."""
    rest_a, rest_b = n_a - a, n_b - b
    left, right = a + b, rest_a + rest_b
    left = left if left > 0.0 else np.nan
    right = right if right > 0.0 else np.nan
    return (a * a + b * b) / left + (rest_a * rest_a + rest_b * rest_b) / right


@borrowing
def _greatest_corner(left, cells, offset, total):
    """Highest score of two classes at the corners: each entirely left or entirely right."""
    a, b = np.float64(left[0]), np.float64(left[1])
    n_a, n_b = np.float64(total[0]), np.float64(total[1])
    end_a, end_b = a + np.float64(cells[offset]), b + np.float64(cells[offset + 1])
    whole = (n_a * n_a + n_b * n_b) / (n_a + n_b)
    return max(
        max(corner_score(a, b, n_a, n_b, whole), corner_score(end_a, b, n_a, n_b, whole)),
        max(corner_score(a, end_b, n_a, n_b, whole), corner_score(end_a, end_b, n_a, n_b, whole)),
    )


@formula(dispatch.bound, Gini, WideGini)
def _gini_bound(criterion, left, cells, offset, total):
    """Highest score at the corners for two classes; for more, a separable bound.

    It is the one of ``Q(a)/A + Q(r)/R``, a the left side, r = t - a, Q = sum of squares.

    For any l, ``Q/A = l + (Q - l A)/A``, and the last term is at most
    ``u/A_max + max(u, 0) (1/A_min - 1/A_max)`` with ``u = Q - l A``. With l the ratio in
    the middle of the bin, u is small and its factor smaller; what remains is a sum over
    classes, each convex, so each is maximal at one of its two ends.
    """
    if criterion.n_classes == 2:
        return _greatest_corner(left, cells, offset, total)
    a0 = b = n = 0.0
    q_left = q_right = 0.0
    widest = 0.0
    for k in range(criterion.n_classes):
        width = np.float64(cells[offset + k])
        start = np.float64(left[k])
        whole = np.float64(total[k])
        middle = start + 0.5 * width
        a0 += start
        b += width
        n += whole
        q_left += middle * middle
        q_right += (whole - middle) * (whole - middle)
        widest = max(widest, width)
    a1 = a0 + b
    r0 = n - a0
    r1 = n - a1
    ratio_left = q_left / (a0 + 0.5 * b)
    ratio_right = q_right / (n - a0 - 0.5 * b)
    free_left = a0 == 0.0  # no rows are left of the bin: Q/A <= the largest class inside
    free_right = r1 == 0.0
    factor_left = 0.0 if free_left else 1.0 / a1
    factor_right = 0.0 if free_right else 1.0 / r0
    both = most_left = most_right = 0.0
    for k in range(criterion.n_classes):
        start = np.float64(left[k])
        end = start + np.float64(cells[offset + k])
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
        value += widest
    else:
        value += ratio_left + max(most_left, 0.0) * (1.0 / a0 - factor_left)
    if free_right:
        value += widest
    else:
        value += ratio_right + max(most_right, 0.0) * (1.0 / r1 - factor_right)
    return value


@formula(dispatch.tighten, Gini, WideGini)
def _gini_tighten(criterion, left, cells, offset, total, value, needed):
    """Highest score at the corners: each class present entirely left or entirely right.

    The first corner is the one where each class joins the side that has more than its proportion of
    it. Then all follow a Gray code, one class crossing at a time. For two classes they are the
    bound already. After a heavy class has crossed, sums of squares have the rounding error of its
    square.
    """
    if criterion.n_classes == 2:
        return value
    present = 0
    middle = n = 0.0
    for k in range(criterion.n_classes):
        present += cells[offset + k] > 0
        middle += np.float64(left[k]) + 0.5 * np.float64(cells[offset + k])
        n += np.float64(total[k])
    if present > MOST_CORNER_CLASSES:
        return value
    a = square_left = square_right = 0.0
    for k in range(criterion.n_classes):
        weight_left = np.float64(left[k])
        width = np.float64(cells[offset + k])
        whole = np.float64(total[k])
        weight_left += width * np.float64((weight_left + 0.5 * width) * n > whole * middle)
        a += weight_left
        square_left += weight_left * weight_left
        square_right += (whole - weight_left) * (whole - weight_left)
    if 0.0 < a < n and square_left / a + square_right / (n - a) >= needed:
        return value
    a = square_left = square_right = 0.0
    for k in range(criterion.n_classes):
        start = np.float64(left[k])
        whole = np.float64(total[k])
        a += start
        square_left += start * start
        square_right += (whole - start) * (whole - start)
    best = off_left = off_right = 0.0
    crossed = np.int64(0)
    for corner in range(1, (1 << present) + 1):
        share_left = (square_left + off_left) / a if a > 0.0 else 0.0
        share_right = (square_right + off_right) / (n - a) if n > a else 0.0
        best = max(best, share_left + share_right)
        bit = 0
        while corner >> bit & 1 == 0:
            bit += 1
        k = -1
        for _ in range(min(bit, present - 1) + 1):
            k += 1
            while cells[offset + k] == 0:
                k += 1
        width = np.float64(cells[offset + k])
        start = np.float64(left[k])
        if crossed >> bit & 1:
            start += width
            width = -width
        rest = np.float64(total[k]) - start
        crossed ^= 1 << bit
        a += width
        before_left, before_right = square_left, square_right
        square_left += width * (2.0 * start + width)
        square_right -= width * (2.0 * rest - width)
        off_left += CROSSING * max(before_left, square_left)
        off_right += CROSSING * max(before_right, square_right)
    return min(best, value)


@formula(dispatch.restrict, Gini)
def _gini_restrict(criterion, n_classes):
    return Gini(n_classes, criterion.unit)


@formula(dispatch.restrict, WideGini)
def _wide_gini_restrict(criterion, n_classes):
    return WideGini(n_classes, criterion.unit)


@kernel
def node_ginis(weights):
    """Gini impurity of each row of class weights, shape (n, K)."""
    out = np.empty(weights.shape[0])
    for j in range(weights.shape[0]):
        whole = squares = 0.0
        for k in range(weights.shape[1]):
            whole += np.float64(weights[j, k])
        for k in range(weights.shape[1]):
            share = np.float64(weights[j, k]) / whole
            squares += share * share
        out[j] = max(1.0 - squares, 0.0)
    return out
