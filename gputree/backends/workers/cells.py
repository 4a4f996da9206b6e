"""Kernels of exact cuts without rows: living bins are counted into cells, cells into cells.

    a bin          |                    |xxxxxxxxx|                   |    x: a cut may be best
    its cells      |   |   |   |   |   |                                   counted where rows lie
    boundaries         ^   ^   ^   ^   ^                                   scored where sums are

A cell is a range of keys, whole numbers that rise with the values. It comes with the sums of its
rows and their least and greatest values, so that the boundary of two filled cells is a cut with
its threshold. Cells in which a better cut may lie are intervals of the next round, from their least
value to their greatest. One value holds no cut, so that rounds end.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.cut import new_cut
from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.backends.cpu.monotonic import at_column, at_node
from gputree.backends.cpu.refine import has_missing, mark_alive, narrow, next_filled
from gputree.backends.cpu.score import (
    add_cell,
    bar_of,
    column_bins,
    row_count,
)
from gputree.backends.partitioned.keys import cut_between, key_of, mark_cells
from gputree.criteria import add_row

# Bits of a float64 that those of float32 have zero.
FLOAT32_SHIFT = 29


@kernel
def fill_keys(values, shift, keys):
    """The keys of some values, without the last `shift` bits, which all of them have zero."""
    for i in range(values.size):
        keys[i] = key_of(values[i]) >> np.uint64(shift)


# ------------------------------------------------------------ where sums are
@kernel
def beside_best(criterion, table, weighted, histograms, slots, scores, bins, next_bin, seen):
    """What lies beside the best boundary of every column of nodes; outputs are (m, d).

    The next bin with rows after it, -1 where none is, and whether the node has missing values.
    """
    channels = histograms.shape[1] // table.offset[-1]
    for j in range(slots.size):
        cells = histograms[slots[j]]
        for f in range(table.missing.size):
            seen[j, f] = has_missing(criterion, table, weighted, cells, f, channels)
            next_bin[j, f] = -1
            if scores[j, f] > -np.inf and table.categories[f] == 0:
                next_bin[j, f] = next_filled(
                    criterion, table, weighted, cells, f, bins[j, f], channels
                )


@kernel
def living_bins(
    criterion, table, limits, weighted, cells, total, best, columns, column, bins, rows, lefts,
    missing,
):  # fmt: skip
    """List the bins of `columns` of a node that may hold a better cut than `best`; how many.

    ``lefts[i]`` are the statistics before the bin where missing values go right, ``missing[i]``
    those of missing values.
    """
    channels = total.size
    left = np.empty(channels, np.int64)
    position = np.empty(table.offset[-1], np.int64)
    bar = bar_of(criterion, best, total)
    count = 0
    for f in columns:
        mark_alive(criterion, table, limits, weighted, cells, f, total, bar, left, position, 0)
        first, value_bins, missing_at = column_bins(table, f, channels)
        left[:] = 0
        for b in range(value_bins):
            at = (first + b) * channels
            if position[first + b] >= 0:
                column[count], bins[count] = f, b
                rows[count] = row_count(criterion, cells, at, channels, weighted)
                for c in range(channels):
                    lefts[count, c] = left[c]
                    missing[count, c] = np.int64(cells[missing_at + c]) if missing_at >= 0 else 0
                count += 1
            add_cell(left, cells, at)
    return count


@inner
def start_interval(before, missing, missing_left, left):
    """Statistics left of an interval on one side; whether the side is to be tried."""
    tried = not missing_left
    for c in range(left.size):
        left[c] = before[c]
        if missing_left:
            left[c] += missing[c]
            tried |= missing[c] != 0
    return tried


@kernel
def score_cells(
    criterion, limits, weighted, means, totals, node, column, lefts, missing, bins, first, counts,
    least, greatest, scores, features, sides, places, ends, cuts,
):  # fmt: skip
    """Let the cuts of nodes, a field an array, be the better of them and those between cells.

    The cells of interval i are ``first[i] .. first[i + 1]``. `means` are `Bounds` or None.
    """
    left = np.empty(totals.shape[1], np.int64)
    for i in range(node.size):
        j, f = node[i], column[i]
        own = at_column(limits.monotonic, at_node(limits.monotonic, limits, means, j), f)
        cut = new_cut(scores[j], features[j], sides[j], places[j], ends[j], cuts[j])
        for side in range(2):
            if start_interval(lefts[i], missing[i], side == 1, left):
                cut = cut_between(
                    criterion, own, weighted, counts, least, greatest, first[i], first[i + 1],
                    left, totals[j], f, side == 1, bins[i], cut,
                )  # fmt: skip
        scores[j], features[j], sides[j], places[j], ends[j], cuts[j] = cut


@kernel
def living_cells(
    criterion, limits, weighted, means, totals, node, column, lefts, missing, first, counts, least,
    greatest, scores, rows, inside,
):  # fmt: skip
    """Mark the cells that may hold a better cut than their nodes' by their ``rows[c]``.

    ``inside[c]`` becomes the statistics before the cell where missing values go right.
    """
    channels = totals.shape[1]
    left = np.empty(channels, np.int64)
    for i in range(node.size):
        j, f = node[i], column[i]
        own = at_column(limits.monotonic, at_node(limits.monotonic, limits, means, j), f)
        bar = bar_of(criterion, scores[j], totals[j])
        for side in range(2):
            if start_interval(lefts[i], missing[i], side == 1, left):
                mark_cells(
                    criterion, own, weighted, counts, least, greatest, first[i], first[i + 1],
                    left, totals[j], bar, rows,
                )  # fmt: skip
        for c in range(channels):
            left[c] = lefts[i, c]
        for c in range(first[i], first[i + 1]):
            for k in range(channels):
                inside[c, k] = left[k]
            add_cell(left, counts, c * channels)


# ---------------------------------------------------------- where rows lie
@inner
def interval_of(key, low, begin_, end):
    """The last of intervals ``begin_ .. end``, ascending, that begins at `key` or before; or -1."""
    if key < low[begin_]:
        return -1
    while end - begin_ > 1:
        middle = (begin_ + end) // 2
        if low[middle] <= key:
            begin_ = middle
        else:
            end = middle
    return begin_


@kernel
def count_cells(
    criterion, table, rows, entries, begins, ends, key_shift, weighted, channels, node_pairs,
    column, pair_intervals, low, high, shift, first, counts, least, greatest,
):  # fmt: skip
    """Add the rows of nodes to the cells that they are in.

    Pairs ``node_pairs[j] .. node_pairs[j + 1]`` are columns of node j, and the intervals
    ``pair_intervals[p] .. pair_intervals[p + 1]`` are of pair p.
    """
    for j in range(begins.size):
        if node_pairs[j] == node_pairs[j + 1]:
            continue
        for i in range(begins[j], ends[j]):
            row = entries[i]
            prefetch(table.values, entries[min(i + PREFETCH_ROWS, ends[j] - 1)], 0)
            for p in range(node_pairs[j], node_pairs[j + 1]):
                x = table.values[row, column[p]]
                if x != x:
                    continue
                key = key_of(x) >> np.uint64(key_shift)
                a = interval_of(key, low, pair_intervals[p], pair_intervals[p + 1])
                if a < 0 or key > high[a]:
                    continue
                c = first[a] + np.int64((key - low[a]) >> shift[a])
                add_row(
                    criterion, counts, c * channels, rows.target[row], pick(rows.weight, row, 1),
                    pick(rows.square, row, 0),
                )  # fmt: skip
                if weighted:
                    counts[c * channels + channels - 1] += 1
                least[c] = min(least[c], np.float64(x))
                greatest[c] = max(greatest[c], np.float64(x))


@kernel
def count_categories(criterion, table, rows, entries, begins, ends, f, weighted, channels, counts):
    """Add the rows of node j to the cell of their category in ``counts[j]``, missing ones last."""
    for j in range(begins.size):
        own = counts[j]
        for i in range(begins[j], ends[j]):
            row = entries[i]
            prefetch(table.values, entries[min(i + PREFETCH_ROWS, ends[j] - 1)], f)
            x = table.values[row, f]
            c = np.int64(x) if x == x else np.int64(own.size // channels - 1)
            add_row(
                criterion, own, c * channels, rows.target[row], pick(rows.weight, row, 1),
                pick(rows.square, row, 0),
            )  # fmt: skip
            if weighted:
                own[c * channels + channels - 1] += 1


@kernel
def narrow_targets(rows, entries, begins, ends, rounded, lows, highs):
    """Narrow the interval where the target of all rows of each node may lie, as `narrow` does."""
    for j in range(begins.size):
        low, high = -np.inf, np.inf
        for i in range(begins[j], ends[j]):
            row = entries[i]
            low, high = narrow((low, high), rows.target[row], pick(rows.weight, row, 1), rounded)
            if low > high:
                break
        lows[j] = max(lows[j], low)
        highs[j] = min(highs[j], high)
