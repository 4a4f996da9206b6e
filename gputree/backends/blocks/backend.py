"""The backend of a table whose parts a CUDA device counts, those that stay there and others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Int64s, Splits, Task
from gputree.backends.binning import MAX_BINS, SAMPLE_ROWS
from gputree.backends.blocks.copies import PartCopies
from gputree.backends.blocks.histograms import BlockHistograms, Place
from gputree.backends.blocks.part import BlockPart, BlockReducer
from gputree.backends.blocks.plan import Sizes, share_out
from gputree.backends.blocks.table import BlocksTable
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda import memory, tuning
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.encode import row_stride
from gputree.backends.partitioned.backend import PartitionedBackend, between, part_of
from gputree.backends.partitioned.finish import Finished
from gputree.backends.partitioned.ranges import Ranges
from gputree.backends.partitioned.reduction import LocalReducer
from gputree.backends.partitioned.table import PartitionedTable, rows_of
from gputree.backends.workers import tuning as workers_tuning
from gputree.backends.workers.backend import WorkersBackend
from gputree.backends.workers.coding import bin_keys
from gputree.backends.workers.counters import CpuPart, grower_on
from gputree.backends.workers.shards import ShardedHistograms
from gputree.backends.workers.tasks import Here, Tasks

# Of what results have: the counts of cells of one round, beside what is asked of them.
ROUND_SHARE = 3

# Values that bins are fitted to, on the device: as they are, their keys, these sorted, and more.
FITTED_COPIES = 5

# Of the budget: the rows of small nodes that are grown at once; more to sort them in.
GATHERED_SHARE = 3


def new_backend(
    table: PartitionedTable, task: Task, n_threads: int, entries: Int64s | None = None
) -> Backend:
    """What grows a task: the device alone where all fits that growth reads, else in parts."""
    assert isinstance(table, BlocksTable)
    if _fits(table, task):
        return CudaBackend(table.on_device, task, n_threads, entries)
    table.release()
    return BlocksBackend(table, task, n_threads, entries)


def _fits(table: BlocksTable, task: Task) -> bool:
    """Whether all that growth reads fits the device, and coding and a level have room beside it.

    Values are read where codes do not decide: in exact cuts, and of many categories.
    """
    n, d = table.shape
    size, held = table.whole.values.nbytes, table.on_device.held_bytes
    try:
        shared = memory.share_out(task, n, row_stride(d), size, held)
    except MemoryError:
        return False
    has_many = (table.categories + table.missing > MAX_BINS).any()
    if not shared.keeps_values and (task.exact or has_many):
        return False
    sample = min(n, (1 if task.exact else 4) * SAMPLE_ROWS)
    fitted = FITTED_COPIES * table.whole.values.itemsize * max(d * sample, n)
    level = memory.LEVEL_SHARE * 8 * d * (MAX_BINS + 1) * task.channels
    return memory.SORTED_BYTES * shared.sorted_pairs >= max(fitted, 2 * level)


class BlocksBackend(WorkersBackend):
    """Primitives of `gputree.backends.base.Backend` over parts that a device counts.

    Sums are scored on the host, and decide.

    Parameters
    ----------
    table : BlocksTable
    task : Task
        `Task.max_device_memory` is what all that lies on the device takes together.
    n_threads : int
    entries : int array, ascending, or None
        Rows to grow on; None for all.
    """

    name = "cuda"
    held: BlocksTable

    def __init__(
        self, table: BlocksTable, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        self.held, self.task, self.n_threads = table, task, n_threads
        self.channels, self.rows = task.channels, entries
        none = np.empty(0, np.int64)
        self.head = CpuBackend(table.part(0, 0), part_of(task, 0, 0), n_threads, none)
        self.finished = Finished()
        self.refined_pairs = self.scanned_pairs = 0
        self.round_bytes = workers_tuning.TUNING.round_bytes
        self.category_bytes = workers_tuning.TUNING.category_bytes
        self.copies: PartCopies | None = None
        self._cut([(0, table.shape[0])])  # of few rows that are grown without codes

    def _cut(self, spans: list[tuple[int, int]]) -> None:
        """Let the parts be these spans of rows."""
        self.parts: list[CpuBackend] = [
            CpuPart(
                self.held.part(a, b), part_of(self.task, a, b), self.n_threads,
                between(self.rows, a, b),
            )
            for a, b in spans
        ]  # fmt: skip
        self.reducer: Any = LocalReducer(self.parts)
        self.ranges = Ranges(np.array([part.entries.size for part in self.parts]))

    def encode(self, max_bins: int) -> None:
        coded = self.held.coded(max_bins, self.task.exact, self.n_threads)
        ends = np.full(self.held.shape[1], np.finfo(coded.values.dtype).max, np.float64)
        bins = self.held.whole.bins(max_bins, self.task.exact)
        self.keys = bin_keys(bins, -ends, ends, coded.values.dtype)
        self.head.table = rows_of(coded, 0, 0)
        plan = share_out(self.task, self._sizes())
        n = self.held.shape[0]
        spans = [(a, min(a + plan.rows, n)) for a in range(0, n, plan.rows)]
        self._cut(spans)
        for part, (a, b) in zip(self.parts, spans, strict=True):
            part.table = rows_of(coded, a, b)
        self.copies = PartCopies(plan, self.parts, self.n_threads)
        counters = [BlockPart(part, self.copies, p) for p, part in enumerate(self.parts)]
        self.reducer = BlockReducer(counters, self.copies)
        self.round_bytes = min(self.round_bytes, plan.result_bytes // ROUND_SHARE)
        self.category_bytes = min(self.category_bytes, plan.result_bytes)

    def _sizes(self) -> Sizes:
        """What decides how the coded table is cut."""
        table, (n, d) = self.head.table, self.held.shape
        needs_values = self.task.exact or not table.by_code.all()
        value_bytes = table.values.dtype.itemsize if needs_values else 0
        categories = 8 * self.channels * (int(table.categories.max(initial=0)) + 1)
        fewest = 1 << (workers_tuning.TUNING.least_bits + 1)  # cells of an interval
        cells = ROUND_SHARE * 8 * fewest * (self.channels + 2)
        result = max(self.histogram_bytes, categories, cells)
        return Sizes(n, d, row_stride(d), value_bytes, result)

    def report(self) -> dict[str, int]:
        """As elsewhere, and the bytes of parts that went to the device."""
        sent = 0 if self.copies is None else self.copies.lanes.sent
        return {**PartitionedBackend.report(self), "uploaded_bytes": sent}

    # ------------------------------------------------------- histograms
    @property
    def most_histogram_bytes(self) -> int:
        most: int = super(WorkersBackend, self).most_histogram_bytes
        return most

    def new_histograms(self, m: int) -> ShardedHistograms:
        return BlockHistograms(Place(Tasks(Here()), self.head, self.reducer), m)

    # ----------------------------------------------------------- splits
    def _partition(
        self, first: NDArray, last: NDArray, splits: Splits
    ) -> tuple[NDArray, NDArray[np.float64], NDArray[np.float64]]:
        middle = first.copy()
        low, high = np.full(len(first), -np.inf), np.full(len(first), np.inf)
        for p, part in self.reducer.with_rows(first, last):
            own = np.flatnonzero(first[:, p] < last[:, p])
            _, middle[own, p], before, after = part.reorder(
                first[own, p], last[own, p], splits.take(own)
            )
            low[own], high[own] = np.maximum(low[own], before), np.minimum(high[own], after)
        return middle, low, high

    # --------------------------------------------------------- subtrees
    _subtrees = PartitionedBackend._subtrees
    _categories = PartitionedBackend._categories

    @property
    def gathered_bytes(self) -> int:
        room = memory.budget_of(self.task, 0) - tuning.TUNING.least_work
        return max(min(super().gathered_bytes, room // GATHERED_SHARE), 1)

    def _grower(self, rows: CpuBackend) -> Any:
        if self.copies is None:  # not coded: few rows
            return rows
        self.copies.release()  # they would stand beside what is grown
        return grower_on(self.name, rows)
