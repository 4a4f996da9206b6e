r"""Whole rows below a node, sorted by their leaves, once for all levels.

    nodes below t     |   |  d  |  e  |   |    f    |  g  |       b has d and e, c has f and g
    entries of t      | t | d d | e e | c | f f f f | g g |       one stays at t, and one at c
                          \__ of b __/ \_____ of c _____/

Every node has its range, until a branch is raised: then its range is sorted again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import borrowing, kernel
from gputree.compilation.prefetching import PREFETCH_ROWS, prefetch
from gputree.prediction.descent import follow
from gputree.pruning.raising_records import RaisingRows, Walk, leaf_limit, put


@borrowing
def next_node(rows: RaisingRows, row: int, index: int) -> int:
    """The child of `index` that a row goes to; another node if it stays; `index` of a leaf."""
    splits = rows.splits
    feature = splits.nodes[np.uintp(index)].feature
    x = rows.values[np.uintp(row * rows.row_step + feature * rows.column_step)]
    return follow(x, splits.nodes, index, splits.target, splits.lists, splits.missing)


@borrowing
def next_node_of_plain(rows: RaisingRows, row: int, index: int) -> np.int64:
    """`next_node` of a plain split, without a branch that may be mispredicted."""
    step = rows.steps[np.uintp(index)]
    x = rows.values[np.uintp(row * rows.row_step + step.feature * rows.column_step)]
    by_code = step.threshold != step.threshold
    return np.int64(step.child) + (np.int64(x) if by_code else np.int64(x > step.threshold))


@borrowing
def prefetch_value(rows: RaisingRows, entries: NDArray, i: int, end: int, index: int) -> None:
    """Prefetch the value, in the column of node `index`, of an entry some places after `i`."""
    row = entries[min(i + PREFETCH_ROWS, end - 1)].row
    feature = rows.splits.nodes[index].feature
    prefetch(rows.values, row * rows.row_step + feature * rows.column_step, 0)


@borrowing
def make_leaf(rows: RaisingRows, index: int) -> None:
    """Turn a node into a leaf for routing: all rows stop there."""
    node, step = rows.splits.nodes[index], rows.steps[index]
    node.feature, node.threshold, node.child, node.missing = 0, np.inf, index, index
    node.n_codes = 0
    step.feature, step.threshold, step.child = 0, np.inf, index


def _route_eight_by(go: Callable) -> Any:
    """Compile `route` with `go` for the next node of a row.

    A function as an argument would make the kernel refer to its address in this process, so that it
    could not be cached on disk.
    """

    @borrowing
    def route_eight(walk: Walk, begin: int, end: int, top: int, start: int) -> None:
        rows, entries, leaf = walk.rows, walk.entries, walk.scratch.ordinal
        paired = end - (end - begin) % 8
        for i in range(begin, paired, 8):
            r0, r1, r2 = entries[i].row, entries[i + 1].row, entries[i + 2].row
            r3, r4, r5 = entries[i + 3].row, entries[i + 4].row, entries[i + 5].row
            r6, r7 = entries[i + 6].row, entries[i + 7].row
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.int64(top)
            moved = True
            while moved:  # a row that has reached its node stays there
                b0, b1, b2 = go(rows, r0, a0), go(rows, r1, a1), go(rows, r2, a2)
                b3, b4, b5 = go(rows, r3, a3), go(rows, r4, a4), go(rows, r5, a5)
                b6, b7 = go(rows, r6, a6), go(rows, r7, a7)
                still = (a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)
                moved = (still | (a4 ^ b4) | (a5 ^ b5) | (a6 ^ b6) | (a7 ^ b7)) != 0
                a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
            j = start + i - begin
            leaf[j], leaf[j + 1], leaf[j + 2], leaf[j + 3] = a0, a1, a2, a3
            leaf[j + 4], leaf[j + 5], leaf[j + 6], leaf[j + 7] = a4, a5, a6, a7
        for i in range(paired, end):
            a0, b0 = np.int64(-1), np.int64(top)
            while a0 != b0:
                a0, b0 = b0, go(rows, entries[i].row, b0)
            leaf[start + i - begin] = a0

    return route_eight


_route_eight = _route_eight_by(next_node)
_route_eight_by_plain = _route_eight_by(next_node_of_plain)


@borrowing
def route(walk: Walk, begin: int, end: int, top: int, start: int) -> None:
    """Write the leaf below `top` of the entries ``begin .. end``, or the node where each stays.

    To ``scratch.ordinal``, from the place `start`. Eight rows descend together, so that their loads
    overlap.
    """
    if walk.nodes[top].direct:
        _route_eight_by_plain(walk, begin, end, top, start)
        return
    _route_eight(walk, begin, end, top, start)
    leaf = walk.scratch.ordinal
    for j in range(
        start, start + end - begin
    ):  # the node where it stays may have been raised since
        while walk.nodes[leaf[j]].carrier != leaf[j]:
            leaf[j] = walk.nodes[leaf[j]].carrier


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
