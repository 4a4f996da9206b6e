"""A part of a table on this machine, counted on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.blocks.copies import PartCopies
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda.layout import Grower
from gputree.backends.partitioned.reduction import Count, Sum
from gputree.backends.workers.cuda_part import CudaPart

NO_COLUMNS = np.empty(0, np.int64)


class BlockPart(CudaPart):
    """`gputree.backends.workers.counters.Counter` of part p of a table, within a plan.

    Parameters
    ----------
    host : CpuBackend
        The part on the host.
    copies : PartCopies
    p : int
    """

    def __init__(self, host: CpuBackend, copies: PartCopies, p: int) -> None:
        super().__init__(host, host.table.codes, host.entries)
        self.copies, self.p = copies, p
        self.result_bytes = copies.plan.result_bytes
        self._asked = NO_COLUMNS

    def _grower(self, result_bytes: int = 0, columns: Int64s | None = None) -> Grower:
        self._asked = NO_COLUMNS if columns is None else columns
        return self.copies.grower(self.p, self._asked)

    def _meanwhile(self) -> None:
        self.copies.ahead(self._asked)

    def _keep(self, entries: NDArray[np.int32], own: Any) -> None:
        self.host.entries = entries
        self.copies.keep(self.p, entries, own)


class BlockReducer:
    """`gputree.backends.partitioned.reduction.Reducer` of parts that a device counts in turn.

    Parameters
    ----------
    parts : list of BlockPart
    copies : PartCopies
    """

    def __init__(self, parts: list[BlockPart], copies: PartCopies) -> None:
        self.parts, self.copies = parts, copies

    def map_reduce(
        self, count: Count, sums: Sequence[Sum], first: NDArray, last: NDArray, *shared: Any
    ) -> None:
        """See `gputree.backends.partitioned.reduction.Reducer`."""
        arrays = [own.array for own in sums]
        for p, part in self.with_rows(first, last):
            count(part, arrays, first[:, p], last[:, p], *shared)

    def with_rows(self, first: NDArray, last: NDArray) -> Iterator[tuple[int, BlockPart]]:
        """The parts that hold rows of nodes; while one is worked on, the next one is on its way."""
        own = np.flatnonzero((first < last).any(axis=0)).tolist()
        for at, p in enumerate(own):
            self.copies.next = own[at + 1] if at + 1 < len(own) else None
            yield p, self.parts[p]
