"""Cuts that are drawn: one of each column, as those of one target (`drawn_values`).

No column is sorted, counted or partitioned: the sums of both sides of a cut are added up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import admits, draw_columns, list_columns, new_cut, tie_rank
from gputree.backends.cpu.drawn_values import (
    BLOCK_COLUMNS,
    Drawn,
    draw_cut,
    goes_left,
    take_columns,
)
from gputree.backends.cpu.monotonic import number_allowed
from gputree.backends.cpu.ranked.formulas import cut_of_sides, no_cut, precedes
from gputree.backends.cpu.ranked.losses import RankedCut, Targets, units_of
from gputree.backends.cpu.ranked.sums import add_targets, score_of
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, pick, where_given
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_SUMS
from gputree.criteria.pinball import Pinball


class TableValues(NamedTuple):
    """Values of a table, row by row, and the number of categories of its columns, 0 of numbers."""

    values: NDArray
    categories: Int64s


@where_given(lambda table, columns, size: None)
def new_drawn(table, columns, size):
    """Scratch for nodes of `size` rows, of which so many columns are drawn at once, at most."""
    d, k = table.categories.size, min(columns, BLOCK_COLUMNS)
    kind = table.values.dtype
    return Drawn(
        table.values, d, np.int64(1), table.categories, None, np.empty((k, size), kind),
        np.empty(k, np.int64), np.empty(k, kind), np.empty(k, kind), np.empty(k, np.int64), None,
    )  # fmt: skip


@formula(cut_of_sides, *OF_SUMS)
def cut_by_sums(criterion, limits, rows, s, totals, opened, sides, ranks, column, column_rank):
    """Add up the side of fewer rows: the other one has the rest."""
    size, left, listed, whole = ranks.size, sides.left, sides.weights, opened.whole
    n, count, moved, none = np.int64(0), np.int64(0), np.int64(0), no_cut(criterion)
    for i in range(size):
        n += 1 + np.int64(ranks[i])
    lighter = -np.int64(2 * n > size)
    # the first `count` of `listed` are the rows of that side before row i
    for i in range(size):
        listed[count] = i
        count += np.int64(ranks[i]) == lighter
    for j in range(left.size):
        left[j] = 0
    for i in range(count):
        row = s + listed[i]
        units = np.int64(pick(rows.weight, row, 1))
        add_targets(criterion, left, 0, rows, row, units)
        moved += units
    if lighter != 0:
        moved = whole - moved
        for j in range(left.size):
            left[j] = totals.sums[j] - left[j]
    if not admits(limits, n, size, moved, whole):
        return none
    value = score_of(criterion, totals, left, moved, whole)
    return new_cut(value, column, False, 0, False, 0.0, column_rank) if value > -np.inf else none


@borrowing
def side_loss(criterion, rows, s, j, ranks, side, whole):
    """Loss by target j, at their quantile, of the rows whose `ranks` are `side`, of weight `whole`.

    With y the quantile, of weights and sums up to it and of all:
    ``up * (sum - whole y) - (up + down) * (sum up to y - y * weight up to y)``.
    """
    parts, of = criterion.up + criterion.down, Targets(rows.target[j, s:], rows.weight, None, j, s)
    below = total = under = y = np.int64(0)
    # `below` and `under` are the weight and the sum before place p, or those up to the quantile
    for p in range(ranks.size):
        is_in = np.int64(ranks[pick(rows.order, (j, s + p), p)] == side)
        units = is_in * units_of(of, p)
        total += units * of.target[p]
        if parts * below < criterion.up * whole:
            y = of.target[p]
            below += units
            under += units * y
    return criterion.up * (total - whole * y) - parts * (under - below * y)


@formula(cut_of_sides, Pinball)
def cut_by_loss(criterion, limits, rows, s, totals, opened, sides, ranks, column, column_rank):
    size, n, moved, loss, whole = ranks.size, np.int64(0), np.int64(0), np.int64(0), opened
    of = Targets(rows.target[0, s:], rows.weight, None, 0, s)
    for p in range(size):
        is_left = 1 + np.int64(ranks[p])
        n += is_left
        moved += is_left * units_of(of, p)
    if not admits(limits, n, size, moved, whole):
        return no_cut(criterion)
    for j in range(rows.target.shape[0]):
        loss += side_loss(criterion, rows, s, j, ranks, 0, moved)
        loss += side_loss(criterion, rows, s, j, ranks, -1, whole - moved)
    return RankedCut(loss, min(moved, whole - moved), column_rank, column, False, np.int64(0))


@borrowing
def draw_sides(ranked, drawn, s, t, key, c, ranks):
    """Set `ranks` to 0 for the rows left of the cut of column ``drawn.column[c]``, else to -1.

    Returns its threshold, and whether missing values go left.
    """
    numbers, f = drawn.number[c], drawn.column[c]
    threshold, missing_left = draw_cut(
        key, f, drawn.low[c], drawn.high[c], drawn.missing[c], drawn.categories[f] > 0
    )
    for i in range(np.uintp(t - s)):
        ranks[i] = -np.int32(not goes_left(numbers[i], threshold, missing_left))
    return threshold, missing_left


@borrowing
def search_drawn(drawn, ranked, s, t, key, columns, totals, opened, scratch, cut):
    """The better of `cut` and the best of those drawn of some columns, `BLOCK_COLUMNS` at most."""
    criterion, limits, rows, ranks = ranked.criterion, ranked.limits, ranked.rows, scratch.ranks
    for c in range(columns.size):
        drawn.column[c] = columns[c]
    take_columns(drawn, rows.row[s:t], key, columns.size)
    for c in range(columns.size):
        missing = drawn.missing[c]
        if missing == t - s or (missing == 0 and drawn.low[c] == drawn.high[c]):
            continue
        draw_sides(ranked, drawn, s, t, key, c, ranks)
        found = cut_of_sides(
            criterion, limits, rows, s, totals, opened, scratch.sides, ranks[: t - s],
            drawn.column[c], tie_rank(limits, key, drawn.column[c]),
        )  # fmt: skip
        if found.column >= 0 and precedes(criterion, found, cut):
            cut = found
    return cut


@borrowing
def best_drawn_cut(drawn, ranked, node, allowed, totals, opened, scratch):
    """The best cut of the columns that a node draws; more are drawn until there is one."""
    (s, t, key), order, done = node, scratch.order, np.int64(0)
    d, cut = number_allowed(allowed, order.size), no_cut(ranked.criterion)
    most = min(ranked.limits.max_features, d)
    if most == d:
        list_columns(allowed, order)
    # `cut` is the best of the columns order[:done]
    while done < most or (cut.column < 0 and done < d):
        upto = min(done + drawn.column.size, most) if done < most else done + 1
        if most < d:
            draw_columns(key, allowed, order, done, upto)
        some = order[done:upto]
        cut = search_drawn(drawn, ranked, s, t, key, some, totals, opened, scratch, cut)
        done = upto
    return cut


@borrowing
def divide_drawn(drawn, ranked, cut, s, t, key, ranks):
    """Number the sides of a cut as `draw_sides` does.

    Returns a threshold, whether missing values go left, and whether there are any.
    """
    drawn.column[0] = cut.column
    take_columns(drawn, ranked.rows.row[s:t], key, 1)
    threshold, missing_left = draw_sides(ranked, drawn, s, t, key, 0, ranks)
    threshold = 0.0 if drawn.categories[cut.column] > 0 else threshold
    return threshold, missing_left, drawn.missing[0] > 0
