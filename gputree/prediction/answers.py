"""What a tree says of rows: where they end, by which nodes, with which classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gputree.compilation.decorators import Kernel
from gputree.dtypes import MISSING_TO_ALL, NODE
from gputree.prediction.descent import arrange, leaf_depths, pack, walk
from gputree.prediction.shares import Parts, list_stops, mix, portions, settle, soft_of
from gputree.threads import run
from gputree.tree import Tree

# Of the first block if the kernel may be interpreted; the next ones double. How long rows take to
# descend depends on the depth, which is seen from the blocks before.
FIRST_ROWS = 32
BLOCK_ROWS = 1 << 14  # at once: 1,000,000 x 28, 12.5 ms; 13.3 with 2**13, 14.2 with 2**11
FEWEST_ROWS = 1 << 14  # rows a thread is worth waking for


def apply(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
) -> NDArray[np.int32]:
    """Index of the node that each row reaches.

    That is a leaf, or an inner node whose test has no branch for the row's value. Where a
    missing value goes down all branches, it is the node that the largest fraction of the row
    reaches; of equals, the one with the lowest index.

    Parameters
    ----------
    tree : Tree
    values : float32 or float64 array of shape (n_rows, n_features)
        Codes of categories, -1 where unknown; NaN where missing.
    n_threads : int
    before : callable, optional
        Called with the first and last row of each block before the descent, to read the rows while
        they are in the cache.

    Returns
    -------
    nodes : int32 array of shape (n_rows,)
    """
    parts = _parts(tree)
    if parts is None:
        return take(tree, values, np.arange(tree.n_nodes, dtype=NODE), n_threads, before)
    packed, depths, soft = pack(tree, values.dtype), leaf_depths(tree), soft_of(tree)
    stop = np.zeros(values.shape[0], NODE)

    def block(begin: int, end: int) -> None:
        if soft is None:
            walk(values, begin, end, *packed, depths, stop)
        settle(values, begin, end, *packed, parts, soft, stop)

    _run_blocks(values.shape[0], n_threads, before, block, settle)
    return stop


def take(
    tree: Tree,
    values: NDArray,
    of_node: NDArray[Any],
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
) -> NDArray[Any]:
    """What `of_node` has for the node that each row reaches; see `apply`.

    Parameters
    ----------
    tree : Tree
        Without fractional weights.
    values : float32 or float64 array of shape (n_rows, n_features)
    of_node : array of shape (N, ...)
    n_threads, before
        As in `apply`.

    Returns
    -------
    array of shape (n_rows, ...)
    """
    packed, place = arrange(pack(tree, values.dtype), values.shape[0])
    depths, of_node = leaf_depths(tree), np.ascontiguousarray(of_node)
    if place is not None:
        moved = np.empty_like(of_node)
        moved[place] = of_node
        of_node = moved
    out = np.empty((values.shape[0], *of_node.shape[1:]), of_node.dtype)

    def block(begin: int, end: int) -> None:
        stop = np.empty(end - begin, NODE)
        walk(values[begin:end], 0, end - begin, *packed, depths, stop)
        np.take(of_node, stop, axis=0, out=out[begin:end], mode="clip")

    _run_blocks(values.shape[0], n_threads, before, block, walk)
    return out


def class_distributions(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
    answers: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Probability of each class in the node that predicts each row; the mean target in regression.

    Where a missing value goes down all branches, a row's prediction is the sum of the predictions
    of the nodes that its parts reach, weighted by their fractions. A node without weight predicts
    as its nearest ancestor with weight does.

    Parameters
    ----------
    tree : Tree
    values, n_threads, before
        As in `apply`.
    answers : float64 array of shape (N, K), or None
        What nodes predict, instead of their class proportions.

    Returns
    -------
    distributions : float64 array of shape (n_rows, K)

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993. Section 3.2.
    """
    parts = _parts(tree)
    answer = np.ascontiguousarray(tree.value[:, 0] if answers is None else answers)
    if parts is None:
        return take(tree, values, answer, n_threads, before)
    packed, depths, soft = pack(tree, values.dtype), leaf_depths(tree), soft_of(tree)
    stop = np.zeros(values.shape[0], NODE)
    out = np.empty((values.shape[0], tree.n_classes))

    def block(begin: int, end: int) -> None:
        if soft is None:
            walk(values, begin, end, *packed, depths, stop)
        mix(values, begin, end, *packed, parts, soft, stop, answer, out)

    _run_blocks(values.shape[0], n_threads, before, block, mix)
    return out


def stopping_shares(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
) -> csr_matrix:
    """Fraction of each row that stops at each node.

    Parameters
    ----------
    tree : Tree
    values, n_threads, before
        As in `apply`.

    Returns
    -------
    shares : CSR matrix of shape (n_rows, n_nodes)
        Rows add up to 1, but for rounding; one entry per row if no row is split.
    """
    n, parts = values.shape[0], _parts(tree)
    if parts is None:
        stop = apply(tree, values, n_threads, before)
        return csr_matrix((np.ones(n), stop, np.arange(n + 1)), shape=(n, tree.n_nodes))
    packed, depths, soft = pack(tree, values.dtype), leaf_depths(tree), soft_of(tree)
    stop, count = np.zeros(n, NODE), np.zeros(n + 1, np.int64)

    def block(begin: int, end: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        if soft is None:
            walk(values, begin, end, *packed, depths, stop)
        return list_stops(values, begin, end, *packed, parts, soft, stop, count[1:])

    lists = _run_blocks(n, n_threads, before, block, list_stops)
    nodes = np.concatenate([node for node, _ in lists]) if lists else np.empty(0, NODE)
    shares = np.concatenate([share for _, share in lists]) if lists else np.empty(0)
    return csr_matrix((shares, nodes, np.cumsum(count)), shape=(n, tree.n_nodes))


def decision_path(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Callable[[int, int], object] | None = None,
) -> csr_matrix:
    """Nodes that each row, or a part of it, passes.

    Parameters
    ----------
    tree : Tree
    values, n_threads, before
        As in `apply`.

    Returns
    -------
    indicator : CSR matrix of shape (n_rows, n_nodes)
        1 where the row passes the node.
    """
    if _parts(tree) is None:
        return _paths(tree, apply(tree, values, n_threads, before))
    stops = stopping_shares(tree, values, n_threads, before)
    reached, place = np.unique(stops.indices, return_inverse=True)
    shape = values.shape[0], reached.size
    rows = csr_matrix((np.ones(place.size, np.int64), place, stops.indptr), shape=shape)
    passed = rows @ _paths(tree, reached.astype(NODE))
    passed.sort_indices()
    passed.data[:] = 1
    return passed


def _paths(tree: Tree, nodes: NDArray[np.int32]) -> csr_matrix:
    """Each of `nodes` and its ancestors, as an indicator matrix (len(nodes), n_nodes)."""
    lengths = tree.depth[nodes] + 1
    ends = np.cumsum(lengths)
    passed = np.empty(int(ends[-1]) if ends.size else 0, np.int64)
    node, row = nodes, np.arange(nodes.size)
    while row.size:
        passed[ends[row] - lengths[row] + tree.depth[node]] = node
        node = tree.parent[node]
        row, node = row[node >= 0], node[node >= 0]
    indptr = np.concatenate([[0], ends])
    ones = np.ones(passed.size, dtype=np.int64)
    return csr_matrix((ones, passed, indptr), shape=(nodes.size, tree.n_nodes))


def _parts(tree: Tree) -> Parts | None:
    """How rows are spread over children; None where they never are."""
    spreads = tree.soft_lower is not None or (tree.missing_child == MISSING_TO_ALL).any()
    return portions(tree) if spreads else None


def _run_blocks(
    n: int,
    n_threads: int,
    before: Callable[[int, int], object] | None,
    block: Callable[[int, int], Any],
    kernel: Kernel,
) -> list[Any]:
    """Results of `block` for consecutive blocks of n rows, in order; `before` first, if given.

    The `kernel` is the last that a block calls.
    """
    parts = max(min(n_threads, n // FEWEST_ROWS), 1)
    bounds = [n * i // parts for i in range(parts + 1)]

    def task(i: int) -> list[Any]:
        results, begin = [], bounds[i]
        size = BLOCK_ROWS if kernel.is_loaded else FIRST_ROWS
        while begin < bounds[i + 1]:
            end = min(begin + size, bounds[i + 1])
            if before is not None:
                before(begin, end)
            results.append(block(begin, end))
            begin, size = end, min(2 * size, BLOCK_ROWS)
        return results

    lists = run(parts, task, [(i,) for i in range(parts)])
    return [result for results in lists for result in results]
