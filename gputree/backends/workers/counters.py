"""Who counts a part where it lies: the CPU of the worker, or its CUDA device. Both count the same.

A worker chooses for itself, so that a cluster may have workers of both kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Table
from gputree.backends.workers.cells import count_categories, count_cells, narrow_targets

# The entries with nodes partitioned, the first of each second child's, the values beside each cut.
Reordered = tuple[NDArray[np.int32], Int64s, NDArray[np.float64], NDArray[np.float64]]


class Question(NamedTuple):
    """The cells that parts are to count: see `gputree.backends.workers.cells.count_cells`."""

    key_shift: int
    node_pairs: Int64s
    column: Int64s
    pair_intervals: Int64s
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    shift: NDArray[np.uint64]
    first: Int64s


class Counter(Protocol):
    """What is asked of a part, of nodes that are ranges of its entries."""

    table: Table  # coded
    channels: int

    def count(
        self, begin: Int64s, end: Int64s, out: NDArray, slots: Int64s, columns: tuple[int, int]
    ) -> None:
        """Add the histogram of node j, of columns first .. last alone, to ``out[slots[j]]``."""

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        """Row statistics, shape (m, statistics), of m nodes."""

    def count_intervals(
        self, begin: Int64s, end: Int64s, question: Question, sums: list[NDArray]
    ) -> None:
        """Add the rows of nodes to the cells of their intervals: counts, least, greatest values."""

    def count_categories(self, begin: Int64s, end: Int64s, column: int, counts: NDArray) -> None:
        """Add the rows of node j to the categories of a column, and missing ones, in counts[j]."""

    def narrow_targets(self, begin: Int64s, end: Int64s, lows: NDArray, highs: NDArray) -> None:
        """Narrow where one target for all rows of each node may lie."""

    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        """See `gputree.backends.base.Backend.categories`."""

    def reorder(self, begin: Int64s, end: Int64s, splits: Splits) -> Reordered:
        """Partition nodes; the entries are an array of their own, those before stay."""


class CpuPart(CpuBackend):
    """`Counter` on the CPU: the backend of a part, and what is asked of parts beside."""

    @property
    def _counted_as(self) -> tuple[bool, int]:
        return self.task.weight is not None, self.task.channels

    def count_intervals(
        self, begin: Int64s, end: Int64s, question: Question, sums: list[NDArray]
    ) -> None:
        shift, *cells = question
        count_cells(
            self.task.criterion, self.table, self.rows, self.entries, begin, end, shift,
            *self._counted_as, *cells, *sums,
        )  # fmt: skip

    def count_categories(self, begin: Int64s, end: Int64s, column: int, counts: NDArray) -> None:
        count_categories(
            self.task.criterion, self.table, self.rows, self.entries, begin, end, column,
            *self._counted_as, counts,
        )  # fmt: skip

    def narrow_targets(self, begin: Int64s, end: Int64s, lows: NDArray, highs: NDArray) -> None:
        rounded = self.task.limits.rounded
        narrow_targets(self.rows, self.entries, begin, end, rounded, lows, highs)

    def reorder(self, begin: Int64s, end: Int64s, splits: Splits) -> Reordered:
        self.entries = self.entries.copy()
        found = self.partition_rows(begin, end, splits)
        return self.entries, *found


def counter_on(device: str, host: CpuPart, rows_of: NDArray, order_of: NDArray) -> Counter:
    """What counts a part on "cpu" or "cuda"; see `gputree.backends.workers.cuda_part.CudaPart`."""
    if device == "cpu":
        return host
    from gputree.backends.workers.cuda_part import CudaPart  # here, for CPUs need none of it

    return CudaPart(host, rows_of, order_of)


def grower_on(device: str, host: CpuBackend) -> Any:
    """What grows subtrees of gathered nodes on "cpu" or "cuda": see `CudaGroup` there."""
    if device == "cpu":
        return host
    from gputree.backends.workers.cuda_part import CudaGroup

    return CudaGroup(host)


class Head(NamedTuple):
    """What all parts share, and the device that a worker is to choose."""

    backend: CpuBackend  # over a coded table without rows
    choose: Callable[[], str]  # "cpu" or "cuda", where it is called; or it raises
