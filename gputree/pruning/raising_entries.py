r"""Rows on their way through subtree raising: one range of entries a node of the path.

A node's range is put in order once, by what its split does with the entries. The child of
most rows comes last and is visited in place; the others are visited as copies behind the
range, so that what is held at a time is the table and, at most, as much again. Rows that
stay for want of a value go with every child, in shares, behind its own:

    node            | stay | child a | child b ........ |
    visiting a      | stay | child a | child b ........ | child a | shares |
    visiting b      | stay | child a | child b ........ | shares |
                                       \__ range of b, the next node ___/

Where no row stays, there are no shares, and nothing is copied. A visit may change the order of its
range, but leaves the same entries there. Weights are integers, so sums do not depend on that order.
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
from gputree.prediction.descent import follow
from gputree.prediction.tables import Lists

# States of a frame: its rows came by a raised branch; its entries are in order and its
# children above it; what is there will be asked for; its entries are in the order of the leaves.
MOVED, DONE, ASKED, SORTED = 1, 2, 4, 8

# A node of the walk: the node whose split it carries; its children; limits of the errors as a
# leaf, of the subtree as it stands and of what stops at the node; whether it sends what it cannot
# place to all children; whether its rows came by a raised branch; whether rows stay at an inner
# node of its subtree; whether what becomes of the subtree is known without its rows; whether no
# row can stay at an inner node of it; whether the rows of all below are counted; whether some of
# those that are moved for a question have come to it. Its own range in that of its parent, and the
# next free place there.
# Records, for each array that a kernel takes adds to the time it compiles in.
NODE_STATE = record(
    [
        ("split_of", np.int32),
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
        ("settled", np.bool_),
        ("whole", np.bool_),
        ("direct", np.bool_),
        ("counted", np.bool_),
        ("reached", np.bool_),
        ("begin", np.int64),
        ("end", np.int64),
        ("place", np.int64),
    ]
)
# A row in a node, what of it is there, in units of weight, and its class.
ENTRY = record([("units", np.int64), ("row", np.int32), ("label", np.int32)])
# A node to visit, its entries, from where on there is room, and the frame of its parent. Once they
# are in order: how many stay, where those of the last child begin, which child that is, and units
# that go on.
FRAME = record(
    [
        ("begin", np.int64),
        ("end", np.int64),
        ("room", np.int64),
        ("n_stay", np.int64),
        ("last_begin", np.int64),
        ("known", np.int64),
        ("node", np.int32),
        ("last_child", np.int32),
        ("above", np.int32),
        ("state", np.int32),
    ]
)


def step_type(threshold: Any) -> np.dtype[Any]:
    """A split that leads to `child` and the nodes after it, where every value goes one way.

    Values beyond `threshold` go to the second child; where it is NaN, codes are places of children.
    """
    return record([("threshold", threshold), ("feature", np.int32), ("child", np.int32)])


class Rows(NamedTuple):
    """The tree's splits, which change as it does, and the rows, as `follow` takes them.

    Attributes
    ----------
    nodes : structured array of shape (N,)
    target : int32 array or None
    lists : Lists or None
    steps : structured array of shape (N,)
        The same splits for rows that each goes one way with (`step_type`).
    values : array of shape (n_rows * n_features,)
        Row by row or column by column, as they are.
    row_step, column_step : int
        From one row, and from one column, to the next.
    """

    nodes: NDArray
    target: NDArray[np.int32] | None
    lists: Lists | None
    steps: NDArray
    values: NDArray[np.floating]
    row_step: int
    column_step: int


class Scratch(NamedTuple):
    """Room to put one range in order: by row, by row, by part; by class; and for some nodes."""

    ordinal: NDArray[np.int32]
    entries: NDArray
    place: NDArray[np.int64]
    units: NDArray[np.int64]
    weights: NDArray[np.float64]
    nodes: NDArray[np.int32]


@inner
def push(
    frames: NDArray, n: int, above: int, node: int, begin: int, end: int, room: int, state: int
) -> int:
    """Put a node on top of n frames; how many there are."""
    frame = frames[n]
    frame.node, frame.begin, frame.end, frame.room = node, begin, end, room
    frame.above, frame.state, frame.n_stay = above, state, 0
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
def below(rows: Rows, row: int, at: int) -> int:
    """The child of `at` that a row goes to; none of them where it stays; a leaf itself."""
    feature = rows.nodes[np.uintp(at)].feature
    x = rows.values[np.uintp(row * rows.row_step + feature * rows.column_step)]
    return follow(x, rows.nodes, at, rows.target, rows.lists)


@inner
def directly_below(rows: Rows, row: int, at: int) -> np.int64:
    """`below` where every value goes one way, without a branch that may be foretold wrongly."""
    step = rows.steps[np.uintp(at)]
    x = rows.values[np.uintp(row * rows.row_step + step.feature * rows.column_step)]
    by_code = step.threshold != step.threshold
    return np.int64(step.child) + (np.int64(x) if by_code else np.int64(x > step.threshold))


@inner
def stays(node: Any, child: int) -> bool:
    """Whether `child` is none of the node's."""
    return child < node.first_child or child >= node.first_child + node.n_children


@inner
def close(rows: Rows, at: int) -> None:
    """Let rows end at a node that is a leaf from now on."""
    node = rows.nodes[at]
    node.feature, node.threshold, node.child, node.missing = 0, np.inf, at, at
    step = rows.steps[at]
    step.feature, step.threshold, step.child = 0, np.inf, at
    _forget_codes(rows.nodes, at, rows.target)


@inner
def _forget_codes(nodes: NDArray, at: int, target: NDArray[np.int32] | None) -> None:
    if target is not None:  # known when this is compiled
        nodes[at].n_codes = 0


@inner
def ask_ahead(rows: Rows, entries: NDArray, i: int, end: int, at: int) -> None:
    """Ask for the value that an entry some places after `i` is split by in the node `at`."""
    ahead = entries[min(i + PREFETCH_ROWS, end - 1)].row
    feature = rows.nodes[at].feature
    prefetch(rows.values, ahead * rows.row_step + feature * rows.column_step, 0)


@inner
def enter(nodes: NDArray, entries: NDArray, frames: NDArray, at: int) -> NDArray:
    """Make the range of the frame `at` whole: its own entries and its shares."""
    frame = frames[at]
    if frame.above == NO_FRAME:
        return entries
    above = frames[frame.above]
    n_spread = above.n_stay if nodes[above.node].spreads else 0
    if n_spread == 0:
        return entries
    begin, end, place = frame.begin, frame.end, frame.end
    part = np.int64(0)
    for i in range(begin, end):
        part += entries[i].units
    in_place = frame.node == nodes[above.node].first_child + above.last_child and end == frame.room
    entries = with_room(entries, frame.room, frame.room + end - begin + n_spread)
    if not in_place:
        frame.begin = place = frame.room
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
    frame.end = frame.room = place
    return entries


@inner
def arrange(rows: Rows, node: Any, entries: NDArray, frame: Any, scratch: Scratch) -> None:
    """Put a range in the order of its parts; ``scratch.place`` becomes their ends.

    Part 0 stays; part c + 1 is that of child c.
    """
    begin, end, place = frame.begin, frame.end, scratch.place
    place[: node.n_children + 1] = 0
    for i in range(begin, end):
        ask_ahead(rows, entries, i, end, frame.node)
        child = below(rows, entries[i].row, frame.node)
        ordinal = 0 if stays(node, child) else child - node.first_child + 1
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
def push_children(nodes: NDArray, frames: NDArray, n: int, asked: int, scratch: Scratch) -> int:
    """Put the children of the topmost frame above it, the last one first.

    Those that are settled are left out, unless they are `asked` for, or all below the frame is.
    """
    own = n - 1
    frame = frames[own]
    first, last = nodes[frame.node].first_child, frame.last_child
    n = _push_child(nodes, frames, n, own, first + last, frame.last_begin, frame.end, asked)
    at = frame.begin + frame.n_stay
    for child in range(nodes[frame.node].n_children):
        if child != last:
            end = scratch.place[child + 1]
            n = _push_child(nodes, frames, n, own, first + child, at, end, asked)
            at = end
    return n


@inner
def _push_child(
    nodes: NDArray,
    frames: NDArray,
    n: int,
    above: int,
    child: int,
    begin: int,
    end: int,
    asked: int,
) -> int:
    nodes[child].begin, nodes[child].end = begin, end
    state = frames[above].state & (MOVED | ASKED)
    if child == asked:
        state |= ASKED
    if state == 0 and nodes[child].settled:
        return n
    return push(frames, n, above, child, begin, end, frames[above].room, state)


@inner
def restore(rows: Rows, nodes: NDArray, entries: NDArray, frame: Any) -> None:
    """Take the shares out of the last child's range, which its visit has mixed with its own."""
    if frame.n_stay == 0 or not nodes[frame.node].spreads:
        return
    node = nodes[frame.node]
    place = i = frame.last_begin
    while place < frame.end:
        ask_ahead(rows, entries, i, frame.end, frame.node)
        if not stays(node, below(rows, entries[i].row, frame.node)):
            put(entries, place, entries[i], entries[i].units)
            place += 1
        i += 1
