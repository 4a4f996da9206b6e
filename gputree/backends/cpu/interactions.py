"""Interaction constraints in kernels; compiled out where there are none.

A task has all sets of columns, `Interactions`, and a node the columns of one, `OfNode`; both are
None where every column may split every node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import borrowing, inner, overload_borrowing, where_given, written_out


class OfNode(NamedTuple):
    """The columns that may split a node: ``column[first : last]``, ascending."""

    column: NDArray[np.int64]
    below: NDArray[np.int64]  # set of the children of a cut by each
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
def place_of(columns, f):
    """Place of column f among those that may split a node, or of the next one."""
    first, last = columns.first, columns.last
    while first < last:  # those before `first` are less than f, those from `last` on are not
        middle = (first + last) // 2
        if columns.column[middle] < f:
            first = middle + 1
        else:
            last = middle
    return first


@borrowing
def may_split(columns, f):
    """Return True if column f may split a node."""
    if columns is None:
        return True
    place = place_of(columns, f)
    return place < columns.last and columns.column[place] == f


# ---------------------------------------------------------- of the nodes of a block
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
        below = columns.below[place_of(columns, f)]
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
