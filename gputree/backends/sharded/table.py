"""A table on the host, such as one mapped from a file, that is grown on in shards of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Int64s, Sharding
from gputree.backends.binning import Bins
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable, code
from gputree.backends.sharded.keys import BinKeys


class BinnedTable(CpuTable):
    """A table that keeps its bins, which others discard: cuts inside bins are found by keys."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.bins: dict[tuple[int, bool], Bins] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self.missing, self.categories, {}  # codes and bins are recomputed

    def _code(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        arguments = self.bare(), self._new_codes, max_bins, exact, n_threads
        table, self.bins[max_bins, exact] = code(*arguments)
        return table


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

    def coded(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        """Return all shards together, coded; see `gputree.backends.cpu.table.CpuTable.coded`."""
        return self.whole.coded(max_bins, exact, n_threads)

    def bin_keys(self, max_bins: int, exact: bool) -> BinKeys:
        """Return the keys of bins of the table, which was coded with the same arguments."""
        ends = np.full(self.shape[1], np.finfo(self.whole.values.dtype).max, np.float64)
        return BinKeys.of(self.whole.bins[max_bins, exact], -ends, ends)
