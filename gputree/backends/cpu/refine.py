"""Exact cuts inside bins: only bins whose bound reaches the best score are looked into.

    bins of a column     |   |   |xxx|   |   |xxx|   |      x: alive
    rows of the node     gathered by bin, each bin sorted by value, then scanned

The cut found does not depend on the order of work: every bin that could hold a cut as
good as the best is scanned, and one order (`precedes`) decides among equals.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.counted import refine_counted
from gputree.backends.cpu.cut import new_cut, no_cut, precedes
from gputree.backends.cpu.draw import draw_columns
from gputree.backends.cpu.finer import GATHER_SHARE, new_work, next_column, scan_pairs
from gputree.backends.cpu.gather import GATHER_ROWS, collect_rows
from gputree.backends.cpu.jit import inner, kernel, lent, pick
from gputree.backends.cpu.monotonic import at_column, at_node
from gputree.backends.cpu.score import (
    add_cell,
    bar_of,
    column_bins,
    is_alive,
    row_count,
    start_side,
)
from gputree.criteria import begin, gain, is_pure


@lent
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
                and is_alive(criterion, limits, weighted, left, cells, at, n, total, bar)
            ):
                position[b] = used
                used += n
            add_cell(left, cells, at)
    return used


@inner
def gather_rows(table, entries, first, last, columns, n_columns, position, values, items, j, lead):
    """Put rows of the alive bins of ``columns[:n_columns]``, and their values, to their places.

    Node j keeps the codes of the first column, if it has kept none: see `Lead`.
    """
    kept = lead.column[j] < 0
    rows = np.empty(min(GATHER_ROWS, last - first), entries.dtype)
    for start in range(first, last, GATHER_ROWS):
        end = min(start + GATHER_ROWS, last)
        for c in range(n_columns):
            f = columns[c]
            bins = position[table.offset[f] : table.offset[f + 1]]
            found = collect_rows(
                table, entries, start, end, f, bins, c == 0, rows, kept and c == 0, lead.code
            )
            for i in range(found):
                row = rows[i]
                b = table.codes[row, f]
                place = bins[b]
                bins[b] = place + 1
                items[place] = row
                values[place] = table.values[row, f]
    if kept:
        lead.column[j] = columns[0]


@lent
def scan_column(
    finer, criterion, table, rows, limits, weighted, cells, f, total, position, values, items,
    left, work, report, cut,
):  # fmt: skip
    """The better of `cut` and the best cut inside the alive, gathered bins of column f."""
    channels = total.size
    own = at_column(limits.monotonic, limits, f)
    first, value_bins, missing_at = column_bins(table, f, channels)
    for side in range(2):
        if not start_side(cells, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            end = position[first + b]
            if end >= 0:
                start = end - row_count(criterion, cells, at, channels, weighted)
                cut = scan_pairs(
                    finer, criterion, rows, own, weighted, values, items, start, end, left,
                    total, f, side == 1, b, work, report, cut,
                )  # fmt: skip
            add_cell(left, cells, at)
    return cut


@inner
def refine_columns(
    finer, criterion, table, rows, entries, first, last, limits, weighted, cells, total, bounds,
    pending, n_pending, room, cut, position, j, lead, report,
):  # fmt: skip
    """Refine the columns ``pending[:n_pending]``, greatest bound first, and return the best cut.

    The first column goes alone where `room` is 1, since it raises the bar for all others;
    those that still reach it are gathered together, one pass over the rows for many columns.
    """
    left = np.empty_like(total)
    work = new_work(total.size)
    group = np.empty(n_pending, np.int64)
    while True:
        bar = bar_of(criterion, cut[0], total)
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
            before = used
            used = mark_alive(
                criterion, table, limits, weighted, cells, f, total, bar, left, position, used
            )
            n_group += used > before
        if n_group == 0:
            return cut
        values = np.empty(used, table.values.dtype)
        items = np.empty(used, entries.dtype)
        gather_rows(table, entries, first, last, group, n_group, position, values, items, j, lead)
        for g in range(n_group):
            cut = scan_column(
                finer, criterion, table, rows, limits, weighted, cells, group[g], total, position,
                values, items, left, work, report, cut,
            )  # fmt: skip
        room = GATHER_SHARE * (last - first)


@inner
def choose_cut(
    finer, criterion, table, rows, entries, first, last, limits, weighted, exact, key, cells, total,
    best, bins, sides, bounds, position, j, lead, report,
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
            cut = better_boundary(order[i], best, bins, sides, cut)
        if exact:
            pending = np.empty(upto - done, np.int64)
            for i in range(done, upto):
                pending[i - done] = order[i]
            n_pending, room, cut = refine_counted(
                finer, criterion, table, rows, entries, first, last, limits, weighted, cells,
                total, bounds, pending, cut, j, lead, report,
            )  # fmt: skip
            cut = refine_columns(
                finer, criterion, table, rows, entries, first, last, limits, weighted, cells,
                total, bounds, pending, n_pending, room, cut, position, j, lead, report,
            )  # fmt: skip
        done = upto
    return cut


@lent
def better_boundary(f, best, bins, sides, cut):
    """The better of `cut` and the best boundary, or subset, of column f."""
    if best[f] == -np.inf:
        return cut
    found = new_cut(best[f], f, sides[f], bins[f], True, 0.0)
    return found if precedes(found, cut) else cut


@lent
def next_filled(criterion, table, weighted, cells, f, b, channels):
    """The next value bin after b of column f that has rows, or -1."""
    first, value_bins, _ = column_bins(table, f, channels)
    for after in range(b + 1, value_bins):
        if row_count(criterion, cells, (first + after) * channels, channels, weighted) > 0:
            return after
    return -1


@lent
def has_missing(criterion, table, weighted, cells, f, channels):
    """Whether the node has missing values in column f."""
    missing_at = column_bins(table, f, channels)[2]
    return missing_at >= 0 and row_count(criterion, cells, missing_at, channels, weighted) > 0


@lent
def record_cut(criterion, table, limits, weighted, cells, total, cut, j, splits):
    """Let `cut` be the split of node j, if there is one and it is worth it."""
    if cut[0] == -np.inf:
        return
    f, channels = cut[1], total.size
    seen = has_missing(criterion, table, weighted, cells, f, channels)
    after = -1
    if cut[4] and table.categories[f] == 0:
        after = next_filled(criterion, table, weighted, cells, f, cut[3], channels)
    put_cut(criterion, table, limits, total, cut, seen, after, j, splits)


@lent
def put_cut(criterion, table, limits, total, cut, seen_missing, next_bin, j, splits):
    """Let `cut` be the split of node j, if it is worth it.

    `next_bin` is the next bin with rows after a cut at the end of its bin, else -1.
    """
    decrease = gain(criterion, cut[0], total)
    weight = begin(criterion, total, total)[0]
    if decrease * weight < limits.min_decrease:
        return
    splits.feature[j] = cut[1]
    splits.weight[j] = weight
    splits.gain[j] = decrease
    splits.missing_left[j] = cut[2]
    splits.seen_missing[j] = seen_missing
    if table.categories[cut[1]] > 0:
        return
    splits.cut_bin[j] = cut[3]
    splits.inside[j] = not cut[4]
    splits.threshold[j] = cut[5]
    splits.next_bin[j] = next_bin


@lent
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


@lent
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
    finer, criterion, table, rows, entries, begins, ends, limits, weighted, exact, keys, cells,
    slots, nodes, first, last, means, totals, best, bins, sides, bounds, splits, lead, report,
):  # fmt: skip
    """Choose the split of ``nodes[first:last]``; `report` counts (row, column) pairs sorted.

    `lead` keeps the codes that were read first.

    `means` are the `Bounds` of the nodes, or None.
    """
    regression = rows.square is not None
    position = np.empty(table.offset[-1], np.int64)
    for j in nodes[first:last]:
        total = totals[j]
        own = cells[slots[j]]
        if is_pure(criterion, total):
            continue
        if regression and all_equal(
            rows.target, rows.weight, entries, begins[j], ends[j], limits.rounded
        ):
            continue
        cut = choose_cut(
            finer, criterion, table, rows, entries, begins[j], ends[j],
            at_node(limits.monotonic, limits, means, j), weighted, exact, keys[j], own, total,
            best[j], bins[j], sides[j], bounds[j], position, j, lead, report,
        )  # fmt: skip
        record_cut(criterion, table, limits, weighted, own, total, cut, j, splits)


@kernel
def best_boundary_of(columns, best, bins, sides, cut):
    """The better of `cut` and the best boundary, or subset, of some columns of a node."""
    for f in columns:
        cut = better_boundary(f, best, bins, sides, cut)
    return cut


@kernel
def record_cut_of(criterion, table, limits, weighted, cells, total, cut, j, splits):
    """As `record_cut`."""
    record_cut(criterion, table, limits, weighted, cells, total, cut, j, splits)


@kernel
def put_cut_of(criterion, table, limits, total, cut, seen_missing, next_bin, j, splits):
    """As `put_cut`, if there is a cut."""
    if cut[0] > -np.inf:
        put_cut(criterion, table, limits, total, cut, seen_missing, next_bin, j, splits)


@kernel
def bars_of(criterion, best, totals, bars):
    """What bounds must reach to be looked into, beside cuts of score ``best[j]`` of nodes."""
    for j in range(best.size):
        bars[j] = bar_of(criterion, best[j], totals[j])


@kernel
def pure_nodes(criterion, totals, out):
    """Whether each node is pure, by its class weights, or sums of targets."""
    for j in range(totals.shape[0]):
        out[j] = is_pure(criterion, totals[j])


@kernel
def alive_rows(
    criterion, table, limits, weighted, cells, slots, nodes, first, last, totals, best, bounds, out
):
    """Rows, in ``out[i]``, of the living bins of each column of node ``nodes[i]``."""
    position = np.empty(table.offset[-1], np.int64)
    left = np.empty(totals.shape[1], np.int64)
    for i in range(first, last):
        j = nodes[i]
        bar = bar_of(criterion, best[j].max(), totals[j])
        for f in range(bounds.shape[1]):
            if bounds[j, f] >= bar:
                out[i, f] = mark_alive(
                    criterion, table, limits, weighted, cells[slots[j]], f, totals[j], bar, left,
                    position, 0,
                )  # fmt: skip
