"""Categories that lead to the nodes of a tree: ranges of one list, which nodes may share.

A split of categories lists what it sends to each of its children, child by child:

    node 0              branch_code   | 3  0  7 | 1  8  4  5 |
     1      2               node 1      ^^^^^^^
          3   4             node 2                ^^^^^^^^^^
                            nodes 3, 4            ^^^^  ^^^^

Only categories that a node has rows of are listed. Where a node tests the column that its
parent tested, it has all categories that its parent sent there. So its split is described by one
side, and its list is its parent's, partitioned in place (`nest`): a chain of tests that separate
single categories from the rest takes no more memory than its first one.

    root    lists 0 1 2 3 4, sends 1 3 left     | 1 3 | 0 2 4 |
    right   lists 2, sends it left                    | 2 | 0 4 |

Sums over subtrees (`add_up`) take one pass: children are numbered after their parents, so that a
node is whole when its turn comes, and the cost does not depend on the depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import CATEGORY, NO_BRANCH, Bools, Int32s, Int64s
from gputree.compilation import inner, kernel


class Branches(NamedTuple):
    """The categories that one node has branches for."""

    code: Int32s  # (C,): codes of the categories, ascending
    child: Int32s  # (C,): ordinal of the child that each leads to


class BranchLists(NamedTuple):
    """The fields of `gputree.tree.Tree` that say which categories lead to each node."""

    # (N,): to node t lead the categories ``branch_code[branch_begin[t] : branch_end[t]]``
    branch_begin: Int64s
    branch_end: Int64s
    branch_code: Int32s

    @classmethod
    def none(cls, n_nodes: int) -> BranchLists:
        """Lists of nodes that no category leads to."""
        nowhere = np.zeros(n_nodes, np.int64)
        return cls(nowhere, nowhere.copy(), np.empty(0, CATEGORY))

    @classmethod
    def of_pairs(cls, n_nodes: int, node: NDArray[Any], code: NDArray[Any]) -> BranchLists:
        """Lists that share nothing: category ``code[i]`` leads to ``node[i]``, in any order."""
        order = np.lexsort((code, node))
        end = np.cumsum(np.bincount(node, minlength=n_nodes))
        return cls(np.append(0, end[:-1]), end, code[order].astype(CATEGORY))

    @classmethod
    def of_tables(cls, first_child: Int32s, offset: Int64s, child: Int32s) -> BranchLists:
        """From a table a node: category c of node t leads to child ``child[offset[t] + c]``.

        `offset` is of shape (N + 1,); `child` has ordinals, NO_BRANCH for categories that lead
        nowhere.
        """
        owner = np.repeat(np.arange(first_child.size), np.diff(offset))
        code = np.arange(child.size) - offset[owner]
        leading = np.flatnonzero(child != NO_BRANCH)
        node = first_child[owner[leading]] + child[leading]
        return cls.of_pairs(first_child.size, node, code[leading])

    def take(self, nodes: NDArray[Any]) -> BranchLists:
        """Select the lists of nodes, in their order; drop categories that lead to other nodes."""
        begin, end = self.branch_begin[nodes], self.branch_end[nodes]
        size = self.branch_code.size + 1
        step = np.bincount(begin, minlength=size) - np.bincount(end, minlength=size)
        kept = np.cumsum(step) > 0
        place: Int64s = np.cumsum(kept) - kept
        return BranchLists(place[begin], place[end], self.branch_code[kept[:-1]])

    def spans(
        self, first_child: Int32s, n_children: Int32s, parent: Int32s, is_subset: Bools
    ) -> Spans:
        """Bounds of the lists of each node's children, and the nodes that share them.

        `is_subset` marks the nodes that split categories into two subsets: only they share.
        """
        first = np.where(n_children > 0, first_child, 0)  # nothing leads to the root
        last = first + np.maximum(n_children, 1) - 1
        start, stop = self.branch_begin[first], self.branch_end[last]
        below = (self.branch_begin <= start) & (start < stop) & (stop <= self.branch_end)
        below[1:] &= is_subset[1:] & is_subset[parent[1:]]
        top = np.where(below, parent, np.arange(parent.size))
        while not np.array_equal(higher := top[top], top):
            top = higher
        return Spans(start, stop, top)

    def equals(self, other: BranchLists, spans: Spans, others: Spans) -> bool:
        """Compare the categories that lead to each node of two trees of the same shape."""
        sizes = self.branch_end - self.branch_begin
        if not np.array_equal(sizes, other.branch_end - other.branch_begin):
            return False
        # the categories of a node are given by its children, where these share all of its list
        compared = np.flatnonzero((sizes > 0) & ~(spans.share_all(sizes) & others.share_all(sizes)))
        return np.array_equal(self._pairs(compared), other._pairs(compared))

    def _pairs(self, nodes: Int64s) -> Int64s:
        """Places in `nodes` and the categories that lead there, ascending; shape (2, pairs)."""
        owner, place = places_of(self.branch_begin[nodes], self.branch_end[nodes])
        code = self.branch_code[place].astype(np.int64)
        return np.stack([owner, code])[:, np.lexsort((code, owner))]

    def problems(self, parent: Int32s, by_category: Bools) -> Iterator[tuple[str, Any]]:
        """Descriptions of invariants of the lists, each with whether (or where) it is broken.

        `by_category` marks the nodes of a tree of the right shape that test categories.
        """
        begin, end, n = self.branch_begin, self.branch_end, parent.size
        yield "branch_begin or branch_end has no entry per node", {begin.size, end.size} != {n}
        size = self.branch_code.size
        yield "a list lies outside branch_code", (begin < 0) | (end < begin) | (end > size)
        yield "categories lead to the root", begin[:1] < end[:1]
        listed = by_category[parent[1:]]
        wrong = (begin[1:] < end[1:]) & ~listed
        yield "categories lead to a child of a node that tests none", wrong
        sibling = listed[1:] & (parent[2:] == parent[1:-1])
        yield "lists of siblings do not lie side by side", sibling & (begin[2:] != end[1:-1])
        yield "a category is negative", self.branch_code < 0

    def span_problems(
        self, spans: Spans, feature: Int32s, by_category: Bools
    ) -> Iterator[tuple[str, Any]]:
        """Yield problems of shared lists, as `problems`, which must have found none."""
        yield "nodes of several columns share a list", feature != feature[spans.top]
        tops = spans.tops(by_category)
        order = tops[np.lexsort((spans.stop[tops], spans.start[tops]))]
        overlap = spans.start[order[1:]] < spans.stop[order[:-1]]
        yield "lists overlap that are not shared", overlap
        owner, place = places_of(spans.start[tops], spans.stop[tops])
        code = self.branch_code[place]
        order = np.lexsort((code, owner))
        twice = (np.diff(code[order]) == 0) & (np.diff(owner[order]) == 0)
        yield "a category leads to two children of a node", twice


class Spans(NamedTuple):
    """Ranges of the lists of each node's children, arrays of shape (N,)."""

    # the lists of a node's children are, child by child, from `start` to `stop`
    start: Int64s
    stop: Int64s
    top: Int64s  # the highest of the nodes that share a node's list; itself for most

    def tops(self, by_category: Bools) -> Int64s:
        """Highest node of each list, among those that test categories."""
        return np.flatnonzero(by_category & (self.top == np.arange(self.top.size)))

    def share_all(self, sizes: Int64s) -> Bools:
        """Mark nodes whose children share the whole list of the node, `sizes` categories long."""
        return (self.top != np.arange(self.top.size)) & (self.stop - self.start == sizes)

    def highest(self, by_category: Bools, code: Int32s) -> Int64s:
        """Largest category in the list that each node shares, -1 without any."""
        tops = self.tops(by_category & (self.start < self.stop))
        _, place = places_of(self.start[tops], self.stop[tops])
        sizes = self.stop[tops] - self.start[tops]
        highest = np.full(self.top.size, -1)
        if tops.size:
            highest[tops] = np.maximum.reduceat(code[place], np.cumsum(sizes) - sizes)
        return highest[self.top]


def concatenated_ranges(begin: Int64s, sizes: Int64s) -> Int64s:
    """The integers ``begin[i] .. begin[i] + sizes[i]`` of all ranges, in their order."""
    shift = begin - (np.cumsum(sizes) - sizes)
    return np.repeat(shift, sizes) + np.arange(int(sizes.sum()))


def places_of(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The places ``begin[i] .. end[i]`` of all ranges, one behind the other, after their i."""
    sizes = end - begin
    return np.repeat(np.arange(begin.size), sizes), concatenated_ranges(begin, sizes)


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


Number = TypeVar("Number", np.int64, np.float64)


def add_up(parent: Int32s, values: NDArray[Number]) -> NDArray[Number]:
    """Sum the values of each node and its descendants, of shape (N,) or (N, K).

    Sums of integers have no order; floats are added from the last node to the first.
    """
    total = values.copy()
    add_to_parents(parent, total.reshape(parent.size, -1))
    return total


@kernel
def add_to_parents(parent: Int32s, total: NDArray[Any]) -> None:
    """Add the values of each node, of shape (N, K), to those of its parent, last node first."""
    for node in range(parent.size - 1, 0, -1):
        for k in range(total.shape[1]):
            total[parent[node], k] += total[node, k]
