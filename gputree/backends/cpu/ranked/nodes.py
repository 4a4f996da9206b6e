"""Splits of nodes over ranked lists: kernels for one node, and for the whole subtree of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import child_key
from gputree.backends.base import Limits
from gputree.backends.binning import fewest_rows, missing_goes_left
from gputree.backends.cpu.cut import draw_columns, list_columns, tie_rank
from gputree.backends.cpu.monotonic import (
    allowed_in_set,
    number_allowed,
    push_sets,
)
from gputree.backends.cpu.ranked import (  # noqa: F401  register
    class_sums,
    losses,
    subsets,
)
from gputree.backends.cpu.ranked.counts import Codes, divide_codes
from gputree.backends.cpu.ranked.drawn import (
    best_drawn_cut,
    divide_drawn,
    new_drawn,
    search_drawn,
)
from gputree.backends.cpu.ranked.formulas import (
    count_cuts,
    count_rows,
    gain_of,
    is_best,
    measure_targets,
    new_counts,
    new_sides,
    new_totals,
    no_cut,
    open_node,
    partition_targets,
    slot_below,
    slot_of,
    sweep,
)
from gputree.backends.cpu.ranked.lists import (
    RANK,
    arrange,
    is_nominal,
    known_end,
    number_sides,
    partition_list,
    partition_values,
    renumber,
)
from gputree.backends.lists import NodeRows, RankedNodes
from gputree.base.dtypes import Bools, Int64s
from gputree.compilation import borrowing, inner, kernel, pasted


class Ranked(NamedTuple):
    """Lists of a table, the rows that they rank, and the rules of growth."""

    criterion: Any
    limits: Limits
    lists: NDArray[np.int32]  # (d, E), node by node
    codes: Codes  # of the columns without a list
    rows: NodeRows
    nominal: Bools | None  # (d,); None where no column is: nothing of categories is compiled then
    interactions: Any  # `Interactions`, or None
    table: Any  # `TableValues` where cuts are drawn: no column has a list, nor codes; or None


def new_nodes(size: int, n_quantiles: int) -> RankedNodes:
    """Memory for so many nodes, which predict so many quantiles."""
    return RankedNodes(
        first_child=np.full(size, -1),
        feature=np.full(size, -1, np.int32),
        missing_left=np.zeros(size, np.bool_),
        gain=np.zeros(size),
        begin=np.empty(size, np.int64),
        end=np.empty(size, np.int64),
        loss=np.empty(size, np.int64),
        weight=np.empty(size, np.int64),
        quantile=np.empty((size, n_quantiles, 2), np.int32),
        cut=np.zeros((size, 2), np.int32),
        threshold=np.zeros(size),
    )


class Scratch(NamedTuple):
    """Scratch of a worker for nodes of some number of rows."""

    sides: Any  # of a cut, by the criterion
    counts: Any  # of a node by code, by the criterion
    ranks: NDArray[np.int32]  # in the children
    elements: NDArray[np.int32]
    arranged: NDArray[np.int32]  # a list of categories in their order
    order: Int64s  # columns in the order in which a node searches them
    drawn: Any  # values of the columns that a node draws, or None


@inner
def new_scratch(ranked, size, slots):
    """Scratch for nodes of at most `size` rows, and the counts of so many nodes."""
    return Scratch(
        new_sides(ranked.criterion, ranked.rows, size),
        new_counts(ranked.criterion, ranked.codes, slots),
        np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32),
        np.empty(ranked.lists.shape[0], np.int64),
        new_drawn(ranked.table, min(ranked.limits.max_features, ranked.lists.shape[0]), size),
    )  # fmt: skip


@borrowing
def measure(ranked, s, t, out, node):
    """Write the range, the weight and the loss of a node, as of a leaf."""
    out.first_child[node] = out.feature[node] = -1
    out.missing_left[node] = False
    out.gain[node] = 0.0
    out.begin[node], out.end[node] = s, t
    out.cut[node] = 0
    measure_targets(ranked.criterion, ranked.rows, s, t, out, node)


@borrowing
def may_split(limits, out, node, depth):
    """Return True if the limits and the targets of a node admit a split."""
    rows = out.end[node] - out.begin[node]
    return rows >= fewest_rows(limits) and depth < limits.max_depth and out.loss[node] > 0


@borrowing
def is_constant(elements, known):
    """Return True if a list has one value, or none."""
    if known < elements.size:
        return known == 0
    i = 1
    while i < known and elements[i] < 0:
        i += 1
    return i >= known


@pasted
def search_column(ranked, s, t, key, f, totals, opened, scratch, slot, cut):
    """The better of `cut` and the best cut of a node by column f; it was opened."""
    criterion, limits, lists, codes, rows, nominal, _, _ = ranked
    rank = tie_rank(limits, key, f)
    if codes.place[f] >= 0:
        return count_cuts(
            criterion, ranked, t - s, totals, opened, scratch.counts, slot, cut, np.int64(f), rank
        )
    elements = lists[f, s:t]
    known = known_end(elements)
    if is_constant(elements, known):
        return cut
    if is_nominal(nominal, f):
        arrange(nominal, ranked, elements, known, s, totals, opened, scratch)
        elements = scratch.arranged[: t - s]
    for missing_left in range(1 + (known < t - s)):
        cut = sweep(
            criterion, limits, elements, known, missing_left == 1, rows, s, totals, opened,
            scratch.sides, cut, np.int64(f), rank,
        )  # fmt: skip
    return cut


@pasted
def best_cut(drawn, ranked, node, allowed, totals, opened, scratch, slot, has_counts):
    """The best cut of a node over the columns that may split it, or those drawn of them.

    Beyond these, until some cut is admitted. Its slot `has_counts`, or gets them.
    """
    if drawn is not None:
        return best_drawn_cut(drawn, ranked, node, allowed, totals, opened, scratch)
    (s, t, key), order, criterion = node, scratch.order, ranked.criterion
    d = number_allowed(allowed, order.size)
    most = ranked.limits.max_features
    cut, is_first = no_cut(criterion), most >= d and not ranked.limits.random_ties
    if most >= d:
        list_columns(allowed, order)
    # rows of order[: counted] were counted, of two rows one column after the other
    counted = d if has_counts else 0
    # `cut` is the best of the columns order[:c]
    for c in range(d):
        if c >= most and cut.column >= 0:
            break
        if most < d and (c == 0 or c >= most):
            draw_columns(key, allowed, order, c, max(most, c + 1))
        if c >= counted:
            counted = c + 1 if slot == 0 and t - s == 2 else max(min(most, d), c + 1)
            some = order[c:counted]
            count_rows(criterion, ranked.codes, some, scratch.counts, slot, ranked.rows, s, t)
        cut = search_column(ranked, s, t, key, order[c], totals, opened, scratch, slot, cut)
        if is_first and is_best(criterion, cut, ranked.rows, t - s, opened):
            break  # of two rows, most columns need no search
    return cut


@borrowing
def divide(drawn, ranked, node, cut, totals, opened, scratch, ranks):
    """Set `ranks` to 0 for the rows left of a cut, else to -1.

    Returns a threshold if it is drawn, or rows of the table next to the cut; whether missing values
    go left, and whether there are any.
    """
    (s, t, key), rows = node, ranked.rows
    if drawn is not None:
        found = divide_drawn(drawn, ranked, cut, s, t, key, ranks)
        return found[0], np.int64(0), np.int64(0), found[1], found[2]
    if ranked.codes.place[cut.column] >= 0:
        low, high, some_missing = divide_codes(ranked.codes, cut, rows, s, t, ranks)
        return 0.0, low, high, cut.missing_left, some_missing
    elements = ranked.lists[cut.column, s:t]
    known = known_end(elements)
    if is_nominal(ranked.nominal, cut.column):
        arrange(ranked.nominal, ranked, elements, known, s, totals, opened, scratch)
        elements = scratch.arranged[: t - s]
    after = cut.place if cut.place < known else cut.place - 1
    low = np.int64(rows.row[s + (elements[cut.place - 1] & RANK)])
    high = np.int64(rows.row[s + (elements[after] & RANK)])
    number_sides(elements, known, cut.place, cut.missing_left, ranks)
    return 0.0, low, high, cut.missing_left, known < t - s


@borrowing
def split(ranked, node, cut, out, place, totals, opened, scratch):
    """Write the split of a node and partition its rows; returns how many went left, or 0.

    The node stays a leaf if there is no cut, or one that gains too little. ``scratch.ranks`` become
    the ranks in the children.
    """
    (s, t, _), criterion, rows = node, ranked.criterion, ranked.rows
    if cut.column < 0:
        return 0
    decrease, gain = gain_of(criterion, cut, out, place, totals, opened)
    if decrease < ranked.limits.min_decrease:
        return 0
    ranks, n = scratch.ranks[: t - s], t - s
    threshold, low, high, missing_left, some_missing = divide(
        scratch.drawn, ranked, node, cut, totals, opened, scratch, ranks
    )
    out.feature[place] = cut.column
    out.gain[place], out.threshold[place] = gain, threshold
    out.cut[place, 0], out.cut[place, 1] = low, high
    left = renumber(ranks)
    out.missing_left[place] = missing_goes_left(some_missing, missing_left, left, n - left)
    partition_values(rows.row, s, ranks, None, 0, scratch.elements)
    partition_targets(criterion, rows, s, ranks, scratch.sides)
    return left


@borrowing
def listed_rows(ranked, size):
    """Rows of a node that has lists; 0 where all columns are counted."""
    return size if ranked.codes.code.shape[1] < ranked.lists.shape[0] else 0


# ---------------------------------------------------------------------- of large nodes
FIRST = np.int64(0)  # of a literal, numba would compile each function once more


@kernel
def measure_node(ranked, s, t, out):
    """`measure` a node into the first place of `out`."""
    measure(ranked, s, t, out, FIRST)


@kernel
def open_large(ranked, s, t):
    """Totals of a node, and what `open_node` returns."""
    totals = new_totals(ranked.criterion, ranked.rows, listed_rows(ranked, t - s))
    return totals, open_node(ranked.criterion, ranked.rows, s, t, totals)


@borrowing
def search_columns(drawn, ranked, node, columns, totals, opened, scratch):
    """The best cut of a node by some columns."""
    (s, t, key), cut = node, no_cut(ranked.criterion)
    if drawn is not None:
        step = drawn.column.size
        for done in range(0, columns.size, step):
            some = columns[done : done + step]
            cut = search_drawn(drawn, ranked, s, t, key, some, totals, opened, scratch, cut)
        return cut
    count_rows(ranked.criterion, ranked.codes, columns, scratch.counts, FIRST, ranked.rows, s, t)
    for f in columns:
        cut = search_column(ranked, s, t, key, f, totals, opened, scratch, FIRST, cut)
    return cut


@kernel
def search_node(ranked, s, t, key, columns, totals, opened):
    """The best cut of a node by some columns."""
    scratch = new_scratch(ranked, t - s, np.int64(1))
    return search_columns(scratch.drawn, ranked, (s, t, key), columns, totals, opened, scratch)


@kernel
def split_node(ranked, node, cut, out, ranks, totals, opened):
    """`split` the node in the first place of `out`, with `ranks` for its rows."""
    scratch = new_scratch(ranked, ranks.size, np.int64(1))
    left = split(ranked, node, cut, out, FIRST, totals, opened, scratch)
    for rank in range(ranks.size):  # NumPy's assignment takes a second to compile
        ranks[rank] = scratch.ranks[rank]
    return left


@kernel
def partition_lists(ranked, first, last, s, t, ranks):
    """Partition the lists of columns ``first .. last`` of a node."""
    spare = np.empty(t - s, np.int32)
    for f in range(first, last):
        if ranked.codes.place[f] < 0:
            partition_list(ranked.lists[f, s:t], ranks, spare)


# --------------------------------------------------------------------- of small nodes
@kernel
def grow_subtree(ranked, s, t, depth, key, columns, out):
    """Grow the subtree of a node with a set of columns, its root first; returns how many nodes."""
    limits, lists = ranked.limits, ranked.lists
    slots, halved = 3, t - s  # of any node; of one, of smaller halves of others, of a child
    while halved > 1:
        slots, halved = slots + 1, halved >> 1
    scratch = new_scratch(ranked, t - s, slots)
    totals = new_totals(ranked.criterion, ranked.rows, listed_rows(ranked, t - s))
    waiting, keys = np.empty((t - s + 1, 4), np.int64), np.empty(t - s + 1, np.uint64)
    sets = np.full(t - s + 1, columns)
    measure(ranked, s, t, out, FIRST)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3], keys[0] = 0, depth, 0, 0, key
    size, free = np.int64(may_split(limits, out, FIRST, depth)), 1
    # nodes below `free` are measured; the `size` on the stack may be split
    while size > 0:
        size -= 1
        node, level, slot = waiting[size, 0], waiting[size, 1], waiting[size, 2]
        key, source, has_counts = keys[size], waiting[size, 3], slot > 0
        s, t = out.begin[node], out.end[node]
        if not has_counts:
            slot = slot_of(ranked.criterion, ranked, scratch.counts, t - s, source)
        opened = open_node(ranked.criterion, ranked.rows, s, t, totals)
        allowed = allowed_in_set(ranked.interactions, sets[size])
        cut = best_cut(
            scratch.drawn, ranked, (s, t, key), allowed, totals, opened, scratch, slot, has_counts
        )
        left = split(ranked, (s, t, key), cut, out, node, totals, opened, scratch)
        middle, searched = s + left, 0  # bits of the children
        for child in range(2 if left > 0 else 0):
            ends = (s, middle) if child == 0 else (middle, t)
            measure(ranked, ends[0], ends[1], out, free + child)
            searched |= np.int64(may_split(limits, out, free + child, level + 1)) << child
        larger, n = np.int64(left < t - middle), max(left, t - middle)
        slot = slot_below(ranked.criterion, ranked, scratch.counts, slot, source, n, searched == 3)
        if left == 0:
            continue
        out.first_child[node] = free
        before = size
        push_sets(allowed, cut.column, sets, size)
        for child in (larger, 1 - larger):  # the smaller one is searched first
            if searched >> child & 1 != 0:
                waiting[size, 0], waiting[size, 1] = free + child, level + 1
                waiting[size, 2] = slot if child == larger else 0
                waiting[size, 3] = 0 if child == larger else slot
                keys[size] = child_key(key, child)
                size += 1
        free += 2
        for f in range(lists.shape[0] if size > before else 0):
            if ranked.codes.place[f] < 0:
                partition_list(lists[f, s:t], scratch.ranks[: t - s], scratch.elements)
    return free
