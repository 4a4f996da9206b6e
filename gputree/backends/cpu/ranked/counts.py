"""Columns of few distinct values: sums by value take the place of a sweep through a list.

    code     0 1 2 | the last   by value, then missing ones: of a row, in all columns
    sums     one set a value that the node has, added up row by row; then value by value

Nothing is sorted, and a node's rows are partitioned without those columns. Cuts, their scores and
ties are those of the lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import lowest_bit
from gputree.backends.cpu.cut import admits, new_cut, score_to_beat
from gputree.backends.cpu.jit import borrowing, kernel, pick
from gputree.backends.cpu.ranked import formulas
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


class CodeSums(NamedTuple):
    """Sums of a node by code, of those that its rows have: flat sets of sums, and their bits."""

    sums: Int64s
    weight: Int64s
    rows: Int64s
    left: Int64s  # sums before a cut
    present: NDArray[np.uint64]


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


def code_column(values: NDArray, most: int) -> tuple[NDArray[np.uint8], int] | None:
    """Codes of a column's values, ascending, and that of missing ones; None if they are too many.

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
    return rank[code], missing


@borrowing
def count_rows(criterion, code, c, counts, rows, s, t):
    """Add up the rows of a node by their codes in a column."""
    sums, width, present = counts.sums, n_sums(criterion), counts.present
    for word in range(present.size):
        present[word] = 0
    # the sets of sums in `present` are those of the rows before i; others have values of old
    for i in range(np.uintp(s), np.uintp(t)):
        b = np.uintp(code[np.uintp(rows.row[i]), np.uintp(c)])
        first, bit = b * np.uintp(width), np.uint64(1) << np.uint64(b & np.uintp(63))
        if present[b >> np.uintp(WORD)] & bit == 0:
            present[b >> np.uintp(WORD)] |= bit
            counts.weight[b] = counts.rows[b] = 0
            for j in range(np.uintp(width)):
                sums[first + j] = 0
        units = np.int64(pick(rows.weight, i, 1))
        add_targets(criterion, sums, first, rows, i, units)
        counts.weight[b] += units
        counts.rows[b] += 1


@borrowing
def is_present(counts, b):
    """Return True if the node has rows of a code."""
    word = counts.present[b >> WORD] if b < MOST_CODES else np.uint64(0)
    return (word >> np.uint64(b & 63)) & np.uint64(1) != 0


@formula(formulas.new_counts, *OF_SUMS, how=overload)
def new_counts(criterion, codes):
    most = MOST_CODES if codes.code.shape[1] > 0 else 0
    width = n_sums(criterion)
    return CodeSums(
        np.empty(most * width, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(width, np.int64), np.empty(most >> WORD, np.uint64),
    )  # fmt: skip


@formula(formulas.count_cuts, *OF_SUMS, how=overload_pasted)
def count_cuts(criterion, ranked, s, t, totals, opened, counts, cut, column, rank):
    limits, codes, rows = ranked.limits, ranked.codes, ranked.rows
    size, whole, left = t - s, opened.whole, counts.left
    count_rows(criterion, codes.code, codes.place[column], counts, rows, s, t)
    missing = codes.missing[column]
    for side in range(1 + is_present(counts, missing)):
        n = moved = np.int64(0)
        if side == 1:
            n, moved = counts.rows[missing], counts.weight[missing]
        for j in range(left.size):
            left[j] = counts.sums[missing * left.size + j] if side == 1 else 0
        best, place = score_to_beat(cut, rank), np.int64(-1)
        # `left` are the sums of n rows, of weight `moved`: of the codes before those in `rest`
        for word in range(counts.present.size):
            rest = counts.present[word]
            while rest != 0:
                b = (word << WORD) + np.int64(lowest_bit(rest))
                rest &= rest - np.uint64(1)
                n, moved = n + counts.rows[b], moved + counts.weight[b]
                if b == missing or n == size:
                    break
                first = b * left.size
                for j in range(left.size):
                    left[j] += counts.sums[first + j]
                if not admits(limits, n, size, moved, whole):
                    continue
                value = score_of(criterion, totals, left, moved, whole)
                if value > best:
                    best, place = value, np.int64(b)
        if place >= 0:
            cut = new_cut(best, column, side == 1, place, False, 0.0, rank)
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
