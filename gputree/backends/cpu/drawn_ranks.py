"""The best cut of the columns that a node of a block draws; see `gputree.backends.cpu.finish`.

    rank[f]    rank of the value of each row of the block in column f, by the row's index

A drawn column is read in the node, and then

    counted    where it has few ranks there: statistics of the rows, rank by rank
    sorted     otherwise: keys of rank and index, digit by digit of their ranks

Columns that are constant in a node are constant below it, and are not read there again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.cpu import tuning
from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import (
    ColumnDraws,
    admits,
    draw_columns,
    drop_column,
    new_cut,
    new_draws,
    no_cut,
    score_to_beat,
    tie_rank,
)
from gputree.backends.cpu.finish_scan import (
    clear,
    is_nominal,
    scan_categories,
    scan_column,
    weight_at,
)
from gputree.backends.cpu.jit import borrowing, pasted
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.monotonic import at_column, keeps_order
from gputree.backends.cpu.score import add_cell
from gputree.criteria import add_row, begin, left_weight, may_exceed, score

# Maximum number of rows that are sorted by comparing all of them: vectors of a known length.
FEW_ROWS = 16
# A column is counted where it has at most so many statistics in a node, per row: to clear and to
# score them takes less time than to sort the rows.
CELLS_PER_ROW = 4
# Digits that keys are sorted by have at least so many bits: to clear their counters takes as long
# as to sort a few hundred rows.
LEAST_BITS = 8


class Ranks(NamedTuple):
    """Ranks of a block of up to m rows, and scratch; None where nodes search all columns."""

    rank: NDArray  # (d, m) uint16 or uint32
    codes: Int64s  # (d,) ranks are codes below this number; 2**62 where they may not be
    draws: ColumnDraws
    keys: NDArray  # (m,) like `Block.order`
    counts: Int64s  # keys by digit
    cells: Int64s  # statistics by rank


def new_ranks(table: Table, task: Task, order: NDArray) -> Ranks | None:
    """Ranks for a block with the keys `order`; None unless nodes draw columns, most with codes."""
    d, m = order.shape
    share = np.count_nonzero(table.by_code) / d
    if task.limits.max_features >= d or share < tuning.TUNING.ranked_share:
        return None
    coded = table.by_code & ~table.missing & (table.categories == 0)
    return Ranks(
        rank=np.empty((d, m), f"u{order.itemsize // 2}"),
        codes=np.where(coded, np.diff(table.offset), 1 << 62),
        draws=new_draws(d),
        keys=np.empty(max(m, FEW_ROWS), order.dtype),
        counts=np.empty(max(2 * m, 1 << LEAST_BITS) + 1, np.int64),
        cells=np.empty(CELLS_PER_ROW * m, np.int64),
    )


@borrowing
def list_keys(rank, local, bits, s, t, keys):
    """Write the keys of places ``s .. t`` in one column; returns the lowest and highest rank."""
    low, high = np.int64(rank[local[s]]), np.int64(0)
    for i in range(np.uintp(t - s)):
        x = np.uintp(local[np.uintp(s) + i])
        r = np.int64(rank[x])
        keys[i] = (r << bits) | np.int64(x)
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
    for b in range(mask):
        counts[b + one] += counts[b]
    for i in range(np.uintp(m)):
        key = keys[i]
        digit = ((np.uintp(key) - base) >> shift) & mask
        place = counts[digit]
        counts[digit] = place + 1
        out[np.uintp(place)] = key


@borrowing
def sort_keys(keys, m, bits, low, high, counts, out):
    """Sort the first m keys, of ranks ``low .. high``, to `out`; `keys` are used up."""
    width = np.int64(0)
    while (high - low) >> width > 0:
        width += 1
    digits, most = 1, width
    while most > LEAST_BITS and 1 << most > 2 * m:
        digits += 1
        most = -(-width // digits)
    # Keys are sorted by the digits before `digit`, in `out` after an odd number of them.
    for digit in range(digits):
        source, target = (keys, out) if digit % 2 == 0 else (out, keys)
        place_by_digit(source, m, low << bits, bits + digit * most, most, counts, target)
    if digits % 2 == 0:
        for i in range(np.uintp(m)):
            out[i] = keys[i]


@borrowing
def count_ranks(scan, rank, local, low, span, cells):
    """Sum the statistics of a node's rows by their ranks in a column, from `low` on."""
    channels = np.uintp(scan.total.size)
    for b in range(np.uintp(span) * channels):
        cells[b] = 0
    for i in range(np.uintp(scan.s), np.uintp(scan.t)):
        x = np.uintp(local[i])
        offset = (np.uintp(rank[x]) - np.uintp(low)) * channels
        add_row(scan.criterion, cells, offset, scan.target[x], weight_at(scan, x), 0)


@borrowing
def scan_counts(scan, limits, cells, f, low, span, cut):
    """The better of `cut` and the best cut of column f, which is counted by rank.

    As a cut, its place is the last rank on the left, and it is not ``at_end``.
    """
    criterion, left, total = scan.criterion, scan.left, scan.total
    column_limits, rank = at_column(limits.monotonic, limits, f), tie_rank(limits, scan.key, f)
    best = score_to_beat(cut, rank)
    last = before = np.int64(-1)
    clear(left)
    # `left` are the statistics of ranks below b, of which `before` is the highest; `best` is the
    # best score so far, of the cut after rank `last`. Sides of one row are large enough.
    for b in range(span):
        if left_weight(criterion, cells, b * left.size) == 0:
            continue
        if before >= 0:
            state = begin(criterion, left, total)
            if admits(limits, 1, 2, state[0], scan.whole) and may_exceed(
                criterion, state, left, total, best
            ):
                value = score(criterion, state, left, total)
                if value > best and keeps_order(
                    column_limits.monotonic, criterion, state, left, total
                ):
                    best, last = value, before
        add_cell(left, cells, b * left.size)
        before = np.int64(b)
    return new_cut(best, f, False, low + last, False, 0.0, rank) if last >= 0 else cut


@borrowing
def read_column(scan, limits, block, ranks, f, nominal):
    """Count column f in a node, or list its keys.

    Returns the lowest and the highest rank, and True if it is counted. Ranks of a counted column
    may be fewer, but lowest and highest are equal if it is constant.
    """
    rank, local, m = ranks.rank[f], block.local, scan.t - scan.s
    # Cells have no number of rows, which larger leaves need.
    counts = m > FEW_ROWS and not nominal and limits.min_samples_leaf <= 1
    most = CELLS_PER_ROW * m // scan.total.size if counts else 0
    low, high = np.int64(0), ranks.codes[f] - 1
    if high >= most:
        low, high = list_keys(rank, local, scan.bits, scan.s, scan.t, ranks.keys)
    # Missing values, whose rank is the highest, may go to either side, which sorting tries.
    counted = high - low < most and high != missing_rank(scan.bits)
    if counted:
        count_ranks(scan, rank, local, low, high - low + 1, ranks.cells)
        first = (np.int64(rank[local[scan.s]]) - low) * scan.total.size
        if left_weight(scan.criterion, ranks.cells, first) == scan.whole:
            high = low
    return low, high, counted


@pasted
def scan_read(scan, scratch, block, ranks, limits, f, low, high, counted, cut):
    """The better of `cut` and the best cut of column f, which `read_column` has read."""
    m, order = scan.t - scan.s, block.order[f, scan.s : scan.t]
    if counted:
        return scan_counts(scan, limits, ranks.cells, f, low, high - low + 1, cut)
    if m <= FEW_ROWS:
        rank_keys(ranks.keys, m, order)
    else:
        sort_keys(ranks.keys, m, scan.bits, low, high, ranks.counts, order)
    if is_nominal(scratch, f):
        if scratch is not None:
            cut = scan_categories(scratch, scan, limits, f, cut)
        return cut
    return scan_column(scan, limits, f, block.two_valued[f], cut)


@pasted
def best_drawn_cut(scan, scratch, block, ranks, active, limits):
    """Best cut of a node over the columns that it draws; more are drawn until there is one.

    Also returns how many of the `active` columns remain. As a cut of numbers, its place is the last
    rank on the left.
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
        low, high, counted = read_column(scan, limits, block, ranks, f, is_nominal(scratch, f))
        if low == high:
            active = drop_column(draws, f, active)
            continue
        seen += 1
        cut = scan_read(scan, scratch, block, ranks, limits, f, low, high, counted, cut)
    if cut.score > -np.inf and cut.at_end and not is_nominal(scratch, cut.column):
        last = np.int64(block.order[cut.column, cut.place]) >> scan.bits
        cut = new_cut(cut.score, cut.column, cut.missing_left, last, True, 0.0, cut.rank)
    return cut, active


@borrowing
def mark_ranks(rank, local, bits, s, t, last, missing_left, left_side):
    """Mark each row of places ``s .. t`` with its side of the cut after rank `last`.

    Returns the rank that follows in the node, that of missing values where none does, and the
    number of missing values.
    """
    none = missing_rank(bits)
    after, missing = np.int64(none), np.int64(0)
    for i in range(np.uintp(s), np.uintp(t)):
        x = np.uintp(local[i])
        r = np.int64(rank[x])
        is_missing = r == none
        left_side[x] = missing_left if is_missing else r <= last
        after = min(after, r if r > last else none)
        missing += np.int64(is_missing)
    return after, missing
