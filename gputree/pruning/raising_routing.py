r"""Whole rows below a node, sorted by their leaves, once for all levels.

    nodes below t     |   |  d  |  e  |   |    f    |  g  |       b has d and e, c has f and g
    entries of t      | t | d d | e e | c | f f f f | g g |       one stays at t, and one at c
                          \__ of b __/ \_____ of c _____/

Every node has its range, until a branch is raised: then its range is sorted again.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int32s, Int64s, Values, record
from gputree.compilation import borrowing, inner, kernel
from gputree.compilation.declared import PREFETCH_ROWS, prefetch
from gputree.prediction.descent import DescentTree, follow
from gputree.pruning.error_limit import ErrorLimit, limited_errors

# Bits of a frame's state: its rows came with a raised branch; its entries are sorted and its
# children above it; it is below a branch whose errors are being estimated; its whole rows are
# sorted as well.
MOVED, DONE, ESTIMATED, SORTED = 1, 2, 4, 8

# A node of the tree in its current form. Structured arrays, since a kernel compiles longer for each
# array that it receives.
NODE_STATE = record(
    [
        ("split_of", np.int32),  # the node whose split it has now
        ("carrier", np.int32),  # the node that has its split now; itself unless it was raised
        ("first_child", np.int32),
        ("n_children", np.int32),
        ("n_rows", np.int64),
        ("weight", np.float64),
        ("as_leaf", np.float64),  # limits of the errors: of a leaf in its place,
        ("estimate", np.float64),  # of the subtree as it stands,
        ("stopped", np.float64),  # of the entries that stop at the node,
        ("at_leaves", np.float64),  # and of the whole rows at the leaves below
        ("spreads", np.bool_),  # a missing value goes to all children
        ("refilled", np.bool_),  # its rows came with a raised branch
        ("rows_stay", np.bool_),  # whole rows stay at an inner node of its subtree
        ("settled", np.bool_),  # its subtree is decided without its rows
        ("reached", np.bool_),  # some rows of the current estimate have reached it
        ("begin", np.int64),  # the range of its whole rows,
        ("stay_end", np.int64),  # the first of which stay here,
        ("end", np.int64),  # the others are in the ranges of the children
    ]
)
# A row in a node, its weight there in units, and its class.
ENTRY = record([("units", np.int64), ("row", np.int32), ("label", np.int32)])
# A node on the stack.
FRAME = record(
    [
        ("begin", np.int64),  # the range of its fractional entries
        ("end", np.int64),
        ("free", np.int64),  # the first place that is free behind them
        ("n_stay", np.int64),  # once they are sorted: number that stays,
        ("last_begin", np.int64),  # first place of those of the child with the most,
        ("in_children", np.int64),  # and the units, whole rows included, that go to a child
        ("node", np.int32),
        ("last_child", np.int32),  # the ordinal of that child
        ("above", np.int32),  # the frame of the parent, or NO_FRAME
        ("state", np.int32),
    ]
)


class RaisingRows(NamedTuple):
    """The tree's splits in their current form, and the values of the rows."""

    splits: DescentTree  # of the same types for all trees (`pack_alike`)
    # (n_rows * n_features,): row by row or column by column, as they are in memory
    values: Values
    # from one row, and from one column, to the next
    row_step: int
    column_step: int


class SortScratch(NamedTuple):
    """Buffers to sort one range of up to n entries."""

    ordinal: Int32s  # (n,): the leaf, or the ordinal of the child, that each entry goes to
    entries: NDArray  # (n,): a copy of the range
    place: Int64s  # the next place of the entries of each child, first of entries that stay
    units: Int64s  # (K,)
    weights: Floats  # (K,)
    # (N,): a list of nodes, and the next place of the entries of each node
    nodes: Int32s
    free: Int32s
    before: Int64s  # (N, K): class weights of listed nodes


class Walk(NamedTuple):
    """The tree in its current form, and the rows in it."""

    rows: RaisingRows
    nodes: NDArray  # (N,)
    units: Int64s  # (N, K): class weights of the whole rows of each node, in units
    moved: Int64s  # (N, K): class weights of the fractional entries of refilled nodes
    entries: NDArray  # (n,): the whole rows, sorted by their leaves
    frames: NDArray  # the stack
    scratch: SortScratch
    unit: float
    limit: ErrorLimit
    slack: float  # errors that a replacement may cost


@borrowing
def push(frames: NDArray, n: int, above: int, node: int, begin: int, end: int, free: int) -> int:
    """Push a node with its fractional entries on top of n frames; return the number of frames."""
    frame = frames[n]
    frame.node, frame.begin, frame.end, frame.free = node, begin, end, free
    frame.above, frame.state, frame.n_stay = above, 0, 0
    return n + 1


@inner
def with_capacity(entries: NDArray, end: int, size: int) -> NDArray:
    """Return `entries` if there are `size`, else a longer copy of those before `end`."""
    if size <= entries.size:
        return entries
    longer = np.empty(2 * size, entries.dtype)
    for i in range(end):  # assigning a slice takes 3 s to compile
        longer[i] = entries[i]
    return longer


@borrowing
def put(entries: NDArray, place: int, entry: Any, units: int) -> None:
    """Write an entry with another weight to a place."""
    entries[place].row, entries[place].label = entry.row, entry.label
    entries[place].units = units


@borrowing
def weight_of(units: Int64s) -> np.int64:
    """Sum of class weights."""
    total = np.int64(0)
    for k in range(units.size):
        total += units[k]
    return total


@borrowing
def leaf_limit(walk: Walk, units: Int64s) -> float:
    """Upper limit of the errors of a leaf with these class weights."""
    weights = walk.scratch.weights
    for k in range(units.size):
        weights[k] = units[k] * walk.unit
    return limited_errors(weights, walk.limit)


@borrowing
def next_node(rows: RaisingRows, row: int, index: int) -> int:
    """The child of `index` that a row goes to; another node if it stays; `index` of a leaf."""
    splits = rows.splits
    feature = splits.nodes[np.uintp(index)].feature
    x = rows.values[np.uintp(row * rows.row_step + feature * rows.column_step)]
    return follow(x, splits.nodes, index, splits.target, splits.lists, splits.missing)


@borrowing
def prefetch_value(rows: RaisingRows, entries: NDArray, i: int, end: int, index: int) -> None:
    """Prefetch the value, in the column of node `index`, of an entry some places after `i`."""
    row = entries[min(i + PREFETCH_ROWS, end - 1)].row
    feature = rows.splits.nodes[index].feature
    prefetch(rows.values, row * rows.row_step + feature * rows.column_step, 0)


@borrowing
def make_leaf(rows: RaisingRows, index: int) -> None:
    """Turn a node into a leaf for routing: all rows stop there."""
    node = rows.splits.nodes[index]
    node.feature, node.threshold, node.child, node.missing = 0, np.inf, index, index
    node.n_codes = 0


@borrowing
def route(walk: Walk, begin: int, end: int, top: int, start: int) -> None:
    """Write the leaf below `top` of the entries ``begin .. end``, or the node where each stays.

    To ``scratch.ordinal``, from the place `start`.
    """
    _route_eight(walk, begin, end, top, start)
    leaf = walk.scratch.ordinal
    for j in range(start, start + end - begin):  # where it stays may have been raised since
        while walk.nodes[leaf[j]].carrier != leaf[j]:
            leaf[j] = walk.nodes[leaf[j]].carrier


@borrowing
def _route_eight(walk: Walk, begin: int, end: int, top: int, start: int) -> None:
    """Route eight rows together, so that their loads overlap."""
    rows, entries, leaf = walk.rows, walk.entries, walk.scratch.ordinal
    paired = end - (end - begin) % 8
    for i in range(begin, paired, 8):
        r0, r1, r2 = entries[i].row, entries[i + 1].row, entries[i + 2].row
        r3, r4, r5 = entries[i + 3].row, entries[i + 4].row, entries[i + 5].row
        r6, r7 = entries[i + 6].row, entries[i + 7].row
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.int64(top)
        moved = True
        while moved:  # a row that has reached its node stays there
            b0, b1, b2 = next_node(rows, r0, a0), next_node(rows, r1, a1), next_node(rows, r2, a2)
            b3, b4, b5 = next_node(rows, r3, a3), next_node(rows, r4, a4), next_node(rows, r5, a5)
            b6, b7 = next_node(rows, r6, a6), next_node(rows, r7, a7)
            still = (a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)
            moved = (still | (a4 ^ b4) | (a5 ^ b5) | (a6 ^ b6) | (a7 ^ b7)) != 0
            a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
        j = start + i - begin
        leaf[j], leaf[j + 1], leaf[j + 2], leaf[j + 3] = a0, a1, a2, a3
        leaf[j + 4], leaf[j + 5], leaf[j + 6], leaf[j + 7] = a4, a5, a6, a7
    for i in range(paired, end):
        a0, b0 = np.int64(-1), np.int64(top)
        while a0 != b0:
            a0, b0 = b0, next_node(rows, entries[i].row, b0)
        leaf[start + i - begin] = a0


@kernel
def route_all(walk: Walk, begin: int, end: int) -> None:
    """Write the leaves of the entries ``begin .. end`` of the whole table."""
    route(walk, begin, end, np.int64(0), begin)


@kernel
def sort_all(walk: Walk) -> None:
    """Sort the whole rows, ``scratch.entries``, by their leaves, ``scratch.ordinal``."""
    _sort(walk, 0, True)


@borrowing
def sort_again(walk: Walk, top: int) -> None:
    """Sort the whole rows of `top` by their leaves, which a raised branch has changed."""
    begin, end = walk.nodes[top].begin, walk.nodes[top].end
    route(walk, begin, end, top, np.int64(0))
    for i in range(begin, end):
        walk.scratch.entries[i - begin] = walk.entries[i]
    _sort(walk, top, False)


@borrowing
def _sort(walk: Walk, top: int, as_grown: bool) -> None:
    """Sort the whole rows of `top`, and compute the limits of their errors.

    The limits of leaves are known `as_grown` if no rows stay.
    """
    nodes, listed = walk.nodes, walk.scratch.nodes
    n = _sort_by_leaves(walk, top)
    as_grown = as_grown and not nodes[top].rows_stay
    for j in range(n - 1, -1, -1):
        index = listed[j]
        if nodes[index].n_children > 0:
            sum_at_leaves(nodes, index)
        elif as_grown:
            nodes[index].at_leaves = nodes[index].as_leaf
        else:
            nodes[index].at_leaves = leaf_limit(walk, walk.units[index])


@borrowing
def sum_at_leaves(nodes: NDArray, index: int) -> None:
    """Sum the limits of the errors of whole rows below a node, and mark it if some stay."""
    node = nodes[index]
    node.at_leaves, node.rows_stay = 0.0, node.stay_end > node.begin
    for child in range(node.first_child, node.first_child + node.n_children):
        node.at_leaves += nodes[child].at_leaves
        node.rows_stay |= nodes[child].rows_stay


@borrowing
def _sort_by_leaves(walk: Walk, top: int) -> int:
    """Sort the range of `top`, which is copied in scratch, by the leaves of its entries.

    The nodes below get their ranges and weights and are listed in ``scratch.nodes``, parents before
    children; returns their number.
    """
    nodes, units, scratch = walk.nodes, walk.units, walk.scratch
    size, free, listed = nodes[top].end - nodes[top].begin, scratch.free, scratch.nodes
    n = _list_below(walk, top)
    for i in range(size):
        index, entry = scratch.ordinal[i], scratch.entries[i]
        free[index] += 1
        units[index, entry.label] += entry.units
    # From the leaves up: `stay_end` and `end` become numbers of entries.
    for j in range(n - 1, -1, -1):
        index = listed[j]
        node = nodes[index]
        node.stay_end = node.end = free[index]
        node.rows_stay = node.n_children > 0 and node.stay_end > 0
        for child in range(node.first_child, node.first_child + node.n_children):
            node.end += nodes[child].end
            node.rows_stay |= nodes[child].rows_stay
            for k in range(units.shape[1]):
                units[index, k] += units[child, k]
    # From `top` down: they become places, since the parent has set `begin`.
    for j in range(n):
        node = nodes[listed[j]]
        free[listed[j]] = node.begin
        node.stay_end, node.end = node.begin + node.stay_end, node.begin + node.end
        begin = node.stay_end
        for child in range(node.first_child, node.first_child + node.n_children):
            nodes[child].begin = begin
            begin += nodes[child].end
    for i in range(size):
        index, entry = scratch.ordinal[i], scratch.entries[i]
        put(walk.entries, free[index], entry, entry.units)
        free[index] += 1
    return n


@borrowing
def _list_below(walk: Walk, top: int) -> int:
    """List `top` and the nodes below it, parents before children, without entries."""
    nodes, listed = walk.nodes, walk.scratch.nodes
    listed[0], n, j = top, 1, 0
    while j < n:
        index = listed[j]
        node = nodes[index]
        walk.scratch.free[index] = 0
        walk.units[index, :] = 0
        for child in range(node.first_child, node.first_child + node.n_children):
            listed[n] = child
            n += 1
        j += 1
    return n
