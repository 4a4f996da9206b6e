"""Losses of rows with targets at the predictions of a tree's nodes, by the regression criteria.

For each node: the loss of all rows that reach it, predicted by the node itself, and of the rows
that stop in it: float64 arrays of shape (N,). The tree is given by its nodes' parents, int32, and
their predictions, float64, of shape (N,). Targets, float64, stop in the nodes `stop`, and each
row's loss is raised to `power`, 1 or 2; `weight` is so already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import borrowing, kernel
from gputree.compilation.arrays import record
from gputree.criteria.poisson import NEGATIVE_COUNTS
from gputree.errors import InputError
from gputree.subtrees import add_up

Floats = NDArray[np.float64]
Nodes = NDArray[np.int32]
Loss = tuple[Floats, Floats]

# Weight, mean, and sums of weight x deviation from the mean to the power 2, 3 and 4, of the
# targets that stop in a node and below. They are merged without a difference of large sums
# (Pebay, Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
# statistical moments, 2008, section 3). NumPy's records have a method `mean`.
MOMENTS = record([(name, np.float64) for name in ("weight", "center", "second", "third", "fourth")])


def squared_errors(
    parent: Nodes, predictions: Floats, stop: Nodes, target: Floats, weight: Floats, power: int
) -> Loss:
    """Weight x squared error, or its square, by moments about means that are merged upward."""
    order = np.lexsort((weight, target, stop))  # float sums in a canonical order
    loss = np.zeros(parent.size), np.zeros(parent.size)
    moments = np.zeros(parent.size, MOMENTS)
    _merge_up(parent, predictions, stop[order], target[order], weight[order], power, moments, *loss)
    return loss


def deviances(
    parent: Nodes, predictions: Floats, stop: Nodes, target: Floats, weight: Floats, power: int
) -> Loss:
    """Weight x half the Poisson deviance, or its square, by sums over the rows in each node.

    For target y and prediction m, in terms of the root's prediction u: y = u (1 + e), m = u q,

        y ln(y / m) - y + m = u (own - e ln q + gap),    own = (y / u) ln(y / u) - e,
                                                         gap = q - 1 - ln q,

    so that terms are small where targets and predictions are close.
    """
    from scipy.special import xlogy  # here, for trees name their criteria, and few are pruned

    if target.size and target.min() < 0.0:
        raise InputError(NEGATIVE_COUNTS)
    order = np.lexsort((weight, target, stop))  # float sums in a canonical order
    tiny = float(np.finfo(np.float64).tiny)
    unit = max(float(predictions[0]), tiny)
    share = target[order] / unit
    excess = share - 1.0
    deviance = xlogy(share, share) - excess
    # of a node without events: their loss is large, not infinite
    quotient = np.maximum(predictions / unit, tiny)
    logarithm = np.log(quotient)
    gap = quotient - 1.0 - logarithm
    ones = np.ones_like(gap)
    if power == 1:
        of_rows = [deviance, excess, np.ones_like(deviance)]
        of_nodes = [ones, -logarithm, gap]
    else:
        of_rows = [
            deviance**2,
            excess**2,
            np.ones_like(deviance),
            deviance * excess,
            deviance,
            excess,
        ]
        of_nodes = [ones, logarithm**2, gap**2, -2 * logarithm, 2 * gap, -2 * gap * logarithm]
    here = np.column_stack(
        [np.bincount(stop[order], weight[order] * of, parent.size) for of in of_rows]
    )
    factors = unit**power * np.column_stack(of_nodes)
    below, own_rows = (
        np.maximum((sums * factors).sum(axis=1), 0.0) for sums in (add_up(parent, here), here)
    )
    return below, own_rows


@kernel
def _merge_up(parent, predictions, stop, target, weight, power, moments, as_leaf, stopped):
    """Losses at the prediction of each node, from moments of the rows that stop there and below."""
    for entry in range(stop.size):
        _merge(moments[stop[entry]], weight[entry], target[entry], 0.0, 0.0, 0.0)
    for node in range(parent.size - 1, -1, -1):
        stopped[node] = _about(moments[node], predictions[node], power)
    for node in range(parent.size - 1, -1, -1):  # children before parents
        of_node = moments[node]
        as_leaf[node] = _about(of_node, predictions[node], power)
        if node > 0:
            _merge(
                moments[parent[node]], of_node.weight, of_node.center, of_node.second,
                of_node.third, of_node.fourth,
            )  # fmt: skip


@borrowing
def _merge(into, weight, mean, second, third, fourth):
    """Merge moments into `into`."""
    if weight == 0.0:
        return
    whole = into.weight + weight
    a, b = into.weight / whole, weight / whole
    d = mean - into.center
    between = whole * a * b * d * d
    into.fourth += fourth + between * d * d * (a * a - a * b + b * b)
    into.fourth += 6.0 * d * d * (a * a * second + b * b * into.second)
    into.fourth += 4.0 * d * (a * third - b * into.third)
    into.third += third + between * d * (a - b) + 3.0 * d * (a * second - b * into.second)
    into.second += second + between
    into.center += d * b
    into.weight = whole


@borrowing
def _about(moments, prediction, power):
    """Second (power 1) or fourth (power 2) moment about `prediction`."""
    d = moments.center - prediction
    if power == 1:
        return moments.second + moments.weight * d * d
    near = moments.fourth + 4.0 * d * moments.third + 6.0 * d * d * moments.second
    return max(near + moments.weight * d * d * d * d, 0.0)
