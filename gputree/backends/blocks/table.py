"""A table on the host that a CUDA device works on, whole or in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.binning import Bins
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable, NewCodes, code
from gputree.backends.cuda.table import CudaTable
from gputree.backends.partitioned.table import PartitionedTable


class BinnedTable(CpuTable):
    """A table that keeps its bins, which others let go: cuts inside them are told by keys."""

    def __init__(
        self,
        values: NDArray,
        missing: NDArray[np.bool_],
        categories: Int64s | None = None,
        new_codes: NewCodes | None = None,
    ) -> None:
        super().__init__(values, missing, categories, new_codes)
        self._bins: dict[tuple[int, bool], Bins] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self.missing, self.categories, {}  # codes and bins are made again

    def _code(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        own = self.bare(), self._new_codes, max_bins, exact, n_threads
        table, self._bins[max_bins, exact] = code(*own)
        return table

    def bins(self, max_bins: int, exact: bool) -> Bins:
        """Those of a table that was coded so."""
        return self._bins[max_bins, exact]


class BlocksTable(PartitionedTable):
    """`gputree.backends.base.DeviceTable` on the host, whose tasks are a CUDA device's.

    Parameters
    ----------
    values, missing, categories, bounds, new_codes
        As of `PartitionedTable`; a task's budget decides what parts the device has.
    """

    name = "cuda"

    def __init__(
        self,
        values: NDArray,
        missing: NDArray[np.bool_],
        categories: Int64s | None = None,
        bounds: Int64s | None = None,
        new_codes: NewCodes | None = None,
    ) -> None:
        super().__init__(values, missing, categories, bounds, new_codes)
        self.whole: BinnedTable = BinnedTable(values, missing, self.categories, new_codes)
        self.on_device = CudaTable(values, missing, self.categories)

    def prepare(self, max_bins: int, n_threads: int) -> None:
        """Nothing: the budget of a task says where the table is coded."""

    def release(self) -> None:
        """Give up what earlier tasks left on the device."""
        self.on_device = CudaTable(self.on_device.values, self.missing, self.categories)
