"""Copies of parts on the device: of those that stay, and of those that pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.blocks.plan import Plan
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda.encode import row_stride, with_codes
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.lanes import Lanes, columns_from, rows_from
from gputree.backends.cuda.layout import (
    Grower,
    Held,
    HostTable,
    Rows,
    Table,
    pack_table,
    to_device,
)
from gputree.backends.cuda.source import bits_of
from gputree.backends.cuda.workspace import Workspace, bytes_of, carve_from
from gputree.backends.workers.cuda_part import NO_MEMORY
from gputree.dtypes import ROW


class Part(NamedTuple):
    """What is read of a part whatever is counted."""

    codes: Any
    rows: Rows
    entries: Any


class Values(NamedTuple):
    """Values of some columns of a part."""

    columns: Int64s
    bits: Any


@dataclass
class Slot:
    """Memory of the device, and what it holds of a part."""

    memory: Any
    holds: Any = None
    order: NDArray[np.int32] | None = None  # the host's, of the entries that it holds


class Slots:
    """Memory for a few parts: one that needs some takes that of which none was longer unused.

    Parameters
    ----------
    number : int
    nbytes : int
        Of each, which are taken from the device when they are first needed.
    """

    def __init__(self, number: int, nbytes: int) -> None:
        self.number, self.nbytes = number, nbytes
        self._of: dict[int, Slot] = {}  # by part, the longest unused first

    def take(self, p: int) -> Slot:
        """The memory of part p."""
        slot = self._of.pop(p, None)
        if slot is None and len(self._of) < self.number:
            slot = Slot(cupy().empty(self.nbytes, dtype=np.uint8))
            cupy().cuda.get_current_stream().synchronize()  # nobody uses it any longer
        elif slot is None:
            slot = self._of.pop(next(iter(self._of)))
            slot.holds = slot.order = None
        self._of[p] = slot
        return slot


class PartCopies:
    """Brings parts to the device, within a plan.

    Parameters
    ----------
    plan : Plan
    parts : list of CpuBackend
        Over coded tables; their entries are replaced, never changed.
    n_threads : int
        Of the host, that fill pinned buffers.
    """

    def __init__(self, plan: Plan, parts: list[CpuBackend], n_threads: int) -> None:
        self.plan, self.parts = plan, parts
        own = parts[0].table
        self.bits = bits_of(own.values.dtype)
        self.stride = row_stride(own.missing.size)
        self.lanes = Lanes(n_threads, own.missing.size * max(self.bits.itemsize, 1))
        self.next: int | None = None  # of the parts that are counted, the one behind this one
        self._fresh()

    def _fresh(self) -> None:
        """Hold nothing."""
        size = bytes_of(*self._arrays(self.plan.rows))
        self._staying = Slots(self.plan.staying, size)
        self._passing = Slots(self.plan.passing, size)
        values = self.plan.rows * self.parts[0].table.missing.size * self.bits.itemsize
        self._staying_values = Slots(self.plan.valued, values)
        self._passing_values = Slots(self.plan.passing, values)
        self._shared: Table | None = None

    def release(self) -> None:
        """Give all memory back; what is asked for later is copied again."""
        self.lanes.wait()
        self._fresh()

    # ------------------------------------------------------------------ what is asked
    def grower(self, p: int, columns: Int64s) -> Grower:
        """What works on part p, with the values of some columns."""
        self._bring(p, columns)
        self.lanes.wait()
        own: Part = self._part(p).holds
        table = self._table(p, own.codes, columns)
        grower = Grower.over(self.parts[p].task, table, own.rows, own.entries, NO_MEMORY)
        return grower._replace(workspace=Workspace(ample=0))

    def ahead(self, columns: Int64s) -> None:
        """Begin to copy the part that is counted next: nobody waits for it."""
        if self.next is not None:
            self._bring(self.next, columns)

    def keep(self, p: int, order: NDArray[np.int32], entries: Any) -> None:
        """New entries of part p, whose order on the host is `order`."""
        slot = self._part(p)
        slot.holds.entries[...] = entries
        cupy().cuda.get_current_stream().synchronize()  # lanes may bring another part there
        slot.order = order

    # --------------------------------------------------------------------- what is there
    def _part(self, p: int) -> Slot:
        return (self._staying if p < self.plan.staying else self._passing).take(p)

    def _values(self, p: int) -> Slot:
        return (self._staying_values if p < self.plan.valued else self._passing_values).take(p)

    def _bring(self, p: int, columns: Int64s) -> None:
        """Begin to copy what is missing of part p."""
        host, slot = self.parts[p], self._part(p)
        if slot.holds is None:
            codes, target, *rest, entries = carve_from(
                slot.memory, *self._arrays(len(host.table.codes))
            )
            self.lanes.send(codes, rows_from(host.table.codes))
            sent = iter([target, *rest])
            columns_of = [None if own is None else next(sent) for own in host.rows]
            for own, out in zip(host.rows, columns_of, strict=True):
                if own is not None:
                    self.lanes.send(out, rows_from(own))
            slot.holds = Part(codes, Rows(*columns_of), entries[: host.entries.size])
        if slot.order is not host.entries:
            self.lanes.send(slot.holds.entries, rows_from(host.entries))
            slot.order = host.entries
        if columns.size:
            self._bring_values(p, columns)

    def _bring_values(self, p: int, columns: Int64s) -> None:
        """The same of values."""
        host, slot = self.parts[p].table, self._values(p)
        if p < self.plan.valued:
            columns = np.arange(host.missing.size)
        if slot.holds is None or not np.isin(columns, slot.holds.columns).all():
            shape = len(host.values), columns.size
            (bits,) = carve_from(slot.memory, (shape, self.bits))
            self.lanes.send(bits, columns_from(host.values.view(self.bits), columns))
            slot.holds = Values(columns, bits)

    def _arrays(self, n: int) -> list[tuple[Any, Any]]:
        """Shapes and types of codes, statistics and entries of n rows."""
        host = self.parts[0]
        target = np.int32 if host.task.n_classes else np.int64
        kinds = (target, np.int64, np.int64, np.int64)
        statistics = [
            ((n,), kind) for own, kind in zip(host.rows, kinds, strict=True) if own is not None
        ]
        return [((n, self.stride), np.uint8), *statistics, ((n,), ROW)]

    def _table(self, p: int, codes: Any, columns: Int64s) -> Table:
        """The table of a part that has the values of some columns."""
        if self._shared is None:
            self._shared = self._columns()
        own = self._shared
        known = own.offset, own.missing, own.single, own.by_code, own.categories
        packed = pack_table(codes, *known, own.greatest, own.least)
        table = own._replace(codes=codes, packed=packed)
        if columns.size == 0:
            return table
        values: Values = self._values(p).holds
        if values.columns.size == own.columns:
            return table._replace(values=values.bits)
        place = np.full(own.columns, -1, np.int32)
        place[values.columns] = np.arange(values.columns.size)
        return table._replace(values=values.bits, held=Held(values.columns, to_device(place)))

    def _columns(self) -> Table:
        """What is known of columns, in a table without rows."""
        own = self.parts[0].table
        host = HostTable(
            own.offset, own.missing, own.by_code, own.greatest, own.least, own.categories
        )
        codes = cupy().empty((0, self.stride), dtype=np.uint8)
        return with_codes(self.bits, None, codes, host, own.single)
