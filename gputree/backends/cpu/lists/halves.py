"""Entries of a level are assigned to the halves of their nodes' splits, and moved there.

level      | a b c d e | f g |      a, c, d go left; the second node is not split
next       | a c d | b e |          lists follow by `route` (see `partition.move_lists`)
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.backends.cpu.lists.runs import Listed, count_runs, find_runs, new_runs, room_for
from gputree.backends.cpu.lists.score_cart import known_end, like, number_present
from gputree.backends.cpu.lists.subsets import mark_subset
from gputree.backends.cpu.refine import narrow
from gputree.criteria import add_row, is_pure, restrict


@inner
def assign_numeric(listed, first, known, cut, child):
    """Write the half of the known entries ``first .. known`` of a numeric column."""
    for i in range(first, known):
        child[listed.item[i]] = listed.code[i] > cut


@inner
def assign_nominal(listed, runs, count, child, category, is_left):
    """Write the half of the entries of marked runs, and list the categories."""
    for r in range(count):
        category[r] = listed.code[runs.begin[r]]
        is_left[r] = runs.is_left[r]
        for i in range(runs.begin[r], runs.begin[r + 1]):
            child[listed.item[i]] = not runs.is_left[r]


@kernel
def assign_halves(
    criterion, search, classes, nominal, item, code, target, weight, begins, ends, sums, tests,
    first, last, child, seen_missing, category, is_left,
):  # fmt: skip
    """Write the half, 0 or 1, of each entry of the nodes of tests ``first .. last`` to `child`.

    The subset of a nominal column is found again from its place.
    """
    class_of = like(classes)
    total = np.empty(max(sums.shape[1], 3), np.int64)
    runs = new_runs(16, 64)
    for j in range(first, last):
        f = tests.feature[j]
        node = tests.node[j]
        start = begins[node]
        listed = Listed(item[f], code[f], target, weight, class_of)
        known = known_end(listed.code, start, ends[node])
        seen_missing[j] = known < ends[node]
        for i in range(known, ends[node]):
            child[listed.item[i]] = not tests.missing_left[j]
        if not nominal[f]:
            assign_numeric(listed, start, known, tests.place[j], child)
            continue
        channels = number_present(sums[node], class_of, total)
        count = count_runs(listed.code, start, known)
        runs = room_for(runs, channels, count)
        find_runs(listed.code, start, known, ends[node], runs)
        mark_subset(
            restrict(criterion, channels), search, listed, runs, count, channels, tests.order[j],
            tests.place[j],
        )  # fmt: skip
        at, end = tests.category[j], tests.category[j + 1]
        assign_nominal(listed, runs, count, child, category[at:end], is_left[at:end])


@inner
def add_rest(sums, square_rest, e):
    """Add what the square of entry e cuts off; classes have none."""
    if square_rest is not None:
        sums[3] += square_rest[e]


@inner
def narrow_half(interval, square, target, weight, rounded):
    """The part of an interval where the target of an entry may truly lie; all of it for classes."""
    if square is None:
        return interval
    return narrow(interval, target, weight, rounded)


@inner
def differ(criterion, interval, square, sums):
    """Whether the targets of a half differ."""
    return interval[0] > interval[1] if square is not None else not is_pure(criterion, sums)


@kernel
def sum_halves(
    criterion, rounded, target, weight, square, square_rest, begins, ends, child, first, last,
    rows, sums, mixed,
):  # fmt: skip
    """Sum up rows and statistics of both halves of ranges ``first .. last``.

    `mixed` becomes whether their targets differ.
    """
    for j in range(first, last):
        low = high = (-np.inf, np.inf)  # of the first and the second half
        for e in range(begins[j], ends[j]):
            half = np.int64(child[e])
            t = np.int64(target[e])
            w = np.int64(pick(weight, e, 1))
            at = 2 * j + half
            rows[at] += 1
            add_row(criterion, sums[at], 0, t, w, np.int64(pick(square, e, 0)))
            add_rest(sums[at], square_rest, e)
            if half == 0:
                low = narrow_half(low, square, t, w, rounded)
            else:
                high = narrow_half(high, square, t, w, rounded)
        mixed[2 * j] = differ(criterion, low, square, sums[2 * j])
        mixed[2 * j + 1] = differ(criterion, high, square, sums[2 * j + 1])


@inner
def copy_entry(values, e, new, at):
    """One statistic of entry e becomes that of entry `at`; there may be none."""
    if values is not None:
        new[at] = values[e]


@kernel
def move_halves(entries, begins, ends, child, place, first, last, route, new):
    """Move the entries of ranges ``first .. last`` to their places in the next level.

    `place` is the next free place of every half, -1 where it is not opened; used up. `route`
    becomes the new places, -1 where there is none.
    """
    for j in range(first, last):
        for e in range(begins[j], ends[j]):
            half = np.int64(child[e])
            at = place[2 * j + half]
            route[e] = -1
            if at < 0:
                continue
            place[2 * j + half] = at + 1
            route[e] = at
            copy_entry(entries.target, e, new.target, at)
            copy_entry(entries.weight, e, new.weight, at)
            copy_entry(entries.square, e, new.square, at)
            copy_entry(entries.square_rest, e, new.square_rest, at)


@kernel
def move_sorted(
    item, code, begins, ends, place, first_column, last_column, first, last, skip, route, new_item,
    new_code,
):  # fmt: skip
    """Partition the lists of columns ``first_column .. last_column`` of ranges ``first .. last``.

    `place` is the first place of every half, -1 where it is not opened: an entry whose new
    place is not before that of the second half goes there. `skip` (d, m) marks lists that
    nobody will look at below.
    """
    for f in range(first_column, last_column):
        old_item, old_code, to_item, to_code = item[f], code[f], new_item[f], new_code[f]
        for j in range(first, last):
            if skip[f, j]:
                continue
            left = place[2 * j]
            right = place[2 * j + 1]
            boundary = right if right >= 0 else np.int64(route.size)
            final = ends[j]
            for i in range(begins[j], final):
                prefetch(route, old_item[min(i + PREFETCH_ROWS, final - 1)], 0)
                at = route[old_item[i]]
                if at < 0:
                    continue
                is_right = np.int64(at >= boundary)
                to = right if is_right else left
                left += 1 - is_right
                right += is_right
                to_item[to] = at
                to_code[to] = old_code[i]
