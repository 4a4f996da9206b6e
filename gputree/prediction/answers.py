"""Predictions of a tree: leaf indices, class distributions, decision paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gputree.base.dtypes import MISSING_TO_ALL, NODE, Floats, Int32s
from gputree.base.threads import run
from gputree.compilation.decorators import Kernel
from gputree.prediction.descent import arranged, packed, walk
from gputree.prediction.shares import Descent, list_stops, mix, portions, settle, soft_of
from gputree.prediction.sparse import SparseRows
from gputree.prediction.zero_paths import ZeroPaths
from gputree.tree import Tree

# Called with the first and last row of each block of rows.
Before = Callable[[int, int], object] | None

# Size of the first block if the kernel may be interpreted; the next ones double. The time of the
# descent depends on the depth, which is estimated from the blocks before.
FIRST_ROWS = 32
BLOCK_ROWS = 1 << 14
FEWEST_ROWS = 1 << 14  # minimum number of rows for another thread, times the trees they descend


def apply(tree: Tree, values: NDArray, n_threads: int = 1, before: Before = None) -> Int32s:
    """Index of the node that each row reaches.

    That is a leaf, or an inner node whose test has no branch for the row's value. Where a missing
    value goes down all branches, it is the node that the largest fraction of the row reaches; of
    equals, the one with the lowest index. `values` are float32 or float64, of shape (n_rows,
    n_features): codes of categories, -1 where unknown; NaN where missing. `before` is called with
    the first and last row of each block before the descent, to read the rows while they are in the
    cache.
    """
    if not _spreads(tree):
        return take(tree, values, np.arange(tree.n_nodes, dtype=NODE), n_threads, before)
    stop = np.zeros(values.shape[0], NODE)
    _run_spread(settle, tree, values, n_threads, before, [stop])
    return stop


def take(
    tree: Tree, values: NDArray, of_node: NDArray[Any], n_threads: int = 1, before: Before = None
) -> NDArray[Any]:
    """Row of `of_node`, of shape (N, ...), for the node that each row reaches; see `apply`.

    The tree has no fractional weights.
    """
    descent = arranged(tree, values.dtype)
    of_node = descent.in_order(of_node)
    out = np.empty((values.shape[0], *of_node.shape[1:]), of_node.dtype)

    paths = None
    if isinstance(values, SparseRows) and descent.nodes.target is None:
        paths = tree.derive(_zero_paths, values.dtype)
        paths = paths if paths.is_faster(values) else None

    def block(begin: int, end: int) -> None:
        if paths is None:
            stop = np.empty(end - begin, NODE)
            walk(values[begin:end], descent.nodes, descent.depth, stop)
        else:
            (stop,) = paths.descend(values, begin, end)
        np.take(of_node, stop, axis=0, out=out[begin:end], mode="clip")

    run_blocks(values if paths is None else out, n_threads, before, block, walk)
    return out


def _zero_paths(tree: Tree, dtype: Any) -> ZeroPaths:
    nodes = arranged(tree, dtype).nodes.nodes
    return ZeroPaths.of(nodes, np.array([0, nodes.size]), tree.n_features)


def class_distributions(
    tree: Tree,
    values: NDArray,
    n_threads: int = 1,
    before: Before = None,
    answers: Floats | None = None,
) -> Floats:
    """Probability of each class in the node that predicts each row; the mean target in regression.

    Where a missing value goes down all branches, a row's prediction is the sum of the predictions
    of the nodes that its parts reach, weighted by their fractions (Quinlan 1993, section 3.2). A
    node without weight predicts as its nearest ancestor with weight does. `answers`, of shape (N,
    K), are what nodes predict instead of their class proportions; see `apply` for the others.
    """
    predictions = np.ascontiguousarray(tree.predictions if answers is None else answers)
    if not _spreads(tree):
        return take(tree, values, predictions, n_threads, before)
    out = np.empty((values.shape[0], tree.n_classes))
    stop = np.zeros(values.shape[0], NODE)
    _run_spread(mix, tree, values, n_threads, before, [stop, out], predictions)
    return out


def stopping_shares(
    tree: Tree, values: NDArray, n_threads: int = 1, before: Before = None
) -> csr_matrix:
    """Fraction of each row that stops at each node, of shape (n_rows, n_nodes); see `apply`.

    Rows add up to 1, except for rounding; one entry per row if no row is split.
    """
    n = values.shape[0]
    if not _spreads(tree):
        stop = apply(tree, values, n_threads, before)
        return csr_matrix((np.ones(n), stop, np.arange(n + 1)), shape=(n, tree.n_nodes))
    stop, count = np.zeros(n, NODE), np.zeros(n + 1, np.int64)
    lists = _run_spread(list_stops, tree, values, n_threads, before, [stop, count[1:]])
    nodes = np.concatenate([node for node, _ in lists]) if lists else np.empty(0, NODE)
    shares = np.concatenate([share for _, share in lists]) if lists else np.empty(0)
    return csr_matrix((shares, nodes, np.cumsum(count)), shape=(n, tree.n_nodes))


def decision_path(
    tree: Tree, values: NDArray, n_threads: int = 1, before: Before = None
) -> csr_matrix:
    """1 where a row, or a part of it, passes a node, of shape (n_rows, n_nodes); see `apply`."""
    if not _spreads(tree):
        return _paths(tree, apply(tree, values, n_threads, before))
    stops = stopping_shares(tree, values, n_threads, before)
    reached, place = np.unique(stops.indices, return_inverse=True)
    shape = values.shape[0], reached.size
    rows = csr_matrix((np.ones(place.size, np.int64), place, stops.indptr), shape=shape)
    passed = rows @ _paths(tree, reached.astype(NODE))
    passed.sort_indices()
    passed.data[:] = 1
    return passed


def _paths(tree: Tree, nodes: Int32s) -> csr_matrix:
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


def _spreads(tree: Tree) -> bool:
    """Return True if rows may be divided among several children."""
    return tree.soft_lower is not None or bool((tree.missing_child == MISSING_TO_ALL).any())


def _run_spread(
    kernel: Kernel,
    tree: Tree,
    values: NDArray,
    n_threads: int,
    before: Before,
    by_row: Sequence[NDArray[Any]],
    *rest: NDArray[Any],
) -> list[Any]:
    """Results of a kernel of `shares` for consecutive blocks of rows.

    It takes the block's part of arrays `by_row`, of which the first has only zeros, and `rest`.
    """
    arguments = packed(tree, values.dtype), portions(tree), soft_of(tree)
    depth = tree.max_depth

    def block(begin: int, end: int) -> Any:
        descent = Descent(values[begin:end], *arguments)
        stop, *others = (array[begin:end] for array in by_row)
        if descent.soft is None:
            walk(descent.values, descent.tree, depth, stop)
        return kernel(descent, stop, *others, *rest)

    return run_blocks(values, n_threads, before, block, kernel)


def run_blocks(
    values: NDArray[Any] | SparseRows,
    n_threads: int,
    before: Before,
    block: Callable[[int, int], Any],
    kernel: Kernel,
    rows: int | None = None,
    trees: int = 1,
) -> list[Any]:
    """Results of `block` for consecutive blocks of rows, in order; `before` first, if given.

    The `kernel` is the last that a block calls; blocks of up to `rows` rows, or `BLOCK_ROWS`,
    descend `trees` trees.
    """
    n, rows = len(values), rows or BLOCK_ROWS
    if isinstance(values, SparseRows):
        rows = min(rows, values.block_rows)
    parts = max(min(n_threads, n * trees // FEWEST_ROWS, n), 1)
    bounds = [n * i // parts for i in range(parts + 1)]

    def task(i: int) -> list[Any]:
        results, begin = [], bounds[i]
        size = rows if kernel.is_loaded else min(rows, FIRST_ROWS)
        while begin < bounds[i + 1]:
            end = min(begin + size, bounds[i + 1])
            if before is not None:
                before(begin, end)
            results.append(block(begin, end))
            begin, size = end, min(2 * size, rows)
        return results

    lists = run(parts, task, [(i,) for i in range(parts)])
    return [result for results in lists for result in results]
