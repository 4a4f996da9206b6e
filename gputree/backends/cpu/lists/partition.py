"""Entries and lists of a level become those of the next, stably.

    level      | a b c d e |      the test sends a, d to part 0; b, e to part 1; of c the
    next       | a c d | b c e |  value is missing: a fraction of it goes to every part

An entry of the next level is known by its place; `moved` holds the place of an entry, or,
for one that went to several parts, ``-2 -`` its row in `spread`, the places of its
fractions in the parts that are opened. Places in parts that are not are -1.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, kernel, lent, pick, prefetch
from gputree.dtypes import MISSING_CODE
from gputree.fixed_point import fraction


@kernel
def assign_entries(
    nominal, missing_is_category, one_against_rest, item, code, weight, begin, end, tests, first,
    last, child, part_code, part_weight, missing,
):  # fmt: skip
    """Write the part of each entry to `child`, -1 where the value is missing.

    `part_code` and `part_weight` become the code and the known weight of each part, `missing`
    the number of entries of each test without a part.
    """
    for j in range(first, last):
        f = tests.feature[j]
        missing[j] = assign_node(
            nominal[f], missing_is_category, one_against_rest, item[f], code[f], weight,
            begin[tests.node[j]], end[tests.node[j]], tests.cut[j], tests.part[j], child, part_code,
            part_weight,
        )  # fmt: skip


@lent
def assign_node(
    by_category, missing_is_category, one_against_rest, item, code, weight, begin, end, cut, first,
    child, part_code, part_weight,
):  # fmt: skip
    """`assign_entries` of one test; returns the number of entries without a part."""
    if by_category and one_against_rest:
        return assign_against_rest(
            item, code, weight, begin, end, cut, first, child, part_code, part_weight
        )
    part, own, missing, previous = first - 1, np.int32(-1), 0, MISSING_CODE
    for i in range(begin, end):
        e, this = item[i], code[i]
        if this == MISSING_CODE and not missing_is_category:
            child[e] = -1
            missing += 1
            continue
        new = i == begin or this != previous
        if not by_category:
            new = i == begin or (previous <= cut and this > cut)
        previous = this
        if new:
            part += 1
            own += np.int32(1)
            part_code[part] = this
            part_weight[part] = 0
        child[e] = own
        part_weight[part] += pick(weight, e, 1)
    return missing


@lent
def assign_against_rest(
    item, code, weight, begin, end, category, first, child, part_code, part_weight
):
    """Part one category from the rest; returns the number of entries without a value."""
    part_code[first], part_code[first + 1] = category, MISSING_CODE
    part_weight[first] = part_weight[first + 1] = 0
    missing = 0
    for i in range(begin, end):
        e = item[i]
        if code[i] == MISSING_CODE:
            child[e] = -1
            missing += 1
            continue
        own = np.int32(code[i] != category)
        child[e] = own
        part_weight[first + own] += pick(weight, e, 1)
    return missing


@kernel
def sum_parts(target, weight, begin, end, tests, first, last, child, part_weight, rows, weights):
    """Sum up class weights (P, K) and entries of the parts, fractions included."""
    for j in range(first, last):
        start = tests.part[j]
        stop = tests.part[j + 1]
        whole = np.int64(0)
        for part in range(start, stop):
            whole += part_weight[part]
        for e in range(begin[tests.node[j]], end[tests.node[j]]):
            k = target[e]
            w = pick(weight, e, 1)
            if child[e] >= 0:
                weights[start + child[e], k] += w
                rows[start + child[e]] += 1
                continue
            for part in range(start, stop):
                share = fraction(w, part_weight[part], whole)
                weights[part, k] += share
                rows[part] += share > 0


@kernel
def move_entries(
    target, weight, begin, end, tests, first, last, child, part_weight, place, opened,
    opened_begin, spread_begin, route, spread, new_target, new_weight,
):  # fmt: skip
    """Move entries to their places in the next level.

    `place` (P,) is the next free place of every part, -1 where it is not opened; used up.
    Test j opens the parts ``opened[opened_begin[j]] .. opened[opened_begin[j + 1]]``.
    """
    for j in range(first, last):
        start = tests.part[j]
        stop = tests.part[j + 1]
        whole = np.int64(0)
        for part in range(start, stop):
            whole += part_weight[part]
        free = spread_begin[j]
        for e in range(begin[tests.node[j]], end[tests.node[j]]):
            if child[e] >= 0:
                own = np.int64(child[e])
                at = put(
                    target, weight, e, pick(weight, e, 1), start + own, place, new_target,
                    new_weight,
                )  # fmt: skip
                route[e] = (own << 32) | at if at >= 0 else -1
                continue
            route[e] = -2 - free
            for q in range(opened_begin[j], opened_begin[j + 1]):
                part = opened[q]
                share = fraction(pick(weight, e, 1), part_weight[part], whole)
                spread[free] = -1
                if share > 0:
                    spread[free] = put(
                        target, weight, e, share, part, place, new_target, new_weight
                    )
                free += 1


@lent
def put(target, weight, e, share, part, place, new_target, new_weight):
    """Put `share` of entry e to the next place of a part; returns the place."""
    at = place[part]
    if at < 0:
        return np.int64(-1)
    place[part] = at + 1
    new_target[at] = target[e]
    if weight is not None:
        new_weight[at] = share
    return at


@kernel
def move_lists(
    item, code, begin, end, tests, first, last, first_column, last_column, skip, route, spread,
    opened, opened_begin, part_begin, new_item, new_code,
):  # fmt: skip
    """Partition the lists of columns ``first_column .. last_column`` of the tested nodes.

    `skip` (d, tests) marks lists that nobody will look at below.
    """
    place = np.empty(part_begin.size, np.int64)
    for f in range(first_column, last_column):
        move_list(
            item[f], code[f], begin, end, tests, first, last, skip[f], route, spread, opened,
            opened_begin, part_begin, place, new_item[f], new_code[f],
        )  # fmt: skip


@lent
def move_list(
    item, code, begin, end, tests, first, last, skip, route, spread, opened, opened_begin,
    part_begin, place, new_item, new_code,
):  # fmt: skip
    """`move_lists` of one column."""
    for j in range(first, last):
        if skip[j]:
            continue
        start = tests.part[j]
        begin_opened, end_opened = opened_begin[j], opened_begin[j + 1]
        for q in range(begin_opened, end_opened):
            place[opened[q]] = part_begin[opened[q]]
        final = end[tests.node[j]]
        for i in range(begin[tests.node[j]], final):
            prefetch(route, item[min(i + PREFETCH_ROWS, final - 1)], 0)
            way = route[item[i]]
            if way >= 0:
                part = start + (way >> 32)
                at = place[part]
                place[part] = at + 1
                new_item[at] = way & 0xFFFFFFFF
                new_code[at] = code[i]
            elif way < -1:
                for q in range(begin_opened, end_opened):
                    to = spread[-2 - way + q - begin_opened]
                    if to >= 0:
                        at = place[opened[q]]
                        place[opened[q]] = at + 1
                        new_item[at] = to
                        new_code[at] = code[i]
