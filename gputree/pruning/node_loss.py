"""What each node would lose on given rows if it were a leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel
from gputree.dtypes import NODE
from gputree.pruning.base import RoutedRows
from gputree.tree import Tree

# Losses that differ by less than this share of the greatest tie: parts of rows add up to
# whole ones but for rounding.
ROUNDING = 1e-12


class NodeLoss(NamedTuple):
    """Weighted errors (classification) or squared errors (regression) on given rows.

    Attributes
    ----------
    as_leaf : float64 array of shape (N,)
        Loss of all rows that reach the node, if it answers them itself.
    stopped : float64 array of shape (N,)
        Loss of the rows whose descent ends in the node.
    """

    as_leaf: NDArray[np.float64]
    stopped: NDArray[np.float64]

    @property
    def slack(self) -> float:
        """How far apart two losses that are equal can be."""
        return ROUNDING * float(self.as_leaf.max())


def node_loss(tree: Tree, data: RoutedRows, power: int = 1) -> NodeLoss:
    """Loss of `data` at every node of `tree`, in one pass over rows and their paths.

    Parameters
    ----------
    tree : Tree
    data : RoutedRows
    power : int, default=1
        Each entry's loss is raised to it; 2 gives the sums that a standard
        error needs.

    Raises
    ------
    ValueError
        If an entry stops at a node that the tree does not have.
    """
    stop = np.asarray(data.node, dtype=NODE)
    if stop.size and not 0 <= stop.min() <= stop.max() < tree.n_nodes:
        raise ValueError(f"Rows must stop at nodes 0 to {tree.n_nodes - 1} of the tree.")
    weight = np.asarray(data.weight, dtype=np.float64)
    loss = NodeLoss(np.zeros(tree.n_nodes), np.zeros(tree.n_nodes))
    if tree.task == "regression":
        values = np.asarray(data.target, dtype=np.float64)
        mean = np.ascontiguousarray(tree.statistics[:, 0])
        _climb_squared_errors(tree.parent, mean, stop, values, weight, power, *loss)
    else:
        codes = np.asarray(data.target, dtype=np.intp)
        _climb_errors(tree.parent, majority_class(tree), stop, codes, weight, power, *loss)
    return loss


def majority_class(tree: Tree) -> NDArray[np.intp]:
    """Class of each node: the heaviest, the lowest on ties; without rows, the parent's."""
    return tree.statistics.argmax(axis=1)[tree.nearest_with_weight()]


@kernel
def _climb_errors(
    parent: NDArray[np.int32],
    label: NDArray[np.intp],
    stop: NDArray[np.int32],
    target: NDArray[np.intp],
    weight: NDArray[np.float64],
    power: int,
    as_leaf: NDArray[np.float64],
    stopped: NDArray[np.float64],
) -> None:
    """Add each entry's weight to the nodes on its path that misclassify it."""
    for entry in range(stop.size):
        node = stop[entry]
        loss = weight[entry] ** power
        if label[node] != target[entry]:
            stopped[node] += loss
        while node >= 0:
            if label[node] != target[entry]:
                as_leaf[node] += loss
            node = parent[node]


@kernel
def _climb_squared_errors(
    parent: NDArray[np.int32],
    mean: NDArray[np.float64],
    stop: NDArray[np.int32],
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    power: int,
    as_leaf: NDArray[np.float64],
    stopped: NDArray[np.float64],
) -> None:
    """Add each entry's squared error to the nodes on its path."""
    for entry in range(stop.size):
        node = stop[entry]
        stopped[node] += (weight[entry] * (target[entry] - mean[node]) ** 2) ** power
        while node >= 0:
            as_leaf[node] += (weight[entry] * (target[entry] - mean[node]) ** 2) ** power
            node = parent[node]
