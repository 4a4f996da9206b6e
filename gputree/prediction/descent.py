"""Descent of rows that go to one child at each node.

Eight rows descend some levels together, so that their loads overlap. Nodes where a row cannot go on
to a single child point at themselves: a row that does not move has reached its node.

The child for a category is looked up in a separate table of the node, from codes to children, where
that is small, or about as long as the list of the node's categories. Else the list is searched: it
is sorted once for all nodes that share it, each of which divides a range of it:

    code     | 2  5  6  9 |      sorted; a binary search finds the place in the shared list
    place    | 1  0  3  2 |      node 0: places 0 .. 2 lead to its first child, 2 .. 4 to the
                                 second, which separates 2 from 3
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LISTED,
    NODE,
    SUBSET_SPLIT,
    Bools,
    Floats,
    Int32s,
    Int64s,
    record,
)
from gputree.base.threads import run
from gputree.compilation import borrowing, kernel, pasted
from gputree.tree import Tree
from gputree.tree.branches import Spans, places_of

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


SIDE_BY_SIDE = 8  # rows that descend together
LEVELS = 8  # levels that rows descend before those that have arrived are left out
FEW_NODES = 1 << 12  # number of nodes that fit the cache of a core in any order
Eight = tuple[int, int, int, int, int, int, int, int]
NARROW, WIDE = np.dtype(np.float32), np.dtype(np.float64)


def node_type(threshold: type[np.floating], by_category: bool) -> np.dtype[Any]:
    """Dtype of a node for `step`: 16 bytes where thresholds are float32."""
    fields: list[Any] = [("threshold", threshold)]
    fields += [(name, np.int32) for name in ("feature", "child", "missing")]
    if by_category:
        fields += [("n_codes", np.int32), ("table", np.int64)]
    return record(fields)


class DescentTree(NamedTuple):
    """A tree in the form that `step` reads."""

    # (N,): `child` takes values up to `threshold`, the node after it the others; where the node
    # tests categories, `child` is the node for those that it does not list. `missing` is the node
    # for NaN. A node refers to itself where it sends a value to no single child
    nodes: NDArray
    # the node for each code of each table; None where all splits are thresholds
    target: Int32s | None
    # None where no list is searched: then the descent takes a quarter of the time
    lists: CategoryLists | None
    missing: bool | None = True  # None where no row has missing values


class ArrangedTree(NamedTuple):
    """A tree of N nodes in the form and the order in which rows descend it fastest."""

    nodes: DescentTree
    depth: int
    place: Int32s | None  # (N,) new places of the nodes, if they have moved

    def in_order(self, of_node: NDArray[Any]) -> NDArray[Any]:
        """Arrange an array of shape (N, ...) as the nodes are."""
        if self.place is None:
            return np.ascontiguousarray(of_node)
        moved = np.empty_like(of_node, order="C")
        moved[self.place] = of_node
        return moved


def packed(tree: Tree, dtype: Any) -> DescentTree:
    """Pack the tree for values of `dtype`, in the order of its nodes; it is kept with the tree."""
    return tree.derive(pack, NARROW if dtype == NARROW else WIDE)


def arranged(tree: Tree, dtype: Any) -> ArrangedTree:
    """Pack and arrange the tree for values of `dtype`; it is kept with the tree."""
    return tree.derive(arrange, NARROW if dtype == NARROW else WIDE)


def pack(tree: Tree, dtype: np.dtype[Any] = WIDE) -> DescentTree:
    """Pack the tree as one record per node, for values of `dtype`; leaves refer to themselves."""
    itself = np.arange(tree.n_nodes)
    leaf = tree.is_leaf
    by_category = tree.tests_categories
    narrow = dtype.type
    nodes = np.zeros(tree.n_nodes, node_type(narrow, bool(by_category.any())))
    missing = np.where(tree.missing_child >= 0, tree.first_child + tree.missing_child, itself)
    nodes["threshold"] = rounded_down(np.where(leaf, np.inf, tree.threshold), narrow)
    nodes["feature"] = np.where(leaf, 0, tree.feature)
    nodes["child"] = np.where(leaf, itself, tree.first_child)
    nodes["missing"] = np.where(leaf, itself, missing)
    if not by_category.any():
        return DescentTree(nodes, None, None)
    # A category without a branch is missing, except where missing values have a separate branch.
    unseen = np.where(tree.split_kind == BRANCH_SPLIT, itself, missing)
    nodes["child"] = np.where(by_category, unseen, nodes["child"])
    target, lists, nodes["n_codes"], nodes["table"] = tabulate(tree, nodes["child"])
    return DescentTree(nodes, target, lists if lists.node.size else None)


def pack_alike(tree: Tree) -> DescentTree:
    """Like `pack`, of the same types for all trees and tables: one kernel is compiled."""
    packed = pack(tree)
    nodes = np.zeros(tree.n_nodes, node_type(np.float64, by_category=True))
    for name in packed.nodes.dtype.names or ():
        nodes[name] = packed.nodes[name]
    target = np.empty(0, np.int32) if packed.target is None else packed.target
    return DescentTree(nodes, target, packed.lists or NO_LISTS)


class TreeSplits(NamedTuple):
    """N nodes of trees numbered breadth-first, one tree after another; S are split by thresholds.

    Each tree numbers its nodes from 0.
    """

    is_split: Bools  # (N,)
    first_child: Int32s  # (S,)
    feature: Int32s  # (S,)
    threshold: NDArray  # (S,)
    missing_child: NDArray[np.int8]  # (S,) -1 where a row stops

    @classmethod
    def of(cls, tree: Tree) -> TreeSplits:
        """The nodes of a binary tree."""
        is_split = ~tree.is_leaf
        fields = tree.first_child, tree.feature, tree.threshold, tree.missing_child.astype(np.int8)
        taken: list[Any] = [field[is_split] for field in fields]
        return cls(is_split, *taken)


def arrange(tree: Tree, dtype: np.dtype[Any]) -> ArrangedTree:
    """Pack the tree for values of `dtype`; nodes that test categories stay in their order."""
    if tree.tests_categories.any():
        return ArrangedTree(pack(tree, dtype), tree.max_depth, None)
    nodes, depth, place = arrange_splits([TreeSplits.of(tree)], dtype)
    return ArrangedTree(nodes, int(depth[0]), place if tree.n_nodes > FEW_NODES else None)


def arrange_splits(
    trees: Sequence[TreeSplits], dtype: np.dtype[Any], n_threads: int = 1
) -> tuple[DescentTree, Int64s, Int32s]:
    """Pack trees one after another, breadth-first; depth-first if they are large.

    Breadth-first, each node below the upper levels that a row passes is in another cache line;
    depth-first, they are next to each other. Also returns the depth of each tree, and the places
    of nodes in their trees.
    """
    ends = np.cumsum([0, *(tree.is_split.size for tree in trees)])
    split_ends = np.cumsum([0, *(tree.feature.size for tree in trees)])
    joined = TreeSplits(*(np.concatenate(arrays) for arrays in zip(*trees, strict=True)))
    joined = joined._replace(threshold=rounded_down(joined.threshold, dtype.type))
    nodes = np.empty(int(ends[-1]), node_type(dtype.type, by_category=False))
    depth, place = np.empty(len(trees), np.int64), np.empty(nodes.size, np.int32)
    parts = np.linspace(0, len(trees), min(n_threads, len(trees)) + 1).astype(int).tolist()
    given = joined, ends, split_ends, FEW_NODES, depth, place, nodes
    run(n_threads, place_nodes, [(*given, *part) for part in pairwise(parts)])
    return DescentTree(nodes, None, None), depth, place


@kernel
def place_nodes(
    trees: TreeSplits,
    ends: Int64s,
    split_ends: Int64s,
    few_nodes: int,
    depths: Int64s,
    places: Int32s,
    all_nodes: NDArray,
    first_tree: int,
    last_tree: int,
) -> None:
    """Write the packed nodes, the depths and the places of nodes of trees; see `arrange_splits`.

    In a tree whose nodes move, two siblings come first, then all below the first, then all below
    the second. Nodes below one that was made a leaf in place have the place -1.
    """
    for t in range(first_tree, last_tree):
        begin, size, first_split = ends[t], ends[t + 1] - ends[t], split_ends[t]
        nodes, place = all_nodes[begin : begin + size], places[begin : begin + size]
        moves, splits = size > few_nodes, split_ends[t + 1] - first_split
        inner, found = np.empty(splits + 1, np.int32), 0
        for node in range(size):  # leaves; splits follow
            nodes[node].threshold, nodes[node].feature = np.inf, 0
            nodes[node].child = nodes[node].missing = node
            place[node] = -1
            inner[found] = node
            found += int(trees.is_split[begin + node])
        below = np.zeros(size, np.int32)  # numbers of nodes; then places where they begin
        for split in range(splits - 1 if moves else -1, -1, -1):
            first = trees.first_child[first_split + split]
            below[inner[split]] = below[first] + below[first + 1] + 2
        place[0], below[0] = 0, 1
        depth, end, next_end = 0, 0, 1
        for split in range(splits):
            if inner[split] >= end:  # the first one of the next level
                depth, end = depth + 1, next_end
            packed = place[inner[split]]
            if packed < 0:
                continue
            first = trees.first_child[first_split + split]
            next_end = first + 2
            start = below[inner[split]] if moves else first
            place[first], place[first + 1] = start, start + 1
            below[first + 1] = start + 2 + below[first]
            below[first] = start + 2
            nodes[packed].threshold = trees.threshold[first_split + split]
            nodes[packed].feature = trees.feature[first_split + split]
            missing = trees.missing_child[first_split + split]
            nodes[packed].child = start
            nodes[packed].missing = start + missing if missing >= 0 else packed
        depths[t] = depth


def rounded_down(threshold: Floats, dtype: type[np.floating]) -> NDArray:
    """The largest of `dtype` up to each threshold: values of `dtype` fall to the same sides."""
    with np.errstate(over="ignore"):
        nearest = threshold.astype(dtype)
    above = nearest > threshold
    nearest[above] = np.nextafter(nearest[above], dtype(-np.inf))
    return nearest


@borrowing
def step(values: NDArray, row: int, tree: DescentTree, index: int) -> np.int64:
    """Node below `index` to which a row goes; `index` itself where there is no single one."""
    feature = tree.nodes[np.uintp(index)].feature
    x = values[np.uintp(row), np.uintp(feature)]
    return follow(x, tree.nodes, index, tree.target, tree.lists, tree.missing)


@borrowing
def follow(
    x: float,
    nodes: NDArray,
    index: int,
    target: Int32s | None,
    lists: CategoryLists | None,
    missing: bool | None,
) -> np.int64:
    """Node to which the node `index` sends a value.

    Numba omits the branches for None only where that is an argument.
    """
    node = nodes[np.uintp(index)]  # a node is no argument: numba warns of kinds of records
    below = np.int64(node.child) + np.int64(x > node.threshold)
    if target is not None and node.n_codes > 0:
        below = np.int64(node.child)
        if 0.0 <= x < node.n_codes:
            below = np.int64(target[node.table + np.int64(x)])
    if lists is not None and node.n_codes == LISTED:
        below = look_up(lists, node.table, x, node.child)
    if missing is not None and x != x:
        below = np.int64(node.missing)
    return below


@pasted
def step_eight(values: NDArray, rows: Eight, tree: DescentTree, nodes: Eight) -> Eight:
    """Nodes below those of eight rows; see `step`."""
    return (
        step(values, rows[0], tree, nodes[0]),
        step(values, rows[1], tree, nodes[1]),
        step(values, rows[2], tree, nodes[2]),
        step(values, rows[3], tree, nodes[3]),
        step(values, rows[4], tree, nodes[4]),
        step(values, rows[5], tree, nodes[5]),
        step(values, rows[6], tree, nodes[6]),
        step(values, rows[7], tree, nodes[7]),
    )


@kernel
def walk(values: NDArray, tree: DescentTree, depth: int, out: Int32s) -> None:
    """Write the nodes that the rows of `values` (n, d; NaN: missing) reach to `out`, (n,).

    `depth` is the one of the tree. Rows descend some levels, and those that have arrived are left
    out of the next ones: leaves of a tree of `adult` are 16 levels deep in the mean and 44 at most,
    and the last one of eight rows arrives after 27.
    """
    row = np.arange(out.size, dtype=np.uint32)  # the first `left` have not arrived
    out[:] = 0
    left = out.size
    while left > 0 and depth > 0:
        paired, moved = left - left % SIDE_BY_SIDE, 0
        for i in range(0, paired, SIDE_BY_SIDE):
            r0, r1, r2, r3 = row[i], row[i + 1], row[i + 2], row[i + 3]
            r4, r5, r6, r7 = row[i + 4], row[i + 5], row[i + 6], row[i + 7]
            rows = r0, r1, r2, r3, r4, r5, r6, r7
            after = before = (
                np.int64(out[r0]), np.int64(out[r1]), np.int64(out[r2]), np.int64(out[r3]),
                np.int64(out[r4]), np.int64(out[r5]), np.int64(out[r6]), np.int64(out[r7]),
            )  # fmt: skip
            for _ in range(min(depth, LEVELS)):
                before, after = after, step_eight(values, rows, tree, after)
            for k in range(SIDE_BY_SIDE):  # the list is read before it is written
                out[rows[k]] = after[k]
                row[moved] = rows[k]
                moved += int(after[k] != before[k])
        for i in range(paired, left):
            above, node = np.int64(-1), np.int64(out[row[i]])
            while node != above:
                above, node = node, step(values, row[i], tree, node)
            out[row[i]] = node
        left = moved
        depth -= LEVELS
