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
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.sums import add_targets, n_sums, score_of
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, kernel, overload, overload_pasted, pick
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_SUMS

MOST_CODES = 256
MOST_SUMS = 1 << 20  # of a slot, where there is more than one: 8 MB
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

    Slot 0 is for any node: `count_rows` adds to its sums, and `count_cuts` clears them.
    """

    sums: Int64s  # (slots, cells x width) of a cell: rows, weight, and those of the targets
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
    sums, width, present = counts.sums[slot], np.uintp(n_sums(criterion) + 2), counts.present[slot]
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
            first = (np.uintp(codes.first[c]) + b) * width
            present[c, b >> np.uintp(WORD)] |= np.uint64(1) << np.uint64(b & np.uintp(63))
            sums[first] += 1
            sums[first + np.uintp(1)] += units
            add_targets(criterion, sums, first + np.uintp(2), rows, i, units)


@borrowing
def is_present(present, b):
    """Return True if the node has rows of a code."""
    word = present[b >> WORD] if b < MOST_CODES else np.uint64(0)
    return (word >> np.uint64(b & 63)) & np.uint64(1) != 0


@borrowing
def clear(counts, slot, c, cells):
    """Set the sums of a column, from a cell on, to 0."""
    sums, present, width = counts.sums[slot], counts.present[slot, c], counts.left.size + 2
    for word in range(present.size):
        rest = present[word]
        present[word] = 0
        while rest != 0:
            cell = cells + (word << WORD) + np.int64(lowest_bit(rest))
            rest &= rest - np.uint64(1)
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
def pays(ranked, counts, n):
    """Return True if adding up n rows takes longer than to subtract the sums of all cells."""
    codes, limits = ranked.codes, ranked.limits
    searches_all = limits.max_features >= ranked.lists.shape[0] and ranked.interactions is None
    has_slots = searches_all and counts.free.size > 1
    return has_slots and n * codes.code.shape[1] > codes.first[-1]


@formula(formulas.slot_of, *OF_SUMS)
def slot_of(criterion, ranked, counts, n, source):
    if source == 0 and not pays(ranked, counts, n):
        return np.int64(0)
    counts.free[0] -= 1
    return counts.free[counts.free[0] + 1]


@borrowing
def subtract(codes, counts, slot, other):
    """Subtract the sums of another slot."""
    sums, others, width = counts.sums[slot], counts.sums[other], counts.left.size + 2
    for i in range(sums.size):
        sums[i] -= others[i]
    for c in range(codes.code.shape[1]):
        for b in range(codes.first[c + 1] - codes.first[c]):
            if sums[(codes.first[c] + b) * width] == 0:
                counts.present[slot, c, b >> WORD] &= ~(np.uint64(1) << np.uint64(b & 63))


@formula(formulas.slot_below, *OF_SUMS)
def slot_below(criterion, ranked, counts, slot, source, n, both):
    if source > 0:
        subtract(ranked.codes, counts, source, slot)
    if slot > 0 and not (both and pays(ranked, counts, n)):
        free_slot(ranked.codes, counts, slot)
        return np.int64(0)
    return slot


@formula(formulas.new_counts, *OF_SUMS, how=overload)
def new_counts(criterion, codes, slots):
    words, k = MOST_CODES >> WORD, n_sums(criterion)
    if not 0 < codes.first[-1] * (k + 2) <= MOST_SUMS:
        slots = 1
    free = np.empty(slots, np.int64)
    free[0] = slots - 1
    for slot in range(1, slots):
        free[slot] = slot
    return CodeSums(
        np.zeros((slots, codes.first[-1] * (k + 2)), np.int64),
        np.zeros((slots, codes.code.shape[1], words), np.uint64),
        np.empty(k, np.int64),
        np.empty(codes.code.shape[1], np.int64),
        free,
    )


@formula(formulas.count_cuts, *OF_SUMS, how=overload_pasted)
def count_cuts(criterion, ranked, size, totals, opened, counts, slot, cut, column, rank):
    limits, codes = ranked.limits, ranked.codes
    whole, left = opened.whole, counts.left
    c, missing = codes.place[column], codes.missing[column]
    cells, present, sums = codes.first[c], counts.present[slot, c], counts.sums[slot]
    width = left.size + 2
    for side in range(1 + is_present(present, missing)):
        n = moved = first = np.int64(0)
        if side == 1:
            first = (cells + missing) * width
            n, moved = sums[first], sums[first + 1]
        for j in range(left.size):
            left[j] = sums[first + 2 + j] if side == 1 else 0
        best, place = score_to_beat(cut, rank), np.int64(-1)
        # `left` are the sums of n rows, of weight `moved`: of the codes before those in `rest`
        for word in range(present.size):
            rest = present[word]
            while rest != 0:
                b = (word << WORD) + np.int64(lowest_bit(rest))
                rest &= rest - np.uint64(1)
                first = (cells + b) * width
                n, moved = n + sums[first], moved + sums[first + 1]
                if b == missing or n == size:
                    break
                for j in range(left.size):
                    left[j] += sums[first + 2 + j]
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
        row = np.int64(rows.row[i])
        b = np.int64(codes.code[row, c])
        is_missing, is_above = b == missing, b > cut.place
        is_next = is_above and b < following and not is_missing
        any_missing |= is_missing
        low = row if b == cut.place else low
        following, high = (b, row) if is_next else (following, high)
        is_left = cut.missing_left if is_missing else not is_above
        ranks[i - s] = 0 if is_left else -1
    return low, low if high < 0 else high, any_missing
