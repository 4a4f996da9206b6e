"""A table on the host, such as one mapped from a file, that is grown on in shards of rows.

Columns, bins and task of a table, without its rows, as shards and the coordinator need them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Rows, Sharding, Task
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable
from gputree.backends.interactions import Interactions
from gputree.backends.sharded.shard import BinKeys
from gputree.base.dtypes import Bools, Int32s, Int64s, writable


class BinnedTable(CpuTable):
    """A table that keeps its bins, which others discard: cuts inside bins are found by keys."""

    _keeps_bins = True

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self.missing, self.categories, {}  # codes and bins are recomputed


class ShardedTable:
    """`gputree.backends.base.DeviceTable` on the host, in shards of rows that a device counts.

    Its values, C-contiguous, are in memory or mapped from a file. `sharding` has the shards of a
    CPU ("cpu"); the memory of a CUDA device ("cuda") decides its shards.
    """

    def __init__(
        self,
        name: str,
        values: NDArray,
        missing: Bools,
        categories: Int64s | None,
        sharding: Sharding,
    ) -> None:
        self.name = name
        self.whole = BinnedTable(values, missing, categories, sharding.new_codes)
        self.missing, self.categories = self.whole.missing, self.whole.categories
        self.shape = self.whole.shape
        self.bounds = sharding.bounds
        self.on_device: Any = None
        self.release()

    def release(self) -> None:
        """Release the memory that earlier tasks left on the device."""
        if self.name == "cuda":
            from gputree.backends.cuda.table import CudaTable  # here: not needed on CPUs

            self.on_device = CudaTable(self.whole.values, self.missing, self.categories)

    def prepare(
        self, max_bins: int, n_threads: int, exact: bool = True, max_features: int | None = None
    ) -> None:
        """Code the table for exact cuts; do nothing where the device's memory decides."""
        if self.name == "cpu":
            self.whole.prepare(max_bins, n_threads, exact)

    def spans(self) -> list[tuple[int, int]]:
        """Return the range of rows of each shard."""
        return [(int(a), int(b)) for a, b in zip(self.bounds, self.bounds[1:], strict=False)]

    def part(self, begin: int, end: int) -> CpuTable:
        """Return some rows as a separate table, without codes."""
        return CpuTable(self.whole.values[begin:end], self.missing, self.categories)

    def bin_keys(self, max_bins: int, exact: bool) -> BinKeys:
        """Return the keys of bins of the table, which was coded with the same arguments."""
        ends = np.full(self.shape[1], np.finfo(self.whole.values.dtype).max, np.float64)
        return BinKeys.of(self.whole.bins[max_bins, exact], -ends, ends)


# Maximum number of rows of 32-bit counters.
MOST_COUNTED = 2**32 - 1


@dataclass(frozen=True)
class TableSummary:
    """Columns, bins and task of a table."""

    table: Table  # of no rows; bare before the table is coded
    task: Task  # its statistics of rows are empty arrays, or None
    n_rows: int  # of all shards
    n_threads: int  # of the process that uses the summary
    keys: BinKeys | None = None  # None before the table is coded

    @classmethod
    def of(cls, table: Table, task: Task, n_threads: int, keys: BinKeys | None) -> TableSummary:
        """Summarize a table and a task with rows."""
        none = replace(task, rows=task.rows.take(slice(0, 0)))
        return cls(slice_table(table, 0, 0), none, len(table.values), n_threads, keys)

    @property
    def columns(self) -> int:
        return int(self.table.missing.size)

    @property
    def is_coded(self) -> bool:
        return self.keys is not None

    @property
    def weighted(self) -> bool:
        return self.task.rows.weight is not None

    @property
    def histogram_cells(self) -> int:
        """Bins of all columns."""
        return int(self.table.offset[-1])

    @property
    def histogram_bytes(self) -> int:
        """Bytes of the histogram of one node."""
        return self.histogram_cells * self.task.channels * self.cell_dtype.itemsize

    @property
    def cell_dtype(self) -> np.dtype:
        """Type of counters, which can represent all rows."""
        counted = not self.weighted and self.task.rows.square is None
        return np.dtype(np.uint32 if counted and self.n_rows <= MOST_COUNTED else np.int64)

    def row_counts(self, statistics: Int64s) -> Int64s:
        """Row counts from statistics of shape (m, channels); see `cpu.score.row_count`."""
        if self.weighted:
            return statistics[:, -1]
        return statistics.sum(axis=1) if self.task.n_classes else statistics[:, 0]

    def categorical(self) -> tuple[Int64s, Int64s]:
        """Categorical columns whose categories are bins, and columns of more categories."""
        found = np.flatnonzero(self.table.categories)
        by_code = self.table.by_code[found]
        return found[by_code], found[~by_code]

    def of_columns(self, first: int, last: int) -> TableSummary:
        """Return the summary of columns ``first .. last`` only."""
        table, limits, inside = self.table, self.task.limits, slice(first, last)
        offset = table.offset[first : last + 1]
        columns = Table(
            values=table.values[:, inside],
            codes=table.codes[:, inside],
            offset=offset - offset[0],
            missing=table.missing[inside],
            single=table.single[offset[0] : offset[-1]],
            by_code=table.by_code[inside],
            highest=table.highest[inside],
            lowest=table.lowest[inside],
            categories=table.categories[inside],
        )
        if limits.monotonic is not None:
            signs = limits.monotonic.signs[inside]
            limits = limits._replace(monotonic=limits.monotonic._replace(signs=signs))
        # columns that may not split a node are left out of the search instead
        task = replace(self.task, limits=limits, interactions=None)
        return replace(self, table=Table(*map(np.ascontiguousarray, columns)), task=task)

    def of_few_categories(self) -> TableSummary:
        """Return the summary with columns of more categories than bins as if they were numeric."""
        table = self.table
        few = np.where(table.by_code, table.categories, 0)
        return replace(self, table=table._replace(categories=few))

    def writable(self) -> TableSummary:
        """Return the summary with arrays of the types of kernels: tasks receive read-only ones."""
        task, monotonic = self.task, self.task.limits.monotonic
        if monotonic is not None:
            monotonic_writable = monotonic._replace(signs=writable(monotonic.signs))
            task = replace(task, limits=task.limits._replace(monotonic=monotonic_writable))
        if task.interactions is not None:
            first, column, below = map(writable, task.interactions[:3])
            sets = Interactions(first, column, below, task.interactions.root)
            task = replace(task, interactions=sets)
        return replace(self, table=Table(*map(writable, self.table)), task=task)

    def on_cpu(
        self,
        values: NDArray | None = None,
        codes: NDArray | None = None,
        rows: Rows | None = None,
        entries: Int32s | None = None,
    ) -> CpuBackend:
        """Return a CPU backend over some rows, or none, which can score histograms.

        `entries` are not copied; None for all rows.
        """
        table, task = self.table, self.task
        if values is not None and codes is not None:
            table = table._replace(values=values, codes=codes)
        if rows is not None:
            task = replace(task, rows=rows)
        coded = CpuTable(table.values, table.missing, table.categories)
        none = None if entries is None else np.empty(0, np.int64)
        backend = CpuBackend(coded, task, self.n_threads, none)
        backend.table = table
        if entries is not None:
            backend.entries = entries
        return backend


def slice_table(table: Table, begin: int, end: int) -> Table:
    """Return some rows of a table; it is bare if the table is."""
    return table._replace(values=table.values[begin:end], codes=table.codes[begin:end])
