r"""Descent of rows with fractional weights: C4.5 sends a missing value down all branches.

The nodes that a row visits are listed in ascending order of their numbers:

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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import MISSING_TO_ALL, Bools, Floats, Int32s, Int64s
from gputree.compilation import inner, kernel
from gputree.prediction.descent import DescentTree, step
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
    """Copy `values` to an array of the given size."""
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
