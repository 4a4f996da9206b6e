"""What a branch would cost in its node's place.

Only the rows of the smaller branches are sent down it, since its own lie where they are: a row is
in a smaller branch at most log2 n times, so that what is asked costs little more than the walk.
They are sent in portions, until the branch is out: rows that join it take no errors away. Shares of
rows, and rows that stay on the way, follow where whole rows have not decided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, lent
from gputree.dtypes import NO_FRAME
from gputree.pruning.error_limit import ErrorLimit, added_errors, limited_errors
from gputree.pruning.raising_entries import (
    ASKED,
    DONE,
    Rows,
    Scratch,
    add,
    arrange,
    enter,
    push,
    push_children,
    put,
    restore,
    with_room,
)
from gputree.pruning.raising_order import route

# Rows after which it is first asked whether a branch is out; then after as many as it may take, by
# the errors so far and this much more, but after twice as many.
FIRST_LOOK = 64
MARGIN = 1.05


@lent
def leaf_limit(scratch: Scratch, units: NDArray[np.int64], unit: float, limit: ErrorLimit) -> float:
    """Upper limit of the errors of a leaf with these class weights."""
    for k in range(units.size):
        scratch.weights[k] = units[k] * unit
    return limited_errors(scratch.weights, limit)


@lent
def _stopped_errors(
    node: Any,
    entries: NDArray,
    shares: NDArray,
    frame: Any,
    class_units: NDArray[np.int64],
    unit: float,
    limit: ErrorLimit,
) -> float:
    """Limit of the errors of what stops at a node: it answers with its majority."""
    answer = np.argmax(class_units)
    weight, errors = _weigh(entries, node.begin, node.held, answer)
    more, wrong = _weigh(shares, frame.begin, frame.begin + frame.n_stay, answer)
    weight, errors = (weight + more) * unit, (errors + wrong) * unit
    return errors + added_errors(weight, errors, limit)


@lent
def _weigh(entries: NDArray, begin: int, end: int, answer: int) -> tuple[np.int64, np.int64]:
    """Units of a range, and of its entries of other classes than `answer`."""
    weight = errors = np.int64(0)
    for i in range(begin, end):
        weight += entries[i].units
        if entries[i].label != answer:
            errors += entries[i].units
    return weight, errors


@lent
def distribute(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    shares: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
) -> tuple[int, float]:
    """Put the children of the topmost frame above it; the limit of what stops at its node.

    ``scratch.units`` are the node's class weights.
    """
    frame = frames[n_frames - 1]
    node = nodes[frame.node]
    frame.state |= DONE
    arrange(rows, nodes, units, shares, frame, scratch)
    stopped = 0.0
    if not node.spreads and frame.n_stay + node.held > node.begin:
        stopped = _stopped_errors(node, entries, shares, frame, scratch.units, unit, limit)
    return push_children(nodes, frames, n_frames, scratch), stopped


@lent
def count(units: NDArray[np.int64], shares: NDArray, frame: Any, total: NDArray[np.int64]) -> None:
    """Write the class weights of a frame's node to `total`, of whole rows and shares."""
    for k in range(total.size):
        total[k] = units[frame.node, k]
    add(shares, frame.begin, frame.end, total)


@inner
def estimate_branch(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    shares: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
    enough: float,
) -> tuple[NDArray, float]:
    """Errors if all that is in the node of the topmost frame went down `branch`, one of its own.

    Or only more than `enough`, where it is more.
    """
    frame = frames[n_frames - 1]
    total, all_go = _estimate_whole(
        rows, nodes, units, entries, frame.node, scratch, unit, limit, branch, enough
    )
    if total > enough or (all_go and frame.begin == frame.end):
        return shares, total
    return _estimate_all(
        rows, nodes, units, entries, shares, frames, n_frames, scratch, unit, limit, branch, enough
    )


@lent
def _estimate_whole(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    at: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
    enough: float,
) -> tuple[float, bool]:
    """Errors of whole rows if the others of a node joined those in `branch`; whether none stays.

    Or only more than `enough`, where it is more: no row takes errors away. Rows that stay on the
    way are not counted.
    """
    node, own = nodes[at], nodes[branch]
    total, all_go = own.least, not own.rows_stay
    n_reached, asked, n = 0, 0, node.end - node.begin - (own.end - own.begin)
    while asked < n and total <= enough:
        more = min(n, _next_look(asked, total - own.least, enough - own.least))
        _route_others(rows, nodes, entries, node, branch, asked, more, scratch)
        for j in range(asked, more):
            leaf, entry = scratch.ordinal[j], entries[_other(node, own, j)]
            if not nodes[leaf].reached:
                if nodes[leaf].n_children > 0:
                    all_go = False
                    continue
                nodes[leaf].reached = True
                scratch.nodes[n_reached] = leaf
                for k in range(units.shape[1]):
                    scratch.before[n_reached, k] = units[leaf, k]
                n_reached += 1
            units[leaf, entry.label] += entry.units
        asked = more
        total = own.least
        for j in range(n_reached):
            leaf = scratch.nodes[j]
            total += leaf_limit(scratch, units[leaf], unit, limit) - nodes[leaf].least
    for j in range(n_reached):  # and they leave again
        leaf = scratch.nodes[j]
        nodes[leaf].reached = False
        for k in range(units.shape[1]):
            units[leaf, k] = scratch.before[j, k]
    return total, all_go


@lent
def _next_look(asked: int, added: float, enough: float) -> int:
    """Rows after which `enough` errors may have been added, as some were by those `asked`."""
    if added * 2.0 <= enough * MARGIN:
        return max(2 * asked, FIRST_LOOK)
    return asked + FIRST_LOOK + int(asked * (enough / added * MARGIN - 1.0))


@lent
def _other(node: Any, branch: Any, j: int) -> int:
    """The place of the j-th entry of a node that is not in the range of `branch`."""
    i = node.begin + j
    return i if i < branch.begin else i + branch.end - branch.begin


@lent
def _route_others(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    node: Any,
    branch: int,
    first: int,
    last: int,
    scratch: Scratch,
) -> None:
    """Find the leaves below `branch` for entries ``first .. last`` of those that are not in it."""
    before = nodes[branch].begin - node.begin
    shift = nodes[branch].end - nodes[branch].begin + node.begin
    middle = min(max(first, before), last)
    begin, end = node.begin + first, node.begin + middle
    route(rows, nodes, entries, begin, end, branch, scratch.ordinal, first)
    begin, end = shift + middle, shift + last
    route(rows, nodes, entries, begin, end, branch, scratch.ordinal, middle)


@inner
def _estimate_all(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    shares: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    unit: float,
    limit: ErrorLimit,
    branch: int,
    enough: float,
) -> tuple[NDArray, float]:
    """Errors if all that is not whole in `branch` went down it from the topmost frame.

    Or only more than `enough`, where it is more.
    """
    total, bottom = nodes[branch].least, n_frames
    shares, end = _gather(nodes, entries, shares, frames[n_frames - 1], branch)
    begin = frames[n_frames - 1].room
    n_frames = push(frames, n_frames, NO_FRAME, branch, begin, end, end, ASKED)
    while n_frames > bottom:
        frame = frames[n_frames - 1]
        node = nodes[frame.node]
        if frame.state & DONE:
            restore(rows, nodes, shares, frame)
            n_frames -= 1
            continue
        shares = enter(nodes, units, entries, shares, frames, n_frames - 1)
        if total > enough or (frame.begin == frame.end and not node.rows_stay):
            n_frames -= 1
            continue
        count(units, shares, frame, scratch.units)
        if node.n_children == 0:
            total += leaf_limit(scratch, scratch.units, unit, limit) - node.least
            n_frames -= 1
        else:
            n_frames, stopped = distribute(
                rows, nodes, units, entries, shares, frames, n_frames, scratch, unit, limit
            )
            total += stopped
    return shares, total


@inner
def _gather(
    nodes: NDArray, entries: NDArray, shares: NDArray, frame: Any, branch: int
) -> tuple[NDArray, int]:
    """Put the shares of a frame, and the whole rows that are not in `branch`, behind them."""
    node, own = nodes[frame.node], nodes[branch]
    n_others = node.end - node.begin - (own.end - own.begin)
    place = frame.room
    shares = with_room(shares, place, place + frame.end - frame.begin + n_others)
    for i in range(frame.begin, frame.end):
        put(shares, place, shares[i], shares[i].units)
        place += 1
    for j in range(n_others):
        entry = entries[_other(node, own, j)]
        put(shares, place, entry, entry.units)
        place += 1
    return shares, place
