"""The walk of subtree raising: which nodes become leaves, which give way to a branch.

Rows are passed down with the walk. Those of a node lie in one stretch, and its children's
behind it, with a copy of each row of a missing value for each child that gets a share:

    entries   | node t ......... | child a ... | child b .. | child c ..... |
    frames                                                     next to visit

The last child is visited first, so that whatever a visit has left behind it is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gputree.prediction.descent import step
from gputree.pruning.error_limit import ErrorLimit, added_errors, limited_errors

# Branches whose weights agree to this much tie, and the last is the largest: sums of
# shares of rows carry rounding errors.
TIE = 1e-6

# States of a frame: its rows came by a raised branch; its children have been visited.
MOVED, DONE = 1, 2

STAYS = -1  # instead of a child's ordinal, where a row goes to no single one


class Splits(NamedTuple):
    """What the walk reads: the tree's splits and the rows, as `step` takes them.

    Attributes
    ----------
    nodes : structured array of shape (N,)
    target : int32 array or None
    spreads : bool array of shape (N,)
        Nodes that send what stays to all children.
    first_child : int32 array of shape (N,)
        Of the tree as it was.
    values : array of shape (n_rows, n_features)
    label : int array of shape (n_rows,)
    """

    nodes: NDArray
    target: NDArray[np.int32] | None
    spreads: NDArray[np.bool_]
    first_child: NDArray[np.int32]
    values: NDArray[np.floating]
    label: NDArray[np.integer]


class State(NamedTuple):
    """What the walk changes, arrays of shape (N,) but for `statistics`, (N, K).

    Attributes
    ----------
    split_of, first_child, n_children : int32
        The node whose split each node carries, and its children.
    statistics, weight : float64
    n_rows : int64
    as_leaf, estimate, stopped : float64
        Limit of the errors as a leaf; of the subtree as it stands; of what stops at the node.
    refilled : bool
        Nodes whose rows came by a raised branch.
    """

    split_of: NDArray[np.int32]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    statistics: NDArray[np.float64]
    weight: NDArray[np.float64]
    n_rows: NDArray[np.int64]
    as_leaf: NDArray[np.float64]
    estimate: NDArray[np.float64]
    stopped: NDArray[np.float64]
    refilled: NDArray[np.bool_]


class Entries(NamedTuple):
    """Rows, and the share of each that is in a node, times its weight."""

    row: NDArray[np.int32]
    weight: NDArray[np.float64]


class Frames(NamedTuple):
    """Nodes to visit, last in first out, and where their entries lie."""

    node: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]


class Scratch(NamedTuple):
    """Room for one distribution: by row; by child; by class."""

    ordinal: NDArray[np.int32]
    place: NDArray[np.int64]
    known: NDArray[np.float64]
    counts: NDArray[np.float64]


def walk(
    splits: Splits, state: State, weight: NDArray[np.float64], limit: ErrorLimit, slack: float
) -> None:
    """Visit every node after its children; again, after a branch was raised."""
    n, n_nodes = weight.size, state.weight.size
    # Pending are nodes of the walk, and of one descent below the node it is at.
    frames = Frames(
        np.empty(2 * n_nodes, np.int32),
        np.empty(2 * n_nodes, np.int64),
        np.empty(2 * n_nodes, np.int64),
        np.empty(2 * n_nodes, np.int8),
    )
    most = int(state.n_children.max())
    scratch = Scratch(
        np.empty(n, np.int32),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(state.statistics.shape[1]),
    )
    entries = Entries(np.arange(n, dtype=np.int32), weight)
    _walk(splits, state, entries, frames, scratch, limit, slack)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _push(frames: Frames, n: int, node: int, begin: int, end: int, state: int) -> int:
    """Put a node on top of n others; how many there are."""
    frames.node[n], frames.begin[n], frames.end[n], frames.state[n] = node, begin, end, state
    return n + 1


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _class_weights(
    splits: Splits, entries: Entries, begin: int, end: int, counts: NDArray[np.float64]
) -> None:
    """Write the class weights of entries to `counts`."""
    counts[:] = 0.0
    for i in range(begin, end):
        counts[splits.label[entries.row[i]]] += entries.weight[i]


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _stopped_errors(
    splits: Splits,
    entries: Entries,
    begin: int,
    end: int,
    scratch: Scratch,
    limit: ErrorLimit,
) -> float:
    """Limit of the errors of entries that stay at their node: it answers with its majority."""
    _class_weights(splits, entries, begin, end, scratch.counts)
    answer = np.argmax(scratch.counts)
    weight = errors = 0.0
    for i in range(begin, end):
        if scratch.ordinal[i - begin] == STAYS:
            weight += entries.weight[i]
            if splits.label[entries.row[i]] != answer:
                errors += entries.weight[i]
    return errors + added_errors(weight, errors, limit)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _find_children(
    splits: Splits, split: int, entries: Entries, begin: int, end: int, scratch: Scratch
) -> int:
    """Write the ordinal of each entry's child, and rows and weight of each child.

    Returns how many entries stay.
    """
    n_stay = 0
    first = splits.first_child[split]
    for i in range(begin, end):
        below = step(splits.values, entries.row[i], splits.nodes, splits.target, split)
        if below == split:
            scratch.ordinal[i - begin] = STAYS
            n_stay += 1
        else:
            ordinal = below - first
            scratch.ordinal[i - begin] = ordinal
            scratch.place[ordinal] += 1
            scratch.known[ordinal] += entries.weight[i]
    return n_stay


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _lay_out(n_children: int, n_spread: int, end: int, scratch: Scratch) -> int:
    """Make shares of known weights and places of numbers of rows; the end of the last child."""
    known = 0.0
    for child in range(n_children):
        known += scratch.known[child]
    for child in range(n_children):
        share = scratch.known[child] / known if known > 0.0 else 1.0 / n_children
        size = scratch.place[child] + (n_spread if share > 0.0 else 0)
        scratch.known[child], scratch.place[child] = share, end
        end += size
    return end


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _grown(entries: Entries, end: int, size: int) -> Entries:
    """`entries` with room for `size`; what lies before `end` stays."""
    if size <= entries.row.size:
        return entries
    row, weight = np.empty(2 * size, np.int32), np.empty(2 * size)
    row[:end], weight[:end] = entries.row[:end], entries.weight[:end]
    return Entries(row, weight)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scatter(
    entries: Entries, begin: int, end: int, n_children: int, spreads: bool, scratch: Scratch
) -> None:
    """Copy entries to their children; those that stay, in shares to all, if the node spreads."""
    n_spread = 0
    for i in range(begin, end):
        ordinal = scratch.ordinal[i - begin]
        if ordinal == STAYS:
            scratch.ordinal[n_spread] = i
            n_spread += 1
        else:
            place = scratch.place[ordinal]
            entries.row[place], entries.weight[place] = entries.row[i], entries.weight[i]
            scratch.place[ordinal] = place + 1
    for child in range(n_children if spreads else 0):
        share, place = scratch.known[child], scratch.place[child]
        for i in scratch.ordinal[: n_spread if share > 0.0 else 0]:
            entries.row[place] = entries.row[i]
            entries.weight[place] = entries.weight[i] * share
            place += 1
        scratch.place[child] = place


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _distribute(
    splits: Splits,
    state: State,
    entries: Entries,
    frames: Frames,
    n_frames: int,
    scratch: Scratch,
    limit: ErrorLimit,
    node: int,
    begin: int,
    end: int,
    moved: int,
) -> tuple[Entries, int, float]:
    """Pass the entries of `node` to its children, and put those on top of the frames."""
    split, n_children = state.split_of[node], state.n_children[node]
    scratch.place[:n_children], scratch.known[:n_children] = 0, 0.0
    n_stay = _find_children(splits, split, entries, begin, end, scratch)
    spreads, stopped = splits.spreads[split], 0.0
    if n_stay > 0 and not spreads:
        stopped = _stopped_errors(splits, entries, begin, end, scratch, limit)
    last = _lay_out(n_children, n_stay if spreads else 0, end, scratch)
    entries = _grown(entries, end, last)
    _scatter(entries, begin, end, n_children, spreads, scratch)
    at = end
    for child in range(n_children):
        below = state.first_child[node] + child
        n_frames = _push(frames, n_frames, below, at, scratch.place[child], moved)
        at = scratch.place[child]
    return entries, n_frames, stopped


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _estimate_branch(
    splits: Splits,
    state: State,
    entries: Entries,
    frames: Frames,
    n_frames: int,
    scratch: Scratch,
    limit: ErrorLimit,
    branch: int,
    begin: int,
    end: int,
    enough: float,
) -> tuple[Entries, float]:
    """Errors if entries went down `branch`; or only more than `enough`, where it is more."""
    total, bottom = 0.0, n_frames
    n_frames = _push(frames, n_frames, branch, begin, end, 0)
    while n_frames > bottom and total <= enough:
        n_frames -= 1
        node, begin, end = frames.node[n_frames], frames.begin[n_frames], frames.end[n_frames]
        if begin == end:
            continue
        if state.n_children[node] == 0:
            _class_weights(splits, entries, begin, end, scratch.counts)
            total += limited_errors(scratch.counts, limit)
        else:
            entries, n_frames, stopped = _distribute(
                splits, state, entries, frames, n_frames, scratch, limit, node, begin, end, 0
            )
            total += stopped
    return entries, total


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _largest(state: State, node: int) -> int:
    """The heaviest child of `node`; of equals, the last."""
    first = state.first_child[node]
    largest = first
    for child in range(first + 1, first + state.n_children[node]):
        if np.rint(state.weight[child] / TIE) >= np.rint(state.weight[largest] / TIE):
            largest = child
    return largest


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _subtree(state: State, node: int) -> float:
    """Limit of the errors of `node` with its children as they stand."""
    errors = state.stopped[node]
    first = state.first_child[node]
    for child in range(first, first + state.n_children[node]):
        errors += state.estimate[child]
    return errors


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _fill(
    splits: Splits,
    state: State,
    entries: Entries,
    limit: ErrorLimit,
    node: int,
    begin: int,
    end: int,
) -> None:
    """Count the entries that have come to `node`."""
    _class_weights(splits, entries, begin, end, state.statistics[node])
    state.refilled[node] = True
    state.weight[node] = entries.weight[begin:end].sum()
    state.n_rows[node] = end - begin
    state.as_leaf[node] = limited_errors(state.statistics[node], limit)


@njit(nogil=True, cache=True, error_model="numpy")
def _walk(
    splits: Splits,
    state: State,
    entries: Entries,
    frames: Frames,
    scratch: Scratch,
    limit: ErrorLimit,
    slack: float,
) -> None:
    n_frames = _push(frames, 0, 0, 0, entries.row.size, 0)
    while n_frames > 0:
        n_frames -= 1
        node, begin, end = frames.node[n_frames], frames.begin[n_frames], frames.end[n_frames]
        moved = frames.state[n_frames] & MOVED
        if not frames.state[n_frames] & DONE:  # on the way down
            if moved:
                _fill(splits, state, entries, limit, node, begin, end)
            state.estimate[node] = state.as_leaf[node]
            if state.n_children[node] > 0:
                n_frames = _push(frames, n_frames, node, begin, end, moved | DONE)
                entries, n_frames, state.stopped[node] = _distribute(
                    splits, state, entries, frames, n_frames, scratch, limit,
                    node, begin, end, moved,
                )  # fmt: skip
            continue
        leaf, subtree = state.as_leaf[node], _subtree(state, node)
        largest = _largest(state, node)
        branch = leaf
        if state.n_children[largest] > 0:
            # Beyond this the branch is out, whatever else it costs.
            enough = min(leaf, subtree + slack)
            entries, branch = _estimate_branch(
                splits, state, entries, frames, n_frames, scratch, limit,
                largest, begin, end, enough,
            )  # fmt: skip
        if leaf <= min(subtree, branch) + slack:
            state.n_children[node] = 0
        elif branch <= subtree + slack:
            for array in (state.split_of, state.first_child, state.n_children):
                array[node] = array[largest]
            n_frames = _push(frames, n_frames, node, begin, end, MOVED)
        else:
            state.estimate[node] = subtree
