"""Tests of categories become the branch lists of a tree; chains of tests share them.

Below a test of the same column a node has all categories that its parent sent there. So its
split is described by one side, and its list is its parent's, partitioned in place:

    root    lists 0 1 2 3 4, sends 1 3 left     | 1 3 | 0 2 4 |
    right   lists 2, sends it left                    | 2 | 0 4 |
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import CATEGORY, Bools, Int32s, Int64s
from gputree.compilation import inner, kernel
from gputree.tree.branches import BranchLists


class Subsets(NamedTuple):
    """Categories that the subset splits of a tree send left and right."""

    begin: Int64s  # (subsets + 1,): subset j has ``begin[j] .. begin[j + 1]``
    # ascending for each subset: all categories that the node has rows of; where its parent
    # tests the same column all of one side, of the left if there are any
    code: NDArray[np.uint32]
    is_left: Bools


def nest(
    first_child: Int32s, parent: Int32s, feature: Int32s, subset: Int64s, subsets: Subsets
) -> BranchLists:
    """The branch lists of a tree, whose nodes are numbered breadth-first.

    `subset` is the subset that a node tests, -1 elsewhere.
    """
    n_nodes = first_child.size
    above = np.append(False, subset[parent[1:]] >= 0) & (feature == feature[parent])
    tops = np.flatnonzero((subset >= 0) & ~above)
    size = int(np.diff(subsets.begin)[subset[tops]].sum())
    lists = BranchLists.none(n_nodes)._replace(branch_code=np.empty(size, CATEGORY))
    whole = _Whole(*(np.empty(n, np.int64) for n in (size, size, size, n_nodes)))
    _nest(first_child, parent, above, subset, *subsets, whole, lists)
    return lists


class _Whole(NamedTuple):
    """Lists while they are split: ``ascending[items[p]]`` is the category at place p."""

    ascending: Int64s  # the codes of each list
    # each the other's inverse
    items: Int64s
    place: Int64s
    top: Int64s  # (N,): the highest node that shares a node's list


@kernel
def _nest(
    first_child: Int32s,
    parent: Int32s,
    above: Bools,
    subset: Int64s,
    begin: Int64s,
    code: NDArray[np.uint32],
    is_left: Bools,
    whole: _Whole,
    lists: BranchLists,
) -> None:
    """Part the lists node by node."""
    used = np.int64(0)
    for t in range(subset.size):
        s = subset[t]
        if s < 0:
            continue
        first = first_child[t]
        listed, sides = code[begin[s] : begin[s + 1]], is_left[begin[s] : begin[s + 1]]
        if above[t]:
            top = whole.top[parent[t]]
            start, stop = lists.branch_begin[t], lists.branch_end[t]
            low = lists.branch_begin[first_child[top]]
            high = lists.branch_end[first_child[top] + 1]
            middle = _part(listed, sides, whole, low, high, start, stop)
        else:
            top = t
            start, stop = used, used + listed.size
            used = stop
            middle = _start(listed, sides, whole, start)
        whole.top[t] = top
        lists.branch_begin[first], lists.branch_end[first] = start, middle
        lists.branch_begin[first + 1], lists.branch_end[first + 1] = middle, stop
    for p in range(used):
        lists.branch_code[p] = whole.ascending[whole.items[p]]


@inner
def _start(code: NDArray[np.uint32], is_left: Bools, whole: _Whole, start: int) -> int:
    """A new list: those on the left first. Returns their end."""
    middle = start
    for i in range(code.size):
        whole.ascending[start + i] = code[i]
        middle += is_left[i]
    left, right = start, middle
    for i in range(code.size):
        p = left if is_left[i] else right
        left += is_left[i]
        right += not is_left[i]
        whole.items[p] = start + i
        whole.place[start + i] = p
    return middle


@inner
def _part(
    code: NDArray[np.uint32],
    is_left: Bools,
    whole: _Whole,
    low: int,
    high: int,
    start: int,
    stop: int,
) -> int:
    """Bring categories, all of one side, to that end of ``start .. stop``; returns the middle.

    The codes of the whole list are ``whole.ascending[low:high]``.
    """
    items, place = whole.items, whole.place
    for i in range(code.size):
        rank = _find(whole.ascending, np.int64(code[i]), low, high)
        p = start + i if is_left[i] else stop - 1 - i
        other, old = items[p], place[rank]
        items[p], items[old] = rank, other
        place[rank], place[other] = p, old
    if code.size > 0 and is_left[0]:
        return start + code.size
    return stop - code.size


@inner
def _find(ascending: Int64s, code: int, low: int, high: int) -> int:
    """The place of a code that is among those at ``low .. high``."""
    while high - low > 1:
        middle = low + (high - low) // 2
        if ascending[middle] <= code:
            low = middle
        else:
            high = middle
    return low
