"""Kernels of subtree raising: they decide which nodes become leaves or give way to a branch.

A node whose heaviest child is a leaf is decided without its rows. The walk visits only the other
nodes, after their children, and again after a branch was raised. There it estimates the errors if
the branch took its node's place. Only the rows of the smaller branches descend the largest one,
since its rows are at its leaves: a row is in a smaller branch at most log2 n times, so that the
estimates cost little more than the rest. They descend in portions, until the branch is known to be
worse: more rows never mean fewer errors. Fractional entries, and rows that stay on the path, follow
where the others have not decided.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NO_CHILD, NO_FRAME, Int32s
from gputree.compilation import borrowing, inner, kernel
from gputree.pruning.raising_routing import (
    DONE,
    ESTIMATED,
    MOVED,
    SORTED,
    RaisingRows,
    Walk,
    leaf_limit,
    make_leaf,
    push,
    put,
    route,
    sort_again,
    sum_at_leaves,
    weight_of,
    with_capacity,
)
from gputree.pruning.raising_shares import count, distribute, enter, n_needed, restore

# Branches whose weights differ by no more than this tie, and the last is the largest: sums of
# fractional weights are rounded.
TIE = 1e-6

ROUNDING = 1e-9  # relative rounding error of the sums of limits, and more

# Rows before the errors are first compared; the next comparison is after as many rows as these
# errors allow, and this many more, but at least twice as many.
FIRST_LOOK = 64
MARGIN = 1.05


@borrowing
def _largest(nodes: NDArray, node: int) -> int:
    """The heaviest child of `node`; of equals, the last."""
    first = nodes[node].first_child
    largest = first
    for child in range(first + 1, first + nodes[node].n_children):
        if np.rint(nodes[child].weight / TIE) >= np.rint(nodes[largest].weight / TIE):
            largest = child
    return largest


@borrowing
def _subtree_errors(nodes: NDArray, node: int) -> float:
    """Limit of the errors of the subtree in its current form."""
    errors, first = nodes[node].stopped, nodes[node].first_child
    for child in range(first, first + nodes[node].n_children):
        errors += nodes[child].estimate
    return errors


@kernel
def settle(nodes: NDArray, slack: float) -> None:
    """Decide on the nodes that need no rows for that: their heaviest child is a leaf.

    Nodes where rows may stay are not settled from the start. All nodes have their original split.
    """
    for node in range(nodes.size - 1, -1, -1):
        state = nodes[node]
        state.split_of, state.carrier, state.estimate = node, node, state.as_leaf
        for child in range(state.first_child, state.first_child + state.n_children):
            state.settled &= nodes[child].settled
        if state.n_children == 0 or not state.settled:
            continue
        state.settled = nodes[_largest(nodes, node)].n_children == 0
        subtree = _subtree_errors(nodes, node)
        if state.settled and state.as_leaf <= subtree + slack:
            state.n_children = 0
        elif state.settled:
            state.estimate = subtree


@kernel
def make_ready(rows: RaisingRows, nodes: NDArray) -> None:
    """Make leaves stop rows."""
    for node in range(nodes.size):
        if nodes[node].n_children == 0:
            make_leaf(rows, node)


@kernel
def number(state: NDArray, nodes: Int32s, parent: Int32s, depth: Int32s) -> int:
    """List the remaining nodes, breadth-first, with the new numbers of their parents.

    Returns their number.
    """
    nodes[0], parent[0], depth[0] = 0, NO_CHILD, 0
    n, j = 1, 0
    while j < n:
        node = state[nodes[j]]
        for child in range(node.first_child, node.first_child + node.n_children):
            nodes[n], parent[n], depth[n] = child, j, depth[j] + 1
            n += 1
        j += 1
    return n


@kernel
def find_tops(nodes: NDArray, most: int, found: Int32s) -> int:
    """Find the highest nodes to visit of up to `most` rows, or that divide rows among the children.

    No fractional entries come to them. Returns their number.
    """
    found[0], n_found, n, j = 0, 0, 1, 0
    while j < n:
        index = found[j]
        node = nodes[index]
        j += 1
        if node.settled:
            continue
        if node.end - node.begin <= most or (node.spreads and node.stay_end > node.begin):
            found[n_found] = index
            n_found += 1
            continue
        for child in range(node.first_child, node.first_child + node.n_children):
            found[n] = child
            n += 1
    return n_found


@kernel
def visit(walk: Walk, tops: Int32s) -> int:
    """Visit all below the `tops`; return the capacity needed for fractional entries."""
    shares = np.empty(0, walk.entries.dtype)
    for top in tops:
        shares = _visit_below(walk, top, shares)
    return shares.size


@inner
def _visit_below(walk: Walk, top: int, shares: NDArray) -> NDArray:
    n_frames = push(walk.frames, 0, NO_FRAME, top, 0, 0, 0)
    while n_frames > 0:
        frame = walk.frames[n_frames - 1]
        node = np.int64(frame.node)
        state = walk.nodes[node]
        if not frame.state & DONE:  # on the way down
            if frame.state & (MOVED | SORTED) == MOVED:
                sort_again(walk, node)
                frame.state |= SORTED
            shares = with_capacity(shares, frame.free, n_needed(walk, n_frames - 1))
            enter(walk, shares, n_frames - 1)
            count(walk, shares, frame)
            if frame.state & MOVED:
                _refill(walk, frame)
            if not state.settled:
                state.estimate = state.as_leaf
            if state.n_children == 0:
                n_frames -= 1
            else:
                n_frames, state.stopped = distribute(walk, shares, n_frames)
            continue
        # All children have been visited.
        restore(walk, shares, frame)
        sum_at_leaves(walk.nodes, node)
        n_frames -= 1
        if state.settled:
            continue
        leaf, subtree = state.as_leaf, _subtree_errors(walk.nodes, node)
        branch, largest = leaf, _largest(walk.nodes, node)
        if walk.nodes[largest].n_children > 0:
            enough = _enough(leaf, subtree, walk.slack)
            branch, all_go = _estimate_whole(walk, node, largest, enough)
            if branch <= enough and not (all_go and frame.begin == frame.end):
                shares, branch = _estimate_all(walk, shares, n_frames + 1, largest, enough)
        if leaf <= min(subtree, branch) + walk.slack:
            state.n_children, state.rows_stay = 0, False
            state.at_leaves = leaf_limit(walk, walk.units[node])
            make_leaf(walk.rows, node)
        elif branch <= subtree + walk.slack:
            _raise(walk, node, largest)
            n_frames = push(
                walk.frames, n_frames, NO_FRAME, node, frame.begin, frame.end, frame.free
            )
            frame.state = MOVED
        else:
            state.estimate = subtree
    return shares


@borrowing
def _refill(walk: Walk, frame: Any) -> None:
    """Assign the rows that a raised branch has brought, ``scratch.units``, to a node."""
    node, total = walk.nodes[frame.node], walk.scratch.units
    for k in range(total.size):
        walk.moved[frame.node, k] = total[k] - walk.units[frame.node, k]
    node.refilled, node.settled = True, False
    node.n_rows = node.end - node.begin + frame.end - frame.begin
    node.weight, node.as_leaf = weight_of(total) * walk.unit, leaf_limit(walk, total)


@borrowing
def _enough(leaf: float, subtree: float, slack: float) -> float:
    """Errors of a branch above which the decision is the same, however many there are."""
    most = leaf - slack if leaf <= subtree + slack else subtree + slack
    return most + ROUNDING * (1.0 + leaf)


@borrowing
def _raise(walk: Walk, index: int, largest: int) -> None:
    """Replace the split and the children of a node by the split and children of its branch.

    Rows that stay at the branch still route to it, which is none of its children.
    """
    node, branch, rows = walk.nodes[index], walk.nodes[largest], walk.rows
    rows.splits.nodes[index] = rows.splits.nodes[largest]
    node.split_of, node.spreads, branch.carrier = branch.split_of, branch.spreads, index
    node.first_child, node.n_children = branch.first_child, branch.n_children


@borrowing
def _estimate_whole(walk: Walk, index: int, branch: int, enough: float) -> tuple[float, bool]:
    """Errors of whole rows if the others of a node joined those in `branch`; True if none stays.

    If they exceed `enough`, only a number that does. Rows that stay on the way are not counted.
    """
    nodes, units, scratch = walk.nodes, walk.units, walk.scratch
    node, into = nodes[index], nodes[branch]
    total, all_go = into.at_leaves, not into.rows_stay
    n_reached, done, n = 0, 0, node.end - node.begin - (into.end - into.begin)
    # `total` are the errors of the rows of the branch and of the first `done` of the others, which
    # are counted at their leaves.
    while done < n and total <= enough:
        next_done = min(n, _next_look(done, total - into.at_leaves, enough - into.at_leaves))
        _route_others(walk, node, branch, done, next_done)
        for j in range(done, next_done):
            leaf, entry = scratch.ordinal[j], walk.entries[_other(node, into, j)]
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
        done = next_done
        total = into.at_leaves
        for j in range(n_reached):
            leaf = scratch.nodes[j]
            total += leaf_limit(walk, units[leaf]) - nodes[leaf].at_leaves
    for j in range(n_reached):  # and restore the leaves
        leaf = scratch.nodes[j]
        nodes[leaf].reached = False
        for k in range(units.shape[1]):
            units[leaf, k] = scratch.before[j, k]
    return total, all_go


@borrowing
def _next_look(done: int, added: float, enough: float) -> int:
    """Number of rows that may have added `enough` errors, if `done` rows have added `added`."""
    if added * 2.0 <= enough * MARGIN:
        return max(2 * done, FIRST_LOOK)
    return done + FIRST_LOOK + int(done * (enough / added * MARGIN - 1.0))


@borrowing
def _other(node: Any, branch: Any, j: int) -> int:
    """Place of the j-th entry of a node that is not in the range of `branch`."""
    i = node.begin + j
    return i if i < branch.begin else i + branch.end - branch.begin


@borrowing
def _route_others(walk: Walk, node: Any, branch: int, first: int, last: int) -> None:
    """Route the entries ``first .. last`` that are not in `branch` down the branch."""
    into = walk.nodes[branch]
    middle = min(max(first, into.begin - node.begin), last)  # before the branch, and behind it
    route(walk, node.begin + first, node.begin + middle, branch, first)
    shift = into.end - into.begin + node.begin
    route(walk, shift + middle, shift + last, branch, middle)


@inner
def _estimate_all(
    walk: Walk, shares: NDArray, n_frames: int, branch: int, enough: float
) -> tuple[NDArray, float]:
    """Errors if fractional entries, and whole rows that are not in `branch`, descended it.

    If they exceed `enough`, only a number that does.
    """
    nodes, total, bottom, top = walk.nodes, walk.nodes[branch].at_leaves, n_frames, n_frames - 1
    shares, end = _gather(walk, shares, walk.frames[top], branch)
    begin = walk.frames[top].free
    n_frames = push(walk.frames, n_frames, NO_FRAME, branch, begin, end, end)
    walk.frames[top + 1].state = ESTIMATED
    while n_frames > bottom:
        frame = walk.frames[n_frames - 1]
        node = nodes[frame.node]
        if frame.state & DONE:
            restore(walk, shares, frame)
            n_frames -= 1
            continue
        shares = with_capacity(shares, frame.free, n_needed(walk, n_frames - 1))
        enter(walk, shares, n_frames - 1)
        if total > enough or (frame.begin == frame.end and not node.rows_stay):
            n_frames -= 1
            continue
        count(walk, shares, frame)
        if node.n_children == 0:
            total += leaf_limit(walk, walk.scratch.units) - node.at_leaves
            n_frames -= 1
        else:
            n_frames, stopped = distribute(walk, shares, n_frames)
            total += stopped
    return shares, total


@inner
def _gather(walk: Walk, shares: NDArray, frame: Any, branch: int) -> tuple[NDArray, int]:
    """Copy the fractional entries of a frame, and the whole rows not in `branch`, behind them."""
    node, into = walk.nodes[frame.node], walk.nodes[branch]
    n_others = node.end - node.begin - (into.end - into.begin)
    place = frame.free
    shares = with_capacity(shares, place, place + frame.end - frame.begin + n_others)
    for i in range(frame.begin, frame.end):
        put(shares, place, shares[i], shares[i].units)
        place += 1
    for j in range(n_others):
        entry = walk.entries[_other(node, into, j)]
        put(shares, place, entry, entry.units)
        place += 1
    return shares, place
