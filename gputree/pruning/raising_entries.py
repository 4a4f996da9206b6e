r"""Rows on their way through subtree raising: whole ones lie in order, shares of others walk.

A row whose values all splits on its way know lies at its leaf, once for all levels; another at the
node where it stays for want of a value (`raising_order`). What stays goes with every child, in
shares. They are entries of one range a node of the path, which is put in order once, by what the
node's split does with them. The child of most comes last and is visited in place; the others are
visited as copies behind the range, so that what goes on is held twice at a time, at most:

    node            | stay | child a | child b ........ |
    visiting a      | stay | child a | child b ........ | child a | shares |
    visiting b      | stay | child a | child b ........ | shares |
                                       \__ range of b, the next node ___/

A visit may change the order of its range, but leaves the same entries there. Weights are integers,
so sums do not depend on that order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, lent
from gputree.compilation.arrays import record
from gputree.compilation.prefetching import PREFETCH_ROWS, prefetch
from gputree.dtypes import NO_FRAME
from gputree.fixed_point import fraction
from gputree.prediction.descent import follow
from gputree.prediction.tables import Lists

# States of a frame: its rows came by a raised branch; its entries are in order and its children
# above it; what is below it is asked about; its whole rows are in order as well.
MOVED, DONE, ASKED, SORTED = 1, 2, 4, 8

# A node of the walk: the node whose split it carries; the one that carries its own, itself unless
# it was raised; its children; limits of the errors as a
# leaf, of the subtree as it stands, of what stops at the node, and of the whole rows at the leaves
# below; whether it sends what it cannot place to all children; whether its rows came by a raised
# branch; whether whole rows stay at an inner node of its subtree; whether what becomes of the
# subtree is known without its rows; whether every value goes one way, and by its code, all below;
# whether some of those that are moved for a question have come to it. The range of its whole rows,
# first those that stay, up to `held`.
# Records, for each array that a kernel takes adds to the time it compiles in.
NODE_STATE = record(
    [
        ("split_of", np.int32),
        ("carrier", np.int32),
        ("first_child", np.int32),
        ("n_children", np.int32),
        ("n_rows", np.int64),
        ("weight", np.float64),
        ("as_leaf", np.float64),
        ("estimate", np.float64),
        ("stopped", np.float64),
        ("least", np.float64),
        ("spreads", np.bool_),
        ("refilled", np.bool_),
        ("rows_stay", np.bool_),
        ("settled", np.bool_),
        ("direct", np.bool_),
        ("reached", np.bool_),
        ("begin", np.int64),
        ("held", np.int64),
        ("end", np.int64),
    ]
)
# A row in a node, what of it is there, in units of weight, and its class.
ENTRY = record([("units", np.int64), ("row", np.int32), ("label", np.int32)])
# A node to visit, its shares, from where on there is room, and the frame of its parent. Once they
# are in order: how many stay, where those of the last child begin, which child that is, and units
# that go on, of whole rows as well.
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
# A split that leads to `child` and the nodes after it, where every value goes one way: values
# beyond `threshold` go to the second child; where it is NaN, codes are places of children.
STEP = record([("threshold", np.float64), ("feature", np.int32), ("child", np.int32)])


class Rows(NamedTuple):
    """The tree's splits, which change as it does, and the rows, as `follow` takes them.

    Attributes
    ----------
    nodes : structured array of shape (N,)
    target : int32 array
    lists : Lists
        Of the same types for all trees (`pack_alike`).
    steps : STEP array of shape (N,)
        The same splits for rows that each goes one way with.
    values : array of shape (n_rows * n_features,)
        Row by row or column by column, as they are.
    row_step, column_step : int
        From one row, and from one column, to the next.
    """

    nodes: NDArray
    target: NDArray[np.int32]
    lists: Lists
    steps: NDArray
    values: NDArray[np.floating]
    row_step: int
    column_step: int


class Scratch(NamedTuple):
    """Room to put one range in order.

    By row twice, by part, by class twice; for some nodes, by node, and class weights of some nodes.
    """

    ordinal: NDArray[np.int32]
    entries: NDArray
    place: NDArray[np.int64]
    units: NDArray[np.int64]
    weights: NDArray[np.float64]
    nodes: NDArray[np.int32]
    free: NDArray[np.int32]
    before: NDArray[np.int64]


@lent
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


@lent
def put(entries: NDArray, place: int, entry: Any, units: int) -> None:
    """Let a place hold so much of what an entry holds."""
    entries[place].row, entries[place].label = entry.row, entry.label
    entries[place].units = units


@lent
def add(entries: NDArray, begin: int, end: int, units: NDArray[np.int64]) -> None:
    """Add the class weights of a range to `units`."""
    for i in range(begin, end):
        units[entries[i].label] += entries[i].units


@lent
def weight_of(units: NDArray[np.int64]) -> np.int64:
    """Sum of class weights."""
    total = np.int64(0)
    for k in range(units.size):
        total += units[k]
    return total


@lent
def below(rows: Rows, row: int, at: int) -> int:
    """The child of `at` that a row goes to; none of them where it stays; a leaf itself."""
    feature = rows.nodes[np.uintp(at)].feature
    x = rows.values[np.uintp(row * rows.row_step + feature * rows.column_step)]
    return follow(x, rows.nodes, at, rows.target, rows.lists)


@lent
def directly_below(rows: Rows, row: int, at: int) -> np.int64:
    """`below` where every value goes one way, without a branch that may be foretold wrongly."""
    step = rows.steps[np.uintp(at)]
    x = rows.values[np.uintp(row * rows.row_step + step.feature * rows.column_step)]
    by_code = step.threshold != step.threshold
    return np.int64(step.child) + (np.int64(x) if by_code else np.int64(x > step.threshold))


@lent
def stays(node: Any, child: int) -> bool:
    """Whether `child` is none of the node's."""
    return child < node.first_child or child >= node.first_child + node.n_children


@lent
def close(rows: Rows, at: int) -> None:
    """Let rows end at a node that is a leaf from now on."""
    node = rows.nodes[at]
    node.feature, node.threshold, node.child, node.missing = 0, np.inf, at, at
    step = rows.steps[at]
    step.feature, step.threshold, step.child = 0, np.inf, at
    node.n_codes = 0


@lent
def ask_ahead(rows: Rows, entries: NDArray, i: int, end: int, at: int) -> None:
    """Ask for the value that an entry some places after `i` is split by in the node `at`."""
    ahead = entries[min(i + PREFETCH_ROWS, end - 1)].row
    feature = rows.nodes[at].feature
    prefetch(rows.values, ahead * rows.row_step + feature * rows.column_step, 0)


@lent
def n_spread(node: Any, frame: Any) -> int:
    """How many shares and whole rows stay at the node of a frame and go to all of its children."""
    return frame.n_stay + node.held - node.begin if node.spreads else 0


@inner
def enter(
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    shares: NDArray,
    frames: NDArray,
    at: int,
) -> NDArray:
    """Make the range of the frame `at` whole: what of it went on above, and its shares."""
    frame = frames[at]
    if frame.above == NO_FRAME:
        return shares
    above = frames[frame.above]
    node = nodes[above.node]
    most = n_spread(node, above)
    if most == 0:
        return shares
    begin, end, place = frame.begin, frame.end, frame.end
    part = weight_of(units[frame.node])
    for i in range(begin, end):
        part += shares[i].units
    in_place = frame.node == node.first_child + above.last_child and end == frame.room
    shares = with_room(shares, frame.room, frame.room + end - begin + most)
    if not in_place:
        frame.begin = place = frame.room
        for i in range(begin, end):
            put(shares, place, shares[i], shares[i].units)
            place += 1
    whole = above.known
    if whole == 0:  # nothing says how to divide them
        part, whole = np.int64(1), np.int64(node.n_children)
    place = _put_shares(shares, above.begin, above.begin + above.n_stay, part, whole, shares, place)
    place = _put_shares(entries, node.begin, node.held, part, whole, shares, place)
    frame.end = frame.room = place
    return shares


@lent
def _put_shares(
    entries: NDArray, begin: int, end: int, part: int, whole: int, shares: NDArray, place: int
) -> int:
    """Put ``part / whole`` of each entry of a range behind others; where they end."""
    for i in range(begin, end):
        share = fraction(entries[i].units, part, whole)
        if share > 0:
            put(shares, place, entries[i], share)
            place += 1
    return place


@lent
def arrange(
    rows: Rows,
    nodes: NDArray,
    units: NDArray[np.int64],
    entries: NDArray,
    frame: Any,
    scratch: Scratch,
) -> None:
    """Put a range in the order of its parts; ``scratch.place`` becomes their ends.

    Part 0 stays; part c + 1 is that of child c.
    """
    node = nodes[frame.node]
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
    if n_spread(node, frame) > 0:
        for child in range(node.first_child, node.first_child + node.n_children):
            frame.known += weight_of(units[child])


@lent
def push_children(nodes: NDArray, frames: NDArray, n: int, scratch: Scratch) -> int:
    """Put the children of the topmost frame above it, the last one first.

    Those that are settled are left out, unless all below the frame is moved or asked about.
    """
    own = n - 1
    frame = frames[own]
    first, last = nodes[frame.node].first_child, frame.last_child
    n = _push_child(nodes, frames, n, own, first + last, frame.last_begin, frame.end)
    at = frame.begin + frame.n_stay
    for child in range(nodes[frame.node].n_children):
        if child != last:
            end = scratch.place[child + 1]
            n = _push_child(nodes, frames, n, own, first + child, at, end)
            at = end
    return n


@lent
def _push_child(
    nodes: NDArray, frames: NDArray, n: int, above: int, child: int, begin: int, end: int
) -> int:
    state = frames[above].state & (MOVED | ASKED | SORTED)
    if state & (MOVED | ASKED) == 0 and nodes[child].settled:
        return n
    return push(frames, n, above, child, begin, end, frames[above].room, state)


@lent
def restore(rows: Rows, nodes: NDArray, entries: NDArray, frame: Any) -> None:
    """Take the shares out of the last child's range, which its visit has mixed with its own."""
    node = nodes[frame.node]
    if n_spread(node, frame) == 0:
        return
    place = i = frame.last_begin
    while place < frame.end:
        ask_ahead(rows, entries, i, frame.end, frame.node)
        if not stays(node, below(rows, entries[i].row, frame.node)):
            put(entries, place, entries[i], entries[i].units)
            place += 1
        i += 1
