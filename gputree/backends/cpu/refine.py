"""Exact cuts inside bins: only candidate bins, whose bound reaches the best score, are searched.

    bins of a column     |   |   |xxx|   |   |xxx|   |      x: candidates
    rows of the node     collected from them, and in large nodes counted into sub-bins
    rows of candidates   gathered by sub-bin, each sorted by value, then scanned

See `gputree.backends.cpu.sub_bins`.

The cut found does not depend on the order of work: every bin that may contain a cut as good as the
best is scanned, and one order (`precedes`) decides among equals.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.cut import (
    count_row,
    draw_columns,
    list_columns,
    narrow,
    new_cut,
    no_cut,
    precedes,
    row_count,
    tie_rank,
)
from gputree.backends.cpu.layout import Node, Pairs
from gputree.backends.cpu.monotonic import allowed_in_node, at_column, at_node, number_allowed
from gputree.backends.cpu.score import (
    add_cell,
    column_bins,
    cut_inside,
    is_candidate,
    needed_bound,
    score_column,
    start_side,
)
from gputree.backends.cpu.sub_bins import (
    FINE_BITS,
    FINE_CELLS,
    GATHER_ROWS,
    READ_ROWS,
    SubBins,
    Work,
    add_sub_bins,
    collect_fine,
    collect_rows,
    count_found,
    dropped_bits,
    keep_found,
    mark_column,
    new_work,
    put_found,
    scan_column,
)
from gputree.compilation import (
    PREFETCH_ROWS,
    borrowing,
    inner,
    kernel,
    pick,
    prefetch,
    written_out,
)
from gputree.criteria import begin, bound, gain, is_pure

# Rows collected at once, per row of the node, before the last column of a group: bounds the memory
# of a refinement.
GATHER_SHARE = 2

# Maximum number of columns gathered at once (not measured).
GATHER_COLUMNS = 64


class Marks(NamedTuple):
    """Scratch: marks of candidates, and the sub-bins of one column."""

    candidate: NDArray  # (bins,) uint8: 1 of candidates
    place: NDArray  # (sub-bins,) int64
    counts: NDArray  # (sub-bins x channels,) as histograms


class NodeHistogram(NamedTuple):
    """Scratch: the histogram of one node in the columns that it draws."""

    vectors: Any  # see `score_column`
    cells: NDArray  # (bins x channels,) of all columns; only drawn ones are used


class Search(NamedTuple):
    """The search of node j, of entries ``first .. last``."""

    j: int
    first: int
    last: int
    histogram: NDArray
    bound: NDArray  # (d,) highest bound of the bins of each column
    marks: Marks
    work: Work
    report: NDArray  # (1,) pairs that were sorted, so far


@inner
def new_marks(finer, source, counter, channels):
    """Scratch with counters like `counter`, for the sub-bins of the largest node."""
    size = np.int64(MAX_BINS)
    if finer is not None:
        shift = min(dropped_bits(source.entries.size, finer.sub_bin_rows), finer.cells.shift)
        size *= FINE_CELLS >> shift
    return Marks(
        np.empty(source.table.offset[-1], np.uint8),
        np.empty(size, np.int64),
        np.empty(size * channels, counter.dtype),
    )


@written_out
def in_column(node, f):
    """The node, with the limits of column f."""
    limits = at_column(node.limits.monotonic, node.limits, f)
    return Node(node.criterion, limits, node.weighted, node.total, node.key)


@borrowing
def mark_bins(table, node, histogram, f, needed, is_tight, work, candidate):
    """Mark the candidate bins of column f; returns their rows. `is_tight`: by the tighter bound."""
    criterion, limits, weighted, total, _ = node
    left, channels = work.left, total.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    candidate[first : table.offset[f + 1]] = 0
    for side in range(2):
        if not start_side(histogram, missing_at, side == 1, left):
            continue
        # `left` are the statistics before bin b, with missing values if they go left.
        for b in range(first, first + value_bins):
            offset = b * channels
            n = row_count(criterion, histogram, offset, channels, weighted)
            if candidate[b] or table.single[b]:
                pass
            elif is_tight:
                candidate[b] = is_candidate(
                    criterion, limits, weighted, left, histogram, offset, n, total, needed
                )
            elif cut_inside(criterion, limits, weighted, left, n, total):
                candidate[b] = bound(criterion, left, histogram, offset, total) >= needed
            add_cell(left, histogram, offset)
    rows = np.int64(0)
    for b in range(first, first + value_bins):
        if candidate[b]:
            rows += row_count(criterion, histogram, b * channels, channels, weighted)
    return rows


@borrowing
def is_counted(finer, f):
    """Return True if column f is counted as a whole."""
    if finer is None:
        return False
    return finer.counted[f]


@inner
def cells_of(finer, node, search, table, f):
    """Sub-bins of column f, and the number of low bits of fine codes that they drop.

    In small nodes each bin is its only sub-bin.
    """
    channels, shift = node.total.size, np.int64(FINE_BITS)
    counts = search.histogram[table.offset[f] * channels : table.offset[f + 1] * channels]
    if finer is not None:
        first = finer.cells.first
        shift = np.int64(dropped_bits(search.last - search.first, finer.sub_bin_rows))
        if finer.counted[f]:
            shift = np.int64(finer.cells.shift)
            counts = finer.counts[first[f] * channels : first[f + 1] * channels]
        elif shift < FINE_BITS:
            counts = search.marks.counts
    size = np.int64(FINE_CELLS) >> shift
    return SubBins(counts, search.marks.place, np.int64(0), size), shift


@inner
def mark_candidates(finer, node, search, table, f, needed):
    """Mark the candidate bins of column f; returns their number of rows.

    In a column that is counted as a whole they are the bins with candidate sub-bins, for which
    places are reserved.
    """
    marks, work, counted = search.marks, search.work, is_counted(finer, f)
    histogram, candidate = search.histogram, marks.candidate
    n = mark_bins(table, node, histogram, f, needed, not counted, work, candidate)
    if n > 0 and counted:
        cells, _ = cells_of(finer, node, search, table, f)
        column_candidates = candidate[table.offset[f] : table.offset[f + 1]]
        if mark_column(node, table, histogram, f, cells, column_candidates, work, needed) == 0:
            return np.int64(0)
    return n


@inner
def gather_columns(finer, source, search, columns, are_known, sizes):
    """Collect rows of candidate bins, and fine codes, of `columns` of up to `sizes` rows each.

    Returns both, and the range of each column in them.
    """
    table, entries, candidate = source.table, source.entries, search.marks.candidate
    begin, end = np.empty(columns.size, np.int64), np.empty(columns.size, np.int64)
    offset = np.int64(0)
    for c in range(columns.size):
        begin[c] = end[c] = offset
        offset += sizes[c] + 1
    rows, codes = np.empty(offset, entries.dtype), np.empty(offset, np.uint16)
    if finer is not None and are_known:  # a single column
        f = columns[0]
        end[0] = collect_fine(
            finer.fine.code, entries, search.first, search.last, f,
            candidate[table.offset[f] : table.offset[f + 1]], rows, codes,
        )  # fmt: skip
        return rows, codes, begin, end
    # Rows of column c found before `start` are rows[begin[c] : end[c]]; in large nodes their codes
    # have sub-bins.
    for start in range(search.first, search.last, GATHER_ROWS):
        last = min(start + GATHER_ROWS, search.last)
        before = end.copy()
        for i in range(start, last, READ_ROWS):
            for c in range(columns.size):
                f = columns[c]
                end[c] = collect_rows(
                    table, entries, i, min(i + READ_ROWS, last), f,
                    candidate[table.offset[f] : table.offset[f + 1]], c == 0, rows, codes, end[c],
                )  # fmt: skip
        if finer is not None:
            for c in range(columns.size):
                add_sub_bins(table, finer.cells, columns[c], before[c], end[c], rows, codes)
    return rows, codes, begin, end


@inner
def search_found(finer, source, node, search, f, rows, codes, cut):
    """The better of `cut` and the best cut among the rows collected of column f."""
    table, marks, work, histogram = source.table, search.marks, search.work, search.histogram
    cells, shift = cells_of(finer, node, search, table, f)
    candidate = marks.candidate[table.offset[f] : table.offset[f + 1]]
    if not is_counted(finer, f):
        if shift < FINE_BITS:
            count_found(node, source.rows, rows, codes, shift, cells, candidate)
        needed = needed_bound(node.criterion, cut.score, node.total)
        mark_column(node, table, histogram, f, cells, candidate, work, needed)
    used = keep_found(rows, codes, shift, cells.place)
    search.report[0] += used
    pairs = Pairs(np.empty(used, table.values.dtype), np.empty(used, rows.dtype))
    put_found(table, f, rows, codes, shift, cells.place, pairs)
    return scan_column(node, source, histogram, f, cells, pairs, candidate, work, cut)


@borrowing
def next_column(bound, pending, n_pending, needed):
    """Place in `pending` of the column with the highest bound that reaches `needed`, or -1."""
    best = -1
    for i in range(n_pending):
        if bound[pending[i]] >= needed and (best < 0 or bound[pending[i]] > bound[pending[best]]):
            best = i
    return best


@inner
def refine_columns(finer, source, node, search, pending, cut):
    """The better of `cut` and the best cut inside bins of the columns `pending`.

    Columns with fine codes go first, one by one. If there are none, one column goes first by
    itself, since it raises the best score for all.
    """
    most_rows = np.int64(1)
    if finer is not None:
        coded, pending = take_known(finer, pending)
        cut = search_columns(finer, source, node, search, coded, True, most_rows, cut)
        if coded.size > 0:
            most_rows = GATHER_SHARE * (search.last - search.first)
    return search_columns(finer, source, node, search, pending, False, most_rows, cut)


@inner
def take_known(finer, pending):
    """Separate the columns of `pending` with fine codes from the others."""
    n = 0
    for i in range(pending.size):
        f = pending[i]
        if finer.fine.known[f]:
            pending[i] = pending[n]
            pending[n] = f
            n += 1
    return pending[:n], pending[n:]


@inner
def search_columns(finer, source, node, search, pending, are_known, most_rows, cut):
    """Like `refine_columns`, by descending bound, of columns all with fine codes or without.

    Columns without fine codes that still reach the best score are gathered together, one pass over
    the rows for many columns, after one pass of up to `most_rows` rows.
    """
    group, found = np.empty(pending.size, np.int64), np.empty(pending.size, np.int64)
    n_pending = pending.size
    # `cut` is the best of the columns that were searched; `pending[:n_pending]` are not, and need
    # not be once their bounds are below `needed`.
    while True:
        needed = needed_bound(node.criterion, cut.score, node.total)
        used = np.int64(0)
        n_group = 0
        while used < most_rows and n_group < GATHER_COLUMNS:
            index = next_column(search.bound, pending, n_pending, needed)
            if index < 0:
                break
            f = pending[index]
            n_pending -= 1
            pending[index] = pending[n_pending]
            n = mark_candidates(finer, in_column(node, f), search, source.table, f, needed)
            group[n_group], found[n_group] = f, n
            used += n
            n_group += n > 0
        if n_group == 0:
            return cut
        rows, codes, begin, end = gather_columns(
            finer, source, search, group[:n_group], are_known, found
        )
        for g in range(n_group):
            f, a, b = group[g], begin[g], end[g]
            column_node = in_column(node, f)
            cut = search_found(finer, source, column_node, search, f, rows[a:b], codes[a:b], cut)
        if not are_known:
            most_rows = GATHER_SHARE * (search.last - search.first)


@borrowing
def sum_rows(criterion, source, first, last, total):
    """Set `total` to the statistics of entries ``first .. last``."""
    for c in range(total.size):
        total[c] = 0
    for i in range(first, last):
        count_row(criterion, source.rows, source.entries[i], total, 0, total.size)


@borrowing
def count_columns(criterion, source, first, last, columns, channels, cells):
    """Set the cells of some columns to the histogram of entries ``first .. last``."""
    table, rows, entries = source
    codes, offset = table.codes, table.offset
    for f in columns:
        for offset_of_cell in range(offset[f] * channels, offset[f + 1] * channels):
            cells[offset_of_cell] = 0
    for i in range(first, last):
        ahead = entries[min(i + PREFETCH_ROWS, last - 1)]
        row = entries[i]
        for f in columns:
            prefetch(codes, ahead, f)
            offset_of_cell = (offset[f] + np.int64(codes[row, f])) * channels
            count_row(criterion, rows, row, cells, offset_of_cell, channels)


@inner
def count_drawn(drawn, source, node, search, scores, columns):
    """Count the columns that a node draws, and score their boundaries and bins."""
    criterion, limits, weighted, total, _ = node
    j, cells, table = search.j, search.histogram, source.table
    count_columns(criterion, source, search.first, search.last, columns, total.size, cells)
    for f in columns:
        best, scores.bin[j, f], scores.missing_left[j, f], bound = score_column(
            drawn.vectors, criterion, table.single, at_column(limits.monotonic, limits, f),
            weighted, cells, column_bins(table, f, total.size), total, search.work.left,
        )  # fmt: skip
        scores.best[j, f], scores.bound[j, f] = best, bound


@inner
def choose_cut(finer, drawn, exact, source, node, allowed, search, scores):
    """Best cut of one node: over all columns that are allowed, or over those drawn among them.

    Columns beyond `max_features` are visited one by one until some cut is admissible. Where `drawn`
    is given, they have not been counted before.
    """
    j, limits = search.j, node.limits
    best, bins, sides = scores.best[j], scores.bin[j], scores.missing_left[j]
    d = best.size
    order = np.empty(d, np.int64)
    list_columns(allowed, order)
    d = number_allowed(allowed, d)
    draws = limits.max_features < d
    cut = no_cut()
    done = 0
    # `cut` is the best of the columns `order[:done]`.
    while done < d and (done == 0 or cut.score == -np.inf):
        upto = min(max(limits.max_features, done + 1), d)
        if draws:
            draw_columns(node.key, allowed, order, done, upto)
        if drawn is not None:
            count_drawn(drawn, source, node, search, scores, order[done:upto])
        for i in range(done, upto):
            f = order[i]
            cut = better_boundary(f, best, bins, sides, cut, tie_rank(limits, node.key, f))
        if exact:
            pending = order[done:upto].copy()
            cut = refine_columns(finer, source, node, search, pending, cut)
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
    """Return True if the node has missing values in column f."""
    missing_at = column_bins(table, f, channels)[2]
    return missing_at >= 0 and row_count(criterion, cells, missing_at, channels, weighted) > 0


@borrowing
def record_cut(criterion, table, limits, weighted, cells, total, cut, j, splits):
    """Record `cut` as the split of node j, if there is one with a sufficient decrease."""
    if cut.score == -np.inf:
        return
    f, channels = cut.column, total.size
    seen = has_missing(criterion, table, weighted, cells, f, channels)
    after = -1
    if cut.at_end and table.categories[f] == 0:
        after = next_filled(criterion, table, weighted, cells, f, cut.place, channels)
    put_cut(criterion, table, limits, total, cut, seen, after, j, splits)


@borrowing
def put_cut(criterion, table, limits, total, cut, seen_missing, next_bin, j, splits):
    """Record `cut` as the split of node j, if its decrease is sufficient.

    `next_bin` is the next bin with rows after a cut at the end of its bin, else -1.
    """
    decrease = gain(criterion, cut.score, total)
    weight = begin(criterion, total, total)[0]
    if decrease * weight < limits.min_decrease:
        return
    splits.feature[j] = cut.column
    splits.weight[j] = weight
    splits.gain[j] = decrease
    splits.missing_left[j] = cut.missing_left
    splits.seen_missing[j] = seen_missing
    if table.categories[cut.column] > 0:
        return
    splits.cut_bin[j] = cut.place
    splits.inside[j] = not cut.at_end
    splits.threshold[j] = cut.threshold
    splits.next_bin[j] = next_bin


@borrowing
def all_equal(target, weight, entries, first, last, rounded):
    """Return True if a single target may be the true one of all rows of the node."""
    interval = (-np.inf, np.inf)
    for i in range(first, last):
        row = entries[i]
        interval = narrow(interval, target[row], pick(weight, row, 1), rounded)
        if interval[0] > interval[1]:
            return False
    return True


@kernel
def refine_nodes(finer, drawn, rules, source, nodes, scores, keys, chosen, splits, report):
    """Choose the split of each node of `chosen`; `report` counts pairs (row, column) sorted.

    Where `drawn` is given, nodes have no histograms: the columns that each node draws, and its
    totals, are counted here.
    """
    table, rows, entries = source
    regression = rows.square is not None
    marks = new_marks(finer, source, nodes.cells, scores.total.shape[1])
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
        allowed = allowed_in_node(rules.interactions, rules.means, j)
        node = Node(rules.criterion, limits, rules.weighted, total, keys[j])
        histogram = nodes.cells[nodes.slots[j]] if drawn is None else drawn.cells
        search = Search(j, first, last, histogram, scores.bound[j], marks, work, report)
        cut = choose_cut(finer, drawn, rules.exact, source, node, allowed, search, scores)
        record_cut(rules.criterion, table, limits, rules.weighted, histogram, total, cut, j, splits)


@kernel
def candidate_rows(rules, table, nodes, scores, chosen, out, first, last):
    """Rows, in ``out[i]``, of the candidate bins of each column of node ``chosen[i]``."""
    candidate = np.empty(table.offset[-1], np.uint8)
    work = new_work(scores.total.shape[1])
    for i in range(first, last):
        j = chosen[i]
        total = scores.total[j]
        node = Node(rules.criterion, rules.limits, rules.weighted, total, np.uint64(0))
        needed = needed_bound(rules.criterion, scores.best[j].max(), total)
        histogram = nodes.cells[nodes.slots[j]]
        for f in range(scores.bound.shape[1]):
            if scores.bound[j, f] >= needed:
                column_node = in_column(node, f)
                out[i, f] = mark_bins(
                    table, column_node, histogram, f, needed, False, work, candidate
                )
