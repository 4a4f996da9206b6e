"""A part of a table whose rows lie on the host, counted on the device.

    host      values, codes, statistics | entries        what tasks were given: it counts
    device    a copy, until they go     | a copy         of new entries the device has one already

What is counted goes back to the host, and new entries, so that whoever lost one can have it again.
Beside counting, 4 bytes a row each level cost little; they would each pass over the rows, so they
are kept here as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Splits, Subtrees
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda import cells, tuning
from gputree.backends.cuda.copies import Copies
from gputree.backends.cuda.encode import row_stride, with_codes
from gputree.backends.cuda.finish import finish, pairs_of_row
from gputree.backends.cuda.histogram import histogram
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, Grower, HostTable, Rows, Table, to_device
from gputree.backends.cuda.memory import (
    ENTRY_BYTES,
    SORTED_BYTES,
    Memory,
    budget_of,
    statistics_bytes,
)
from gputree.backends.cuda.partition import node_statistics, partition_rows
from gputree.backends.cuda.refine import spread
from gputree.backends.cuda.source import bits_of
from gputree.backends.workers import tuning as workers_tuning
from gputree.dtypes import ROW

# What this process has on its device; threads take turns there, as their work would.
COPIES = Copies()
_turn = threading.RLock()

# Nothing is sorted or gathered where parts are counted.
NO_MEMORY = Memory(keeps_values=True, histogram_bytes=0, gathered_pairs=1, sorted_pairs=1)


P = ParamSpec("P")
R = TypeVar("R")


def _in_turn(
    method: Callable[Concatenate[CudaPart, P], R],
) -> Callable[Concatenate[CudaPart, P], R]:
    """A method that has the device to itself."""

    @wraps(method)
    def call(self: CudaPart, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with _turn:
            return method(self, *args, **kwargs)

    return call


class CudaPart:
    """Counts a part as `gputree.backends.workers.counters.CpuPart` does, on the current device.

    Parameters
    ----------
    host : CpuBackend
        The part on the host: what is asked once a tree is asked there.
    rows_of, order_of : arrays
        Those of the host that the copies of its rows and of its entries go with.
    """

    name = "cuda"

    def __init__(self, host: CpuBackend, rows_of: NDArray[Any], order_of: NDArray[Any]) -> None:
        self.host, self.task, self.table, self.channels = host, host.task, host.table, host.channels
        self.rows_of, self.order_of = rows_of, order_of
        self.categories = host.categories
        self.result_bytes = workers_tuning.TUNING.result_bytes  # at once, or those of one node

    # -------------------------------------------------------------- what is counted
    @_in_turn
    def count(
        self,
        begin: Int64s,
        end: Int64s,
        out: NDArray[Any],
        slots: Int64s,
        columns: tuple[int, int],
    ) -> None:
        """Add the histogram of node j, of columns first .. last alone, to ``out[slots[j]]``.

        On the device those of some nodes have all columns, of which the others stay zero.
        """
        first, last = self.table.offset[list(columns)] * self.channels
        width = int(self.table.offset[-1]) * self.channels
        most = max(self.result_bytes // (width * out.itemsize), 1)
        grower = self._grower(min(most, begin.size) * width * out.itemsize)
        for at in range(0, begin.size, most):
            own = slice(at, at + most)
            m = slots[own].size
            found = cupy().zeros((m, width), dtype=grower.cell_dtype)
            histogram(grower, begin[own], end[own], found, np.arange(m), None, columns)
            self._meanwhile()
            out[slots[own]] += cupy().ascontiguousarray(found[:, first:last]).get()
            del found  # before there are others

    @_in_turn
    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        width = self.task.statistics
        out, most = np.empty((begin.size, width), np.int64), self.result_bytes // (8 * width) or 1
        grower = self._grower(8 * width * min(most, begin.size))
        for at in range(0, begin.size, most):
            own = slice(at, at + most)
            out[own] = node_statistics(grower, begin[own], end[own])
        return out

    @_in_turn
    def count_intervals(
        self, begin: Int64s, end: Int64s, question: tuple[Any, ...], sums: list[NDArray[Any]]
    ) -> None:
        """Add the rows of nodes to the cells of their intervals."""
        counts, least, greatest = sums
        grower = self._grower(sum(array.nbytes for array in sums), np.unique(question[2]))
        own, low, high = cells.count_intervals(
            grower, begin, end, *question, meanwhile=self._meanwhile
        )
        counts += own
        np.fmin(least, low, out=least)
        np.fmax(greatest, high, out=greatest)

    @_in_turn
    def count_categories(
        self, begin: Int64s, end: Int64s, column: int, counts: NDArray[Any]
    ) -> None:
        """Add the rows of nodes to the categories of a column, and to that of missing values."""
        grower = self._grower(counts.nbytes, np.array([column]))
        counts += cells.count_categories(grower, begin, end, column)

    @_in_turn
    def narrow_targets(
        self, begin: Int64s, end: Int64s, lows: NDArray[Any], highs: NDArray[Any]
    ) -> None:
        """Narrow where one target for all rows of each node may lie."""
        low, high = spread(self._grower(), Chunks.of(begin, end), begin.size)
        np.fmax(lows, _of_order(low.get()), out=lows)
        np.fmin(highs, _of_order(high.get()), out=highs)

    @_in_turn
    def reorder(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[NDArray[np.int32], Int64s, NDArray[np.float64], NDArray[np.float64]]:
        """The entries with nodes partitioned, an array of their own; middles, values at cuts."""
        column = splits.feature[splits.feature >= 0].astype(np.int64)
        grower = self._grower(0, np.unique(column[~self.table.by_code[column]]))
        grower = grower._replace(entries=grower.entries.astype(ROW))
        found = partition_rows(grower, begin, end, splits, self._meanwhile)
        entries: NDArray[np.int32] = grower.entries.get()
        self._keep(entries, grower.entries)
        return entries, *found

    # ------------------------------------------------------------------ what is there
    def _keep(self, entries: NDArray[np.int32], own: Any) -> None:
        """Keep the copy of new entries."""
        COPIES.keep(entries, own, entries.nbytes)

    def _meanwhile(self) -> None:
        """What the host does while the device counts: nothing."""

    def _grower(self, result_bytes: int = 0, columns: Int64s | None = None) -> Grower:
        """What works on the part, of some columns' values; there is room for such results."""
        entries = self.order_of
        table, rows = self._rows(2 * result_bytes)
        own = COPIES.find(entries)
        if own is None:
            own = to_device(entries, ROW)
            COPIES.keep(entries, own, entries.nbytes)
        return Grower.over(self.task, table, rows, own, NO_MEMORY)

    def _rows(self, beside: int) -> tuple[Table, Rows]:
        """The rows on the device, with room for so many bytes beside them."""
        held, work = part_bytes(self.host)
        budget = budget_of(self.task, COPIES.nbytes)
        if held + work > budget:
            raise MemoryError(
                f"A part of {len(self.rows_of):,} rows needs at least {held + work:,} bytes of "
                f"device memory; {budget:,} are free. Use smaller partitions, or "
                "device='cpu'."
            )
        found = COPIES.find(self.rows_of)
        COPIES.make_room(work + beside + (0 if found else held), budget)
        if found is None:
            found = copy_rows(self.host)
            COPIES.keep(self.rows_of, found, held)
        return found


class CudaGroup:
    """Nodes whose rows were gathered: their subtrees are grown on the current device.

    Where the device has no room for them, they are grown on the host.

    Parameters
    ----------
    host : CpuBackend
        The rows; what is asked of finished nodes is asked there.
    """

    def __init__(self, host: CpuBackend) -> None:
        self.host, self.table = host, host.table
        self.node_statistics, self.categories = host.node_statistics, host.categories

    @property
    def entries(self) -> NDArray[np.int32]:
        """The rows in the order of leaves."""
        return self.host.entries

    def finish(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Subtrees:
        """See `gputree.backends.base.Backend.finish`."""
        task, n = self.host.task, len(self.table.values)
        held, work = part_bytes(self.host)
        row = SORTED_BYTES * pairs_of_row(task, self.table.categories)
        with _turn:
            budget = budget_of(task, COPIES.nbytes)
            if held + work + row * int((end - begin).max(initial=0)) > budget:
                return self.host.finish(begin, end, depth, keys, bounds)
            COPIES.make_room(held + work + row * n, budget)
            pairs = (budget - COPIES.nbytes - held - work) // SORTED_BYTES
            memory = NO_MEMORY._replace(sorted_pairs=pairs)
            entries = to_device(self.host.entries, ROW)
            grower = Grower.over(task, *copy_rows(self.host), entries, memory)
            subtrees = finish(grower, begin, end, depth, keys, bounds)
            self.host.entries = grower.entries.get()
        return subtrees


def copy_rows(host: CpuBackend) -> tuple[Table, Rows]:
    """Copies of a coded table, and of the statistics of its rows."""
    own = host.table
    n, d = own.values.shape
    bits = own.values.view(bits_of(own.values.dtype))
    padded = np.zeros((n, row_stride(d)), np.uint8)
    padded[:, :d] = own.codes
    told = HostTable(own.offset, own.missing, own.by_code, own.greatest, own.least, own.categories)
    values = to_device(bits) if needs_values(host) else None
    table = with_codes(bits.dtype, values, to_device(padded), told, own.single)
    return table, Rows.of(host.rows, host.task.n_classes)


def needs_values(host: CpuBackend) -> bool:
    """Whether there are columns where codes do not decide."""
    return host.task.exact or not host.table.by_code.all()


def part_bytes(host: CpuBackend) -> tuple[int, int]:
    """Bytes of copies of rows, and of their entries with what works on them, at least."""
    n, d = host.table.values.shape
    held = n * (row_stride(d) + statistics_bytes(host.task))
    held += host.table.values.nbytes if needs_values(host) else 0
    return held, n * (4 + ENTRY_BYTES) + tuning.TUNING.least_work


def _of_order(order: Int64s) -> NDArray[np.float64]:
    """The float64 behind order_of of warp.cuh; NaN behind what nothing was narrowed to."""
    found: NDArray[np.float64] = (order ^ (order >> 63 & np.iinfo(np.int64).max)).view(np.float64)
    return found
