"""Cut points of a sorted column that pay for their own description, from the top down.

    begin                          end          the range on top of the stack
      |  a a b a a | b b b b a b |  b b b ...   its best cut, if it pays, becomes the next end
                   ^ cut                        and the range to its left comes first

so that ranges are done in the order of the column, and cuts come out in it.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import borrowing, inner, kernel
from gputree.backends.cpu.lists.layout import NodeList
from gputree.backends.cpu.lists.score import best_cut, new_scan
from gputree.criteria.description_length import pays_fayyad_irani, pays_kononenko
from gputree.criteria.logarithm import log2

FIRST_ROOM = 64  # initial size of the stack of waiting ranges, and of the array of cuts


@borrowing
def add_up(target, weight, begin, end, known):
    """Class weights of the rows ``begin .. end``, and their sum."""
    known[:] = 0
    total = np.int64(0)
    for i in range(begin, end):
        known[target[i]] += weight[i]
        total += weight[i]
    return total


@inner
def gather(values, order):
    """``values[order]``."""
    out = np.empty(order.size, values.dtype)
    for i in range(order.size):
        out[i] = values[order[i]]
    return out


@inner
def pays(rule, left, known, tries, scale):
    """Return True if a cut with class weights `left` of those `known` is worth its description."""
    on_left, on_right = np.empty(known.size), np.empty(known.size)
    total = 0.0
    for k in range(known.size):
        on_left[k] = np.float64(left[k]) * scale
        on_right[k] = np.float64(known[k] - left[k]) * scale
        total += np.float64(known[k]) * scale
    names = np.float64(tries) if rule.counts_cuts else total - 1.0
    if names <= 0.0:  # less than a row, by weight
        return False
    if rule.by_kononenko:
        return pays_kononenko(on_left, on_right, log2(names))
    return pays_fayyad_irani(on_left, on_right, log2(names))


@inner
def longer(array):
    """Copy to an array of twice the size."""
    out = np.empty(2 * array.size, array.dtype)
    out[: array.size] = array
    return out


@kernel
def cut_sorted(information, rule, scale, n_classes, place, order, keys, target, weight):
    """Find the last places before each cut of a column sorted by `order`; `keys` ascend.

    For the other arguments see `gputree.discretization.cut_points.MdlTask`.
    """
    target = gather(target, order)
    weight = gather(weight, order)
    scan = new_scan(n_classes)
    known = scan.known
    left = np.empty(n_classes, np.int64)
    cuts = np.empty(FIRST_ROOM, np.int64)
    ends = np.empty(FIRST_ROOM, np.int64)
    ends[0] = order.size
    n_cuts, waiting, begin = 0, 1, 0
    while waiting > 0:
        end = ends[waiting - 1]
        total = add_up(target, weight, begin, end, known)
        tries = np.int64(0)
        last = np.int64(-1)
        if end > begin and keys[begin] != keys[end - 1]:
            column = NodeList(place, keys, target, weight, begin, end)
            _, tries, last, _ = best_cut(information, column, scan, total, np.int64(1))
        if last >= 0:
            add_up(target, weight, begin, last + 1, left)
            if pays(rule, left, known, tries, scale):
                if waiting == ends.size:
                    ends = longer(ends)
                ends[waiting] = last + 1
                waiting += 1
                continue
        waiting -= 1
        begin = end
        if waiting > 0:
            if n_cuts == cuts.size:
                cuts = longer(cuts)
            cuts[n_cuts] = end - 1
            n_cuts += 1
    return cuts[:n_cuts].copy()
