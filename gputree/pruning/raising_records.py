"""Records for subtree raising: nodes, entries, the stack of a visit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int32s, Int64s, Values
from gputree.compilation import borrowing, inner
from gputree.compilation.arrays import record
from gputree.prediction.descent import DescentTree
from gputree.pruning.error_limit import ErrorLimit, limited_errors

# Bits of a frame's state: its rows came with a raised branch; its entries are sorted and its
# children above it; it is below a branch whose errors are being estimated; its whole rows are
# sorted as well.
MOVED, DONE, ESTIMATED, SORTED = 1, 2, 4, 8

# A node of the tree in its current form. Structured arrays, since a kernel compiles longer for each
# array that it receives.
NODE_STATE = record(
    [
        ("split_of", np.int32),  # the node whose split it has now
        ("carrier", np.int32),  # the node that has its split now; itself unless it was raised
        ("first_child", np.int32),
        ("n_children", np.int32),
        ("n_rows", np.int64),
        ("weight", np.float64),
        ("as_leaf", np.float64),  # limits of the errors: of a leaf in its place,
        ("estimate", np.float64),  # of the subtree as it stands,
        ("stopped", np.float64),  # of the entries that stop at the node,
        ("at_leaves", np.float64),  # and of the whole rows at the leaves below
        ("spreads", np.bool_),  # a missing value goes to all children
        ("refilled", np.bool_),  # its rows came with a raised branch
        ("rows_stay", np.bool_),  # whole rows stay at an inner node of its subtree
        ("settled", np.bool_),  # its subtree is decided without its rows
        ("direct", np.bool_),  # all splits of its subtree are plain: see `Step`
        ("reached", np.bool_),  # some rows of the current estimate have reached it
        ("begin", np.int64),  # the range of its whole rows,
        ("stay_end", np.int64),  # the first of which stay here,
        ("end", np.int64),  # the others are in the ranges of the children
    ]
)
# A row in a node, its weight there in units, and its class.
ENTRY = record([("units", np.int64), ("row", np.int32), ("label", np.int32)])
# A node on the stack.
FRAME = record(
    [
        ("begin", np.int64),  # the range of its fractional entries
        ("end", np.int64),
        ("free", np.int64),  # the first place that is free behind them
        ("n_stay", np.int64),  # once they are sorted: number that stays,
        ("last_begin", np.int64),  # first place of those of the child with the most,
        ("in_children", np.int64),  # and the units, whole rows included, that go to a child
        ("node", np.int32),
        ("last_child", np.int32),  # the ordinal of that child
        ("above", np.int32),  # the frame of the parent, or NO_FRAME
        ("state", np.int32),
    ]
)
# A plain split, which sends every value to one child: values above `threshold` to the one after
# `child`; where it is NaN, codes are ordinals of children.
STEP = record([("threshold", np.float64), ("feature", np.int32), ("child", np.int32)])


class RaisingRows(NamedTuple):
    """The tree's splits in their current form, and the values of the rows."""

    splits: DescentTree  # of the same types for all trees (`pack_alike`)
    steps: NDArray  # (N,): the same splits where they are plain
    # (n_rows * n_features,): row by row or column by column, as they are in memory
    values: Values
    # from one row, and from one column, to the next
    row_step: int
    column_step: int


class SortScratch(NamedTuple):
    """Buffers to sort one range of up to n entries."""

    ordinal: Int32s  # (n,): the leaf, or the ordinal of the child, that each entry goes to
    entries: NDArray  # (n,): a copy of the range
    place: Int64s  # the next place of the entries of each child, first of entries that stay
    units: Int64s  # (K,)
    weights: Floats  # (K,)
    # (N,): a list of nodes, and the next place of the entries of each node
    nodes: Int32s
    free: Int32s
    before: Int64s  # (N, K): class weights of listed nodes


class Walk(NamedTuple):
    """The tree in its current form, and the rows in it."""

    rows: RaisingRows
    nodes: NDArray  # (N,)
    units: Int64s  # (N, K): class weights of the whole rows of each node, in units
    moved: Int64s  # (N, K): class weights of the fractional entries of refilled nodes
    entries: NDArray  # (n,): the whole rows, sorted by their leaves
    frames: NDArray  # the stack
    scratch: SortScratch
    unit: float
    limit: ErrorLimit
    slack: float  # errors that a replacement may cost


@borrowing
def push(frames: NDArray, n: int, above: int, node: int, begin: int, end: int, free: int) -> int:
    """Push a node with its fractional entries on top of n frames; return the number of frames."""
    frame = frames[n]
    frame.node, frame.begin, frame.end, frame.free = node, begin, end, free
    frame.above, frame.state, frame.n_stay = above, 0, 0
    return n + 1


@inner
def with_capacity(entries: NDArray, end: int, size: int) -> NDArray:
    """Return `entries` if there are `size`, else a longer copy of those before `end`."""
    if size <= entries.size:
        return entries
    longer = np.empty(2 * size, entries.dtype)
    for i in range(end):  # assigning a slice takes 3 s to compile
        longer[i] = entries[i]
    return longer


@borrowing
def put(entries: NDArray, place: int, entry: Any, units: int) -> None:
    """Write an entry with another weight to a place."""
    entries[place].row, entries[place].label = entry.row, entry.label
    entries[place].units = units


@borrowing
def weight_of(units: Int64s) -> np.int64:
    """Sum of class weights."""
    total = np.int64(0)
    for k in range(units.size):
        total += units[k]
    return total


@borrowing
def leaf_limit(walk: Walk, units: Int64s) -> float:
    """Upper limit of the errors of a leaf with these class weights."""
    weights = walk.scratch.weights
    for k in range(units.size):
        weights[k] = units[k] * walk.unit
    return limited_errors(weights, walk.limit)
