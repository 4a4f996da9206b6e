"""Shards of a table: the device or process of each, and the sum of their statistics.

shard 0    method(sums, begin, end, ...)   |
shard 1    method(sums, begin, end, ...)   | combined in any order: sums of integers, minimum,
...                                        | maximum
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Floats, Int64s, Larger, Splits, Subtrees, Uint64s
from gputree.backends.sharded.histograms import Histograms
from gputree.backends.sharded.rows import ShardRanges
from gputree.backends.sharded.subtrees import Finished
from gputree.backends.sharded.table import TableSummary

How = Literal["add", "minimum", "maximum"]
IDENTITY = {"add": 0, "minimum": np.inf, "maximum": -np.inf}


class Shape(NamedTuple):
    """Shape, type and operation of a sum, with which another one can begin."""

    shape: tuple[int, ...]
    dtype: str
    how: How

    def start(self) -> Sum:
        """Return a sum to which nothing was added."""
        return Sum(np.full(self.shape, IDENTITY[self.how], self.dtype), self.how)


class Sum(NamedTuple):
    """An array that shards combine by an operation; it begins as the identity of that operation."""

    array: NDArray
    how: How = "add"

    def shape(self) -> Shape:
        return Shape(self.array.shape, self.array.dtype.str, self.how)

    def combine(self, other: Sum) -> None:
        """Merge another partial sum into this one."""
        getattr(np, self.how)(self.array, other.array, out=self.array)


class Budget(NamedTuple):
    """Memory limits in bytes, and the order in which columns are searched."""

    histograms: int  # of one level
    round_bytes: int  # counts of a round of `CutSearch`
    sorted_bytes: int  # rows of its last round
    category_bytes: int  # statistics by category
    listed_bytes: int  # intervals of `CutSearch`
    one_first: bool  # True: one column of each node is searched before others


class SubtreeRoots(NamedTuple):
    """Nodes whose whole subtrees are built."""

    ranges: ShardRanges
    begin: Int64s  # (m,) in the order of all rows
    depth: Int64s
    keys: Uint64s
    bounds: Bounds | None

    @property
    def sizes(self) -> Int64s:
        """Number of rows of each node."""
        sizes: Int64s = self.ranges.rows.sum(axis=1)
        return sizes

    def take(self, chosen: slice) -> SubtreeRoots:
        """Return the given nodes."""
        bounds = self.bounds and self.bounds.take(chosen)
        return SubtreeRoots(
            self.ranges.take(chosen),
            self.begin[chosen],
            self.depth[chosen],
            self.keys[chosen],
            bounds,
        )


class Shards(Protocol):
    """The P shards of a table."""

    name: str  # the device that counts: "cpu" or "cuda"

    @property
    def summary(self) -> TableSummary: ...

    @property
    def sizes(self) -> Int64s:
        """Number of rows of each shard that are grown on. `encode` may change the shards."""

    @property
    def budget(self) -> Budget: ...

    def encode(self, max_bins: int) -> None:
        """Code the table, unless it is coded."""

    def new_histograms(self, m: int) -> Histograms:
        """Return histograms of m nodes, not yet counted."""

    def count(
        self, out: Histograms, ranges: ShardRanges, slots: Int64s, larger: Larger | None
    ) -> None:
        """Count the histogram of node j into slot ``slots[j]``; then subtract."""

    def sum(self, method: str, sums: Sequence[Sum], ranges: ShardRanges, *args: Any) -> None:
        """Combine the statistics of m nodes of all shards, by a method of `Shard`.

        The method changes nothing but its sums, so that a lost shard can count again.
        """

    def collect(
        self, method: str, ranges: ShardRanges, *args: Any, join: Callable[..., Any] | None = None
    ) -> list[Any]:
        """Collect the results of a method of each shard with rows of the nodes.

        Given a function `join` from a list of results to one, some may be joined.
        """

    def partition(self, ranges: ShardRanges, splits: Splits) -> tuple[Int64s, Floats, Floats]:
        """Partition the rows of m nodes in all shards.

        Returns the first places of second children, (m, P), and the values next to each cut.
        """

    def subtrees(self, nodes: SubtreeRoots) -> Iterator[tuple[Subtrees, Finished]]:
        """Iterate over groups of subtrees of nodes, each with the statistics needed later.

        Their places are in the order of all rows.
        """

    def report(self) -> dict[str, int]:
        """Work done, in addition to the reports of all backends."""
