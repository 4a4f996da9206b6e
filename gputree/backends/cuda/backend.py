"""The CUDA backend: CuPy arrays, raw kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits, Subtrees, Task
from gputree.backends.cuda import encode as coding
from gputree.backends.cuda import histogram as histograms_
from gputree.backends.cuda.device import device_of, on_own_device
from gputree.backends.cuda.finish import finish
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.layout import Grower, Rows, Scratch, Table, to_device
from gputree.backends.cuda.memory import share_out
from gputree.backends.cuda.partition import Marked, mark, node_statistics, partition
from gputree.backends.cuda.refine import refine
from gputree.backends.cuda.score import Scores, score
from gputree.backends.cuda.source import new_source
from gputree.dtypes import ROW


class CudaBackend:
    """Primitives of `gputree.backends.base.Backend` on a CUDA device.

    Parameters
    ----------
    values : (n, d) float32 or float64 array, NumPy or CuPy, C-contiguous
        The table, NaN where missing. CuPy arrays stay where they are, and their device works;
        values on the host are copied to the current device where they fit
        `Task.max_device_memory`, else coded block by block.
    missing : (d,) bool array
        Columns that hold missing values.
    task : Task
    n_threads : int
        Host threads that hand a table on the host over.
    """

    name = "cuda"

    def __init__(self, values: Any, missing: NDArray[np.bool_], task: Task, n_threads: int):
        self.device = device_of(values)
        self.task = task
        self.channels = task.channels
        self.refined_pairs = 0
        self.scanned_pairs = 0
        self.marked: list[Marked] = []  # nodes refined since the last partition
        self._take(values, missing, n_threads)

    @on_own_device
    def _take(self, values: Any, missing: NDArray[np.bool_], n_threads: int) -> None:
        """Bring to the device what growth works on; the table is not coded yet."""
        xp, task = cupy(), self.task
        n, d = values.shape
        on_host = isinstance(values, np.ndarray)
        memory = share_out(task, n, coding.row_stride(d), values.nbytes if on_host else 0)
        self.source = new_source(values, memory.keeps_values, n_threads)
        target = np.int32 if task.n_classes else np.int64
        rest = (task.weight, task.square, task.square_rest)
        self.grower = Grower(
            kernels=Kernels(task.criterion, task.weight is not None, 8 * values.dtype.itemsize),
            task=task,
            table=coding.new_table(self.source, missing),
            rows=Rows(
                to_device(task.target, target),
                *(None if column is None else to_device(column, np.int64) for column in rest),
            ),
            entries=xp.arange(n, dtype=ROW),
            scratch=Scratch(xp.empty(n, dtype=np.uint8), xp.empty(n, dtype=ROW)),
            memory=memory,
        )

    @property
    def table(self) -> Table:
        """The table, on the device."""
        return self.grower.table

    @property
    def entries(self) -> Any:
        """The permutation of the rows that nodes are ranges of, on the device."""
        return self.grower.entries

    def report(self) -> dict[str, int]:
        """Pairs (row, column) at nodes split by histogram, and how many were refined."""
        return {"refined_pairs": self.refined_pairs, "scanned_pairs": self.scanned_pairs}

    @on_own_device
    def encode(self, max_bins: int) -> None:
        table = coding.encode(
            self.grower.kernels, self.source, self.table.host.missing, max_bins, self.task.exact
        )
        self.grower = self.grower._replace(table=table)

    # ------------------------------------------------------- histograms
    @property
    def histogram_cells(self) -> int:
        return int(self.grower.table.host.offset[-1])

    @property
    def most_histogram_bytes(self) -> int:
        return self.grower.memory.histogram_bytes

    @property
    def histogram_bytes(self) -> int:
        return self.histogram_cells * self._cell_bytes

    @property
    def _cell_dtype(self) -> np.dtype:
        counted = self.task.weight is None and self.task.square is None
        return np.dtype(np.uint32 if counted else np.int64)

    @property
    def _cell_bytes(self) -> int:
        return self.channels * self._cell_dtype.itemsize

    @on_own_device
    def new_histograms(self, m: int) -> Any:
        return cupy().zeros((m, self.histogram_cells * self.channels), dtype=self._cell_dtype)

    @on_own_device
    def histogram(self, begin: Int64s, end: Int64s, out: Any, slots: Int64s) -> None:
        histograms_.histogram(self.grower, begin, end, out, slots, self._cell_bytes)

    @on_own_device
    def subtract(
        self, whole: Any, whole_slots: Int64s, out: Any, part_slots: Int64s, slots: Int64s
    ) -> None:
        histograms_.subtract(self.grower, whole, whole_slots, out, part_slots, slots)

    # ----------------------------------------------------------- splits
    @on_own_device
    def score(self, histograms: Any, slots: Int64s) -> Scores:
        return score(self.grower, histograms, slots)

    @on_own_device
    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Any,
        slots: Int64s,
        scores: Scores,
        keys: NDArray[np.uint64],
    ) -> Splits:
        records, pairs = refine(self.grower, begin, end, histograms, slots, scores, keys)
        self.marked.append(mark(self.grower, begin, end, records))
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
    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
    ) -> Subtrees:
        if self.table.codes.shape[0] == 0:  # not coded: values decide
            table = self.table._replace(values=self.source.resident())
            self.grower = self.grower._replace(table=table)
        return finish(self.grower, begin, end, depth, keys)

    @on_own_device
    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        return node_statistics(self.grower, begin, end)
