"""Monotonic constraints on cuts; compiled out where there are none.

Every function's first argument is `Limits.monotonic`: kernels of tasks where it is None contain no
code for it. The bounds of a node, and the sign of a column, come with the limits:

    at_node      limits of a node, as one of many whose bounds are in arrays
    at_place     limits of a node of a block, whose bounds wait on a stack
    at_column    limits of cuts of a column
    keeps_order  whether a cut is admitted by them
    put_bounds, push_bounds  fill the stack: for a root, for both children of a node

Interaction constraints in kernels; compiled out where there are none.

A task has all sets of columns, `Interactions`, and a node the columns of one, `OfNode`; both are
None where every column may split every node.
"""

from typing import NamedTuple

import numpy as np

from gputree.backends.base import Limits, Monotonic
from gputree.backends.binning import child_bounds
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, inner, overload_borrowing, where_given, written_out
from gputree.criteria import add_row, begin, means


@borrowing
def keeps_order(monotonic, criterion, state, left, total):
    """Return True if the means of both sides of a cut are in order, and within the node's bounds.

    They are float64 quotients of the integer sums; `state` is the state of the criterion's scan.
    """
    if monotonic is None:
        return True
    if monotonic.sign == 0:
        return True
    low, high = means(criterion, state, left, total)
    if monotonic.sign < 0:
        low, high = high, low
    return low <= high and monotonic.lower <= low and high <= monotonic.upper


@borrowing
def boundary_keeps_order(monotonic, criterion, left, total):
    """Like `keeps_order`, for a cut given by the statistics `left` only."""
    if monotonic is None:
        return True
    return keeps_order(monotonic, criterion, begin(criterion, left, total), left, total)


class InColumn(NamedTuple):
    """Counterpart of `Monotonic` for one column; it has no array."""

    sign: int
    lower: float
    upper: float


@written_out
def replaced(limits, monotonic):
    """The limits with `monotonic` in their place."""
    return Limits(*limits[:-1], monotonic)


@where_given(lambda monotonic, limits, bounds, j: limits)
def at_node(monotonic, limits, bounds, j):
    """The limits, with bounds of node j."""
    node_bounds = Monotonic(monotonic.signs, monotonic.sign, bounds.lower[j], bounds.upper[j])
    return replaced(limits, node_bounds)


@where_given(lambda monotonic, limits, f: limits)
def at_column(monotonic, limits, f):
    """The limits, with the sign of column f."""
    monotonic_of_node = limits.monotonic  # with the bounds of a node
    column_bounds = InColumn(
        np.int64(monotonic_of_node.signs[f]), monotonic_of_node.lower, monotonic_of_node.upper
    )
    return replaced(limits, column_bounds)


@inner
def new_stack(monotonic, size):
    """Stack for the bounds of `size` nodes of a block."""
    if monotonic is None:
        size = 0
    return np.empty((size, 2))


@borrowing
def put_bounds(monotonic, bounds, j, stack):
    """Store the bounds of node j at the first place of the stack."""
    if monotonic is not None:
        stack[0, 0] = bounds.lower[j]
        stack[0, 1] = bounds.upper[j]


@where_given(lambda monotonic, limits, stack, place: limits, overload_borrowing)
def at_place(monotonic, limits, stack, place):
    """The limits, with the bounds at a place of the stack."""
    node_bounds = Monotonic(monotonic.signs, monotonic.sign, stack[place, 0], stack[place, 1])
    return replaced(limits, node_bounds)


@borrowing
def push_bounds(monotonic, criterion, block, weighted, f, s, middle, total, left, stack, place):
    """Store the bounds of both children of a node at `place` and behind it.

    Rows ``s .. middle`` went left by a cut of column f; `total` are the node's statistics, `left`
    scratch.
    """
    if monotonic is None:
        return
    sign = monotonic.signs[f]
    first_lower = second_lower = monotonic.lower
    first_upper = second_upper = monotonic.upper
    if sign != 0:
        for k in range(left.size):
            left[k] = 0
        for i in range(s, middle):
            x = block.local[i]
            add_row(criterion, left, 0, block.target[x], block.weight[x] if weighted else 1, 0)
        low, high = means(criterion, begin(criterion, left, total), left, total)
        first_lower, first_upper, second_lower, second_upper = child_bounds(
            sign, monotonic.lower, monotonic.upper, low, high
        )
    stack[place, 0], stack[place, 1] = first_lower, first_upper
    stack[place + 1, 0], stack[place + 1, 1] = second_lower, second_upper


class OfNode(NamedTuple):
    """The columns that may split a node: ``column[first : last]``, ascending."""

    column: Int64s
    below: Int64s  # set of the children of a cut by each
    first: int
    last: int


@written_out
def _of_set(interactions, s):
    """The columns of set s."""
    first = interactions.first
    return OfNode(interactions.column, interactions.below, first[s], first[s + 1])


@where_given(lambda interactions, bounds, j: None)
def allowed_in_node(interactions, bounds, j):
    """The columns of node j, as one of many whose sets are in arrays."""
    return _of_set(interactions, bounds.columns[j])


@where_given(lambda interactions, s: None)
def allowed_in_set(interactions, s):
    """The columns of set s, for a kernel: it counts references, `allowed_on_stack` does not."""
    return _of_set(interactions, s)


@where_given(lambda interactions, stack, place: None, overload_borrowing)
def allowed_on_stack(interactions, stack, place):
    """The columns of a node of a block, whose set waits at a place of the stack."""
    return _of_set(interactions, stack[place])


@borrowing
def number_allowed(columns, d):
    """Number of the columns that may split a node, of d."""
    return d if columns is None else columns.last - columns.first


@borrowing
def column_in(columns, i):
    """The column at a place among those that may split a node."""
    return i if columns is None else columns.column[columns.first + i]


@borrowing
def lower_bound(ordered, first, last, x):
    """Place of x in ``ordered[first:last]``, or of the next greater number."""
    while first < last:  # those before `first` are less than x, those from `last` on are not
        middle = (first + last) // 2
        if ordered[middle] < x:
            first = middle + 1
        else:
            last = middle
    return first


@borrowing
def may_split(columns, f):
    """Return True if column f may split a node."""
    if columns is None:
        return True
    place = lower_bound(columns.column, columns.first, columns.last, f)
    return place < columns.last and columns.column[place] == f


@inner
def new_sets(interactions, size):
    """Stack for the sets of `size` nodes of a block."""
    if interactions is None:
        size = 0
    return np.empty(size, np.int64)


@borrowing
def put_set(interactions, bounds, j, stack):
    """Store the set of node j at the first place of the stack."""
    if interactions is not None:
        stack[0] = bounds.columns[j]


@borrowing
def push_sets(columns, f, stack, place):
    """Store the set of both children of a node, cut by column f, at `place` and behind it."""
    if columns is not None:
        below = columns.below[lower_bound(columns.column, columns.first, columns.last, f)]
        stack[place], stack[place + 1] = below, below


@borrowing
def keep_columns(allowed, columns, place, active):
    """Move active columns that may not split a node behind the others; returns how many remain.

    `place` has the place of each column in `columns`, or is None.
    """
    if allowed is None or allowed.last - allowed.first == columns.size:  # all may
        return active
    c = np.int64(0)
    while c < active:  # columns before c may split it, those from `active` on may not
        f = columns[c]
        if may_split(allowed, f):
            c += 1
            continue
        active -= 1
        columns[c], columns[active] = columns[active], f
        if place is not None:
            place[columns[c]], place[f] = c, active
    return active
