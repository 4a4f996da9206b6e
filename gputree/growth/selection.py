"""Best-first growth as a selection from level-wise growth.

Best-first growth expands the node of highest weighted gain until the tree has `max_leaf_nodes`
leaves. A node's split does not depend on the order of expansion, so the same tree is a part of the
fully grown one. A node is expanded after every node whose path from the root (itself included) has
a higher minimum gain; once M - 1 splits with a higher minimum gain are known, it never is. This
bounds the nodes that the level loop has to split.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Floats


class BestFirst:
    """The lowest path gain that may still be among the splits of the final tree.

    Every split is, where `max_leaf_nodes` is None.
    """

    def __init__(self, max_leaf_nodes: int | None) -> None:
        self._most = None if max_leaf_nodes is None else max_leaf_nodes - 1
        self._greatest: Floats = np.empty(0)

    def worth(self, path_gain: Floats, found: Bools, weighted_gain: Floats) -> Bools:
        """Mark nodes that have a split and may be expanded.

        Per node: the lowest weighted gain above it, True if a split was `found`, and its weighted
        gain.
        """
        if self._most is None:
            return found
        gain = np.minimum(path_gain, weighted_gain)
        known = np.sort(np.concatenate([self._greatest, gain[found]]))
        self._greatest = known[max(known.size - self._most, 0) :]
        if self._greatest.size < self._most:
            return found
        return found & (gain >= self._greatest[0])


def best_first_leaves(
    first_child: NDArray[np.signedinteger], weighted_gain: Floats, max_leaf_nodes: int
) -> Bools:
    """Mark nodes of a breadth-first binary tree that best-first growth does not expand.

    Of equal gains the lower node number comes first: shallower, then further left.
    """
    closed = np.ones(first_child.size, np.bool_)
    heap = [(-weighted_gain[0], 0)] if first_child[0] >= 0 else []
    for _ in range(max_leaf_nodes - 1):
        if not heap:
            break
        _, node = heapq.heappop(heap)
        closed[node] = False
        for child in (first_child[node], first_child[node] + 1):
            if first_child[child] >= 0:
                heapq.heappush(heap, (-weighted_gain[child], int(child)))
    return closed
