"""A table on the host that a CUDA device works on, whole or in parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.table import NewCodes
from gputree.backends.cuda.table import CudaTable
from gputree.backends.partitioned.table import PartitionedTable


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
        self.on_device = CudaTable(values, missing, self.categories)

    def prepare(self, max_bins: int, n_threads: int) -> None:
        """Nothing: the budget of a task says where the table is coded."""

    def release(self) -> None:
        """Give up what earlier tasks left on the device."""
        self.on_device = CudaTable(self.on_device.values, self.missing, self.categories)
