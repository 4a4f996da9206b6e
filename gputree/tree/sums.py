"""Sums over the subtrees of a tree, in one pass from its last node to its first.

Children are numbered after their parents, so that a node is whole when its turn comes: the
cost does not depend on the depth.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Int32s
from gputree.compilation import kernel

Number = TypeVar("Number", np.int64, np.float64)


def add_up(parent: Int32s, values: NDArray[Number]) -> NDArray[Number]:
    """Sum the values of each node and its descendants, of shape (N,) or (N, K).

    Sums of integers have no order; floats are added from the last node to the first.
    """
    total = values.copy()
    add_to_parents(parent, total.reshape(parent.size, -1))
    return total


@kernel
def add_to_parents(parent: Int32s, total: NDArray[Any]) -> None:
    """Add the values of each node, of shape (N, K), to those of its parent, last node first."""
    for node in range(parent.size - 1, 0, -1):
        for k in range(total.shape[1]):
            total[parent[node], k] += total[node, k]
