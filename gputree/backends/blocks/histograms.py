"""Histograms that a device counts part by part: their sums lie on the host, in one shard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Larger
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.partitioned.reduction import Reducer, Sum
from gputree.backends.workers.counters import Counter
from gputree.backends.workers.shards import Shard, ShardedHistograms, all_nodes
from gputree.backends.workers.tasks import Tasks


class Place(NamedTuple):
    """Where parts are counted, and what is worked on there: see `WorkerParts`."""

    tasks: Tasks
    head: CpuBackend
    reducer: Reducer


class BlockHistograms(ShardedHistograms):
    """Histograms of m nodes.

    Parameters
    ----------
    place : Place
    m : int
    """

    def __init__(self, place: Place, m: int) -> None:
        self.tasks, self.head, self.reducer = place
        self.shared = self.head
        self.dtype, self.m = place.head.new_histograms(0).dtype, m
        self.shards: list[Shard] = []

    def fill(self, first: NDArray, last: NDArray, slots: Int64s, larger: Larger | None) -> None:
        """Count nodes whose entries in each part are ``first .. last`` (k, parts), and subtract."""
        columns = (0, self.head.table.missing.size)
        sums = np.zeros((slots.size, self.head.histogram_cells * self.head.channels), self.dtype)
        self.reducer.map_reduce(count_histograms, [Sum(sums)], first, last, columns)
        parent, none = None, np.empty(0, np.int64)
        derived = (none, none, none)
        if larger is not None:
            parent, derived = larger.whole.shards[0].cells, larger[1:]
        level = (self.m, slots, derived)
        cells = all_nodes(self.head, [sums], columns, level, 0, parent)
        self.shards = [Shard(*columns, cells)]


def count_histograms(
    part: Counter, sums: list[NDArray], first: Int64s, last: Int64s, columns: tuple[int, int]
) -> None:
    """Add the histogram of node j to ``sums[0][j]``."""
    own = np.flatnonzero(first < last)
    part.count(first[own], last[own], sums[0], own, columns)
