"""Subtrees that read only the columns sampled at each node (extra-trees; small `max_features`).

    first pass     minimum and maximum of the drawn columns, and the number of missing values
    second pass    a cut of each
    the best       partitions the entries of the node, stably

Where a node draws few of many columns, it sorts these: keeping all columns sorted takes longer. Of
wide tables it sorts all columns, some at a time: keeping them sorted takes more memory than the
table.

Extremely randomized trees sort nothing. One cut of each column is drawn uniformly between its
minimum and maximum in the node. Categories are replaced by numbers that are hashed from the node,
the column and the category: their binary digits are independent, so the first digit in which those
of the node differ draws each of its subsets with the same probability, without none and all. The
side of missing values is drawn, too.

P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 3-42, 2006.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.hashing import child_key, mix
from gputree.backends.base import Int64s, Subtrees, Task
from gputree.backends.cpu.cut import (
    admits,
    draw_columns,
    drop_column,
    list_columns,
    new_cut,
    new_draws,
    no_cut,
    precedes,
    scan_pairs,
    tie_rank,
)
from gputree.backends.cpu.finish import (
    SmallNodes,
    Waiting,
    add_leaf,
    may_split,
    new_subtrees,
    places_equal,
    wait,
)
from gputree.backends.cpu.finish_scan import Scan, clear
from gputree.backends.cpu.interactions import (
    allowed_on_stack,
    keep_columns,
    new_sets,
    number_allowed,
    push_sets,
    put_set,
)
from gputree.backends.cpu.jit import borrowing, kernel
from gputree.backends.cpu.layout import EntrySource, Node, Pairs, Rows
from gputree.backends.cpu.monotonic import (
    at_column,
    at_place,
    keeps_order,
    new_stack,
    push_bounds,
    put_bounds,
)
from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.backends.rules import fewest_rows, missing_goes_left
from gputree.criteria import add_row, begin, gain, is_pure, move, restrict, row_by_row, score

# Rows whose drawn columns are read one after the other: their values stay in the cache of a core.
BLOCK_ROWS = 256
# Columns that are read at once.
BLOCK_COLUMNS = 64

# Hashed for a column: its threshold, the side of missing values, a category.
_THRESHOLD, _MISSING, _CATEGORY = np.uint64(1), np.uint64(2), np.uint64(3)


class DrawnEntries(NamedTuple):
    """Rows that trees are grown on; targets and weights are in the table's order."""

    local: NDArray  # (m,) rows; a node is a range of these
    spill: NDArray  # (m,) scratch
    values: NDArray  # (n x d,) of row i and column f at ``i * row_step + f * column_step``
    row_step: int
    column_step: int
    target: NDArray  # (n,)
    weight: NDArray  # (n,), or empty where all are one
    categories: Int64s  # (d,) of categorical columns, 0 of numeric ones


class Drawn(NamedTuple):
    """Columns that a node draws, with its values, targets and weights by place in the node."""

    number: NDArray  # (k, m) values of the columns, or the hashes of categories
    target: Int64s  # (m,)
    weight: Int64s  # (m,)
    column: Int64s  # (k,)
    low: NDArray  # (k,) minimum known value
    high: NDArray  # (k,)
    missing: Int64s  # (k,) rows with missing values


class CutScratch(NamedTuple):
    """Scratch for the best cut of each column; unused where cuts are drawn."""

    values: NDArray  # (m,)
    items: NDArray  # (m,) int64
    sorter: Sorter


class DrawnRules(NamedTuple):
    """Rules by which a node is grown."""

    criterion: Any
    limits: Any
    weighted: bool
    regression: bool
    interactions: Any  # `Interactions`, or None


@borrowing
def hash_of(key, f, what):
    """Hash 64 bits for one use, `what`, of column f in the node of a key."""
    return mix(mix(np.uint64(key) ^ (np.uint64(what) << np.uint64(56))) + np.uint64(f))


@borrowing
def fraction_of(bits):
    """Number in [0, 1) from 64 bits."""
    return np.float64(np.uint64(bits) >> np.uint64(11)) * 2.0**-53


@borrowing
def take_targets(rules, criterion, entries, drawn, s, t, total):
    """Copy targets and weights of places ``s .. t``, and sum them."""
    clear(total)
    local = entries.local[s:t]
    for i in range(np.uintp(t - s)):
        row = np.uintp(local[i])
        target = np.int64(entries.target[row])
        weight = np.int64(entries.weight[row]) if rules.weighted else np.int64(1)
        drawn.target[i] = target
        drawn.weight[i] = weight
        add_row(criterion, total, 0, target, weight, 0)


@borrowing
def take_numbers(entries, key, drawn, c, s, first, last):
    """Copy numbers of column ``drawn.column[c]`` at places ``first .. last`` of a node at `s`.

    The column's minimum and maximum are extended by them.
    """
    f = drawn.column[c]
    local, numbers = entries.local[first:last], drawn.number[c][first - s : last - s]
    values, step = entries.values[f * entries.column_step :], np.uintp(entries.row_step)
    low, high, missing = drawn.low[c], drawn.high[c], np.int64(0)
    if entries.categories[f] == 0:
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
def draw_cut(key, drawn, c, nominal):
    """Draw a cut of a column that is not constant: (threshold, missing_left).

    Where all known values are equal, the cut separates them from the missing ones.
    """
    f, low, high = drawn.column[c], np.float64(drawn.low[c]), np.float64(drawn.high[c])
    if low == high:
        return np.inf, False
    missing_left = drawn.missing[c] > 0 and hash_of(key, f, _MISSING) >> np.uint64(63) == 0
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
    f, numbers, m = drawn.column[c], drawn.number[c], scan.t - scan.s
    clear(left)
    state, rows = scan.start, np.int64(0)
    for i in range(np.uintp(m)):
        is_left = np.int64(goes_left(numbers[i], threshold, missing_left))
        target, weight = is_left * drawn.target[i], is_left * drawn.weight[i]
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
def add_where(criterion, drawn, numbers, m, missing, left):
    """Add the m rows whose numbers are missing, or else those whose are not, to `left`."""
    for i in range(m):
        if (numbers[i] != numbers[i]) == missing:
            add_row(criterion, left, 0, drawn.target[i], drawn.weight[i], 0)


@borrowing
def better_sorted_cut(scan, limits, drawn, sorting, c, cut):
    """The better of `cut` and the best of column c, whose numbers are sorted."""
    criterion, left, total, key = scan.criterion, scan.left, scan.total, scan.key
    f, numbers, m, missing = drawn.column[c], drawn.number[c], scan.t - scan.s, drawn.missing[c]
    values, items = sorting.values, sorting.items
    n_present = np.int64(0)
    for i in range(np.uintp(m)):
        values[n_present] = numbers[i]
        items[n_present] = i
        n_present += np.int64(numbers[i] == numbers[i])
    sort_pairs(values, items, 0, n_present, sorting.sorter)
    column_limits, rank = at_column(limits.monotonic, limits, f), tie_rank(limits, key, f)
    node = Node(criterion, column_limits, scan.weighted, total, key)
    rows, pairs = Rows(drawn.target, drawn.weight, None, None), Pairs(values, items)
    # `cut` is the better of the given one and those with missing values on the sides before.
    for side in range(2 if missing > 0 else 1):
        clear(left)
        if side == 1:
            add_where(criterion, drawn, numbers, m, True, left)
        before = missing if side == 1 else 0
        value, threshold = scan_pairs(node, rows, pairs, 0, n_present, left, before, m)
        if value > -np.inf:
            found = new_cut(value, f, side == 1, c, True, threshold, rank)
            cut = found if precedes(found, cut) else cut
        if side == 0 and missing > 0:  # known from missing values
            clear(left)
            add_where(criterion, drawn, numbers, m, False, left)
            state = begin(criterion, left, total)
            if admits(limits, n_present, m, state[0], scan.whole) and keeps_order(
                column_limits.monotonic, criterion, state, left, total
            ):
                value = score(criterion, state, left, total)
                found = new_cut(value, f, False, c, True, np.inf, rank)
                cut = found if precedes(found, cut) else cut
    return cut


@borrowing
def take_columns(entries, key, drawn, k, s, t):
    """Copy what the first k of the drawn columns have in places ``s .. t``."""
    for c in range(k):
        drawn.low[c], drawn.high[c], drawn.missing[c] = np.inf, -np.inf, 0
    for a in range(s, t, BLOCK_ROWS):
        for c in range(k):
            take_numbers(entries, key, drawn, c, s, a, min(a + BLOCK_ROWS, t))


@borrowing
def find_cut(scan, entries, limits, draws, active, drawn, sorting):
    """The best cut of the columns that a node draws; more are drawn until there is one.

    Also returns how many of the `active` columns remain.
    """
    order, s, t, key = draws.order, scan.s, scan.t, scan.key
    cut = no_cut()
    d = number_allowed(scan.allowed, order.size)
    most = min(limits.max_features, d)
    active = keep_columns(scan.allowed, draws.columns, draws.place, active)
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
        take_columns(entries, key, drawn, k, s, t)
        for c in range(k):
            f, missing = drawn.column[c], drawn.missing[c]
            nominal = entries.categories[f] > 0
            constant = missing == t - s or (missing == 0 and drawn.low[c] == drawn.high[c])
            if constant and not nominal:  # hashes of categories may be equal in one node
                active = drop_column(draws, f, active)
                continue
            seen += 1
            if constant:
                continue
            if sorting is not None:
                cut = better_sorted_cut(scan, limits, drawn, sorting, c, cut)
            else:
                threshold, missing_left = draw_cut(key, drawn, c, nominal)
                cut = better_cut(scan, limits, drawn, c, threshold, missing_left, cut)
    return cut, active


@borrowing
def place_of_column(entries, key, drawn, cut, s, t):
    """Place of the column that is cut among those drawn, where others may have followed it."""
    if drawn.column[cut.place] == cut.column:
        return cut.place
    drawn.column[0] = cut.column
    take_columns(entries, key, drawn, 1, s, t)
    return np.int64(0)


@borrowing
def part_entries(entries, drawn, c, cut, s, t):
    """Partition places ``s .. t`` by a cut of drawn column c; returns the first on the right."""
    local, spill, numbers = entries.local[s:t], entries.spill, drawn.number[c]
    to_left = to_spill = np.uintp(0)
    for i in range(np.uintp(t - s)):
        row = local[i]
        is_left = np.uintp(goes_left(numbers[i], cut.threshold, cut.missing_left))
        local[to_left] = row
        spill[to_spill] = row
        to_left += is_left
        to_spill += np.uintp(1) - is_left
    for i in range(to_spill):
        local[to_left + i] = spill[i]
    return s + np.int64(to_left)


@borrowing
def grow_one(rules, criterion, entries, free, waiting, draws, drawn, sorting, total, left, out):
    """Grow the subtree of the node on top of the stack; returns the next free node."""
    limits = rules.limits
    min_rows = fewest_rows(limits)
    size = 1
    # Nodes below `free` have their entries, s .. t; the `size` on the stack may still be split.
    while size > 0:
        size -= 1
        node, level, key = waiting.node[size], waiting.depth[size], waiting.key[size]
        bounded = at_place(limits.monotonic, limits, waiting.bounds, size)
        allowed = allowed_on_stack(rules.interactions, waiting.columns, size)
        s, t = out.begin[node], out.end[node]
        if level >= limits.max_depth or t - s < min_rows:
            continue
        take_targets(rules, criterion, entries, drawn, s, t, total)
        clear(left)
        scan = Scan(
            criterion, rules.weighted, entries.local, 0, entries.target, entries.weight, s, t,
            total, left, begin(criterion, total, total)[0], begin(criterion, left, total), key,
            allowed,
        )  # fmt: skip
        if is_pure(criterion, total):
            continue
        if rules.regression and places_equal(scan, entries.local, limits.rounded):
            continue
        active = waiting.active[size]
        cut, active = find_cut(scan, entries, bounded, draws, active, drawn, sorting)
        if cut.score == -np.inf:
            continue
        decrease = gain(criterion, cut.score, total)
        if decrease * scan.whole < limits.min_decrease:
            continue
        f = cut.column
        c = place_of_column(entries, key, drawn, cut, s, t)
        middle = part_entries(entries, drawn, c, cut, s, t)
        missing = drawn.missing[c] > 0
        out.first_child[node] = free
        out.feature[node] = f
        out.gain[node] = decrease
        if entries.categories[f] == 0:
            out.threshold[node] = cut.threshold
        out.missing_left[node] = missing_goes_left(
            missing, cut.missing_left, middle - s, t - middle
        )
        push_bounds(
            bounded.monotonic, criterion, entries, rules.weighted, f, s, middle, total, left,
            waiting.bounds, size,
        )  # fmt: skip
        push_sets(allowed, f, waiting.columns, size)
        add_leaf(out, free, s, middle)
        add_leaf(out, free + 1, middle, t)
        deeper = level + 1 < limits.max_depth
        for side in range(2):
            a, b = (middle, t) if side == 1 else (s, middle)
            splits = deeper and may_split(rules.regression, entries, a, b, min_rows)
            below = level + 1 if splits else limits.max_depth  # else it stays a leaf
            wait(waiting, size, free + side, below, active, child_key(key, side))
            size += 1
        free += 2
    return free


@kernel
def grow_drawn(rules, channels, entries, nodes, draws, sorting, out):
    """Grow the subtrees of all nodes, and return their number of nodes."""
    most = np.int64(0)
    for j in range(nodes.begin.size):
        most = max(most, nodes.end[j] - nodes.begin[j])
    waiting = Waiting(
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.uint64),
        new_stack(rules.limits.monotonic, most + 1),
        new_sets(rules.interactions, most + 1),
    )
    d = entries.categories.size
    k = min(rules.limits.max_features, d, BLOCK_COLUMNS)
    drawn = Drawn(
        np.empty((k, most), entries.values.dtype),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(k, np.int64),
        np.empty(k, entries.values.dtype),
        np.empty(k, entries.values.dtype),
        np.empty(k, np.int64),
    )
    total, left = np.empty(channels, np.int64), np.empty(channels, np.int64)
    criterion = restrict(rules.criterion, channels)
    free = np.int64(0)
    # The subtrees of the nodes before j are the nodes below `free`.
    for j in range(nodes.begin.size):
        out.root[j] = free
        add_leaf(out, free, nodes.begin[j], nodes.end[j])
        put_bounds(rules.limits.monotonic, nodes.means, j, waiting.bounds)
        put_set(rules.interactions, nodes.means, j, waiting.columns)
        wait(waiting, 0, free, nodes.depth[j], d, nodes.key[j])
        free = grow_one(
            rules, criterion, entries, free + 1, waiting, draws, drawn, sorting, total, left, out
        )
    return free


def grow_of_drawn(
    source: EntrySource, task: Task, by_column: NDArray | None, nodes: SmallNodes
) -> Subtrees:
    """Grow the subtrees of all nodes given, exactly; entries end in leaf order.

    `by_column` are the table's values column by column, (d, n), where the table is wide.
    """
    table, rows, local = source
    n, d = table.values.shape
    steps = (d, 1) if by_column is None else (1, n)
    most = int((nodes.end - nodes.begin).max())
    out = new_subtrees(nodes.end - nodes.begin, nodes.depth, task.limits)
    entries = DrawnEntries(
        local=local,
        spill=np.empty(most, local.dtype),
        values=(table.values if by_column is None else by_column).reshape(-1),
        row_step=steps[0],
        column_step=steps[1],
        target=rows.target,
        weight=np.empty(0, np.int64) if rows.weight is None else rows.weight,
        categories=table.categories,
    )
    regression = rows.square is not None
    given = task.limits, rows.weight is not None, regression, task.interactions
    rules = DrawnRules(row_by_row(task.criterion), *given)
    channels = 3 if regression else max(task.n_classes, 2)
    sorting = None
    if not task.draws_cuts:
        values, items = np.empty(most, table.values.dtype), np.empty(most, np.int64)
        sorting = CutScratch(values, items, new_sorter())
    free = grow_drawn(rules, channels, entries, nodes, new_draws(d), sorting, out)
    return Subtrees._make([out.root, *(field[:free].copy() for field in out[1:])])
