"""The block that a small node is finished in: its rows, and its columns sorted once.

order[f]    keys in order of value; a key holds the rank of the value among the
            distinct values of column f, and the local index of the row

    | rank | index |      equal ranks are equal values; missing values come last,
                          with the rank of `missing_rank`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Task
from gputree.backends.cpu.jit import inner, pick
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.sort import INSERTION_PAIRS, insertion_sort, sort_pairs

# Nodes of this many rows need keys of 64 bits: ranks and indices pass 16 bits.
MANY_ROWS = 0xFFFF


class Block(NamedTuple):
    """Scratch of one worker, for nodes of up to m rows."""

    order: NDArray  # (d, m) uint32 or uint64 keys
    distinct: NDArray  # (d, m) values by rank
    spill: NDArray  # (m,) like order
    values: NDArray  # (m,) values of one column
    items: NDArray  # (m,) int32, local indices while sorting
    rows: NDArray  # (m,) like entries: local order of the subtree
    rows_spill: NDArray  # (m,) like entries
    local: NDArray  # (m,) int32: local indices in the order of `rows`
    local_spill: NDArray  # (m,) int32
    target: NDArray  # (m,) int64
    weight: NDArray  # (m,) int64
    left_side: NDArray  # (m,) uint8: the row goes left
    columns: NDArray  # (d,) int64: the active columns come first
    two_valued: NDArray  # (d,) bool: the column has two distinct values in the whole table
    drawn: NDArray  # (d,) int64
    class_of: NDArray  # (n_classes,) int32: local number of a class, -1 if absent


def new_block(table: Table, task: Task, m: int, row_dtype: np.dtype) -> Block:
    """Scratch for nodes of up to m rows of the table."""
    d = table.values.shape[1]
    key = np.uint32 if m < MANY_ROWS else np.uint64
    return Block(
        order=np.empty((d, m), key),
        distinct=np.empty((d, m), table.values.dtype),
        spill=np.empty(m, key),
        values=np.empty(m, table.values.dtype),
        items=np.empty(m, np.int32),
        rows=np.empty(m, row_dtype),
        rows_spill=np.empty(m, row_dtype),
        local=np.empty(m, np.int32),
        local_spill=np.empty(m, np.int32),
        target=np.empty(m, np.int64),
        weight=np.empty(m if task.weight is not None else 0, np.int64),
        left_side=np.empty(m, np.uint8),
        columns=np.empty(d, np.int64),
        two_valued=table.by_code & (np.diff(table.offset) - table.missing == 2),
        drawn=np.empty(d, np.int64),
        class_of=np.full(task.n_classes, -1, np.int32),
    )


@inner
def missing_rank(bits):
    """Rank of missing values in keys that hold the index in so many bits: above all others."""
    return 0xFFFF if bits == 16 else 0x7FFFFFFF


@inner
def collect_known(source, rows, m, f, bits, order, values, items):
    """Collect the known values of column f and their rows; missing rows end ``order[f]``."""
    known = np.int64(0)
    absent = m
    for i in range(m):
        value = source[rows[i], f]
        if value == value:
            values[known] = value
            items[known] = i
            known += 1
        else:
            absent -= 1
            order[f, absent] = (missing_rank(bits) << bits) | i
    return known


@inner
def collect_by_code(
    source, codes, rows, m, f, bins, missing_bin, bits, order, values, items, places
):
    """As `collect_known`, with values in order of their bins; long bins are sorted."""
    count_codes(codes, rows, m, f, bins, places)
    known = m if missing_bin < 0 else places[missing_bin]
    for i in range(m):
        row = rows[i]
        code = np.int64(codes[row, f])
        place = places[code]
        places[code] = place + 1
        if code == missing_bin:
            order[f, place] = (missing_rank(bits) << bits) | i
        else:
            values[place] = source[row, f]
            items[place] = i
    return known


@inner
def count_codes(codes, rows, m, f, bins, places):
    """Set ``places[code]`` to the first place of each code among m rows, in order of code."""
    for b in range(bins + 1):
        places[b] = 0
    for i in range(m):
        places[np.int64(codes[rows[i], f]) + 1] += 1
    for b in range(bins):
        places[b + 1] += places[b]


@inner
def sort_within_bins(values, items, known, bins, places, stack):
    """Sort values that are in order of their bins; ``places[b]`` is the end of bin b."""
    begin = np.int64(0)
    for b in range(bins):
        end = min(places[b], known)
        if end - begin > INSERTION_PAIRS:
            sort_pairs(values, items, begin, end, stack)
        begin = end
    insertion_sort(values, items, np.int64(0), known)


@inner
def rank_values(f, bits, order, distinct, values, items, known):
    """Turn sorted values into keys of rank and index, and ranks into ``distinct[f]``."""
    rank = -1
    for i in range(known):
        if i == 0 or values[i] != values[i - 1]:
            rank += 1
            distinct[f, rank] = values[i]
        order[f, i] = (rank << bits) | np.int64(items[i])


@inner
def sort_codes(codes, rows, m, f, bins, missing_bin, bits, order, places):
    """Fill ``order[f]`` by counting codes: the code is the rank."""
    count_codes(codes, rows, m, f, bins, places)
    for i in range(m):
        code = np.int64(codes[rows[i], f])
        rank = code if code != missing_bin else missing_rank(bits)
        order[f, places[code]] = (rank << bits) | i
        places[code] += 1


@inner
def sort_columns(table, m, bits, block, stack, places):
    """Sort every column of the block's m rows, through their codes where there are some."""
    offset = table.offset
    coded = table.codes.shape[0] > 0
    for f in range(table.missing.size):
        block.columns[f] = f
        bins = offset[f + 1] - offset[f]
        missing_bin = bins - 1 if table.missing[f] else -1
        if table.by_code[f]:
            sort_codes(table.codes, block.rows, m, f, bins, missing_bin, bits, block.order, places)
            continue
        if coded:
            known = collect_by_code(
                table.values, table.codes, block.rows, m, f, bins, missing_bin, bits, block.order,
                block.values, block.items, places,
            )  # fmt: skip
            sort_within_bins(block.values, block.items, known, bins, places, stack)
        else:
            known = collect_known(
                table.values, block.rows, m, f, bits, block.order, block.values, block.items
            )
            sort_pairs(block.values, block.items, np.int64(0), known, stack)
        rank_values(f, bits, block.order, block.distinct, block.values, block.items, known)


@inner
def load_rows(targets, weights, entries, first, m, rows, local, target, weight):
    """Copy the rows of entries ``first .. first + m`` and their statistics into the block."""
    weighted = weights is not None
    for i in range(m):
        row = entries[first + i]
        rows[i] = row
        local[i] = i
        target[i] = targets[row]
        if weighted:
            weight[i] = pick(weights, row, 1)


@inner
def number_classes(m, target, class_of):
    """Renumber the classes present in the block 0, 1, ... in their order; returns how many."""
    low = high = target[0]
    for i in range(m):
        k = target[i]
        class_of[k] = 0
        low = min(low, k)
        high = max(high, k)
    present = 0
    for k in range(low, high + 1):
        if class_of[k] >= 0:
            class_of[k] = present
            present += 1
    for i in range(m):
        target[i] = class_of[target[i]]
    for k in range(low, high + 1):
        class_of[k] = -1
    return present
