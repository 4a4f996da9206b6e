"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

Rows are passed down with the walk. Those of a node lie in one stretch, and its children's
behind it, with a copy of each row of a missing value for each child that gets a share:

    entries   | node t ......... | child a ... | child b .. | child c ..... |
    frames                                                     next to visit

The last child is visited first, so that whatever a visit has left behind it is free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, kernel
from gputree.dtypes import STAYS
from gputree.prediction.descent import step
from gputree.prediction.tables import Tables
from gputree.pruning.error_limit import ErrorLimit, added_errors, limited_errors

# Branches whose weights agree to this much tie, and the last is the largest: sums of
# shares of rows carry rounding errors.
TIE = 1e-6

# States of a frame: its rows came by a raised branch; its children have been visited.
MOVED, DONE = 1, 2


# A node of the walk: the node whose split it carries, and that one's first child in the tree
# as it was; its children; limits of the errors as a leaf, of the subtree as it stands and of
# what stops at the node; whether its rows came by a raised branch.
# Records, for each array that a kernel takes adds to the time it compiles in.
NODE_STATE = np.dtype(
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
    ],
    align=True,
)
# A row in a node, and the share of it that is there, times its weight.
ENTRY = np.dtype([("weight", np.float64), ("row", np.int32)])
# A node to visit, and where its entries lie.
FRAME = np.dtype(
    [("begin", np.int64), ("end", np.int64), ("node", np.int32), ("state", np.int32)], align=True
)
# A child in a distribution: weight of its known rows, then its share; number, then place.
CHILD = np.dtype([("known", np.float64), ("place", np.int64)])


class Rows(NamedTuple):
    """The tree's splits and the rows, as `step` takes them.

    Attributes
    ----------
    nodes : structured array of shape (N,)
    tables : Tables or None
    values : array of shape (n_rows, n_features)
    label : int array of shape (n_rows,)
    """

    nodes: NDArray
    tables: Tables | None
    values: NDArray[np.floating]
    label: NDArray[np.integer]


class Scratch(NamedTuple):
    """Room for one distribution: by row; by child; by class."""

    ordinal: NDArray[np.int32]
    child: NDArray
    counts: NDArray[np.float64]


def walk(
    rows: Rows,
    nodes: NDArray,
    statistics: NDArray[np.float64],
    weight: NDArray[np.float64],
    limit: ErrorLimit,
    slack: float,
) -> None:
    """Visit every node after its children; again, after a branch was raised.

    Parameters
    ----------
    rows : Rows
    nodes : NODE_STATE array of shape (N,)
        Changed, as are `statistics`.
    statistics : float64 array of shape (N, K)
    weight : float64 array of shape (n_rows,)
        Rows of weight zero take no part.
    limit : ErrorLimit
    slack : float
        Errors that a replacement may cost.
    """
    taking_part = np.flatnonzero(weight)
    # Pending are nodes of the walk, and of one descent below the node it is at.
    frames = np.empty(2 * nodes.size, FRAME)
    scratch = Scratch(
        np.empty(taking_part.size, np.int32),
        np.empty(int(nodes["n_children"].max()), CHILD),
        np.empty(statistics.shape[1]),
    )
    entries = np.empty(taking_part.size, ENTRY)
    entries["row"], entries["weight"] = taking_part, weight[taking_part]
    _walk(rows, nodes, statistics, entries, frames, scratch, limit, slack)


@inner
def _push(frames: NDArray, n: int, node: int, begin: int, end: int, state: int) -> int:
    """Put a node on top of n others; how many there are."""
    frame = frames[n]
    frame.node, frame.begin, frame.end, frame.state = node, begin, end, state
    return n + 1


@inner
def _class_weights(
    rows: Rows, entries: NDArray, begin: int, end: int, counts: NDArray[np.float64]
) -> None:
    """Write the class weights of entries to `counts`."""
    counts[:] = 0.0
    for i in range(begin, end):
        counts[rows.label[entries[i].row]] += entries[i].weight


@inner
def _stopped_errors(
    rows: Rows,
    entries: NDArray,
    begin: int,
    end: int,
    scratch: Scratch,
    limit: ErrorLimit,
) -> float:
    """Limit of the errors of entries that stay at their node: it answers with its majority."""
    _class_weights(rows, entries, begin, end, scratch.counts)
    answer = np.argmax(scratch.counts)
    weight = errors = 0.0
    for i in range(begin, end):
        if scratch.ordinal[i - begin] == STAYS:
            weight += entries[i].weight
            if rows.label[entries[i].row] != answer:
                errors += entries[i].weight
    return errors + added_errors(weight, errors, limit)


@inner
def _find_children(
    rows: Rows, node: Any, entries: NDArray, begin: int, end: int, scratch: Scratch
) -> int:
    """Write the ordinal of each entry's child, and rows and weight of each child.

    Returns how many entries stay.
    """
    n_stay = 0
    split, first = node.split_of, node.split_child
    for child in range(node.n_children):
        scratch.child[child].known, scratch.child[child].place = 0.0, 0
    for i in range(begin, end):
        below = step(rows.values, entries[i].row, rows.nodes, rows.tables, split)
        if below == split:
            scratch.ordinal[i - begin] = STAYS
            n_stay += 1
        else:
            ordinal = below - first
            scratch.ordinal[i - begin] = ordinal
            scratch.child[ordinal].place += 1
            scratch.child[ordinal].known += entries[i].weight
    return n_stay


@inner
def _lay_out(n_children: int, n_spread: int, end: int, scratch: Scratch) -> int:
    """Make shares of known weights and places of numbers of rows; the end of the last child."""
    known = 0.0
    for child in range(n_children):
        known += scratch.child[child].known
    for child in range(n_children):
        share = scratch.child[child].known / known if known > 0.0 else 1.0 / n_children
        size = scratch.child[child].place + (n_spread if share > 0.0 else 0)
        scratch.child[child].known, scratch.child[child].place = share, end
        end += size
    return end


@inner
def _grown(entries: NDArray, end: int, size: int) -> NDArray:
    """`entries` with room for `size`; what lies before `end` stays."""
    if size <= entries.size:
        return entries
    longer = np.empty(2 * size, entries.dtype)
    for i in range(end):  # assigning a slice takes 3 s to compile
        longer[i] = entries[i]
    return longer


@inner
def _scatter(
    entries: NDArray, begin: int, end: int, n_children: int, spreads: bool, scratch: Scratch
) -> None:
    """Copy entries to their children; those that stay, in shares to all, if the node spreads."""
    n_spread = 0
    for i in range(begin, end):
        ordinal = scratch.ordinal[i - begin]
        if ordinal == STAYS:
            scratch.ordinal[n_spread] = i
            n_spread += 1
        else:
            place = scratch.child[ordinal].place
            entries[place].row, entries[place].weight = entries[i].row, entries[i].weight
            scratch.child[ordinal].place = place + 1
    for child in range(n_children if spreads else 0):
        share, place = scratch.child[child].known, scratch.child[child].place
        for i in scratch.ordinal[: n_spread if share > 0.0 else 0]:
            entries[place].row = entries[i].row
            entries[place].weight = entries[i].weight * share
            place += 1
        scratch.child[child].place = place


@inner
def _distribute(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    limit: ErrorLimit,
    node: int,
    begin: int,
    end: int,
    moved: int,
) -> tuple[NDArray, int, float]:
    """Pass the entries of `node` to its children, and put those on top of the frames."""
    n_children = nodes[node].n_children
    n_stay = _find_children(rows, nodes[node], entries, begin, end, scratch)
    spreads, stopped = nodes[node].spreads, 0.0
    if n_stay > 0 and not spreads:
        stopped = _stopped_errors(rows, entries, begin, end, scratch, limit)
    last = _lay_out(n_children, n_stay if spreads else 0, end, scratch)
    entries = _grown(entries, end, last)
    _scatter(entries, begin, end, n_children, spreads, scratch)
    at = end
    for child in range(n_children):
        below = nodes[node].first_child + child
        n_frames = _push(frames, n_frames, below, at, scratch.child[child].place, moved)
        at = scratch.child[child].place
    return entries, n_frames, stopped


@inner
def _estimate_branch(
    rows: Rows,
    nodes: NDArray,
    entries: NDArray,
    frames: NDArray,
    n_frames: int,
    scratch: Scratch,
    limit: ErrorLimit,
    branch: int,
    begin: int,
    end: int,
    enough: float,
) -> tuple[NDArray, float]:
    """Errors if entries went down `branch`; or only more than `enough`, where it is more."""
    total, bottom = 0.0, n_frames
    n_frames = _push(frames, n_frames, branch, begin, end, 0)
    while n_frames > bottom and total <= enough:
        n_frames -= 1
        node, begin, end = frames[n_frames].node, frames[n_frames].begin, frames[n_frames].end
        if begin == end:
            continue
        if nodes[node].n_children == 0:
            _class_weights(rows, entries, begin, end, scratch.counts)
            total += limited_errors(scratch.counts, limit)
        else:
            entries, n_frames, stopped = _distribute(
                rows, nodes, entries, frames, n_frames, scratch, limit, node, begin, end, 0
            )
            total += stopped
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
def _subtree(nodes: NDArray, node: int) -> float:
    """Limit of the errors of `node` with its children as they stand."""
    errors = nodes[node].stopped
    first = nodes[node].first_child
    for child in range(first, first + nodes[node].n_children):
        errors += nodes[child].estimate
    return errors


@inner
def _fill(
    rows: Rows,
    node: Any,
    class_weights: NDArray[np.float64],
    entries: NDArray,
    limit: ErrorLimit,
    begin: int,
    end: int,
) -> None:
    """Count the entries that have come to `node`."""
    _class_weights(rows, entries, begin, end, class_weights)
    node.refilled = True
    node.n_rows = end - begin
    node.weight = class_weights.sum()
    node.as_leaf = limited_errors(class_weights, limit)


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
    statistics: NDArray[np.float64],
    entries: NDArray,
    frames: NDArray,
    scratch: Scratch,
    limit: ErrorLimit,
    slack: float,
) -> None:
    n_frames = _push(frames, 0, 0, 0, entries.size, 0)
    while n_frames > 0:
        n_frames -= 1
        node, begin, end = frames[n_frames].node, frames[n_frames].begin, frames[n_frames].end
        moved = frames[n_frames].state & MOVED
        if not frames[n_frames].state & DONE:  # on the way down
            if moved:
                _fill(rows, nodes[node], statistics[node], entries, limit, begin, end)
            nodes[node].estimate = nodes[node].as_leaf
            if nodes[node].n_children > 0:
                n_frames = _push(frames, n_frames, node, begin, end, moved | DONE)
                entries, n_frames, nodes[node].stopped = _distribute(
                    rows, nodes, entries, frames, n_frames, scratch, limit,
                    node, begin, end, moved,
                )  # fmt: skip
            continue
        leaf, subtree = nodes[node].as_leaf, _subtree(nodes, node)
        largest = _largest(nodes, node)
        branch = leaf
        if nodes[largest].n_children > 0:
            # Beyond this the branch is out, whatever else it costs.
            enough = min(leaf, subtree + slack)
            entries, branch = _estimate_branch(
                rows, nodes, entries, frames, n_frames, scratch, limit,
                largest, begin, end, enough,
            )  # fmt: skip
        if leaf <= min(subtree, branch) + slack:
            nodes[node].n_children = 0
        elif branch <= subtree + slack:
            _give_way(nodes[node], nodes[largest])
            n_frames = _push(frames, n_frames, node, begin, end, MOVED)
        else:
            nodes[node].estimate = subtree
