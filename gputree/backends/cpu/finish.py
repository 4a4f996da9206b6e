"""Small nodes are finished: the whole subtree is grown in a block that fits the cache.

Each column of the node is sorted once; then every split partitions the sorted lists
stably, so no column is sorted again:

    order[f]    keys in order of value; a key holds the rank of the value among the
                distinct values of column f, and the local index of the row

        | rank | index |      equal ranks are equal values; missing values come last,
                              with the rank of `missing_rank`

A column that is constant in a node stays so below it, and is left out there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits, Subtrees, Task
from gputree.backends.cpu.draw import child_key, draw_columns
from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.refine import midpoint, precedes
from gputree.backends.cpu.sort import sort_pairs
from gputree.criteria import add_row, begin, gain, is_pure, move, restrict, score


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
        drawn=np.empty(d, np.int64),
        class_of=np.full(task.n_classes, -1, np.int32),
    )


def new_subtrees(sizes: Int64s, depth: Int64s, limits: Limits) -> Subtrees:
    """Room for the nodes of subtrees of `sizes` rows whose roots lie at `depth`."""
    most = 2 * (sizes // max(limits.min_samples_leaf, 1)) + 1
    levels = np.minimum(limits.max_depth - depth, 40)
    room = int(np.minimum(most, (2 << levels) - 1).sum())
    return Subtrees(
        root=np.empty(sizes.size, np.int64),
        first_child=np.empty(room, np.int64),
        feature=np.empty(room, np.int32),
        threshold=np.empty(room),
        missing_left=np.empty(room, np.bool_),
        gain=np.empty(room),
        begin=np.empty(room, np.int64),
        end=np.empty(room, np.int64),
    )


@inner
def index_bits(order):
    """Bits of a key that hold the local index."""
    return 16 if order.itemsize == 4 else 32


@inner
def index_mask(order):
    return 0xFFFF if order.itemsize == 4 else 0xFFFFFFFF


@inner
def missing_rank(order):
    """Rank of missing values: above that of any value."""
    return 0xFFFF if order.itemsize == 4 else 0x7FFFFFFF


@inner
def sort_values(table, rows, m, f, block, stack):
    """Fill ``block.order[f]`` and ``block.distinct[f]`` from the values of the block's m rows."""
    order = block.order[f]
    values = block.values
    items = block.items
    known = 0
    absent = m
    bits = index_bits(block.order)
    for i in range(m):
        value = table.values[rows[i], f]
        if value == value:
            values[known] = value
            items[known] = i
            known += 1
        else:
            absent -= 1
            order[absent] = (missing_rank(block.order) << bits) | i
    sort_pairs(values, items, 0, known, stack)
    rank = -1
    for i in range(known):
        if i == 0 or values[i] != values[i - 1]:
            rank += 1
            block.distinct[f, rank] = values[i]
        order[i] = (rank << bits) | items[i]


@inner
def sort_codes(table, rows, m, f, block, places):
    """Fill ``block.order[f]`` by counting codes: the code is the rank."""
    order = block.order[f]
    bits = index_bits(block.order)
    bins = table.offset[f + 1] - table.offset[f]
    missing = bins - 1 if table.missing[f] else bins
    places[: bins + 1] = 0
    for i in range(m):
        places[np.int64(table.codes[rows[i], f]) + 1] += 1
    for b in range(bins):
        places[b + 1] += places[b]
    for i in range(m):
        code = np.int64(table.codes[rows[i], f])
        rank = code if code < missing else missing_rank(block.order)
        order[places[code]] = (rank << bits) | i
        places[code] += 1


@inner
def load_block(criterion, table, rows, entries, first, last, block):
    """Copy rows ``first .. last`` into the block and sort its columns.

    Classes are renumbered to those present, in their order. Returns their number.
    """
    m = last - first
    for i in range(m):
        row = entries[first + i]
        prefetch(table.values, entries[min(first + i + PREFETCH_ROWS, last - 1)])
        block.rows[i] = row
        block.local[i] = i
        block.target[i] = rows.target[row]
        if rows.weight is not None:
            block.weight[i] = pick(rows.weight, row, 1)
    stack = np.empty((64, 2), np.int64)
    places = np.empty(258, np.int64)
    for f in range(table.values.shape[1]):
        if table.by_code[f]:
            sort_codes(table, block.rows, m, f, block, places)
        else:
            sort_values(table, block.rows, m, f, block, stack)
        block.columns[f] = f
    return number_classes(rows, m, block)


@inner
def number_classes(rows, m, block):
    """Renumber the classes present in the block 0, 1, ... in their order."""
    if rows.square is not None:
        return 1
    low = high = block.target[0]
    for i in range(m):
        k = block.target[i]
        block.class_of[k] = 0
        low = min(low, k)
        high = max(high, k)
    present = 0
    for k in range(low, high + 1):
        if block.class_of[k] >= 0:
            block.class_of[k] = present
            present += 1
    for i in range(m):
        block.target[i] = block.class_of[block.target[i]]
    block.class_of[low : high + 1] = -1
    return present


@inner
def scan_side(criterion, weighted, block, f, s, known, t, missing_left, limits, total, left, whole):
    """Best cut of column f in places ``s .. t``, missing values (``known .. t``) on one side.

    Returns (score, place of the last known entry on the left).
    """
    order = block.order[f]
    bits = index_bits(block.order)
    mask = index_mask(block.order)
    least = limits.min_samples_leaf
    best = -np.inf
    place = -1
    left[:] = 0
    state = begin(criterion, left, total)
    if missing_left:
        for i in range(known, t):
            x = np.int64(order[i]) & mask
            w = block.weight[x] if weighted else 1
            state = move(criterion, state, left, total, block.target[x], w)
    moved = t - known if missing_left else 0
    last = known if (known < t and not missing_left) else known - 1
    following = np.int64(order[s])
    for i in range(s, last):
        key = following
        following = np.int64(order[i + 1])
        x = key & mask
        w = block.weight[x] if weighted else 1
        state = move(criterion, state, left, total, block.target[x], w)
        if key >> bits == following >> bits:
            continue
        n = i + 1 - s + moved
        if n < least or t - s - n < least:
            continue
        if state[0] < limits.min_weight_leaf or whole - state[0] < limits.min_weight_leaf:
            continue
        value = score(criterion, state, left, total)
        if value > best:
            best = value
            place = i
    return best, place


@inner
def known_end(order, s, t):
    """End of the known values among the sorted keys ``s .. t``."""
    bits = index_bits(order)
    absent = missing_rank(order)
    while t > s and np.int64(order[t - 1]) >> bits == absent:
        t -= 1
    return t


@inner
def scan_column(criterion, weighted, block, f, s, t, limits, total, left, whole, cut):
    """The better of `cut` and the best cut of column f; a cut is as in `precedes`."""
    known = known_end(block.order[f], s, t)
    for side in range(2 if known < t else 1):
        value, place = scan_side(
            criterion, weighted, block, f, s, known, t, side == 1, limits, total, left, whole
        )
        found = (value, f, side == 1, place, False, 0.0)
        if place >= 0 and precedes(found, cut):
            cut = found
    return cut


@inner
def is_constant(block, f, s, t):
    """Whether column f has one value in the node, or is missing throughout."""
    order = block.order[f]
    bits = index_bits(block.order)
    return np.int64(order[s]) >> bits == np.int64(order[t - 1]) >> bits


@inner
def best_cut(criterion, weighted, block, active, s, t, limits, total, left, whole, key):
    """Best cut of places ``s .. t``, and how many columns stay active."""
    cut = (-np.inf, 0, False, -1, False, 0.0)
    d = block.columns.size
    drawing = limits.max_features < d
    c = 0
    while c < active:
        f = block.columns[c]
        if is_constant(block, f, s, t):
            active -= 1
            block.columns[c] = block.columns[active]
            block.columns[active] = f
            continue
        c += 1
        if not drawing:
            cut = scan_column(
                criterion, weighted, block, f, s, t, limits, total, left, whole, cut
            )
    if drawing:
        draw_columns(key, block.drawn)
        for c in range(d):
            if c >= limits.max_features and cut[0] > -np.inf:
                break
            f = block.drawn[c]
            for a in range(active):
                if block.columns[a] == f:
                    cut = scan_column(
                        criterion, weighted, block, f, s, t, limits, total, left, whole, cut
                    )
                    break
    return cut, active


@inner
def partition_list(order, spill, left_side, mask, s, t):
    """Stable partition of one sorted list: rows that go left first."""
    to_left = s
    to_spill = 0
    for i in range(s, t):
        key = order[i]
        is_left = np.int64(left_side[np.int64(key) & mask])
        order[to_left] = key
        spill[to_spill] = key
        to_left += is_left
        to_spill += 1 - is_left
    for i in range(to_spill):
        order[to_left + i] = spill[i]


@inner
def partition_rows(block, s, t):
    """Stable partition of the rows themselves. Returns the first place of the right child."""
    to_left = s
    to_spill = 0
    for i in range(s, t):
        x = block.local[i]
        row = block.rows[i]
        is_left = np.int64(block.left_side[x])
        block.local[to_left] = x
        block.rows[to_left] = row
        block.local_spill[to_spill] = x
        block.rows_spill[to_spill] = row
        to_left += is_left
        to_spill += 1 - is_left
    for i in range(to_spill):
        block.local[to_left + i] = block.local_spill[i]
        block.rows[to_left + i] = block.rows_spill[i]
    return to_left


@inner
def mark_sides(block, f, s, t, cut):
    """Mark each row of places ``s .. t`` with its side of the cut."""
    mask = index_mask(block.order)
    order = block.order[f]
    known = known_end(order, s, t)
    for i in range(s, t):
        to_left = i <= cut[3] if i < known else cut[2]
        block.left_side[np.int64(order[i]) & mask] = to_left


@inner
def cut_threshold(table, block, f, place):
    """Threshold after `place` in the sorted list of column f; infinity before missing values."""
    order = block.order[f]
    bits = index_bits(block.order)
    low = np.int64(order[place]) >> bits
    high = np.int64(order[place + 1]) >> bits
    if high == missing_rank(block.order):
        return np.inf
    if table.by_code[f]:
        return midpoint(table.low[f, low], table.high[f, high])
    return midpoint(block.distinct[f, low], block.distinct[f, high])


@inner
def place_total(criterion, weighted, block, s, t, total):
    """Statistics of places ``s .. t``."""
    total[:] = 0
    for i in range(s, t):
        x = block.local[i]
        add_row(criterion, total, 0, block.target[x], block.weight[x] if weighted else 1, 0)


@inner
def block_equal(weighted, block, s, t, total, resolution):
    """Whether every target of places ``s .. t`` equals their mean, within `resolution`."""
    mean = np.float64(total[1]) / np.float64(total[0])
    for i in range(s, t):
        x = block.local[i]
        weight = np.float64(block.weight[x]) if weighted else 1.0
        if abs(np.float64(block.target[x]) - weight * mean) > resolution:
            return False
    return True


@inner
def split_place(criterion, weighted, regression, block, active, s, t, limits, total, left, key):
    """Choose the split of places ``s .. t``: (cut, gain, active columns); score -inf for none."""
    none = (-np.inf, 0, False, -1, False, 0.0)
    place_total(criterion, weighted, block, s, t, total)
    if is_pure(criterion, total):
        return none, 0.0, active
    if regression and block_equal(weighted, block, s, t, total, limits.resolution):
        return none, 0.0, active
    whole = begin(criterion, total, total)[0]
    cut, active = best_cut(
        criterion, weighted, block, active, s, t, limits, total, left, whole, key
    )
    if cut[0] == -np.inf:
        return none, 0.0, active
    decrease = gain(criterion, cut[0], total)
    if decrease * whole < limits.min_decrease:
        return none, 0.0, active
    return cut, decrease, active


@inner
def add_node(out, at, s, t):
    """Append a leaf that holds entries ``s .. t``."""
    out.first_child[at] = -1
    out.feature[at] = -1
    out.threshold[at] = 0.0
    out.missing_left[at] = False
    out.gain[at] = 0.0
    out.begin[at] = s
    out.end[at] = t


@inner
def grow(criterion, table, weighted, regression, block, first, m, depth, key, limits, out, at):
    """Grow the subtree of a loaded block whose root is node `at`; returns the next free node."""
    channels = 3 if regression else criterion.n_classes
    total = np.empty(channels, np.int64)
    left = np.empty(channels, np.int64)
    mask = index_mask(block.order)
    stack = np.empty((m + 1, 3), np.int64)  # node, depth, active columns
    keys = np.empty(m + 1, np.uint64)
    stack[0, 0] = at
    stack[0, 1] = depth
    stack[0, 2] = block.columns.size
    keys[0] = key
    size = 1
    free = at + 1
    while size > 0:
        size -= 1
        node = stack[size, 0]
        level = stack[size, 1]
        active = stack[size, 2]
        node_key = keys[size]
        s = out.begin[node] - first
        t = out.end[node] - first
        if level >= limits.max_depth or t - s < limits.min_samples_split:
            continue
        if t - s < 2 * limits.min_samples_leaf:
            continue
        cut, decrease, active = split_place(
            criterion, weighted, regression, block, active, s, t, limits, total, left, node_key
        )
        if cut[0] == -np.inf:
            continue
        f = cut[1]
        out.first_child[node] = free
        out.feature[node] = f
        out.threshold[node] = cut_threshold(table, block, f, cut[3])
        out.gain[node] = decrease
        seen_missing = known_end(block.order[f], s, t) < t
        mark_sides(block, f, s, t, cut)
        middle = partition_rows(block, s, t)
        out.missing_left[node] = cut[2] if seen_missing else middle - s > t - middle
        least = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        if level + 1 < limits.max_depth and max(middle - s, t - middle) >= least:
            for c in range(active):
                if block.columns[c] != f or cut[2]:
                    order = block.order[block.columns[c]]
                    partition_list(order, block.spill, block.left_side, mask, s, t)
        add_node(out, free, first + s, first + middle)
        add_node(out, free + 1, first + middle, first + t)
        for side in range(2):
            stack[size, 0] = free + side
            stack[size, 1] = level + 1
            stack[size, 2] = active
            keys[size] = child_key(node_key, side)
            size += 1
        free += 2
    return free


@kernel
def finish_nodes(
    criterion, table, rows, entries, begins, ends, depths, keys, limits, block, out
):  # fmt: skip
    """Grow the subtrees of all nodes given; entries end in leaf order. Returns the nodes made."""
    free = 0
    for j in range(begins.size):
        s = begins[j]
        m = ends[j] - s
        present = load_block(criterion, table, rows, entries, s, ends[j], block)
        out.root[j] = free
        add_node(out, free, s, ends[j])
        free = grow(
            restrict(criterion, present), table, rows.weight is not None, rows.square is not None,
            block, s, m, depths[j], keys[j], limits, out, free,
        )  # fmt: skip
        entries[s : ends[j]] = block.rows[:m]
    return free
