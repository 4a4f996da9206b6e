"""The best cut of the columns that a node draws, by ranks of their values; see `drawn_columns`.

A drawn column is read in the node, and then

    counted    where it has few ranks there: statistics of the rows, rank by rank
    sorted     otherwise: keys of the rank and the place in the node
    binned     of classes, in large nodes: statistics of bins of ranks, and only the rows of
               bins whose bound reaches the best score are sorted

Columns that are constant in a node are constant below it, and are not read there again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Task
from gputree.backends.binning import midpoint
from gputree.backends.cpu.block import MANY_ROWS, missing_rank
from gputree.backends.cpu.categories import new_scratch
from gputree.backends.cpu.cut import (
    ColumnDraws,
    admits,
    admits_weights,
    draw_columns,
    drop_column,
    new_cut,
    no_cut,
    score_to_beat,
    tie_rank,
)
from gputree.backends.cpu.finish_scan import (
    clear,
    is_nominal,
    known_end,
    mark_categories,
    scan_categories,
    scan_column,
)
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.monotonic import at_column, keeps_order
from gputree.backends.cpu.nonzeros import (
    list_nonzeros,
    rank_ends,
    scan_cut_drawn,
    scan_nonzeros,
    take_ranks,
)
from gputree.backends.cpu.ranks import Ranks
from gputree.backends.cpu.score import add_cell
from gputree.base.dtypes import ROW, Int64s, writable
from gputree.compilation import borrowing, pasted
from gputree.criteria import (
    add_row,
    begin,
    bound,
    left_weight,
    margin,
    may_exceed,
    move,
    move_cell,
    restrict,
    score,
)

# Maximum number of rows that are sorted by comparing all of them: vectors of a known length.
FEW_ROWS = 16
# Minimum number of rows of a node whose columns are binned, and rows of a bin in the mean.
BINNED_ROWS = 256
ROWS_PER_BIN = 16
# A column is counted where it has at most so many statistics in a node, per row: to clear and to
# score them takes less time than to sort the rows.
CELLS_PER_ROW = 4
MOST_CELLS = 1 << 15
# Digits that keys are sorted by have at least so many bits: to clear their counters takes as long
# as to sort a few hundred rows.
LEAST_BITS = 8
MOST_BITS = 12
# Bits for places, behind ranks of 16 bits in keys of 64.
NARROW_BITS = 40
# Bits of a word with the weight of both classes; behind them is that of the second one.
WORD_LOW = (1 << 32) - 1


class Ends(NamedTuple):
    """Values of a table for thresholds of columns of many; of one type for all tables."""

    narrow: NDArray  # (n, d) float32 values of the table, or (0, d)
    wide: NDArray  # (n, d) float64, or (0, d)
    row: NDArray  # rows of the table that those of a copy are; else (0,)


class DrawnRanks(NamedTuple):
    """Ranks of a table, and scratch for nodes of up to m rows."""

    table: Ranks
    draws: ColumnDraws
    binning: Any  # criterion whose bounds bins have; None of targets
    subsets: Any  # scratch of nominal columns; None without any
    keys: NDArray  # (m,) uint32 or uint64: | rank | place in the node |
    order: NDArray  # (m,) the same, sorted
    counts: Int64s  # numbers of bins, and keys by digit
    cells: Int64s  # statistics by rank
    place: Any  # (n,) of rows in their nodes, see `nonzeros`; None of a table that is not sparse
    ends: Ends
    word: Int64s  # (m,) of two classes, see `count_words`; else (0,)
    draws_cuts: bool  # of a sparse table


def new_drawn_ranks(
    ranks: Ranks, table: Table, task: Task, draws: ColumnDraws, m: int
) -> DrawnRanks:
    """Scratch for nodes of up to m rows."""
    n = ranks.rank.shape[1]
    key = np.dtype(np.uint32 if n < MANY_ROWS else np.uint64)
    size = max(m + 1, FEW_ROWS)
    return DrawnRanks(
        ranks,
        draws,
        binning=task.criterion if task.n_classes else None,
        subsets=new_scratch(table, task, m, sorted_=True),
        keys=np.empty(size, key),
        order=np.empty(size, key),
        counts=np.empty((1 << MOST_BITS) + 2 * m // ROWS_PER_BIN + 3, np.int64),
        cells=np.empty(max(min(CELLS_PER_ROW * m, MOST_CELLS), 2 * task.channels), np.int64),
        place=None if ranks.sparse is None else np.zeros(n, ROW),
        ends=_ends(table),
        word=np.empty(m if task.n_classes == 2 else 0, np.int64),
        draws_cuts=task.draws_cuts,
    )


def _ends(table: Table) -> Ends:
    """Values of a table, for thresholds."""
    values = writable(table.values)
    narrow, wide = (values if values.dtype == of else values[:0].astype(of) for of in "fd")
    return Ends(narrow, wide, np.empty(0, ROW))


@pasted
def place_bits(ranks):
    """Bits of a key for the place of a row; they also say which rank missing values have."""
    if ranks.keys.itemsize == 4:
        return 16
    return 32 if ranks.table.rank.itemsize == 4 else NARROW_BITS


@borrowing
def list_keys(rank, rows, bits, keys):
    """Write the keys of a node's rows in one column; returns the lowest and highest rank."""
    low, high = np.int64(rank[rows[0]]), np.int64(0)
    for i in range(np.uintp(rows.size)):
        r = np.int64(rank[np.uintp(rows[i])])
        keys[i] = (r << bits) | np.int64(i)
        low = min(low, r)
        high = max(high, r)
    return low, high


@borrowing
def rank_keys(keys, m, out):
    """Sort the first m keys, at most `FEW_ROWS`, to `out` by counting those below each."""
    for i in range(m, FEW_ROWS):
        keys[i] = keys[0]
    for j in range(np.uintp(m)):
        key, below = keys[j], np.int64(0)
        for i in range(np.uintp(FEW_ROWS)):
            below += np.int64(keys[i] < key)
        out[below - (FEW_ROWS - m if keys[0] < key else 0)] = key


@borrowing
def place_by_digit(keys, m, base, shift, width, counts, out):
    """Sort the first m keys stably by `width` bits of their distance from `base`."""
    one, mask = np.uintp(1), (np.uintp(1) << np.uintp(width)) - np.uintp(1)
    base, shift = np.uintp(base), np.uintp(shift)
    for b in range(mask + np.uintp(2)):
        counts[b] = 0
    for i in range(np.uintp(m)):
        counts[(((np.uintp(keys[i]) - base) >> shift) & mask) + one] += 1
    for b in range(mask + one):
        counts[b + one] += counts[b]
    for i in range(np.uintp(m)):
        key = keys[i]
        digit = ((np.uintp(key) - base) >> shift) & mask
        place = counts[digit]
        counts[digit] = place + 1
        out[np.uintp(place)] = key


@borrowing
def sort_keys(keys, m, bits, low, high, counts, out):
    """Sort the first m keys, of ranks ``low .. high``, to `out`, digit by digit.

    `keys` are used up.
    """
    width = np.int64(0)
    while (high - low) >> width > 0:
        width += 1
    digits, most = 1, width
    while most > LEAST_BITS and (1 << most > 2 * m or most > MOST_BITS):
        digits += 1
        most = -(-width // digits)
    # Keys are sorted by the digits before `digit`, in `out` after an odd number of them.
    for digit in range(digits):
        source, target = (keys, out) if digit % 2 == 0 else (out, keys)
        place_by_digit(source, m, low << bits, bits + digit * most, most, counts, target)
    if digits % 2 == 0:
        for i in range(np.uintp(m)):
            out[i] = keys[i]


@pasted
def sort_listed(ranks, m, bits, low, high):
    """Sort m keys of ranks ``low .. high`` from `keys` to `order`."""
    if m <= FEW_ROWS:
        rank_keys(ranks.keys, m, ranks.order)
    else:
        sort_keys(ranks.keys, m, bits, low, high, ranks.counts, ranks.order)


@borrowing
def count_second(word, rank, rows, low, total, cells):
    """Like `count_words`, for two ranks: sums of one, without a memory access for each row."""
    found = np.int64(0)
    for i in range(np.uintp(rows.size)):
        found += word[i] & -(np.int64(rank[np.uintp(rows[i])]) - low)
    cells[3] = found >> 32
    cells[2] = (found & WORD_LOW) - cells[3]
    cells[0], cells[1] = total[0] - cells[2], total[1] - cells[3]


@borrowing
def count_words(word, rank, rows, low, span, cells):
    """Like `count_ranks`, for two classes by `word`: their weight, and that of the second above."""
    one, low, span = np.uintp(1), np.uintp(low), np.uintp(span)
    for b in range(np.uintp(2) * span):
        cells[b] = 0
    # Two sums for each rank, in turn: an addition need not wait for the one before.
    for k in range(np.uintp(rows.size) >> one):
        i = k << one
        cells[np.uintp(rank[np.uintp(rows[i])]) - low] += word[i]
        cells[np.uintp(rank[np.uintp(rows[i + one])]) - low + span] += word[i + one]
    if rows.size % 2:
        last = np.uintp(rows.size) - one
        cells[np.uintp(rank[np.uintp(rows[last])]) - low] += word[last]
    for b in range(span):
        cells[b] += cells[b + span]
    # The words of the ranks below b are in place, and those from b on are divided.
    for k in range(span):
        b = span - one - k
        found = cells[b]
        second = found >> 32
        cells[b + b], cells[b + b + one] = (found & WORD_LOW) - second, second


@pasted
def count_ranks(scan, word, rank, rows, low, span, cells):
    """Sum the statistics of a node's rows by their ranks in a column, from `low` on."""
    channels = np.uintp(scan.total.size)
    if word.size > 0 and scan.whole <= WORD_LOW >> 1:
        if span == 2:
            count_second(word, rank, rows, low, scan.total, cells)
            return
        if 2 * span <= rows.size:
            count_words(word, rank, rows, low, span, cells)
            return
    for b in range(np.uintp(span) * channels):
        cells[b] = 0
    for i in range(np.uintp(rows.size)):
        offset = (np.uintp(rank[np.uintp(rows[i])]) - np.uintp(low)) * channels
        add_row(scan.criterion, cells, offset, scan.target[i], scan.weight[i], 0)


@borrowing
def scan_cells(scan, limits, cells, f, n_cells, best):
    """Best cut of column f between cells: its score, and the last cell on the left or -1.

    Only scores above `best` count.
    """
    criterion, left, total = scan.criterion, scan.left, scan.total
    column_limits = at_column(limits.monotonic, limits, f)
    last = np.int64(-1)
    clear(left)
    state = begin(criterion, left, total)
    # `state` is that after cell b; `best` is the best score so far, of the cut after cell `last`.
    # Sides of one row are large enough.
    for b in range(n_cells):
        before = state[0]
        state = move_cell(criterion, state, left, total, cells, b * left.size)
        if (
            before < state[0] < scan.whole
            and admits_weights(limits, state[0], scan.whole)
            and may_exceed(criterion, state, left, total, best)
        ):
            value = score(criterion, state, left, total)
            if value > best and keeps_order(column_limits.monotonic, criterion, state, left, total):
                best, last = value, np.int64(b)
    return best, last


@pasted
def scan_counts(scan, limits, cells, f, low, span, cut):
    """The better of `cut` and the best cut of column f, which is counted by rank from `low` on."""
    rank = tie_rank(limits, scan.key, f)
    best, last = scan_cells(scan, limits, cells, f, span, score_to_beat(cut, rank))
    return new_cut(best, f, False, low + last, False, 0.0, rank) if last >= 0 else cut


@borrowing
def keep_bins(scan, ranks, binning, n_bins, best):
    """Find the bins in which a cut may reach the score `best`; returns how many.

    ``counts[b]`` becomes the number of bin b among them, or -1, and ``counts[n_bins + k]`` the bin
    of number k. The cells behind those of bins become the statistics before each.
    """
    left, total, cells, counts = scan.left, scan.total, ranks.cells, ranks.counts
    criterion, channels = restrict(binning, total.size), total.size
    least = best - margin(criterion, best, total) if best > -np.inf else best
    kept = np.int64(0)
    clear(left)
    for b in range(n_bins):
        counts[b] = -1
        if left_weight(criterion, cells, b * channels) == 0:
            continue
        if bound(criterion, left, cells, b * channels, total) >= least:
            counts[b], counts[n_bins + kept] = kept, b
            for c in range(channels):
                cells[(n_bins + kept) * channels + c] = left[c]
            kept += 1
        add_cell(left, cells, b * channels)
    return kept


@borrowing
def scan_kept(scan, limits, ranks, keys, f, low, shift, n_bins, best, last):
    """Like `scan_cells`, for cuts inside bins that were kept, whose `keys` are sorted.

    The rank of a key is the number of its bin, and the rank in the bin in the last `shift` bits.
    `last` is the last rank on the left of the cut that scores `best`, or -1.
    """
    criterion, left, total = scan.criterion, scan.left, scan.total
    column_limits = at_column(limits.monotonic, limits, f)
    bits, channels = scan.bits, total.size
    in_bin, place = (np.int64(1) << shift) - 1, (np.int64(1) << bits) - 1
    state = begin(criterion, total, total)
    number = before = first = np.int64(-1)
    # `left` and `state` are the statistics before key i, whose bin is the one of key i - 1 if its
    # number is the same; `before` is the rank of key i - 1, and `first` the lowest of the bin.
    for i in range(keys.size):
        key = np.int64(keys[np.uintp(i)])
        rank = key >> bits
        if rank >> shift != number:
            number = rank >> shift
            first = low + (ranks.counts[n_bins + number] << shift)
            for c in range(channels):
                left[c] = ranks.cells[(n_bins + number) * channels + c]
            state = begin(criterion, left, total)
        elif (
            rank != before
            and admits_weights(limits, state[0], scan.whole)
            and may_exceed(criterion, state, left, total, best)
        ):
            value, here = score(criterion, state, left, total), first + (before & in_bin)
            if (value > best or (value == best and here < last)) and keeps_order(
                column_limits.monotonic, criterion, state, left, total
            ):
                best, last = value, here
        x = np.uintp(key & place)
        state = move(criterion, state, left, total, scan.target[x], scan.weight[x])
        before = rank
    return best, last


@pasted
def scan_bins(scan, limits, ranks, binning, f, low, high, cut):
    """The better of `cut` and the best cut of column f, whose keys are listed.

    Cuts between bins are scored; then those inside the bins whose bound reaches the best of them.
    """
    keys, order, cells, counts, m = ranks.keys, ranks.order, ranks.cells, ranks.counts, scan.t
    channels, bits = np.uintp(scan.total.size), scan.bits
    most = min(m // ROWS_PER_BIN, ranks.cells.size // (2 * scan.total.size))
    shift = np.int64(0)
    while (high - low) >> shift >= most:
        shift += 1
    n_bins = ((high - low) >> shift) + 1
    for b in range(np.uintp(n_bins) * channels):
        cells[b] = 0
    down, base = np.uintp(bits + shift), np.uintp(low) << np.uintp(bits)
    for i in range(np.uintp(m)):
        b = (np.uintp(keys[i]) - base) >> down
        add_row(scan.criterion, cells, b * channels, scan.target[i], scan.weight[i], 0)
    rank = tie_rank(limits, scan.key, f)
    best, bin_ = scan_cells(scan, limits, cells, f, n_bins, score_to_beat(cut, rank))
    last = low + ((bin_ + 1) << shift) - 1 if bin_ >= 0 else np.int64(-1)
    kept = keep_bins(scan, ranks, binning, n_bins, best)
    if kept > 0:
        n, in_bin = np.uintp(0), (np.uintp(1) << down) - np.uintp(1)
        for i in range(np.uintp(m)):
            key = np.uintp(keys[i]) - base
            number = counts[key >> down]
            order[n] = (np.uintp(number) << down) | (key & in_bin)
            n += np.uintp(number >= 0)
        sort_keys(order, np.int64(n), bits, 0, (kept << shift) - 1, counts[2 * n_bins :], keys)
        found = keys[: np.int64(n)]
        best, last = scan_kept(scan, limits, ranks, found, f, low, shift, n_bins, best, last)
    return new_cut(best, f, False, last, False, 0.0, rank) if last >= 0 else cut


@pasted
def read_column(scan, limits, rows, ranks, f, nominal):
    """Count column f in a node, or list its keys.

    Returns the lowest and the highest rank, and True if it is counted. Ranks of a counted column
    may be fewer, but lowest and highest are equal if it is constant.
    """
    rank, m, table = ranks.table.rank[f], rows.size, ranks.table
    # Cells have no number of rows, which larger leaves need.
    counts = m > FEW_ROWS and not nominal and limits.min_samples_leaf <= 1
    most = min(CELLS_PER_ROW * m, ranks.cells.size) // scan.total.size if counts else 0
    low, high = np.int64(0), table.counts[f] - 1
    if nominal or high >= most or table.missing[f]:
        low, high = list_keys(rank, rows, scan.bits, ranks.keys)
    # Missing values, whose rank is the highest, may go to either side, which sorting tries.
    counted = high - low < most and high != missing_rank(scan.bits)
    if counted:
        count_ranks(scan, ranks.word, rank, rows, low, high - low + 1, ranks.cells)
        first = (np.int64(rank[rows[0]]) - low) * scan.total.size
        if left_weight(scan.criterion, ranks.cells, first) == scan.whole:
            high = low
    return low, high, counted


@borrowing
def scan_pair(scan, limits, keys, f, cut):
    """The better of `cut` and the cut of column f between the two rows of a node."""
    criterion, left, total = scan.criterion, scan.left, scan.total
    low, high = np.int64(keys[0]) >> scan.bits, np.int64(keys[1]) >> scan.bits
    first = np.uintp(low > high)
    clear(left)
    state = move(criterion, scan.start, left, total, scan.target[first], scan.weight[first])
    column_limits = at_column(limits.monotonic, limits, f)
    if not admits(limits, 1, 2, state[0], scan.whole) or not keeps_order(
        column_limits.monotonic, criterion, state, left, total
    ):
        return cut
    value, rank = score(criterion, state, left, total), tie_rank(limits, scan.key, f)
    if value > score_to_beat(cut, rank):
        return new_cut(value, f, False, min(low, high), False, 0.0, rank)
    return cut


@pasted
def scan_read(scan, limits, ranks, subsets, binning, f, low, high, counted, cut):
    """The better of `cut` and the best cut of column f, which `read_column` has read.

    As a cut of numbers, its place is the last rank on the left, or a lower one that is in no row.
    """
    m, order, nominal = scan.t, ranks.order, is_nominal(subsets, f)
    if counted:
        return scan_counts(scan, limits, ranks.cells, f, low, high - low + 1, cut)
    if binning is not None:
        plain = not nominal and limits.min_samples_leaf <= 1
        if plain and m >= BINNED_ROWS and high != missing_rank(scan.bits):
            return scan_bins(scan, limits, ranks, binning, f, low, high, cut)
    if m == 2 and not nominal and high != missing_rank(scan.bits):
        return scan_pair(scan, limits, ranks.keys, f, cut)
    sort_listed(ranks, m, scan.bits, low, high)
    if nominal:
        if subsets is not None:
            cut = scan_categories(subsets, scan, limits, f, order, cut)
        return cut
    cut = scan_column(scan, limits, f, order, False, cut)
    if cut.column == f and cut.at_end:
        last = np.int64(order[cut.place]) >> scan.bits
        cut = new_cut(cut.score, f, cut.missing_left, last, False, 0.0, cut.rank)
    return cut


@pasted
def read_drawn(scan, limits, rows, ranks, sparse, f):
    """Like `read_column`; of a sparse table also returns how many of its rows are listed."""
    if sparse is None:
        nominal = is_nominal(ranks.subsets, f)
        low, high, counted = read_column(scan, limits, rows, ranks, f, nominal)
        return low, high, counted, 0
    found = list_nonzeros(sparse, ranks.place, rows, scan.bits, f, ranks.keys)
    low, high = rank_ends(sparse, ranks.keys, found, rows.size, scan.bits, f)
    return low, high, False, found


@pasted
def scan_drawn(scan, limits, ranks, sparse, f, low, high, counted, found, cut):
    """The better of `cut` and the best cut of column f, which `read_drawn` has read."""
    if sparse is None:
        return scan_read(
            scan, limits, ranks, ranks.subsets, ranks.binning, f, low, high, counted, cut
        )
    if ranks.draws_cuts:
        return scan_cut_drawn(scan, limits, ranks.table, ranks.keys, found, f, ranks.cells, cut)
    sort_listed(ranks, found, scan.bits, low, high)
    return scan_nonzeros(scan, limits, sparse, ranks.order, found, f, ranks.cells, cut)


@pasted
def best_rank_cut(scan, rows, limits, active, ranks):
    """Best cut of a node over the columns that it draws; more are drawn until there is one.

    Also returns how many of the `active` columns remain.
    """
    draws, most = ranks.draws, limits.max_features
    cut = no_cut()
    ready = seen = c = np.int64(0)
    # `ready` columns are drawn, and `cut` is the best of the first c; `seen` of these are active.
    # Those that remain are constant once all active ones are seen.
    while (c < most or cut.score == -np.inf) and seen < active:
        if c == ready:
            ready = max(most, c + 1)
            draw_columns(scan.key, scan.allowed, draws.order, c, ready)
        f = draws.order[c]
        c += 1
        if draws.place[f] >= active:
            continue
        low, high, counted, found = read_drawn(scan, limits, rows, ranks, ranks.table.sparse, f)
        if low == high:
            active = drop_column(draws, f, active)
            continue
        seen += 1
        cut = scan_drawn(scan, limits, ranks, ranks.table.sparse, f, low, high, counted, found, cut)
    return cut, active


@borrowing
def part_ranks(column, sparse, rows, spill, last, missing_left, none):
    """Partition a node's rows stably by their ranks in a column: up to `last` first.

    Those of a sparse table are by place in the node, others by row.

    Returns how many go left, how far the next ranks are on both sides of the cut, and the number
    of missing values, whose rank is `none`.
    """
    one, following = np.uintp(1), last + np.uintp(1)
    to_left = to_spill = missing = np.uintp(0)
    before = after = none
    # Rows before place i have their places on the left, the first `to_left`, or in `spill`.
    # Distances of the ranks of the other side wrap around to large ones.
    for i in range(np.uintp(rows.size)):
        row = rows[i]
        r = np.uintp(column[np.uintp(row) if sparse is None else i])
        is_missing = np.uintp(r == none)
        is_left = np.uintp(r <= last) | (is_missing & missing_left)
        rows[to_left] = row
        spill[to_spill] = row
        to_left += is_left
        to_spill += one - is_left
        before = min(before, last - r)
        after = min(after, r - following)
        missing += is_missing
    for i in range(to_spill):
        rows[to_left + i] = spill[i]
    return np.int64(to_left), before, after, missing


@borrowing
def find_rank(rank, rows, found):
    """First of some rows with a rank of a column; one has it."""
    i = np.uintp(0)
    while rank[np.uintp(rows[i])] != found:
        i += np.uintp(1)
    return np.uintp(rows[i])


@pasted
def value_at(ends, row, f):
    """Value in a row, which `ends.row` may number, and column f; 0.0 of -0.0."""
    if ends.row.size > 0:
        row = np.uintp(ends.row[row])
    return (np.float64(ends.narrow[row, f]) if ends.wide.shape[0] == 0 else ends.wide[row, f]) + 0.0


@pasted
def cut_ends(ranks, rows, to_left, f, low, high):
    """Values of two ranks of column f, the last one on the left and the first on the right."""
    table, ends = ranks.table, ranks.ends
    first = table.first[f]
    if table.first[f + 1] > first:
        return table.highest[first + low], table.lowest[first + high]
    rank = table.rank[f]
    last, following = find_rank(rank, rows, low), find_rank(rank, rows[to_left:], high)
    return value_at(ends, last, f), value_at(ends, following, f)


@pasted
def part_by_ranks(scan, rows, ranks, subsets, sparse, cut, spill, left_side):
    """Partition a node's rows stably by a cut.

    Returns how many go left, the threshold, and True if there are missing values.
    """
    f, bits, none = cut.column, scan.bits, np.uintp(missing_rank(scan.bits))
    table = ranks.table
    if is_nominal(subsets, f):
        if subsets is not None:
            low, high = list_keys(table.rank[f], rows, bits, ranks.keys)
            sort_keys(ranks.keys, scan.t, bits, low, high, ranks.counts, ranks.order)
            mark_categories(subsets, scan, ranks.order, cut, left_side)
        missing = known_end(ranks.order, bits, 0, scan.t) < scan.t
        return part_rows(rows, spill, left_side), 0.0, missing
    last, missing_left = np.uintp(cut.place), np.uintp(cut.missing_left)
    if sparse is None:
        found = part_ranks(table.rank[f], sparse, rows, spill, last, missing_left, none)
    else:
        take_ranks(sparse, ranks.place, rows, bits, f, ranks.keys, ranks.order)
        found = part_ranks(ranks.order, sparse, rows, spill, last, missing_left, none)
    to_left, before, after, missing = found
    if cut.at_end:  # it was drawn
        return to_left, cut.threshold, missing > 0
    threshold, following = np.inf, last + np.uintp(1)
    if following + after != none:
        low, high = np.int64(last - before), np.int64(following + after)
        ends = cut_ends(ranks, rows, to_left, f, low, high)
        threshold = midpoint(ends[0], ends[1])
    return to_left, threshold, missing > 0


@pasted
def part_rows(rows, spill, left_side):
    """Partition a node's rows stably by their sides; returns how many go left."""
    one = np.uintp(1)
    to_left = to_spill = np.uintp(0)
    for i in range(np.uintp(rows.size)):
        row = rows[i]
        is_left = np.uintp(left_side[i])
        rows[to_left] = row
        spill[to_spill] = row
        to_left += is_left
        to_spill += one - is_left
    for i in range(to_spill):
        rows[to_left + i] = spill[i]
    return np.int64(to_left)
