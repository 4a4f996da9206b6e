"""Prediction on the host: every row walks from the root to a leaf.

Rows walk in blocks, one level of the tree at a time, so that the loads of many rows
are under way together. Leaves point at themselves: a row that has arrived stays.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gputree.dtypes import NODE
from gputree.tree import Tree

BLOCK_ROWS = 256  # rows that walk together; 64 to 1,024 measured alike
FEWEST_ROWS = 1 << 14  # rows a thread is worth waking for

_NODE = np.dtype(
    [("threshold", np.float64), ("feature", np.int32), ("child", np.int32), ("missing", np.int32)],
    align=True,
)


class Walk(NamedTuple):
    """A binary tree of threshold splits as `walk` reads it: one record a node."""

    nodes: NDArray
    depth: int


def compile_walk(tree: Tree) -> Walk:
    """Pack a tree for walking. Leaves send every value to their "first child", themselves."""
    nodes = np.zeros(tree.n_nodes, _NODE)
    leaf = tree.is_leaf
    nodes["threshold"] = np.where(leaf, np.inf, tree.threshold)
    nodes["feature"] = np.where(leaf, 0, tree.feature)
    nodes["child"] = np.where(leaf, np.arange(tree.n_nodes), tree.first_child)
    nodes["missing"] = np.where(leaf, 0, tree.missing_child)
    return Walk(nodes, tree.max_depth)


@njit(nogil=True, cache=True, error_model="numpy")
def walk(
    values: NDArray, begin: int, end: int, nodes: NDArray, depth: int, out: NDArray[np.int32]
) -> None:
    """Write the leaf of rows ``begin .. end`` of `values` (n, d), NaN where missing, to `out`."""
    at = np.zeros(BLOCK_ROWS, np.int64)
    for block in range(begin, end, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, end - block)
        for i in range(rows):
            at[i] = 0
        for _ in range(depth):
            moved = 0
            for i in range(rows):
                node = nodes[at[i]]
                x = np.float64(values[block + i, node.feature])
                ordinal = np.int64(x > node.threshold)
                if x != x:
                    ordinal = np.int64(node.missing)
                following = node.child + ordinal
                moved |= following ^ at[i]
                at[i] = following
            if moved == 0:
                break
        for i in range(rows):
            out[block + i] = at[i]


def apply(tree: Tree, values: NDArray, n_threads: int = 1) -> NDArray[np.int32]:
    """Index of the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree
        Binary, with threshold splits.
    values : float32 or float64 array of shape (n_rows, n_features)
        NaN where missing.
    n_threads : int

    Returns
    -------
    leaves : int32 array of shape (n_rows,)
    """
    n = values.shape[0]
    out = np.empty(n, NODE)
    packed = compile_walk(tree)
    parts = max(min(n_threads, n // FEWEST_ROWS), 1)
    bounds = [n * i // parts for i in range(parts + 1)]

    def task(i: int) -> None:
        walk(values, bounds[i], bounds[i + 1], packed.nodes, packed.depth, out)

    if parts == 1:
        task(0)
    else:
        with ThreadPoolExecutor(parts) as pool:
            list(pool.map(task, range(parts)))
    return out


def decision_path(tree: Tree, leaves: NDArray[np.int32]) -> csr_matrix:
    """Nodes on the way to each row's leaf, as an indicator matrix (n_rows, n_nodes)."""
    lengths = tree.depth[leaves] + 1
    ends = np.cumsum(lengths)
    nodes = np.empty(int(ends[-1]) if ends.size else 0, np.int64)
    node, row = leaves, np.arange(leaves.size)
    while row.size:
        nodes[ends[row] - lengths[row] + tree.depth[node]] = node
        node = tree.parent[node]
        row, node = row[node >= 0], node[node >= 0]
    indptr = np.concatenate([[0], ends])
    ones = np.ones(nodes.size, dtype=np.int64)
    return csr_matrix((ones, nodes, indptr), shape=(leaves.size, tree.n_nodes))
