"""Boundaries and bounds of bins that count rows of two classes by gini: in vectors.

    cells     a b | a b | a b | ...          rows of both classes, bin by bin
    before        sums over the bins before each boundary, then scores of all boundaries, then
                  bounds of all bins: loops without a branch, vectorized

The scores are those of `gputree.criteria` bit for bit: its integers are exact as float64 up to
`MOST_EXACT_ROWS` rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.jit import borrowing
from gputree.criteria import Gini
from gputree.criteria.gini import boundary_score, corner_score

# Squares of sums of rows stay below 2**53.
MOST_EXACT_ROWS = 1 << 26


class Vectors(NamedTuple):
    """Scratch of one thread, for a column of up to `MAX_BINS` bins."""

    first: NDArray[np.float64]  # rows of either class before each boundary
    second: NDArray[np.float64]
    score: NDArray[np.float64]  # of each boundary, the ends included
    bound: NDArray[np.float64]  # of each bin


def new_vectors(task: Task) -> Vectors | None:
    """Scratch for a task, or None unless it counts rows of two classes by gini."""
    criterion = task.criterion
    if isinstance(criterion, Gini) and criterion.n_classes == 2 and task.weight is None:
        return Vectors(*(np.empty(MAX_BINS + 1) for _ in Vectors._fields))
    return None


@borrowing
def add_up(cells, first, value_bins, left, vectors):
    """Sum the rows before each boundary; `left` are the statistics before the first bin."""
    one, two = np.uintp(1), np.uintp(2)
    a, b = np.int64(left[0]), np.int64(left[1])
    before_a, before_b = vectors.first, vectors.second
    before_a[0], before_b[0] = a, b
    offset = np.uintp(first) * two
    for i in range(np.uintp(value_bins)):
        a += np.int64(cells[offset])
        b += np.int64(cells[offset + one])
        offset += two
        before_a[i + one], before_b[i + one] = a, b


@borrowing
def score_boundaries(n_a, n_b, value_bins, vectors):
    """Score of the cut at each boundary: NaN where all rows are on one side."""
    before_a, before_b, scores = vectors.first, vectors.second, vectors.score
    for i in range(np.uintp(value_bins + 1)):
        scores[i] = boundary_score(before_a[i], before_b[i], n_a, n_b)


@borrowing
def bound_bins(n_a, n_b, value_bins, vectors):
    """Highest score at the corners of each bin: each class entirely left or entirely right."""
    one = np.uintp(1)
    before_a, before_b, scores = vectors.first, vectors.second, vectors.score
    whole = (n_a * n_a + n_b * n_b) / (n_a + n_b)
    for i in range(np.uintp(value_bins)):
        a, end_a = before_a[i], before_a[i + one]
        b, end_b = before_b[i], before_b[i + one]
        start, end = scores[i], scores[i + one]
        start = start if start == start else whole
        end = end if end == end else whole
        low = corner_score(a, end_b, n_a, n_b, whole)
        high = corner_score(end_a, b, n_a, n_b, whole)
        corner = low if low > high else high
        boundary = start if start > end else end
        vectors.bound[i] = corner if corner > boundary else boundary
