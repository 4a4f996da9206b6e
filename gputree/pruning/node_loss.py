"""Loss of each node on given rows, as if it were a leaf."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.criteria.named import OF_TARGETS
from gputree.dtypes import NODE, Floats, Int32s
from gputree.errors import InputError
from gputree.fixed_point import in_units
from gputree.pruning.base import RoutedRows
from gputree.subtrees import add_up
from gputree.tree import Tree

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
    entry's loss is raised to `power`: 2 gives the sums that a standard error needs. The loss does
    not depend on the order of the rows, nor its cost on the depth of the tree.

    ValueError for entries that stop at a node that the tree does not have, or negative targets
    where the loss is the Poisson deviance.
    """
    stop = np.asarray(data.node, dtype=NODE)
    if stop.size and not 0 <= stop.min() <= stop.max() < tree.n_nodes:
        raise InputError(f"Rows must stop at nodes 0 to {tree.n_nodes - 1} of the tree.")
    weight = np.asarray(data.weight, dtype=np.float64) ** power
    if tree.task == "regression":
        target = np.asarray(data.target, np.float64)
        loss = OF_TARGETS[tree.criterion].loss
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
