"""The best cut of the columns that a node draws, by their values; see `drawn_columns`.

    first pass     minimum and maximum of the drawn columns, and the number of missing values
    second pass    a cut of each

Of wide tables all columns are sorted, some at a time: keeping them sorted takes more memory than
the table.

Extremely randomized trees sort nothing. One cut of each column is drawn uniformly between its
minimum and maximum in the node. Categories are replaced by numbers that are hashed from the node,
the column and the category: their binary digits are independent, so the first digit in which those
of the node differ draws each of its subsets with the same probability, without none and all. The
side of missing values is drawn, too.

P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 3-42, 2006.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import mix
from gputree.backends.base import Rows, Task
from gputree.backends.cpu.cut import (
    ColumnDraws,
    admits,
    draw_columns,
    drop_column,
    list_columns,
    new_cut,
    no_cut,
    precedes,
    scan_pairs,
    tie_rank,
)
from gputree.backends.cpu.finish_scan import clear
from gputree.backends.cpu.layout import Node, Pairs, Table
from gputree.backends.cpu.monotonic import at_column, keeps_order, number_allowed
from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing
from gputree.criteria import add_row, begin, move, score

# Rows whose drawn columns are read one after the other: their values stay in the cache of a core.
BLOCK_ROWS = 256
# Columns that are read at once.
BLOCK_COLUMNS = 64

# Hashed for a column: its threshold, the side of missing values, a category.
_THRESHOLD, _MISSING, _CATEGORY = np.uint64(1), np.uint64(2), np.uint64(3)


class CutScratch(NamedTuple):
    """Scratch for the best cut of each column; unused where cuts are drawn."""

    values: NDArray  # (m,)
    items: NDArray  # (m,) int64
    sorter: Sorter


class Drawn(NamedTuple):
    """Values of a table, and of the columns that a node draws by place in the node."""

    values: NDArray  # (n x d,) of row i and column f at ``i * row_step + f * column_step``
    row_step: int
    column_step: int
    categories: Int64s  # (d,) of categorical columns, 0 of numeric ones
    draws: ColumnDraws
    number: NDArray  # (k, m) values of the columns, or the hashes of categories
    column: Int64s  # (k,)
    low: NDArray  # (k,) minimum known value
    high: NDArray  # (k,)
    missing: Int64s  # (k,) rows with missing values
    sorting: CutScratch | None


def new_drawn(
    table: Table, task: Task, by_column: NDArray | None, draws: ColumnDraws, m: int
) -> Drawn:
    """Scratch for nodes of up to m rows; `by_column` are the values (d, n), if there is a copy."""
    n, d = table.values.shape
    kind, k = table.values.dtype, min(task.limits.max_features, d, BLOCK_COLUMNS)
    sorting = None
    if not task.draws_cuts:
        sorting = CutScratch(np.empty(m, kind), np.empty(m, np.int64), new_sorter())
    return Drawn(
        values=(table.values if by_column is None else by_column).reshape(-1),
        row_step=d if by_column is None else 1,
        column_step=1 if by_column is None else n,
        categories=table.categories,
        draws=draws,
        number=np.empty((k, m), kind),
        column=np.empty(k, np.int64),
        low=np.empty(k, kind),
        high=np.empty(k, kind),
        missing=np.empty(k, np.int64),
        sorting=sorting,
    )


@borrowing
def hash_of(key, f, what):
    """Hash 64 bits for one use, `what`, of column f in the node of a key."""
    return mix(mix(np.uint64(key) ^ (np.uint64(what) << np.uint64(56))) + np.uint64(f))


@borrowing
def fraction_of(bits):
    """Number in [0, 1) from 64 bits."""
    return np.float64(np.uint64(bits) >> np.uint64(11)) * 2.0**-53


@borrowing
def take_numbers(drawn, rows, key, c, first, last):
    """Copy numbers of column ``drawn.column[c]`` at places ``first .. last`` of a node's rows.

    The column's minimum and maximum are extended by them.
    """
    f = drawn.column[c]
    local, numbers = rows[first:last], drawn.number[c][first:last]
    values, step = drawn.values[f * drawn.column_step :], np.uintp(drawn.row_step)
    low, high, missing = drawn.low[c], drawn.high[c], np.int64(0)
    if drawn.categories[f] == 0:
        for i in range(np.uintp(last - first)):
            x = values[np.uintp(local[i]) * step]
            numbers[i] = x
            low = x if x < low else low
            high = x if x > high else high
            missing += np.int64(x != x)
    else:
        column_key = hash_of(key, f, _CATEGORY)
        for i in range(np.uintp(last - first)):
            x = values[np.uintp(local[i]) * step]
            if x == x:
                x = values.dtype.type(fraction_of(mix(column_key + np.uint64(x))))
            numbers[i] = x
            low = x if x < low else low
            high = x if x > high else high
            missing += np.int64(x != x)
    drawn.low[c], drawn.high[c] = low, high
    drawn.missing[c] += missing


@borrowing
def first_difference(low, high):
    """Threshold between the binary digits 0 and 1, the first in which two fractions differ."""
    middle, width = 0.5, 0.25
    while high < middle or low >= middle:
        middle += width if low >= middle else -width
        width *= 0.5
    return np.nextafter(middle, 0.0)


@borrowing
def draw_cut(key, f, low, high, missing, nominal):
    """Draw a cut of a column that is not constant: (threshold, missing_left).

    Where all known values are equal, the cut separates them from the missing ones.
    """
    low, high = np.float64(low), np.float64(high)
    if low == high:
        return np.inf, False
    missing_left = missing > 0 and hash_of(key, f, _MISSING) >> np.uint64(63) == 0
    if nominal:
        return first_difference(low, high), missing_left
    share = fraction_of(hash_of(key, f, _THRESHOLD))
    threshold = max(low * (1.0 - share) + high * share, low)
    return threshold if threshold < high else low, missing_left


@borrowing
def goes_left(x, threshold, missing_left):
    """Return True for a number on the left side of a cut."""
    return (x <= threshold) | (missing_left & (x != x))


@borrowing
def better_cut(scan, limits, drawn, c, threshold, missing_left, cut):
    """The better of `cut` and a drawn cut of column c."""
    criterion, left, total = scan.criterion, scan.left, scan.total
    f, numbers, m = drawn.column[c], drawn.number[c], scan.t
    clear(left)
    state, rows = scan.start, np.int64(0)
    for i in range(np.uintp(m)):
        is_left = np.int64(goes_left(numbers[i], threshold, missing_left))
        target, weight = is_left * scan.target[i], is_left * scan.weight[i]
        state = move(criterion, state, left, total, target, weight)
        rows += is_left
    column_limits = at_column(limits.monotonic, limits, f)
    admitted = admits(limits, rows, m, state[0], scan.whole)
    if not admitted or not keeps_order(column_limits.monotonic, criterion, state, left, total):
        return cut
    value, rank = score(criterion, state, left, total), tie_rank(limits, scan.key, f)
    found = new_cut(value, f, missing_left, c, True, threshold, rank)
    return found if precedes(found, cut) else cut


@borrowing
def add_where(scan, numbers, missing):
    """Add the rows whose numbers are missing, or else those whose are not, to the left side."""
    for i in range(scan.t):
        if (numbers[i] != numbers[i]) == missing:
            add_row(scan.criterion, scan.left, 0, scan.target[i], scan.weight[i], 0)


@borrowing
def better_sorted_cut(scan, limits, drawn, sorting, c, cut):
    """The better of `cut` and the best of column c, whose numbers are sorted."""
    criterion, left, total, key = scan.criterion, scan.left, scan.total, scan.key
    f, numbers, m, missing = drawn.column[c], drawn.number[c], scan.t, drawn.missing[c]
    values, items = sorting.values, sorting.items
    n_present = np.int64(0)
    for i in range(np.uintp(m)):
        values[n_present] = numbers[i]
        items[n_present] = i
        n_present += np.int64(numbers[i] == numbers[i])
    sort_pairs(values, items, 0, n_present, sorting.sorter)
    column_limits, rank = at_column(limits.monotonic, limits, f), tie_rank(limits, key, f)
    node = Node(criterion, column_limits, scan.weighted, total, key)
    rows, pairs = Rows(scan.target, scan.weight, None, None), Pairs(values, items)
    # `cut` is the better of the given one and those with missing values on the sides before.
    for side in range(2 if missing > 0 else 1):
        clear(left)
        if side == 1:
            add_where(scan, numbers, True)
        before = missing if side == 1 else 0
        value, threshold = scan_pairs(node, rows, pairs, 0, n_present, left, before, m)
        if value > -np.inf:
            found = new_cut(value, f, side == 1, c, True, threshold, rank)
            cut = found if precedes(found, cut) else cut
        if side == 0 and missing > 0:  # known from missing values
            clear(left)
            add_where(scan, numbers, False)
            state = begin(criterion, left, total)
            if admits(limits, n_present, m, state[0], scan.whole) and keeps_order(
                column_limits.monotonic, criterion, state, left, total
            ):
                value = score(criterion, state, left, total)
                found = new_cut(value, f, False, c, True, np.inf, rank)
                cut = found if precedes(found, cut) else cut
    return cut


@borrowing
def take_columns(drawn, rows, key, k):
    """Copy what the first k of the drawn columns have in a node's rows."""
    for c in range(k):
        drawn.low[c], drawn.high[c], drawn.missing[c] = np.inf, -np.inf, 0
    for a in range(0, rows.size, BLOCK_ROWS):
        for c in range(k):
            take_numbers(drawn, rows, key, c, a, min(a + BLOCK_ROWS, rows.size))


@borrowing
def best_value_cut(scan, rows, limits, active, drawn, sorting):
    """The best cut of the columns that a node of `rows` draws; more are drawn until there is one.

    Also returns how many of the `active` columns remain.
    """
    draws, key = drawn.draws, scan.key
    order = draws.order
    cut = no_cut()
    d = number_allowed(scan.allowed, order.size)
    most = min(limits.max_features, d)
    first = seen = np.int64(0)
    # Columns `order[:first]` are drawn, and `cut` is the best of them; `seen` of them are active.
    # Those that remain are constant once all active ones are seen.
    while (first < most or cut.score == -np.inf) and seen < active:
        upto = min(first + drawn.column.size, most) if first < most else first + 1
        if most < d:
            draw_columns(key, scan.allowed, order, first, upto)
        elif first == 0:
            list_columns(scan.allowed, order)
        k = np.int64(0)
        for c in range(first, upto):
            drawn.column[k] = order[c]
            k += draws.place[order[c]] < active
        first = upto
        take_columns(drawn, rows, key, k)
        for c in range(k):
            f, missing = drawn.column[c], drawn.missing[c]
            nominal = drawn.categories[f] > 0
            constant = missing == scan.t or (missing == 0 and drawn.low[c] == drawn.high[c])
            if constant and not nominal:  # hashes of categories may be equal in one node
                active = drop_column(draws, f, active)
                continue
            seen += 1
            if constant:
                continue
            if sorting is not None:
                cut = better_sorted_cut(scan, limits, drawn, sorting, c, cut)
            else:
                threshold, missing_left = draw_cut(
                    key, f, drawn.low[c], drawn.high[c], missing, nominal
                )
                cut = better_cut(scan, limits, drawn, c, threshold, missing_left, cut)
    return cut, active


@borrowing
def mark_values(scan, rows, drawn, cut, left_side):
    """Mark each of a node's rows with its side of a cut.

    Returns the threshold, and True if there are missing values.
    """
    c = cut.place
    if drawn.column[c] != cut.column:  # others were drawn after it
        c, drawn.column[0] = np.int64(0), cut.column
        take_columns(drawn, rows, scan.key, 1)
    numbers = drawn.number[c]
    for i in range(np.uintp(rows.size)):
        left_side[i] = goes_left(numbers[i], cut.threshold, cut.missing_left)
    threshold = 0.0 if drawn.categories[cut.column] > 0 else cut.threshold
    return threshold, drawn.missing[c] > 0
