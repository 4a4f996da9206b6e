r"""Predictions of a tree: leaf indices, class distributions, decision paths.

C4.5 sends a missing value down all branches, with fractional weights. The nodes that a row visits
are listed in ascending order of their numbers:

    node    0    share 1        missing: 0.6 | 0.4 by the weights of the children
           / \
          1   2        0.6 stops at 1, 0.4 goes on to 5
             / \
            4   5

Where thresholds are soft (Quinlan 1993, chapter 8), a number between their bounds goes to both
children, with fractional weights that change linearly: 1 and 0 at the lower bound, halves at the
threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gputree.base.dtypes import MISSING_TO_ALL, NODE, Bools, Floats, Int32s, Int64s
from gputree.base.threads import run
from gputree.compilation import inner, kernel
from gputree.compilation.decorators import Kernel
from gputree.prediction.descent import DescentTree, arranged, packed, step, walk
from gputree.prediction.sparse import SparseRows, ZeroPaths
from gputree.tree import Tree


class ChildShares(NamedTuple):
    """Fractional weights of children, arrays of shape (N,)."""

    spreads: Bools  # nodes that send rows without a branch to all children
    first_child: Int32s
    n_children: Int32s
    portion: Floats  # a node's weight, as a fraction of its siblings' and its weights


class Soft(NamedTuple):
    """Soft thresholds: between `lower` and `upper`, arrays of shape (N,)."""

    feature: Int32s
    lower: Floats
    threshold: Floats
    upper: Floats


class Descent(NamedTuple):
    """Rows and the tree that they descend."""

    values: NDArray  # (n, d): NaN where missing
    tree: DescentTree
    parts: ChildShares
    soft: Soft | None


def portions(tree: Tree) -> ChildShares:
    """Fractional weights of children by weights of nodes; a row stays where no child has weight."""
    below = np.zeros(tree.n_nodes)
    np.add.at(below, tree.parent[1:], tree.weight[1:])
    above = np.append(1.0, below[tree.parent[1:]])
    portion = np.divide(tree.weight, above, out=np.zeros(tree.n_nodes), where=above > 0)
    spreads = (tree.missing_child == MISSING_TO_ALL) & (below > 0)
    return ChildShares(spreads, tree.first_child, tree.n_children, portion)


def soft_of(tree: Tree) -> Soft | None:
    """Soft thresholds, if the tree has any."""
    if tree.soft_lower is None or tree.soft_upper is None:
        return None
    feature = np.maximum(tree.feature, 0)
    return Soft(feature, tree.soft_lower, tree.threshold, tree.soft_upper)


@inner
def part_of(x: float, low: float, high: float) -> float:
    """Relative position of x between two numbers, whose difference may exceed all floats."""
    if high - low < np.inf:
        return (x - low) / (high - low)
    return (0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low)


@inner
def share_below(x: float, lower: float, threshold: float, upper: float) -> float:
    """Fraction for the first child between the bounds: 1 at `lower`, a half at `threshold`."""
    if x <= threshold:
        return 1.0 - 0.5 * part_of(x, lower, threshold)
    return 0.5 - 0.5 * part_of(x, threshold, upper)


@inner
def spread(descent: Descent, soft: Soft | None, row: int, node: Int32s, share: Floats) -> int:
    """Send a row on from ``node[0]``; returns the number of nodes it visits.

    They are written to `node`, ascending, and the fraction that stops at each to `share`, 0 where
    all goes on. `soft` is the one of `descent`, an argument since numba omits the branch if it is
    None.
    """
    values, tree, parts, _ = descent
    share[0] = 1.0
    visited = 1
    i = 0
    while i < visited:
        index = node[i]
        if soft is not None:
            x = np.float64(values[row, soft.feature[index]])
            if soft.lower[index] < x < soft.upper[index]:
                left = share_below(x, soft.lower[index], soft.threshold[index], soft.upper[index])
                first = parts.first_child[index]
                node[visited], share[visited] = first, share[i] * left
                node[visited + 1], share[visited + 1] = first + 1, share[i] * (1.0 - left)
                visited += 2
                share[i] = 0.0
                i += 1
                continue
        below = step(values, row, tree, index)
        if below != index:
            node[visited], share[visited] = below, share[i]
            visited += 1
            share[i] = 0.0
        elif parts.spreads[index]:
            first = parts.first_child[index]
            for child in range(first, first + parts.n_children[index]):
                if parts.portion[child] > 0.0:
                    node[visited], share[visited] = child, share[i] * parts.portion[child]
                    visited += 1
            share[i] = 0.0
        i += 1
    return visited


@kernel
def settle(descent: Descent, stop: Int32s) -> None:
    """Write the node with the largest fraction to `stop` for rows at nodes that divide them."""
    n_nodes, parts, soft = descent.tree.nodes.size, descent.parts, descent.soft
    node, share = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    for row in range(stop.size):
        if soft is None and not parts.spreads[stop[row]]:
            continue
        node[0] = stop[row]
        visited = spread(descent, soft, row, node, share)
        stop[row] = node[np.argmax(share[:visited])]


@kernel
def mix(descent: Descent, stop: Int32s, out: Floats, predictions: Floats) -> None:
    """Write the prediction of each row's node, or the weighted sum of its nodes, to `out`."""
    n_nodes, parts, soft = descent.tree.nodes.size, descent.parts, descent.soft
    node, share = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    for row in range(stop.size):
        node[0], share[0], visited = stop[row], 1.0, 1
        if soft is not None or parts.spreads[stop[row]]:
            visited = spread(descent, soft, row, node, share)
        for k in range(predictions.shape[1]):
            out[row, k] = share[0] * predictions[node[0], k]
        for i in range(1, visited):
            if share[i] > 0.0:
                for k in range(predictions.shape[1]):
                    out[row, k] += share[i] * predictions[node[i], k]


@inner
def _copy(values: NDArray, size: int) -> NDArray:
    longer = np.empty(size, values.dtype)
    for i in range(values.size):
        longer[i] = values[i]
    return longer


@kernel
def list_stops(descent: Descent, stop: Int32s, count: Int64s) -> tuple[Int32s, Floats]:
    """List the nodes where parts of rows stop, and their fractions; numbers per row to `count`."""
    n_nodes, parts, soft = descent.tree.nodes.size, descent.parts, descent.soft
    node, share = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    all_nodes, all_shares = np.empty(stop.size, np.int32), np.empty(stop.size)
    n = 0
    for row in range(stop.size):
        node[0], share[0], visited = stop[row], 1.0, 1
        if soft is not None or parts.spreads[stop[row]]:
            visited = spread(descent, soft, row, node, share)
        if n + visited > all_nodes.size:
            size = 2 * (n + visited)
            all_nodes, all_shares = _copy(all_nodes, size), _copy(all_shares, size)
        for i in range(visited):
            if share[i] > 0.0:
                all_nodes[n], all_shares[n] = node[i], share[i]
                n += 1
                count[row] += 1
    return all_nodes[:n], all_shares[:n]


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

    rows = None
    if isinstance(values, SparseRows):
        paths, rows = tree.derive(_zero_paths, values.dtype), values.sparse_rows

    def block(begin: int, end: int) -> None:
        if isinstance(values, SparseRows):
            (stop,) = paths.descend(values, begin, end)
        else:
            stop = np.empty(end - begin, NODE)
            walk(values[begin:end], descent.nodes, descent.depth, stop)
        np.take(of_node, stop, axis=0, out=out[begin:end], mode="clip")

    run_blocks(values, n_threads, before, block, walk, rows)
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
    n = len(values)
    if rows is None:
        rows = values.block_rows if isinstance(values, SparseRows) else BLOCK_ROWS
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
