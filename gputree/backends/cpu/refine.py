"""Exact cuts inside bins: only bins whose bound reaches the best score are looked into.

    bins of a column     |   |   |xxx|   |   |xxx|   |      x: alive
    rows of the node     gathered by bin, each bin sorted by value, then scanned

The cut found does not depend on the order of work: every bin that could hold a cut as
good as the best is scanned, and one order (`precedes`) decides among equals.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.draw import draw_columns
from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, once, pick, prefetch
from gputree.backends.cpu.score import add_cell, cut_inside, row_count, start_side
from gputree.backends.cpu.sort import sort_pairs
from gputree.criteria import begin, bound, gain, is_pure, margin, move, score, tighten

# Pairs gathered at once, per row of the node, before the last column of a group: bounds
# the memory of a refinement.
GATHER_SHARE = 2


@inner
def precedes(a, b):
    """Whether cut `a` is chosen before `b`: the one tie rule.

    Greatest score, as rounded to float64: cuts that are equal in exact arithmetic tie where
    their scores do, and they are the same numbers on every path, made of the same integers by
    the same operations. Then lowest column; then missing values right before left; then the
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
def new_cut(value, f, missing_left, place, at_end, threshold):
    """A cut as `precedes` compares them; the types are fixed, so kernels compile once."""
    return (
        np.float64(value),
        np.int64(f),
        np.bool_(missing_left),
        np.int64(place),
        np.bool_(at_end),
        np.float64(threshold),
    )


@inner
def no_cut():
    """The cut that every other precedes."""
    return new_cut(-np.inf, 0, False, 0, False, 0.0)


@inner
def scan_bin(
    criterion, target, weight, limits, before, whole, values, items, first, last, left, total
):
    """Best cut between the sorted pairs ``first .. last``: (score, threshold).

    `left` holds the statistics before the bin, `before` its rows of `whole`; it is used up.
    """
    best = -np.inf
    threshold = 0.0
    least = limits.min_samples_leaf
    all_weight = begin(criterion, total, total)[0]
    state = begin(criterion, left, total)
    for i in range(first, last - 1):
        row = items[i]
        state = move(criterion, state, left, total, target[row], pick(weight, row, 1))
        if values[i] == values[i + 1]:
            continue
        n = before + i + 1 - first
        if n < least or whole - n < least:
            continue
        if state[0] < limits.min_weight_leaf or all_weight - state[0] < limits.min_weight_leaf:
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
def column_bins(table, f, channels):
    """Of column f: its first bin, how many bins of values, and the place of the missing one."""
    first = table.offset[f]
    last = table.offset[f + 1]
    if table.missing[f]:
        return first, last - first - 1, (last - 1) * channels
    return first, last - first, -1


@inner
def mark_alive(criterion, table, limits, weighted, cells, f, total, bar, left, position, used):
    """Reserve places from `used` on for the rows of the bins of column f that may be cut best.

    ``position[offset + bin]`` becomes the first place, -1 where the bin is dead.
    Returns the places used in all.
    """
    channels = total.size
    single = table.single
    first, value_bins, missing_at = column_bins(table, f, channels)
    for b in range(first, table.offset[f + 1]):
        position[b] = -1
    for side in range(2):
        if not start_side(cells, missing_at, side == 1, left):
            continue
        for b in range(first, first + value_bins):
            at = b * channels
            n = row_count(criterion, cells, at, channels, weighted)
            if (
                position[b] < 0
                and not single[b]
                and cut_inside(criterion, limits, weighted, left, n, total)
            ):
                most = bound(criterion, left, cells, at, total)
                if most >= bar and tighten(criterion, left, cells, at, total, most) >= bar:
                    position[b] = used
                    used += n
            add_cell(left, cells, at)
    return used


@inner
def gather_rows(table, entries, first, last, columns, n_columns, position, items):
    """Put the rows of the alive bins of ``columns[:n_columns]`` to their places."""
    codes = table.codes
    offset = table.offset
    final = entries.size - 1
    for i in range(first, last):
        prefetch(codes, entries[min(i + PREFETCH_ROWS, final)], 0)
        row = entries[i]
        for c in range(n_columns):
            f = columns[c]
            at = offset[f] + codes[row, f]
            place = position[at]
            if place >= 0:
                items[place] = row
                position[at] = place + 1


@inner
def gather_values(source, f, begin, end, items, values):
    """Values of column f of the rows at places ``begin .. end``."""
    for i in range(begin, end):
        prefetch(source, items[min(i + PREFETCH_ROWS, end - 1)], f)
        values[i] = source[items[i], f]


@inner
def scan_column(
    criterion, table, target, weight, limits, weighted, cells, f, total, position, values, items,
    cut, left,
):  # fmt: skip
    """The better of `cut` and the best cut inside the alive, gathered bins of column f."""
    channels = total.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    stack = np.empty((64, 2), np.int64)
    scanned = np.empty_like(left)
    whole = row_count(criterion, total, 0, channels, weighted)
    for side in range(2):
        if not start_side(cells, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            end = position[first + b]
            if end >= 0:
                start = end - row_count(criterion, cells, at, channels, weighted)
                if side == 0:
                    sort_pairs(values, items, start, end, stack)
                for c in range(channels):
                    scanned[c] = left[c]
                before = row_count(criterion, left, 0, channels, weighted)
                value, threshold = scan_bin(
                    criterion, target, weight, limits, before, whole, values, items, start, end,
                    scanned, total,
                )  # fmt: skip
                found = new_cut(value, f, side == 1, b, False, threshold)
                if value > -np.inf and precedes(found, cut):
                    cut = found
            add_cell(left, cells, at)
    return cut


@inner
def next_column(bounds, pending, n_pending, bar):
    """Place in `pending` of the column with the greatest bound that reaches `bar`, or -1."""
    at = -1
    for i in range(n_pending):
        if bounds[pending[i]] >= bar and (at < 0 or bounds[pending[i]] > bounds[pending[at]]):
            at = i
    return at


@once
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
    reach = np.empty(n_pending + 1, np.int64)  # places of a column: reach[g] .. reach[g + 1]
    room = 1
    while True:
        bar = cut[0] - margin(criterion, cut[0], total) if cut[0] > -np.inf else -np.inf
        used = np.int64(0)
        n_group = 0
        while used < room:
            at = next_column(bounds, pending, n_pending, bar)
            if at < 0:
                break
            f = pending[at]
            n_pending -= 1
            pending[at] = pending[n_pending]
            group[n_group] = f
            reach[n_group] = used
            used = mark_alive(
                criterion, table, limits, weighted, cells, f, total, bar, left, position, used
            )
            n_group += used > reach[n_group]
        if n_group == 0:
            return cut
        values = np.empty(used, table.values.dtype)
        items = np.empty(used, entries.dtype)
        gather_rows(table, entries, first, last, group, n_group, position, items)
        reach[n_group] = used
        report[0] += used
        for g in range(n_group):
            gather_values(table.values, group[g], reach[g], reach[g + 1], items, values)
            cut = scan_column(
                criterion, table, rows.target, rows.weight, limits, weighted, cells, group[g],
                total, position, values, items, cut, left,
            )  # fmt: skip
        room = GATHER_SHARE * (last - first)


@once
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
            found = new_cut(best[f], f, sides[f], bins[f], True, 0.0)
            if best[f] > -np.inf and precedes(found, cut):
                cut = found
        if exact:
            pending = np.empty(upto - done, np.int64)
            for i in range(done, upto):
                pending[i - done] = order[i]
            cut = refine_columns(
                criterion, table, rows, entries, first, last, limits, weighted, cells, total,
                bounds, pending, pending.size, cut, position, report,
            )  # fmt: skip
        done = upto
    return cut


@inner
def next_filled(criterion, table, weighted, cells, f, b, channels):
    """The next value bin after b of column f that has rows, or -1."""
    first, value_bins, _ = column_bins(table, f, channels)
    for after in range(b + 1, value_bins):
        if row_count(criterion, cells, (first + after) * channels, channels, weighted) > 0:
            return after
    return -1


@inner
def has_missing(criterion, table, weighted, cells, f, channels):
    """Whether the node has missing values in column f."""
    missing_at = column_bins(table, f, channels)[2]
    return missing_at >= 0 and row_count(criterion, cells, missing_at, channels, weighted) > 0


@inner
def narrow(interval, target, weight, rounded):
    """The part of an interval (low, high) where the target of a row may truly lie, in units.

    `target` is the product with the weight; where it was rounded, so was the weight.
    """
    if not rounded:
        value = np.float64(target // weight)
        return max(interval[0], value), min(interval[1], value)
    value = np.float64(target) / np.float64(weight)
    error = 1.0 / np.float64(weight) + abs(value) * 2.0**-50
    return max(interval[0], value - error), min(interval[1], value + error)


@inner
def all_equal(target, weight, entries, first, last, rounded):
    """Whether one target may stand for all rows of the node."""
    interval = (-np.inf, np.inf)
    for i in range(first, last):
        row = entries[i]
        interval = narrow(interval, target[row], pick(weight, row, 1), rounded)
        if interval[0] > interval[1]:
            return False
    return True


@kernel
def refine_nodes(
    criterion, table, rows, entries, begins, ends, limits, weighted, exact, keys, cells, slots,
    first, last, totals, best, bins, sides, bounds, splits, report,
):  # fmt: skip
    """Choose the split of nodes ``first .. last``; `report` counts (row, column) pairs refined."""
    channels = totals.shape[1]
    regression = rows.square is not None
    position = np.empty(table.offset[-1], np.int64)
    for j in range(first, last):
        total = totals[j]
        own = cells[slots[j]]
        if is_pure(criterion, total):
            continue
        if regression and all_equal(
            rows.target, rows.weight, entries, begins[j], ends[j], limits.rounded
        ):
            continue
        cut = choose_cut(
            criterion, table, rows, entries, begins[j], ends[j], limits, weighted, exact, keys[j],
            own, total, best[j], bins[j], sides[j], bounds[j], position, report,
        )  # fmt: skip
        if cut[0] == -np.inf:
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
