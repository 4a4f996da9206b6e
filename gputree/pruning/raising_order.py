r"""Whole rows below a node: in the order of the leaves, found once for all levels.

    nodes below t     |   |  d  |  e  |   |    f    |  g  |       b has d and e, c has f and g
    entries of t      | t | d d | e e | c | f f f f | g g |       one stays at t, and one at c
                          \__ of b __/ \_____ of c _____/

Every node knows its range, until a branch is raised: then its range is put in order anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel, lent
from gputree.pruning.raising_entries import Rows, Scratch, below, directly_below, put


def _route_eight_by(go: Callable) -> Any:
    """Make what routes as `route` does, with the function that finds the node below another.

    Were that one an argument, the kernel would hold its address in this process, and no other
    could use it.
    """

    @lent
    def route_eight(
        rows: Rows,
        entries: NDArray,
        begin: int,
        end: int,
        top: int,
        leaf: NDArray[np.int32],
        at: int,
    ) -> None:
        paired = end - (end - begin) % 8
        for i in range(begin, paired, 8):
            r0, r1, r2 = entries[i].row, entries[i + 1].row, entries[i + 2].row
            r3, r4, r5 = entries[i + 3].row, entries[i + 4].row, entries[i + 5].row
            r6, r7 = entries[i + 6].row, entries[i + 7].row
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.int64(top)
            moved = True
            while moved:
                b0, b1, b2 = go(rows, r0, a0), go(rows, r1, a1), go(rows, r2, a2)
                b3, b4, b5 = go(rows, r3, a3), go(rows, r4, a4), go(rows, r5, a5)
                b6, b7 = go(rows, r6, a6), go(rows, r7, a7)
                still = (a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)
                moved = (still | (a4 ^ b4) | (a5 ^ b5) | (a6 ^ b6) | (a7 ^ b7)) != 0
                a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
            j = at + i - begin
            leaf[j], leaf[j + 1], leaf[j + 2], leaf[j + 3] = a0, a1, a2, a3
            leaf[j + 4], leaf[j + 5], leaf[j + 6], leaf[j + 7] = a4, a5, a6, a7
        for i in range(paired, end):
            a0, b0 = np.int64(-1), np.int64(top)
            while a0 != b0:
                a0, b0 = b0, go(rows, entries[i].row, b0)
            leaf[at + i - begin] = a0

    return route_eight


_route_eight = _route_eight_by(below)
_route_eight_directly = _route_eight_by(directly_below)


@lent
def route(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    begin: int,
    end: int,
    top: int,
    leaf: NDArray[np.int32],
    at: int,
) -> None:
    """Write the leaf below `top` of each entry, or where it stays, from `at` on in `leaf`.

    Eight entries side by side, so that their loads are under way together.
    """
    if nodes[top].direct:
        _route_eight_directly(rows, entries, begin, end, top, leaf, at)
        return
    _route_eight(rows, entries, begin, end, top, leaf, at)
    for j in range(at, at + end - begin):
        while nodes[leaf[j]].carrier != leaf[j]:
            leaf[j] = nodes[leaf[j]].carrier


@kernel
def route_all(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    begin: int,
    end: int,
    leaf: NDArray[np.int32],
) -> None:
    """Write to `leaf` where the entries ``begin .. end`` of the whole table lie."""
    route(rows, nodes, entries, begin, end, np.int64(0), leaf, begin)


@lent
def sort_by_leaves(
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    top: int,
    scratch: Scratch,
) -> int:
    """Put the range of `top` in order of ``scratch.ordinal``, the leaves of its entries.

    These are those of ``scratch.entries``. The nodes below get their ranges and weights;
    ``scratch.nodes`` become these nodes, parents before children; returns how many there are.
    """
    size, free = nodes[top].end - nodes[top].begin, scratch.free
    n = _list_below(nodes, units, top, scratch)
    for i in range(size):
        at, entry = scratch.ordinal[i], scratch.entries[i]
        free[at] += 1
        units[at, entry.label] += entry.units
    for j in range(n - 1, -1, -1):
        at = scratch.nodes[j]
        node = nodes[at]
        node.held = node.end = free[at]
        node.rows_stay = node.n_children > 0 and node.held > 0
        for child in range(node.first_child, node.first_child + node.n_children):
            node.end += nodes[child].end
            node.rows_stay |= nodes[child].rows_stay
            for k in range(units.shape[1]):
                units[at, k] += units[child, k]
    for j in range(n):  # so far, `held` and `end` have how many there are
        node = nodes[scratch.nodes[j]]
        free[scratch.nodes[j]] = node.begin
        node.held, node.end = node.begin + node.held, node.begin + node.end
        begin = node.held
        for child in range(node.first_child, node.first_child + node.n_children):
            nodes[child].begin = begin
            begin += nodes[child].end
    for i in range(size):
        at, entry = scratch.ordinal[i], scratch.entries[i]
        put(entries, free[at], entry, entry.units)
        free[at] += 1
    return n


@lent
def set_aside(entries: NDArray, begin: int, end: int, scratch: Scratch) -> None:
    """Copy a range to ``scratch.entries``, from where it is put in order."""
    for i in range(begin, end):
        scratch.entries[i - begin] = entries[i]


@lent
def _list_below(nodes: NDArray, units: NDArray[np.int64], top: int, scratch: Scratch) -> int:
    """List the nodes below `top`, it first, parents before children; how many there are.

    None of them has entries.
    """
    listed = scratch.nodes
    listed[0], n, j = top, 1, 0
    while j < n:
        at = listed[j]
        node = nodes[at]
        scratch.free[at] = 0
        units[at, :] = 0
        for child in range(node.first_child, node.first_child + node.n_children):
            listed[n] = child
            n += 1
        j += 1
    return n
