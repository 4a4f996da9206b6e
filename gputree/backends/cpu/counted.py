"""Columns whose rows are counted into cells, node by node, where most bins are alive.

rows of the node    counted into cells, or subtracted: parent less smaller sibling
boundaries          scored: they raise the bar
living cells        their rows gathered, sorted, scanned
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.encode import grid_cell
from gputree.backends.cpu.finer import (
    GATHER_SHARE,
    best_boundary,
    keep_left,
    mark_cells,
    new_work,
    next_column,
    place_cells,
    scan_cells,
)
from gputree.backends.cpu.gather import GATHER_ROWS, collect_rows
from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, lent, pick, prefetch
from gputree.backends.cpu.monotonic import at_column
from gputree.backends.cpu.score import (
    add_cell,
    bar_of,
    column_bins,
    is_alive,
    row_count,
    start_side,
)
from gputree.compilation import is_none, overload
from gputree.criteria import add_row


@kernel
def count_cells(criterion, table, rows, cells, entries, begin, end, columns, channels, out):
    """Add entries ``begin .. end`` to the cells of `columns`, flat, `channels` each."""
    codes = table.codes
    values = table.values
    weights = rows.weight
    weighted = weights is not None
    final = entries.size - 1
    for i in range(begin, end):
        ahead = entries[min(i + PREFETCH_ROWS, final)]
        prefetch(codes, ahead, columns[0])
        prefetch(values, ahead, columns[0])
        prefetch(rows.target, ahead, 0)
        row = entries[i]
        target = rows.target[row]
        weight = pick(weights, row, 1)
        square = pick(rows.square, row, 0)
        for f in columns:
            at = np.uintp(cell_of(cells, f, codes[row, f], values[row, f]) * channels)
            add_row(criterion, out, at, target, weight, square)
            if weighted:
                out[at + np.uintp(channels - 1)] += 1


@lent
def cell_of(cells, f, b, x):
    """Cell of a value x in bin b of column f; missing values are in the first of theirs."""
    inside = grid_cell(x, cells.low[f, b], cells.scale[f, b], cells.half, cells.top)
    return cells.first[f] + np.int64(b) * cells.size + np.int64(inside)


@lent
def raise_bar(finer, criterion, table, limits, weighted, bins, f, total, best, left, work):
    """The better of the score `best` and those of boundaries of cells of column f."""
    cells = finer.cells
    own = at_column(limits.monotonic, limits, f)
    channels = total.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    for side in range(2):
        if not start_side(bins, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            n = row_count(criterion, bins, at, channels, weighted)
            bar = bar_of(criterion, best, total)
            if not table.single[first + b] and is_alive(
                criterion, limits, weighted, left, bins, at, n, total, bar
            ):
                keep_left(left, work.inside)
                best = best_boundary(
                    criterion, own, weighted, finer.counts,
                    (cells.first[f] + b * cells.size) * channels, cells.size, n, work.inside,
                    total, work.run, best,
                )  # fmt: skip
            add_cell(left, bins, at)
    return best


@lent
def mark_counted(
    finer, criterion, table, limits, weighted, bins, f, total, bar, left, work, place, opened,
    used,
):  # fmt: skip
    """Reserve places from `used` on for rows of the living cells of column f.

    ``place[cell]`` becomes the first place, -1 where it is dead, and so does ``opened[bin]``,
    where no cell is alive. Returns the places used in all.
    """
    cells = finer.cells
    own = at_column(limits.monotonic, limits, f)
    channels = total.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    place[cells.first[f] : cells.first[f + 1]] = -1
    opened[first : table.offset[f + 1]] = -1
    for side in range(2):
        if not start_side(bins, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            n = row_count(criterion, bins, at, channels, weighted)
            if not table.single[first + b] and is_alive(
                criterion, limits, weighted, left, bins, at, n, total, bar
            ):
                c = cells.first[f] + b * cells.size
                keep_left(left, work.inside)
                mark_cells(
                    criterion, own, weighted, finer.counts, c * channels, cells.size, n,
                    work.inside, total, work.run, bar, place, c,
                )  # fmt: skip
                opened[first + b] = 0
            add_cell(left, bins, at)
    for b in range(value_bins):
        if opened[first + b] >= 0:
            c = cells.first[f] + b * cells.size
            before = used
            used = place_cells(
                criterion, weighted, finer.counts, c * channels, cells.size, channels, place, c,
                used,
            )  # fmt: skip
            opened[first + b] = before if used > before else -1
    return used


@inner
def gather_cells(
    finer, table, entries, first, last, columns, n_columns, place, opened, values, items, j, lead
):
    """Put values and rows of the living cells of ``columns[:n_columns]`` to their places.

    Node j keeps codes of the first column as it does in `gputree.backends.cpu.refine.gather_rows`.
    """
    kept = lead.column[j] < 0
    rows = np.empty(min(GATHER_ROWS, last - first), entries.dtype)
    for begin in range(first, last, GATHER_ROWS):
        end = min(begin + GATHER_ROWS, last)
        for c in range(n_columns):
            f = columns[c]
            bins = opened[table.offset[f] : table.offset[f + 1]]
            found = collect_rows(
                table, entries, begin, end, f, bins, c == 0, rows, kept and c == 0, lead.code
            )
            for i in range(found):
                row = rows[i]
                x = table.values[row, f]
                cell = cell_of(finer.cells, f, table.codes[row, f], x)
                at = place[cell]
                if at >= 0:
                    values[at] = x
                    items[at] = row
                    place[cell] = at + 1
    if kept:
        lead.column[j] = columns[0]


@lent
def scan_counted(
    finer, criterion, table, rows, limits, weighted, bins, f, total, left, work, place, opened,
    values, items, cut,
):  # fmt: skip
    """The better of `cut` and the best cut inside the living, gathered cells of column f."""
    cells = finer.cells
    own = at_column(limits.monotonic, limits, f)
    channels = total.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    for side in range(2):
        if not start_side(bins, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            if opened[first + b] >= 0:
                c = cells.first[f] + b * cells.size
                keep_left(left, work.inside)
                cut = scan_cells(
                    criterion, rows, own, weighted, finer.counts, c * channels, cells.size,
                    work.inside, total, place, c, values, items, side == 1, f, side == 1, b, work,
                    cut,
                )  # fmt: skip
            add_cell(left, bins, (first + b) * channels)
    return cut


def refine_counted(
    finer, criterion, table, rows, entries, first, last, limits, weighted, bins, total, bounds,
    pending, cut, j, lead, report,
):  # fmt: skip
    """Refine those of the columns `pending` that were counted into cells.

    Returns how many of `pending` are left, moved to its front, for how many pairs columns of
    them are gathered together at first, and the better of `cut` and the best cut found.
    """
    refine = _none_counted if finer is None else _refine_counted
    return refine(
        finer, criterion, table, rows, entries, first, last, limits, weighted, bins, total, bounds,
        pending, cut, j, lead, report,
    )  # fmt: skip


@overload(refine_counted)
def _choose_refine_counted(
    finer, criterion, table, rows, entries, first, last, limits, weighted, bins, total, bounds,
    pending, cut, j, lead, report,
):  # fmt: skip
    return _none_counted if is_none(finer) else _refine_counted


def _none_counted(
    finer, criterion, table, rows, entries, first, last, limits, weighted, bins, total, bounds,
    pending, cut, j, lead, report,
):  # fmt: skip
    return pending.size, 1, cut


def _refine_counted(
    finer, criterion, table, rows, entries, first, last, limits, weighted, bins, total, bounds,
    pending, cut, j, lead, report,
):  # fmt: skip
    n_pending, counted, n_counted = take_counted(finer, pending)
    room = GATHER_SHARE * (last - first)
    at_first = room if finer.at_once[j] else 1
    if n_counted == 0:
        return n_pending, at_first, cut
    left = np.empty_like(total)
    work = new_work(total.size)
    place = np.empty(finer.cells.first[-1], np.int64)
    opened = np.empty(table.offset[-1], np.int64)
    best = cut[0]
    for c in range(n_counted):
        if bounds[counted[c]] >= bar_of(criterion, best, total):
            best = raise_bar(
                finer, criterion, table, limits, weighted, bins, counted[c], total, best, left,
                work,
            )  # fmt: skip
    group = np.empty(n_counted, np.int64)
    while True:
        bar = bar_of(criterion, max(best, cut[0]), total)
        used = np.int64(0)
        n_group = 0
        while used < room:
            at = next_column(bounds, counted, n_counted, bar)
            if at < 0:
                break
            group[n_group] = counted[at]
            n_counted -= 1
            counted[at] = counted[n_counted]
            before = used
            used = mark_counted(
                finer, criterion, table, limits, weighted, bins, group[n_group], total, bar, left,
                work, place, opened, used,
            )  # fmt: skip
            n_group += used > before
        if n_group == 0:
            return n_pending, at_first, cut
        report[0] += used
        values = np.empty(used, table.values.dtype)
        items = np.empty(used, entries.dtype)
        gather_cells(
            finer, table, entries, first, last, group, n_group, place, opened, values, items, j,
            lead,
        )  # fmt: skip
        for g in range(n_group):
            cut = scan_counted(
                finer, criterion, table, rows, limits, weighted, bins, group[g], total, left, work,
                place, opened, values, items, cut,
            )  # fmt: skip


@inner
def take_counted(finer, pending):
    """Move columns that were counted out of `pending`: how many are left, those, their number."""
    counted = np.empty(pending.size, np.int64)
    n_pending = n_counted = 0
    for f in pending:
        if finer.counted[f]:
            counted[n_counted] = f
            n_counted += 1
        else:
            pending[n_pending] = f
            n_pending += 1
    return n_pending, counted, n_counted
