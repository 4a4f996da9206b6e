"""Splits of nodes over ranked lists: kernels for one node, and for the whole subtree of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.hashing import child_key
from gputree.backends.base import Limits
from gputree.backends.cpu.cut import draw_columns, tie_rank
from gputree.backends.cpu.jit import borrowing, inner, kernel, where_given
from gputree.backends.cpu.ranked.lists import (
    RANK,
    arrange,
    known_end,
    number_sides,
    partition_list,
    partition_values,
    renumber,
)
from gputree.backends.cpu.ranked.sweep import loss_of, no_cut, sweep, whole_side
from gputree.backends.ranked import NodeRows, RankedNodes
from gputree.backends.rules import fewest_rows, missing_goes_left
from gputree.base.dtypes import Bools, Int64s


class Ranked(NamedTuple):
    """Lists of a table, the rows that they rank, and the rules of growth."""

    criterion: Any
    limits: Limits
    lists: NDArray[np.int32]  # (d, E), node by node
    rows: NodeRows
    nominal: Bools  # (d,)


def new_nodes(size: int) -> RankedNodes:
    """Memory for so many nodes."""
    return RankedNodes(
        first_child=np.full(size, -1),
        feature=np.full(size, -1, np.int32),
        missing_left=np.zeros(size, np.bool_),
        gain=np.zeros(size),
        begin=np.empty(size, np.int64),
        end=np.empty(size, np.int64),
        loss=np.empty(size, np.int64),
        weight=np.empty(size, np.int64),
        quantile=np.empty((size, 2), np.int32),
        cut=np.zeros((size, 2), np.int32),
    )


@where_given(lambda weight, s, t: None)
def of_places(weight, s, t):
    """The weights of some places, if there are any."""
    return weight[s:t]


class Scratch(NamedTuple):
    """Scratch of a worker for nodes of some number of rows."""

    left: NDArray[np.uint64]  # bits of ranks
    right: NDArray[np.uint64]
    ranks: NDArray[np.int32]  # in the children
    elements: NDArray[np.int32]
    values: Int64s


@inner
def new_scratch(size):
    """Scratch for nodes of at most `size` rows."""
    words = (size >> 6) + 1
    return Scratch(
        np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(size, np.int32),
        np.empty(size, np.int32), np.empty(size, np.int64),
    )  # fmt: skip


@inner
def measure(ranked, s, t, out, node):
    """Write the range and the loss of a node, as of a leaf; returns the side of all rows."""
    criterion, rows = ranked.criterion, ranked.rows
    target, weight = rows.target[s:t], of_places(rows.weight, s, t)
    side, whole = whole_side(criterion, target, weight)
    p = q = side.quantile
    if criterion.up == criterion.down and side.balance == 0:
        q += 1  # the median is the mean of the two in the middle
    out.first_child[node] = out.feature[node] = -1
    out.missing_left[node] = False
    out.gain[node] = 0.0
    out.begin[node], out.end[node] = s, t
    out.loss[node], out.weight[node] = loss_of(side, target), whole
    out.quantile[node, 0], out.quantile[node, 1] = rows.row[s + p], rows.row[s + q]
    out.cut[node] = 0
    return side


@borrowing
def is_constant(elements, known):
    """Return True if a list has one value, or none."""
    if known < elements.size:
        return known == 0
    i = 1
    while i < known and elements[i] < 0:
        i += 1
    return i >= known


@inner
def search_columns(ranked, s, t, key, columns, side, whole, scratch, cut):
    """The better of `cut` and the best cut of a node by some columns.

    `side` has all rows of the node, of weight `whole`.
    """
    criterion, limits, lists, rows, nominal = ranked
    target, weight = rows.target[s:t], of_places(rows.weight, s, t)
    for f in columns:
        elements = lists[f, s:t]
        known = known_end(elements)
        if is_constant(elements, known):
            continue
        if nominal[f]:
            elements = arrange(criterion, elements, target, weight)
        rank = tie_rank(limits, key, f)
        for missing_left in range(1 + (known < t - s)):
            cut = sweep(
                criterion, limits, elements, known, missing_left == 1, target, weight, side,
                whole, scratch.left, scratch.right, cut, np.int64(f), rank,
            )  # fmt: skip
    return cut


@inner
def best_cut(ranked, s, t, key, side, whole, order, scratch):
    """The best cut of a node over all columns, or those drawn; beyond, until some is admitted."""
    limits, d = ranked.limits, order.size
    cut = no_cut()
    if limits.max_features >= d:
        for f in range(d):
            order[f] = f
        return search_columns(ranked, s, t, key, order, side, whole, scratch, cut)
    done = 0
    # `cut` is the best of the columns order[:done]
    while done < d and (done == 0 or cut.column < 0):
        upto = limits.max_features if done == 0 else done + 1
        draw_columns(key, order, done, upto)
        cut = search_columns(ranked, s, t, key, order[done:upto], side, whole, scratch, cut)
        done = upto
    return cut


@inner
def split(ranked, s, t, cut, out, node, scratch):
    """Write the split of a node and partition its rows; returns how many went left, or 0.

    The node stays a leaf if there is no cut, or one that gains too little. ``scratch.ranks`` become
    the ranks in the children.
    """
    criterion, limits, lists, rows, nominal = ranked
    decrease = np.float64(out.loss[node] - cut.loss) * criterion.unit
    if cut.column < 0 or decrease < limits.min_decrease:
        return 0
    elements, ranks, n = lists[cut.column, s:t], scratch.ranks[: t - s], t - s
    known = known_end(elements)
    if nominal[cut.column]:
        elements = arrange(criterion, elements, rows.target[s:t], of_places(rows.weight, s, t))
    out.feature[node] = cut.column
    out.gain[node] = decrease / np.float64(out.weight[node])
    after = cut.place if cut.place < known else cut.place - 1
    out.cut[node, 0] = rows.row[s + (elements[cut.place - 1] & RANK)]
    out.cut[node, 1] = rows.row[s + (elements[after] & RANK)]
    number_sides(elements, known, cut.place, cut.missing_left, ranks)
    left = renumber(ranks)
    out.missing_left[node] = missing_goes_left(known < n, cut.missing_left, left, n - left)
    partition_values(rows.row[s:t], ranks, left, scratch.elements)
    partition_values(rows.target[s:t], ranks, left, scratch.values)
    partition_values(of_places(rows.weight, s, t), ranks, left, scratch.values)
    return left


# ---------------------------------------------------------------------- of large nodes
@kernel
def measure_node(ranked, s, t, out):
    """`measure` a node into the first place of `out`."""
    return measure(ranked, s, t, out, 0)


@kernel
def search_node(ranked, s, t, key, columns, side, whole):
    """The best cut of a node by some columns."""
    return search_columns(ranked, s, t, key, columns, side, whole, new_scratch(t - s), no_cut())


@kernel
def split_node(ranked, s, t, cut, out, ranks):
    """`split` the node in the first place of `out`, with `ranks` for its rows."""
    scratch = new_scratch(t - s)
    left = split(ranked, s, t, cut, out, 0, scratch)
    ranks[:] = scratch.ranks
    return left


# --------------------------------------------------------------------- of small nodes
@kernel
def grow_subtree(ranked, s, t, depth, key, out):
    """Grow the subtree of a node, its root first; returns the number of nodes."""
    limits, lists = ranked.limits, ranked.lists
    scratch, order = new_scratch(t - s), np.empty(lists.shape[0], np.int64)
    waiting, keys = np.empty((t - s + 1, 2), np.int64), np.empty(t - s + 1, np.uint64)
    least = fewest_rows(limits)
    side = measure(ranked, s, t, out, 0)
    waiting[0, 0], waiting[0, 1], keys[0] = 0, depth, key
    size, free = 1, 1
    # nodes below `free` are measured; the `size` on the stack may still be split
    while size > 0:
        size -= 1
        node, level, key = waiting[size, 0], waiting[size, 1], keys[size]
        s, t = out.begin[node], out.end[node]
        if level >= limits.max_depth or t - s < least or out.loss[node] == 0:
            continue
        target, weight = ranked.rows.target[s:t], of_places(ranked.rows.weight, s, t)
        side, whole = whole_side(ranked.criterion, target, weight)
        cut = best_cut(ranked, s, t, key, side, whole, order, scratch)
        left = split(ranked, s, t, cut, out, node, scratch)
        if left == 0:
            continue
        if level + 1 < limits.max_depth and max(left, t - s - left) >= least:
            for f in range(lists.shape[0]):
                partition_list(lists[f, s:t], scratch.ranks[: t - s], scratch.elements)
        out.first_child[node] = free
        for child in range(2):
            ends = (s, s + left) if child == 0 else (s + left, t)
            measure(ranked, ends[0], ends[1], out, free + child)
            waiting[size, 0], waiting[size, 1] = free + child, level + 1
            keys[size] = child_key(key, child)
            size += 1
        free += 2
    return free
