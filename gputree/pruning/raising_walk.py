"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

What becomes of a node whose heaviest child is a leaf is known without its rows; the walk goes to
the other nodes alone, after their children, and again after a branch was raised. There it asks what
the branch would cost in its node's place (`raising_cost`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel, lent
from gputree.dtypes import NO_FRAME
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
from gputree.pruning.raising_order import sort_by_leaves

# Branches whose weights agree to this much tie, and the last is the largest: shares of rows
# are rounded.
TIE = 1e-6

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
    taking_part: NDArray[np.intp],
    n_classes: int,
    limit: ErrorLimit,
    slack: float,
) -> Visited:
    """Visit every node after its children; again, after a branch was raised.

    Parameters
    ----------
    rows : Rows
    label : int array of shape (n_rows,)
    nodes : NODE_STATE array of shape (N,)
        Changed.
    weights : Weights
        Of the rows that take part, so fine that they can be divided.
    taking_part : int array of shape (n,)
    n_classes : int
    limit : ErrorLimit
    slack : float
        Errors that a replacement may cost.

    Returns
    -------
    Visited
    """
    n = taking_part.size
    # Pending are nodes of the walk, and of one descent below the node it is at.
    frames = np.empty(2 * nodes.size + 1, FRAME)
    scratch = Scratch(
        np.empty(n, np.int32),
        np.empty(n, ENTRY),
        np.empty(int(nodes["n_children"].max()) + 1, np.int64),
        np.empty(n_classes, np.int64),
        np.empty(n_classes),
        np.empty(nodes.size, np.int32),
    )
    entries = np.empty(n, ENTRY)
    entries["row"], entries["label"] = taking_part, label[taking_part]
    entries["units"] = weights.weight
    nodes["begin"][0], nodes["end"][0] = 0, n
    units, moved = np.zeros((2, nodes.size, n_classes), np.int64)
    unit = weights.unit * weights.scale
    room = n + _walk(rows, nodes, units, moved, entries, frames, scratch, unit, limit, slack)
    return Visited(units + moved, room)


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

    Nodes where rows may stop are not settled to begin with.
    """
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
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
def find_direct(nodes: NDArray) -> None:
    """Leave marked as `direct` what all below is."""
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
        for child in range(state.first_child, state.first_child + state.n_children):
            state.direct &= nodes[child].direct


@lent
def _sort(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    top: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    as_grown: bool,
) -> None:
    """Put the whole rows of `top` in order, and find the limit of their errors below."""
    n = sort_by_leaves(rows, nodes, units, entries, top, scratch)
    known = as_grown and not nodes[top].rows_stay
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
def _walk(
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
    for node in range(nodes.size):
        if nodes[node].n_children == 0:
            close(rows, node)
    _sort(rows, nodes, units, entries, 0, scratch, unit, limit, True)
    shares = np.empty(0, entries.dtype)
    n_frames = push(frames, 0, NO_FRAME, 0, 0, 0, 0, 0)
    while n_frames > 0:
        frame = frames[n_frames - 1]
        node = frame.node
        state = nodes[node]
        if not frame.state & DONE:  # on the way down
            if frame.state & (MOVED | SORTED) == MOVED:
                _sort(rows, nodes, units, entries, node, scratch, unit, limit, False)
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
    return shares.size
