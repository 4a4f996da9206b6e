"""Ranks of the values of a table, column by column, for nodes that read few of its columns.

    rank[f]     | 2 | 0 | none | 1 | 2 |     by row: equal ranks are equal values
    lowest      | 0.5 | 1.0 | 7.5 |          by rank, from ``first[f]`` on

Ranks of codes that decide all cuts are the codes, those of nominal columns the categories.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Floats, Int64s
from gputree.backends.cpu.block import MANY_ROWS, missing_rank
from gputree.backends.cpu.layout import Table
from gputree.base.threads import run


class Ranks(NamedTuple):
    """Ranks of n rows in d columns, and the values that they stand for."""

    rank: NDArray  # (d, n) uint16 or uint32; `missing_rank` where missing
    first: Int64s  # (d + 1,) places of the numeric columns' values
    lowest: Floats  # minimum value of a rank
    highest: Floats  # maximum value: another one only where bins are cut as they are
    missing: NDArray[np.bool_]  # (d,)
    sparse: Any = None  # `NonZeros` of a sparse table, in place of `rank`


def rank_type(n: int) -> np.dtype:
    """Type of the ranks of n rows."""
    return np.dtype(np.uint16 if n < MANY_ROWS else np.uint32)


def rank_table(table: Table, n_threads: int) -> Ranks:
    """Rank the values of a table, with codes or without."""
    n, d = table.values.shape
    rank = np.empty((d, n), rank_type(n))
    none = missing_rank(8 * rank.itemsize)
    columns = [(table, f, none, rank[f]) for f in range(d)]
    ends = run(n_threads if rank.size > 1 << 16 else 1, _rank_column, columns)
    sizes = [lowest.size for lowest, _ in ends]
    return Ranks(
        rank,
        np.cumsum([0, *sizes]),
        np.concatenate([lowest for lowest, _ in ends]),
        np.concatenate([highest for _, highest in ends]),
        table.missing,
    )


def _rank_column(table: Table, f: int, none: int, rank: NDArray) -> tuple[Floats, Floats]:
    """Write the ranks of column f; returns the minimum and the maximum value of each."""
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
    if table.categories[f]:
        rank[known] = values[known]
        return np.empty(0), np.empty(0)
    found, rank[known] = distinct_ranks(values[known])
    return found, found


def distinct_ranks(values: NDArray) -> tuple[Floats, NDArray]:
    """The distinct values, ascending, and the rank of each value among them."""
    order, ordered = sort_values(values)
    new = np.ones(values.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    rank = np.empty(values.size, np.uint32)
    rank[order] = np.cumsum(new, dtype=np.uint32) - 1
    return ordered[new].astype(np.float64), rank


def sort_values(values: NDArray) -> tuple[NDArray, NDArray]:
    """An order that sorts values, none missing, and the sorted values."""
    if values.dtype != np.float32:
        order = values.argsort()
        return order, values[order]
    # As integers with the row behind each, which NumPy sorts by vector instructions.
    bits = (values + np.float32(0.0)).view(np.int32)  # -0.0 becomes 0.0
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) << 32
    keys |= np.arange(values.size)
    keys.sort()
    order = keys & 0xFFFFFFFF
    return order, values[order]
