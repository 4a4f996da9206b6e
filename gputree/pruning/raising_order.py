r"""Whole rows below a node: in the order of the leaves, found once for all levels.

    nodes below t     |   |  d  |  e  |   |    f    |  g  |       b has d and e, c has f and g
    entries of t      | t | d d | e e | c | f f f f | g g |       one stays at t, and one at c
                          \__ of b __/ \_____ of c _____/

Every node knows its range, until a branch is raised: then its range is put in order anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel, lent
from gputree.pruning.raising_entries import Rows, Scratch, below, directly_below, put


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
    plain, paired = nodes[top].direct, end - (end - begin) % 8
    for i in range(begin, paired, 8):
        r0, r1, r2, r3 = entries[i].row, entries[i + 1].row, entries[i + 2].row, entries[i + 3].row
        r4, r5, r6 = entries[i + 4].row, entries[i + 5].row, entries[i + 6].row
        r7 = entries[i + 7].row
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.int64(top)
        moved = True
        while moved:
            b0, b1 = _next(rows, r0, a0, plain), _next(rows, r1, a1, plain)
            b2, b3 = _next(rows, r2, a2, plain), _next(rows, r3, a3, plain)
            b4, b5 = _next(rows, r4, a4, plain), _next(rows, r5, a5, plain)
            b6, b7 = _next(rows, r6, a6, plain), _next(rows, r7, a7, plain)
            still = (a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)
            moved = (still | (a4 ^ b4) | (a5 ^ b5) | (a6 ^ b6) | (a7 ^ b7)) != 0
            a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
        j = at + i - begin
        leaf[j], leaf[j + 1], leaf[j + 2], leaf[j + 3] = a0, a1, a2, a3
        leaf[j + 4], leaf[j + 5], leaf[j + 6], leaf[j + 7] = a4, a5, a6, a7
    for i in range(paired, end):
        a0, b0 = np.int64(-1), np.int64(top)
        while a0 != b0:
            a0, b0 = b0, _next(rows, entries[i].row, b0, plain)
        leaf[at + i - begin] = a0
    for j in range(at, at + end - begin if not plain else at):
        while nodes[leaf[j]].carrier != leaf[j]:
            leaf[j] = nodes[leaf[j]].carrier


@lent
def _next(rows: Rows, row: int, at: int, plain: bool) -> np.int64:
    """The node that a row goes to from `at`, itself where it stays."""
    return directly_below(rows, row, at) if plain else below(rows, row, at)


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
    route(rows, nodes, entries, begin, end, 0, leaf, begin)


@lent
def sort_by_leaves(
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    top: int,
    scratch: Scratch,
) -> int:
    """Put the range of `top` in order of ``scratch.ordinal``, the leaves of its entries.

    The nodes below get their ranges and weights; ``scratch.nodes`` become these nodes, parents
    before children; returns how many there are.
    """
    begin, end = nodes[top].begin, nodes[top].end
    n = _list_below(nodes, units, top, scratch.nodes)
    for i in range(begin, end):
        at = scratch.ordinal[i - begin]
        scratch.entries[i - begin] = entries[i]
        nodes[at].held += 1
        units[at, entries[i].label] += entries[i].units
    for j in range(n - 1, -1, -1):
        node = nodes[scratch.nodes[j]]
        node.place = node.held
        node.rows_stay = node.n_children > 0 and node.held > 0
        for child in range(node.first_child, node.first_child + node.n_children):
            node.place += nodes[child].place
            node.rows_stay |= nodes[child].rows_stay
            for k in range(units.shape[1]):
                units[scratch.nodes[j], k] += units[child, k]
    for j in range(n):
        node = nodes[scratch.nodes[j]]
        node.end, node.held = node.begin + node.place, node.begin + node.held
        node.place, free = node.begin, node.held
        for child in range(node.first_child, node.first_child + node.n_children):
            nodes[child].begin = free
            free += nodes[child].place
    for i in range(end - begin):
        node, entry = nodes[scratch.ordinal[i]], scratch.entries[i]
        put(entries, node.place, entry, entry.units)
        node.place += 1
    return n


@lent
def _list_below(
    nodes: NDArray, units: NDArray[np.int64], top: int, listed: NDArray[np.int32]
) -> int:
    """List the nodes below `top`, it first, parents before children; how many there are."""
    listed[0], n, j = top, 1, 0
    while j < n:
        at = listed[j]
        node = nodes[at]
        node.held = 0
        units[at, :] = 0
        for child in range(node.first_child, node.first_child + node.n_children):
            listed[n] = child
            n += 1
        j += 1
    return n
