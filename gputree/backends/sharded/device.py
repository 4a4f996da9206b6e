"""Shards on the host that a CUDA device counts within a limit of its memory.

all that growth reads fits      all of it is copied to the device, in blocks: `backends.cuda` only
else                            those that fit stay on the device, the others pass through,
                                two at a time

host      | shard 0  | shard 1  | shard 2  | shard 3  | ...     codes, values, statistics
device    | shard 0  | shard 1  |  stay                         codes, statistics, order
          | shard 2  | shard 3  |  pass: one is copied while the other is counted
          |  values  |  values  |  of the columns that are required, the same way
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Int64s, Larger, Splits, Subtrees, Task
from gputree.backends.binning import MAX_BINS, SAMPLE_ROWS
from gputree.backends.cuda import memory
from gputree.backends.cuda import tuning as cuda_tuning
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.encode import row_stride
from gputree.backends.sharded import tuning
from gputree.backends.sharded.backend import ShardedBackend
from gputree.backends.sharded.copies import ShardCopies, Streamed
from gputree.backends.sharded.cuda_shard import CudaShard
from gputree.backends.sharded.histograms import Histograms
from gputree.backends.sharded.local import LocalShards, count_one_block, partition_each
from gputree.backends.sharded.plan import Sizes, share_out
from gputree.backends.sharded.ranges import ShardRanges
from gputree.backends.sharded.shards import Budget, SubtreeRoots, Sum
from gputree.backends.sharded.subtrees import Finished
from gputree.backends.sharded.summary import TableSummary
from gputree.backends.sharded.table import ShardedTable

# Divisor of the memory of results: counts of cells of one round; the rest is for arrays that are
# sent.
ROUND_SHARE = 3

# Copies of the values that bins are fitted to, on the device: values, keys, sorted keys, and more.
FITTED_COPIES = 5

# Divisor of the memory limit: rows of small nodes that are grown at once; the rest to sort them.
GATHERED_SHARE = 3


def new_backend(
    table: ShardedTable, task: Task, n_threads: int, entries: Int64s | None = None
) -> Backend:
    """Return a backend for a task: the device by itself if all data fit, else in shards."""
    if _fits(table, task):
        return CudaBackend(table.on_device, task, n_threads, entries)
    table.release()
    return ShardedBackend(DeviceShards(table, task, n_threads, entries))


def _fits(table: ShardedTable, task: Task) -> bool:
    """Return True if all data that growth reads fit the device, with memory for coding and a level.

    Values are read where cuts are by value: in exact cuts, and for many categories.
    """
    n, d = table.shape
    size, used = table.whole.values.nbytes, table.on_device.used_bytes
    try:
        shared = memory.share_out(task, n, row_stride(d), size, used)
    except MemoryError:
        return False
    has_many = (table.categories + table.missing > MAX_BINS).any()
    if not shared.keeps_values and (task.exact or has_many):
        return False
    sample = min(n, (1 if task.exact else 4) * SAMPLE_ROWS)
    fitted = FITTED_COPIES * table.whole.values.itemsize * max(d * sample, n)
    level = memory.LEVEL_SHARE * 8 * d * (MAX_BINS + 1) * task.channels
    return memory.SORTED_BYTES * shared.sorted_pairs >= max(fitted, 2 * level)


class DeviceShards:
    """`gputree.backends.sharded.shards.Shards` that a device counts, one after another.

    They use at most `Task.max_device_memory`. Before the table is coded, it is one shard of few
    rows, which are grown without codes. `entries` are ascending rows to grow on, None for all.
    """

    name = "cuda"

    def __init__(
        self, table: ShardedTable, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        self._given = table, task, n_threads, entries
        self.host = LocalShards(*self._given, [(0, table.shape[0])])
        self.shards: list[CudaShard] = []
        self.copies: ShardCopies | None = None

    @property
    def summary(self) -> TableSummary:
        return self.host.summary

    @property
    def sizes(self) -> Int64s:
        return self.host.sizes

    def encode(self, max_bins: int) -> None:
        table, task, n_threads, _ = self._given
        self.host.encode(max_bins)
        plan = share_out(task, self._sizes())
        n, coded = table.shape[0], table.coded(max_bins, task.exact, n_threads)
        spans = [(a, min(a + plan.rows, n)) for a in range(0, n, plan.rows)]
        keys = self.summary.keys
        self.host = LocalShards(*self._given, spans)
        self.host.take_codes(coded, keys)
        hosts = [shard.host for shard in self.host.shards]
        self.copies = ShardCopies(plan, hosts, n_threads)
        self.shards = [
            CudaShard(host, Streamed(host, self.copies, p)) for p, host in enumerate(hosts)
        ]

    def _sizes(self) -> Sizes:
        """Sizes that decide how the coded table is divided."""
        source, task, *_ = self._given
        table, (n, d) = self.summary.table, source.shape
        needs_values = task.exact or not table.by_code.all()
        value_bytes = table.values.dtype.itemsize if needs_values else 0
        categories = 8 * task.channels * (int(table.categories.max(initial=0)) + 1)
        fewest = 1 << (tuning.TUNING.least_bits + 1)  # cells of an interval
        cells = ROUND_SHARE * 8 * fewest * (task.channels + 2)
        result = max(self.summary.histogram_bytes, categories, cells)
        return Sizes(n, d, row_stride(d), value_bytes, result)

    @property
    def budget(self) -> Budget:
        budget = self.host.budget
        if self.copies is None:
            return budget
        most = self.copies.plan.result_bytes
        return budget._replace(
            round_bytes=min(tuning.TUNING.round_bytes, most // ROUND_SHARE),
            category_bytes=min(budget.category_bytes, most),
            one_first=False,
        )

    def report(self) -> dict[str, int]:
        """Return the bytes of shards that were copied to the device."""
        return {"uploaded_bytes": 0 if self.copies is None else self.copies.lanes.sent}

    # ------------------------------------------------------------------- sums
    def _in_turn(self, ranges: ShardRanges) -> Iterator[tuple[int, CudaShard]]:
        """Iterate over shards with rows of nodes; while one is counted, the next is copied."""
        assert self.copies is not None
        shards = ranges.shards()
        for i, p in enumerate(shards):
            self.copies.next = shards[i + 1] if i + 1 < len(shards) else None
            yield p, self.shards[p]

    def new_histograms(self, m: int) -> Histograms:
        return self.host.new_histograms(m)

    def count(
        self, out: Histograms, ranges: ShardRanges, slots: Int64s, larger: Larger | None
    ) -> None:
        count_one_block(out, ranges, slots, larger, self._in_turn(ranges))

    def sum(self, method: str, sums: Sequence[Sum], ranges: ShardRanges, *args: Any) -> None:
        if self.copies is None:
            self.host.sum(method, sums, ranges, *args)
            return
        arrays = [one.array for one in sums]
        for p, shard in self._in_turn(ranges):
            getattr(shard, method)(arrays, *ranges.in_shard(p), *args)

    def collect(
        self, method: str, ranges: ShardRanges, *args: Any, join: Callable[..., Any] | None = None
    ) -> list[Any]:
        """See `Shards`; the host lists rows."""
        return self.host.collect(method, ranges, *args, join=join)

    # -------------------------------------------------------------------- rows
    def partition(
        self, ranges: ShardRanges, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64], NDArray[np.float64]]:
        return partition_each(self._in_turn(ranges), ranges, splits)

    def subtrees(self, nodes: SubtreeRoots) -> Iterator[tuple[Subtrees, Finished]]:
        gathered, task = tuning.TUNING.gathered_bytes, self.summary.task
        free_bytes = memory.budget_of(task, 0) - cuda_tuning.TUNING.least_work
        most = max(min(gathered, free_bytes // GATHERED_SHARE), 1)
        if self.copies is None:  # not coded: few rows
            return self.host.subtrees_on("cpu", nodes, most)
        self.copies.release()  # their memory is needed
        return self.host.subtrees_on("cuda", nodes, most)
