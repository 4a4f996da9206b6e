"""Lookup of the child for a category, during the descent of rows.

A node has a separate table from codes to children where that is small, or about as long as the list
of its categories. Else the list is searched: it is sorted once for all nodes that share it, each of
which divides a range of it:

    code     | 2  5  6  9 |      sorted; a binary search finds the place in the shared list
    place    | 1  0  3  2 |      node 0: places 0 .. 2 lead to its first child, 2 .. 4 to the
                                 second, which separates 2 from 3
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.branches import Spans, places_of
from gputree.compilation import borrowing
from gputree.compilation.arrays import record
from gputree.dtypes import LISTED, NODE, SUBSET_SPLIT, Bools, Int32s, Int64s
from gputree.tree import Tree

# Maximum size of a table that every node may have, and per listed category.
FEW_CODES = 64
CODES_PER_CATEGORY = 4

_LIST = record(
    [
        ("first", np.int64),  # the sorted codes
        ("last", np.int64),
        ("begin", np.int32),  # the node's places in the shared list
        ("middle", np.int32),  # those from here on lead to the second child; -1: places are nodes
        ("end", np.int32),
        ("child", np.int32),  # the first one
    ]
)


class CategoryLists(NamedTuple):
    """Lists that are searched for categories."""

    node: NDArray  # one record for each node whose list is searched
    # sorted codes of each list, and their places in it (or the nodes that they go to)
    code: Int32s
    place: Int32s


NO_LISTS = CategoryLists(np.empty(0, _LIST), np.empty(0, np.int32), np.empty(0, np.int32))


@borrowing
def look_up(lists: CategoryLists, number: int, x: float, unseen: int) -> np.int64:
    """Node to which category x goes by list `number`, or `unseen`."""
    branches = lists.node[number]
    first, last = branches.first, branches.last
    while first < last:
        middle = first + (last - first) // 2
        if lists.code[middle] < x:
            first = middle + 1
        else:
            last = middle
    if first == branches.last or lists.code[first] != x:
        return np.int64(unseen)
    place = lists.place[first]
    if branches.middle < 0:
        return np.int64(place)
    if place < branches.begin or place >= branches.end:
        return np.int64(unseen)
    return np.int64(branches.child) + np.int64(place >= branches.middle)


def tabulate(tree: Tree, unseen: Int32s) -> tuple[Int32s, CategoryLists, Int32s, Int64s]:
    """Make tables and lists of all nodes that test categories.

    Returns the nodes for the codes 0, 1, ... of each table, with `unseen`, the nodes for categories
    that a node does not list; the lists; for each node the size of its table, LISTED, or 0; and the
    offset of its table, or the number of its list.
    """
    spans = tree.branch_spans
    sizes = _table_sizes(tree, spans)
    n_codes = np.where(tree.tests_categories & (sizes == 0), LISTED, sizes).astype(np.int32)
    table = np.cumsum(sizes) - sizes
    child = np.repeat(unseen, sizes).astype(NODE)
    node, place = _led_to(tree, sizes > 0)
    child[table[tree.parent[node]] + tree.branch_code[place]] = node
    listed = np.flatnonzero(n_codes == LISTED)
    table[listed] = np.arange(listed.size)
    return child, CategoryLists(*_lists(tree, listed, spans)), n_codes, table


def _table_sizes(tree: Tree, spans: Spans) -> Int64s:
    """Sizes of the tables of the nodes that have one: up to the largest code in the list."""
    listed, sharing = spans.stop - spans.start, np.bincount(spans.top)[spans.top]
    sizes = np.maximum(spans.highest(tree.tests_categories, tree.branch_code) + 1, 1)
    most = np.where(sharing == 1, np.maximum(CODES_PER_CATEGORY * listed, FEW_CODES), FEW_CODES)
    return np.where(tree.tests_categories & (sizes <= most), sizes, 0)


def _led_to(tree: Tree, nodes: Bools) -> tuple[Int64s, Int64s]:
    """Children of the marked nodes, and the places of their categories, pair by pair."""
    child = 1 + np.flatnonzero(nodes[tree.parent[1:]])
    owner, place = places_of(tree.branch_begin[child], tree.branch_end[child])
    return child[owner], place


def _lists(tree: Tree, listed: Int64s, spans: Spans) -> tuple[NDArray, Int32s, Int32s]:
    """Records of the nodes whose lists are searched; the sorted codes and their places."""
    tops, number = np.unique(spans.top[listed], return_inverse=True)
    start, stop = spans.start[tops], spans.stop[tops]
    by_place = tree.split_kind[tops] == SUBSET_SPLIT
    owner, place = places_of(start, stop)
    leads = place - start[owner]
    to_node = np.zeros(tree.n_nodes, np.bool_)
    to_node[tops[~by_place]] = True
    leads[~by_place[owner]], _ = _led_to(tree, to_node)
    order = np.lexsort((tree.branch_code[place], owner))
    records = np.zeros(listed.size, _LIST)
    last, first_child = np.cumsum(stop - start), tree.first_child[listed]
    records["first"], records["last"] = (last - (stop - start))[number], last[number]
    records["begin"] = spans.start[listed] - start[number]
    records["end"] = spans.stop[listed] - start[number]
    middle = tree.branch_end[first_child] - start[number]
    records["middle"] = np.where(by_place[number], middle, -1)
    records["child"] = first_child
    return records, tree.branch_code[place][order], leads[order].astype(np.int32)
