"""Histograms of row statistics by (column, bin); scores of bin boundaries, bounds inside bins.

Boundaries and bounds of bins that count rows of two classes by gini: in vectors.

    cells     a b | a b | a b | ...          rows of both classes, bin by bin
    before        sums over the bins before each boundary, then scores of all boundaries, then
                  bounds of all bins: loops without a branch, vectorized

The scores are those of `gputree.criteria` bit for bit: its integers are exact as float64 up to
`MOST_EXACT_ROWS` rows.
"""

from typing import NamedTuple

import numpy as np

from gputree.backends.base import Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.cut import admits, row_count
from gputree.backends.cpu.monotonic import (
    allowed_in_node,
    at_column,
    at_node,
    boundary_keeps_order,
    may_split,
)
from gputree.base.dtypes import Floats
from gputree.compilation import PREFETCH_ROWS, borrowing, kernel, pick, prefetch
from gputree.criteria import Gini, add_row, begin, bound, left_weight, margin, score, tighten
from gputree.criteria.gini import boundary_score, corner_score


@kernel
def histogram(criterion, source, begin, end, columns, channels, out):
    """Add entries ``begin .. end`` to `out`, flat cells of `channels` statistics each.

    The cells are those of ``columns[0] .. columns[1]``. Weighted tables count rows in the last
    channel.
    """
    table, rows, entries = source
    first, last = columns
    codes, offset = table.codes, table.offset
    targets, weights, squares = rows.target, rows.weight, rows.square
    weighted = weights is not None
    final = np.uintp(max(entries.size, 1) - 1)
    width = np.uintp(channels)
    start = np.empty(last, np.uintp)  # first cell of each column
    for f in range(first, last):
        start[f] = (offset[f] - offset[first]) * channels
    # `out` has the sums of the entries begin .. i.
    for i in range(np.uintp(begin), np.uintp(end)):
        ahead = entries[min(i + np.uintp(PREFETCH_ROWS), final)]
        prefetch(codes, ahead, first)
        prefetch(targets, ahead, 0)
        row = np.uintp(entries[i])
        target = targets[row]
        weight = pick(weights, row, 1)
        square = pick(squares, row, 0)
        for f in range(np.uintp(first), np.uintp(last)):
            position = start[f] + np.uintp(codes[row, f]) * width
            add_row(criterion, out, position, target, weight, square)
            if weighted:
                out[position + width - np.uintp(1)] += 1


@kernel
def subtract_nodes(larger, out, first, last):
    """Histograms of the larger siblings ``first .. last``: parent minus smaller sibling."""
    for j in range(first, last):
        parent = larger.whole[larger.whole_slots[j]]
        part = out[larger.part_slots[j]]
        sibling = out[larger.slots[j]]
        for i in range(parent.size):
            sibling[i] = parent[i] - part[i]


# Squares of sums of rows stay below 2**53.
MOST_EXACT_ROWS = 1 << 26


class Vectors(NamedTuple):
    """Scratch of one thread, for a column of up to `MAX_BINS` bins."""

    first: Floats  # rows of either class before each boundary
    second: Floats
    score: Floats  # of each boundary, the ends included
    bound: Floats  # of each bin


def new_vectors(task: Task) -> Vectors | None:
    """Scratch for a task, or None unless it counts rows of two classes by gini."""
    criterion = task.criterion
    if isinstance(criterion, Gini) and criterion.n_classes == 2 and task.rows.weight is None:
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


@borrowing
def add_cell(left, cells, offset):
    """Add the statistics of the bin at ``cells[offset]`` to `left`."""
    for c in range(left.size):
        left[c] += np.int64(cells[offset + c])


@borrowing
def admissible(criterion, limits, weighted, left, total):
    """Return True if the cut after `left` is admissible; see `admits` and `keeps_order`."""
    n = row_count(criterion, left, 0, left.size, weighted)
    whole = row_count(criterion, total, 0, left.size, weighted)
    weight = all_weight = 0
    if limits.min_weight_leaf > 0:  # else weights are not needed
        weight = left_weight(criterion, left, 0)
        all_weight = left_weight(criterion, total, 0)
    if not admits(limits, n, whole, weight, all_weight):
        return False
    return boundary_keeps_order(limits.monotonic, criterion, left, total)


@borrowing
def cut_inside(criterion, limits, weighted, left, n, total):
    """Return True if an admissible cut can be inside a bin of n rows that follows `left`."""
    if n < 2:
        return False
    min_rows = limits.min_samples_leaf
    if min_rows <= 1:
        return True
    before = row_count(criterion, left, 0, left.size, weighted)
    after = row_count(criterion, total, 0, left.size, weighted) - before - n
    return before + n - 1 >= min_rows and after + n - 1 >= min_rows


@borrowing
def needed_bound(criterion, best, total):
    """Lowest bound with which a bin is searched when the best score so far is `best`."""
    return best - margin(criterion, best, total) if best > -np.inf else -np.inf


@borrowing
def is_candidate(criterion, limits, weighted, left, cells, offset, n, total, needed):
    """Return True if the bound of a bin, or sub-bin, of n rows reaches `needed`.

    It is at ``cells[offset]``, and `left` are the statistics before it.
    """
    if not cut_inside(criterion, limits, weighted, left, n, total):
        return False
    most = bound(criterion, left, cells, offset, total)
    return most >= needed and tighten(criterion, left, cells, offset, total, most, needed) >= needed


@borrowing
def column_bins(table, f, channels):
    """Location of column f: first bin, number of value bins, offset of the missing values' bin."""
    first = table.offset[f]
    last = table.offset[f + 1]
    if table.missing[f]:
        return first, last - first - 1, (last - 1) * channels
    return first, last - first, -1


@borrowing
def start_side(cells, missing_at, missing_left, left):
    """Statistics left of the first bin: the missing values if they go left.

    `missing_at` is the offset of their bin, -1 if the column has none. Returns True if the
    direction is to be tried: right always, left where the node has missing values.
    """
    for c in range(left.size):
        left[c] = 0
    if not missing_left:
        return True
    if missing_at < 0:
        return False
    add_cell(left, cells, missing_at)
    for c in range(left.size):
        if left[c] != 0:
            return True
    return False


@borrowing
def score_bin_by_bin(criterion, single, limits, weighted, cells, bins, total, left):
    """Like `score_column`, for statistics of any kind."""
    first, value_bins, missing_at = bins
    channels = total.size
    best = most = -np.inf
    best_bin = -1
    best_side = False
    for side in range(2):
        if not start_side(cells, missing_at, side == 1, left):
            continue
        # `left` are the statistics before bin b, with missing values if they go left.
        for b in range(value_bins):
            offset = (first + b) * channels
            n = row_count(criterion, cells, offset, channels, weighted)
            if n == 0:
                continue
            if not single[first + b] and cut_inside(criterion, limits, weighted, left, n, total):
                most = max(most, bound(criterion, left, cells, offset, total))
            add_cell(left, cells, offset)
            if admissible(criterion, limits, weighted, left, total):
                value = score(criterion, begin(criterion, left, total), left, total)
                if value > best:
                    best = value
                    best_bin = b
                    best_side = side == 1
    return best, best_bin, best_side, most


@borrowing
def all_single(single, first, value_bins):
    """Return True if no bin of ``first .. first + value_bins`` can contain a cut."""
    several = False
    for b in range(first, first + value_bins):
        several |= not single[b]
    return not several


@borrowing
def has_rows(vectors, b):
    """Return True if bin b has rows: else the cut after it is the same as the one before it."""
    return vectors.first[b + 1] > vectors.first[b] or vectors.second[b + 1] > vectors.second[b]


@borrowing
def left_of_bin(vectors, b, left):
    """Set `left` to the statistics of the rows before bin b."""
    left[0], left[1] = np.int64(vectors.first[b]), np.int64(vectors.second[b])


@borrowing
def score_column(vectors, criterion, single, limits, weighted, cells, bins, total, left):
    """Best boundary of one column, and the highest bound of its bins.

    `bins` are its `column_bins`, of `single` and of the cells. `vectors` are given where rows of
    two classes are counted.

    Returns (score, bin, missing_left, bound): score -inf where no boundary is admissible, bound
    -inf where no bin can contain a cut.
    """
    if vectors is None or total[0] + total[1] > MOST_EXACT_ROWS:
        return score_bin_by_bin(criterion, single, limits, weighted, cells, bins, total, left)
    first, value_bins, missing_at = bins
    best = most = -np.inf
    best_bin = -1
    best_side = False
    n_a, n_b = np.float64(total[0]), np.float64(total[1])
    bounded = not all_single(single, first, value_bins)
    for side in range(2):
        if not start_side(cells, missing_at, side == 1, left):
            continue
        add_up(cells, first, value_bins, left, vectors)
        score_boundaries(n_a, n_b, value_bins, vectors)
        # Boundaries before b are compared on this side, all on the side before; then bounds,
        # likewise.
        for b in range(value_bins):
            value = vectors.score[b + 1]
            if value > best and has_rows(vectors, b):
                left_of_bin(vectors, b + 1, left)
                if admissible(criterion, limits, weighted, left, total):
                    best = value
                    best_bin = b
                    best_side = side == 1
        if not bounded:
            continue
        bound_bins(n_a, n_b, value_bins, vectors)
        for b in range(value_bins):
            value = vectors.bound[b]
            if value > most and not single[first + b]:
                left_of_bin(vectors, b, left)
                n = row_count(criterion, cells, (first + b) * left.size, left.size, weighted)
                if cut_inside(criterion, limits, weighted, left, n, total):
                    most = value
    return best, best_bin, best_side, most


@kernel
def score_nodes(vectors, rules, table, histograms, slots, first, last, scores):
    """Score every numeric column of nodes ``first .. last``: see `score_column`.

    The histogram of node j is ``histograms[slots[j]]``; `vectors` are `Vectors`, or None.
    """
    offset, single, weighted = table.offset, table.single, rules.weighted
    channels = scores.total.shape[1]
    left = np.zeros(channels, np.int64)
    total = np.zeros(channels, np.int64)
    for j in range(first, last):
        cells = histograms[slots[j]]
        for c in range(channels):
            total[c] = 0
        for b in range(offset[0], offset[1]):  # the bins of any column add up to the node
            add_cell(total, cells, b * channels)
        for c in range(channels):
            scores.total[j, c] = total[c]
        bounded = at_node(rules.limits.monotonic, rules.limits, rules.means, j)
        allowed = allowed_in_node(rules.interactions, rules.means, j)
        best, bound = scores.best[j], scores.bound[j]
        for f in range(table.missing.size):
            if table.categories[f] > 0 or not may_split(allowed, f):
                best[f] = bound[f] = -np.inf
                continue
            best[f], scores.bin[j, f], scores.missing_left[j, f], bound[f] = score_column(
                vectors, rules.criterion, single, at_column(bounded.monotonic, bounded, f),
                weighted, cells, column_bins(table, f, channels), total, left,
            )  # fmt: skip
