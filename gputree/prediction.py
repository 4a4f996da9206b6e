"""Prediction on the host: every row walks from the root to a leaf.

Eight rows walk side by side, so that their loads are under way together. Leaves point
at themselves: rows that stay where they are have arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gputree.dtypes import NODE
from gputree.tree import Tree

SIDE_BY_SIDE = 8  # rows at a time: 10 ms a million rows at depth 8, against 31 ms one by one
BLOCK_ROWS = 1 << 13  # rows of 28 float32 columns that fill half of a core's own cache
FEWEST_ROWS = 1 << 14  # rows a thread is worth waking for

_NODE = np.dtype(
    [("threshold", np.float64), ("feature", np.int32), ("child", np.int32), ("missing", np.int32)],
    align=True,
)


def pack(tree: Tree) -> NDArray:
    """The tree as one record a node; leaves send every value to themselves."""
    nodes = np.zeros(tree.n_nodes, _NODE)
    leaf = tree.is_leaf
    nodes["threshold"] = np.where(leaf, np.inf, tree.threshold)
    nodes["feature"] = np.where(leaf, 0, tree.feature)
    nodes["child"] = np.where(leaf, np.arange(tree.n_nodes), tree.first_child)
    nodes["missing"] = np.where(leaf, 0, tree.missing_child)
    return nodes


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def step(values: NDArray, row: int, nodes: NDArray, at: int) -> np.int64:
    """The node below `at` on the way of a row; a leaf itself."""
    node = nodes[at]
    x = np.float64(values[np.uintp(row), np.uintp(node.feature)])
    ordinal = np.int64(x > node.threshold)
    if x != x:
        ordinal = np.int64(node.missing)
    return np.int64(node.child) + ordinal


@njit(nogil=True, cache=True, error_model="numpy")
def walk(values: NDArray, begin: int, end: int, nodes: NDArray, out: NDArray[np.int32]) -> None:
    """Write the leaf of rows ``begin .. end`` of `values` (n, d), NaN where missing, to `out`."""
    paired = end - (end - begin) % SIDE_BY_SIDE
    for r in range(begin, paired, SIDE_BY_SIDE):
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.int64(0)
        moved = True
        while moved:
            b0 = step(values, r, nodes, a0)
            b1 = step(values, r + 1, nodes, a1)
            b2 = step(values, r + 2, nodes, a2)
            b3 = step(values, r + 3, nodes, a3)
            b4 = step(values, r + 4, nodes, a4)
            b5 = step(values, r + 5, nodes, a5)
            b6 = step(values, r + 6, nodes, a6)
            b7 = step(values, r + 7, nodes, a7)
            still = (a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)
            moved = (still | (a4 ^ b4) | (a5 ^ b5) | (a6 ^ b6) | (a7 ^ b7)) != 0
            a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
        out[r], out[r + 1], out[r + 2], out[r + 3] = a0, a1, a2, a3
        out[r + 4], out[r + 5], out[r + 6], out[r + 7] = a4, a5, a6, a7
    for r in range(paired, end):
        a0 = np.int64(0)
        b0 = step(values, r, nodes, a0)
        while b0 != a0:
            a0 = b0
            b0 = step(values, r, nodes, a0)
        out[r] = a0


def apply(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
) -> NDArray[np.int32]:
    """Index of the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree
        Binary, with threshold splits.
    values : float32 or float64 array of shape (n_rows, n_features)
        NaN where missing.
    n_threads : int
    before : callable, optional
        Called with the first and last row of each block before it walks: what else
        has to read the rows does so while they are in the cache.

    Returns
    -------
    leaves : int32 array of shape (n_rows,)
    """
    n = values.shape[0]
    out = np.empty(n, NODE)
    nodes = pack(tree)
    parts = max(min(n_threads, n // FEWEST_ROWS), 1)
    bounds = [n * i // parts for i in range(parts + 1)]

    def task(i: int) -> None:
        for begin in range(bounds[i], bounds[i + 1], BLOCK_ROWS):
            end = min(begin + BLOCK_ROWS, bounds[i + 1])
            if before is not None:
                before(begin, end)
            walk(values, begin, end, nodes, out)

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
