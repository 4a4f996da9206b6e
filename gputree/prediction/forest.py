"""Predictions of the trees of a forest, summed in the order of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE, Bools, Floats, Int32s, Int64s
from gputree.compilation import borrowing, kernel
from gputree.prediction.answers import Before, run_blocks
from gputree.prediction.descent import (
    ArrangedTree,
    DescentTree,
    TreeSplits,
    arrange_splits,
    pack,
    walk,
)
from gputree.prediction.sparse import SparseRows, ZeroPaths
from gputree.tree import Tree

# Bytes of rows that descend one tree after the other, and of their sums: a tree stays in a cache
# while they do, and they in a larger one until the next tree. ns a row and tree with 2**20, 2**23,
# 2**25 bytes: 61,000 nodes a tree 68, 43, 42; 1,300 nodes, 41 columns and 36 classes 31, 35, 65.
BLOCK_BYTES = 1 << 23

FEW_CLASSES = 4  # up to this number, adding all is faster than finding the only one with weight


class SplitTree(NamedTuple):
    """A tree of thresholds before it is packed, and the predictions of its nodes."""

    splits: TreeSplits
    answers: NDArray  # (L, K) of its leaves, or (N, K)
    are_weights: bool  # of classes

    @classmethod
    def of(cls, tree: Tree) -> SplitTree:
        """A binary tree."""
        return cls(TreeSplits.of(tree), tree.predictions, False)


class JoinedTrees(NamedTuple):
    """T packed trees, one after the other; each numbers its N nodes from 0."""

    nodes: DescentTree
    depth: Int64s  # (T,)
    node_ends: Int64s  # (T + 1,) number of nodes of all trees before each, and of all
    place: Int32s  # (N,) new places of the nodes
    number: NDArray[np.uint32]  # (N,) of the prediction of each packed node
    predictions: Floats  # (M, K): each of the K classes with probability 1, then all others

    @classmethod
    def of(cls, trees: Sequence[SplitTree], dtype: np.dtype[Any], n_threads: int) -> JoinedTrees:
        """Pack trees of thresholds for rows of float32 or float64 values."""
        splits = [tree.splits for tree in trees]
        sizes = [tree.is_split.size for tree in splits]
        weights = [tree.are_weights for tree in trees]
        numbers, predictions = numbered([tree.answers for tree in trees], weights)
        nodes, depth, place = arrange_splits(splits, dtype, n_threads)
        ends = np.cumsum([0, *sizes])
        number = np.zeros(nodes.nodes.size, np.uint32)
        is_split = np.concatenate([tree.is_split for tree in splits])
        of_leaves = np.array([len(tree.answers) < n for tree, n in zip(trees, sizes, strict=True)])
        place_numbers(is_split, ends, place, of_leaves, numbers, number)
        return cls(nodes, depth, ends, place, number, predictions)

    @classmethod
    def of_one(cls, tree: Tree, dtype: np.dtype[Any]) -> JoinedTrees:
        """Pack a tree that tests categories."""
        nodes, place = pack(tree, dtype), np.arange(tree.n_nodes, dtype=np.int32)
        ends = np.array([0, tree.n_nodes])
        depth = np.array([tree.max_depth])
        return cls(nodes, depth, ends, place, *numbered([tree.predictions], [False]))

    def alone(self, t: int) -> JoinedTrees:
        """Tree t, whose arrays are parts of these."""
        part = slice(*self.node_ends[t : t + 2])
        nodes = self.nodes._replace(nodes=self.nodes.nodes[part])
        ends = self.node_ends[t : t + 2] - self.node_ends[t]
        place, number = self.place[part], self.number[part]
        return JoinedTrees(nodes, self.depth[t : t + 1], ends, place, number, self.predictions)


class PackedForest(Sequence[JoinedTrees]):
    """Packed trees, joined for a kernel that has rows descend all; one by one with categories."""

    def __init__(self, joined: list[JoinedTrees]) -> None:
        self.joined = joined
        self._zero_paths: ZeroPaths | None = None

    def __len__(self) -> int:
        return sum(joined.depth.size for joined in self.joined)

    def zero_paths(self, n_columns: int) -> ZeroPaths:
        """The trees, none of which tests categories, for sparse rows."""
        if self._zero_paths is None:
            (joined,) = self.joined
            self._zero_paths = ZeroPaths.of(joined.nodes.nodes, joined.node_ends, n_columns)
        return self._zero_paths

    def alone(self, t: int) -> PackedForest:
        """Tree t as a forest."""
        return PackedForest([self.joined[0].alone(t) if len(self.joined) == 1 else self.joined[t]])

    def __getitem__(self, t: Any) -> Any:
        if not 0 <= t < len(self):  # ends a loop
            raise IndexError(t)
        return self.alone(t).joined[0]


def numbered(
    answers: Sequence[NDArray], are_weights: Sequence[bool]
) -> tuple[NDArray[np.uint32], Floats]:
    """Number the predictions of trees, or their class weights; returns the distinct ones, too."""
    joined = np.concatenate(answers)
    number = np.empty(len(joined), np.uint32)
    ends = np.cumsum([0, *map(len, answers)])
    number_answers(joined, ends, np.array(are_weights), number)
    single = np.eye(joined.shape[1])
    is_other = number >= len(single)
    others = joined[is_other].astype(np.float64)
    if any(are_weights):
        sums = others.sum(axis=1, keepdims=True)
        sums[~np.repeat(are_weights, np.diff(ends))[is_other]] = 1.0
        others /= sums
    return number, np.concatenate([single, others])


@kernel
def number_answers(
    answers: NDArray, ends: Int64s, are_weights: Bools, number: NDArray[np.uint32]
) -> None:
    """Number predictions (L, K): of a single class the class, of others from K on.

    Predictions of tree t end before ``ends[t + 1]``.
    """
    n_classes = answers.shape[1]
    others = n_classes
    for t in range(are_weights.size):
        for i in range(ends[t], ends[t + 1]):
            found, positive = 0, 0
            for k in range(n_classes):
                if answers[i, k] != 0:
                    found, positive = k, positive + 1
            if positive != 1 or not (are_weights[t] or answers[i, found] == 1):
                found, others = others, others + 1
            number[i] = found


@kernel
def place_numbers(
    is_split: Bools,
    ends: Int64s,
    place: Int32s,
    of_leaves: Bools,
    numbers: NDArray[np.uint32],
    number: NDArray[np.uint32],
) -> None:
    """Write the numbers of predictions to the places of their nodes, in all trees.

    A tree has predictions of its nodes, in their order, or of its leaves alone: then the numbers of
    its splits follow all others.
    """
    following = 0
    for t in range(of_leaves.size):
        for node in range(ends[t], ends[t + 1]):
            if place[node] >= 0:
                number[ends[t] + place[node]] = numbers[following]
            following += int(not (of_leaves[t] and is_split[node]))


def mean_answers(
    trees: PackedForest, values: NDArray | SparseRows, n_threads: int = 1, before: Before = None
) -> Floats:
    """Mean over trees of the prediction of each row's node, of shape (n_rows, K).

    Sums are in the order of the trees, so that they depend neither on threads nor on blocks.
    `before` returns False if no value is missing; see `gputree.prediction.apply` for the others.
    """
    out = np.zeros((values.shape[0], trees[0].predictions.shape[1]))

    def block(begin: int, end: int) -> None:
        missing = None if before is not None and before(begin, end) is False else True
        if isinstance(values, SparseRows):
            add_reached(descend(trees, values, begin, end), trees.joined[0], out[begin:end])
            return
        taken = values[begin:end]
        for joined in trees.joined:
            add_answers(taken, joined, missing, out[begin:end])

    run_blocks(values, n_threads, None, block, add_answers, _size(values, out), len(trees))
    out /= len(trees)
    return out


def leaves(
    trees: PackedForest,
    values: NDArray | SparseRows,
    n_threads: int = 1,
    before: Before = None,
) -> Int32s:
    """Index of the node that each row reaches in each tree, of shape (n_rows, trees)."""
    out = np.empty((values.shape[0], len(trees)), NODE)
    of_place = [
        ArrangedTree(tree.nodes, 0, tree.place).in_order(np.arange(tree.number.size))
        for tree in trees
    ]

    def block(begin: int, end: int) -> None:
        for t, stop in enumerate(descend(trees, values, begin, end)):
            out[begin:end, t] = of_place[t][stop]

    run_blocks(values, n_threads, before, block, walk, _size(values, out), len(trees))
    return out


def descend(trees: PackedForest, values: NDArray | SparseRows, begin: int, end: int) -> Int32s:
    """Packed nodes (trees, rows) that rows ``begin .. end`` reach."""
    if isinstance(values, SparseRows):
        return trees.zero_paths(values.shape[1]).descend(values, begin, end)
    taken, reached = values[begin:end], np.empty((len(trees), end - begin), NODE)
    for tree, stop in zip(trees, reached, strict=True):
        walk(taken, tree.nodes, int(tree.depth[0]), stop)
    return reached


def _size(values: NDArray | SparseRows, out: NDArray) -> int:
    """Number of rows that take `BLOCK_BYTES` with what is written for them."""
    if isinstance(values, SparseRows):
        return values.sparse_rows
    sizes = [table.shape[1] * table.dtype.itemsize for table in (values, out)]
    return max(BLOCK_BYTES // sum(sizes), 1)


@kernel
def add_answers(values: NDArray, trees: JoinedTrees, missing: bool | None, sums: Floats) -> None:
    """Add the predictions of trees for each row of `values` to `sums` (n, K).

    `missing` is None if no value is missing: then the descent takes 0.9 of the time.
    """
    stop = np.empty(len(sums), np.int32)
    for t in range(trees.depth.size):
        begin, end = trees.node_ends[t], trees.node_ends[t + 1]
        nodes, number = trees.nodes.nodes[begin:end], trees.number[begin:end]
        tree = DescentTree(nodes, trees.nodes.target, trees.nodes.lists, missing)
        walk(values, tree, trees.depth[t], stop)
        add_stops(stop, number, trees.predictions, sums)


@kernel
def add_reached(reached: Int32s, trees: JoinedTrees, sums: Floats) -> None:
    """Add the predictions of the packed nodes `reached` (trees, n) to `sums` (n, K)."""
    for t in range(trees.depth.size):
        number = trees.number[trees.node_ends[t] : trees.node_ends[t + 1]]
        add_stops(reached[t], number, trees.predictions, sums)


@borrowing
def add_stops(stop: Int32s, number: NDArray[np.uint32], predictions: Floats, sums: Floats) -> None:
    """Add the predictions of the packed nodes of one tree, one a row, to `sums` (n, K)."""
    n, n_classes = sums.shape
    for r in range(n):
        found = number[np.uintp(stop[r])]
        if n_classes > FEW_CLASSES and found < n_classes:  # zeros change no sum
            sums[r, found] += 1.0
        else:
            for k in range(n_classes):
                sums[r, k] += predictions[found, k]
