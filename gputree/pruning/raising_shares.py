r"""Fractional entries: rows with a missing value stay at a node, and go on to every child in part.

A row with a value for every split on its path is at its leaf, another at the node where it stays
(`raising_routing`). Rows that stay become fractional entries of the children, in one range for each
node of the current path, which is sorted once by the node's split. The child with the most comes
last and is visited in place; the others are visited as copies behind the range, so that an entry is
stored at most twice:

    node            | stay | child a | child b ........ |
    visiting a      | stay | child a | child b ........ | child a | shares |
    visiting b      | stay | child a | child b ........ | shares |
                                       \__ range of b, the next node ___/

A visit may change the order of its range, but leaves the same entries there. Weights are integers,
so sums do not depend on that order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import fraction
from gputree.base.dtypes import NO_FRAME
from gputree.compilation import borrowing
from gputree.pruning.error_limit import added_errors
from gputree.pruning.raising_routing import (
    DONE,
    ESTIMATED,
    MOVED,
    SORTED,
    Walk,
    next_node,
    prefetch_value,
    push,
    put,
    weight_of,
)


@borrowing
def _stays(node: Any, child: int) -> bool:
    """Return True if `child` is none of the node's children: the row stays."""
    return child < node.first_child or child >= node.first_child + node.n_children


@borrowing
def _n_spread(node: Any, frame: Any) -> int:
    """Number of entries, whole or not, that stay at a frame's node and go to all its children."""
    return frame.n_stay + node.stay_end - node.begin if node.spreads else 0


@borrowing
def n_needed(walk: Walk, index: int) -> int:
    """Capacity for fractional entries with which the frame `index` can be entered."""
    frame = walk.frames[index]
    if frame.above == NO_FRAME:
        return 0
    above = walk.frames[frame.above]
    n_more = _n_spread(walk.nodes[above.node], above)
    return frame.free + frame.end - frame.begin + n_more if n_more > 0 else 0


@borrowing
def enter(walk: Walk, shares: NDArray, index: int) -> None:
    """Add the rows that stay at the node above to the range of the frame `index`."""
    if n_needed(walk, index) == 0:
        return
    frame = walk.frames[index]
    above = walk.frames[frame.above]
    node = walk.nodes[above.node]
    begin, end, place = frame.begin, frame.end, frame.end
    part, whole = weight_of(walk.units[frame.node]), above.in_children
    for i in range(begin, end):
        part += shares[i].units
    # Only behind the last child's range are places free.
    if frame.node != node.first_child + above.last_child or end != frame.free:
        frame.begin = place = frame.free
        for i in range(begin, end):
            put(shares, place, shares[i], shares[i].units)
            place += 1
    if whole == 0:  # without weights of children, nothing is divided
        part, whole = np.int64(1), np.int64(node.n_children)
    place = _put_shares(shares, above.begin, above.begin + above.n_stay, part, whole, shares, place)
    place = _put_shares(walk.entries, node.begin, node.stay_end, part, whole, shares, place)
    frame.end = frame.free = place


@borrowing
def _put_shares(
    entries: NDArray, begin: int, end: int, part: int, whole: int, shares: NDArray, place: int
) -> int:
    """Write ``part / whole`` of each entry of a range from `place` on; return the next place."""
    for i in range(begin, end):
        share = fraction(entries[i].units, part, whole)
        if share > 0:
            put(shares, place, entries[i], share)
            place += 1
    return place


@borrowing
def count(walk: Walk, shares: NDArray, frame: Any) -> None:
    """Write the class weights of a frame's node to ``scratch.units``, of all its entries."""
    total = walk.scratch.units
    for k in range(total.size):
        total[k] = walk.units[frame.node, k]
    for i in range(frame.begin, frame.end):
        total[shares[i].label] += shares[i].units


@borrowing
def distribute(walk: Walk, shares: NDArray, n_frames: int) -> tuple[int, float]:
    """Push the children of the topmost frame; returns the limit of errors of rows that stop there.

    ``scratch.units`` are the node's class weights.
    """
    frame = walk.frames[n_frames - 1]
    node = walk.nodes[frame.node]
    frame.state |= DONE
    _sort_by_children(walk, shares, frame)
    stopped = 0.0
    if not node.spreads and frame.n_stay + node.stay_end > node.begin:
        stopped = _stopped_errors(walk, shares, frame)
    return _push_children(walk, n_frames), stopped


@borrowing
def _sort_by_children(walk: Walk, shares: NDArray, frame: Any) -> None:
    """Sort a range: entries that stay, then by children; ``scratch.place`` becomes the ends."""
    node, scratch = walk.nodes[frame.node], walk.scratch
    begin, end, place = frame.begin, frame.end, scratch.place
    place[: node.n_children + 1] = 0
    for i in range(begin, end):
        prefetch_value(walk.rows, shares, i, end, frame.node)
        child = next_node(walk.rows, shares[i].row, frame.node)
        ordinal = 0 if _stays(node, child) else child - node.first_child + 1
        scratch.ordinal[i - begin] = ordinal
        scratch.entries[i - begin] = shares[i]
        place[ordinal] += 1
    last, offset = 1, begin
    for part in range(2, node.n_children + 1):
        if place[part] > place[last]:
            last = part
    frame.n_stay, frame.last_child, frame.in_children = place[0], last - 1, 0
    # From here, `place` is the next place of each part.
    for part in range(node.n_children + 1):
        if part != last:
            offset, place[part] = offset + place[part], offset
    frame.last_begin = place[last] = offset
    for i in range(end - begin):
        ordinal, entry = scratch.ordinal[i], scratch.entries[i]
        put(shares, place[ordinal], entry, entry.units)
        place[ordinal] += 1
        if ordinal > 0:
            frame.in_children += entry.units
    if _n_spread(node, frame) > 0:
        for child in range(node.first_child, node.first_child + node.n_children):
            frame.in_children += weight_of(walk.units[child])


@borrowing
def _stopped_errors(walk: Walk, shares: NDArray, frame: Any) -> float:
    """Limit of the errors of entries that stop at a node, which predicts the majority class."""
    node, majority = walk.nodes[frame.node], np.argmax(walk.scratch.units)
    weight, errors = _errors(walk.entries, node.begin, node.stay_end, majority)
    more, wrong = _errors(shares, frame.begin, frame.begin + frame.n_stay, majority)
    weight, errors = (weight + more) * walk.unit, (errors + wrong) * walk.unit
    return errors + added_errors(weight, errors, walk.limit)


@borrowing
def _errors(entries: NDArray, begin: int, end: int, majority: int) -> tuple[np.int64, np.int64]:
    """Units of a range, and of its entries of other classes."""
    weight = errors = np.int64(0)
    for i in range(begin, end):
        weight += entries[i].units
        if entries[i].label != majority:
            errors += entries[i].units
    return weight, errors


@borrowing
def _push_children(walk: Walk, n: int) -> int:
    """Push the children of the topmost frame, the last one first.

    Settled ones are omitted, unless everything below the frame is moved or its errors are
    estimated.
    """
    above = n - 1
    frame = walk.frames[above]
    node, last = walk.nodes[frame.node], frame.last_child
    n = _push_child(walk, n, above, node.first_child + last, frame.last_begin, frame.end)
    begin = frame.begin + frame.n_stay
    for ordinal in range(node.n_children):
        if ordinal != last:
            end = walk.scratch.place[ordinal + 1]
            n = _push_child(walk, n, above, node.first_child + ordinal, begin, end)
            begin = end
    return n


@borrowing
def _push_child(walk: Walk, n: int, above: int, child: int, begin: int, end: int) -> int:
    state = walk.frames[above].state & (MOVED | ESTIMATED | SORTED)
    if state & (MOVED | ESTIMATED) == 0 and walk.nodes[child].settled:
        return n
    n = push(walk.frames, n, above, child, begin, end, walk.frames[above].free)
    walk.frames[n - 1].state = state
    return n


@borrowing
def restore(walk: Walk, shares: NDArray, frame: Any) -> None:
    """Move the entries of the node above out of the last child's range, mixed in by its visit."""
    node = walk.nodes[frame.node]
    if _n_spread(node, frame) == 0:
        return
    place = i = frame.last_begin
    while place < frame.end:
        prefetch_value(walk.rows, shares, i, frame.end, frame.node)
        if not _stays(node, next_node(walk.rows, shares[i].row, frame.node)):
            put(shares, place, shares[i], shares[i].units)
            place += 1
        i += 1
