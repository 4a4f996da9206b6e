"""Soft thresholds: bounds between which both sides of a cut predict (Quinlan 1993, chapter 8).

A threshold is moved to the values below and above it while the rest of the tree stays. Where
the errors that the node's training rows would make exceed those of the threshold itself by more
than their standard deviation, it has been moved too far: there the bound lies, linear between
two values. Errors E among weight N have the deviation ``sqrt((E + 0.5) (N - E + 0.5) / (N + 1))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel
from gputree.dtypes import NODE, THRESHOLD_SPLIT
from gputree.prediction.descent import Packed, pack, step
from gputree.prediction.shares import Parts, portions, spread
from gputree.prediction.tables import Lists
from gputree.tree import Tree


class _Arrived(NamedTuple):
    """Parts of rows at nodes of one level: their rows, nodes and weights."""

    row: NDArray[np.int64]
    node: NDArray[Any]
    weight: NDArray[np.float64]

    def take(self, entries: NDArray) -> _Arrived:
        return _Arrived(*(field[entries] for field in self))


def soften(
    tree: Tree, values: NDArray, target: NDArray, weight: NDArray[np.float64] | None
) -> Tree:
    """The tree with bounds of its thresholds.

    Parameters
    ----------
    tree : Tree
        Classification tree, pruned.
    values : float32 or float64 array of shape (n, d)
        The rows that it was grown on, as its tests see them.
    target : class codes of shape (n,)
    weight : float64 array of shape (n,), or None

    Returns
    -------
    Tree
    """
    lower, upper = tree.threshold.copy(), tree.threshold.copy()
    packed, parts = pack(tree, values.dtype), portions(tree)
    answer = np.ascontiguousarray(tree.value[:, 0])
    n = target.size
    arrived = _Arrived(np.arange(n), np.zeros(n, NODE), np.ones(n) if weight is None else weight)
    arrived = arrived.take(arrived.weight > 0.0)
    while (arrived := arrived.take(~tree.is_leaf[arrived.node])).row.size:
        x = values[arrived.row, tree.feature[arrived.node]].astype(np.float64)
        tested = (tree.split_kind[arrived.node] == THRESHOLD_SPLIT) & ~np.isnan(x)
        here = arrived.take(tested)
        wrong = [
            _labels(
                values, here.row, tree.first_child[here.node] + np.int32(side), *packed, parts,
                answer,
            ) != target[here.row]
            for side in (0, 1)
        ]  # fmt: skip
        for node, own in _by_node(here, x[tested], wrong):
            errors = [here.weight[own] * side[own] for side in wrong]
            total = float(here.weight[own].sum())
            place = float(tree.threshold[node])
            lower[node], upper[node] = _bounds(x[tested][own], errors, total, place)
        arrived = _descend(tree, values, arrived, packed, parts)
    return replace(tree, soft_lower=lower, soft_upper=upper)


def _by_node(
    here: _Arrived, x: NDArray[np.float64], wrong: list[NDArray[np.bool_]]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The entries of each node by value; ties in an order that is not that of rows."""
    order = np.lexsort((*wrong, here.weight, x, here.node))
    nodes, first = np.unique(here.node[order], return_index=True)
    yield from zip(nodes.tolist(), np.split(order, first)[1:], strict=True)


def _bounds(
    x: NDArray[np.float64], errors: list[NDArray[np.float64]], total: float, threshold: float
) -> tuple[float, float]:
    """How far the threshold may be moved down and up.

    Parameters
    ----------
    x : float64 array of shape (m,), ascending
    errors : two float64 arrays of shape (m,)
        What each entry costs on the first side and on the second.
    total : float
        Weight of the entries.
    threshold : float
    """
    last = np.append(np.flatnonzero(x[1:] > x[:-1]), x.size - 1)
    left = np.cumsum(errors[0])
    right = np.cumsum(errors[1])
    value, cost = x[last], (left + (right[-1] - right))[last]  # of a threshold at each value
    own = int(np.searchsorted(value, threshold, side="right"))
    base = float(cost[own - 1] if own else right[-1])
    limit = base + float(np.sqrt((base + 0.5) * max(total - base + 0.5, 0.0) / (total + 1.0)))
    down = _reach(value[:own][::-1], cost[:own][::-1], threshold, base, limit)
    up = _reach(value[own:], cost[own:], threshold, base, limit)
    # a zero is the positive one, in whatever order rows of both came
    return min(down, threshold) + 0.0, max(up, threshold) + 0.0


def _reach(
    value: NDArray[np.float64],
    cost: NDArray[np.float64],
    threshold: float,
    base: float,
    limit: float,
) -> float:
    """Where the cost first exceeds the limit on the way along `value`; its end if nowhere."""
    before, spent = threshold, base
    for at, now in zip(value.tolist(), cost.tolist(), strict=True):
        if now > limit:
            share = (now - limit) / (now - spent)
            return at * (1.0 - share) + before * share
        before, spent = at, now
    return before


def _descend(
    tree: Tree, values: NDArray, arrived: _Arrived, packed: Packed, parts: Parts
) -> _Arrived:
    """The entries one level below; missing values go to every child, by weight."""
    below = _steps(values, arrived.row, arrived.node, *packed)
    moved = below != arrived.node
    parted = arrived.take(~moved & parts.spreads[arrived.node])
    count = tree.n_children[parted.node]
    owner = np.repeat(np.arange(count.size), count)
    child = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
    child = child + tree.first_child[parted.node][owner]
    share = parted.weight[owner] * parts.portion[child]
    counts = share > 0.0
    return _Arrived(
        np.concatenate([arrived.row[moved], parted.row[owner][counts]]),
        np.concatenate([below[moved], child[counts]]),
        np.concatenate([arrived.weight[moved], share[counts]]),
    )


@kernel
def _steps(
    values: NDArray,
    row: NDArray[np.int64],
    at: NDArray[np.int32],
    nodes: NDArray,
    target: NDArray[np.int32] | None,
    lists: Lists | None,
) -> NDArray[np.int32]:
    """The node below each entry's; itself where there is no single one."""
    below = np.empty(row.size, np.int32)
    for i in range(row.size):
        below[i] = step(values, row[i], nodes, target, lists, at[i])
    return below


@kernel
def _labels(
    values: NDArray,
    row: NDArray[np.int64],
    start: NDArray[np.int32],
    nodes: NDArray,
    target: NDArray[np.int32] | None,
    lists: Lists | None,
    parts: Parts,
    answer: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The class that the subtree of `start` predicts each row with."""
    node, share = np.empty(nodes.size, np.int32), np.empty(nodes.size)
    total, label = np.empty(answer.shape[1]), np.empty(row.size, np.int64)
    for i in range(row.size):
        node[0] = start[i]
        visited = spread(values, row[i], nodes, target, lists, parts, None, node, share)
        total[:] = 0.0
        for j in range(visited):
            total += share[j] * answer[node[j]]
        label[i] = np.argmax(total)
    return label
