"""Copies of shards on the device: some stay, others pass through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda.encode import row_stride
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.lanes import Lanes, columns_from, rows_from
from gputree.backends.cuda.layout import (
    DeviceRows,
    Grower,
    HostTable,
    StoredColumns,
    UploadedTable,
    to_device,
)
from gputree.backends.cuda.source import bits_of
from gputree.backends.cuda.workspace import Workspace, allocate_in, bytes_of
from gputree.backends.sharded.cuda_shard import NO_COLUMNS, NO_MEMORY
from gputree.backends.sharded.plan import Plan
from gputree.dtypes import ROW


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
    order: NDArray[np.int32] | None = None  # order on the host of the entries in the slot


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
        """Forget all copies."""
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

    def keep(self, p: int, order: NDArray[np.int32], entries: Any) -> None:
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
    """`Place` of shard p: copies within a plan."""

    def __init__(self, host: CpuBackend, copies: ShardCopies, p: int) -> None:
        self.host, self.copies, self.p = host, copies, p
        self.result_bytes = copies.plan.result_bytes
        self._columns = NO_COLUMNS

    def grower(self, result_bytes: int, columns: Int64s) -> Grower:
        self._columns = columns
        return self.copies.grower(self.p, columns)

    def meanwhile(self) -> None:
        self.copies.ahead(self._columns)

    def keep(self, entries: NDArray[np.int32], order: Any) -> None:
        self.host.entries = entries
        self.copies.keep(self.p, entries, order)
