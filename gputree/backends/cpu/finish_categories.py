"""Subsets of categories in a block: runs of the sorted keys of a nominal column.

A rank stands for a category, in the order of codes, so that equal ranks are a run.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import new_cut, precedes
from gputree.backends.cpu.jit import lent, overload_lent, where_given
from gputree.backends.cpu.runs import (
    Listed,
    add_to_run,
    clear_cells,
    holds_cells,
    number_present,
    weight_of,
)
from gputree.backends.cpu.subsets import best_subset, mark_subset, needs_order
from gputree.criteria import restrict


@lent
def subset_cut(value, f, missing_left, k, place):
    """A subset as a cut: its place is the bin, its order the threshold."""
    return new_cut(value, f, missing_left, place, True, np.float64(k))


@lent
def find_runs(scratch, order, f, bits, s, t):
    """Set the runs of the sorted keys ``s .. t`` of column f, and list their rows."""
    runs, item = scratch.runs, scratch.item
    mask = (1 << bits) - 1
    absent = missing_rank(bits)
    count = 0
    before = np.int64(-1)
    for i in range(s, t):
        key = np.int64(order[f, i])
        rank = key >> bits
        item[i - s] = key & mask
        if rank != before and before != absent:
            runs.begin[count] = i - s
            count += 1
            before = rank
    if before == absent:  # the last run is that of missing values
        count -= 1
    else:
        runs.begin[count] = t - s
    runs.begin[count + 1] = t - s
    return count


@lent
def sum_runs(criterion, scratch, listed, count, present):
    """Sum up the rows of `count` runs, and the missing values behind them."""
    runs = scratch.runs
    clear_cells(runs, count, present)
    for r in range(count + 1):
        for i in range(runs.begin[r], runs.begin[r + 1]):
            x = listed.item[i]
            target = listed.target[x]
            if not scratch.regression:
                target = np.int64(listed.class_of[target])
            add_to_run(criterion, runs, r, present, target, weight_of(listed, x))


@lent
def collect_runs(scratch, criterion, listed, order, f, bits, s, t, present):
    """Runs of column f with their sums, if these are held: (number, held); rows are listed."""
    count = find_runs(scratch, order, f, bits, s, t)
    held = holds_cells(present, count)
    if held:
        sum_runs(criterion, scratch, listed, count, present)
    return count, held


@lent
def classes_in(scratch, total):
    """Number what a node of statistics `total` has; returns how many channels these are."""
    n_classes = 0 if scratch.regression else total.size
    return number_present(total, n_classes, scratch.class_of, scratch.sums[0])


def _not_nominal(
    scratch, criterion, limits, order, f, bits, target, weight, s, t, total, cut
):  # fmt: skip
    return False, cut


@where_given(_not_nominal, overload_lent)
def scan_categories(
    scratch, criterion, limits, order, f, bits, target, weight, s, t, total, cut
):  # fmt: skip
    """Whether column f is nominal; then the better of `cut` and its best subset."""
    if scratch.categories[f] == 0:
        return False, cut
    present = classes_in(scratch, total)
    own = restrict(criterion, present)
    listed = Listed(scratch.item, target, weight, scratch.weighted, scratch.class_of)
    count, held = collect_runs(scratch, own, listed, order, f, bits, s, t, present)
    value, missing_left, k, place = best_subset(
        own, limits, scratch.search, scratch.regression, listed, scratch.runs, held, count,
        scratch.sums[0, :present], scratch.sums[1, :present], scratch.sums[2, :present],
    )  # fmt: skip
    if value > -np.inf:
        found = subset_cut(value, f, missing_left, k, place)
        if precedes(found, cut):
            return True, found
    return True, cut


def _no_sides(
    scratch, criterion, order, bits, target, weight, s, t, total, cut, left_side
):  # fmt: skip
    return False


@where_given(_no_sides, overload_lent)
def mark_categories(
    scratch, criterion, order, bits, target, weight, s, t, total, cut, left_side
):  # fmt: skip
    """Whether the column of `cut` is nominal; then mark each row with its side of the subset."""
    f = cut[1]
    if scratch.categories[f] == 0:
        return False
    present = classes_in(scratch, total)
    own = restrict(criterion, present)
    listed = Listed(scratch.item, target, weight, scratch.weighted, scratch.class_of)
    count = find_runs(scratch, order, f, bits, s, t)
    runs = scratch.runs
    if needs_order(scratch.search, scratch.regression, runs, count, present):
        sum_runs(own, scratch, listed, count, present)
    mark_subset(
        own, scratch.search, scratch.regression, runs, count, present, np.int64(cut[5]), cut[3]
    )
    runs.is_left[count] = cut[2]  # missing values
    for r in range(count + 1):
        for i in range(runs.begin[r], runs.begin[r + 1]):
            left_side[listed.item[i]] = runs.is_left[r]
    return True
