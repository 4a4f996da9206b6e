"""A shard whose rows are on the host, counted on the current CUDA device.

    host      values, codes, statistics | order          arguments of tasks
    device    a copy, until released    | a copy         a new order is made on the device

Counts and new orders are copied back to the host, so that lost copies can be made again. The
device's memory is divided among shards that stay, shards that pass, and work (`share_out`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Splits, Subtrees, Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda import tuning
from gputree.backends.cuda.encode import row_stride
from gputree.backends.cuda.finish import ALIGNED_BYTES, finish, pairs_of_row
from gputree.backends.cuda.histogram import (
    choose_counting,
    count_categories,
    count_intervals,
    histogram,
)
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    DeviceRows,
    Grower,
    HostTable,
    UploadedTable,
    pack_interactions,
    to_device,
    widest,
)
from gputree.backends.cuda.memory import (
    ENTRY_BYTES,
    SORTED_BYTES,
    Copies,
    Memory,
    budget_of,
    set_bytes,
    statistics_bytes,
)
from gputree.backends.cuda.partition import node_statistics, partition_rows
from gputree.backends.cuda.refine import narrow_targets
from gputree.backends.cuda.source import bits_of
from gputree.backends.cuda.workspace import ALIGNMENT, DeviceChunks, send
from gputree.backends.sharded import tuning as sharded_tuning
from gputree.backends.sharded.shard import Arrays, HostShard, Partitioned, RequestedIntervals
from gputree.base.dtypes import ROW, Floats, Int32s, Int64s

# Divisor of the memory left after work and results: memory of shards that pass.
PASSING_SHARE = 4

# Divisor of the memory limit: the maximum memory of results.
RESULT_SHARE = 8

# Number of arrays of a shard; each array is aligned.
ARRAYS = 6


class Sizes(NamedTuple):
    """Sizes that decide how a table is divided into shards."""

    rows: int
    columns: int
    stride: int  # bytes of a row of codes
    value_bytes: int  # of a value; 0 where all cuts are by code
    result_bytes: int  # of the largest of a node: a histogram, statistics of categories


class Plan(NamedTuple):
    """Division of a table into shards, and the shards that stay on the device."""

    rows: int  # of a shard, except the last
    staying: int  # number of first shards, which stay on the device
    valued: int  # number of these, the first again, whose values stay as well
    passing: int  # number of other shards that fit at once, with their values
    result_bytes: int  # of results that are on the device at once


def share_out(task: Task, sizes: Sizes) -> Plan:
    """Divide the limit `task.max_device_memory`, or a fraction of the free memory.

    MemoryError, with the bytes that they need, where not even shards of few rows fit.
    """
    budget, tuned = budget_of(task.max_device_memory, 0), tuning.TUNING
    row = sizes.stride + statistics_bytes(task) + 4
    # two shards pass at a time, with values and work
    passing_row = 2 * (row + sizes.columns * sizes.value_bytes) + ENTRY_BYTES
    fewest = min(tuned.chunk_rows, sizes.rows)
    fixed = tuned.least_work + column_bytes(sizes) + 4 * ARRAYS * ALIGNMENT
    needed = fixed + sizes.result_bytes + fewest * passing_row
    if needed > budget:
        what = "max_device_memory allows" if task.max_device_memory else "the free device memory is"
        raise MemoryError(
            f"Growing a tree on parts of {fewest:,} rows needs at least {needed:,} bytes of "
            f"device memory; {what} {budget:,}. Use device='cpu', or fewer columns."
        )
    results = min(
        budget // RESULT_SHARE,
        sharded_tuning.TUNING.result_bytes,
        sizes.result_bytes + budget - needed,
    )
    results = max(results, sizes.result_bytes)
    free_bytes = budget - fixed - results
    rows = min(max(free_bytes // PASSING_SHARE // passing_row, fewest), sizes.rows)
    shards = -(-sizes.rows // rows)
    passing, shard = min(2, shards), rows * row + ARRAYS * ALIGNMENT
    free_bytes -= rows * passing_row
    if shards * shard <= free_bytes + passing * shard:  # where all stay, none passes
        free_bytes += passing * shard
    staying = min(free_bytes // shard, shards)
    values = rows * sizes.columns * sizes.value_bytes
    valued = min((free_bytes - staying * shard) // (values + ALIGNMENT), shards) if values else 0
    return Plan(rows, staying, valued, passing, results)


def column_bytes(sizes: Sizes) -> int:
    """Bytes of properties of columns: the values at the ends of bins, and flags."""
    return sizes.columns * (2 * 8 * MAX_BINS + MAX_BINS + 64)


# Copies of this process on its device; threads use it in turn.
COPIES = Copies()
_turn = threading.RLock()

# Shards only count: nothing is sorted or gathered.
NO_MEMORY = Memory(keeps_values=True, histogram_bytes=0, gathered_pairs=1, sorted_pairs=1)


P = ParamSpec("P")
R = TypeVar("R")

NO_COLUMNS = np.empty(0, np.int64)


def _in_turn(
    method: Callable[Concatenate[CudaShard, P], R],
) -> Callable[Concatenate[CudaShard, P], R]:
    """Decorate a method to use the device exclusively."""

    @wraps(method)
    def call(self: CudaShard, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with _turn:
            return method(self, *args, **kwargs)

    return call


class Place(Protocol):
    """Access to a shard on the device."""

    result_bytes: int  # of results that are in memory at once, or of one node

    def grower(self, result_bytes: int, columns: Int64s) -> Grower:
        """Return the grower of the shard, with values of some columns and memory for results."""

    def meanwhile(self) -> None:
        """Do the host's work while the device counts."""

    def keep(self, entries: Int32s, order: Any) -> None:
        """Keep the device's copy of a new order."""


class Cached:
    """`Place` of shards that any task may count next: copies are kept while they fit memory.

    Copies of the rows and of the order are cached by the arrays `rows_of` and `order_of` of the
    host.
    """

    def __init__(self, host: CpuBackend, rows_of: NDArray[Any], order_of: NDArray[Any]) -> None:
        self.host, self.rows_of, self.order_of = host, rows_of, order_of
        self.result_bytes = sharded_tuning.TUNING.result_bytes

    def grower(self, result_bytes: int, columns: Int64s) -> Grower:
        table, rows = self._rows(2 * result_bytes)
        order = COPIES.find(self.order_of)
        if order is None:
            order = to_device(self.order_of, ROW)
            COPIES.keep(self.order_of, order, self.order_of.nbytes)
        return Grower.over(self.host.task, table, rows, order, NO_MEMORY)

    def meanwhile(self) -> None:
        pass

    def keep(self, entries: Int32s, order: Any) -> None:
        COPIES.keep(entries, order, entries.nbytes)

    def _rows(self, extra: int) -> tuple[UploadedTable, DeviceRows]:
        """Return the rows on the device, with `extra` bytes of memory left free."""
        size, work = shard_bytes(self.host)
        budget = budget_of(self.host.task.max_device_memory, COPIES.nbytes)
        if size + work > budget:
            raise MemoryError(
                f"A part of {len(self.rows_of):,} rows needs at least {size + work:,} bytes of "
                f"device memory; {budget:,} are free. Use smaller partitions, or "
                "device='cpu'."
            )
        found = COPIES.find(self.rows_of)
        COPIES.make_room(work + extra + (0 if found else size), budget)
        if found is None:
            found = copy_rows(self.host)
            COPIES.keep(self.rows_of, found, size)
        return found


class CudaShard(HostShard):
    """A shard that the current device counts; the host lists rows and categories."""

    def __init__(self, host: CpuBackend, place: Place) -> None:
        super().__init__(host)
        self.place = place

    @_in_turn
    def count(
        self, sums: Arrays, begin: Int64s, end: Int64s, slots: Int64s, columns: tuple[int, int]
    ) -> None:
        """See `HostShard`; on the device histograms have all columns: those not counted stay 0."""
        nodes = begin < end
        begin, end, slots, out = begin[nodes], end[nodes], slots[nodes], sums[0]
        first, last = self.host.table.offset[list(columns)] * self.host.channels
        width = int(self.host.table.offset[-1]) * self.host.channels
        most = max(self.place.result_bytes // (width * out.itemsize), 1)
        grower = self.place.grower(min(most, begin.size) * width * out.itemsize, NO_COLUMNS)
        counting = choose_counting(grower, columns)
        for start in range(0, begin.size, most):
            some = slice(start, start + most)
            m = slots[some].size
            found = cupy().zeros((m, width), dtype=grower.cell_dtype)
            histogram(grower, counting, begin[some], end[some], found, np.arange(m), None)
            self.place.meanwhile()
            out[slots[some]] += cupy().ascontiguousarray(found[:, first:last]).get()
            del found  # before others are allocated

    @_in_turn
    def node_statistics(self, sums: Arrays, begin: Int64s, end: Int64s) -> None:
        width = self.host.task.statistics
        most = self.place.result_bytes // (8 * width) or 1
        grower = self.place.grower(8 * width * min(most, begin.size), NO_COLUMNS)
        for start in range(0, begin.size, most):
            group = slice(start, start + most)
            sums[0][group] += node_statistics(grower, begin[group], end[group])

    @_in_turn
    def count_intervals(
        self, sums: Arrays, begin: Int64s, end: Int64s, intervals: RequestedIntervals
    ) -> None:
        counts, lowest, highest = sums
        size = sum(array.nbytes for array in sums)
        grower = self.place.grower(size, np.unique(intervals.column))
        cell_counts, low, high = count_intervals(
            grower, begin, end, *intervals[:-1], meanwhile=self.place.meanwhile
        )
        counts[...] += cell_counts
        np.fmin(lowest, low, out=lowest)
        np.fmax(highest, high, out=highest)

    @_in_turn
    def count_categories(self, sums: Arrays, begin: Int64s, end: Int64s, column: int) -> None:
        grower = self.place.grower(sums[0].nbytes, np.array([column]))
        sums[0][...] += count_categories(grower, begin, end, column)

    @_in_turn
    def narrow_targets(self, sums: Arrays, begin: Int64s, end: Int64s) -> None:
        grower = self.place.grower(0, NO_COLUMNS)
        low, high = narrow_targets(grower, DeviceChunks.of(begin, end), *send(*widest(begin.size)))
        np.fmax(sums[0], _of_order(low.get()), out=sums[0])
        np.fmin(sums[1], _of_order(high.get()), out=sums[1])

    @_in_turn
    def partition(self, begin: Int64s, end: Int64s, splits: Splits) -> Partitioned:
        nodes = np.flatnonzero(begin < end)
        middle, low, high = begin.copy(), np.full(begin.size, -np.inf), np.full(begin.size, np.inf)
        splits = splits.take(nodes)
        column = splits.feature[splits.feature >= 0].astype(np.int64)
        values_of = np.unique(column[~self.host.table.by_code[column]])
        grower = self.place.grower(0, values_of)
        grower = grower._replace(entries=grower.entries.astype(ROW))
        middle[nodes], low[nodes], high[nodes] = partition_rows(
            grower, begin[nodes], end[nodes], splits, self.place.meanwhile
        )
        entries: Int32s = grower.entries.get()
        self.place.keep(entries, grower.entries)
        return Partitioned(entries, middle, low, high)


class CudaGrower:
    """Builds subtrees of gathered rows on the current device, or on the host if they do not fit."""

    def __init__(self, host: CpuBackend) -> None:
        self.host, self.table = host, host.table
        self.node_statistics, self.categories = host.node_statistics, host.categories

    @property
    def entries(self) -> Int32s:
        """Rows in the order of leaves."""
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
        size, work = shard_bytes(self.host)
        work += ALIGNED_BYTES + set_bytes(task)
        row = SORTED_BYTES * pairs_of_row(task, self.table.categories)
        with _turn:
            budget = budget_of(task.max_device_memory, COPIES.nbytes)
            if size + work + row * int((end - begin).max(initial=0)) > budget:
                return self.host.finish(begin, end, depth, keys, bounds)
            COPIES.make_room(size + work + row * n, budget)
            pairs = (budget - COPIES.nbytes - size - work) // SORTED_BYTES
            memory = NO_MEMORY._replace(sorted_pairs=pairs)
            entries = to_device(self.host.entries, ROW)
            grower = Grower.over(task, *copy_rows(self.host), entries, memory)
            grower = grower._replace(interactions=pack_interactions(task))
            subtrees = finish(grower, begin, end, depth, keys, bounds)
            self.host.entries = grower.entries.get()
        return subtrees


def copy_rows(host: CpuBackend) -> tuple[UploadedTable, DeviceRows]:
    """Copy a coded table, and the statistics of its rows, to the device."""
    coded = host.table
    n, d = coded.values.shape
    bits = coded.values.view(bits_of(coded.values.dtype))
    padded = np.zeros((n, row_stride(d)), np.uint8)
    padded[:, :d] = coded.codes
    values = to_device(bits) if needs_values(host) else None
    table = UploadedTable.of(
        bits.dtype, values, to_device(padded), HostTable.of(coded), coded.single
    )
    return table, DeviceRows.of(host.rows, host.task.n_classes)


def needs_values(host: CpuBackend) -> bool:
    """Return True if there are columns whose cuts are by value."""
    return host.task.exact or not host.table.by_code.all()


def shard_bytes(host: CpuBackend) -> tuple[int, int]:
    """Minimum bytes of the copies of rows, and of their entries with the memory to process them."""
    n, d = host.table.values.shape
    size = n * (row_stride(d) + statistics_bytes(host.task))
    size += host.table.values.nbytes if needs_values(host) else 0
    return size, n * (4 + ENTRY_BYTES) + tuning.TUNING.least_work


def _of_order(order: Int64s) -> Floats:
    """Float64 values of order_of of warp.cuh, inverted; NaN where nothing was narrowed."""
    found: Floats = (order ^ (order >> 63 & np.iinfo(np.int64).max)).view(np.float64)
    return found
