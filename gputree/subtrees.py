"""Sums over the subtrees of a tree, in one pass from its last node to its first.

Children are numbered after their parents, so that a node is whole when its turn comes: the
cost does not depend on the depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel

if TYPE_CHECKING:  # a tree checks its criterion's name, whose loss adds up over one
    from gputree.tree import Tree

Number = TypeVar("Number", np.int64, np.float64)


def add_up(tree: Tree, values: NDArray[Number]) -> NDArray[Number]:
    """Add the values of every node to those of all its ancestors.

    Parameters
    ----------
    tree : Tree
    values : int64 or float64 array of shape (N,) or (N, K)
        Sums of integers have no order; floats are added from the last node to the first.

    Returns
    -------
    array of the same shape and dtype
        Each node's own values and those of all nodes below it.
    """
    total = values.copy()
    _add_up(tree.parent, total.reshape(tree.n_nodes, -1))
    return total


@kernel
def _add_up(parent: NDArray[np.int32], total: NDArray[Any]) -> None:
    for node in range(parent.size - 1, 0, -1):
        for k in range(total.shape[1]):
            total[parent[node], k] += total[node, k]
