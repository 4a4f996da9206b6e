"""The CUDA backend: CuPy arrays, raw kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Ahead, Bounds, Finishing, Larger, Splits, Subtrees, Task
from gputree.backends.cuda import encode as coding
from gputree.backends.cuda import histogram as histograms_
from gputree.backends.cuda import tuning
from gputree.backends.cuda.ahead import grow_ahead, is_plain
from gputree.backends.cuda.categories import list_subsets
from gputree.backends.cuda.finish import MOST_ROWS, finish
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    DeviceRows,
    Grower,
    LevelPlan,
    UploadedTable,
    categorical_places,
    pack_interactions,
    to_device,
)
from gputree.backends.cuda.machine import current_stream, on_own_device
from gputree.backends.cuda.memory import share_out
from gputree.backends.cuda.partition import Marked, categories, node_statistics, partition
from gputree.backends.cuda.refine import refine
from gputree.backends.cuda.score import DeviceScores, score
from gputree.backends.cuda.table import CudaTable
from gputree.base.dtypes import ROW, Int64s


class CudaBackend:
    """Primitives of `gputree.backends.base.Backend` on a CUDA device.

    The table and growth use at most `Task.max_device_memory` together. `n_threads` host threads
    copy a table from the host; `entries` are the rows to grow on, None for all. If they are of some
    `trees` that are grown together, one after another, the task has statistics of each entry.
    """

    name = "cuda"

    def __init__(
        self,
        table: CudaTable,
        task: Task,
        n_threads: int,
        entries: Int64s | None = None,
        trees: int = 0,
    ) -> None:
        self.device = table.device
        self.stream = current_stream(self.device)
        self.data = table
        self.task = task
        self.channels = task.channels
        self.n_threads = n_threads
        self.refined_pairs = 0
        self.scanned_pairs = 0
        self.ahead_levels = tuning.TUNING.ahead_levels  # that are queued at once
        self.marked: list[Marked] = []  # nodes refined since the last partition
        self.larger = histograms_.ALL_COUNTED  # histograms that scoring subtracts
        self.origin: Any = None  # (entries,) int32 rows of the table where these are stacked
        self._take(entries, trees)

    @on_own_device
    def _take(self, entries: Int64s | None, trees: int) -> None:
        """Copy the task's statistics and entries to the device; the table is not coded yet."""
        xp, task, source = cupy(), self.task, self.data
        n, d = source.shape
        value_bytes = source.values.nbytes if source.on_host else 0
        code_bytes = n * coding.row_stride(d)
        if trees and entries is not None:
            self.origin, n = to_device(entries, ROW), entries.size
            entries = None
            code_bytes += self.origin.nbytes
        memory = share_out(task, n, code_bytes, value_bytes, source.used_bytes)
        numbers = xp.arange(n, dtype=ROW) if entries is None else to_device(entries, ROW)
        table = source.bare(memory.keeps_values, self.n_threads).of_rows(self.origin)
        rows = DeviceRows.of(task.rows, task.n_classes)
        grower = Grower.over(task, table, rows, numbers, memory)
        self.grower = grower._replace(
            place=categorical_places(table.host),
            interactions=pack_interactions(task),
            trees=max(trees, 1),
        )

    @property
    def table(self) -> UploadedTable:
        """Return the table on the device."""
        return self.grower.table

    @property
    def entries(self) -> Any:
        """Return the permutation of rows whose ranges are the nodes, on the device."""
        return self.grower.entries

    def report(self) -> dict[str, int]:
        """Pairs (row, column) at nodes split by histogram, and how many were refined."""
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    @on_own_device
    def encode(self, max_bins: int) -> None:
        keeps_values = self.grower.memory.keeps_values
        table = self.data.coded(max_bins, self.task.exact, keeps_values, self.n_threads)
        self.grower = self.grower._replace(table=table.of_rows(self.origin))
        self.counting = histograms_.choose_counting(self.grower)
        self.counting_ahead = histograms_.choose_drawn(self.grower) or self.counting

    # ------------------------------------------------------- histograms
    @property
    def histogram_cells(self) -> int:
        return self.grower.table.cells

    @property
    def uncoded_cells(self) -> int:
        return 0

    @property
    def most_histogram_bytes(self) -> int:
        return self.grower.memory.histogram_bytes

    @property
    def histogram_bytes(self) -> int:
        return self.histogram_cells * self.grower.cell_bytes

    @property
    def finishing(self) -> Finishing:
        tuned, columns = tuning.TUNING, self.data.shape[1]
        return Finishing(
            tuned.rows_per_statistic, columns, MOST_ROWS, whole_statistics=tuned.whole_statistics
        )

    @on_own_device
    def new_histograms(self, m: int) -> Any:
        return histograms_.new_histograms(self.grower, m)

    @on_own_device
    def histogram(
        self, begin: Int64s, end: Int64s, out: Any, slots: Int64s, larger: Larger | None = None
    ) -> None:
        self.larger = histograms_.histogram(
            self.grower, self.counting, begin, end, out, slots, larger
        )

    # ----------------------------------------------------------- splits
    @on_own_device
    def score(self, histograms: Any, slots: Int64s, bounds: Bounds | None = None) -> DeviceScores:
        larger, self.larger = self.larger, histograms_.ALL_COUNTED
        return score(self.grower, histograms, larger, slots, bounds)

    @on_own_device
    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Any,
        slots: Int64s,
        scores: DeviceScores,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,  # those that `scores` were computed with
    ) -> Splits:
        subsets = list_subsets(self.grower, begin, end)
        sent = () if subsets is None else subsets.sent
        plan = LevelPlan.of(self.grower, begin, end, slots, keys, sent)
        marked, pairs = refine(self.grower, begin, end, histograms, plan, scores, subsets)
        self.marked.append(marked)
        self.refined_pairs += pairs
        self.scanned_pairs += int((end - begin).sum()) * self.grower.table.columns
        return self.marked[-1].splits

    @on_own_device
    def partition(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64]]:
        marked, self.marked = self.marked, []
        return partition(self.grower, marked, begin, end, splits)

    # --------------------------------------------------------- subtrees
    @on_own_device
    def grow_ahead(
        self, begin: Int64s, end: Int64s, keys: NDArray[np.uint64], levels: int, fewest: int
    ) -> list[Ahead]:
        levels = min(levels, self.ahead_levels) if is_plain(self.grower) else 0
        found = grow_ahead(self.grower, self.counting_ahead, begin, end, keys, levels, fewest)
        if found.overflows:  # the next levels may, too
            self.ahead_levels = 2 * len(found.levels)
        self.refined_pairs += found.pairs
        self.scanned_pairs += found.rows * self.grower.table.columns
        return found.levels

    @on_own_device
    def finish(
        self,
        begin: Int64s,
        end: Int64s,
        depth: Int64s,
        keys: NDArray[np.uint64],
        bounds: Bounds | None = None,
    ) -> Subtrees:
        self.grower.workspace.release()  # subtrees use all of the memory
        if self.table.codes.shape[0] == 0:  # not coded: cuts are by value
            values = self.data.resident(self.grower.memory.keeps_values, self.n_threads)
            table = self.table._replace(values=values)
            self.grower = self.grower._replace(table=table)
        return finish(self.grower, begin, end, depth, keys, bounds)

    @on_own_device
    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        return node_statistics(self.grower, begin, end)

    @on_own_device
    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        return categories(self.grower, begin, end, feature)
