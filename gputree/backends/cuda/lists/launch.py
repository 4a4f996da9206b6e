"""Structures that the launchers of list kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import COLUMNS, LANES, Kernels, Packed
from gputree.backends.cuda.lists.memory import Ledger
from gputree.backends.lists import ListTask

# Maximum number of warps that process a long list together: see lists/tiles.cuh.
MOST_WARPS = 16


class LevelData(NamedTuple):
    """Data that all levels of one table share."""

    kernels: Kernels
    task: ListTask
    categorical: Any  # (d,) uint8
    terms: Any  # int64
    ledger: Ledger


class DeviceEntries(NamedTuple):
    """Entries, ordered by node; `weight` is None where every weight is one unit."""

    target: Any  # (E,) int32
    weight: Any  # (E,) int64 or None


class DeviceLists(NamedTuple):
    """Attribute lists: entries in the order of their codes, and the codes, shape (d, E)."""

    item: Any  # int32
    code: Any  # uint32

    def pack(self, categorical: Any, first: int = 0, last: int | None = None) -> Packed:
        """Pack the lists of columns ``first .. last`` for kernels."""
        arrays = [array[first:last] for array in self]
        return COLUMNS.pack(categorical[first:last], *arrays[0].shape, *arrays)


@dataclass
class LevelArrays:
    """m nodes with their entries and lists; small arrays are on the host."""

    table: LevelData
    entries: DeviceEntries
    lists: DeviceLists
    begin: Int64s  # (m,)
    end: Int64s  # (m,)
    weights: Int64s  # (m, n_classes)
    resting: NDArray[np.bool_]  # (d, m) lists that are no longer updated


class Share(NamedTuple):
    """Nodes, or tests, processed by blocks of the same size."""

    chosen: NDArray[np.int64]
    warps: int

    @property
    def threads(self) -> int:
        return self.warps * LANES


def by_length(is_long: NDArray[np.bool_]) -> list[Share]:
    """Group nodes by length of list: blocks of many warps for long ones, a warp for short ones."""
    shares = [Share(np.flatnonzero(is_long), MOST_WARPS), Share(np.flatnonzero(~is_long), 1)]
    return [share for share in shares if share.chosen.size]


def in_turns(d: int, most: int) -> list[tuple[int, int]]:
    """First and last columns of groups that are processed at once: `most` of d, or one."""
    width = min(max(most, 1), max(d, 1))
    return [(first, min(first + width, d)) for first in range(0, d, width)]
