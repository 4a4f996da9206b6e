"""Rows at the nodes of a tree where they stop, and the loss of its predictions there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.arithmetic.fixed_point import in_units
from gputree.base.dtypes import NODE, UNKNOWN_CLASS, Floats, Int32s, Values, Weight
from gputree.base.sklearn import assert_all_finite, check_consistent_length
from gputree.criteria.named import OF_REGRESSION
from gputree.errors import InputError
from gputree.inputs.targets import encode_labels, encode_numbers
from gputree.prediction.answers import stopping_shares
from gputree.tree import Tree
from gputree.tree.branches import add_up


@dataclass(frozen=True)
class RoutedRows:
    """Rows after their descent through a tree, one entry per row (or part of one).

    Attributes
    ----------
    node : integer array of shape (n_entries,)
        Node where the entry stops. A leaf, or an inner node whose test has no
        branch for the entry's value.
    target : array of shape (n_entries,)
        Class codes, -1 for a label unknown to the tree (classification), or
        target values (regression); of several targets, of shape (n_entries, n_outputs).
    weight : float64 array of shape (n_entries,)
        Sample weight, times the fraction of the row that comes this way.
    """

    node: NDArray[np.integer]
    target: NDArray[Any]
    weight: Floats


def route(estimator: Any, X: Any, y: ArrayLike, weight: Weight) -> RoutedRows:
    """Route rows of `X`, or parts of them, to the nodes where they stop in the estimator's tree."""
    return route_values(
        estimator.tree_, encode_values(estimator, X, y), encode_target(estimator, y), weight
    )


def route_values(tree: Tree, values: Values, target: NDArray[Any], weight: Weight) -> RoutedRows:
    """Route encoded rows, of weight 1 or those given."""
    shares = stopping_shares(tree, np.ascontiguousarray(values))
    row = np.repeat(np.arange(shares.shape[0]), np.diff(shares.indptr))
    share = shares.data if weight is None else weight[row] * shares.data
    return RoutedRows(node=shares.indices, target=target[row], weight=share)


def encode_values(estimator: Any, X: Any, y: ArrayLike) -> Values:
    """Encode rows as the tests of the estimator's tree read them."""
    check_consistent_length(X, y)
    values = np.ascontiguousarray(estimator._values(X))
    with np.errstate(invalid="ignore"):  # sums of huge numbers on both sides of 0
        assert_all_finite(values, allow_nan=True, input_name="X")
    return values


def require_known_labels(y: ArrayLike, target: NDArray[Any]) -> None:
    """Raise ValueError for labels that have no code."""
    unknown = sorted(set(np.asarray(y)[target == UNKNOWN_CLASS].tolist()))
    if unknown:
        raise InputError(f"y contains labels that the tree was not grown on: {unknown}.")


def encode_target(estimator: Any, y: ArrayLike) -> NDArray[Any]:
    """Encode labels as class codes in the order of the tree's statistics; targets as float64."""
    if estimator.tree_.task == "regression":
        return encode_numbers(y, estimator.tree_.n_outputs)
    return encode_labels(estimator.classes_, y)


# Losses whose difference is below this fraction of the largest tie: parts of rows add up to whole
# ones except for rounding.
ROUNDING = 1e-12


class NodeLoss(NamedTuple):
    """Weighted errors (classification), squared errors or deviances (regression) on given rows."""

    as_leaf: Floats  # (N,): loss of all rows that reach the node, if it predicts them itself
    stopped: Floats  # (N,): loss of the rows whose descent ends in the node

    @property
    def slack(self) -> float:
        """Maximum difference between two losses that are equal."""
        return ROUNDING * float(self.as_leaf.max())


def node_loss(tree: Tree, data: RoutedRows, power: Literal[1, 2] = 1) -> NodeLoss:
    """Loss of `data` at every node of `tree`, in one pass over rows and one over nodes.

    The loss of a row is its weight times 1 where the prediction is another class; the squared error
    of the prediction; or half its Poisson deviance, in nats, where the tree was grown by that. Each
    entry's loss is raised to `power`: 2 gives the sums that a standard error needs. Of several
    targets it is the mean of theirs. The loss does not depend on the order of the rows, nor its
    cost on the depth of the tree.

    ValueError for entries that stop at a node that the tree does not have, or negative targets
    where the loss is the Poisson deviance.
    """
    stop = np.asarray(data.node, dtype=NODE)
    if stop.size and not 0 <= stop.min() <= stop.max() < tree.n_nodes:
        raise InputError(f"Rows must stop at nodes 0 to {tree.n_nodes - 1} of the tree.")
    if tree.n_outputs > 1:
        parts = [
            node_loss(tree.of_target(j), replace(data, target=data.target[:, j]), power)
            for j in range(tree.n_outputs)
        ]
        return NodeLoss(*(sum(part) / tree.n_outputs for part in zip(*parts, strict=True)))
    weight = np.asarray(data.weight, dtype=np.float64) ** power
    if tree.task == "regression":
        target = np.asarray(data.target, np.float64)
        loss = OF_REGRESSION[tree.criterion].loss
        predictions = np.ascontiguousarray(tree.answers[:, 0])
        return NodeLoss(*loss(tree.parent, predictions, stop, target, weight, power))
    return _errors(tree, stop, np.asarray(data.target, np.intp), weight)


def majority_class(tree: Tree) -> NDArray[np.intp]:
    """Class of the largest weight in each node, lowest on ties; without rows, the parent's."""
    return tree.answers.argmax(axis=1)


def _errors(tree: Tree, stop: Int32s, target: NDArray[np.intp], weight: Floats) -> NodeLoss:
    """Weight of entries that a node's majority class misclassifies, by class weights in units."""
    nodes, unknown = np.arange(tree.n_nodes), tree.n_classes
    units, unit = in_units(weight)
    column = np.where((target < 0) | (target > unknown), unknown, target)
    here = np.zeros((tree.n_nodes, tree.n_classes + 1), np.int64)
    np.add.at(here.reshape(-1), stop.astype(np.int64) * here.shape[1] + column, units)
    label, reached = majority_class(tree), add_up(tree.parent, here)
    wrong = (of.sum(axis=1) - of[nodes, label] for of in (reached, here))
    return NodeLoss(*(errors * unit for errors in wrong))
