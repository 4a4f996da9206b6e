"""The best cut of a sorted column of a block; see `gputree.backends.cpu.finish`.

In a nominal column a rank stands for a category, in the order of codes. So the rows of a category
are a run of the sorted keys, and subsets of categories are subsets of runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import admits, new_cut, no_cut, precedes, score_to_beat, tie_rank
from gputree.backends.cpu.monotonic import at_column, keeps_order
from gputree.backends.cpu.runs import (
    Listed,
    add_to_run,
    clear_cells,
    holds_cells,
    node_runs,
    number_present,
    weight_of,
)
from gputree.backends.cpu.subsets import best_subset, mark_subset
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, pasted, written_out
from gputree.criteria import add_row, begin, may_exceed, move, restrict, score


@borrowing
def is_nominal(scratch, f):
    """Return True if column f is nominal; `scratch` is None where no column is."""
    if scratch is None:
        return False
    return scratch.categories[f] > 0


@written_out
def listed_in(scratch, scan):
    """The rows of a node of a block, by category."""
    return Listed(scratch.item, scan.target, scan.weight, scratch.weighted, scratch.class_of)


@borrowing
def find_runs(scratch, keys, bits, s, t):
    """Set the runs of the sorted `keys` ``s .. t``, and list their rows; returns their number."""
    runs, item = scratch.runs, scratch.item
    mask = (1 << bits) - 1
    missing = missing_rank(bits)
    count = 0
    before = np.int64(-1)
    for i in range(np.uintp(t - s)):
        key = np.int64(keys[np.uintp(s) + i])
        rank = key >> bits
        item[i] = key & mask
        if rank != before and before != missing:
            runs.begin[count] = i
            count += 1
            before = rank
    if before == missing:  # the last run has the missing values
        count -= 1
    else:
        runs.begin[count] = t - s
    runs.begin[count + 1] = t - s
    return count


@borrowing
def sum_runs(criterion, scratch, listed, count, present):
    """Sum the rows of `count` runs, and of the missing values behind them."""
    runs = scratch.runs
    clear_cells(runs, count, present)
    for r in range(count + 1):
        for i in range(np.uintp(runs.begin[r]), np.uintp(runs.begin[r + 1])):
            x = np.uintp(listed.item[i])
            target = listed.target[x]
            if not scratch.regression:
                target = np.int64(listed.class_of[np.uintp(target)])
            add_to_run(criterion, runs, r, present, target, weight_of(listed, x))


@borrowing
def take_runs(criterion, scratch, scan, keys, listed, f, present):
    """Find and sum the runs of column f; returns their number, and True if they have sums."""
    count = find_runs(scratch, keys, scan.bits, scan.s, scan.t)
    sums_runs = holds_cells(present, count)
    if sums_runs:
        sum_runs(criterion, scratch, listed, count, present)
    scratch.last[0], scratch.last[1] = f, count
    return count, sums_runs


@borrowing
def classes_in(scratch, total):
    """Number the classes that have weight in `total`; returns the number of channels."""
    n_classes = 0 if scratch.regression else total.size
    return number_present(total, n_classes, scratch.class_of, scratch.sums[0])


@pasted
def scan_categories(scratch, scan, limits, f, keys, cut):
    """The better of `cut` and the best subset of nominal column f with sorted keys.

    As a cut, its place is the bin, its order the threshold.
    """
    present = classes_in(scratch, scan.total)
    criterion = restrict(scan.criterion, present)
    listed = listed_in(scratch, scan)
    count, sums_runs = take_runs(criterion, scratch, scan, keys, listed, f, present)
    node = node_runs(scratch, listed, count, sums_runs, present)
    value, missing_left, k, place = best_subset(criterion, limits, scratch, node)
    if value > -np.inf:
        rank = tie_rank(limits, scan.key, f)
        found = new_cut(value, f, missing_left, place, True, np.float64(k), rank)
        if precedes(found, cut):
            return found
    return cut


@pasted
def mark_categories(scratch, scan, keys, cut, left_side):
    """Mark each row with its side of `cut`, a subset of the categories of a nominal column.

    `keys` are those of the column, sorted.
    """
    f = cut.column
    present = classes_in(scratch, scan.total)
    criterion = restrict(scan.criterion, present)
    if scratch.last[0] == f:
        count = scratch.last[1]
    else:
        listed = listed_in(scratch, scan)
        count, _ = take_runs(criterion, scratch, scan, keys, listed, f, present)
    runs = scratch.runs
    mark_subset(criterion, scratch, count, present, np.int64(cut.threshold), cut.place)
    runs.is_left[count] = cut.missing_left  # missing values
    for r in range(count + 1):
        for i in range(np.uintp(runs.begin[r]), np.uintp(runs.begin[r + 1])):
            left_side[np.uintp(scratch.item[i])] = runs.is_left[r]


# Up to this many rows every cut of a node is scored: to guess which ones cannot win, and be wrong a
# few times, takes longer.
FEW_ROWS = 12


class Scan(NamedTuple):
    """A node of a block, places ``s .. t`` of its sorted columns, whose columns are scanned."""

    criterion: Any
    weighted: bool
    order: NDArray  # (d, m) keys, see `gputree.backends.cpu.block`
    bits: int  # bits of a key that store the index of a row
    target: NDArray
    weight: NDArray
    s: int
    t: int
    total: Int64s  # (channels,)
    left: Int64s  # (channels,) scratch
    whole: int  # weight of the node
    start: Any  # the criterion's state with no row on the left
    key: np.uint64  # of random draws
    allowed: Any  # columns that may split the node, see `gputree.backends.cpu.monotonic`


@pasted
def weight_at(scan, x):
    """Weight, in units, of row x of the block."""
    return scan.weight[x] if scan.weighted else 1


@borrowing
def clear(left):
    """Zero the statistics of the left side."""
    for k in range(left.size):
        left[k] = 0


@pasted
def scan_side(scan, limits, keys, first_missing, missing_left, best):
    """Best cut of a column of a node by its sorted keys, with missing values on one side.

    Only scores above `best` count. Returns (score, place of the last known entry on the left),
    place -1 where there is none.
    """
    criterion, left, total = scan.criterion, scan.left, scan.total
    target, s, t, whole = scan.target, scan.s, scan.t, scan.whole
    shift = np.uintp(scan.bits)
    mask = (np.uintp(1) << shift) - np.uintp(1)
    place = np.int64(-1)
    clear(left)
    state = scan.start
    if missing_left:
        for i in range(first_missing, t):
            x = np.uintp(keys[i]) & mask
            state = move(criterion, state, left, total, target[x], weight_at(scan, x))
    moved = t - first_missing if missing_left else 0
    last = first_missing if (first_missing < t and not missing_left) else first_missing - 1
    rows = t - s
    following = np.uintp(keys[np.uintp(s)])
    # `left` are the statistics of the places s .. i, and of missing values if they go left; `best`
    # is the best score so far, of the cut after `place`.
    for i in range(np.uintp(s), np.uintp(max(last, s))):
        key = following
        following = np.uintp(keys[i + np.uintp(1)])
        x = key & mask
        state = move(criterion, state, left, total, target[x], weight_at(scan, x))
        between = key >> shift != following >> shift
        n = np.int64(i) + 1 - s + moved
        if rows > FEW_ROWS and not (
            between
            and admits(limits, n, rows, state[0], whole)
            and may_exceed(criterion, state, left, total, best)
        ):
            continue
        value = score(criterion, state, left, total)
        better = (value > best) & between & admits(limits, n, rows, state[0], whole)
        better &= keeps_order(limits.monotonic, criterion, state, left, total)
        best = value if better else best
        place = np.int64(i) if better else place
    return best, place


@borrowing
def known_end(keys, bits, s, t):
    """End of the known values among the sorted keys ``s .. t`` of a column."""
    missing = missing_rank(bits)
    while t > s and np.int64(keys[t - 1]) >> bits == missing:
        t -= 1
    return t


@borrowing
def scan_two_values(scan, limits, keys):
    """Like `scan_side`, where the column has two distinct values, none missing.

    Only the side with fewer rows is summed; the other is the rest of the node.
    """
    criterion, bits = scan.criterion, scan.bits
    left, total = scan.left, scan.total
    s, t = scan.s, scan.t
    first = np.int64(keys[s]) >> bits
    low = s
    high = t - 1  # keys[low] has the first value, keys[high] the second
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(keys[middle]) >> bits == first:
            low = middle
        else:
            high = middle
    n = high - s
    begin_sum, end_sum = (s, high) if n <= t - high else (high, t)
    mask = (1 << bits) - 1
    clear(left)
    for i in range(begin_sum, end_sum):
        x = np.int64(keys[i]) & mask
        add_row(criterion, left, 0, scan.target[x], weight_at(scan, x), 0)
    if begin_sum != s:
        for k in range(left.size):
            left[k] = total[k] - left[k]
    state = begin(criterion, left, total)
    if not admits(limits, n, t - s, state[0], scan.whole):
        return -np.inf, np.int64(-1)
    if not keeps_order(limits.monotonic, criterion, state, left, total):
        return -np.inf, np.int64(-1)
    return score(criterion, state, left, total), high - 1


@pasted
def scan_column(scan, limits, f, keys, two_valued, cut):
    """The better of `cut` and the best cut of column f with sorted keys."""
    column_limits = at_column(limits.monotonic, limits, f)
    rank = tie_rank(limits, scan.key, f)
    first_missing = known_end(keys, scan.bits, scan.s, scan.t)
    if two_valued and first_missing == scan.t:
        value, place = scan_two_values(scan, column_limits, keys)
        if place >= 0:
            found = new_cut(value, f, False, place, True, 0.0, rank)
            if precedes(found, cut):
                return found
        return cut
    for side in range(2 if first_missing < scan.t else 1):
        value, place = scan_side(
            scan, column_limits, keys, first_missing, side == 1, score_to_beat(cut, rank)
        )
        if place >= 0:
            cut = new_cut(value, f, side == 1, place, True, 0.0, rank)
    return cut


@borrowing
def cut_pair(scan, limits):
    """Best cut of the two rows of a node: (True if no value is missing, cut).

    Columns that put the same row first have the same score.
    """
    criterion, order, s, left, total = scan.criterion, scan.order, scan.s, scan.left, scan.total
    one = np.uintp(1)
    mask = (one << np.uintp(scan.bits)) - one
    missing = missing_rank(scan.bits)
    first = np.int64(-1)
    scored = np.int64(0)
    one_way = other_way = -np.inf  # scores of the cuts with either row on the left
    cut = no_cut()
    # Rows can be in two orders, and each order is scored once; `cut` is the best of the columns
    # before.
    for f in range(order.shape[0]):
        key = np.uintp(order[f, s])
        high = np.int64(order[f, s + 1]) >> scan.bits
        x = np.int64(key & mask)
        if np.int64(key) >> scan.bits == high or (x == first and not limits.random_ties):
            continue
        if high == missing:
            return False, cut
        if scored == 0 or (scored == 1 and x != first):
            value = -np.inf
            clear(left)
            state = move(criterion, scan.start, left, total, scan.target[x], weight_at(scan, x))
            if admits(limits, 1, 2, state[0], scan.whole):
                value = score(criterion, state, left, total)
            if scored == 0:
                first, one_way = x, value
            else:
                other_way = value
            scored += 1
        value = one_way if x == first else other_way
        if value > -np.inf and value >= cut.score:
            found = new_cut(value, f, False, s, True, 0.0, tie_rank(limits, scan.key, f))
            cut = found if precedes(found, cut) else cut
        if scored == 2 and not limits.random_ties:
            break
    return True, cut
