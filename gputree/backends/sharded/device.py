"""Shards on the host that a CUDA device counts within a limit of its memory.

all that growth reads fits      all of it is copied to the device, in blocks: `backends.cuda` only
else                            those that fit stay on the device, the others pass through,
                                two at a time

host      | shard 0  | shard 1  | shard 2  | shard 3  | ...     codes, values, statistics
device    | shard 0  | shard 1  |  stay                         codes, statistics, order
          | shard 2  | shard 3  |  pass: one is copied while the other is counted
          |  values  |  values  |  of the columns that are required, the same way
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Larger, Splits, Subtrees, Task
from gputree.backends.binning import MAX_BINS, SAMPLE_ROWS
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda import memory
from gputree.backends.cuda import tuning as cuda_tuning
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.encode import row_stride
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    DeviceRows,
    Grower,
    HostTable,
    StoredColumns,
    UploadedTable,
    to_device,
)
from gputree.backends.cuda.source import Lanes, bits_of, columns_from, rows_from
from gputree.backends.cuda.workspace import Workspace, allocate_in, bytes_of
from gputree.backends.sharded import tuning
from gputree.backends.sharded.backend import ShardedBackend
from gputree.backends.sharded.cuda_shard import (
    NO_COLUMNS,
    NO_MEMORY,
    CudaShard,
    Plan,
    Sizes,
    share_out,
)
from gputree.backends.sharded.histograms import Histograms
from gputree.backends.sharded.local import LocalShards, count_one_block, partition_each
from gputree.backends.sharded.rows import ShardRanges
from gputree.backends.sharded.shards import Budget, Finished, SubtreeRoots, Sum
from gputree.backends.sharded.table import ShardedTable, TableSummary
from gputree.base.dtypes import ROW, Floats, Int32s, Int64s

# Counts of cells of one round take 1 / ROUND_SHARE of the memory of results; the rest is for
# arrays that are sent.
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
        shared = memory.share_out(task, n, n * row_stride(d), size, used)
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
        n, coded = table.shape[0], table.whole.coded(max_bins, task.exact, n_threads)
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

    def partition(self, ranges: ShardRanges, splits: Splits) -> tuple[Int64s, Floats, Floats]:
        return partition_each(self._in_turn(ranges), ranges, splits)

    def subtrees(self, nodes: SubtreeRoots) -> Iterator[tuple[Subtrees, Finished]]:
        gathered, task = tuning.TUNING.gathered_bytes, self.summary.task
        free_bytes = memory.budget_of(task.max_device_memory, 0) - cuda_tuning.TUNING.least_work
        most = max(min(gathered, free_bytes // GATHERED_SHARE), 1)
        if self.copies is None:  # not coded: few rows
            return self.host.subtrees_on("cpu", nodes, most)
        self.copies.release()  # their memory is needed
        return self.host.subtrees_on("cuda", nodes, most)


class Uploaded(NamedTuple):
    """Arrays of a shard that every count reads."""

    codes: Any
    rows: DeviceRows
    entries: Any


class Values(NamedTuple):
    """Values of some columns of a shard."""

    columns: Int64s
    bits: Any


@dataclass
class Slot:
    """Memory of the device, and the part of a shard that is in it."""

    memory: Any
    holds: Any = None
    order: Int32s | None = None  # order on the host of the entries in the slot


class Slots:
    """Memory for `number` shards, allocated at its first use; the least recently used is reused."""

    def __init__(self, number: int, nbytes: int) -> None:
        self.number, self.nbytes = number, nbytes
        self._of: dict[int, Slot] = {}  # by shard, least recently used first

    def take(self, p: int) -> Slot:
        """Return the memory of shard p."""
        slot = self._of.pop(p, None)
        if slot is None and len(self._of) < self.number:
            slot = Slot(cupy().empty(self.nbytes, dtype=np.uint8))
            cupy().cuda.get_current_stream().synchronize()  # nothing uses it any longer
        elif slot is None:
            slot = self._of.pop(next(iter(self._of)))
            slot.holds = slot.order = None
        self._of[p] = slot
        return slot


class ShardCopies:
    """Copies shards to the device, within a plan.

    `hosts` have coded tables; their entries are replaced, never changed.
    """

    def __init__(self, plan: Plan, hosts: list[CpuBackend], n_threads: int) -> None:
        self.plan, self.hosts = plan, hosts
        table = hosts[0].table
        self.bits = bits_of(table.values.dtype)
        self.stride = row_stride(table.missing.size)
        self.lanes = Lanes(n_threads, table.missing.size * max(self.bits.itemsize, 1))
        self.next: int | None = None  # the shard that is counted after the current one
        self._fresh()

    def _fresh(self) -> None:
        size = bytes_of(*self._arrays(self.plan.rows))
        self._staying = Slots(self.plan.staying, size)
        self._passing = Slots(self.plan.passing, size)
        values = self.plan.rows * self.hosts[0].table.missing.size * self.bits.itemsize
        self._staying_values = Slots(self.plan.valued, values)
        self._passing_values = Slots(self.plan.passing, values)
        self._shared: UploadedTable | None = None

    def release(self) -> None:
        """Release all memory; shards that are required later are copied again."""
        self.lanes.wait()
        self._fresh()

    def grower(self, p: int, columns: Int64s) -> Grower:
        """Return the grower of shard p, with the values of some columns."""
        self._bring(p, columns)
        self.lanes.wait()
        uploaded: Uploaded = self._slot(p).holds
        table = self._table(p, uploaded.codes, columns)
        grower = Grower.over(self.hosts[p].task, table, uploaded.rows, uploaded.entries, NO_MEMORY)
        return grower._replace(workspace=Workspace(ample=0))

    def ahead(self, columns: Int64s) -> None:
        """Begin to copy the shard that is counted next."""
        if self.next is not None:
            self._bring(self.next, columns)

    def keep(self, p: int, order: Int32s, entries: Any) -> None:
        """Keep new entries of shard p, whose order on the host is `order`."""
        slot = self._slot(p)
        slot.holds.entries[...] = entries
        cupy().cuda.get_current_stream().synchronize()  # lanes may copy another shard to the slot
        slot.order = order

    def _slot(self, p: int) -> Slot:
        return (self._staying if p < self.plan.staying else self._passing).take(p)

    def _values(self, p: int) -> Slot:
        return (self._staying_values if p < self.plan.valued else self._passing_values).take(p)

    def _bring(self, p: int, columns: Int64s) -> None:
        """Begin to copy the missing arrays of shard p."""
        host, slot = self.hosts[p], self._slot(p)
        if slot.holds is None:
            arrays = allocate_in(slot.memory.data, *self._arrays(len(host.table.codes)))
            codes, *statistics, entries = arrays
            for array, out in zip((host.table.codes, *_present(host)), arrays[:-1], strict=True):
                self.lanes.send(out, rows_from(array))
            rest = iter(statistics)
            rows = DeviceRows(*(None if array is None else next(rest) for array in host.rows))
            slot.holds = Uploaded(codes, rows, entries[: host.entries.size])
        if slot.order is not host.entries:
            self.lanes.send(slot.holds.entries, rows_from(host.entries))
            slot.order = host.entries
        if columns.size:
            self._bring_values(p, columns)

    def _bring_values(self, p: int, columns: Int64s) -> None:
        """Begin to copy the missing values of shard p."""
        host, slot = self.hosts[p].table, self._values(p)
        if p < self.plan.valued:
            columns = np.arange(host.missing.size)
        if slot.holds is None or not np.isin(columns, slot.holds.columns).all():
            shape = len(host.values), columns.size
            (bits,) = allocate_in(slot.memory.data, (shape, self.bits))
            self.lanes.send(bits, columns_from(host.values.view(self.bits), columns))
            slot.holds = Values(columns, bits)

    def _arrays(self, n: int) -> list[tuple[Any, Any]]:
        """Shapes and types of codes, statistics and entries of n rows."""
        host = self.hosts[0]
        kinds = [np.int32 if host.task.n_classes else np.int64, *3 * [np.int64]]
        statistics = [((n,), kind) for _, kind in zip(_present(host), kinds, strict=False)]
        return [((n, self.stride), np.uint8), *statistics, ((n,), ROW)]

    def _table(self, p: int, codes: Any, columns: Int64s) -> UploadedTable:
        """Return the table of a shard that has the values of some columns."""
        if self._shared is None:
            self._shared = self._columns()
        shared = self._shared
        table = shared.with_codes(codes)
        if columns.size == 0:
            return table
        values: Values = self._values(p).holds
        if values.columns.size == shared.columns:
            return table._replace(values=values.bits)
        place = np.full(shared.columns, -1, np.int32)
        place[values.columns] = np.arange(values.columns.size)
        stored = StoredColumns(values.columns, to_device(place))
        return table._replace(values=values.bits, stored=stored)

    def _columns(self) -> UploadedTable:
        """Properties of the columns, in a table without rows."""
        table = self.hosts[0].table
        codes = cupy().empty((0, self.stride), dtype=np.uint8)
        return UploadedTable.of(self.bits, None, codes, HostTable.of(table), table.single)


def _present(host: CpuBackend) -> list[NDArray[Any]]:
    """Statistics of rows that are not None."""
    return [array for array in host.rows if array is not None]


class Streamed:
    """`Place` of shard p, whose copies are made within a plan of the memory."""

    def __init__(self, host: CpuBackend, copies: ShardCopies, p: int) -> None:
        self.host, self.copies, self.p = host, copies, p
        self.result_bytes = copies.plan.result_bytes
        self._columns = NO_COLUMNS

    def grower(self, result_bytes: int, columns: Int64s) -> Grower:
        self._columns = columns
        return self.copies.grower(self.p, columns)

    def meanwhile(self) -> None:
        self.copies.ahead(self._columns)

    def keep(self, entries: Int32s, order: Any) -> None:
        self.host.entries = entries
        self.copies.keep(self.p, entries, order)
