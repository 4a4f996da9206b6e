"""Which categories go left: the best subset of those present in a node.

The rows of a category are a run in the sorted list of its column. Three searches name the
subset they find by one number, its *place*:

    ordered       runs by the share of a class (or mean target)    how many runs go left
    exhaustive    all subsets without the last run                 mask of the runs
    one vs rest   single runs                                      the run; all runs past the last

Missing values go right or left of every subset. Of equals, `precedes` of
`gputree.backends.cpu.refine` chooses: missing values right, then the first order, then the
least place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import inner, pick
from gputree.backends.cpu.score import add_cell
from gputree.backends.cpu.sort import sort_pairs
from gputree.criteria import add_row, begin, left_weight, score

ORDERED, EXHAUSTIVE, ONE_VS_REST = 0, 1, 2

# Statistics of all categories of a node, at most, that are held at once (128 MB); beyond it,
# with more than two classes, single categories are tried.
MOST_CELLS = 1 << 24


class Runs(NamedTuple):
    """Room for the runs of a node; those after the known ones hold the missing values."""

    begin: NDArray[np.int64]  # (room,) first place of each run
    cells: NDArray[np.int64]  # (room x channels,) statistics of each run
    share: NDArray[np.float64]  # (room,)
    order: NDArray[np.int64]  # (room,) runs in order of their shares
    is_left: NDArray[np.bool_]  # (room,)
    stack: NDArray[np.int64]  # (64, 2) scratch of sorting


class Subset(NamedTuple):
    """A subset as it is compared."""

    score: float
    missing_left: bool
    order: int
    place: int


@inner
def new_runs(room, cells):
    """Room for so many runs, one of missing values included, and for their statistics."""
    return Runs(
        np.empty(room + 1, np.int64),
        np.empty(cells, np.int64),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
        np.empty(room, np.bool_),
        np.empty((64, 2), np.int64),
    )


@inner
def count_runs(code, first, last):
    """Number of distinct codes in the sorted places ``first .. last``."""
    count = 0
    for i in range(first, last):
        count += i == first or code[i] != code[i - 1]
    return count


@inner
def find_runs(code, first, known, last, runs):
    """Set the beginnings of the runs; the one of missing values follows, then the end."""
    count = 0
    for i in range(first, known):
        if i == first or code[i] != code[i - 1]:
            runs.begin[count] = i
            count += 1
    runs.begin[count] = known
    runs.begin[count + 1] = last
    return count


@inner
def add_run(criterion, class_of, item, target, weight, first, last, cells, at):
    """Add the rows of places ``first .. last`` to the statistics at ``cells[at]``."""
    for i in range(first, last):
        e = item[i]
        t = target[e]
        add_row(criterion, cells, at, pick(class_of, t, t), pick(weight, e, 1), 0)


@inner
def sum_runs(criterion, class_of, item, target, weight, runs, count, channels):
    """Sum up `count` runs and the missing values behind them."""
    for c in range((count + 1) * channels):
        runs.cells[c] = 0
    for r in range(count + 1):
        add_run(
            criterion, class_of, item, target, weight, runs.begin[r], runs.begin[r + 1],
            runs.cells, r * channels,
        )  # fmt: skip


@inner
def choose_search(search, regression, channels, count):
    """Which search `count` categories get."""
    if search.one_vs_rest:
        return ONE_VS_REST
    if regression or channels <= 2:
        return ORDERED
    if count <= search.most_exhaustive:
        return EXHAUSTIVE
    return ORDERED if count * channels <= MOST_CELLS else ONE_VS_REST


@inner
def room_for(runs, search, regression, channels, count):
    """`runs`, or a larger one where `count` runs and their statistics do not fit."""
    single = choose_search(search, regression, channels, count) == ONE_VS_REST
    cells = 0 if single else (count + 1) * channels
    if count + 1 <= runs.share.size and cells <= runs.cells.size:
        return runs
    return new_runs(max(2 * count + 2, runs.share.size), max(2 * cells, runs.cells.size))


@inner
def no_subset():
    """The subset that every other precedes."""
    return Subset(-np.inf, False, np.int64(0), np.int64(0))


@inner
def first_of(a, b):
    """The one of two subsets that is chosen."""
    if a.score != b.score:
        return a if a.score > b.score else b
    if a.missing_left != b.missing_left:
        return b if a.missing_left else a
    if a.order != b.order:
        return a if a.order < b.order else b
    return a if a.place <= b.place else b


@inner
def subset_score(criterion, limits, left, total, n, rows, whole):
    """Score of sending n of `rows` rows with statistics `left` left; -inf if it may not be."""
    least = max(limits.min_samples_leaf, 1)
    if n < least or rows - n < least:
        return -np.inf
    state = begin(criterion, left, total)
    if state[0] < limits.min_weight_leaf or whole - state[0] < limits.min_weight_leaf:
        return -np.inf
    return score(criterion, state, left, total)


@inner
def start_subset(runs, count, missing_left, left):
    """Statistics and rows that go left before any category."""
    for c in range(left.size):
        left[c] = 0
    if not missing_left:
        return np.int64(0)
    add_cell(left, runs.cells, count * left.size)
    return runs.begin[count + 1] - runs.begin[count]


@inner
def sort_runs(criterion, runs, count, channels, k):
    """Order the runs by their share of statistic k; equal shares by code."""
    for r in range(count):
        weight = left_weight(criterion, runs.cells, r * channels)
        runs.share[r] = np.float64(runs.cells[r * channels + k]) / np.float64(weight)
        runs.order[r] = r
    sort_pairs(runs.share, runs.order, 0, count, runs.stack)
    start = 0
    while start < count:
        stop = start + 1
        while stop < count and runs.share[stop] == runs.share[start]:
            stop += 1
        sort_pairs(runs.order, runs.share, start, stop, runs.stack)
        start = stop


@inner
def scan_order(criterion, limits, runs, count, k, total, left, rows, whole, best):
    """The better of `best` and the best head of the runs ordered by statistic k."""
    channels = total.size
    sort_runs(criterion, runs, count, channels, k)
    has_missing = runs.begin[count + 1] > runs.begin[count]
    for side in range(1 + has_missing):
        n = start_subset(runs, count, side == 1, left)
        heads = count if has_missing and side == 0 else count - 1
        for i in range(heads):
            r = runs.order[i]
            add_cell(left, runs.cells, r * channels)
            n += runs.begin[r + 1] - runs.begin[r]
            value = subset_score(criterion, limits, left, total, n, rows, whole)
            best = first_of(best, Subset(value, side == 1, np.int64(k), np.int64(i + 1)))
    return best


@inner
def scan_ordered(criterion, limits, regression, runs, count, total, left, rows, whole):
    """The best head over the orders by each class; one order where that is enough."""
    best = no_subset()
    first = 1 if regression or total.size == 2 else 0
    last = 2 if regression else total.size
    for k in range(first, last):
        best = scan_order(criterion, limits, runs, count, k, total, left, rows, whole, best)
    return best


@inner
def flip_run(runs, r, to_left, left):
    """Move a run to the left, or back; returns the rows that this adds there."""
    sign = 1 if to_left else -1
    for c in range(left.size):
        left[c] += sign * runs.cells[r * left.size + c]
    return sign * (runs.begin[r + 1] - runs.begin[r])


@inner
def scan_exhaustive(criterion, limits, runs, count, total, left, rows, whole):
    """The best of all subsets without the last run; a Gray code moves one run at a time."""
    best = no_subset()
    has_missing = runs.begin[count + 1] > runs.begin[count]
    for side in range(1 + has_missing):
        n = start_subset(runs, count, side == 1, left)
        mask = np.int64(0)
        for i in range(1, 1 << (count - 1)):
            r = 0
            while i >> r & 1 == 0:
                r += 1
            mask ^= 1 << r
            n += flip_run(runs, r, mask >> r & 1 == 1, left)
            value = subset_score(criterion, limits, left, total, n, rows, whole)
            best = first_of(best, Subset(value, side == 1, np.int64(0), mask))
    if has_missing:
        everything = Subset(
            known_score(criterion, limits, runs, count, total, left, rows, whole),
            False,
            np.int64(0),
            np.int64((1 << count) - 1),
        )
        best = first_of(best, everything)
    return best


@inner
def known_score(criterion, limits, runs, count, total, left, rows, whole):
    """Score of the known values against the missing ones, whose statistics are summed up."""
    n = start_subset(runs, count, True, left)
    for c in range(left.size):
        left[c] = total[c] - left[c]
    return subset_score(criterion, limits, left, total, rows - n, rows, whole)


@inner
def scan_single(
    criterion, limits, class_of, item, target, weight, runs, count, total, left, rows, whole
):
    """The best single run against the others; statistics of one run at a time are held."""
    best = no_subset()
    n_missing = runs.begin[count + 1] - runs.begin[count]
    for r in range(count + (n_missing > 0)):
        for side in range(1 + (n_missing > 0 and r < count)):
            for c in range(left.size):
                left[c] = 0
            first, last = (runs.begin[r], runs.begin[r + 1]) if r < count else (
                runs.begin[0], runs.begin[count]
            )  # fmt: skip
            add_run(criterion, class_of, item, target, weight, first, last, left, 0)
            n = last - first
            if side == 1:
                first, last = runs.begin[count], runs.begin[count + 1]
                add_run(criterion, class_of, item, target, weight, first, last, left, 0)
                n += n_missing
            value = subset_score(criterion, limits, left, total, n, rows, whole)
            best = first_of(best, Subset(value, side == 1, np.int64(0), np.int64(r)))
    return best


@inner
def best_subset(
    criterion, limits, search, class_of, item, target, weight, runs, count, total, left
):
    """The best subset of `count` runs that were found; their statistics are summed up."""
    regression = class_of is None
    channels = total.size
    rows = runs.begin[count + 1] - runs.begin[0]
    whole = begin(criterion, total, total)[0]
    kind = choose_search(search, regression, channels, count)
    if kind == ONE_VS_REST:
        return scan_single(
            criterion, limits, class_of, item, target, weight, runs, count, total, left, rows, whole
        )
    sum_runs(criterion, class_of, item, target, weight, runs, count, channels)
    if kind == EXHAUSTIVE:
        return scan_exhaustive(criterion, limits, runs, count, total, left, rows, whole)
    return scan_ordered(criterion, limits, regression, runs, count, total, left, rows, whole)


@inner
def mark_subset(criterion, search, class_of, item, target, weight, runs, count, channels, k, place):
    """Mark the runs that go left: the subset that `best_subset` named `place` (and order k)."""
    kind = choose_search(search, class_of is None, channels, count)
    if kind == ORDERED:
        sum_runs(criterion, class_of, item, target, weight, runs, count, channels)
        sort_runs(criterion, runs, count, channels, k)
        for i in range(count):
            runs.is_left[runs.order[i]] = i < place
        return
    for r in range(count):
        runs.is_left[r] = place in (r, count) if kind == ONE_VS_REST else place >> r & 1 == 1
