"""Small nodes are finished: the whole subtree is grown in a block that fits the cache.

Each column of the node is sorted once (see `gputree.backends.cpu.block`); then every
split partitions the sorted columns stably, so no column is sorted again. A column that
is constant in a node stays so below it, and is left out there.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.base import Int64s, Limits, Subtrees
from gputree.backends.cpu.block import load_rows, missing_rank, number_classes, sort_columns
from gputree.backends.cpu.draw import child_key, draw_columns
from gputree.backends.cpu.jit import inner, kernel, once
from gputree.backends.cpu.refine import midpoint, narrow, new_cut, no_cut, precedes
from gputree.criteria import add_row, begin, gain, is_pure, move, restrict, score


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
def scan_side(
    criterion, order, f, bits, target, weight, weighted, s, known, t, missing_left, limits, total,
    left, whole,
):  # fmt: skip
    """Best cut of column f in places ``s .. t``, missing values (``known .. t``) on one side.

    Returns (score, place of the last known entry on the left).
    """
    mask = (1 << bits) - 1
    least = limits.min_samples_leaf
    best = -np.inf
    place = np.int64(-1)
    for k in range(left.size):
        left[k] = 0
    state = begin(criterion, left, total)
    if missing_left:
        for i in range(known, t):
            x = np.int64(order[f, i]) & mask
            state = move(criterion, state, left, total, target[x], weight[x] if weighted else 1)
    moved = t - known if missing_left else 0
    last = known if (known < t and not missing_left) else known - 1
    following = np.int64(order[f, s])
    for i in range(s, last):
        key = following
        following = np.int64(order[f, i + 1])
        x = key & mask
        state = move(criterion, state, left, total, target[x], weight[x] if weighted else 1)
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
def known_end(order, f, bits, s, t):
    """End of the known values among the sorted keys ``s .. t`` of column f."""
    absent = missing_rank(bits)
    while t > s and np.int64(order[f, t - 1]) >> bits == absent:
        t -= 1
    return t


@inner
def scan_two_values(
    criterion, order, f, bits, target, weight, weighted, s, t, limits, total, left, whole
):
    """As `scan_side`, where places ``s .. t`` of column f hold two distinct values, none missing.

    Only the side with fewer rows is summed up; the other is the rest of the node.
    """
    first = np.int64(order[f, s]) >> bits
    low = s
    high = t - 1  # order[low] has the first value, order[high] the second
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(order[f, middle]) >> bits == first:
            low = middle
        else:
            high = middle
    n = high - s
    least = max(limits.min_samples_leaf, 1)
    if n < least or t - s - n < least:
        return -np.inf, np.int64(-1)
    begin_sum, end_sum = (s, high) if n <= t - high else (high, t)
    mask = (1 << bits) - 1
    for k in range(left.size):
        left[k] = 0
    for i in range(begin_sum, end_sum):
        x = np.int64(order[f, i]) & mask
        add_row(criterion, left, 0, target[x], weight[x] if weighted else 1, 0)
    if begin_sum != s:
        for k in range(left.size):
            left[k] = total[k] - left[k]
    state = begin(criterion, left, total)
    if state[0] < limits.min_weight_leaf or whole - state[0] < limits.min_weight_leaf:
        return -np.inf, np.int64(-1)
    return score(criterion, state, left, total), high - 1


@inner
def scan_column(
    criterion, order, f, bits, two_valued, target, weight, weighted, s, t, limits, total, left,
    whole, cut,
):  # fmt: skip
    """The better of `cut` and the best cut of column f; a cut is as in `precedes`."""
    known = known_end(order, f, bits, s, t)
    if two_valued and known == t:
        value, place = scan_two_values(
            criterion, order, f, bits, target, weight, weighted, s, t, limits, total, left, whole
        )
        if place >= 0:
            found = new_cut(value, f, False, place, True, 0.0)
            if precedes(found, cut):
                return found
        return cut
    for side in range(2 if known < t else 1):
        value, place = scan_side(
            criterion, order, f, bits, target, weight, weighted, s, known, t, side == 1, limits,
            total, left, whole,
        )  # fmt: skip
        if place >= 0:
            found = new_cut(value, f, side == 1, place, True, 0.0)
            if precedes(found, cut):
                cut = found
    return cut


@inner
def is_constant(order, f, bits, s, t):
    """Whether column f has one value in the node, or is missing throughout."""
    return np.int64(order[f, s]) >> bits == np.int64(order[f, t - 1]) >> bits


@inner
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


@inner
def is_active(columns, active, f):
    """Whether f is among the first `active` columns."""
    for a in range(active):
        if columns[a] == f:
            return True
    return False


@inner
def best_cut(
    criterion, order, bits, two_valued, target, weight, weighted, columns, active, drawn, s, t,
    limits, total, left, whole, key,
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
        cut = scan_column(
            criterion, order, f, bits, two_valued[f], target, weight, weighted, s, t, limits, total,
            left, whole, cut,
        )  # fmt: skip
    return cut


@inner
def partition_column(order, f, bits, spill, left_side, s, t):
    """Stable partition of one sorted column: rows that go left first."""
    mask = (1 << bits) - 1
    to_left = s
    to_spill = 0
    for i in range(s, t):
        key = order[f, i]
        is_left = np.int64(left_side[np.int64(key) & mask])
        order[f, to_left] = key
        spill[to_spill] = key
        to_left += is_left
        to_spill += 1 - is_left
    for i in range(to_spill):
        order[f, to_left + i] = spill[i]


@inner
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


@inner
def mark_sides(order, f, bits, s, known, t, place, missing_left, left_side):
    """Mark each row of places ``s .. t`` with its side of the cut after `place`."""
    mask = (1 << bits) - 1
    for i in range(s, t):
        to_left = i <= place if i < known else missing_left
        left_side[np.int64(order[f, i]) & mask] = to_left


@inner
def cut_threshold(table, order, distinct, f, bits, place):
    """Threshold after `place` in the sorted list of column f; infinity before missing values."""
    low = np.int64(order[f, place]) >> bits
    high = np.int64(order[f, place + 1]) >> bits
    if high == missing_rank(bits):
        return np.inf
    if table.by_code[f]:
        return midpoint(table.greatest[f, low], table.least[f, high])
    return midpoint(distinct[f, low], distinct[f, high])


@inner
def place_total(criterion, local, target, weight, weighted, s, t, total):
    """Statistics of places ``s .. t``."""
    for k in range(total.size):
        total[k] = 0
    for i in range(s, t):
        x = local[i]
        add_row(criterion, total, 0, target[x], weight[x] if weighted else 1, 0)


@inner
def places_equal(local, target, weight, weighted, s, t, rounded):
    """Whether one target may stand for all places ``s .. t``."""
    interval = (-np.inf, np.inf)
    for i in range(s, t):
        x = local[i]
        interval = narrow(interval, target[x], weight[x] if weighted else 1, rounded)
        if interval[0] > interval[1]:
            return False
    return True


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


@once
def find_split(
    criterion, regression, weighted, block, bits, active, s, t, limits, total, left, key
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
    cut = best_cut(
        criterion, block.order, bits, block.two_valued, block.target, block.weight, weighted,
        block.columns, active, block.drawn, s, t, limits, total, left, whole, key,
    )  # fmt: skip
    if cut[0] == -np.inf:
        return cut, 0.0
    decrease = gain(criterion, cut[0], total)
    if decrease * whole < limits.min_decrease:
        return no_cut(), 0.0
    return cut, decrease


@once
def split_block(block, bits, active, f, s, t, known, place, missing_left, further):
    """Partition places ``s .. t`` at a cut; the columns too where a child may split `further`."""
    mark_sides(block.order, f, bits, s, known, t, place, missing_left, block.left_side)
    middle = partition_rows(
        block.rows, block.local, block.rows_spill, block.local_spill, block.left_side, s, t
    )
    if max(middle - s, t - middle) >= further:
        for c in range(active):
            column = block.columns[c]
            if column != f or missing_left:
                partition_column(block.order, column, bits, block.spill, block.left_side, s, t)
    return middle


@once
def grow(
    criterion, table, channels, weighted, regression, block, bits, first, m, depth, key, limits,
    out, at,
):  # fmt: skip
    """Grow the subtree of a loaded block whose root is node `at`; returns the next free node."""
    total = np.empty(channels, np.int64)
    left = np.empty(channels, np.int64)
    least = max(limits.min_samples_split, 2 * limits.min_samples_leaf, 2)
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
        node_key = keys[size]
        s = out.begin[node] - first
        t = out.end[node] - first
        if level >= limits.max_depth or t - s < least:
            continue
        active = drop_constants(block.order, bits, block.columns, stack[size, 2], s, t)
        cut, decrease = find_split(
            criterion, regression, weighted, block, bits, active, s, t, limits, total, left,
            node_key,
        )  # fmt: skip
        if cut[0] == -np.inf:
            continue
        f = cut[1]
        known = known_end(block.order, f, bits, s, t)
        out.first_child[node] = free
        out.feature[node] = f
        out.threshold[node] = cut_threshold(table, block.order, block.distinct, f, bits, cut[3])
        out.gain[node] = decrease
        further = least if level + 1 < limits.max_depth else m + 1
        middle = split_block(block, bits, active, f, s, t, known, cut[3], cut[2], further)
        out.missing_left[node] = cut[2] if known < t else middle - s > t - middle
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
def finish_nodes(criterion, table, rows, entries, begins, ends, depths, keys, limits, block, out):
    """Grow the subtrees of all nodes given; entries end in leaf order. Returns the nodes made."""
    free = np.int64(0)
    bits = 8 * block.order.itemsize // 2
    stack = np.empty((64, 2), np.int64)
    places = np.empty(258, np.int64)
    for j in range(begins.size):
        s = begins[j]
        m = ends[j] - s
        load_rows(
            rows.target, rows.weight, entries, s, m, block.rows, block.local, block.target,
            block.weight,
        )  # fmt: skip
        sort_columns(table, m, bits, block, stack, places)
        channels = 3
        if rows.square is None:
            channels = number_classes(m, block.target, block.class_of)
        out.root[j] = free
        add_node(out, free, s, ends[j])
        free = grow(
            restrict(criterion, channels), table, channels, rows.weight is not None,
            rows.square is not None,
            block, bits, s, m, depths[j], keys[j], limits, out, free + 0,
        )  # fmt: skip
        for i in range(m):
            entries[s + i] = block.rows[i]
    return free
