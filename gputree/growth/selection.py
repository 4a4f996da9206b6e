"""Best-first growth out of level-wise growth.

Best-first growth opens the node of greatest weighted gain until the tree has
`max_leaf_nodes` leaves. A node's split does not depend on the order of opening, so the
same tree is a cut of the fully grown one. A node is opened after every node whose path
from the root (itself included) has a greater least gain; once M - 1 splits with a
greater least gain are known, it never is. This bounds what the level loop has to open.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Floats


class BestFirst:
    """Keeps the least path gain that may still be among the splits of the final tree.

    All are, where `max_leaf_nodes` is None.
    """

    def __init__(self, max_leaf_nodes: int | None) -> None:
        self._most = None if max_leaf_nodes is None else max_leaf_nodes - 1
        self._greatest: Floats = np.empty(0)

    def worth(self, path_gain: Floats, found: Bools, weighted_gain: Floats) -> Bools:
        """Nodes that have a split and may be opened.

        Of each: the least weighted gain above it, whether a split was `found`, and that split's.
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
    """Nodes of a breadth-first binary tree that best-first growth leaves unopened.

    Equal gains open the lower node number first: shallower, then further left.
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
