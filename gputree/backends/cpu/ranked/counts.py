"""Columns of few distinct values: sums by value take the place of a sweep through a list.

    code     0 1 2 | the last   by value, then missing ones: of a row, in all columns
    cell     of a code of a column; those of one column follow those of the column before
    sums     one set a cell, of all columns that are searched, row by row; then cell by cell

Nothing is sorted, and a node's rows are partitioned without those columns. Cuts, their scores and
ties are those of the lists.

Where cells are few compared with rows, a node keeps its sums in a slot: of its children the smaller
one is counted, and the larger one has the difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import lowest_bit
from gputree.backends.cpu.cut import admits, new_cut, score_to_beat
from gputree.backends.cpu.jit import borrowing, kernel, pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.formulas import count_rows
from gputree.backends.cpu.ranked.sums import add_targets, n_sums, score_of
from gputree.base.dtypes import Int64s
from gputree.compilation import overload, overload_pasted
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_SUMS

MOST_CODES = 256
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio spreads the bits of keys
WORD = 6


class Codes(NamedTuple):
    """Codes of the columns of few values, by row of the table."""

    code: NDArray[np.uint8]  # (n, c)
    place: Int64s  # (d,) of a column in `code`; -1 where it has a list
    missing: Int64s  # (d,) code of missing values; `MOST_CODES` if there are none
    first: Int64s  # (c + 1,) first cell of each column of `code`, and the number of cells


class CodeSums(NamedTuple):
    """Sums of nodes by cell, in slots.

    The first is for any node: its sums are 0 but between `count_rows` and `count_cuts` of a column.
    """

    sums: Int64s  # (slots, cells x sums)
    weight: Int64s  # (slots, cells)
    rows: Int64s  # (slots, cells)
    present: NDArray[np.uint64]  # (slots, c, words) bits of the codes that the node has
    left: Int64s  # sums before a cut
    columns: Int64s  # scratch: columns of `Codes.code`
    free: Int64s  # the number of free slots, and these


@kernel
def assign_codes(values, bits, most, code, found):
    """Number values by their first occurrence; returns how many differ, or -1 beyond `most`.

    `found` becomes these, one of NaN and one of both zeros; `bits` are those of the values.
    """
    slots = np.full(4 * MOST_CODES, -1, np.int64)
    keys = np.empty(MOST_CODES, np.uint64)
    count = 0
    # `slots` number the values before row i, each at the first free place from its hash on
    for i in range(values.size):
        x, key = values[i], np.uint64(bits[i])
        if x == 0:
            key = np.uint64(0)
        elif x != x:
            key = ~np.uint64(0)
        slot = np.int64((key * GOLDEN) >> np.uint64(54))
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & (4 * MOST_CODES - 1)
        if slots[slot] < 0:
            if count == most:
                return -1
            slots[slot], keys[count], found[count] = count, key, x
            count += 1
        code[i] = slots[slot]
    return count


def code_column(values: NDArray, most: int) -> tuple[NDArray[np.uint8], int, int] | None:
    """Codes of a column's values, ascending, that of missing ones, and how many; None if too many.

    `most` different ones at most, of which missing values are one.
    """
    code, found = np.empty(values.size, np.uint8), np.empty(MOST_CODES, values.dtype)
    bits = values.view(f"u{values.itemsize}")
    count = assign_codes(values, bits, most, code, found)
    if count < 0:
        return None
    order = np.argsort(found[:count])  # NaN last
    rank = np.empty(count, np.uint8)
    rank[order] = np.arange(count)
    missing = count - 1 if np.isnan(found[order[-1]]) else MOST_CODES
    return rank[code], missing, count


@formula(formulas.count_rows, *OF_SUMS)
def count_targets(criterion, codes, columns, counts, slot, rows, s, t):
    sums, width, present = counts.sums[slot], np.uintp(n_sums(criterion)), counts.present[slot]
    weight, n_rows = counts.weight[slot], counts.rows[slot]
    m = 0
    for f in columns:
        if codes.place[f] >= 0:
            counts.columns[m] = codes.place[f]
            m += 1
    # cells have the sums of the rows before i
    for i in range(np.uintp(s), np.uintp(t if m > 0 else s)):
        row, units = np.uintp(rows.row[i]), np.int64(pick(rows.weight, i, 1))
        for q in range(np.uintp(m)):
            c = np.uintp(counts.columns[q])
            b = np.uintp(codes.code[row, c])
            cell = np.uintp(codes.first[c]) + b
            present[c, b >> np.uintp(WORD)] |= np.uint64(1) << np.uint64(b & np.uintp(63))
            add_targets(criterion, sums, cell * width, rows, i, units)
            weight[cell] += units
            n_rows[cell] += 1


@borrowing
def is_present(present, b):
    """Return True if the node has rows of a code."""
    word = present[b >> WORD] if b < MOST_CODES else np.uint64(0)
    return (word >> np.uint64(b & 63)) & np.uint64(1) != 0


@borrowing
def clear(counts, slot, c, cells):
    """Set the sums of a column, from a cell on, to 0."""
    sums, present, width = counts.sums[slot], counts.present[slot, c], counts.left.size
    for word in range(present.size):
        rest = present[word]
        present[word] = 0
        while rest != 0:
            cell = cells + (word << WORD) + np.int64(lowest_bit(rest))
            rest &= rest - np.uint64(1)
            counts.weight[slot, cell] = counts.rows[slot, cell] = 0
            for j in range(np.uintp(width)):
                sums[np.uintp(cell * width) + j] = 0


@borrowing
def free_slot(codes, counts, slot):
    """Set the sums of a slot to 0, for another node."""
    for c in range(codes.code.shape[1]):
        clear(counts, slot, c, codes.first[c])
    counts.free[0] += 1
    counts.free[counts.free[0]] = slot


@borrowing
def pays(ranked, n):
    """Return True if adding up n rows takes longer than to subtract the sums of all cells."""
    codes, limits = ranked.codes, ranked.limits
    searches_all = limits.max_features >= ranked.lists.shape[0] and ranked.interactions is None
    return searches_all and n * codes.code.shape[1] > codes.first[-1]


@borrowing
def counted(criterion, ranked, order, counts, s, t):
    """A new slot with the counts of a node."""
    slot = counts.free[counts.free[0]]
    counts.free[0] -= 1
    for f in range(order.size):
        order[f] = f
    count_rows(criterion, ranked.codes, order, counts, slot, ranked.rows, s, t)
    return slot


@formula(formulas.slot_of, *OF_SUMS)
def slot_of(criterion, ranked, order, counts, s, t):
    if pays(ranked, t - s):
        return counted(criterion, ranked, order, counts, s, t)
    return np.int64(0)


@borrowing
def subtract(codes, counts, slot, other):
    """Subtract the sums of another slot."""
    sums, others = counts.sums[slot], counts.sums[other]
    for i in range(sums.size):
        sums[i] -= others[i]
    for c in range(codes.code.shape[1]):
        for b in range(codes.first[c + 1] - codes.first[c]):
            cell = codes.first[c] + b
            counts.weight[slot, cell] -= counts.weight[other, cell]
            counts.rows[slot, cell] -= counts.rows[other, cell]
            if counts.rows[slot, cell] == 0:
                counts.present[slot, c, b >> WORD] &= ~(np.uint64(1) << np.uint64(b & 63))


@formula(formulas.slots_of_children, *OF_SUMS)
def slots_of_children(criterion, ranked, order, counts, slot, s, middle, t, searched):
    if slot == 0:
        return np.int64(0), np.int64(0)
    left_is_small = middle - s <= t - middle
    small, large = (s, middle), (middle, t)
    few, many = searched
    if not left_is_small:
        small, large, few, many = large, small, many, few
    n = large[1] - large[0] - (0 if few else small[1] - small[0])
    if not many or not pays(ranked, n):
        free_slot(ranked.codes, counts, slot)
        return np.int64(0), np.int64(0)
    other = counted(criterion, ranked, order, counts, small[0], small[1])
    subtract(ranked.codes, counts, slot, other)
    if not few:
        free_slot(ranked.codes, counts, other)
        other = np.int64(0)
    return (other, slot) if left_is_small else (slot, other)


@formula(formulas.new_counts, *OF_SUMS, how=overload)
def new_counts(criterion, codes, slots):
    c, cells, width = codes.code.shape[1], codes.first[-1], n_sums(criterion)
    free = np.arange(slots)
    free[0] = slots - 1
    return CodeSums(
        np.zeros((slots, cells * width), np.int64),
        np.zeros((slots, cells), np.int64),
        np.zeros((slots, cells), np.int64),
        np.zeros((slots, c, MOST_CODES >> WORD), np.uint64),
        np.empty(width, np.int64),
        np.empty(c, np.int64),
        free,
    )


@formula(formulas.count_cuts, *OF_SUMS, how=overload_pasted)
def count_cuts(criterion, ranked, s, t, totals, opened, counts, slot, cut, column, rank):
    limits, codes = ranked.limits, ranked.codes
    size, whole, left = t - s, opened.whole, counts.left
    c, missing = codes.place[column], codes.missing[column]
    cells, present, sums = codes.first[c], counts.present[slot, c], counts.sums[slot]
    weight, rows = counts.weight[slot], counts.rows[slot]
    for side in range(1 + is_present(present, missing)):
        n = moved = np.int64(0)
        if side == 1:
            n, moved = rows[cells + missing], weight[cells + missing]
        for j in range(left.size):
            left[j] = sums[(cells + missing) * left.size + j] if side == 1 else 0
        best, place = score_to_beat(cut, rank), np.int64(-1)
        # `left` are the sums of n rows, of weight `moved`: of the codes before those in `rest`
        for word in range(present.size):
            rest = present[word]
            while rest != 0:
                b = (word << WORD) + np.int64(lowest_bit(rest))
                rest &= rest - np.uint64(1)
                n, moved = n + rows[cells + b], moved + weight[cells + b]
                if b == missing or n == size:
                    break
                first = (cells + b) * left.size
                for j in range(left.size):
                    left[j] += sums[first + j]
                if not admits(limits, n, size, moved, whole):
                    continue
                value = score_of(criterion, totals, left, moved, whole)
                if value > best:
                    best, place = value, np.int64(b)
        if place >= 0:
            cut = new_cut(best, column, side == 1, place, False, 0.0, rank)
    if slot == 0:
        clear(counts, slot, c, cells)
    return cut


@borrowing
def divide_codes(codes, cut, rows, s, t, ranks):
    """Set `ranks` to 0 for the rows left of a cut by codes, else to -1.

    Returns rows of the table next to the cut, and True if some value is missing.
    """
    c, missing = codes.place[cut.column], codes.missing[cut.column]
    low = high = np.int64(-1)
    following, any_missing = np.int64(MOST_CODES), False
    # `following` is the lowest code above the cut before row i, that of `high`
    for i in range(s, t):
        row = rows.row[i]
        b = np.int64(codes.code[row, c])
        is_left = b <= cut.place
        if b == missing:
            is_left, any_missing = cut.missing_left, True
        elif b == cut.place:
            low = np.int64(row)
        elif cut.place < b < following:
            following, high = b, np.int64(row)
        ranks[i - s] = 0 if is_left else -1
    return low, low if high < 0 else high, any_missing
