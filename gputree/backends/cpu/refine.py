"""Exact cuts inside bins: only bins whose bound reaches the best score are looked into.

    bins of a column     |   |   |xxx|   |   |xxx|   |      x: alive
    rows of the node     gathered by bin, each bin sorted by value, then scanned

The cut found does not depend on the order of work: every bin that could hold a cut as
good as the best is scanned, and one order (`precedes`) decides among equals.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.draw import draw_columns
from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.backends.cpu.score import add_cell, cut_inside, row_count, start_side
from gputree.backends.cpu.sort import sort_pairs
from gputree.criteria import begin, bound, gain, is_pure, margin, move, score

# Pairs gathered at once, per row of the node: bounds the memory of a refinement.
GATHER_SHARE = 2


@inner
def precedes(a, b):
    """Whether cut `a` is chosen before `b`: the one tie rule.

    Greatest score; then lowest column; then missing values right before left; then the
    lowest cut. A cut is (score, column, missing_left, bin, at its end, threshold).
    """
    if a[0] != b[0]:
        return a[0] > b[0]
    if a[1] != b[1]:
        return a[1] < b[1]
    if a[2] != b[2]:
        return not a[2]
    if a[3] != b[3]:
        return a[3] < b[3]
    return b[4] and not a[4]


@inner
def no_cut():
    """The cut that every other precedes."""
    return -np.inf, 0, False, 0, False, 0.0


@inner
def scan_bin(criterion, rows, limits, weighted, values, items, first, last, left, total):
    """Best cut between the sorted pairs ``first .. last``: (score, threshold).

    `left` holds the statistics before the bin and is used up.
    """
    best = -np.inf
    threshold = 0.0
    before = row_count(criterion, left, weighted)
    whole = row_count(criterion, total, weighted)
    least = limits.min_samples_leaf
    weight = begin(criterion, total, total)[0]
    state = begin(criterion, left, total)
    for i in range(first, last - 1):
        row = items[i]
        state = move(
            criterion, state, left, total, rows.target[row], pick(rows.weight, row, 1)
        )
        if values[i] == values[i + 1]:
            continue
        n = before + i + 1 - first
        if n < least or whole - n < least:
            continue
        if state[0] < limits.min_weight_leaf or weight - state[0] < limits.min_weight_leaf:
            continue
        value = score(criterion, state, left, total)
        if value > best:
            best = value
            threshold = midpoint(values[i], values[i + 1])
    return best, threshold


@inner
def midpoint(low, high):
    """Threshold between two neighbouring values: the midpoint, or `low` if that rounds up."""
    middle = 0.5 * np.float64(low) + 0.5 * np.float64(high)
    return middle if middle < high else np.float64(low)


@inner
def mark_alive(criterion, table, limits, weighted, cells, f, total, bar, left, position, used):
    """Reserve places from `used` on for the rows of each bin of column f that may hold the best cut.

    ``position[offset + bin]`` becomes the first place, -1 where the bin is dead.
    Returns the places used in all.
    """
    channels = total.size
    first = table.offset[f]
    has_missing = table.missing[f]
    value_bins = table.offset[f + 1] - first - np.int64(has_missing)
    position[first : first + value_bins + np.int64(has_missing)] = -1
    for side in range(2):
        if not start_side(cells, first, value_bins, channels, has_missing, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            if (
                position[first + b] < 0
                and not table.single[first + b]
                and cut_inside(criterion, limits, weighted, left, cells, at, channels, total)
                and bound(criterion, left, cells[at : at + channels], total) >= bar
            ):
                position[first + b] = used
                used += row_count(criterion, cells[at : at + channels], weighted)
            add_cell(left, cells, at, 1)
    return used


@inner
def gather(table, entries, first, last, columns, n_columns, position, values, items):
    """Copy the values of the alive bins of ``columns[:n_columns]`` to their places."""
    final = entries.size - 1
    for i in range(first, last):
        prefetch(table.codes, entries[min(i + PREFETCH_ROWS, final)])
        row = entries[i]
        for c in range(n_columns):
            f = columns[c]
            at = table.offset[f] + table.codes[row, f]
            place = position[at]
            if place >= 0:
                values[place] = table.values[row, f]
                items[place] = row
                position[at] = place + 1


@inner
def scan_column(
    criterion, table, rows, limits, weighted, cells, f, total, position, values, items, cut, left
):
    """The better of `cut` and the best cut inside the alive, gathered bins of column f."""
    channels = total.size
    first = table.offset[f]
    has_missing = table.missing[f]
    value_bins = table.offset[f + 1] - first - np.int64(has_missing)
    stack = np.empty((64, 2), np.int64)
    scanned = np.empty_like(left)
    for side in range(2):
        if not start_side(cells, first, value_bins, channels, has_missing, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            end = position[first + b]
            if end >= 0:
                start = end - row_count(criterion, cells[at : at + channels], weighted)
                if side == 0:
                    sort_pairs(values, items, start, end, stack)
                scanned[:] = left
                value, threshold = scan_bin(
                    criterion, rows, limits, weighted, values, items, start, end, scanned, total
                )
                found = (value, f, side == 1, b, False, threshold)
                if value > -np.inf and precedes(found, cut):
                    cut = found
            add_cell(left, cells, at, 1)
    return cut


@inner
def next_column(bounds, pending, n_pending, bar):
    """Place in `pending` of the column with the greatest bound that reaches `bar`, or -1."""
    at = -1
    for i in range(n_pending):
        if bounds[pending[i]] >= bar and (at < 0 or bounds[pending[i]] > bounds[pending[at]]):
            at = i
    return at


@inner
def refine_columns(
    criterion, table, rows, entries, first, last, limits, weighted, cells, total, bounds,
    pending, n_pending, cut, position, report,
):  # fmt: skip
    """Refine the columns ``pending[:n_pending]``, greatest bound first, and return the best cut.

    The first column goes alone, since it raises the bar for all others; those that
    still reach it are gathered together, one pass over the rows for many columns.
    """
    left = np.empty_like(total)
    group = np.empty(n_pending, np.int64)
    room = 1
    while True:
        bar = cut[0] - margin(criterion, cut[0], total) if cut[0] > -np.inf else -np.inf
        used = n_group = 0
        while used < room:
            at = next_column(bounds, pending, n_pending, bar)
            if at < 0:
                break
            group[n_group] = pending[at]
            n_group += 1
            n_pending -= 1
            pending[at] = pending[n_pending]
            used = mark_alive(
                criterion, table, limits, weighted, cells, group[n_group - 1], total, bar, left,
                position, used,
            )  # fmt: skip
        if n_group == 0:
            return cut
        values = np.empty(used, table.values.dtype)
        items = np.empty(used, entries.dtype)
        gather(table, entries, first, last, group, n_group, position, values, items)
        report[0] += used
        for g in range(n_group):
            cut = scan_column(
                criterion, table, rows, limits, weighted, cells, group[g], total, position,
                values, items, cut, left,
            )  # fmt: skip
        room = GATHER_SHARE * (last - first)


@inner
def choose_cut(
    criterion, table, rows, entries, first, last, limits, weighted, exact, key, cells, total,
    best, bins, sides, bounds, position, report,
):  # fmt: skip
    """Best cut of one node: over all columns, or over those drawn for it.

    Columns past `max_features` are visited one by one until some cut is admissible.
    """
    d = best.size
    order = np.empty(d, np.int64)
    if limits.max_features < d:
        draw_columns(key, order)
    else:
        for f in range(d):
            order[f] = f
    cut = no_cut()
    done = 0
    while done < d and (done == 0 or cut[0] == -np.inf):
        upto = max(limits.max_features, done + 1)
        for i in range(done, upto):
            f = order[i]
            found = (best[f], f, sides[f], bins[f], True, 0.0)
            if best[f] > -np.inf and precedes(found, cut):
                cut = found
        if exact:
            pending = order[done:upto].copy()
            cut = refine_columns(
                criterion, table, rows, entries, first, last, limits, weighted, cells, total,
                bounds, pending, pending.size, cut, position, report,
            )  # fmt: skip
        done = upto
    return cut


@inner
def next_filled(criterion, table, weighted, cells, f, b, channels):
    """The next value bin after b of column f that has rows, or -1."""
    first = table.offset[f]
    value_bins = table.offset[f + 1] - first - np.int64(table.missing[f])
    for after in range(b + 1, value_bins):
        at = (first + after) * channels
        if row_count(criterion, cells[at : at + channels], weighted) > 0:
            return after
    return -1


@inner
def has_missing(criterion, table, weighted, cells, f, channels):
    """Whether the node has missing values in column f."""
    if not table.missing[f]:
        return False
    at = (table.offset[f + 1] - 1) * channels
    return row_count(criterion, cells[at : at + channels], weighted) > 0


@inner
def all_equal(rows, entries, first, last, total, resolution):
    """Whether every target of the node equals its mean, within `resolution` units."""
    mean = np.float64(total[1]) / np.float64(total[0])
    for i in range(first, last):
        row = entries[i]
        weight = np.float64(pick(rows.weight, row, 1))
        if abs(np.float64(rows.target[row]) - weight * mean) > resolution:
            return False
    return True


@kernel
def refine_nodes(
    criterion, table, rows, entries, begins, ends, limits, weighted, exact, keys, cells, slots,
    first, last, totals, best, bins, sides, bounds, splits, report,
):  # fmt: skip
    """Choose the split of nodes ``first .. last``; `report` counts (row, column) pairs refined."""
    channels = totals.shape[1]
    position = np.empty(table.offset[-1], np.int64)
    for j in range(first, last):
        total = totals[j]
        own = cells[slots[j]]
        if is_pure(criterion, total):
            continue
        cut = choose_cut(
            criterion, table, rows, entries, begins[j], ends[j], limits, weighted, exact, keys[j],
            own, total, best[j], bins[j], sides[j], bounds[j], position, report,
        )  # fmt: skip
        if cut[0] == -np.inf:
            continue
        if cut[0] == 0.0 and rows.square is not None:  # no gain: perhaps no variance
            if all_equal(rows, entries, begins[j], ends[j], total, limits.resolution):
                continue
        decrease = gain(criterion, cut[0], total)
        weight = begin(criterion, total, total)[0]
        if decrease * weight < limits.min_decrease:
            continue
        splits.feature[j] = cut[1]
        splits.weight[j] = weight
        splits.gain[j] = decrease
        splits.missing_left[j] = cut[2]
        splits.seen_missing[j] = has_missing(criterion, table, weighted, own, cut[1], channels)
        splits.cut_bin[j] = cut[3]
        splits.inside[j] = not cut[4]
        splits.threshold[j] = cut[5]
        if cut[4]:
            splits.next_bin[j] = next_filled(
                criterion, table, weighted, own, cut[1], cut[3], channels
            )
