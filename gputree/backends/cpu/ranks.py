"""Ranks of the values of a table, column by column, for nodes that read few of its columns.

    rank[f]     | 2 | 0 | none | 1 | 2 |     by row: equal ranks are equal values
    lowest      | 0.5 | 1.0 | 7.5 |          by rank, from ``first[f]`` on, of a column of few

Ranks of codes that decide all cuts are the codes, those of nominal columns the categories. Values
of a column of many are read from the table, in rows that have them.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu import tuning
from gputree.backends.cpu.block import MANY_ROWS, missing_rank
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.sort import radix_argsort, to_keys
from gputree.base.dtypes import Floats, Int64s
from gputree.base.threads import run
from gputree.compilation import kernel

# Integers are ranked by counting where their range is at most so many values, per row.
VALUES_PER_ROW = 4
# Values that a thread ranks at a time: they stay in the cache of a core.
RANKED_CELLS = 1 << 17


class Ranks(NamedTuple):
    """Ranks of n rows in d columns, and the values that they stand for."""

    rank: NDArray  # (d, n) uint16 or uint32; `missing_rank` where missing
    counts: Int64s  # (d,) number of ranks of a numeric column
    first: Int64s  # (d + 1,) places of the values of a column of few; none of others
    lowest: Floats  # minimum value of a rank
    highest: Floats  # maximum value: another one only where bins are cut as they are
    missing: NDArray[np.bool_]  # (d,)
    sparse: Any = None  # `NonZeros` of a sparse table, in place of `rank`


def rank_type(n: int) -> np.dtype:
    """Type of ranks below n."""
    return np.dtype(np.uint16 if n < MANY_ROWS else np.uint32)


def rank_table(table: Table, n_threads: int) -> Ranks:
    """Rank the values of a table, with codes or without."""
    n, d = table.values.shape
    rank = np.empty((d, n), rank_type(n))
    none = missing_rank(8 * rank.itemsize)
    uncoded = ~table.by_code & (table.categories == 0)
    counts = np.zeros(d, np.int64)
    ends: list[tuple[Floats, Floats]] = [(np.empty(0), np.empty(0))] * d
    columns = np.flatnonzero(uncoded)
    width = max(min(RANKED_CELLS // n, -(-columns.size // (2 * n_threads))), 1)
    parts = [
        (table.values, columns[a : a + width], none, rank) for a in range(0, columns.size, width)
    ]
    found = run(n_threads if rank.size > 1 << 15 else 1, rank_columns, parts)
    for f, (count, listed) in zip(columns.tolist(), chain.from_iterable(found), strict=True):
        counts[f], ends[f] = count, (listed, listed)
    kind = rank_type(max(counts.max(), table.categories.max()))
    if kind.itemsize < rank.itemsize:  # in half the memory; that of coded columns is unused so far
        wide, rank, none = rank, np.empty((d, n), kind), missing_rank(8 * kind.itemsize)
        for f in columns.tolist():
            rank[f] = wide[f]  # the rank of missing values, too, in the last bits
    for f in np.flatnonzero(~uncoded).tolist():
        ends[f] = _rank_by_code(table, f, none, rank[f])
        counts[f] = ends[f][0].size
    sizes = [lowest.size for lowest, _ in ends]
    lowest = highest = np.concatenate([low for low, _ in ends])
    if table.by_code.any():  # else one copy in memory
        highest = np.concatenate([high for _, high in ends])
    return Ranks(rank, counts, np.cumsum([0, *sizes]), lowest, highest, table.missing)


def _rank_by_code(table: Table, f: int, none: int, rank: NDArray) -> tuple[Floats, Floats]:
    """Write codes, or categories, as the ranks of column f; returns the ends of the values."""
    if table.by_code[f]:
        rank[:] = table.codes[:, f]
        values = int(table.offset[f + 1] - table.offset[f] - table.missing[f])
        if table.missing[f]:
            rank[rank == values] = none
        numeric = 0 if table.categories[f] else values
        return table.lowest[f, :numeric], table.highest[f, :numeric]
    values = table.values[:, f]
    known = ~np.isnan(values) if table.missing[f] else slice(None)
    rank[:] = none
    rank[known] = values[known]
    return np.empty(0), np.empty(0)


def rank_columns(
    values: NDArray, columns: Int64s, none: int, rank: NDArray
) -> list[tuple[int, Floats]]:
    """Write the ranks of some columns; returns their numbers of values, and these where listed."""
    taken = np.ascontiguousarray(values.T[columns])
    found, counts = np.empty(taken.shape), np.empty(columns.size, np.int64)
    count_values(taken, columns, none, rank, found, counts)
    many = np.flatnonzero(counts < 0)
    if many.size:
        order, keys = sort_values(taken[many])
        number_sorted(taken, columns, many, order, keys, none, rank, found, counts)
    most = tuning.TUNING.listed_values // values.shape[1]
    pairs = zip(counts.tolist(), found, strict=True)
    return [(count, of_one[: count if count <= most else 0].copy()) for count, of_one in pairs]


def sort_values(values: NDArray) -> tuple[NDArray, NDArray]:
    """Orders that sort each row of an array stably, NaN last, and keys of the sorted values."""
    if values.dtype != np.float32:
        order, keys = zip(*map(radix_argsort, values), strict=True)
        return np.array(order), np.array(keys)
    keys = np.empty(values.shape, np.uint32)
    flat = values.reshape(-1)
    to_keys(flat, flat.view(np.uint32), keys.reshape(-1), np.uint32(1), np.uint32(31))
    # With the place behind each, as integers, which NumPy sorts by vector instructions.
    placed = keys.astype(np.int64) << 31
    placed |= np.arange(values.shape[1])
    placed.sort(axis=1)
    return placed & 0x7FFFFFFF, placed >> 31


@kernel
def count_values(values, columns, none, rank, found, counts):
    """Write the ranks of integers in a narrow range, row by row, and the distinct ones to `found`.

    ``counts[j]`` is their number in row j, of column ``columns[j]``; -1 where it has other values.
    """
    n = np.uintp(values.shape[1])
    for j in range(columns.size):
        of_row, ranks, distinct = values[j], rank[columns[j]], found[j]
        low, high, whole = np.inf, -np.inf, True
        for i in range(n):
            x = np.float64(of_row[i])
            low = x if x < low else low
            high = x if x > high else high
            whole &= (x == np.floor(x)) | (x != x)
        counts[j] = -1
        if not (whole and 0 <= high - low < VALUES_PER_ROW * values.shape[1]):
            continue
        number = np.zeros(np.int64(high - low) + 1, np.uint32)
        for i in range(n):
            x = np.float64(of_row[i])
            if x == x:
                number[np.uintp(x - low)] = 1
        count = np.int64(0)
        # `number` of the values before x is their rank, and of others 1 where they occur.
        for x in range(number.size):
            if number[x] > 0:
                number[x] = count
                distinct[count] = low + x
                count += 1
        for i in range(n):
            x = np.float64(of_row[i])
            ranks[i] = number[np.uintp(x - low)] if x == x else none
        counts[j] = count


@kernel
def number_sorted(values, columns, many, order, keys, none, rank, found, counts):
    """Write the ranks of the rows `many` of values; see `sort_values` for `order` and `keys`."""
    for k in range(many.size):
        j = many[k]
        of_row, ranks, distinct = values[j], rank[columns[j]], found[j]
        count = np.int64(-1)
        # Values before place i have the ranks up to `count`.
        for i in range(order.shape[1]):
            row = order[k, i]
            if of_row[row] != of_row[row]:
                ranks[row] = none
                continue
            if i == 0 or keys[k, i] != keys[k, i - 1]:
                count += 1
                distinct[count] = of_row[row] + 0.0  # 0.0 for either zero
            ranks[row] = count
        counts[j] = count + 1
