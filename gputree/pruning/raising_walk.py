"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

What becomes of a node whose heaviest child is a leaf is known without its rows; the walk goes to
the other nodes alone, after their children, and again after a branch was raised. There it asks what
the branch would cost in its node's place. Where all rows go one way, only those of the smaller
branches are sent down it, since its own end where they are: a row is in a smaller branch at most
log2 n times, so that what is asked costs little more than the walk. They are sent in portions,
until the branch is out: rows that join it take no errors away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, kernel
from gputree.dtypes import NO_FRAME, NOWHERE
from gputree.fixed_point import Weights
from gputree.pruning.error_limit import ErrorLimit, added_errors, limited_errors
from gputree.pruning.raising_entries import (
    ASKED,
    DONE,
    ENTRY,
    FRAME,
    MOVED,
    SORTED,
    Rows,
    Scratch,
    arrange,
    close,
    count,
    enter,
    push,
    push_children,
    restore,
)
from gputree.pruning.raising_order import push_sorted, route, sort_by_leaves

# Branches whose weights agree to this much tie, and the last is the largest: shares of rows
# are rounded.
TIE = 1e-6

# Rows after which it is first asked whether a branch is out, then after twice as many.
FIRST_LOOK = 64

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
    units = np.zeros((nodes.size, n_classes), np.int64)
    unit = weights.unit * weights.scale
    room = _walk(rows, nodes, units, entries, frames, scratch, unit, limit, slack)
    return Visited(units, room)


@inner
def _limit(scratch: Scratch, units: NDArray[np.int64], unit: float, limit: ErrorLimit) -> float:
    """Upper limit of the errors of a leaf with these class weights."""
    for k in range(units.size):
        scratch.weights[k] = units[k] * unit
    return limited_errors(scratch.weights, limit)


@inner
def _stopped_errors(
    entries: NDArray,
    frame: Any,
    class_units: NDArray[np.int64],
    unit: float,
    limit: ErrorLimit,
) -> float:
    """Limit of the errors of entries that stay at their node: it answers with its majority."""
    answer = np.argmax(class_units)
    weight = errors = np.int64(0)
    for i in range(frame.begin, frame.begin + frame.n_stay):
        weight += entries[i].units
        if entries[i].label != answer:
            errors += entries[i].units
    return errors * unit + added_errors(weight * unit, errors * unit, limit)


@inner
def _distribute(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    class_units: NDArray[np.int64],
    unit: float,
    limit: ErrorLimit,
    asked: int,
) -> tuple[int, float]:
    """Put the children of the topmost frame above it; the limit of what stops at its node."""
    frame = frames[n_frames - 1]
    frame.state |= DONE
    arrange(rows, nodes[frame.node], entries, frame, scratch)
    stopped = 0.0
    if frame.n_stay > 0 and not nodes[frame.node].spreads:
        stopped = _stopped_errors(entries, frame, class_units, unit, limit)
    return push_children(nodes, frames, n_frames, asked, scratch), stopped


@inner
def _estimate_all(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
    enough: float,
) -> tuple[NDArray, float]:
    """Errors if the entries of the topmost frame went down `branch`.

    Or only more than `enough`, where it is more.
    """
    total, bottom = 0.0, n_frames
    own = frames[n_frames - 1]
    n_frames = push(frames, n_frames, NO_FRAME, branch, own.begin, own.end, own.room, ASKED)
    while n_frames > bottom:
        frame = frames[n_frames - 1]
        node = frame.node
        if frame.state & DONE:
            restore(rows, nodes, entries, frame)
            n_frames -= 1
            continue
        entries = enter(nodes, entries, frames, n_frames - 1)
        if total > enough or frame.begin == frame.end:
            n_frames -= 1
            continue
        count(entries, frame.begin, frame.end, scratch.units)
        if nodes[node].n_children == 0:
            total += _limit(scratch, scratch.units, unit, limit)
            n_frames -= 1
        else:
            n_frames, stopped = _distribute(
                rows, nodes, entries, frames, n_frames, scratch, scratch.units, unit, limit, branch
            )
            total += stopped
    return entries, total


@inner
def _estimate_added(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    frame: Any,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
    enough: float,
) -> float:
    """Errors if the other entries of a frame joined those in `branch`.

    Or only more than `enough`, where it is more: no entry takes errors away. Infinite where one of
    them stays on the way: it would change the shares of all.
    """
    total, own = nodes[branch].estimate, nodes[branch]
    n_reached, look, n = 0, FIRST_LOOK, frame.end - frame.begin - (own.end - own.begin)
    asked = 0
    while asked < n and total <= enough:
        more = min(n, look)
        _route_others(rows, nodes, entries, frame, branch, asked, more, scratch)
        stay = False
        for j in range(asked, more):
            at, entry = scratch.ordinal[j], entries[_other(frame, own, j)]
            if at == NOWHERE:
                stay = True
                break
            asked += 1
            units[at, entry.label] += entry.units
            if not nodes[at].reached:
                nodes[at].reached = True
                scratch.nodes[n_reached] = at
                n_reached += 1
        look *= 2
        total = np.inf if stay else nodes[branch].estimate
        for j in range(n_reached):
            at = scratch.nodes[j]
            total += _limit(scratch, units[at], unit, limit) - nodes[at].as_leaf
    for j in range(asked):  # and they leave again
        entry = entries[_other(frame, own, j)]
        units[scratch.ordinal[j], entry.label] -= entry.units
    for j in range(n_reached):
        nodes[scratch.nodes[j]].reached = False
    return total


@inner
def _other(frame: Any, branch: Any, j: int) -> int:
    """The place of the j-th entry of a frame that is not in the range of `branch`."""
    i = frame.begin + j
    return i if i < branch.begin else i + branch.end - branch.begin


@inner
def _route_others(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    frame: Any,
    branch: int,
    first: int,
    last: int,
    scratch: Scratch,
) -> None:
    """Find the leaves below `branch` for entries ``first .. last`` of those that are not in it."""
    before = nodes[branch].begin - frame.begin
    shift = nodes[branch].end - nodes[branch].begin + frame.begin
    middle = min(max(first, before), last)
    begin, end = frame.begin + first, frame.begin + middle
    route(rows, nodes, entries, begin, end, branch, scratch.ordinal, first)
    begin, end = shift + middle, shift + last
    route(rows, nodes, entries, begin, end, branch, scratch.ordinal, middle)


@inner
def _largest(nodes: NDArray, node: int) -> int:
    """The heaviest child of `node`; of equals, the last."""
    first = nodes[node].first_child
    largest = first
    for child in range(first + 1, first + nodes[node].n_children):
        if np.rint(nodes[child].weight / TIE) >= np.rint(nodes[largest].weight / TIE):
            largest = child
    return largest


@inner
def _sum_up(nodes: NDArray, node: int) -> tuple[float, bool]:
    """Limit of the errors of the children as they stand; whether rows stay below them."""
    errors, rows_stay = nodes[node].stopped, False
    first = nodes[node].first_child
    for child in range(first, first + nodes[node].n_children):
        errors += nodes[child].estimate
        rows_stay |= nodes[child].rows_stay
    return errors, rows_stay


@inner
def _refill(node: Any, weight: float, as_leaf: float, n_rows: int) -> None:
    """Let `node` have what a raised branch has brought to it."""
    node.refilled, node.settled = True, False
    node.n_rows, node.weight, node.as_leaf = n_rows, weight, as_leaf


@inner
def _give_way(rows: Rows, nodes: NDArray, at: int, largest: int) -> None:
    """Let a node carry the split and the children of its branch.

    What the branch keeps for want of a value goes to it as before, which is none of its children.
    """
    node, branch = nodes[at], nodes[largest]
    rows.nodes[at], rows.steps[at] = rows.nodes[largest], rows.steps[largest]
    node.split_of, node.spreads = branch.split_of, branch.spreads
    node.whole, node.direct = branch.whole, branch.direct
    node.first_child, node.n_children = branch.first_child, branch.n_children


@inner
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
        subtree, _ = _sum_up(nodes, node)
        if state.settled and state.as_leaf <= subtree + slack:
            state.n_children = 0
        elif state.settled:
            state.estimate = subtree


@kernel
def find_whole(nodes: NDArray) -> None:
    """Leave marked as `whole`, and as `direct`, what all below is."""
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
        for child in range(state.first_child, state.first_child + state.n_children):
            state.whole &= nodes[child].whole
            state.direct &= nodes[child].direct


@kernel
def _walk(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
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
    n_frames = push(frames, 0, NO_FRAME, 0, 0, entries.size, entries.size, 0)
    while n_frames > 0:
        frame = frames[n_frames - 1]
        node = frame.node
        state = nodes[node]
        if not frame.state & DONE:  # on the way down
            entries = enter(nodes, entries, frames, n_frames - 1)
            own = units[node]
            if state.whole and state.n_children > 0 and not frame.state & SORTED:
                sort_by_leaves(rows, nodes, units, entries, frame.begin, frame.end, node, scratch)
                frame.state |= SORTED
            elif not frame.state & SORTED:
                count(entries, frame.begin, frame.end, own)
            if frame.state & MOVED:
                as_leaf = _limit(scratch, own, unit, limit)
                _refill(state, own.sum() * unit, as_leaf, frame.end - frame.begin)
            state.counted = frame.state & (MOVED | ASKED | SORTED) != 0
            if not state.settled:
                state.estimate = state.as_leaf
            state.rows_stay = False
            if state.n_children == 0:
                n_frames -= 1
            elif frame.state & SORTED:
                frame.state |= DONE
                state.stopped = 0.0
                n_frames = push_sorted(nodes, frames, n_frames)
            else:
                n_frames, state.stopped = _distribute(
                    rows, nodes, entries, frames, n_frames, scratch, own, unit, limit,
                    _largest(nodes, node),
                )  # fmt: skip
            continue
        restore(rows, nodes, entries, frame)
        subtree, rows_stay = _sum_up(nodes, node)
        state.rows_stay = rows_stay or frame.n_stay > 0
        n_frames -= 1
        if state.settled:
            continue
        leaf, largest = state.as_leaf, _largest(nodes, node)
        branch, enough = leaf, _enough(leaf, subtree, slack)
        if nodes[largest].n_children > 0:
            branch = np.inf
            if frame.n_stay == 0 and nodes[largest].counted and not nodes[largest].rows_stay:
                branch = _estimate_added(
                    rows, nodes, units, entries, frame, scratch, unit, limit, largest, enough
                )
            if branch == np.inf:
                entries, branch = _estimate_all(
                    rows, nodes, entries, frames, n_frames + 1, scratch, unit, limit, largest,
                    enough,
                )  # fmt: skip
        if leaf <= min(subtree, branch) + slack:
            state.n_children, state.rows_stay = 0, False
            close(rows, node)
        elif branch <= subtree + slack:
            _give_way(rows, nodes, node, largest)
            begin, end, room = frame.begin, frame.end, frame.room
            n_frames = push(frames, n_frames, NO_FRAME, node, begin, end, room, MOVED)
        else:
            state.estimate = subtree
    return entries.size
