"""Small nodes are finished: their whole subtrees are grown in a block that fits the cache.

Each column of the node is sorted once (see `gputree.backends.cpu.block`); then every
split partitions the sorted columns stably, so no column is sorted again. A column that
is constant in a node stays so below it, and is left out there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Limits, Subtrees, Task
from gputree.backends.cpu import block as blocks
from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.categories import new_scratch
from gputree.backends.cpu.cut import no_cut
from gputree.backends.cpu.draw import draw_columns
from gputree.backends.cpu.finish_categories import mark_categories, scan_categories
from gputree.backends.cpu.finish_chain import add_leaf, grow_chain
from gputree.backends.cpu.finish_scan import cut_pair, known_end, scan_column
from gputree.backends.cpu.jit import kernel, lent, pasted
from gputree.backends.cpu.layout import BinEnds, Rows, Table
from gputree.backends.cpu.monotonic import at_place, new_stack, push_bounds, put_bounds
from gputree.backends.cpu.refine import narrow
from gputree.backends.rules import fewest_rows, midpoint, missing_goes_left
from gputree.criteria import add_row, begin, gain, is_pure, restrict, row_by_row
from gputree.hashing import child_key


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


@lent
def is_constant(order, f, bits, s, t):
    """Whether column f has one value in the node, or is missing throughout."""
    return np.int64(order[f, s]) >> bits == np.int64(order[f, t - 1]) >> bits


@lent
def drop_constants(order, bits, columns, active, s, t):
    """Move the columns that are constant in the node behind the active; returns these's number."""
    c = 0
    while c < active:
        f = columns[c]
        if is_constant(order, f, bits, s, t):
            active -= 1
            columns[c] = columns[active]
            columns[active] = f
        else:
            c += 1
    return active


@lent
def is_active(columns, active, f):
    """Whether f is among the first `active` columns."""
    for a in range(active):
        if columns[a] == f:
            return True
    return False


@pasted
def best_cut(
    criterion, order, bits, two_valued, target, weight, weighted, scratch, columns, active, drawn,
    s, t, limits, total, left, whole, start, key,
):  # fmt: skip
    """Best cut of places ``s .. t`` over the active columns, or over those drawn among all."""
    cut = no_cut()
    drawing = limits.max_features < columns.size
    visits = columns.size if drawing else active
    if drawing:
        draw_columns(key, drawn)
    for c in range(visits):
        f = columns[c]
        if drawing:
            if c >= limits.max_features and cut[0] > -np.inf:
                break
            f = drawn[c]
            if not is_active(columns, active, f):
                continue
        nominal, cut = scan_categories(
            scratch, criterion, limits, order, f, bits, target, weight, s, t, total, cut
        )
        if nominal:
            continue
        cut = scan_column(
            criterion, order, f, bits, two_valued[f], target, weight, weighted, s, t, limits, total,
            left, whole, start, cut,
        )  # fmt: skip
    return cut


@lent
def partition_column(order, f, bits, spill, left_side, s, t):
    """Stable partition of one sorted column: rows that go left first."""
    one = np.uintp(1)
    mask = (one << np.uintp(bits)) - one
    keys = order[f]
    to_left = np.uintp(s)
    to_spill = np.uintp(0)
    for i in range(np.uintp(s), np.uintp(t)):
        key = keys[i]
        is_left = np.uintp(left_side[np.uintp(key) & mask])
        keys[to_left] = key
        spill[to_spill] = key
        to_left += is_left
        to_spill += one - is_left
    for i in range(to_spill):
        keys[to_left + i] = spill[i]


@lent
def keep_side(order, f, bits, left_side, side, s, t):
    """As `partition_column` for the rows of one side; the places of the others hold anything."""
    one = np.uintp(1)
    mask = (one << np.uintp(bits)) - one
    keys = order[f]
    if side == 1:
        to = np.uintp(s)
        for i in range(np.uintp(s), np.uintp(t)):
            key = keys[i]
            keys[to] = key
            to += np.uintp(left_side[np.uintp(key) & mask])
        return
    to = final = np.uintp(t) - one
    for i in range(np.uintp(t - s)):
        key = keys[final - i]
        keys[to] = key
        to -= one - np.uintp(left_side[np.uintp(key) & mask])


@lent
def partition_rows(rows, local, rows_spill, local_spill, left_side, s, t):
    """Stable partition of the rows themselves. Returns the first place of the right child."""
    to_left = s
    to_spill = 0
    for i in range(s, t):
        x = local[i]
        row = rows[i]
        is_left = np.int64(left_side[x])
        local[to_left] = x
        rows[to_left] = row
        local_spill[to_spill] = x
        rows_spill[to_spill] = row
        to_left += is_left
        to_spill += 1 - is_left
    for i in range(to_spill):
        local[to_left + i] = local_spill[i]
        rows[to_left + i] = rows_spill[i]
    return to_left


@lent
def mark_sides(order, f, bits, s, known, t, place, missing_left, left_side):
    """Mark each row of places ``s .. t`` with its side of the cut after `place`."""
    mask = (1 << bits) - 1
    for i in range(s, t):
        to_left = i <= place if i < known else missing_left
        left_side[np.int64(order[f, i]) & mask] = to_left


@lent
def cut_threshold(bin_ends, order, distinct, f, bits, first, place):
    """Threshold after `place` in the sorted list of column f; infinity before missing values.

    Values by rank stand from place `first` on.
    """
    low = np.int64(order[f, place]) >> bits
    high = np.int64(order[f, place + 1]) >> bits
    if high == missing_rank(bits):
        return np.inf
    if bin_ends.by_code[f]:
        return midpoint(bin_ends.greatest[f, low], bin_ends.least[f, high])
    return midpoint(distinct[f, first + low], distinct[f, first + high])


@lent
def place_total(criterion, local, target, weight, weighted, s, t, total):
    """Statistics of places ``s .. t``."""
    for k in range(total.size):
        total[k] = 0
    for i in range(s, t):
        x = local[i]
        add_row(criterion, total, 0, target[x], weight[x] if weighted else 1, 0)


@lent
def places_equal(local, target, weight, weighted, s, t, rounded):
    """Whether one target may stand for all places ``s .. t``."""
    interval = (-np.inf, np.inf)
    for i in range(s, t):
        x = local[i]
        interval = narrow(interval, target[x], weight[x] if weighted else 1, rounded)
        if interval[0] > interval[1]:
            return False
    return True


@pasted
def find_split(
    criterion, regression, weighted, scratch, block, bits, active, s, t, limits, total, left, key
):
    """The cut of places ``s .. t`` and its gain; score -inf if the node stays a leaf."""
    place_total(criterion, block.local, block.target, block.weight, weighted, s, t, total)
    if is_pure(criterion, total):
        return no_cut(), 0.0
    if regression and places_equal(
        block.local, block.target, block.weight, weighted, s, t, limits.rounded
    ):
        return no_cut(), 0.0
    whole = begin(criterion, total, total)[0]
    for k in range(left.size):
        left[k] = 0
    start = begin(criterion, left, total)
    cut, found = no_cut(), False
    if t - s == 2 and block.plain:
        found, cut = cut_pair(
            criterion, block.order, bits, block.target, block.weight, weighted, s, limits, total,
            left, whole, start,
        )  # fmt: skip
    if not found:
        cut = best_cut(
            criterion, block.order, bits, block.two_valued, block.target, block.weight, weighted,
            scratch, block.columns, active, block.drawn, s, t, limits, total, left, whole, start,
            key,
        )  # fmt: skip
    if cut[0] == -np.inf:
        return cut, 0.0
    decrease = gain(criterion, cut[0], total)
    if decrease * whole < limits.min_decrease:
        return no_cut(), 0.0
    return cut, decrease


@lent
def may_split(regression, block, s, t, least):
    """Whether places ``s .. t`` may become more than a leaf: as many as `least`, of two classes."""
    if t - s < least:
        return False
    if regression:
        return True
    target = block.target
    first = target[block.local[s]]
    for i in range(s + 1, t):
        if target[block.local[i]] != first:
            return True
    return False


@lent
def split_block(
    criterion, regression, scratch, block, bits, active, s, t, known, total, cut, further
):
    """Partition places ``s .. t`` at a cut, and the columns of children that may split `further`.

    Returns the first place on the right, and whether the left and the right child may split.
    """
    f, missing_left = cut[1], cut[2]
    nominal = mark_categories(
        scratch, criterion, block.order, bits, block.target, block.weight, s, t, total, cut,
        block.left_side,
    )  # fmt: skip
    if not nominal:
        mark_sides(block.order, f, bits, s, known, t, cut[3], missing_left, block.left_side)
    middle = partition_rows(
        block.rows, block.local, block.rows_spill, block.local_spill, block.left_side, s, t
    )
    left = may_split(regression, block, s, middle, further)
    right = may_split(regression, block, middle, t, further)
    for c in range(active if left or right else 0):
        column = block.columns[c]
        if column == f and not missing_left and not nominal:
            continue  # in order as it is
        if left and right:
            partition_column(block.order, column, bits, block.spill, block.left_side, s, t)
        else:
            keep_side(block.order, column, bits, block.left_side, np.int64(left), s, t)
    return middle, left, right


@lent
def grow(
    criterion, bin_ends, weighted, regression, scratch, block, bits, first, begin_, m, depth, key,
    limits, out, at, stack, keys, bounds, total, left,
):  # fmt: skip
    """Grow the subtree of a loaded node whose root is `at`; returns the next free node.

    Its m rows are entries from `begin_` on, and lie in the block from `first` on. Scratch: nodes
    that wait (node, depth, active columns), their keys and bounds; statistics twice.
    """
    least = fewest_rows(limits)
    for f in range(block.columns.size):
        block.columns[f] = f
    stack[0, 0] = at
    stack[0, 1] = depth
    stack[0, 2] = block.columns.size
    keys[0] = key
    size = 1
    free = at + 1
    shift = begin_ - first
    while size > 0:
        size -= 1
        node = stack[size, 0]
        level = stack[size, 1]
        node_key = keys[size]
        own = at_place(limits.monotonic, limits, bounds, size)
        s = out.begin[node] - shift
        t = out.end[node] - shift
        if level >= limits.max_depth or t - s < least:
            continue
        active = drop_constants(block.order, bits, block.columns, stack[size, 2], s, t)
        if active == 1:
            place_total(criterion, block.local, block.target, block.weight, weighted, s, t, total)
            done, _, level, node_key, node, free = grow_chain(
                scratch, criterion, block, bits, block.columns[0], shift, s, t, level, node_key,
                node, free, limits, least, total, out,
            )  # fmt: skip
            if done > 0:  # the rest is a node like any other
                stack[size, 0] = node
                stack[size, 1] = level
                stack[size, 2] = active
                keys[size] = node_key
                size += 1
                continue
        cut, decrease = find_split(
            criterion, regression, weighted, scratch, block, bits, active, s, t, own, total, left,
            node_key,
        )  # fmt: skip
        if cut[0] == -np.inf:
            continue
        f = cut[1]
        known = known_end(block.order, f, bits, s, t)
        out.first_child[node] = free
        out.feature[node] = f
        if bin_ends.categories[f] == 0:
            out.threshold[node] = cut_threshold(
                bin_ends, block.order, block.distinct, f, bits, first, cut[3]
            )
        out.gain[node] = decrease
        further = least if level + 1 < limits.max_depth else m + 1
        middle, left_splits, right_splits = split_block(
            criterion, regression, scratch, block, bits, active, s, t, known, total, cut, further
        )
        out.missing_left[node] = missing_goes_left(known < t, cut[2], middle - s, t - middle)
        push_bounds(
            own.monotonic, criterion, block, weighted, f, s, middle, total, left, bounds, size
        )
        add_leaf(out, free, shift + s, shift + middle)
        add_leaf(out, free + 1, shift + middle, shift + t)
        for side in range(2):
            splits = right_splits if side == 1 else left_splits
            stack[size, 0] = free + side
            stack[size, 1] = level + 1 if splits else limits.max_depth  # else it stays a leaf
            stack[size, 2] = active
            keys[size] = child_key(node_key, side)
            size += 1
        free += 2
    return free


@kernel
def grow_nodes(
    criterion, bin_ends, weighted, regression, entries, begins, ends, a, b, depths, keys,
    means, limits, scratch, block, out, free,
):  # fmt: skip
    """Grow the subtrees of nodes ``a .. b``, which a block holds; entries end in leaf order.

    `means` are the `Bounds` of the nodes, or None; `free` is the next free node, before and after.
    """
    bits = 8 * block.order.itemsize // 2
    first = np.int64(0)
    most = widest = np.int64(0)
    for j in range(a, b):
        most = max(most, ends[j] - begins[j])
        widest = max(widest, block.channels[j - a])
    total = np.empty(widest, np.int64)  # rows of one array would not be taken for contiguous
    left = np.empty(widest, np.int64)
    stack = np.empty((most + 1, 3), np.int64)
    stacked = np.empty(most + 1, np.uint64)
    bounds = new_stack(limits.monotonic, most + 1)
    for j in range(a, b):
        s = begins[j]
        m = ends[j] - s
        channels = block.channels[j - a]
        out.root[j] = free
        add_leaf(out, free, s, ends[j])
        put_bounds(limits.monotonic, means, j, bounds)
        free = grow(
            restrict(criterion, channels), bin_ends, weighted, regression, scratch, block,
            bits, first, s, m, depths[j], keys[j], limits, out, free + 0, stack, stacked, bounds,
            total[:channels], left[:channels],
        )  # fmt: skip
        for i in range(m):
            entries[s + i] = block.rows[first + i]
        first += m
    return free


def finish_nodes(
    table: Table, task: Task, rows: Rows, entries: NDArray, begin: Int64s, end: Int64s,
    depth: Int64s, keys: NDArray[np.uint64], bounds: Bounds | None,
) -> Subtrees:  # fmt: skip
    """Grow the subtrees of all nodes given; entries end in leaf order."""
    sizes = end - begin
    most, room = int(sizes.max()), min(int(sizes.sum()), blocks.BLOCK_ROWS)
    block = blocks.new_block(table, task, max(most, room), entries.dtype)
    sorting = blocks.new_sorting(table, task, most)
    scratch = new_scratch(table, task, most, sorted_=True)
    out = new_subtrees(sizes, depth, task.limits)
    criterion = row_by_row(task.criterion)
    bin_ends = BinEnds(table.by_code, table.greatest, table.least, table.categories)
    weighted, regression = rows.weight is not None, rows.square is not None
    weight = rows.weight if rows.weight is not None else np.empty(0, np.int64)
    free = 0
    for a, b in blocks.share_blocks(sizes):
        blocks.load_nodes(
            table, rows.target, weight, not regression, entries, begin, end, a, b, block, sorting
        )
        free = grow_nodes(
            criterion, bin_ends, weighted, regression, entries, begin, end, a, b, depth, keys,
            bounds, task.limits, scratch, block, out, free,
        )  # fmt: skip
    return Subtrees._make([out.root, *(field[:free].copy() for field in out[1:])])
