"""A table on a CUDA device: its values, on host or device, and its codes once they are needed."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import encode as coding
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import Kernels
from gputree.backends.cuda.layout import UploadedTable
from gputree.backends.cuda.machine import device_of, on_own_device
from gputree.backends.cuda.memory import STACKED_BYTES, budget_of
from gputree.backends.cuda.source import Source, new_source
from gputree.base.dtypes import Int64s

# Entries of trees that are grown together are numbered in 31 bits.
MOST_ROWS = np.iinfo(np.int32).max


class CudaTable:
    """`gputree.backends.base.DeviceTable` on a CUDA device.

    CuPy arrays stay on their device, which is used; values on the host are copied to the current
    device where they fit the memory limit of a task, else coded block by block.
    """

    name = "cuda"
    stream = None  # set by the growth that works on the table

    def __init__(
        self, values: Any, missing: NDArray[np.bool_], categories: Int64s | None = None
    ) -> None:
        self.categories = np.zeros(missing.size, np.int64) if categories is None else categories
        self.device = device_of(values)
        self.values = values
        self.missing = missing
        self.shape: tuple[int, int] = values.shape
        self._sources: dict[bool, Source] = {}
        self._coded: dict[tuple[int, bool, bool], UploadedTable] = {}
        self._lock = Lock()  # tasks may grow at once

    def __getstate__(self) -> tuple[Any, NDArray[np.bool_], Int64s]:
        # the device's memory belongs to one process
        return self.values, self.missing, self.categories

    def __setstate__(self, state: tuple[Any, NDArray[np.bool_], Int64s]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def prepare(
        self, max_bins: int, n_threads: int, exact: bool = True, max_features: int | None = None
    ) -> None:
        """Do nothing: the memory limit of the first task decides what stays on the device."""

    @property
    def on_host(self) -> bool:
        """True if the values were given in host memory."""
        return isinstance(self.values, np.ndarray)

    @property
    def used_bytes(self) -> int:
        """Bytes of device memory of this table's codes and copied values."""
        with self._lock:
            codes = sum(table.codes.nbytes for table in self._coded.values())
            return codes + sum(source.used_bytes for source in self._sources.values())

    @on_own_device
    def stacked_trees(self, max_device_memory: int | None) -> int:
        """Number of trees to grow together on the rows of this table, within a memory limit."""
        n, d = self.shape
        used = self.used_bytes
        free = budget_of(max_device_memory, used) - tuning.TUNING.least_work
        free -= max(n * coding.row_stride(d) + (self.values.nbytes if self.on_host else 0), used)
        most = min(tuning.TUNING.stacked_trees, MOST_ROWS // n)
        return int(np.clip(free // 2 // (n * STACKED_BYTES), 1, most))

    @on_own_device
    def bare(self, keeps_values: bool, n_threads: int) -> UploadedTable:
        """Return the table without codes."""
        with self._lock:
            source = self._source(keeps_values, n_threads)
        return coding.new_table(source, self.missing, self.categories)

    @on_own_device
    def coded(
        self, max_bins: int, exact: bool, keeps_values: bool, n_threads: int
    ) -> UploadedTable:
        """Counterpart of `gputree.backends.cpu.table.CpuTable.coded`."""
        key = max_bins, exact, keeps_values
        with self._lock:
            if key not in self._coded:
                source = self._source(keeps_values, n_threads)
                kernels = Kernels(None, False, 8 * self.values.dtype.itemsize)
                self._coded[key] = coding.encode(
                    kernels, source, self.missing, self.categories, max_bins, exact
                )
            return self._coded[key]

    @on_own_device
    def resident(self, keeps_values: bool, n_threads: int) -> Any:
        """Return all values in memory that kernels can read."""
        with self._lock:
            return self._source(keeps_values, n_threads).resident()

    def _source(self, keeps_values: bool, n_threads: int) -> Source:
        if keeps_values not in self._sources:
            self._sources[keeps_values] = new_source(self.values, keeps_values, n_threads)
        return self._sources[keeps_values]
