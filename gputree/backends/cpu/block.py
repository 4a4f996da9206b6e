"""The block that small nodes are grown in: their rows, and their columns sorted once.

    nodes    |    one    |  another  | ... |      next to each other, up to the size of a block

order[f]    keys of each node in order of value; a key holds the rank of the value among the
            distinct values of column f in the node, and the index of the row in the block

    | rank | index |      equal ranks are equal values; missing values come last,
                          with the rank of `missing_rank`

The types in a block are the same for every table. So one kernel, compiled for each kind of table,
loads nodes, and another, compiled for each kind of task, grows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Task
from gputree.backends.cpu import tuning
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.sort import new_sorter, sort_pairs
from gputree.base.dtypes import CODE, Int64s
from gputree.compilation import PREFETCH_ROWS, borrowing, kernel, prefetch

# Blocks of more rows than this need 64-bit keys: ranks and indices exceed 16 bits.
MANY_ROWS = 0xFFFF
# Maximum number of rows of the nodes that share a block, which one call loads and one grows.
BLOCK_ROWS = 1 << 12


class Block(NamedTuple):
    """Scratch of one worker, for nodes of up to m rows together."""

    order: NDArray  # (d, m) uint32 or uint64 keys
    distinct: NDArray  # (d, m) float64: values by rank, from the first place of each node
    spill: NDArray  # (m,) like order
    rows: NDArray  # (m,) like entries: by index
    local: NDArray  # (m,) int32: indices in the local order of the subtree
    local_spill: NDArray  # (m,) int32
    target: NDArray  # (m,) int64
    weight: NDArray  # (m,) int64
    left_side: NDArray  # (m,) uint8: the row goes left
    columns: NDArray  # (d,) int64: the active columns come first
    two_valued: NDArray  # (d,) bool: the column has two distinct values in the whole table
    drawn: NDArray  # (d,) int64
    channels: NDArray  # (m,) int64: statistics that the classes of a node need
    plain: bool  # all columns may be cut at any value; none is nominal, monotonic or drawn


class Sorting(NamedTuple):
    """Scratch of sorting a column of a node of up to m rows."""

    values: NDArray  # (m,) values of one column
    items: NDArray  # (m,) int32, the indices of their rows
    codes: NDArray  # (d, m) uint8: codes, column by column
    class_of: NDArray  # (n_classes,) int32: number of a class in the node, -1 if it has no weight


def new_sorting(table: Table, task: Task, m: int) -> Sorting:
    """Scratch to sort columns of up to m rows of the table."""
    return Sorting(
        values=np.empty(m, table.values.dtype),
        items=np.empty(m, np.int32),
        codes=np.empty((table.codes.shape[1] if len(table.codes) else 0, m), CODE),
        class_of=np.full(task.n_classes, -1, np.int32),
    )


def block_bytes(table: Table, m: int) -> int:
    """Bytes of `Block.order` and `Block.distinct`, the sorted columns of m rows of the table."""
    key = 4 if m < MANY_ROWS else 8
    return table.values.shape[1] * m * (key + 8)


def block_rows(table: Table, sizes: Int64s) -> int:
    """Rows of a block for nodes of `sizes` rows: of one of them, or of as many as share it."""
    most = int(sizes.max())
    fit = tuning.TUNING.block_bytes // block_bytes(table, 1)
    return max(most, min(int(sizes.sum()), BLOCK_ROWS, fit))


def new_block(table: Table, task: Task, m: int, row_dtype: np.dtype) -> Block:
    """Scratch for nodes of up to m rows of the table together."""
    d = table.values.shape[1]
    all_columns = task.limits.monotonic is None and task.limits.max_features >= d
    all_columns = all_columns and task.interactions is None
    key = np.uint32 if m < MANY_ROWS else np.uint64
    return Block(
        order=np.empty((d, m), key),
        distinct=np.empty((d, m)),
        spill=np.empty(m, key),
        rows=np.empty(m, row_dtype),
        local=np.empty(m, np.int32),
        local_spill=np.empty(m, np.int32),
        target=np.empty(m, np.int64),
        weight=np.empty(m if task.rows.weight is not None else 0, np.int64),
        left_side=np.empty(m, np.uint8),
        columns=np.empty(d, np.int64),
        two_valued=table.by_code & (np.diff(table.offset) - table.missing == 2),
        drawn=np.empty(d, np.int64),
        channels=np.empty(m, np.int64),
        plain=bool(all_columns and not table.categories.any()),
    )


def share_blocks(sizes: Int64s, rows: int) -> Iterator[tuple[int, int]]:
    """Spans of nodes, of `sizes` rows each, that share a block of `rows` rows."""
    ends = np.cumsum(sizes)
    a = 0
    while a < sizes.size:
        before = ends[a] - sizes[a]
        b = max(int(np.searchsorted(ends, before + rows, "right")), a + 1)
        yield a, b
        a = b


@borrowing
def missing_rank(bits):
    """Rank of missing values in keys whose index has `bits` bits: above all others."""
    return 0x7FFFFFFF if bits == 32 else 0xFFFF


@borrowing
def collect_known(source, rows, first, m, f, bits, order, values, items):
    """Copy the known values of column f and their places; missing ones end the node's keys."""
    n_present = np.int64(0)
    end = first + m
    for x in range(first, first + m):
        value = source[rows[x], f]
        if value == value:
            values[n_present] = value
            items[n_present] = x
            n_present += 1
        else:
            end -= 1
            order[f, end] = (missing_rank(bits) << bits) | x
    return n_present


@borrowing
def take_codes(table_codes, rows, first, m, codes):
    """Copy the codes of the node's rows column by column: each row is read once."""
    final = m - 1
    columns = np.uintp(codes.shape[0])
    for i in range(m):
        ahead = rows[first + min(i + PREFETCH_ROWS, final)]
        prefetch(table_codes, ahead, 0)
        prefetch(table_codes, ahead, codes.shape[0] - 1)
        row = rows[first + i]
        for f in range(columns):
            codes[f, i] = table_codes[row, f]


@borrowing
def code_range(codes, f, m):
    """Minimum and maximum code of column f in the node."""
    column = codes[f]
    low = high = column[0]
    for i in range(np.uintp(m)):
        low = min(low, column[i])
        high = max(high, column[i])
    return np.int64(low), np.int64(high)


@borrowing
def count_codes(codes, f, m, low, high, places):
    """Set ``places[code]`` to the first place of each code ``low .. high``, in order of code."""
    for b in range(low, high + 2):
        places[b] = 0
    column = codes[f]
    for i in range(np.uintp(m)):
        places[np.uintp(column[i]) + np.uintp(1)] += 1
    for b in range(low, high + 1):
        places[b + 1] += places[b]


@borrowing
def collect_by_code(source, rows, first, m, f, missing_bin, bits, order, sorting, places):
    """Like `collect_known`, with values in order of their bins.

    `places` has the first place of each bin before, and its end afterwards.
    """
    n_present = np.int64(0)
    values, items, column = sorting.values, sorting.items, sorting.codes[f]
    final = m - 1
    for i in range(m):
        prefetch(source, rows[first + min(i + PREFETCH_ROWS, final)], f)
        x = first + i
        code = np.int64(column[i])
        place = places[code]
        places[code] = place + 1
        if code == missing_bin:
            order[f, first + place] = (missing_rank(bits) << bits) | x
        else:
            values[place] = source[rows[x], f]
            items[place] = x
            n_present += 1
    return n_present


@borrowing
def sort_within_bins(values, items, n_present, low, high, places, sorter):
    """Sort values in order of their bins ``low .. high``; ``places[b]`` is the end of bin b."""
    begin = np.int64(0)
    for b in range(low, high + 1):
        end = min(places[b], n_present)
        if end - begin > 1:
            sort_pairs(values, items, begin, end, sorter)
        begin = end


@borrowing
def rank_values(first, f, bits, order, distinct, values, items, n_present):
    """Turn sorted values into keys of rank and index, and ranks into ``distinct[f]``."""
    rank = np.int64(0)
    before = values[0]
    for i in range(n_present):
        rank += values[i] != before
        before = values[i]
        distinct[f, first + rank] = before
        order[f, first + i] = (rank << bits) | np.int64(items[i])


@borrowing
def sort_codes(codes, first, m, f, low, high, missing_bin, bits, order, places):
    """Fill the node's keys in ``order[f]``: the code, of ``low .. high``, is the rank."""
    column, keys = codes[f], order[f]
    last = high if high != missing_bin else missing_rank(bits)
    if low == high:
        for x in range(np.uintp(first), np.uintp(first + m)):
            keys[x] = (last << bits) | x
    elif high - low == 1:
        split_codes(column, first, m, low, last, bits, keys)
    else:
        count_codes(codes, f, m, low, high, places)
        for i in range(np.uintp(m)):
            code = np.uintp(column[i])
            rank = np.int64(code) if code != missing_bin else missing_rank(bits)
            place = places[code]
            keys[np.uintp(first + place)] = (rank << bits) | (first + np.int64(i))
            places[code] = place + 1


@borrowing
def split_codes(codes, first, m, low, last, bits, keys):
    """Fill the node's keys where two codes occur, of the ranks `low` and `last`."""
    ones = np.int64(0)
    for i in range(np.uintp(m)):
        ones += np.int64(codes[i] != low)
    at_low = np.uintp(first)
    at_high = np.uintp(first + m - ones)
    for i in range(np.uintp(m)):
        x = np.uintp(first) + i
        is_high = np.uintp(codes[i] != low)
        keys[at_high if is_high else at_low] = ((last if is_high else low) << bits) | np.int64(x)
        at_high += is_high
        at_low += np.uintp(1) - is_high


@borrowing
def sort_columns(table, first, m, bits, block, sorting, sorter, places):
    """Sort every column of m rows of the block, through their codes where there are some."""
    offset = table.offset
    rows, order = block.rows, block.order
    values, items, codes = sorting.values, sorting.items, sorting.codes
    coded = codes.shape[0] > 0
    if coded:
        take_codes(table.codes, rows, first, m, codes)
    for f in range(table.missing.size):
        bins = offset[f + 1] - offset[f]
        missing_bin = bins - 1 if table.missing[f] else -1
        if table.by_code[f]:
            low, high = code_range(codes, f, m)
            sort_codes(codes, first, m, f, low, high, missing_bin, bits, order, places)
            continue
        if coded:
            low, high = code_range(codes, f, m)
            count_codes(codes, f, m, low, high, places)
            n_present = collect_by_code(
                table.values, rows, first, m, f, missing_bin, bits, order, sorting, places
            )
            sort_within_bins(values, items, n_present, low, high, places, sorter)
        else:
            n_present = collect_known(table.values, rows, first, m, f, bits, order, values, items)
            sort_pairs(values, items, np.int64(0), n_present, sorter)
        rank_values(first, f, bits, order, block.distinct, values, items, n_present)


@borrowing
def load_rows(targets, weights, entries, begin, first, m, block):
    """Copy the rows of m entries from `begin` on, with their statistics, to the block."""
    weighted = weights.size > 0
    final = begin + m - 1
    for i in range(m):
        prefetch(targets, entries[min(begin + i + PREFETCH_ROWS, final)], 0)
        row = entries[begin + i]
        x = first + i
        block.rows[x] = row
        block.local[x] = x
        block.target[x] = targets[row]
        if weighted:
            block.weight[x] = weights[row]


@borrowing
def number_classes(target, first, m, class_of):
    """Renumber the classes present in a node 0, 1, ... in their order; returns how many."""
    low = high = target[first]
    for i in range(first, first + m):
        k = target[i]
        class_of[k] = 0
        low = min(low, k)
        high = max(high, k)
    present = 0
    for k in range(low, high + 1):
        if class_of[k] >= 0:
            class_of[k] = present
            present += 1
    for i in range(first, first + m):
        target[i] = class_of[target[i]]
    for k in range(low, high + 1):
        class_of[k] = -1
    return present


@kernel
def load_nodes(table, target, weight, entries, nodes, a, b, block, sorting):
    """Load nodes ``a .. b`` into a block, one behind the other, and sort their columns.

    `weight` is empty where all are one; targets are classes, which `sorting` numbers, or sums.
    """
    bits = 8 * block.order.itemsize // 2
    sorter = new_sorter()
    places = np.empty(258, np.int64)
    first = np.int64(0)
    for j in range(a, b):
        m = nodes.end[j] - nodes.begin[j]
        weights = weight[nodes.first_row[j] :]
        targets = target[0 if sorting.class_of.size > 0 else nodes.first_row[j] :]
        load_rows(targets, weights, entries, nodes.begin[j], first, m, block)
        sort_columns(table, first, m, bits, block, sorting, sorter, places)
        channels = 3
        if sorting.class_of.size > 0:
            channels = max(number_classes(block.target, first, m, sorting.class_of), 2)
        block.channels[j - a] = channels
        first += m
