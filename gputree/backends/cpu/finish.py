"""Build the subtrees of small nodes, each in a copy of its rows that fits the cache.

Each column of a node is sorted once (see `gputree.backends.cpu.block`); then every
split partitions the sorted columns stably, so no column is sorted again. A column that
is constant in a node stays so below it, and is left out there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.arithmetic.bits import child_key
from gputree.backends.base import Bounds, Limits, Subtrees, Task, Uint64s
from gputree.backends.binning import fewest_rows, midpoint, missing_goes_left
from gputree.backends.cpu import block as blocks
from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.categories import new_scratch
from gputree.backends.cpu.cut import draw_columns, narrow, no_cut
from gputree.backends.cpu.finish_scan import (
    Scan,
    clear,
    cut_pair,
    is_nominal,
    known_end,
    mark_categories,
    scan_categories,
    scan_column,
    weight_at,
)
from gputree.backends.cpu.layout import BinEnds, EntrySource
from gputree.backends.cpu.monotonic import (
    allowed_on_stack,
    at_place,
    keep_columns,
    new_sets,
    new_stack,
    number_allowed,
    push_bounds,
    push_sets,
    put_bounds,
    put_set,
)
from gputree.base.dtypes import Floats, Int64s
from gputree.compilation import borrowing, inner, kernel, pasted
from gputree.criteria import add_row, begin, gain, is_pure, restrict, row_by_row


class SmallNodes(NamedTuple):
    """m nodes that are grown in blocks."""

    begin: Int64s  # (m,) a node is entries begin[j] .. end[j]
    end: Int64s  # (m,)
    depth: Int64s  # (m,)
    key: Uint64s  # (m,) of random draws
    means: Bounds | None
    first_row: Int64s  # (m,) place of row 0 among weights, and targets of regression, of all trees

    def take(self, chosen: Int64s) -> SmallNodes:
        """Return the given nodes."""
        begin, end, depth, key, means, first_row = self
        numbers = begin[chosen], end[chosen], depth[chosen], key[chosen]
        return SmallNodes(*numbers, means and means.take(chosen), first_row[chosen])


class Growing(NamedTuple):
    """Rules by which every node is grown."""

    criterion: Any
    limits: Limits
    weighted: bool
    regression: bool
    bin_ends: BinEnds | None  # of columns in blocks
    interactions: Any  # `Interactions`, or None


class Root(NamedTuple):
    """A node whose subtree is grown."""

    node: int
    s: int  # first place in the block
    level: int  # depth
    key: int
    free: int  # next free node


class Waiting(NamedTuple):
    """Nodes that are grown later, last in, first out."""

    node: Int64s
    depth: Int64s
    active: Int64s  # columns that are not constant there
    key: Uint64s
    bounds: Floats  # see `new_stack`
    columns: Int64s  # see `new_sets`


def new_subtrees(sizes: Int64s, depth: Int64s, limits: Limits) -> Subtrees:
    """Space for the nodes of subtrees of `sizes` rows whose roots have the given `depth`."""
    most = 2 * (sizes // max(limits.min_samples_leaf, 1)) + 1
    levels = np.minimum(limits.max_depth - depth, 40)
    size = int(np.minimum(most, (2 << levels) - 1).sum())
    return Subtrees(
        root=np.empty(sizes.size, np.int64),
        first_child=np.empty(size, np.int64),
        feature=np.empty(size, np.int32),
        threshold=np.empty(size),
        missing_left=np.empty(size, np.bool_),
        gain=np.empty(size),
        begin=np.empty(size, np.int64),
        end=np.empty(size, np.int64),
    )


@borrowing
def is_constant(order, f, bits, s, t):
    """Return True if column f has one value in the node, or is missing throughout."""
    return np.int64(order[f, s]) >> bits == np.int64(order[f, t - 1]) >> bits


@borrowing
def drop_constants(order, bits, columns, active, s, t):
    """Move columns that are constant in the node behind the active; returns how many remain."""
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


@pasted
def best_cut(scan, scratch, block, active, limits):
    """Best cut of a node over the active columns, or over those drawn among all."""
    cut = no_cut()
    columns, drawn = block.columns, block.drawn
    drawing = limits.max_features < number_allowed(scan.allowed, columns.size)
    visits = number_allowed(scan.allowed, columns.size) if drawing else active
    ready = np.int64(0)  # columns drawn
    for c in range(visits):
        f = columns[c]
        if drawing:
            if c >= limits.max_features and cut.score > -np.inf:
                break
            if c == ready:
                ready = max(limits.max_features, c + 1)
                draw_columns(scan.key, scan.allowed, drawn, c, ready)
            f = drawn[c]
            if is_constant(scan.order, f, scan.bits, scan.s, scan.t):
                continue
        if is_nominal(scratch, f):
            if scratch is not None:
                cut = scan_categories(scratch, scan, limits, f, scan.order[f], cut)
            continue
        cut = scan_column(scan, limits, f, scan.order[f], block.two_valued[f], cut)
    return cut


@borrowing
def partition_keys(keys, bits, spill, left_side, s, t):
    """Stable partition of places ``s .. t``: those that go left first; returns the first behind.

    The last `bits` of a key are its row, whose side is in `left_side`.
    """
    one = np.uintp(1)
    mask = (one << np.uintp(bits)) - one
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
    return np.int64(to_left)


@borrowing
def keep_side(order, f, bits, left_side, side, s, t):
    """Like `partition_keys` of a column for one side; the places of the other become undefined."""
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


@borrowing
def mark_sides(order, f, bits, s, first_missing, t, place, missing_left, left_side):
    """Mark each row of places ``s .. t`` with its side of the cut after `place`."""
    mask = (1 << bits) - 1
    for i in range(s, t):
        to_left = i <= place if i < first_missing else missing_left
        left_side[np.int64(order[f, i]) & mask] = to_left


@borrowing
def cut_threshold(bin_ends, distinct, f, missing, low, high):
    """Threshold of column f between the ranks `low` and `high`; infinity if `high` is `missing`.

    `distinct` has the node's values by rank, `missing` is the rank of missing values.
    """
    if high == missing:
        return np.inf
    if bin_ends.by_code[f]:
        return midpoint(bin_ends.highest[f, low], bin_ends.lowest[f, high])
    return midpoint(distinct[low], distinct[high])


@borrowing
def mark_rows(scan, scratch, block, cut):
    """Mark each row of a node with its side of a cut.

    Returns the ranks on both sides of a threshold, and the number of missing values.
    """
    f, bits, s, t = cut.column, scan.bits, scan.s, scan.t
    first_missing = known_end(block.order[f], bits, s, t)
    if is_nominal(scratch, f):
        if scratch is not None:
            mark_categories(scratch, scan, block.order[f], cut, block.left_side)
        return np.int64(0), np.int64(0), t - first_missing
    mark_sides(
        block.order, f, bits, s, first_missing, t, cut.place, cut.missing_left, block.left_side
    )
    low = np.int64(block.order[f, cut.place]) >> bits
    return low, np.int64(block.order[f, cut.place + 1]) >> bits, t - first_missing


@borrowing
def place_total(criterion, block, weighted, s, t, total):
    """Statistics of places ``s .. t``."""
    clear(total)
    for i in range(np.uintp(s), np.uintp(t)):
        x = np.uintp(block.local[i])
        add_row(criterion, total, 0, block.target[x], block.weight[x] if weighted else 1, 0)


@borrowing
def places_equal(scan, local, rounded):
    """Return True if all rows of a node may have one target, from which theirs were rounded.

    The rows are places ``s .. t`` of a scan, or the indices that `local` has there.
    """
    interval = (-np.inf, np.inf)
    for i in range(scan.s, scan.t):
        x = i if local is None else local[i]
        interval = narrow(interval, scan.target[x], weight_at(scan, x), rounded)
        if interval[0] > interval[1]:
            return False
    return True


@pasted
def find_split(rules, scan, scratch, block, active, limits):
    """The cut of a node, its gain and active columns; score -inf if the node stays a leaf."""
    if is_pure(scan.criterion, scan.total):
        return no_cut(), 0.0, active
    if rules.regression and places_equal(scan, block.local, limits.rounded):
        return no_cut(), 0.0, active
    cut, found = no_cut(), False
    active = keep_columns(scan.allowed, block.columns, None, active)
    active = drop_constants(block.order, scan.bits, block.columns, active, scan.s, scan.t)
    if scan.t - scan.s == 2 and block.plain:
        found, cut = cut_pair(scan, limits)
    if not found:
        cut = best_cut(scan, scratch, block, active, limits)
    if cut.score == -np.inf:
        return cut, 0.0, active
    decrease = gain(scan.criterion, cut.score, scan.total)
    if decrease * scan.whole < limits.min_decrease:
        return no_cut(), 0.0, active
    return cut, decrease, active


@borrowing
def may_split(regression, block, s, t, min_rows):
    """Return True if places ``s .. t`` may be split: at least `min_rows` rows, and two classes."""
    if t - s < min_rows:
        return False
    if regression:
        return True
    target = block.target
    first = target[block.local[s]]
    for i in range(s + 1, t):
        if target[block.local[i]] != first:
            return True
    return False


@borrowing
def split_block(rules, block, bits, s, t, active, in_order, further):
    """Partition a node's rows by their sides; and its columns, for children that may be split.

    Children of at least `further` rows may be. The first `active` columns are partitioned, except
    `in_order`, which is sorted in both children already. Returns the first place on the right,
    whether the left child may be split, and whether the right one may.
    """
    middle = partition_keys(block.local, bits, block.local_spill, block.left_side, s, t)
    left = may_split(rules.regression, block, s, middle, further)
    right = may_split(rules.regression, block, middle, t, further)
    for c in range(active if left or right else 0):
        column = block.columns[c]
        if column == in_order:
            continue
        if left and right:
            partition_keys(block.order[column], bits, block.spill, block.left_side, s, t)
        else:
            keep_side(block.order, column, bits, block.left_side, np.int64(left), s, t)
    return middle, left, right


@borrowing
def add_leaf(out, node, s, t):
    """Append a leaf of the entries ``s .. t``."""
    out.first_child[node] = -1
    out.feature[node] = -1
    out.threshold[node] = 0.0
    out.missing_left[node] = False
    out.gain[node] = 0.0
    out.begin[node] = s
    out.end[node] = t


@borrowing
def split_leaf(out, node, free, cut, decrease, threshold, missing, middle):
    """Split a leaf at entry `middle`; its children are leaves, the next `free` nodes."""
    s, t = out.begin[node], out.end[node]
    out.first_child[node] = free
    out.feature[node] = cut.column
    out.gain[node] = decrease
    out.threshold[node] = threshold
    out.missing_left[node] = missing_goes_left(missing, cut.missing_left, middle - s, t - middle)
    add_leaf(out, free, s, middle)
    add_leaf(out, free + 1, middle, t)


@inner
def new_waiting(rules, most):
    """Scratch for `most` nodes that wait."""
    return Waiting(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
        new_stack(rules.limits.monotonic, most),
        new_sets(rules.interactions, most),
    )


@pasted
def wait(waiting, place, node, level, active, key):
    """Push a node on the stack of waiting nodes."""
    waiting.node[place] = node
    waiting.depth[place] = level
    waiting.active[place] = active
    waiting.key[place] = key


@borrowing
def grow(rules, criterion, scratch, block, root, m, waiting, total, left, out):
    """Grow the subtree of a loaded node of m rows; returns the next free node.

    Its first place in the block is ``root.s``. Scratch are the statistics `total` and `left`.
    """
    limits, weighted = rules.limits, rules.weighted
    bits = 8 * block.order.itemsize // 2
    min_rows = fewest_rows(limits)
    first = root.s
    shift = out.begin[root.node] - first
    for f in range(block.columns.size):
        block.columns[f] = f
    wait(waiting, 0, root.node, root.level, block.columns.size, root.key)
    size = 1
    free = root.free
    # Nodes below `free` have their places, s .. t, in which every active column is sorted; the
    # `size` on the stack may still be split.
    while size > 0:
        # In a node that waits, the first of `block.columns` are those that may be cut.
        size -= 1
        node, level, key = waiting.node[size], waiting.depth[size], waiting.key[size]
        bounded = at_place(limits.monotonic, limits, waiting.bounds, size)
        allowed = allowed_on_stack(rules.interactions, waiting.columns, size)
        s = out.begin[node] - shift
        t = out.end[node] - shift
        if level >= limits.max_depth or t - s < min_rows:
            continue
        place_total(criterion, block, weighted, s, t, total)
        clear(left)
        scan = Scan(
            criterion, weighted, block.order, bits, block.target, block.weight, s, t, total, left,
            begin(criterion, total, total)[0], begin(criterion, left, total), key, allowed,
        )  # fmt: skip
        cut, decrease, active = find_split(
            rules, scan, scratch, block, waiting.active[size], bounded
        )
        if cut.score == -np.inf:
            continue
        f = cut.column
        nominal = rules.bin_ends.categories[f] > 0
        low, high, missing = mark_rows(scan, scratch, block, cut)
        threshold = 0.0
        if not nominal:
            threshold = cut_threshold(
                rules.bin_ends, block.distinct[f, first:], f, missing_rank(bits), low, high
            )
        further = min_rows if level + 1 < limits.max_depth else m + 1
        middle, left_splits, right_splits = split_block(
            rules, block, bits, s, t, active,
            f if not (nominal or cut.missing_left) else -1, further,
        )  # fmt: skip
        split_leaf(out, node, free, cut, decrease, threshold, missing > 0, shift + middle)
        stack = waiting.bounds
        push_bounds(
            bounded.monotonic, criterion, block, weighted, f, s, middle, total, left, stack, size
        )
        push_sets(allowed, f, waiting.columns, size)
        for side in range(2):
            splits = right_splits if side == 1 else left_splits
            below = level + 1 if splits else limits.max_depth  # else it stays a leaf
            wait(waiting, size, free + side, below, active, child_key(key, side))
            size += 1
        free += 2
    return free


@kernel
def grow_nodes(rules, entries, nodes, a, b, scratch, block, out, free):
    """Grow the subtrees of nodes ``a .. b`` of a block; entries end in leaf order.

    `free` is the next free node, before and after.
    """
    first = np.int64(0)
    most = widest = np.int64(0)
    for j in range(a, b):
        most = max(most, nodes.end[j] - nodes.begin[j])
        widest = max(widest, block.channels[j - a])
    waiting = new_waiting(rules, most + 1)
    total = np.empty(widest, np.int64)  # rows of one array would not be taken for contiguous
    left = np.empty(widest, np.int64)
    # The subtrees of nodes a .. j are grown, up to node `free`; node j begins at place `first`.
    for j in range(a, b):
        s = nodes.begin[j]
        m = nodes.end[j] - s
        channels = block.channels[j - a]
        out.root[j] = free
        add_leaf(out, free, s, nodes.end[j])
        put_bounds(rules.limits.monotonic, nodes.means, j, waiting.bounds)
        put_set(rules.interactions, nodes.means, j, waiting.columns)
        root = Root(free + 0, first, nodes.depth[j], nodes.key[j], free + 1)
        restricted, sums = restrict(rules.criterion, channels), total[:channels]
        free = grow(rules, restricted, scratch, block, root, m, waiting, sums, left[:channels], out)
        for i in range(m):
            entries[s + i] = block.rows[block.local[first + i]]
        first += m
    return free


def finish_nodes(source: EntrySource, task: Task, nodes: SmallNodes) -> Subtrees:
    """Grow the subtrees of all nodes given; entries end in leaf order."""
    table, rows, entries = source
    sizes = nodes.end - nodes.begin
    most, block_rows = int(sizes.max()), blocks.block_rows(table, sizes)
    block = blocks.new_block(table, task, block_rows, entries.dtype)
    sorting = blocks.new_sorting(table, task, most)
    scratch = new_scratch(table, task, most, sorted_=True)
    out = new_subtrees(sizes, nodes.depth, task.limits)
    rules = Growing(
        criterion=row_by_row(task.criterion),
        limits=task.limits,
        weighted=rows.weight is not None,
        regression=rows.square is not None,
        bin_ends=BinEnds(table.by_code, table.highest, table.lowest, table.categories),
        interactions=task.interactions,
    )
    weight = rows.weight if rows.weight is not None else np.empty(0, np.int64)
    given = table, rows.target, weight, entries, nodes._replace(means=None)
    free = 0
    for a, b in blocks.share_blocks(sizes, block_rows):
        blocks.load_nodes(*given, a, b, block, sorting)
        free = grow_nodes(rules, entries, nodes, a, b, scratch, block, out, free)
    return Subtrees._make([out.root, *(field[:free] for field in out[1:])])
