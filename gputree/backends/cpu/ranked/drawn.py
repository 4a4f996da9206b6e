"""Cuts that are drawn: one of each column, as those of one target (`drawn_values`). No column is
sorted, counted or partitioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import draw_columns, list_columns, tie_rank
from gputree.backends.cpu.drawn_values import (
    BLOCK_COLUMNS,
    Drawn,
    draw_cut,
    goes_left,
    take_columns,
)
from gputree.backends.cpu.monotonic import number_allowed
from gputree.backends.cpu.ranked.formulas import cut_of_sides, no_cut, precedes
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, where_given


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


@borrowing
def draw_sides(ranked, drawn, s, t, key, c, ranks):
    """Set `ranks` to 0 for the rows left of the cut of column ``drawn.column[c]``, else to -1.

    Returns its threshold, and whether missing values go left.
    """
    numbers, f = drawn.number[c], drawn.column[c]
    threshold, missing_left = draw_cut(key, drawn, c, drawn.categories[f] > 0)
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
