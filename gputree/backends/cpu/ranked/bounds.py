"""Bounds on the scores of the cuts of a list: only the few that may be best are scored exactly.

With deviations v of the rows from a node's means, and d their sums over the rows of weight a on the
left of a cut, b on the right, a sum of squared errors or of Gini impurities decreases by

    base + factor * N / (a b),    N = sum of d**2 over the targets

A decrease of entropy is at most that, with the deviation of each class over the root of its share
p: ``sum q ln(q / p) <= sum (q - p)**2 / p`` on both sides (Gibbs and Su, On choosing and bounding
probability metrics, 2002, theorem 5).

Here d are sums in float64 of deviations in float32, which halves the memory that is read, in the
order of the list, up to 16 of them in registers. Their errors are at most those of a sum of n
terms and of these, E in all: then ``N`` is off by at most ``SLACK N + error``
with ``error = E**2 (1 + 1 / SLACK)``, whatever the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.ranked.lists import RANK
from gputree.compilation import borrowing, jitable, pasted, pick, prefetch
from gputree.compilation.lanes import LANES, add_lanes, add_squares, no_lanes, sum_of_lanes

SLACK = 2.0**-20
# Elements between the one that is added and the one whose deviations are prefetched: without it,
# half of the time on 100,000 rows is waiting.
AHEAD = 16
# Error of a sum of n terms, and of the terms, relative to n times the sum of their sizes; that of
# the terms in float32, relative to the sum, and of each that is next to 0.
ROUNDING, OF_TERMS, OF_ZERO = 2.0**-51, 2.0**-24, 2.0**-149


class Opened(NamedTuple):
    """Numbers of a node that is searched; scores are ``base + factor * N / (a b)``."""

    whole: int  # weight
    base: float
    factor: float
    error: float  # of N
    rounding: float  # of scores
    is_least: bool  # scores are no less, either


@jitable
def padded(width):
    """Columns of deviations for so many targets: of 1, 2 or 4 registers after some times four."""
    rest = width % (4 * LANES)
    if rest > 0:
        width -= rest
        rest = LANES if rest <= LANES else 2 * LANES if rest <= 2 * LANES else 4 * LANES
    return width + rest


@borrowing
def error_of(sizes, n, unit):
    """Bound on the error of N by sums of the sizes of n rows' deviations, for each target.

    The sums that it is compared with are off by at most `unit`.
    """
    square = 0.0
    for j in range(sizes.size):
        error = sizes[j] * ((np.float64(n) + 8.0) * ROUNDING + OF_TERMS) + n * OF_ZERO + unit
        square += error * error
    return square * (1.0 + 1.0 / SLACK)


@pasted
def add_squares_of_sums(elements, first, last, deviation, c, square, registers):
    """Add to `square` the squares of the sums of deviations from c on, of 1, 2 or 4 registers."""
    size, sums = elements.size, no_lanes()
    more, third, fourth = no_lanes(), no_lanes(), no_lanes()
    # these are the sums of the rows before element i
    for i in range(first, last):
        rank = np.int64(elements[i if i >= 0 else size + i] & RANK)
        ahead = min(i + AHEAD, size - 1)
        prefetch(deviation, np.int64(elements[ahead if ahead >= 0 else size + ahead] & RANK), c)
        sums = add_lanes(sums, deviation, rank, c)
        if registers > 1:
            more = add_lanes(more, deviation, rank, c + LANES)
        if registers > 2:
            third = add_lanes(third, deviation, rank, c + 2 * LANES)
            fourth = add_lanes(fourth, deviation, rank, c + 3 * LANES)
        if i < 0 or (i + 1 < last and elements[i + 1] < 0):
            continue  # no cut
        found = add_squares(add_squares(no_lanes(), sums), more)
        if registers > 2:
            found = add_squares(add_squares(found, third), fourth)
        square[np.uintp(i - first)] += sum_of_lanes(found)


@borrowing
def squares_of_cuts(elements, first, known, deviation, square):
    """Write N of the cut after each element from `first` on; elements below 0 have no value."""
    for i in range(known - first):
        square[i] = 0.0
    width, c = deviation.shape[1], 0
    while c + 4 * LANES <= width:
        add_squares_of_sums(elements, first, known, deviation, c, square, np.int64(4))
        c += 4 * LANES
    if c + 2 * LANES <= width:
        add_squares_of_sums(elements, first, known, deviation, c, square, np.int64(2))
    elif c < width:
        add_squares_of_sums(elements, first, known, deviation, c, square, np.int64(1))


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
