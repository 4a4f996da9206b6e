"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

Nodes are visited after their children, and again after a branch was raised. What a branch
would cost in its node's place is asked at every node. Where all rows go one way, only those
of the smaller branches are sent down it, since its own end where they are: a row is in a
smaller branch at most log2 n times, so that what is asked costs little more than the walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, kernel
from gputree.dtypes import NO_FRAME
from gputree.fixed_point import Weights
from gputree.prediction.descent import step
from gputree.pruning.error_limit import ErrorLimit, added_errors, limited_errors
from gputree.pruning.raising_entries import (
    DONE,
    ENTRY,
    FRAME,
    MOVED,
    Rows,
    Scratch,
    arrange,
    ask_ahead,
    count,
    enter,
    push,
    push_children,
    put,
    restore,
    with_room,
)

# Branches whose weights agree to this much tie, and the last is the largest: shares of rows
# are rounded.
TIE = 1e-6


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
) -> tuple[int, float]:
    """Put the children of the topmost frame above it; the limit of what stops at its node."""
    frame = frames[n_frames - 1]
    frame.state |= DONE
    arrange(rows, nodes[frame.node], entries, frame, scratch)
    stopped = 0.0
    if frame.n_stay > 0 and not nodes[frame.node].spreads:
        stopped = _stopped_errors(entries, frame, class_units, unit, limit)
    return push_children(nodes, frames, n_frames, scratch), stopped


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
    begin, end = frames[n_frames - 1].begin, frames[n_frames - 1].end
    n_frames = push(frames, n_frames, NO_FRAME, branch, begin, end, 0)
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
                rows, nodes, entries, frames, n_frames, scratch, scratch.units, unit, limit
            )
            total += stopped
    return entries, total


@inner
def _copy_others(
    rows: Rows, nodes: NDArray, entries: NDArray, frame: Any, branch: int
) -> tuple[NDArray, int]:
    """Copy the entries of a frame that its node does not send to `branch` behind it."""
    node = nodes[frame.node]
    below = node.split_child + branch - node.first_child
    end = frame.last_begin if branch == node.first_child + frame.last_child else frame.end
    entries = with_room(entries, frame.end, 2 * frame.end - frame.begin)
    place = frame.end
    for i in range(frame.begin, end):
        ask_ahead(rows, entries, i, end, node.split_of)
        row = entries[i].row
        to = step(rows.values, row, rows.nodes, rows.target, rows.lists, node.split_of)
        if to != below:
            put(entries, place, entries[i], entries[i].units)
            place += 1
    return entries, place


@inner
def _estimate_added(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
) -> tuple[NDArray, float]:
    """Errors if the other entries of the topmost frame joined those in `branch`.

    Infinite where one of them stays on the way: it would change the shares of all.
    """
    total, bottom, own = nodes[branch].estimate, n_frames, frames[n_frames - 1]
    entries, end = _copy_others(rows, nodes, entries, own, branch)
    n_frames = push(frames, n_frames, NO_FRAME, branch, own.end, end, 0)
    while n_frames > bottom:
        frame = frames[n_frames - 1]
        node = frame.node
        if frame.state & DONE:
            n_frames -= 1
            continue
        entries = enter(nodes, entries, frames, n_frames - 1)
        if frame.begin == frame.end:
            n_frames -= 1
        elif nodes[node].n_children == 0:
            count(entries, frame.begin, frame.end, scratch.units)
            for k in range(scratch.units.size):
                scratch.units[k] += units[node, k]
            total += _limit(scratch, scratch.units, unit, limit) - nodes[node].as_leaf
            n_frames -= 1
        else:
            n_frames, _ = _distribute(
                rows, nodes, entries, frames, n_frames, scratch, scratch.units, unit, limit
            )
            if frame.n_stay > 0:
                return entries, np.inf
    return entries, total


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
    node.refilled = True
    node.n_rows, node.weight, node.as_leaf = n_rows, weight, as_leaf


@inner
def _give_way(node: Any, branch: Any) -> None:
    """Let `node` carry the split and the children of its branch."""
    node.split_of, node.split_child = branch.split_of, branch.split_child
    node.first_child, node.n_children = branch.first_child, branch.n_children
    node.spreads = branch.spreads


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
    n_frames = push(frames, 0, NO_FRAME, 0, 0, entries.size, 0)
    while n_frames > 0:
        frame = frames[n_frames - 1]
        node = frame.node
        if not frame.state & DONE:  # on the way down
            entries = enter(nodes, entries, frames, n_frames - 1)
            own = units[node]
            count(entries, frame.begin, frame.end, own)
            if frame.state & MOVED:
                as_leaf = _limit(scratch, own, unit, limit)
                _refill(nodes[node], own.sum() * unit, as_leaf, frame.end - frame.begin)
            nodes[node].estimate, nodes[node].rows_stay = nodes[node].as_leaf, False
            if nodes[node].n_children == 0:
                n_frames -= 1
            else:
                n_frames, nodes[node].stopped = _distribute(
                    rows, nodes, entries, frames, n_frames, scratch, own, unit, limit
                )
            continue
        restore(rows, nodes, entries, frame)
        leaf, (subtree, rows_stay) = nodes[node].as_leaf, _sum_up(nodes, node)
        largest = _largest(nodes, node)
        branch = leaf
        if nodes[largest].n_children > 0:
            branch = np.inf
            if frame.n_stay == 0 and not nodes[largest].rows_stay:
                entries, branch = _estimate_added(
                    rows, nodes, units, entries, frames, n_frames, scratch, unit, limit, largest
                )
            if branch == np.inf:
                # Beyond this the branch is out, whatever else it costs.
                enough = min(leaf, subtree + slack)
                entries, branch = _estimate_all(
                    rows, nodes, entries, frames, n_frames, scratch, unit, limit, largest, enough
                )
        n_frames -= 1
        if leaf <= min(subtree, branch) + slack:
            nodes[node].n_children = 0
        elif branch <= subtree + slack:
            _give_way(nodes[node], nodes[largest])
            n_frames = push(frames, n_frames, NO_FRAME, node, frame.begin, frame.end, MOVED)
        else:
            nodes[node].estimate = subtree
            nodes[node].rows_stay = rows_stay or frame.n_stay > 0
    return entries.size
