"""Conversion of nodes in the order in which they were made to a `Tree`, numbered breadth-first.

The categories that the splits of a grown tree send left and right, from its nodes' rows.

Growth does not record them: once a tree is grown, a category goes to the child that has rows of it.
If the parent of a split tests the same column, only the smaller child is read: a chain of tests
that separate single categories from the rest costs n log n rows, not n^2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Bools, Floats, Int64s, Splits, Subtrees
from gputree.backends.rules import missing_goes_left
from gputree.base.dtypes import NO_CHILD, NO_FEATURE, NO_THRESHOLD, NODE
from gputree.compilation import kernel
from gputree.tree.nesting import Subsets
from gputree.tree.sums import add_to_parents


class GrownNodes(NamedTuple):
    """Nodes of a grown binary tree; ``first_child`` is -1 at leaves, else the first of a pair.

    Missing values go as learned; where training saw none, to the child with more rows.
    """

    first_child: Int64s
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: Bools
    gain: Floats
    begin: Int64s
    end: Int64s


class WholeTree(NamedTuple):
    """A tree numbered breadth-first: of S splits, and of L leaves in their order."""

    is_split: Bools  # (S + L,)
    feature: NDArray[np.int32]  # (S,)
    threshold: Floats  # (S,)
    missing_left: Bools  # (S,)
    gain: Floats  # (S,)
    n_rows: Int64s  # (L,)
    sums: Int64s  # (L, K) class weights; of targets (S + L, 4), as of `node_statistics`

    @classmethod
    def empty(cls, n_nodes: int, n_classes: int) -> WholeTree:
        """A tree whose fields `number_whole` fills; of targets without `n_classes`."""
        splits, leaves = n_nodes // 2, n_nodes // 2 + 1
        return cls(
            np.empty(n_nodes, np.bool_),
            np.empty(splits, np.int32),
            np.empty(splits),
            np.empty(splits, np.bool_),
            np.empty(splits),
            np.empty(leaves, np.int64),
            np.zeros((leaves, n_classes) if n_classes else (n_nodes, 4), np.int64, order="F"),
        )


class TreeRows(NamedTuple):
    """Targets, weights and squares of the rows of a table for one tree, as of `Task`."""

    target: NDArray[Any]
    weight: Int64s  # empty where all are one
    square: Int64s  # empty of classes
    square_rest: Int64s


class NodeTable:
    """Nodes of the levels that are grown one by one; the root is node 0."""

    def __init__(self, n_rows: int) -> None:
        self._levels: list[GrownNodes] = []
        self.n_nodes = 0
        self._add(np.array([0]), np.array([n_rows]))

    def _add(self, begin: Int64s, end: Int64s) -> Int64s:
        m = begin.size
        self._levels.append(
            GrownNodes(
                first_child=np.full(m, NO_CHILD),
                feature=np.full(m, -1, np.int32),
                threshold=np.zeros(m),
                missing_left=np.zeros(m, np.bool_),
                gain=np.zeros(m),
                begin=begin,
                end=end,
            )
        )
        self.n_nodes += m
        return np.arange(self.n_nodes - m, self.n_nodes)

    def add_children(
        self, nodes: Int64s, splits: Splits, threshold: NDArray, middle: Int64s
    ) -> Int64s:
        """Record the splits of `nodes`, all of the last level; returns the children's numbers."""
        level = self._levels[-1]
        places = nodes - (self.n_nodes - level.begin.size)
        level.feature[places] = splits.feature
        level.threshold[places] = threshold
        level.missing_left[places] = missing_goes_left(
            splits.seen_missing,
            splits.missing_left,
            middle - level.begin[places],
            level.end[places] - middle,
        )
        level.gain[places] = splits.gain
        begin = np.stack([level.begin[places], middle], axis=1).ravel()
        end = np.stack([middle, level.end[places]], axis=1).ravel()
        level.first_child[places] = self.n_nodes + 2 * np.arange(nodes.size)
        return self._add(begin, end)

    def join(self, roots: Int64s, subtrees: Subtrees | None) -> GrownNodes:
        """Join all nodes, with each of `roots` replaced by its finished subtree."""
        if subtrees is not None and self.n_nodes == 1:  # built from the root on
            return GrownNodes._make(subtrees[1:])
        top = GrownNodes._make(np.concatenate(field) for field in zip(*self._levels, strict=True))
        if subtrees is None:
            return top
        shift = self.n_nodes
        child = subtrees.first_child
        below = GrownNodes(np.where(child < 0, NO_CHILD, child + shift), *subtrees[2:])
        return GrownNodes._make(
            _join(a, b, roots, subtrees.root) for a, b in zip(top, below, strict=True)
        )


def _join(top: Any, below: Any, roots: Int64s, subtree_roots: Int64s) -> NDArray[Any]:
    """Join one field of all nodes; those at `roots` take the values of the subtrees' roots."""
    top[roots] = below[subtree_roots]
    return np.concatenate([top, below])


def breadth_first(first_child: NDArray[Any]) -> tuple[Int64s, NDArray[np.int32]]:
    """Nodes reachable from the root, breadth-first, and their depths."""
    order, depth = np.zeros(first_child.size, np.int64), np.zeros(first_child.size, NODE)
    size = walk_levels(first_child.astype(np.int64, copy=False), order, depth)
    return order[:size], depth[:size]


@kernel
def walk_levels(first_child: Int64s, order: Int64s, depth: NDArray[np.int32]) -> int:
    """Write the nodes reachable from node 0, breadth-first, and their depths; return how many."""
    size = 1
    place = 0
    # The first `size` nodes are known, of these the children of the first `place`.
    while place < size:
        child = first_child[order[place]]
        if child >= 0:
            for side in range(2):
                order[size] = child + side
                depth[size] = depth[place] + 1
                size += 1
        place += 1
    return size


def renumber(nodes: GrownNodes) -> tuple[GrownNodes, NDArray[np.int32], NDArray[np.int32]]:
    """Renumber `nodes` breadth-first: nodes, parents and depths, with the sentinels of a `Tree`.

    Breadth-first, the k-th node that is split has the children 2 k + 1 and 2 k + 2.
    """
    order, depth = breadth_first(nodes.first_child)
    taken = GrownNodes._make(field[order] for field in nodes)
    is_leaf = taken.first_child < 0
    inner = np.flatnonzero(~is_leaf)
    taken.first_child[inner] = 2 * np.arange(inner.size) + 1
    taken.feature[is_leaf] = NO_FEATURE
    taken.threshold[is_leaf] = NO_THRESHOLD
    parent = np.full(order.size, NO_CHILD, NODE)
    parent[1:] = inner.repeat(2)
    return taken, parent, depth


@kernel
def number_whole(
    nodes: Subtrees, root: int, rows: TreeRows, entries: NDArray, tree: WholeTree
) -> None:
    """Fill a tree from the nodes below a root."""
    weighted, regression = rows.weight.size > 0, rows.square.size > 0
    order = np.empty(tree.is_split.size, np.int64)
    order[0] = root
    size, splits, leaves = 1, 0, 0
    # Of the tree's nodes, the first `size` are in `order`, and those before i are written.
    for i in range(order.size):
        node = order[i]
        child = nodes.first_child[node]
        tree.is_split[i] = child >= 0
        if child >= 0:
            order[size], order[size + 1] = child, child + 1
            size += 2
            tree.feature[splits] = nodes.feature[node]
            tree.threshold[splits] = nodes.threshold[node]
            tree.missing_left[splits] = nodes.missing_left[node]
            tree.gain[splits] = nodes.gain[node]
            splits += 1
            continue
        tree.n_rows[leaves] = nodes.end[node] - nodes.begin[node]
        for e in range(nodes.begin[node], nodes.end[node]):
            row = np.uintp(entries[e])
            weight = rows.weight[row] if weighted else 1
            if regression:
                tree.sums[i, 0] += weight
                tree.sums[i, 1] += rows.target[row]
                tree.sums[i, 2] += rows.square[row]
                tree.sums[i, 3] += rows.square_rest[row]
            else:
                tree.sums[leaves, np.uintp(rows.target[row])] += weight
        leaves += 1
    # Children, the pairs before `size`, come behind their parents.
    for i in range(order.size - 1 if regression else -1, -1, -1):
        if tree.is_split[i]:
            size -= 2
            for c in range(4):
                tree.sums[i, c] = tree.sums[size, c] + tree.sums[size + 1, c]


def over_leaves(first_child: NDArray[Any], leaf_sums: NDArray[Any]) -> NDArray[Any]:
    """Sums (N, S) of every node, numbered as by `renumber`, over the leaves below it.

    `leaf_sums`, of shape (leaves, S), are in the order of the nodes' numbers.
    """
    sums = np.zeros((first_child.size, leaf_sums.shape[1]), leaf_sums.dtype)
    sums[first_child < 0] = leaf_sums
    parent = np.full(first_child.size, NO_CHILD, NODE)
    parent[1:] = np.flatnonzero(first_child >= 0).repeat(2)
    add_to_parents(parent, sums)
    return sums


def list_subsets(
    backend: Backend, nodes: GrownNodes, parent: NDArray[np.int32], subset: Int64s
) -> Subsets:
    """List the subsets of a tree, numbered by `subset` (N,); -1 where a node tests none.

    `nodes` are breadth-first, and the backend's entries in the order after growth.
    """
    tested = np.flatnonzero(subset >= 0)
    first, above = nodes.first_child[tested], parent[tested]
    chained = (above >= 0) & (subset[above] >= 0) & (nodes.feature[above] == nodes.feature[tested])
    sizes = nodes.end - nodes.begin
    left_listed = ~chained | (sizes[first] <= sizes[first + 1])
    right_listed = ~chained | ~left_listed
    split = np.concatenate([np.flatnonzero(left_listed), np.flatnonzero(right_listed)])
    n_left = int(left_listed.sum())
    child = first[split]
    child[n_left:] += 1
    counts, code = backend.categories(
        nodes.begin[child], nodes.end[child], nodes.feature[tested[split]]
    )
    owner = np.repeat(split, counts)
    is_left = np.repeat(np.arange(split.size) < n_left, counts)
    order = np.lexsort((code, owner))
    begin = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=tested.size))])
    return Subsets(begin, code[order], is_left[order])
