"""Places of the rows of nodes in shards: a node is a range of each shard's row order.

row order of all   |  node 0: begin .. end                  | node 1  ...
shard 0            |  first .. last  |                         of node 0, and so on
shard 1                              |  first .. last  |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s


class ShardRanges(NamedTuple):
    """Ranges of m nodes in P shards."""

    first: Int64s  # (m, P)
    last: Int64s  # (m, P)

    @property
    def rows(self) -> Int64s:
        """Number of rows of each node in each shard."""
        return self.last - self.first

    def take(self, nodes: NDArray[Any] | slice) -> ShardRanges:
        """Return the ranges of the given nodes."""
        return ShardRanges(self.first[nodes], self.last[nodes])

    def shards(self) -> list[int]:
        """Shards that have rows of any node."""
        return np.flatnonzero((self.first < self.last).any(axis=0)).tolist()

    def in_shard(self, p: int) -> tuple[Int64s, Int64s]:
        """First and last of all nodes in one shard, as arrays of the types of kernels."""
        return np.ascontiguousarray(self.first[:, p]), np.ascontiguousarray(self.last[:, p])


class RangeMap:
    """Map from ranges of nodes in the order of all rows to ranges in P shards of `sizes`."""

    def __init__(self, sizes: Int64s) -> None:
        self._shards = sizes.size
        self._of = {(0, int(sizes.sum())): (np.zeros_like(sizes), sizes)}

    def of(self, begin: Int64s, end: Int64s) -> ShardRanges:
        """Return the ranges of m nodes."""
        found = [self._of[node] for node in zip(begin.tolist(), end.tolist(), strict=True)]
        both = np.array(found, np.int64).reshape(-1, 2, self._shards)
        return ShardRanges(both[:, 0], both[:, 1])

    def split(self, begin: Int64s, end: Int64s, middle: Int64s) -> Int64s:
        """Register the children of m nodes: the second ones begin at `middle` (m, P).

        Returns the first place of the second children in the order of all rows.
        """
        first, last = self.of(begin, end)
        whole: Int64s = begin + (middle - first).sum(axis=1)
        for j, (a, m, b) in enumerate(
            zip(begin.tolist(), whole.tolist(), end.tolist(), strict=True)
        ):
            self._of[a, m] = first[j], middle[j]
            self._of[m, b] = middle[j], last[j]
        return whole
