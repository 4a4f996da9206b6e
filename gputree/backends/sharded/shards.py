"""All shards of a table: where they run, and how what they count comes together.

shard 0    method(sums, begin, end, ...)   |
shard 1    method(sums, begin, end, ...)   | summed in any order: integers, least, greatest
...                                        | values
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Floats, Int64s, Larger, Splits, Subtrees, Uint64s
from gputree.backends.sharded.histograms import Histograms
from gputree.backends.sharded.ranges import ShardRanges
from gputree.backends.sharded.subtrees import Finished
from gputree.backends.sharded.summary import TableSummary

How = Literal["add", "minimum", "maximum"]
IDENTITY = {"add": 0, "minimum": np.inf, "maximum": -np.inf}


class Shape(NamedTuple):
    """Of a sum: what it takes to begin another one."""

    shape: tuple[int, ...]
    dtype: str
    how: How

    def start(self) -> Sum:
        """A sum to which nothing was added."""
        return Sum(np.full(self.shape, IDENTITY[self.how], self.dtype), self.how)


class Sum(NamedTuple):
    """An array that shards add to, and how; it begins as the identity of that operation."""

    array: NDArray
    how: How = "add"

    def shape(self) -> Shape:
        return Shape(self.array.shape, self.array.dtype.str, self.how)

    def combine(self, other: Sum) -> None:
        """Let what was added to another one be in this one."""
        getattr(np, self.how)(self.array, other.array, out=self.array)


class Budget(NamedTuple):
    """Bytes of what is held at once, at most; and in which order columns are searched."""

    histograms: int  # of one level
    round_bytes: int  # counts of a round of `CutSearch`
    sorted_bytes: int  # rows of its last round
    category_bytes: int  # statistics by category
    listed_bytes: int  # intervals of `CutSearch`
    one_first: bool  # whether one column of each node is looked into before others


class SmallNodes(NamedTuple):
    """Nodes whose subtrees are grown whole."""

    ranges: ShardRanges
    begin: Int64s  # (m,) in the order of all rows
    depth: Int64s
    keys: Uint64s
    bounds: Bounds | None

    @property
    def sizes(self) -> Int64s:
        """Rows of each."""
        sizes: Int64s = self.ranges.rows.sum(axis=1)
        return sizes

    def take(self, own: slice) -> SmallNodes:
        """Some of them."""
        bounds = self.bounds and self.bounds.take(own)
        return SmallNodes(
            self.ranges.take(own), self.begin[own], self.depth[own], self.keys[own], bounds
        )


class Shards(Protocol):
    """All shards of a table, which has P of them."""

    name: str  # the device that counts: "cpu" or "cuda"

    @property
    def summary(self) -> TableSummary: ...

    @property
    def sizes(self) -> Int64s:
        """Rows of each shard that are grown on. `encode` may cut other shards."""

    @property
    def budget(self) -> Budget: ...

    def encode(self, max_bins: int) -> None:
        """Code the table, unless it is coded."""

    def new_histograms(self, m: int) -> Histograms:
        """Histograms of m nodes, not yet counted."""

    def count(
        self, out: Histograms, ranges: ShardRanges, slots: Int64s, larger: Larger | None
    ) -> None:
        """Count the histogram of node j into slot ``slots[j]``; then subtract."""

    def sum(self, method: str, sums: Sequence[Sum], ranges: ShardRanges, *asked: Any) -> None:
        """Add what all shards count of m nodes, by a method of `Shard`.

        It is pure but for its sums, so that a shard that was lost counts again.
        """

    def collect(
        self, method: str, ranges: ShardRanges, *asked: Any, join: Callable[..., Any] | None = None
    ) -> list[Any]:
        """What a method of each shard with rows of the nodes returns.

        Where there is a function that makes one answer of a list of them, some may be joined.
        """

    def partition(self, ranges: ShardRanges, splits: Splits) -> tuple[Int64s, Floats, Floats]:
        """Partition the rows of m nodes in all shards.

        Returns where second children begin, (m, P), and the values beside each cut.
        """

    def subtrees(self, nodes: SmallNodes) -> Iterator[tuple[Subtrees, Finished]]:
        """Subtrees of nodes, a group of nodes after another, and what is asked of them later.

        Their places are in the order of all rows.
        """

    def report(self) -> dict[str, int]:
        """Work done beside what all backends tell."""
