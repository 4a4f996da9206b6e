"""Shards of a table: the device or process of each, and the sum of their statistics.

shard 0    method(sums, begin, end, ...)   |
shard 1    method(sums, begin, end, ...)   | combined in any order: sums of integers, minimum,
...                                        | maximum

Rows of small nodes are gathered for some nodes at a time, and their subtrees built. Statistics of
their nodes that are needed later, sums and categories, are kept; rows are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Larger, Splits, Subtrees, Uint64s
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.sharded.histograms import Histograms
from gputree.backends.sharded.rows import ShardRanges
from gputree.backends.sharded.table import TableSummary
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s

# Bytes of a gathered row in addition to its values: order, statistics and keys of sorted columns.
ROW_BYTES = 64


class Finished:
    """Sums and categories of the nodes of finished subtrees, by ranges in the order of all rows.

    Attributes are lists and a dict, which workers send.
    """

    def __init__(self) -> None:
        self._begin: list[Int64s] = []
        self._sums: list[Int64s] = []
        self._codes: dict[tuple[int, int], NDArray[np.uint32]] = {}
        self._joined: tuple[Int64s, Int64s] | None = None

    def add(self, subtrees: Subtrees, backend: CpuBackend, shift: Int64s) -> None:
        """Keep the statistics of the nodes of subtrees, whose ranges are shifted by `shift`.

        `backend` has grown them, and still has their rows.
        """
        leaf = (subtrees.first_child < 0) & _is_reached(subtrees)
        begin, end = subtrees.begin[leaf], subtrees.end[leaf]
        self._begin.append(begin + shift[leaf])
        self._sums.append(backend.node_statistics(begin, end))
        self._joined = None
        split = np.flatnonzero(subtrees.first_child >= 0)
        nominal = split[backend.table.categories[subtrees.feature[split]] > 0]
        child = (subtrees.first_child[nominal][:, None] + np.arange(2)).ravel()
        self._keep(backend, subtrees, child, subtrees.feature[nominal].repeat(2), shift)
        if not backend.table.categories.any():  # cuts of two categories at most are numbers
            split = split[subtrees.threshold[split] == np.inf]
            coded = [_holds_codes(backend, subtrees, int(j)) for j in split]
            split = split[np.array(coded, np.bool_)]
            self._keep(backend, subtrees, split, subtrees.feature[split], shift)

    def take(self, other: Finished) -> None:
        """Keep the statistics of another object, of other nodes."""
        self._begin += other._begin
        self._sums += other._sums
        self._codes.update(other._codes)
        self._joined = None

    def _keep(
        self,
        backend: CpuBackend,
        subtrees: Subtrees,
        node: Int64s,
        feature: Int32s,
        shift: Int64s,
    ) -> None:
        begin, end = subtrees.begin[node], subtrees.end[node]
        counts, code = backend.categories(begin, end, feature)
        ranges = zip((begin + shift[node]).tolist(), (end + shift[node]).tolist(), strict=True)
        for place, codes in zip(ranges, np.split(code, np.cumsum(counts))[:-1], strict=True):
            self._codes[place] = codes.copy()

    def statistics(self, begin: Int64s, end: Int64s, width: int) -> tuple[NDArray, Int64s]:
        """Mark the nodes, of m, whose subtrees were built, and return their sums, (m, width)."""
        starts, upto = self._leaves(width)
        first, last = np.searchsorted(starts, begin), np.searchsorted(starts, end)
        found = first < starts.size
        found[found] = starts[first[found]] == begin[found]
        return found, upto[last] - upto[first]

    def categories(self, begin: int, end: int) -> NDArray[np.uint32] | None:
        """Categories of the column that the parent of a node tests; None if unknown."""
        return self._codes.get((begin, end))

    def _leaves(self, width: int) -> tuple[Int64s, Int64s]:
        """First places of leaves, ascending, and the sums of all leaves before each."""
        if self._joined is None:
            begin = np.concatenate([np.empty(0, np.int64), *self._begin])
            sums = np.concatenate([np.empty((0, width), np.int64), *self._sums])
            order = np.argsort(begin)
            upto = np.zeros((begin.size + 1, width), np.int64)
            np.cumsum(sums[order], axis=0, out=upto[1:])
            self._joined = begin[order], upto
        return self._joined


def _is_reached(subtrees: Subtrees) -> Bools:
    """Nodes that are roots or children: a device leaves others behind, which occur twice."""
    reached = np.zeros(subtrees.first_child.size, np.bool_)
    child = subtrees.first_child[subtrees.first_child >= 0]
    reached[subtrees.root] = reached[child] = reached[child + 1] = True
    return reached


def _holds_codes(backend: CpuBackend, subtrees: Subtrees, j: int) -> bool:
    """Return True if the column that node j tests has only 0, 1 and missing values there."""
    rows = backend.entries[subtrees.begin[j] : subtrees.end[j]]
    values = backend.table.values[rows, subtrees.feature[j]]
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


def group_nodes(sizes: Int64s, most_rows: int) -> Iterator[slice]:
    """Consecutive nodes whose rows are gathered at once: at most `most_rows`, or one node."""
    first = rows = 0
    for j, n in enumerate(sizes.tolist()):
        if rows and rows + n > most_rows:
            yield slice(first, j)
            first, rows = j, 0
        rows += n
    if first < sizes.size:
        yield slice(first, sizes.size)


def most_rows(summary: TableSummary, most_bytes: int) -> int:
    """Maximum number of rows that are gathered within `most_bytes`, at least one."""
    row = summary.table.values.dtype.itemsize + 1 + 8  # a value, its code, a sorted key
    return max(most_bytes // (summary.columns * row + ROW_BYTES), 1)


def places_of(sizes: Int64s) -> Int64s:
    """Offsets of the rows of each node and shard, of `sizes` (m, shards), in all nodes' rows."""
    places: Int64s = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    return places


def grow_gathered(
    grower: Any, begin: Int64s, sizes: Int64s, depth: Int64s, keys: Uint64s, bounds: Bounds | None
) -> tuple[Subtrees, Finished]:
    """Build the subtrees of nodes; returns them, and the statistics needed later.

    `grower`, see `grower_on`, has their rows, one node of `sizes` after another. `begin` are the
    first places of nodes in the order of all rows, which the places of the subtrees refer to.
    """
    last = np.cumsum(sizes)
    first = last - sizes
    subtrees = grower.finish(first, last, depth, keys, bounds)
    owner = np.searchsorted(first, subtrees.begin, side="right") - 1
    shift, finished = (begin - first)[owner], Finished()
    finished.add(subtrees, grower, shift)
    moved = subtrees._replace(begin=subtrees.begin + shift, end=subtrees.end + shift)
    return moved, finished


def grower_on(device: str, host: CpuBackend) -> Any:
    """Return the grower of subtrees of gathered rows on "cpu" or "cuda"."""
    if device == "cpu":
        return host
    from gputree.backends.sharded.cuda_shard import CudaGrower  # here: not needed on CPUs

    return CudaGrower(host)


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
        sizes: Int64s = self.ranges.rows.sum(axis=1)
        return sizes

    def take(self, chosen: slice) -> SubtreeRoots:
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
        """Combine the statistics of m nodes of all shards, by a method of `HostShard`.

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
