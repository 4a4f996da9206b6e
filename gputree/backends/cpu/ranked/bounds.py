"""Bounds on the scores of the cuts of a list: only the few that may be best are scored exactly.

With deviations v of the rows from a node's means, and d their sums over the rows of weight a on the
left of a cut, b on the right, a sum of squared errors or of Gini impurities decreases by

    base + factor * N / (a b),    N = sum of d**2 over the targets

Here d are sums in float64, in the order of the list, eight at a time in registers. Their errors are
at most those of a sum of n terms, E in all: then ``N`` is off by at most ``SLACK N + error`` with
``error = E**2 (1 + 1 / SLACK)``, whatever the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.jit import borrowing, pick
from gputree.backends.cpu.ranked.lists import RANK

SLACK = 2.0**-20
# Error of a sum of n terms, and of the terms, relative to n times the sum of their sizes.
ROUNDING = 2.0**-51
LANES = 4  # deviations are padded by zeros to a multiple


class Opened(NamedTuple):
    """Numbers of a node that is searched; scores are ``base + factor * N / (a b)``."""

    whole: int  # weight
    base: float
    factor: float
    error: float  # of N


@borrowing
def error_of(sizes, n, unit):
    """Bound on the error of N by sums of the sizes of n rows' deviations, for each target.

    The sums that it is compared with are off by at most `unit`.
    """
    square = 0.0
    for j in range(sizes.size):
        error = sizes[j] * (np.float64(n) + 8.0) * ROUNDING + unit
        square += error * error
    return square * (1.0 + 1.0 / SLACK)


@borrowing
def add_eight(elements, first, last, deviation, c, square):
    """Add to `square` the squares of the sums of eight deviations, from c on."""
    size = elements.size
    d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = 0.0
    # d are the sums of the rows before element i
    for i in range(first, last):
        rank = np.uintp(elements[i if i >= 0 else size + i] & RANK)
        d0 += deviation[rank, c]
        d1 += deviation[rank, c + np.uintp(1)]
        d2 += deviation[rank, c + np.uintp(2)]
        d3 += deviation[rank, c + np.uintp(3)]
        d4 += deviation[rank, c + np.uintp(4)]
        d5 += deviation[rank, c + np.uintp(5)]
        d6 += deviation[rank, c + np.uintp(6)]
        d7 += deviation[rank, c + np.uintp(7)]
        low = (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        square[np.uintp(i - first)] += low + ((d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7))


@borrowing
def add_four(elements, first, last, deviation, c, square):
    """Add to `square` the squares of the sums of four deviations, from c on."""
    size = elements.size
    d0 = d1 = d2 = d3 = 0.0
    # d are the sums of the rows before element i
    for i in range(first, last):
        rank = np.uintp(elements[i if i >= 0 else size + i] & RANK)
        d0 += deviation[rank, c]
        d1 += deviation[rank, c + np.uintp(1)]
        d2 += deviation[rank, c + np.uintp(2)]
        d3 += deviation[rank, c + np.uintp(3)]
        square[np.uintp(i - first)] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@borrowing
def squares_of_cuts(elements, first, known, deviation, square):
    """Write N of the cut after each element from `first` on; elements below 0 have no value."""
    for i in range(known - first):
        square[i] = 0.0
    width, c = deviation.shape[1], 0
    while c + 2 * LANES <= width:
        add_eight(elements, first, known, deviation, np.uintp(c), square)
        c += 2 * LANES
    if c < width:
        add_four(elements, first, known, deviation, np.uintp(c), square)


@borrowing
def bound_cuts(limits, elements, first, known, rows, s, opened, square):
    """Replace N of each cut by a bound on ``N / (a b)``, -1 where it is not admissible.

    Returns the largest of the bounds, and of the bounds from below.
    """
    size, whole, error = elements.size, opened.whole, opened.error
    moved, most, least = np.int64(0), -1.0, -1.0
    for i in range(first, known):
        n = i - first + 1
        rank = np.int64(elements[i if i >= 0 else size + i] & RANK)
        moved += np.int64(pick(rows.weight, s + rank, 1))
        value, square[n - 1] = square[n - 1], -1.0
        if i < 0 or n == size or (i + 1 < known and elements[i + 1] < 0):
            continue
        if not admits(limits, n, size, moved, whole):
            continue
        inverse = 1.0 / (np.float64(moved) * np.float64(whole - moved))
        above = (value * (1.0 + SLACK) + error) * inverse
        square[n - 1] = above
        most = max(most, above)
        least = max(least, (value * (1.0 - SLACK) - error) * inverse)
    return most, least
