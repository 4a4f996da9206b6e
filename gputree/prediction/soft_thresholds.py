"""Soft thresholds: bounds between which both sides of a cut predict (Quinlan 1993, chapter 8).

A threshold is moved to the values below and above it while the rest of the tree stays. Where
the errors that the node's training rows would make exceed those of the threshold itself by more
than their standard deviation, it has been moved too far: the bound is there, linear between
two values. Errors E among weight N have the deviation ``sqrt((E + 0.5) (N - E + 0.5) / (N + 1))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE, THRESHOLD_SPLIT, Bools, Floats, Int32s, Int64s
from gputree.compilation import kernel
from gputree.prediction.descent import pack, step
from gputree.prediction.shares import Descent, portions, spread
from gputree.tree import Tree


class _Arrived(NamedTuple):
    """Parts of rows at nodes of one level: their rows, nodes and weights."""

    row: Int64s
    node: NDArray[Any]
    weight: Floats

    def take(self, entries: NDArray) -> _Arrived:
        return _Arrived(*(field[entries] for field in self))


def soften(tree: Tree, values: NDArray, target: NDArray, weight: Floats | None) -> Tree:
    """The tree, of classes and pruned, with bounds of its thresholds by the rows it grew on."""
    lower, upper = tree.threshold.copy(), tree.threshold.copy()
    descent = Descent(values, pack(tree, values.dtype), portions(tree), None)
    prediction = np.ascontiguousarray(tree.predictions)
    n = target.size
    arrived = _Arrived(np.arange(n), np.zeros(n, NODE), np.ones(n) if weight is None else weight)
    arrived = arrived.take(arrived.weight > 0.0)
    while (arrived := arrived.take(~tree.is_leaf[arrived.node])).row.size:
        x = values[arrived.row, tree.feature[arrived.node]].astype(np.float64)
        tested = (tree.split_kind[arrived.node] == THRESHOLD_SPLIT) & ~np.isnan(x)
        here = arrived.take(tested)
        first = tree.first_child[here.node]
        wrong = [
            _labels(descent, here.row, first + np.int32(side), prediction) != target[here.row]
            for side in (0, 1)
        ]
        for node, rows in _by_node(here, x[tested], wrong):
            errors = [here.weight[rows] * side[rows] for side in wrong]
            total = float(here.weight[rows].sum())
            place = float(tree.threshold[node])
            lower[node], upper[node] = _bounds(x[tested][rows], errors, total, place)
        arrived = _descend(tree, descent, arrived)
    return replace(tree, soft_lower=lower, soft_upper=upper)


def _by_node(here: _Arrived, x: Floats, wrong: list[Bools]) -> Iterator[tuple[int, Int64s]]:
    """Yield the entries of each node by value; ties are broken independently of row order."""
    order = np.lexsort((*wrong, here.weight, x, here.node))
    nodes, first = np.unique(here.node[order], return_index=True)
    yield from zip(nodes.tolist(), np.split(order, first)[1:], strict=True)


def _bounds(x: Floats, errors: list[Floats], total: float, threshold: float) -> tuple[float, float]:
    """Values to which the threshold may be moved down and up.

    `x` ascends; `errors` are the costs of each entry on the first side and on the second, `total`
    is the weight of the entries.
    """
    last = np.append(np.flatnonzero(x[1:] > x[:-1]), x.size - 1)
    left = np.cumsum(errors[0])
    right = np.cumsum(errors[1])
    value, cost = x[last], (left + (right[-1] - right))[last]  # of a threshold at each value
    below = int(np.searchsorted(value, threshold, side="right"))
    base = float(cost[below - 1] if below else right[-1])
    limit = base + float(np.sqrt((base + 0.5) * max(total - base + 0.5, 0.0) / (total + 1.0)))
    down = _reach(value[:below][::-1], cost[:below][::-1], threshold, base, limit)
    up = _reach(value[below:], cost[below:], threshold, base, limit)
    # a zero is the positive one, in whatever order rows of both came
    return min(down, threshold) + 0.0, max(up, threshold) + 0.0


def _reach(value: Floats, cost: Floats, threshold: float, base: float, limit: float) -> float:
    """Value at which the cost first exceeds the limit on the way along `value`; its end if none."""
    before, spent = threshold, base
    for reached, now in zip(value.tolist(), cost.tolist(), strict=True):
        if now > limit:
            share = (now - limit) / (now - spent)
            return reached * (1.0 - share) + before * share
        before, spent = reached, now
    return before


def _descend(tree: Tree, descent: Descent, arrived: _Arrived) -> _Arrived:
    """The entries one level below; missing values go to every child, by weight."""
    below = _steps(descent, arrived.row, arrived.node)
    moved = below != arrived.node
    parted = arrived.take(~moved & descent.parts.spreads[arrived.node])
    count = tree.n_children[parted.node]
    owner = np.repeat(np.arange(count.size), count)
    child = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
    child = child + tree.first_child[parted.node][owner]
    share = parted.weight[owner] * descent.parts.portion[child]
    counts = share > 0.0
    return _Arrived(
        np.concatenate([arrived.row[moved], parted.row[owner][counts]]),
        np.concatenate([below[moved], child[counts]]),
        np.concatenate([arrived.weight[moved], share[counts]]),
    )


@kernel
def _steps(descent: Descent, row: Int64s, start: Int32s) -> Int32s:
    """The node below each entry's; itself where there is no single one."""
    below = np.empty(row.size, np.int32)
    for i in range(row.size):
        below[i] = step(descent.values, row[i], descent.tree, start[i])
    return below


@kernel
def _labels(descent: Descent, row: Int64s, start: Int32s, prediction: Floats) -> Int64s:
    """The class that the subtree of `start` predicts each row with."""
    n_nodes = descent.tree.nodes.size
    node, share = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    total, label = np.empty(prediction.shape[1]), np.empty(row.size, np.int64)
    for i in range(row.size):
        node[0] = start[i]
        visited = spread(descent, None, row[i], node, share)
        total[:] = 0.0
        for j in range(visited):
            total += share[j] * prediction[node[j]]
        label[i] = np.argmax(total)
    return label
