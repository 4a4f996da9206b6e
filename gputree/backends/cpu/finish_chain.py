"""Chains of splits that separate single categories from the rest, in blocks of one column.

Where a node has one column that is not constant, rows of one category stay together below it, and a
chain of splits needs only their sums. Runs of the same statistics have the same score, so that a
split costs as many scores as there are different ones:

    runs       | 3 | 8 | 3 | 3 |  rest  |     statistics; the first of the lowest 3s goes first
    entries    | 3 | 3 | 8 | ...  rest  |     put in order once, at the end of the chain

Any other split (missing values that move, another search) or a leaf ends the chain, and the general
method, which finds the same tree, continues: a chain is only quicker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.backends.cpu.cut import admits, narrow
from gputree.backends.cpu.finish_categories import classes_in, find_runs, listed_in, sum_runs
from gputree.backends.cpu.jit import borrowing, inner
from gputree.backends.cpu.runs import holds_cells, is_less, order_runs, weight_of
from gputree.backends.cpu.subsets import ONE_VS_REST, choose_search
from gputree.backends.rules import fewest_rows, missing_goes_left
from gputree.criteria import begin, gain, restrict, score
from gputree.hashing import child_key

# Minimum number of rows, and of runs, of a node that a chain is tried in.
FEWEST_ROWS = FEWEST_RUNS = 16


@borrowing
def group_runs(runs, count, channels, head):
    """Group the runs of the same statistics: those of group g are ``order[head[g]:head[g+1]]``.

    Groups are in the order in which one vs rest chooses equals; returns their number.
    """
    for r in range(count):
        runs.share[r] = 0.0
    order_runs(runs, count, channels)
    groups = 0
    for i in range(count):
        if i == 0 or is_less(runs, channels, runs.order[i - 1], runs.order[i]):
            head[groups] = i
            groups += 1
    head[groups] = count
    return groups


@borrowing
def best_group(criterion, limits, runs, groups, head, end, rows, n_missing, total, left, missing):
    """Group whose run is split off best: (score, group); score -inf where no run may be split off.

    The group is -1 where missing values (`n_missing` rows), alone or with a run, or all known
    values would go left.
    """
    channels = total.size
    whole = begin(criterion, total, total)[0]
    best = -np.inf
    chosen = -1
    # `best` is the best score of the groups before, with missing values right, then left.
    for side in range(1 + (n_missing > 0)):
        for g in range(groups + (n_missing > 0 and side == 0)):
            n = rows - n_missing
            for c in range(channels):
                left[c] = total[c] - missing[c]
            if g < groups:
                if head[g] == end[g]:
                    continue
                r = runs.order[head[g]]
                n = runs.begin[r + 1] - runs.begin[r] + side * n_missing
                for c in range(channels):
                    left[c] = runs.cells[r * channels + c] + side * missing[c]
            state = begin(criterion, left, total)
            if not admits(limits, n, rows, state[0], whole):
                continue
            value = score(criterion, state, left, total)
            if value > best:
                best = value
                chosen = g if side == 0 and g < groups else -1
    return best, chosen


@borrowing
def target_intervals(listed, runs, count, rounded, low, high):
    """Interval of targets that may be those of all rows, by run and of missing values."""
    for r in range(count + 1):
        interval = (-np.inf, np.inf)
        for i in range(runs.begin[r], runs.begin[r + 1]):
            x = listed.item[i]
            interval = narrow(interval, listed.target[x], weight_of(listed, x), rounded)
        low[r], high[r] = interval


@borrowing
def find_witnesses(runs, count, low, high):
    """Remaining runs with the maximum lower end and the minimum upper end of a target."""
    above = below = count
    for r in range(count):
        if not runs.is_left[r]:
            above = r if low[r] > low[above] else above
            below = r if high[r] < high[below] else below
    return above, below


@borrowing
def is_pure_total(total):
    """Return True if fewer than two classes have weight: too few for a criterion."""
    present = 0
    for k in range(total.size):
        present += total[k] > 0
    return present < 2


@borrowing
def reorder(block, f, bits, s, t, runs, count, peeled, steps):
    """Put the rows of the runs that went off first, in the order they went."""
    mask = (1 << bits) - 1
    position = 0
    for i in range(steps):
        r = peeled[i]
        for j in range(runs.begin[r], runs.begin[r + 1]):
            block.spill[position] = block.order[f, s + j]
            position += 1
    for r in range(count + 1):
        if r < count and runs.is_left[r]:
            continue
        for j in range(runs.begin[r], runs.begin[r + 1]):
            block.spill[position] = block.order[f, s + j]
            position += 1
    for i in range(s, t):
        block.rows_spill[block.local[i]] = block.rows[i]
    for i in range(s, t):
        key = block.spill[i - s]
        x = np.int64(key) & mask
        block.order[f, i] = key
        block.local[i] = x
        block.rows[i] = block.rows_spill[x]


class Branch(NamedTuple):
    """The next node to grow: the rest of a chain, or a node that waits."""

    node: int
    s: int  # first place
    level: int  # depth
    key: int
    free: int  # next free node


@inner
def grow_chain(scratch, scan, block, f, shift, limits, branch, out):
    """Separate single categories of nominal column f from a node as long as that is the best split.

    No other column may have two values there. Place s of the block is entry ``shift + s``. Returns
    the rest: the branch itself, where no split was made.
    """
    runs, s, t = scratch.runs, scan.s, scan.t
    node, _, level, key, free = branch
    present = classes_in(scratch, scan.total)
    criterion = restrict(scan.criterion, present)
    count = find_runs(scratch, scan.order[f], scan.bits, s, t)
    kind = choose_search(scratch, present, count)
    if not holds_cells(present, count) or count < FEWEST_RUNS or kind != ONE_VS_REST:
        return branch
    listed = listed_in(scratch, scan)
    sum_runs(criterion, scratch, listed, count, present)
    sums, left, missing = scratch.sums[0, :present], scratch.sums[1, :present], scratch.sums[2]
    for c in range(present):
        missing[c] = runs.cells[count * present + c]
    head = np.empty(count + 1, np.int64)
    groups = group_runs(runs, count, present, head)
    end = head[1:].copy()
    peeled = np.empty(count, np.int64)
    low, high = np.empty(count + 1), np.empty(count + 1)
    above = below = count
    for r in range(count):
        runs.is_left[r] = False
    if scratch.regression:
        target_intervals(listed, runs, count, limits.rounded, low, high)
        above, below = find_witnesses(runs, count, low, high)
    n_missing = runs.begin[count + 1] - runs.begin[count]
    rows, live, begin_ = t - s, count, s
    steps = 0
    search = scratch.search
    min_rows = fewest_rows(limits)
    # `node` has the places `begin_` .. t, `rows` of them; its categories are the `live` runs that
    # are not left, which are those of the groups, and `sums` are its statistics.
    while level < limits.max_depth and rows >= min_rows and live + (n_missing > 0) > 1:
        known = rows - n_missing
        if not (live > search.many_categories and known < search.rows_per_category * live):
            break
        if scratch.regression:
            if not low[above] > high[below]:
                break
        elif is_pure_total(sums):
            break
        value, g = best_group(
            criterion, limits, runs, groups, head, end, rows, n_missing, sums, left,
            missing[:present],
        )  # fmt: skip
        if g < 0:
            break
        decrease = gain(criterion, value, sums)
        if decrease * begin(criterion, sums, sums)[0] < limits.min_decrease:
            break
        r = runs.order[head[g]]
        head[g] += 1
        runs.is_left[r] = True
        peeled[steps] = r
        n = runs.begin[r + 1] - runs.begin[r]
        for c in range(present):
            sums[c] -= runs.cells[r * present + c]
        out.first_child[node] = free
        out.feature[node] = f
        out.gain[node] = decrease
        out.missing_left[node] = missing_goes_left(n_missing > 0, False, n, rows - n)
        add_leaf(out, free, shift + begin_, shift + begin_ + n)
        add_leaf(out, free + 1, shift + begin_ + n, shift + t)
        steps += 1
        live -= 1
        rows -= n
        begin_ += n
        level += 1
        node = free + 1
        free += 2
        key = child_key(key, 1)
        if scratch.regression and r in (above, below):
            above, below = find_witnesses(runs, count, low, high)
        groups = drop_empty(groups, head, end) if head[g] == end[g] else groups
    if steps > 0:
        reorder(block, f, scan.bits, s, t, runs, count, peeled, steps)
    return Branch(node, begin_, level, key, free)


@borrowing
def drop_empty(groups, head, end):
    """Remove groups without runs; returns the number of those left."""
    kept = 0
    for g in range(groups):
        if head[g] < end[g]:
            head[kept], end[kept] = head[g], end[g]
            kept += 1
    return kept


@borrowing
def add_leaf(out, node, s, t):
    """Append a leaf of the entries ``s .. t``."""
    out.first_child[node] = -1
    out.feature[node] = -1
    out.threshold[node] = 0.0
    out.missing_left[node] = False
    out.gain[node] = 0.0
    out.begin[node] = s
    out.end[node] = t
