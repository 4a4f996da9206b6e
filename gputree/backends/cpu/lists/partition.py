"""Stable partition of the entries and lists of a level into the entries and lists of the next.

    level      | a b c d e |      the test sends a, d to part 0; b, e to part 1; of c the
    next       | a c d | b c e |  value is missing: a fraction of it goes to every part

An entry of the next level is identified by its place; `Moved.route` has the place of an entry or,
if it went to several parts, ``-2 -`` its row in `spread`, the places of its fractions in the parts
that become nodes. Places in other parts are -1.
"""

from __future__ import annotations

import numpy as np

from gputree.arithmetic.fixed_point import fraction
from gputree.backends.cpu.jit import PREFETCH_ROWS, borrowing, kernel, pick, prefetch
from gputree.base.dtypes import MISSING_CODE


@kernel
def assign_entries(rules, lists, weight, nodes, tests, first, last, out):
    """Assign the entries of tests ``first .. last`` to parts: see `Assigned`."""
    for j in range(first, last):
        out.missing[j] = assign_node(rules, lists, weight, nodes, tests, j, out)


@borrowing
def assign_node(rules, lists, weight, nodes, tests, j, out):
    """Assign the entries of one test to parts; returns the number of entries without a part."""
    f, node, cut, first = tests.feature[j], tests.node[j], tests.cut[j], tests.part[j]
    item, code, by_category = lists.item[f], lists.code[f], rules.nominal[f]
    begin, end = nodes.begin[node], nodes.end[node]
    against_rest = by_category and rules.one_against_rest
    part, branch, missing, previous = first - 1, np.int32(-1), 0, MISSING_CODE
    if against_rest:
        out.part_code[first], out.part_code[first + 1] = cut, MISSING_CODE
        out.part_weight[first] = out.part_weight[first + 1] = 0
    # `part` is the part of the entry before, and `branch` its number in the test; it has the same
    # code, or is on the same side of the cut, as long as it does not change.
    for i in range(begin, end):
        e, this = item[i], code[i]
        if this == MISSING_CODE and (against_rest or not rules.missing_is_category):
            out.child[e] = -1
            missing += 1
            continue
        if against_rest:
            branch = np.int32(this != cut)
            part = first + branch
        else:
            is_new = i == begin or (
                this != previous if by_category else previous <= cut and this > cut
            )
            previous = this
            if is_new:
                part += 1
                branch += np.int32(1)
                out.part_code[part] = this
                out.part_weight[part] = 0
        out.child[e] = branch
        out.part_weight[part] += pick(weight, e, 1)
    return missing


@borrowing
def known_weight(tests, j, part_weight):
    """Weight of the entries of test j that have a part."""
    whole = np.int64(0)
    for part in range(tests.part[j], tests.part[j + 1]):
        whole += part_weight[part]
    return whole


@kernel
def sum_parts(entries, nodes, tests, first, last, assigned, rows, weights):
    """Sum class weights (P, K) and entries of the parts, fractions included."""
    child, part_weight = assigned.child, assigned.part_weight
    for j in range(first, last):
        start, stop = tests.part[j], tests.part[j + 1]
        whole = known_weight(tests, j, part_weight)
        for e in range(nodes.begin[tests.node[j]], nodes.end[tests.node[j]]):
            k = entries.target[e]
            w = pick(entries.weight, e, 1)
            if child[e] >= 0:
                weights[start + child[e], k] += w
                rows[start + child[e]] += 1
                continue
            for part in range(start, stop):
                share = fraction(w, part_weight[part], whole)
                weights[part, k] += share
                rows[part] += share > 0


@kernel
def move_entries(entries, nodes, tests, first, last, assigned, opened, place, moved, new):
    """Move entries to their places in the next level, `new`.

    `place` (P,) is the next free place of every part, -1 where it does not become a node; used up.
    """
    child, part_weight = assigned.child, assigned.part_weight
    for j in range(first, last):
        start = tests.part[j]
        whole = known_weight(tests, j, part_weight)
        free = opened.spread[j]
        for e in range(nodes.begin[tests.node[j]], nodes.end[tests.node[j]]):
            w = pick(entries.weight, e, 1)
            if child[e] >= 0:
                branch = np.int64(child[e])
                position = put(entries, e, w, start + branch, place, new, new.weight)
                moved.route[e] = (branch << 32) | position if position >= 0 else -1
                continue
            moved.route[e] = -2 - free
            for q in range(opened.first[j], opened.first[j + 1]):
                part = opened.part[q]
                share = fraction(w, part_weight[part], whole)
                moved.spread[free] = -1
                if share > 0:
                    moved.spread[free] = put(entries, e, share, part, place, new, new.weight)
                free += 1


@borrowing
def put(entries, e, share, part, place, new, weight):
    """Copy entry e with weight `share` to the next place of a part; returns the place, -1 if none.

    `weight` is the one of the `new` entries, None where every entry has a weight of one unit.
    """
    position = place[part]
    if position < 0:
        return np.int64(-1)
    place[part] = position + 1
    new.target[position] = entries.target[e]
    if weight is not None:
        weight[position] = share
    return position


@kernel
def move_lists(lists, nodes, tests, skip, opened, moved, new, columns, first, last):
    """Partition the lists of ``columns[0] .. columns[1]`` of tests ``first .. last``.

    `skip` (d, tests) marks lists that are not read below.
    """
    place = np.empty(opened.begin.size, np.int64)
    for f in range(columns[0], columns[1]):
        for j in range(first, last):
            if not skip[f, j]:
                move_list(lists, f, nodes, tests, j, opened, moved, place, new)


@borrowing
def move_list(lists, f, nodes, tests, j, opened, moved, place, new):
    """`move_lists` of column f and one test; `place` is scratch, (P,)."""
    item, code, new_item, new_code = lists.item[f], lists.code[f], new.item[f], new.code[f]
    start = tests.part[j]
    begin_opened, end_opened = opened.first[j], opened.first[j + 1]
    for q in range(begin_opened, end_opened):
        place[opened.part[q]] = opened.begin[opened.part[q]]
    final = nodes.end[tests.node[j]]
    for i in range(nodes.begin[tests.node[j]], final):
        prefetch(moved.route, item[min(i + PREFETCH_ROWS, final - 1)], 0)
        way = moved.route[item[i]]
        if way >= 0:
            part = start + (way >> 32)
            position = place[part]
            place[part] = position + 1
            new_item[position] = way & 0xFFFFFFFF
            new_code[position] = code[i]
        elif way < -1:
            for q in range(begin_opened, end_opened):
                to = moved.spread[-2 - way + q - begin_opened]
                if to >= 0:
                    position = place[opened.part[q]]
                    place[opened.part[q]] = position + 1
                    new_item[position] = to
                    new_code[position] = code[i]
