"""Monotonic constraints on cuts; compiled out where there are none.

Every function's first argument is `Limits.monotonic`: kernels of tasks where it is None contain no
code for it. The bounds of a node, and the sign of a column, come with the limits:

    at_node      limits of a node, as one of many whose bounds are in arrays
    at_place     limits of a node of a block, whose bounds wait on a stack
    at_column    limits of cuts of a column
    keeps_order  whether a cut is admitted by them
    put_bounds, push_bounds  fill the stack: for a root, for both children of a node
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.backends.base import Limits, Monotonic
from gputree.backends.cpu.jit import borrowing, inner, overload_borrowing, where_given, written_out
from gputree.backends.rules import child_bounds
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


# ---------------------------------------------------------- of the nodes of a block
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
