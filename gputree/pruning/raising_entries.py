r"""Rows on their way through subtree raising: one range of entries a node of the path.

A node's range is put in order once, by what its split does with the entries. The child of
most rows comes last and is visited in place; the others are visited as copies behind the
range, so that what is held at a time is the table and, at most, as much again. Rows that
stay for want of a value go with every child, in shares, behind its own:

    node            | stay | child a | child b ........ |
    visiting a      | stay | child a | child b ........ | child a | shares |
    visiting b      | stay | child a | child b ........ | shares |
                                       \__ range of b, the next node ___/

A visit may change the order of its range, but leaves the same entries there. Weights are
integers, so sums do not depend on that order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner
from gputree.compilation.arrays import record
from gputree.compilation.prefetching import PREFETCH_ROWS, prefetch
from gputree.dtypes import NO_FRAME
from gputree.fixed_point import fraction
from gputree.prediction.descent import step
from gputree.prediction.tables import Lists

# States of a frame: its rows came by a raised branch; its entries are in order and its
# children above it; it is the last child, visited in place.
MOVED, DONE, LAST = 1, 2, 4

# A node of the walk: the node whose split it carries, and that one's first child in the tree
# as it was; its children; limits of the errors as a leaf, of the subtree as it stands and of
# what stops at the node; whether it sends what it cannot place to all children; whether its
# rows came by a raised branch; whether rows stay at an inner node of its subtree.
# Records, for each array that a kernel takes adds to the time it compiles in.
NODE_STATE = record(
    [
        ("split_of", np.int32),
        ("split_child", np.int32),
        ("first_child", np.int32),
        ("n_children", np.int32),
        ("n_rows", np.int64),
        ("weight", np.float64),
        ("as_leaf", np.float64),
        ("estimate", np.float64),
        ("stopped", np.float64),
        ("spreads", np.bool_),
        ("refilled", np.bool_),
        ("rows_stay", np.bool_),
    ]
)
# A row in a node, what of it is there, in units of weight, and its class.
ENTRY = record([("units", np.int64), ("row", np.int32), ("label", np.int32)])
# A node to visit, its entries, and the frame of its parent. Once they are in order: how many
# stay, where those of the last child begin, which child that is, and units that go on.
FRAME = record(
    [
        ("begin", np.int64),
        ("end", np.int64),
        ("n_stay", np.int64),
        ("last_begin", np.int64),
        ("known", np.int64),
        ("node", np.int32),
        ("last_child", np.int32),
        ("above", np.int32),
        ("state", np.int32),
    ]
)


class Rows(NamedTuple):
    """The tree's splits and the rows, as `step` takes them.

    Attributes
    ----------
    nodes : structured array of shape (N,)
    target : int32 array or None
    lists : Lists or None
    values : array of shape (n_rows, n_features)
    """

    nodes: NDArray
    target: NDArray[np.int32] | None
    lists: Lists | None
    values: NDArray[np.floating]


class Scratch(NamedTuple):
    """Room to put one range in order: by row, by row, by part; and by class."""

    ordinal: NDArray[np.int32]
    entries: NDArray
    place: NDArray[np.int64]
    units: NDArray[np.int64]
    weights: NDArray[np.float64]


@inner
def push(frames: NDArray, n: int, above: int, node: int, begin: int, end: int, state: int) -> int:
    """Put a node on top of n frames; how many there are."""
    frame = frames[n]
    frame.node, frame.begin, frame.end = node, begin, end
    frame.above, frame.state = above, state
    return n + 1


@inner
def with_room(entries: NDArray, end: int, size: int) -> NDArray:
    """`entries` with room for `size`; what lies before `end` stays."""
    if size <= entries.size:
        return entries
    longer = np.empty(2 * size, entries.dtype)
    for i in range(end):  # assigning a slice takes 3 s to compile
        longer[i] = entries[i]
    return longer


@inner
def put(entries: NDArray, place: int, entry: Any, units: int) -> None:
    """Let a place hold so much of what an entry holds."""
    entries[place].row, entries[place].label = entry.row, entry.label
    entries[place].units = units


@inner
def count(entries: NDArray, begin: int, end: int, units: NDArray[np.int64]) -> None:
    """Write the class weights of a range to `units`."""
    units[:] = 0
    for i in range(begin, end):
        units[entries[i].label] += entries[i].units


@inner
def ask_ahead(rows: Rows, entries: NDArray, i: int, end: int, split: int) -> None:
    """Ask for the value that an entry some places after `i` is split by."""
    ahead = entries[min(i + PREFETCH_ROWS, end - 1)].row
    prefetch(rows.values, ahead, rows.nodes[split].feature)


@inner
def enter(nodes: NDArray, entries: NDArray, frames: NDArray, at: int) -> NDArray:
    """Make the range of the frame `at` whole: its own entries and its shares."""
    frame = frames[at]
    if frame.above == NO_FRAME:
        return entries
    above = frames[frame.above]
    begin, end, top = frame.begin, frame.end, above.end
    n_spread = above.n_stay if nodes[above.node].spreads else 0
    entries = with_room(entries, top, top + end - begin + n_spread)
    place, part = top, np.int64(0)
    for i in range(begin, end):
        part += entries[i].units
    if not frame.state & LAST:
        frame.begin = top
        for i in range(begin, end):
            put(entries, place, entries[i], entries[i].units)
            place += 1
    whole = above.known
    if whole == 0:  # nothing says how to divide them
        part, whole = np.int64(1), np.int64(nodes[above.node].n_children)
    for i in range(above.begin, above.begin + n_spread):
        share = fraction(entries[i].units, part, whole)
        if share > 0:
            put(entries, place, entries[i], share)
            place += 1
    frame.end = place
    return entries


@inner
def arrange(rows: Rows, node: Any, entries: NDArray, frame: Any, scratch: Scratch) -> None:
    """Put a range in the order of its parts; ``scratch.place`` becomes their ends.

    Part 0 stays; part c + 1 is that of child c.
    """
    begin, end, place = frame.begin, frame.end, scratch.place
    place[: node.n_children + 1] = 0
    split, first = node.split_of, node.split_child
    for i in range(begin, end):
        ask_ahead(rows, entries, i, end, split)
        below = step(rows.values, entries[i].row, rows.nodes, rows.target, rows.lists, split)
        ordinal = 0 if below == split else below - first + 1
        scratch.ordinal[i - begin] = ordinal
        scratch.entries[i - begin] = entries[i]
        place[ordinal] += 1
    last, at = 1, begin
    for part in range(2, node.n_children + 1):
        if place[part] > place[last]:
            last = part
    frame.n_stay, frame.last_child, frame.known = place[0], last - 1, 0
    for part in range(node.n_children + 1):
        if part != last:
            at, place[part] = at + place[part], at
    frame.last_begin = place[last] = at
    for i in range(end - begin):
        ordinal, entry = scratch.ordinal[i], scratch.entries[i]
        put(entries, place[ordinal], entry, entry.units)
        place[ordinal] += 1
        if ordinal > 0:
            frame.known += entry.units


@inner
def push_children(nodes: NDArray, frames: NDArray, n: int, scratch: Scratch) -> int:
    """Put the children of the topmost frame above it, the last one first."""
    own = n - 1
    frame = frames[own]
    first, last = nodes[frame.node].first_child, frame.last_child
    moved = frame.state & MOVED
    n = push(frames, n, own, first + last, frame.last_begin, frame.end, moved | LAST)
    at = frame.begin + frame.n_stay
    for child in range(nodes[frame.node].n_children):
        if child != last:
            n = push(frames, n, own, first + child, at, scratch.place[child + 1], moved)
            at = scratch.place[child + 1]
    return n


@inner
def restore(rows: Rows, nodes: NDArray, entries: NDArray, frame: Any) -> None:
    """Take the shares out of the last child's range, which its visit has mixed with its own."""
    if frame.n_stay == 0 or not nodes[frame.node].spreads:
        return
    split = nodes[frame.node].split_of
    place = i = frame.last_begin
    while place < frame.end:
        ask_ahead(rows, entries, i, frame.end, split)
        below = step(rows.values, entries[i].row, rows.nodes, rows.target, rows.lists, split)
        if below != split:
            put(entries, place, entries[i], entries[i].units)
            place += 1
        i += 1
