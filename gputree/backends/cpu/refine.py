"""Exact cuts inside bins: only candidate bins, whose bound reaches the best score, are searched.

    bins of a column     |   |   |xxx|   |   |xxx|   |      x: candidates
    rows of the node     gathered by bin, each bin sorted by value, then scanned

In large nodes, bins of columns with many rows in candidates are counted again into sub-bins
(`gputree.backends.cpu.sub_bins`): the rows of candidate sub-bins alone are gathered.

The cut found does not depend on the order of work: every bin that could hold a cut as
good as the best is scanned, and one order (`precedes`) decides among equals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import count_row, narrow, new_cut, no_cut, precedes, row_count
from gputree.backends.cpu.draw import draw_columns, tie_rank
from gputree.backends.cpu.gather import GATHER_ROWS, READ_ROWS, collect_rows
from gputree.backends.cpu.jit import (
    PREFETCH_ROWS,
    borrowing,
    inner,
    kernel,
    pick,
    prefetch,
    written_out,
)
from gputree.backends.cpu.layout import Node, Pairs
from gputree.backends.cpu.monotonic import at_column, at_node
from gputree.backends.cpu.score import (
    add_cell,
    column_bins,
    is_candidate,
    needed_bound,
    score_column,
    start_side,
)
from gputree.backends.cpu.sub_bins import (
    Spot,
    SubBins,
    Work,
    cell_of,
    mark_cells,
    new_work,
    place_cells,
    scan_cells,
    scan_pairs,
)
from gputree.criteria import begin, gain, is_pure

# Pairs gathered at once, per row of the node, before the last column of a group: bounds
# the memory of a refinement.
GATHER_SHARE = 2

# Columns gathered at once, at most: each has room for the rows that are found (not measured).
GATHER_COLUMNS = 64


class Marks(NamedTuple):
    """Where the next pair of each candidate goes, -1 of others."""

    bins: NDArray  # (bins,) int64
    candidate: NDArray  # (bins,) uint8: 1 of candidates
    cells: NDArray  # (sub-bins,) int64, of columns that are counted into them


class NodeHistogram(NamedTuple):
    """Scratch: the histogram of one node, of which the columns that it draws are counted."""

    vectors: Any  # see `score_column`
    cells: NDArray  # (bins x channels,) of all columns; those of drawn ones are in use


class Search(NamedTuple):
    """The search of node j, of entries ``first .. last``."""

    j: int
    first: int
    last: int
    histogram: NDArray
    bound: NDArray  # (d,) greatest bound of the bins of each column
    marks: Marks
    work: Work
    report: NDArray  # (1,) pairs that were sorted, so far


@inner
def new_marks(finer, table):
    """Room for the marks of all columns."""
    size = 0
    if finer is not None:
        size = finer.cells.first[-1]
    bins = table.offset[-1]
    return Marks(np.empty(bins, np.int64), np.empty(bins, np.uint8), np.empty(size, np.int64))


@borrowing
def is_counted(finer, f):
    """Whether column f was counted into sub-bins."""
    if finer is None:
        return False
    return finer.counted[f]


@written_out
def sub_bins(finer, places, f, b):
    """The sub-bins of bin b of a column f that was counted."""
    size = finer.cells.size
    return SubBins(finer.counts, places, finer.cells.first[f] + b * size, size)


@written_out
def in_column(node, f):
    """The node, with the limits of column f."""
    limits = at_column(node.limits.monotonic, node.limits, f)
    return Node(node.criterion, limits, node.weighted, node.total, node.key)


@borrowing
def mark_column(finer, table, node, histogram, f, needed, marks, work, used):
    """Reserve places from `used` on for the rows of candidate bins, or sub-bins, of column f.

    Returns the places used in all.
    """
    criterion, limits, weighted, total, _ = node
    bins, left, channels = marks.bins, work.left, total.size
    own = in_column(node, f)
    counted = is_counted(finer, f)
    first, value_bins, missing_at = column_bins(table, f, channels)
    for b in range(first, table.offset[f + 1]):
        bins[b] = -1
        marks.candidate[b] = 0
    if finer is not None and counted:
        marks.cells[finer.cells.first[f] : finer.cells.first[f + 1]] = -1
    for side in range(2):
        if not start_side(histogram, missing_at, side == 1, left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            n = row_count(criterion, histogram, at, channels, weighted)
            if (
                (counted or bins[first + b] < 0)
                and not table.single[first + b]
                and is_candidate(criterion, limits, weighted, left, histogram, at, n, total, needed)
            ):
                bins[first + b] = 0
                if finer is not None and counted:
                    mark_cells(own, sub_bins(finer, marks.cells, f, b), n, work, needed)
            add_cell(left, histogram, at)
    for b in range(value_bins):
        if bins[first + b] < 0:
            continue
        before = used
        used += row_count(criterion, histogram, (first + b) * channels, channels, weighted)
        if finer is not None and counted:
            used = place_cells(own, sub_bins(finer, marks.cells, f, b), before)
        bins[first + b] = before if used > before else -1
        marks.candidate[first + b] = used > before
    return used


@inner
def gather_columns(finer, source, search, columns, n_columns, pairs, lead):
    """Put pairs of the candidates of ``columns[:n_columns]`` to their places.

    The node keeps the codes of the first column, if it has kept none: see `Lead`.
    """
    table, entries = source.table, source.entries
    kept = lead.column[search.j] < 0
    size = min(GATHER_ROWS, search.last - search.first)
    rows = np.empty(n_columns * size, entries.dtype)
    ends = np.empty(n_columns, np.int64)
    for start in range(search.first, search.last, GATHER_ROWS):
        last = min(start + GATHER_ROWS, search.last)
        for at in range(start, last, READ_ROWS):
            end = min(at + READ_ROWS, last)
            for c in range(n_columns):
                to = c * size if at == start else ends[c]
                ends[c] = collect_rows(
                    table, entries, at, end, columns[c], search.marks.candidate, c == 0,
                    rows, to, kept and c == 0, lead.code,
                )  # fmt: skip
        for c in range(n_columns):
            f = columns[c]
            found = rows[c * size : ends[c]]
            if is_counted(finer, f):
                if finer is not None:
                    put_counted(finer.cells, table, f, found, search.marks.cells, pairs)
            else:
                put_rows(table, f, found, search.marks.bins, pairs)
    if kept:
        lead.column[search.j] = columns[0]


@borrowing
def put_rows(table, f, rows, bins, pairs):
    """Put some rows, all of candidate bins of column f, to their places."""
    one, column, first = np.uintp(1), np.uintp(f), np.uintp(table.offset[f])
    for i in range(np.uintp(rows.size)):
        row = np.uintp(rows[i])
        b = first + np.uintp(table.codes[row, column])
        place = np.uintp(bins[b])
        bins[b] = place + one
        pairs.items[place] = row
        pairs.values[place] = table.values[row, column]


@borrowing
def put_counted(cells, table, f, rows, places, pairs):
    """Put those of some rows whose sub-bin of column f is a candidate."""
    column = np.uintp(f)
    for i in range(np.uintp(rows.size)):
        row = np.uintp(rows[i])
        x = table.values[row, column]
        c = cell_of(cells, column, table.codes[row, column], x)
        place = places[c]
        if place >= 0:
            pairs.items[place] = row
            pairs.values[place] = x
            places[c] = place + 1


@borrowing
def scan_column(finer, source, node, search, f, pairs, cut):
    """The better of `cut` and the best cut inside the gathered candidates of column f."""
    histogram, work = search.histogram, search.work
    channels = node.total.size
    own = in_column(node, f)
    first, value_bins, missing_at = column_bins(source.table, f, channels)
    for side in range(2):
        if not start_side(histogram, missing_at, side == 1, work.left):
            continue
        for b in range(value_bins):
            at = (first + b) * channels
            end = search.marks.bins[first + b]
            if end >= 0:
                spot = Spot(f, side == 1, b, tie_rank(own.limits, node.key, f))
                if is_counted(finer, f):
                    if finer is not None:
                        cells = sub_bins(finer, search.marks.cells, f, b)
                        cut = scan_cells(own, source.rows, cells, pairs, side == 1, spot, work, cut)
                else:
                    start = end - row_count(node.criterion, histogram, at, channels, node.weighted)
                    cut = scan_pairs(
                        finer, own, source.rows, pairs, start, end, spot, work, search.report, cut
                    )
            add_cell(work.left, histogram, at)
    return cut


@borrowing
def next_column(bound, pending, n_pending, needed):
    """Place in `pending` of the column with the greatest bound that reaches `needed`, or -1."""
    at = -1
    for i in range(n_pending):
        if bound[pending[i]] >= needed and (at < 0 or bound[pending[i]] > bound[pending[at]]):
            at = i
    return at


@inner
def refine_columns(finer, source, node, search, pending, cut, lead):
    """The better of `cut` and the best cut inside bins of the columns `pending`.

    Those that were counted into sub-bins go first. Of the others one goes alone, since it raises
    the best score for all, unless most candidates are its own.
    """
    room = np.int64(1)
    if finer is not None:
        most = GATHER_SHARE * (search.last - search.first)
        room = most if finer.at_once[search.j] else room
        counted, pending = take_counted(finer, pending)
        cut = gather_and_scan(finer, source, node, search, counted, most, cut, lead)
    return gather_and_scan(finer, source, node, search, pending, room, cut, lead)


@inner
def take_counted(finer, pending):
    """The columns of `pending` that were counted into sub-bins, and the others."""
    n = 0
    for i in range(pending.size):
        f = pending[i]
        if finer.counted[f]:
            pending[i] = pending[n]
            pending[n] = f
            n += 1
    return pending[:n], pending[n:]


@inner
def gather_and_scan(finer, source, node, search, pending, room, cut, lead):
    """As `refine_columns`, of columns in the order of their bounds.

    Those that still reach the best score are gathered together, one pass over the rows for many
    columns, after one with up to `room` pairs.
    """
    criterion, total, table = node.criterion, node.total, source.table
    histogram, marks, work = search.histogram, search.marks, search.work
    group = np.empty(pending.size, np.int64)
    n_pending = pending.size
    while True:
        needed = needed_bound(criterion, cut[0], total)
        used = np.int64(0)
        n_group = 0
        while used < room and n_group < GATHER_COLUMNS:
            at = next_column(search.bound, pending, n_pending, needed)
            if at < 0:
                break
            f = pending[at]
            n_pending -= 1
            pending[at] = pending[n_pending]
            group[n_group] = f
            before = used
            used = mark_column(finer, table, node, histogram, f, needed, marks, work, used)
            n_group += used > before
            if is_counted(finer, f):
                search.report[0] += used - before
        if n_group == 0:
            return cut
        values = np.empty(used, table.values.dtype)
        pairs = Pairs(values, np.empty(used, source.entries.dtype))
        gather_columns(finer, source, search, group, n_group, pairs, lead)
        for g in range(n_group):
            cut = scan_column(finer, source, node, search, group[g], pairs, cut)
        room = GATHER_SHARE * (search.last - search.first)


@borrowing
def sum_rows(criterion, source, first, last, total):
    """Let `total` be the statistics of entries ``first .. last``."""
    for c in range(total.size):
        total[c] = 0
    for i in range(first, last):
        count_row(criterion, source.rows, source.entries[i], total, 0, total.size)


@borrowing
def count_columns(criterion, source, first, last, columns, channels, cells):
    """Let the cells of some columns be the histogram of entries ``first .. last``."""
    table, rows, entries = source
    codes, offset = table.codes, table.offset
    for f in columns:
        for at in range(offset[f] * channels, offset[f + 1] * channels):
            cells[at] = 0
    for i in range(first, last):
        ahead = entries[min(i + PREFETCH_ROWS, last - 1)]
        row = entries[i]
        for f in columns:
            prefetch(codes, ahead, f)
            at = (offset[f] + np.int64(codes[row, f])) * channels
            count_row(criterion, rows, row, cells, at, channels)


@inner
def count_drawn(drawn, source, node, search, scores, columns):
    """Count the columns that a node draws, and score their boundaries and bins."""
    criterion, limits, weighted, total, _ = node
    j, cells, table = search.j, search.histogram, source.table
    count_columns(criterion, source, search.first, search.last, columns, total.size, cells)
    for f in columns:
        at, value_bins, missing_at = column_bins(table, f, total.size)
        best, scores.bin[j, f], scores.missing_left[j, f], bound = score_column(
            drawn.vectors, criterion, table.single, at_column(limits.monotonic, limits, f),
            weighted, cells, at, value_bins, missing_at, total, search.work.left,
        )  # fmt: skip
        scores.best[j, f], scores.bound[j, f] = best, bound


@inner
def choose_cut(finer, drawn, exact, source, node, search, scores, lead):
    """Best cut of one node: over all columns, or over those drawn for it.

    Columns past `max_features` are visited one by one until some cut is admissible. Where `drawn`
    is given, they have not been counted before.
    """
    j, limits = search.j, node.limits
    best, bins, sides = scores.best[j], scores.bin[j], scores.missing_left[j]
    d = best.size
    order = np.empty(d, np.int64)
    draws = limits.max_features < d
    for f in range(d):
        order[f] = f
    cut = no_cut()
    done = 0
    while done < d and (done == 0 or cut[0] == -np.inf):
        upto = min(max(limits.max_features, done + 1), d)
        if draws:
            draw_columns(node.key, order, done, upto)
        if drawn is not None:
            count_drawn(drawn, source, node, search, scores, order[done:upto])
        for i in range(done, upto):
            f = order[i]
            cut = better_boundary(f, best, bins, sides, cut, tie_rank(limits, node.key, f))
        if exact:
            pending = order[done:upto].copy()
            cut = refine_columns(finer, source, node, search, pending, cut, lead)
        done = upto
    return cut


@borrowing
def better_boundary(f, best, bins, sides, cut, rank):
    """The better of `cut` and the best boundary, or subset, of column f."""
    if best[f] == -np.inf:
        return cut
    found = new_cut(best[f], f, sides[f], bins[f], True, 0.0, rank)
    return found if precedes(found, cut) else cut


@borrowing
def next_filled(criterion, table, weighted, cells, f, b, channels):
    """The next value bin after b of column f that has rows, or -1."""
    first, value_bins, _ = column_bins(table, f, channels)
    for after in range(b + 1, value_bins):
        if row_count(criterion, cells, (first + after) * channels, channels, weighted) > 0:
            return after
    return -1


@borrowing
def has_missing(criterion, table, weighted, cells, f, channels):
    """Whether the node has missing values in column f."""
    missing_at = column_bins(table, f, channels)[2]
    return missing_at >= 0 and row_count(criterion, cells, missing_at, channels, weighted) > 0


@borrowing
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


@borrowing
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


@borrowing
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
def refine_nodes(finer, drawn, rules, source, nodes, scores, keys, chosen, splits, lead, report):
    """Choose the split of each node of `chosen`; `report` counts pairs (row, column) sorted.

    `lead` keeps the codes that were read first. Where `drawn` is given, nodes have no histograms:
    the columns that each draws are counted here, and its totals.
    """
    table, rows, entries = source
    regression = rows.square is not None
    marks = new_marks(finer, table)
    work = new_work(scores.total.shape[1])
    for j in chosen:
        total = scores.total[j]
        first, last = nodes.begin[j], nodes.end[j]
        if drawn is not None:
            sum_rows(rules.criterion, source, first, last, total)
        if is_pure(rules.criterion, total):
            continue
        if regression and all_equal(
            rows.target, rows.weight, entries, first, last, rules.limits.rounded
        ):
            continue
        limits = at_node(rules.limits.monotonic, rules.limits, rules.means, j)
        node = Node(rules.criterion, limits, rules.weighted, total, keys[j])
        histogram = nodes.cells[nodes.slots[j]] if drawn is None else drawn.cells
        search = Search(j, first, last, histogram, scores.bound[j], marks, work, report)
        cut = choose_cut(finer, drawn, rules.exact, source, node, search, scores, lead)
        record_cut(rules.criterion, table, limits, rules.weighted, histogram, total, cut, j, splits)


@kernel
def candidate_rows(rules, table, nodes, scores, chosen, out, first, last):
    """Rows, in ``out[i]``, of the candidate bins of each column of node ``chosen[i]``."""
    marks = new_marks(None, table)
    work = new_work(scores.total.shape[1])
    for i in range(first, last):
        j = chosen[i]
        total = scores.total[j]
        node = Node(rules.criterion, rules.limits, rules.weighted, total, np.uint64(0))
        needed = needed_bound(rules.criterion, scores.best[j].max(), total)
        histogram = nodes.cells[nodes.slots[j]]
        for f in range(scores.bound.shape[1]):
            if scores.bound[j, f] >= needed:
                out[i, f] = mark_column(
                    None, table, node, histogram, f, needed, marks, work, np.int64(0)
                )
