"""Subsets of categories in a block: runs of the sorted keys of a nominal column.

A rank stands for a category, in the order of codes, so that equal ranks are a run.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import new_cut, precedes
from gputree.backends.cpu.draw import tie_rank
from gputree.backends.cpu.jit import borrowing, pasted, written_out
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
from gputree.criteria import restrict


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
def take_runs(criterion, scratch, scan, listed, f, present):
    """Find and sum the runs of column f; returns their number, and True if they have sums."""
    count = find_runs(scratch, scan.order[f], scan.bits, scan.s, scan.t)
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
def scan_categories(scratch, scan, limits, f, cut):
    """The better of `cut` and the best subset of nominal column f.

    As a cut, its place is the bin, its order the threshold.
    """
    present = classes_in(scratch, scan.total)
    criterion = restrict(scan.criterion, present)
    listed = listed_in(scratch, scan)
    count, sums_runs = take_runs(criterion, scratch, scan, listed, f, present)
    node = node_runs(scratch, listed, count, sums_runs, present)
    value, missing_left, k, place = best_subset(criterion, limits, scratch, node)
    if value > -np.inf:
        rank = tie_rank(limits, scan.key, f)
        found = new_cut(value, f, missing_left, place, True, np.float64(k), rank)
        if precedes(found, cut):
            return found
    return cut


@pasted
def mark_categories(scratch, scan, cut, left_side):
    """Mark each row with its side of `cut`, a subset of the categories of a nominal column."""
    f = cut.column
    present = classes_in(scratch, scan.total)
    criterion = restrict(scan.criterion, present)
    if scratch.last[0] == f:
        count = scratch.last[1]
    else:
        count, _ = take_runs(criterion, scratch, scan, listed_in(scratch, scan), f, present)
    runs = scratch.runs
    mark_subset(criterion, scratch, count, present, np.int64(cut.threshold), cut.place)
    runs.is_left[count] = cut.missing_left  # missing values
    for r in range(count + 1):
        for i in range(np.uintp(runs.begin[r]), np.uintp(runs.begin[r + 1])):
            left_side[np.uintp(scratch.item[i])] = runs.is_left[r]
