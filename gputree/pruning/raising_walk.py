"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

What becomes of a node whose heaviest child is a leaf is known without its rows; the walk goes to
the other nodes alone, after their children, and again after a branch was raised. There it asks what
the branch would cost in its node's place (`raising_cost`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, kernel, lent
from gputree.dtypes import NO_CHILD, NO_FRAME
from gputree.fixed_point import Weights
from gputree.pruning.error_limit import ErrorLimit
from gputree.pruning.raising_cost import count, distribute, estimate_branch, leaf_limit
from gputree.pruning.raising_entries import (
    DONE,
    ENTRY,
    FRAME,
    MOVED,
    SORTED,
    Rows,
    Scratch,
    close,
    enter,
    push,
    restore,
    weight_of,
)
from gputree.pruning.raising_order import route, route_all, set_aside, sort_by_leaves
from gputree.threads import SPANS_PER_THREAD, even_spans, run, spans

# Branches whose weights agree to this much tie, and the last is the largest: shares of rows
# are rounded.
TIE = 1e-6

# Rows that are not worth a thread of their own.
FEW_ROWS = 1 << 12

# Share of errors that sums of floats may be off by, and more.
ROUNDING = 1e-9


class Visited(NamedTuple):
    """What a walk leaves behind.

    Attributes
    ----------
    units : int64 array of shape (N, K)
        Class weights of the nodes as they are now, in units.
    room : int
        Entries that were held at a time, at most.
    """

    units: NDArray[np.int64]
    room: int


def walk(
    rows: Rows,
    label: NDArray[np.integer],
    nodes: NDArray,
    weights: Weights,
    taking_part: NDArray[np.integer],
    n_classes: int,
    limit: ErrorLimit,
    slack: float,
    n_threads: int,
) -> Visited:
    """Visit every node after its children; again, after a branch was raised.

    Parameters
    ----------
    rows : Rows
    label : int array of shape (n,)
        Of the rows that take part.
    nodes : NODE_STATE array of shape (N,)
        Changed.
    weights : Weights
        Of the rows that take part, so fine that they can be divided.
    taking_part : int array of shape (n,)
    n_classes : int
    limit : ErrorLimit
    slack : float
        Errors that a replacement may cost.
    n_threads : int
        Subtrees that no shares come to are visited side by side.

    Returns
    -------
    Visited
    """
    n = taking_part.size
    units, moved = np.zeros((2, nodes.size, n_classes), np.int64)
    unit, scratch = weights.unit * weights.scale, _scratch(nodes, n_classes, n)
    entries, given = np.empty(n, ENTRY), scratch.entries
    given["row"], given["label"], given["units"] = taking_part, label, weights.weight
    nodes["begin"][0], nodes["end"][0] = 0, n
    routed = even_spans(n, 1, n_threads, FEW_ROWS)
    run(n_threads, route_all, [(rows, nodes, given, *span, scratch.ordinal) for span in routed])
    _order_all(nodes, units, entries, scratch, unit, limit)

    def visit(tops: NDArray[np.int32]) -> int:
        sizes = nodes["end"][tops] - nodes["begin"][tops]
        # Pending are nodes of the walk, and of one descent below the node it is at.
        frames = np.empty(2 * nodes.size + 1, FRAME)
        own = _scratch(nodes, n_classes, sizes.max())
        return _walk(tops, rows, nodes, units, moved, entries, frames, own, unit, limit, slack)

    room = 0
    for most in _rounds(n, n_threads):
        tops = scratch.nodes[: _find_tops(nodes, most, scratch.nodes)]
        sizes = nodes["end"][tops] - nodes["begin"][tops]
        parts = [(tops[a:b],) for a, b in spans(sizes, n_threads, FEW_ROWS)] if tops.size else []
        room = max(room, sum(run(n_threads, visit, parts)))
        nodes["settled"][tops] = True
    return Visited(units + moved, n + room)


def _rounds(n: int, n_threads: int) -> list[int]:
    """Rows of the subtrees that are visited side by side: first small ones, then all of n rows.

    Before the root, whose children have about half of the rows each, those.
    """
    if n_threads == 1 or n < FEW_ROWS:
        return [n]
    return [n // (n_threads * SPANS_PER_THREAD), n // 2, n]


def _scratch(nodes: NDArray, n_classes: int, n: int) -> Scratch:
    """Room to put ranges of up to n entries in order."""
    return Scratch(
        np.empty(n, np.int32),
        np.empty(n, ENTRY),
        np.empty(int(nodes["n_children"].max()) + 1, np.int64),
        np.empty(n_classes, np.int64),
        np.empty(n_classes),
        np.empty(nodes.size, np.int32),
        np.empty(nodes.size, np.int32),
        np.empty((nodes.size, n_classes), np.int64),
    )


@lent
def _largest(nodes: NDArray, node: int) -> int:
    """The heaviest child of `node`; of equals, the last."""
    first = nodes[node].first_child
    largest = first
    for child in range(first + 1, first + nodes[node].n_children):
        if np.rint(nodes[child].weight / TIE) >= np.rint(nodes[largest].weight / TIE):
            largest = child
    return largest


@lent
def _sum_up(nodes: NDArray, node: int) -> float:
    """Limit of the errors of the children as they stand."""
    errors, first = nodes[node].stopped, nodes[node].first_child
    for child in range(first, first + nodes[node].n_children):
        errors += nodes[child].estimate
    return errors


@lent
def _refill(node: Any, weight: float, as_leaf: float, n_rows: int) -> None:
    """Let `node` have what a raised branch has brought to it."""
    node.refilled, node.settled = True, False
    node.n_rows, node.weight, node.as_leaf = n_rows, weight, as_leaf


@lent
def _give_way(rows: Rows, nodes: NDArray, at: int, largest: int) -> None:
    """Let a node carry the split and the children of its branch.

    What the branch keeps for want of a value goes to it as before, which is none of its children.
    """
    node, branch = nodes[at], nodes[largest]
    rows.nodes[at], rows.steps[at] = rows.nodes[largest], rows.steps[largest]
    node.split_of, node.spreads, branch.carrier = branch.split_of, branch.spreads, at
    node.direct = branch.direct
    node.first_child, node.n_children = branch.first_child, branch.n_children


@lent
def _enough(leaf: float, subtree: float, slack: float) -> float:
    """Errors of a branch beyond which it is out, and nothing depends on how many more there are."""
    most = leaf - slack if leaf <= subtree + slack else subtree + slack
    return most + ROUNDING * (1.0 + leaf)


@kernel
def settle(nodes: NDArray, slack: float) -> None:
    """Decide on the nodes that need no rows for it: the heaviest child is a leaf.

    Nodes where rows may stop are not settled to begin with. All carry their own split.
    """
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
        state.split_of, state.carrier, state.estimate = node, node, state.as_leaf
        for child in range(state.first_child, state.first_child + state.n_children):
            state.settled &= nodes[child].settled
        if state.n_children == 0 or not state.settled:
            continue
        state.settled = nodes[_largest(nodes, node)].n_children == 0
        subtree = _sum_up(nodes, node)
        if state.settled and state.as_leaf <= subtree + slack:
            state.n_children = 0
        elif state.settled:
            state.estimate = subtree


@kernel
def make_ready(rows: Rows, nodes: NDArray, plain: NDArray[np.bool_]) -> None:
    """Let rows end at leaves; mark as `direct` where no split below is not `plain`."""
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
        state.direct = plain[node]
        if state.n_children == 0:
            close(rows, node)
        for child in range(state.first_child, state.first_child + state.n_children):
            state.direct &= nodes[child].direct


@kernel
def number(
    state: NDArray, nodes: NDArray[np.int32], parent: NDArray[np.int32], depth: NDArray[np.int32]
) -> int:
    """List the nodes that are left, breadth-first, with the new numbers of their parents.

    Returns how many there are.
    """
    nodes[0], parent[0], depth[0] = 0, NO_CHILD, 0
    n, j = 1, 0
    while j < n:
        node = state[nodes[j]]
        for child in range(node.first_child, node.first_child + node.n_children):
            nodes[n], parent[n], depth[n] = child, j, depth[j] + 1
            n += 1
        j += 1
    return n


@lent
def _sort(
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    top: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    known: bool,
) -> None:
    """Put the whole rows of `top`, in ``scratch.entries``, in order below it.

    And find the limit of their errors there, which is `known` of leaves.
    """
    n = sort_by_leaves(nodes, units, entries, top, scratch)
    known = known and not nodes[top].rows_stay
    for j in range(n - 1, -1, -1):
        at = scratch.nodes[j]
        if nodes[at].n_children > 0:
            _add_least(nodes, at)
        elif known:
            nodes[at].least = nodes[at].as_leaf
        else:
            nodes[at].least = leaf_limit(scratch, units[at], unit, limit)


@lent
def _add_least(nodes: NDArray, at: int) -> None:
    """Sum up the limits of the errors of whole rows, and whether some stay, below a node."""
    node = nodes[at]
    node.least, node.rows_stay = 0.0, node.held > node.begin
    for child in range(node.first_child, node.first_child + node.n_children):
        node.least += nodes[child].least
        node.rows_stay |= nodes[child].rows_stay


@kernel
def _order_all(
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
) -> None:
    """Put all whole rows in order of their leaves, ``scratch.ordinal``."""
    _sort(nodes, units, entries, 0, scratch, unit, limit, True)


@kernel
def _find_tops(nodes: NDArray, most: int, found: NDArray[np.int32]) -> int:
    """Find the highest nodes to visit of up to `most` rows, or of which shares go on.

    No shares come to them. Returns how many there are.
    """
    found[0], n_found, n, j = 0, 0, 1, 0
    while j < n:
        at = found[j]
        node = nodes[at]
        j += 1
        if node.settled:
            continue
        if node.end - node.begin <= most or (node.spreads and node.held > node.begin):
            found[n_found] = at
            n_found += 1
            continue
        for child in range(node.first_child, node.first_child + node.n_children):
            found[n] = child
            n += 1
    return n_found


@kernel
def _walk(
    tops: NDArray[np.int32],
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    moved: NDArray[np.int64],
    entries: NDArray,
    frames: NDArray,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    slack: float,
) -> int:
    """Visit all below the `tops`, to which no shares come; most of those below that were held."""
    shares = np.empty(0, entries.dtype)
    for top in tops:
        shares = _walk_below(
            top, rows, nodes, units, moved, entries, shares, frames, scratch, unit, limit, slack
        )
    return shares.size


@inner
def _walk_below(
    top: int,
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    moved: NDArray[np.int64],
    entries: NDArray,
    shares: NDArray,
    frames: NDArray,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    slack: float,
) -> NDArray:
    n_frames = push(frames, 0, NO_FRAME, top, 0, 0, 0, 0)
    while n_frames > 0:
        frame = frames[n_frames - 1]
        node = np.int64(frame.node)
        state = nodes[node]
        if not frame.state & DONE:  # on the way down
            if frame.state & (MOVED | SORTED) == MOVED:
                begin, end, first = state.begin, state.end, np.int64(0)
                route(rows, nodes, entries, begin, end, node, scratch.ordinal, first)
                set_aside(entries, state.begin, state.end, scratch)
                _sort(nodes, units, entries, node, scratch, unit, limit, False)
                frame.state |= SORTED
            shares = enter(nodes, units, entries, shares, frames, n_frames - 1)
            count(units, shares, frame, scratch.units)
            if frame.state & MOVED:
                for k in range(scratch.units.size):
                    moved[node, k] = scratch.units[k] - units[node, k]
                n_rows = state.end - state.begin + frame.end - frame.begin
                as_leaf = leaf_limit(scratch, scratch.units, unit, limit)
                _refill(state, weight_of(scratch.units) * unit, as_leaf, n_rows)
            if not state.settled:
                state.estimate = state.as_leaf
            if state.n_children == 0:
                n_frames -= 1
            else:
                n_frames, state.stopped = distribute(
                    rows, nodes, units, entries, shares, frames, n_frames, scratch, unit, limit
                )
            continue
        restore(rows, nodes, shares, frame)
        subtree = _sum_up(nodes, node)
        _add_least(nodes, node)
        n_frames -= 1
        if state.settled:
            continue
        leaf, largest = state.as_leaf, _largest(nodes, node)
        branch, enough = leaf, _enough(leaf, subtree, slack)
        if nodes[largest].n_children > 0:
            shares, branch = estimate_branch(
                rows, nodes, units, entries, shares, frames, n_frames + 1, scratch, unit, limit,
                largest, enough,
            )  # fmt: skip
        if leaf <= min(subtree, branch) + slack:
            state.n_children, state.rows_stay = 0, False
            state.least = leaf_limit(scratch, units[node], unit, limit)
            close(rows, node)
        elif branch <= subtree + slack:
            _give_way(rows, nodes, node, largest)
            begin, end, room = frame.begin, frame.end, frame.room
            n_frames = push(frames, n_frames, NO_FRAME, node, begin, end, room, MOVED)
        else:
            state.estimate = subtree
    return shares
