"""Ranks of a sparse table: those of its values other than 0, for nodes that read few columns.

    first[f] .. first[f + 1]    | row 3 | row 7 | row 8 |     of column f, in order of rows
                                | 2     | none  | 0     |     ranks; that of 0 is ``zero[f]`` = 1
    is_set[place_of_bits[f]]    | 00010001 | 10000000 |       a bit a row

A node of many rows looks these up in itself, and one of few looks up its rows in the bits, or by
bisection where a column has no bits: for so few rows they would take too much memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu import tuning
from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import admits, new_cut, score_to_beat, tie_rank
from gputree.backends.cpu.drawn_values import draw_cut
from gputree.backends.cpu.finish_scan import clear, known_end
from gputree.backends.cpu.monotonic import at_column, keeps_order, lower_bound
from gputree.backends.cpu.ranks import Ranks, rank_type
from gputree.base.dtypes import Int64s
from gputree.base.memory import require_memory
from gputree.compilation import borrowing
from gputree.criteria import add_row, may_exceed, move, move_cell, score
from gputree.prediction.sparse import SparseRows

# Values that are compared with 0 at a time: a table may be larger than memory.
BLOCK_CELLS = 1 << 20
RANKED_BYTES = 80  # at the peak, of a value other than 0: 82 to 93 were measured
# Rows of a column that are looked up in a node in the time of a bisection for one of its rows.
ROWS_PER_BISECTION = 8


class NonZeros(NamedTuple):
    """Rows of d columns whose values are other than 0, missing ones among them."""

    first: Int64s  # (d + 1,) places of a column's rows
    row: NDArray  # ascending in a column
    rank: NDArray  # of its value; `missing_rank` where missing
    zero: Int64s  # (d,) rank of 0
    place_of_bits: Int64s  # (d,) -1 of columns without bits
    is_set: NDArray[np.uint8]  # (columns with bits, n / 8) a bit a row, the first in the lowest
    alike: NDArray[np.bool_]  # (d,) all ranks of the column are equal


def at_most(values: NDArray, most: float) -> bool:
    """Return True if at most so many values of a table are other than 0."""
    count = 0
    for _, block in _blocks(values):
        count += int(np.count_nonzero(block != 0))
        if count > most:
            return False
    return True


def _blocks(values: NDArray) -> Iterator[tuple[int, NDArray]]:
    """Blocks of rows of a table, and the number of the first of each."""
    step = max(BLOCK_CELLS // values.shape[1], 1)
    for a in range(0, len(values), step):
        yield a, values[a : a + step]


def _list_nonzeros(table: NDArray | SparseRows) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, columns and values of a table where these are other than 0, row by row."""
    n, d = table.shape
    short = np.min_scalar_type(d)  # NumPy sorts short integers by digits
    if isinstance(table, SparseRows):
        row = np.repeat(np.arange(n, dtype=np.uint32), np.diff(table.first))
        found = table.values != 0
        return row[found], table.column[found].astype(short), table.values[found]
    parts = []
    for a, block in _blocks(table):
        places = np.nonzero(block != 0)
        parts.append((places[0].astype(np.uint32) + np.uint32(a), places[1].astype(short)))
    row, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    return row, column, table[row, column]


def rank_nonzeros(table: NDArray | SparseRows, missing: NDArray[np.bool_]) -> Ranks:
    """Ranks of a table (n, d) that is sparse, of columns with and without `missing` values."""
    n, d = table.shape
    row, column, number = _list_nonzeros(table)
    require_memory(
        row.size * RANKED_BYTES,
        f"Ranking {row.size:,} values other than 0 of {n:,} rows x {d:,} columns",
        "Use fewer rows or columns.",
    )
    by_column = np.argsort(column, kind="stable")
    row, column, number = row[by_column], column[by_column], number[by_column]
    count = np.bincount(column, minlength=d)
    with_zero = count < n
    order = _order_by_value(number, column, d)
    ordered = number[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]) | (column[1:] != column[:-1])
    new &= ~np.isnan(ordered)
    distinct = np.bincount(column[new], minlength=d)
    starts = np.cumsum([0, *(distinct + with_zero)])
    below = np.bincount(column[new & (ordered < 0)], minlength=d)
    kind = rank_type(n)
    rank = np.empty(order.size, kind)
    places = np.cumsum(new) - 1 - (np.cumsum(distinct) - distinct)[column]
    places += with_zero[column] & (ordered > 0)
    rank[order] = places
    rank[np.isnan(number)] = missing_rank(8 * kind.itemsize)
    found = np.zeros(starts[-1])
    found[(starts[column] + places)[new]] = ordered[new]
    changes = 1 + np.flatnonzero((rank[1:] != rank[:-1]) & (column[1:] == column[:-1]))
    alike = np.bincount(column[changes], minlength=d) == 0
    first = np.cumsum([0, *count])
    zero = np.where(with_zero, below, 0)
    sparse = NonZeros(first, row, rank, zero, *_bits(row, column, count, n), alike)
    return Ranks(np.empty((0, n), kind), np.diff(starts), starts, found, found, missing, sparse)


def _order_by_value(number: NDArray, column: NDArray, d: int) -> Int64s:
    """Order of values, those of a column one after another, within the columns; NaN last."""
    order = np.arange(number.size)
    differs = (number[1:] != number[:-1]) & (column[1:] == column[:-1])
    mixed = np.zeros(d, np.bool_)
    mixed[column[1:][differs]] = True
    places = np.flatnonzero(mixed[column])
    order[places] = places[np.lexsort((number[places], column[places]))]
    return order


def _bits(row: NDArray, column: NDArray, count: Int64s, n: int) -> tuple[Int64s, NDArray[np.uint8]]:
    """Places of columns among those with bits, and their bits; rows by columns ascend."""
    has_bits = count * tuning.TUNING.bits_per_row >= n
    place = np.where(has_bits, np.cumsum(has_bits) - 1, -1)
    found = np.zeros((np.count_nonzero(has_bits), -(-n // 8)), np.uint8)
    listed = has_bits[column]
    row, column = row[listed], column[listed]
    byte = place[column] * found.shape[1] + row // 8
    starts = np.flatnonzero(np.diff(byte, prepend=-1))
    if starts.size:
        bits = np.left_shift(1, row % 8)
        found.ravel()[byte[starts]] = np.add.reduceat(bits, starts)
    return place, found


@borrowing
def put_places(place, rows):
    """Note the place of each of a node's rows in it, where the table is sparse."""
    if place is not None:
        for i in range(np.uintp(rows.size)):
            place[np.uintp(rows[i])] = i


@borrowing
def list_nonzeros(sparse, place, rows, bits, f, keys):
    """Write the keys of those of a node's rows that are not 0 in column f; returns their number."""
    first, last = sparse.first[f], sparse.first[f + 1]
    place_of_bits = sparse.place_of_bits[f]
    found, one = np.uintp(0), np.uintp(1)
    if place_of_bits < 0 and ROWS_PER_BISECTION * rows.size < last - first:
        for i in range(np.uintp(rows.size)):
            e = lower_bound(sparse.row, first, last, rows[i])
            if e < last and sparse.row[e] == rows[i]:
                keys[found] = (np.uintp(sparse.rank[e]) << np.uintp(bits)) | i
                found += one
        return np.int64(found)
    if place_of_bits >= 0 and rows.size < last - first:
        is_set = sparse.is_set[place_of_bits]
        for i in range(np.uintp(rows.size)):
            row = np.uintp(rows[i])
            keys[found] = i
            found += (np.uintp(is_set[row >> np.uintp(3)]) >> (row & np.uintp(7))) & one
        for j in range(found):
            e = first
            if not sparse.alike[f]:
                e = lower_bound(sparse.row, first, last, rows[np.uintp(keys[j])])
            keys[j] |= np.uintp(sparse.rank[e]) << np.uintp(bits)
        return np.int64(found)
    most = np.uintp(rows.size)
    # A row of another node has a place of that one, where this node has another row.
    for e in range(np.uintp(first), np.uintp(last)):
        row = np.uintp(sparse.row[e])
        i = np.uintp(place[row])
        i = i if i < most else np.uintp(0)
        keys[found] = (np.uintp(sparse.rank[e]) << np.uintp(bits)) | i
        found += np.uintp(np.uintp(rows[i]) == row)
    return np.int64(found)


@borrowing
def take_ranks(sparse, place, rows, bits, f, keys, ranks):
    """Write the rank in column f of each of a node's rows to `ranks`; `keys` are used up."""
    found = list_nonzeros(sparse, place, rows, bits, f, keys)
    for i in range(np.uintp(rows.size)):
        ranks[i] = sparse.zero[f]
    mask = (np.uintp(1) << np.uintp(bits)) - np.uintp(1)
    for j in range(np.uintp(found)):
        ranks[np.uintp(keys[j]) & mask] = keys[j] >> np.uintp(bits)


@borrowing
def rank_ends(sparse, keys, found, m, bits, f):
    """Lowest and highest rank of column f among a node's m rows, of which `found` are listed."""
    low = high = sparse.zero[f] if found < m else np.int64(keys[0]) >> bits
    for i in range(np.uintp(found)):
        rank = np.int64(keys[i]) >> bits
        low, high = min(low, rank), max(high, rank)
    return low, high


@borrowing
def sum_zeros(scan, keys, found, cells):
    """Sum the statistics of the rows that are not listed."""
    mask = (np.uintp(1) << np.uintp(scan.bits)) - np.uintp(1)
    for c in range(np.uintp(scan.total.size)):
        cells[c] = 0
    for i in range(np.uintp(found)):
        x = np.uintp(keys[i]) & mask
        add_row(scan.criterion, cells, 0, scan.target[x], scan.weight[x], 0)
    for c in range(np.uintp(scan.total.size)):
        cells[c] = scan.total[c] - cells[c]


@borrowing
def scan_listed(scan, limits, keys, found, known, zero, cells, missing_left, best):
    """Best cut of a column, of whose sorted keys the first `known` have values.

    `cells` are the statistics of the rows of value 0. Only scores above `best` count. Returns the
    score and the last rank on the left, -1 where there is none.
    """
    criterion, left, total, m = scan.criterion, scan.left, scan.total, scan.t
    shift = np.uintp(scan.bits)
    mask = (np.uintp(1) << shift) - np.uintp(1)
    last = np.int64(-1)
    clear(left)
    state, n = scan.start, np.int64(0)
    if missing_left:
        for i in range(np.uintp(known), np.uintp(found)):
            x = np.uintp(keys[i]) & mask
            state = move(criterion, state, left, total, scan.target[x], scan.weight[x])
        n = found - known
    zeros, i = m - found, np.uintp(0)
    # `left` are the n rows of ranks so far, and `zeros` are those of value 0 to come.
    while True:
        rank = np.int64(keys[i] >> shift) if i < known else zero
        if zeros > 0 and (i == known or rank > zero):
            rank = zero
            state = move_cell(criterion, state, left, total, cells, 0)
            n += zeros
            zeros = np.int64(0)
        else:
            while i < known and np.int64(keys[i] >> shift) == rank:
                x = np.uintp(keys[i]) & mask
                state = move(criterion, state, left, total, scan.target[x], scan.weight[x])
                i += np.uintp(1)
                n += 1
        if n >= m:
            return best, last
        if admits(limits, n, m, state[0], scan.whole) and may_exceed(
            criterion, state, left, total, best
        ):
            value = score(criterion, state, left, total)
            if value > best and keeps_order(limits.monotonic, criterion, state, left, total):
                best, last = value, rank
        if i == known and zeros == 0:
            return best, last


@borrowing
def scan_nonzeros(scan, limits, sparse, keys, found, f, cells, cut):
    """The better of `cut` and the best cut of column f, whose listed keys are sorted."""
    column_limits, rank = at_column(limits.monotonic, limits, f), tie_rank(limits, scan.key, f)
    known = known_end(keys, scan.bits, 0, found)
    sum_zeros(scan, keys, found, cells)
    for side in range(2 if known < found else 1):
        value, last = scan_listed(
            scan, column_limits, keys, found, known, sparse.zero[f], cells, side == 1,
            score_to_beat(cut, rank),
        )  # fmt: skip
        if last >= 0:
            cut = new_cut(value, f, side == 1, last, False, 0.0, rank)
    return cut


@borrowing
def scan_cut_drawn(scan, limits, ranks, keys, found, f, cells, cut):
    """The better of `cut` and one cut of column f that is drawn, whose place is a rank."""
    criterion, left, total, m, sparse = scan.criterion, scan.left, scan.total, scan.t, ranks.sparse
    none, values = missing_rank(scan.bits), ranks.lowest[ranks.first[f] : ranks.first[f + 1]]
    bits, zero, missing = np.uintp(scan.bits), sparse.zero[f], np.int64(0)
    mask = (np.uintp(1) << bits) - np.uintp(1)
    low, high = (zero, zero) if found < m else (np.int64(none), np.int64(-1))
    for i in range(np.uintp(found)):
        rank = np.int64(keys[i] >> bits)
        low = min(low, rank)
        high = max(high, rank if rank != none else high)
        missing += np.int64(rank == none)
    threshold, missing_left = draw_cut(scan.key, f, values[low], values[high], missing, False)
    # Ranks up to `last` are left, and those from `above` on right.
    last, above = low, high + 1
    while last + 1 < above:
        middle = (last + above) // 2
        if values[middle] <= threshold:
            last = middle
        else:
            above = middle
    sum_zeros(scan, keys, found, cells)
    clear(left)
    state, rows = scan.start, np.int64(0)
    for i in range(np.uintp(found)):
        rank, x = np.int64(keys[i] >> bits), np.uintp(keys[i]) & mask
        if rank <= last or (missing_left and rank == none):
            state = move(criterion, state, left, total, scan.target[x], scan.weight[x])
            rows += 1
    if found < m and zero <= last:
        state = move_cell(criterion, state, left, total, cells, 0)
        rows += m - found
    column_limits = at_column(limits.monotonic, limits, f)
    if not admits(limits, rows, m, state[0], scan.whole) or not keeps_order(
        column_limits.monotonic, criterion, state, left, total
    ):
        return cut
    value, rank = score(criterion, state, left, total), tie_rank(limits, scan.key, f)
    if value > score_to_beat(cut, rank):
        return new_cut(value, f, missing_left, last, True, threshold, rank)
    return cut
