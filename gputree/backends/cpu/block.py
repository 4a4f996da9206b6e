"""The block that small nodes are finished in: their rows, and their columns sorted once.

    nodes    |    one    |  another  | ... |      side by side, as many as find room

order[f]    keys of each node in order of value; a key holds the rank of the value among the
            distinct values of column f in the node, and the index of the row in the block

    | rank | index |      equal ranks are equal values; missing values come last,
                          with the rank of `missing_rank`

What a block holds is of the same types for every table, so that one kernel loads nodes, of
which there is a form for each kind of table, and another grows them, with a form for each
kind of task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.cpu.jit import inner, kernel, pick
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.sort import INSERTION_PAIRS, insertion_sort, sort_pairs

# Blocks of this many rows need keys of 64 bits: ranks and indices pass 16 bits.
MANY_ROWS = 0xFFFF
# Rows that nodes share a block up to: one call loads them, and one grows them.
BLOCK_ROWS = 1 << 12


class Block(NamedTuple):
    """Scratch of one worker, for nodes of up to m rows together."""

    order: NDArray  # (d, m) uint32 or uint64 keys
    distinct: NDArray  # (d, m) float64: values by rank, from the first place of each node
    spill: NDArray  # (m,) like order
    rows: NDArray  # (m,) like entries: local order of the subtree
    rows_spill: NDArray  # (m,) like entries
    local: NDArray  # (m,) int32: indices in the order of `rows`
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
    class_of: NDArray  # (n_classes,) int32: local number of a class, -1 if absent


def new_sorting(table: Table, task: Task, m: int) -> Sorting:
    """Scratch to sort columns of up to m rows of the table."""
    return Sorting(
        values=np.empty(m, table.values.dtype),
        items=np.empty(m, np.int32),
        class_of=np.full(task.n_classes, -1, np.int32),
    )


def new_block(table: Table, task: Task, m: int, row_dtype: np.dtype) -> Block:
    """Scratch for nodes of up to m rows of the table together."""
    d = table.values.shape[1]
    all_columns = task.limits.monotonic is None and task.limits.max_features >= d
    key = np.uint32 if m < MANY_ROWS else np.uint64
    return Block(
        order=np.empty((d, m), key),
        distinct=np.empty((d, m)),
        spill=np.empty(m, key),
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
        channels=np.empty(m, np.int64),
        plain=bool(all_columns and not table.categories.any()),
    )


def share_blocks(sizes: Int64s) -> Iterator[tuple[int, int]]:
    """Spans of nodes of `sizes` rows that share a block, of `BLOCK_ROWS` or of one larger node."""
    ends = np.cumsum(sizes)
    a = 0
    while a < sizes.size:
        before = ends[a] - sizes[a]
        b = max(int(np.searchsorted(ends, before + BLOCK_ROWS, "right")), a + 1)
        yield a, b
        a = b


@inner
def missing_rank(bits):
    """Rank of missing values in keys that hold the index in so many bits: above all others."""
    return 0xFFFF if bits == 16 else 0x7FFFFFFF


@inner
def collect_known(source, rows, first, m, f, bits, order, values, items):
    """Collect the known values of column f and their places; missing ones end the node's keys."""
    known = np.int64(0)
    absent = first + m
    for x in range(first, first + m):
        value = source[rows[x], f]
        if value == value:
            values[known] = value
            items[known] = x
            known += 1
        else:
            absent -= 1
            order[f, absent] = (missing_rank(bits) << bits) | x
    return known


@inner
def collect_by_code(
    source, codes, rows, first, m, f, bins, missing_bin, bits, order, values, items, places
):
    """As `collect_known`, with values in order of their bins; long bins are sorted."""
    count_codes(codes, rows, first, m, f, bins, places)
    known = m if missing_bin < 0 else places[missing_bin]
    for x in range(first, first + m):
        row = rows[x]
        code = np.int64(codes[row, f])
        place = places[code]
        places[code] = place + 1
        if code == missing_bin:
            order[f, first + place] = (missing_rank(bits) << bits) | x
        else:
            values[place] = source[row, f]
            items[place] = x
    return known


@inner
def count_codes(codes, rows, first, m, f, bins, places):
    """Set ``places[code]`` to the first place of each code in the node, in order of code."""
    for b in range(bins + 1):
        places[b] = 0
    for x in range(first, first + m):
        places[np.int64(codes[rows[x], f]) + 1] += 1
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
def rank_values(first, f, bits, order, distinct, values, items, known):
    """Turn sorted values into keys of rank and index, and ranks into ``distinct[f]``."""
    rank = -1
    for i in range(known):
        if i == 0 or values[i] != values[i - 1]:
            rank += 1
            distinct[f, first + rank] = values[i]
        order[f, first + i] = (rank << bits) | np.int64(items[i])


@inner
def sort_codes(codes, rows, first, m, f, bins, missing_bin, bits, order, places):
    """Fill the node's keys in ``order[f]`` by counting codes: the code is the rank."""
    count_codes(codes, rows, first, m, f, bins, places)
    for x in range(first, first + m):
        code = np.int64(codes[rows[x], f])
        rank = code if code != missing_bin else missing_rank(bits)
        order[f, first + places[code]] = (rank << bits) | x
        places[code] += 1


@inner
def sort_columns(table, first, m, bits, block, sorting, stack, places):
    """Sort every column of m rows of the block, through their codes where there are some."""
    offset = table.offset
    rows, order = block.rows, block.order
    values, items = sorting.values, sorting.items
    coded = table.codes.shape[0] > 0
    for f in range(table.missing.size):
        bins = offset[f + 1] - offset[f]
        missing_bin = bins - 1 if table.missing[f] else -1
        if table.by_code[f]:
            sort_codes(table.codes, rows, first, m, f, bins, missing_bin, bits, order, places)
            continue
        if coded:
            known = collect_by_code(
                table.values, table.codes, rows, first, m, f, bins, missing_bin, bits, order,
                values, items, places,
            )  # fmt: skip
            sort_within_bins(values, items, known, bins, places, stack)
        else:
            known = collect_known(table.values, rows, first, m, f, bits, order, values, items)
            sort_pairs(values, items, np.int64(0), known, stack)
        rank_values(first, f, bits, order, block.distinct, values, items, known)


@inner
def load_rows(targets, weights, entries, begin, first, m, block):
    """Copy the rows of m entries from `begin` on, with their statistics, to the block."""
    weighted = weights is not None
    for i in range(m):
        row = entries[begin + i]
        x = first + i
        block.rows[x] = row
        block.local[x] = x
        block.target[x] = targets[row]
        if weighted:
            block.weight[x] = pick(weights, row, 1)


@inner
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
def load_nodes(table, rows, entries, begins, ends, a, b, block, sorting):
    """Load nodes ``a .. b`` into a block, one behind the other, and sort their columns."""
    bits = 8 * block.order.itemsize // 2
    stack = np.empty((64, 2), np.int64)
    places = np.empty(258, np.int64)
    first = np.int64(0)
    for j in range(a, b):
        m = ends[j] - begins[j]
        load_rows(rows.target, rows.weight, entries, begins[j], first, m, block)
        sort_columns(table, first, m, bits, block, sorting, stack, places)
        channels = 3
        if rows.square is None:
            channels = max(number_classes(block.target, first, m, sorting.class_of), 2)
        block.channels[j - a] = channels
        first += m
