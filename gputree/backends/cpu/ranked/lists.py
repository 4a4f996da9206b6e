"""Ranked lists: their order, categories in the order of their quantiles, and stable partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.ranked.formulas import group_keys, search_subsets
from gputree.backends.cpu.sort import radix_argsort
from gputree.compilation import borrowing, inner, pick

# An element of a list: a rank, and flags of a value that equals the one before, or is missing.
TIED, MISSING, RANK = np.int32(-(2**31)), np.int32(2**30), np.int32(2**30 - 1)
MOST_RANKS = 2**30


def presort(column: NDArray) -> NDArray[np.int32]:
    """The list of the root: `column` has a value of each rank, NaN where missing."""
    order, keys = radix_argsort(np.ascontiguousarray(column))
    elements: NDArray[np.int32] = order
    elements[1:] |= np.where(keys[1:] == keys[:-1], TIED, np.int32(0))
    elements |= np.where(keys == ~keys.dtype.type(0), MISSING, np.int32(0))
    return elements


@borrowing
def known_end(elements):
    """Number of elements before those of missing values."""
    known = elements.size
    while known > 0 and elements[known - 1] & MISSING:
        known -= 1
    return known


@borrowing
def is_nominal(nominal, f):
    """Return True for a column of categories."""
    if nominal is None:
        return False
    return nominal[f]


@inner
def arrange(nominal, ranked, elements, known, s, totals, opened, scratch):
    """Write to `scratch` a list with its groups of equal values by their two keys, then by values.

    Few groups in an order that has their best subset first.
    """
    if nominal is None:  # no column is: the rest is not compiled
        return
    criterion, rows, arranged = ranked.criterion, ranked.rows, scratch.arranged
    begin = np.empty(elements.size + 1, np.int64)
    count = 0
    # begin[: count] are the groups that begin before element i
    for i in range(known):
        if elements[i] >= 0:
            begin[count] = i
            count += 1
    begin[count] = known
    groups = begin[: count + 1]
    first, second = group_keys(criterion, elements, groups, rows, s)
    order = np.empty(count, np.int64)
    for g in range(count):
        order[g] = g
    sort_groups(first, second, order, np.empty(count, np.int64))
    search_subsets(
        criterion, ranked.limits, elements, groups, rows, s, totals, opened, scratch.sides, order
    )
    place = 0
    # the first `place` elements are those of the first groups in the order
    for g in order:
        for i in range(begin[g], begin[g + 1]):
            arranged[place] = elements[i]
            place += 1
    for i in range(known, elements.size):
        arranged[i] = elements[i]


@borrowing
def sort_groups(first, second, order, spare):
    """Sort an order of groups by two keys, stably, by merging."""
    size, width = order.size, 1  # NumPy's sort, of all kinds, takes seconds to compile
    # runs of `width` groups are sorted
    while width < size:
        for a in range(0, size, 2 * width):
            middle, end = min(a + width, size), min(a + 2 * width, size)
            i, j = a, middle
            for place in range(a, end):
                is_right = i == middle
                if i < middle and j < end:
                    g, h = order[i], order[j]
                    is_right = first[h] < first[g]
                    if first[h] == first[g]:
                        is_right = second[h] < second[g]
                spare[place] = order[j] if is_right else order[i]
                i, j = i + (not is_right), j + is_right
        for place in range(size):
            order[place] = spare[place]
        width *= 2


@borrowing
def number_sides(elements, known, place, missing_left, ranks):
    """Set `ranks` to 0 for the rows left of the cut after `place` known elements, else to -1."""
    for i in range(elements.size):
        is_left = i < place if i < known else missing_left
        ranks[elements[i] & RANK] = 0 if is_left else -1


@borrowing
def renumber(ranks):
    """Number each side: r on the left, ``~r`` on the right. Returns the number on the left."""
    left = right = np.intp(0)
    # the sides of the rows before `rank` are counted; a branch would be predicted wrongly
    for rank in range(ranks.size):
        to_right = np.intp(ranks[rank])  # all ones, or none
        ranks[rank] = (left & ~to_right) | (~right & to_right)
        left, right = left + 1 + to_right, right - to_right
    return left


@borrowing
def partition_values(values, first, ranks, order, j, spare):
    """Partition the values of a node's rows, from place `first` on, stably.

    They are in the order of the ranks, or of ``order[j]``; None are left alone.
    """
    if values is None:
        return
    left = right = np.intp(0)
    # either side is written to, as in `partition_list`
    for place in range(ranks.size):
        value = values[first + place]
        to_right = np.intp(ranks[pick(order, (j, first + place), place)] >> np.int32(31))
        values[first + left] = spare[right] = value
        left, right = left + 1 + to_right, right - to_right
    for i in range(right):
        values[first + left + i] = spare[i]


@borrowing
def partition_list(elements, ranks, spare):
    """Partition a list stably; elements become ranks in the children, and flags stay exact."""
    left = right = np.intp(0)
    tied_left = tied_right = TIED
    # `tied`: no value above that of the last element of a side was seen since. Either side is
    # written to, and one of the places advances: a branch would be predicted wrongly half the time.
    for i in range(elements.size):
        element = elements[i]
        new, missing = ranks[element & RANK], element & MISSING
        to_right = new >> np.int32(31)  # all ones, or none
        tied_left, tied_right = tied_left & element, tied_right & element
        elements[left] = new | tied_left | missing
        spare[right] = ~new | tied_right | missing
        left += 1 + to_right
        right -= to_right
        tied_left, tied_right = tied_left | (TIED & ~to_right), tied_right | (TIED & to_right)
    for i in range(right):
        elements[left + i] = spare[i]
