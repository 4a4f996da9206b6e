"""Predictions of the trees of a forest, summed in the order of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE, Floats, Int32s, Int64s
from gputree.compilation import kernel
from gputree.prediction.answers import Before, run_blocks
from gputree.prediction.descent import ArrangedTree, DescentTree, arrange, walk
from gputree.tree import Tree

# Bytes of rows that descend one tree after the other, and of their sums: a tree stays in a cache
# while they do, and they in a larger one until the next tree. ns a row and tree with 2**20, 2**23,
# 2**25 bytes: 61,000 nodes a tree 68, 43, 42; 1,300 nodes, 41 columns and 36 classes 31, 35, 65.
BLOCK_BYTES = 1 << 23

FEW_CLASSES = 4  # up to so many are added faster than it is found that one has all weight


class PackedTree(NamedTuple):
    """A tree of N nodes in the form in which rows descend it."""

    nodes: DescentTree
    depth: int
    place: Int32s | None  # (N,) new places of the nodes, if they have moved
    number: NDArray[np.uint32]  # (N,) of the prediction of each packed node
    predictions: Floats  # (M, K): each of the K classes with probability 1, then all others


class JoinedTrees(NamedTuple):
    """T packed trees, one after the other; each numbers its nodes and predictions from 0."""

    nodes: DescentTree
    depth: Int64s  # (T,)
    node_ends: Int64s  # (T + 1,) number of nodes of all trees before each, and of all
    prediction_ends: Int64s
    number: NDArray[np.uint32]
    predictions: Floats

    @classmethod
    def of(cls, trees: Sequence[PackedTree]) -> JoinedTrees:
        """Join one tree, or several of thresholds."""
        number = [tree.number for tree in trees]
        predictions = [tree.predictions for tree in trees]
        nodes = np.concatenate([tree.nodes.nodes.view(np.uint8) for tree in trees])  # not by field
        return cls(
            trees[0].nodes._replace(nodes=nodes.view(trees[0].nodes.nodes.dtype)),
            np.array([tree.depth for tree in trees]),
            *(np.cumsum([0, *map(len, arrays)]) for arrays in (number, predictions)),
            *(np.concatenate(arrays) for arrays in (number, predictions)),
        )

    def part(self, t: int, place: Int32s | None) -> PackedTree:
        """Tree t, whose arrays are parts of these."""
        nodes = slice(*self.node_ends[t : t + 2])
        predictions = self.predictions[slice(*self.prediction_ends[t : t + 2])]
        descent = self.nodes._replace(nodes=self.nodes.nodes[nodes])
        return PackedTree(descent, int(self.depth[t]), place, self.number[nodes], predictions)


class PackedForest(list[PackedTree]):
    """Packed trees, joined for a kernel that has rows descend all; one by one with categories."""

    def __init__(self, trees: Sequence[PackedTree]) -> None:
        apart = any(tree.nodes.target is not None for tree in trees)
        groups = [[tree] for tree in trees] if apart else [trees]
        self.joined = [JoinedTrees.of(group) for group in groups]
        for one, group in zip(self.joined, groups, strict=True):
            self += [one.part(t, tree.place) for t, tree in enumerate(group)]


def pack_tree(tree: Tree, dtype: Any) -> PackedTree:
    """Pack a binary tree for rows of float32 or float64 values, depth-first where that pays."""
    return with_answers(arrange(tree, dtype), np.arange(tree.n_nodes), tree.predictions, False)


def with_answers(
    arranged: ArrangedTree, nodes: Int64s, answers: NDArray, are_weights: bool
) -> PackedTree:
    """Add the predictions (L, K) of the given nodes, or their class weights."""
    number = np.zeros(arranged.nodes.nodes.size, np.uint32)
    found = np.empty(nodes.size, np.uint32)
    number_answers(answers, are_weights, found)
    number[nodes if arranged.place is None else arranged.place[nodes]] = found
    single = np.eye(answers.shape[1])
    others = answers[found >= len(single)].astype(np.float64)
    if are_weights:
        others /= others.sum(axis=1, keepdims=True)
    return PackedTree(*arranged, number, np.concatenate([single, others]))


@kernel
def number_answers(answers: NDArray, are_weights: bool, number: NDArray[np.uint32]) -> None:
    """Number predictions (L, K): those of one class by this class, all others from K on."""
    n, n_classes = answers.shape
    others = n_classes
    for i in range(n):
        found, positive = 0, 0
        for k in range(n_classes):
            if answers[i, k] != 0:
                found, positive = k, positive + 1
        if positive != 1 or not (are_weights or answers[i, found] == 1):
            found, others = others, others + 1
        number[i] = found


def mean_answers(
    trees: PackedForest, values: NDArray, n_threads: int = 1, before: Before = None
) -> Floats:
    """Mean over trees of the prediction of each row's node, of shape (n_rows, K).

    Sums are in the order of the trees, so that they depend neither on threads nor on blocks.
    `before` returns False if no value is missing; see `gputree.prediction.apply` for the others.
    """
    out = np.zeros((values.shape[0], trees[0].predictions.shape[1]))

    def block(begin: int, end: int) -> None:
        missing = None if before is not None and before(begin, end) is False else True
        for joined in trees.joined:
            add_answers(values[begin:end], joined, missing, out[begin:end])

    run_blocks(len(out), n_threads, None, block, add_answers, _size(values, out), len(trees))
    out /= len(trees)
    return out


def leaves(
    trees: Sequence[PackedTree], values: NDArray, n_threads: int = 1, before: Before = None
) -> Int32s:
    """Index of the node that each row reaches in each tree, of shape (n_rows, trees)."""
    out = np.empty((values.shape[0], len(trees)), NODE)
    of_place = [ArrangedTree(*tree[:3]).in_order(np.arange(tree.number.size)) for tree in trees]

    def block(begin: int, end: int) -> None:
        stop = np.empty(end - begin, NODE)
        for t, tree in enumerate(trees):
            walk(values[begin:end], tree.nodes, tree.depth, stop)
            out[begin:end, t] = of_place[t][stop]

    run_blocks(len(out), n_threads, before, block, walk, _size(values, out), len(trees))
    return out


def _size(*tables: NDArray) -> int:
    """Number of rows of all tables (n, ...) that are `BLOCK_BYTES` together."""
    return max(BLOCK_BYTES // sum(table.shape[1] * table.itemsize for table in tables), 1)


@kernel
def add_answers(values: NDArray, trees: JoinedTrees, missing: bool | None, sums: Floats) -> None:
    """Add the predictions of trees for each row of `values` to `sums` (n, K).

    `missing` is None if no value is missing: then the descent takes 0.9 of the time.
    """
    n, n_classes = sums.shape
    stop = np.empty(n, np.int32)
    for t in range(trees.depth.size):
        begin, end = trees.node_ends[t], trees.node_ends[t + 1]
        nodes, number = trees.nodes.nodes[begin:end], trees.number[begin:end]
        predictions = trees.predictions[trees.prediction_ends[t] : trees.prediction_ends[t + 1]]
        tree = DescentTree(nodes, trees.nodes.target, trees.nodes.lists, missing)
        walk(values, tree, trees.depth[t], stop)
        for r in range(n):
            found = number[np.uintp(stop[r])]
            if n_classes > FEW_CLASSES and found < n_classes:  # zeros change no sum
                sums[r, found] += 1.0
            else:
                for k in range(n_classes):
                    sums[r, k] += predictions[found, k]
