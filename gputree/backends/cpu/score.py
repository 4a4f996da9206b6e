"""Cumulative-sum scoring of bin boundaries, and bounds on cuts inside bins."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import inner, kernel
from gputree.criteria import begin, bound, left_weight, score


@inner
def add_cell(left, cells, at, sign):
    """Add the statistics of one bin to `left`, or take them away."""
    for c in range(left.size):
        left[c] += sign * np.int64(cells[at + c])


@inner
def row_count(criterion, statistics, weighted):
    """Number of rows behind `statistics`."""
    return statistics[-1] if weighted else left_weight(criterion, statistics)


@inner
def admissible(criterion, limits, weighted, left, total):
    """Whether both sides of the cut are as large as `limits` asks."""
    n = row_count(criterion, left, weighted)
    least = max(limits.min_samples_leaf, 1)
    if n < least or row_count(criterion, total, weighted) - n < least:
        return False
    if limits.min_weight_leaf == 0:
        return True
    weight = left_weight(criterion, left)
    return (
        weight >= limits.min_weight_leaf
        and left_weight(criterion, total) - weight >= limits.min_weight_leaf
    )


@inner
def cut_inside(criterion, limits, weighted, left, cells, at, channels, total):
    """Whether an admissible cut can lie inside the bin at `at` that follows `left`."""
    cell = cells[at : at + channels]
    n = np.int64(row_count(criterion, cell, weighted))
    if n < 2:
        return False
    before = row_count(criterion, left, weighted)
    after = row_count(criterion, total, weighted) - before - n
    least = limits.min_samples_leaf
    return before + n - 1 >= least and after + n - 1 >= least


@inner
def start_side(cells, first, value_bins, channels, has_missing, missing_left, left):
    """Statistics left of the first bin: the missing values if they go left.

    Returns whether this direction is to be tried: missing values go right first, and
    left only where the node has some.
    """
    left[:] = 0
    if not missing_left:
        return True
    if not has_missing:
        return False
    add_cell(left, cells, (first + value_bins) * channels, 1)
    for c in range(channels):
        if left[c] != 0:
            return True
    return False


@inner
def score_column(criterion, table, limits, weighted, cells, f, total, left):
    """Best boundary of column f, and the greatest bound of its bins.

    Returns
    -------
    score, bin, missing_left, bound
        Score -inf where no boundary is admissible; bound -inf where no bin can be cut.
    """
    channels = total.size
    first = table.offset[f]
    has_missing = table.missing[f]
    value_bins = table.offset[f + 1] - first - np.int64(has_missing)
    best = most = -np.inf
    best_bin = -1
    best_side = False
    for side in range(2):
        if not start_side(cells, first, value_bins, channels, has_missing, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            if row_count(criterion, cells[at : at + channels], weighted) == 0:
                continue
            if not table.single[first + b] and cut_inside(
                criterion, limits, weighted, left, cells, at, channels, total
            ):
                most = max(most, bound(criterion, left, cells[at : at + channels], total))
            add_cell(left, cells, at, 1)
            if admissible(criterion, limits, weighted, left, total):
                value = score(criterion, begin(criterion, left, total), left, total)
                if value > best:
                    best = value
                    best_bin = b
                    best_side = side == 1
    return best, best_bin, best_side, most


@inner
def node_total(cells, table, total):
    """Statistics of a whole node: the sum over the bins of its first column."""
    total[:] = 0
    for b in range(table.offset[0], table.offset[1]):
        add_cell(total, cells, b * total.size, 1)


@kernel
def score_nodes(
    criterion, table, limits, weighted, cells, slots, first, last, totals, best, bins, sides, bounds
):
    """Score every column of nodes ``first .. last``: see `score_column`.

    The histogram of node j is ``cells[slots[j]]``; the outputs are (m, d), `totals` (m, channels).
    """
    left = np.zeros(totals.shape[1], np.int64)
    for j in range(first, last):
        own = cells[slots[j]]
        node_total(own, table, totals[j])
        for f in range(table.codes.shape[1]):
            best[j, f], bins[j, f], sides[j, f], bounds[j, f] = score_column(
                criterion, table, limits, weighted, own, f, totals[j], left
            )
