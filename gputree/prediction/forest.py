"""Predictions of the trees of a forest, summed in the order of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE
from gputree.compilation import kernel
from gputree.prediction.answers import Before, run_blocks
from gputree.prediction.descent import DescentTree, arrange, walk
from gputree.tree import Tree

# Rows that descend one tree after the other: a tree stays in a cache while they do. 200,000 rows
# and 10 trees of 27,000 nodes, CPU ms with 2**12, 2**14, 2**16, 2**17: 215, 133, 108, 101.
BLOCK_ROWS = 1 << 17


class PackedTree(NamedTuple):
    """A tree of N nodes in the form in which rows descend it."""

    nodes: DescentTree
    depths: tuple[int, int]  # the minimum and the maximum depth of a leaf
    place: NDArray[np.int32] | None  # (N,) new places of the nodes, if they have moved
    predictions: NDArray[np.float64]  # (N, K) predictions, in the order of the packed nodes


def pack_tree(tree: Tree, dtype: Any) -> PackedTree:
    """Pack a binary tree for rows of float32 or float64 values, depth-first where that pays."""
    arranged = arrange(tree, dtype)
    return PackedTree(*arranged, arranged.in_order(tree.value[:, 0]))


def mean_answers(
    trees: Sequence[PackedTree], values: NDArray, n_threads: int = 1, before: Before = None
) -> NDArray[np.float64]:
    """Mean over trees of the prediction of each row's node.

    Sums are in the order of the trees, so that they depend neither on threads nor on blocks.

    Parameters
    ----------
    trees : sequence of PackedTree
    values : float32 or float64 array of shape (n_rows, n_features)
    n_threads, before
        As in `gputree.prediction.apply`.

    Returns
    -------
    float64 array of shape (n_rows, K)
    """
    out = np.zeros((values.shape[0], trees[0].predictions.shape[1]))

    def block(begin: int, end: int) -> None:
        stop = np.empty(end - begin, NODE)
        rows, sums = values[begin:end], out[begin:end]
        for tree in trees:
            add_answers(rows, tree.nodes, tree.depths, stop, tree.predictions, sums)

    run_blocks(values.shape[0], n_threads, before, block, add_answers, BLOCK_ROWS)
    out /= len(trees)
    return out


def leaves(
    trees: Sequence[PackedTree], values: NDArray, n_threads: int = 1, before: Before = None
) -> NDArray[np.int32]:
    """Index of the node that each row reaches in each tree, of shape (n_rows, trees)."""
    out = np.empty((values.shape[0], len(trees)), NODE)
    back = [None if tree.place is None else np.argsort(tree.place) for tree in trees]

    def block(begin: int, end: int) -> None:
        stop = np.empty(end - begin, NODE)
        for t, tree in enumerate(trees):
            walk(values[begin:end], 0, end - begin, tree.nodes, tree.depths, stop)
            numbers = back[t]
            out[begin:end, t] = stop if numbers is None else numbers[stop]

    run_blocks(values.shape[0], n_threads, before, block, walk, BLOCK_ROWS)
    return out


@kernel
def add_answers(
    values: NDArray,
    tree: DescentTree,
    depths: tuple[int, int],
    stop: NDArray[np.int32],
    predictions: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add the row of `predictions` (N, K) for the node of each row of `values` to `sums` (n, K)."""
    walk(values, 0, stop.size, tree, depths, stop)
    for r in range(stop.size):
        for k in range(sums.shape[1]):
            sums[r, k] += predictions[stop[r], k]
