"""What the launchers of list kernels share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import Kernels
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.memory import Ledger
from gputree.backends.cuda.structs import COLUMNS, ENTRIES, Packed
from gputree.backends.lists import ListTask

LANES = 32

# Warps that walk a long list together, at most: see lists/tiles.cuh.
MOST_WARPS = 16


class Table(NamedTuple):
    """What all levels of one table share."""

    kernels: Kernels
    task: ListTask
    nominal: Any  # (d,) uint8
    terms: Any  # int64
    ledger: Ledger


class Entries(NamedTuple):
    """Parts of rows, by node; `weight` is None where all weigh one unit."""

    target: Any  # (E,) int32
    weight: Any  # (E,) int64 or None

    def pack(self) -> Packed:
        """For kernels."""
        return ENTRIES.pack(*self)


class Lists(NamedTuple):
    """Entries by code and their codes, shape (d, E)."""

    item: Any  # int32
    code: Any  # uint32

    def columns(self, first: int, last: int) -> Lists:
        """Those of columns ``first .. last``, where they lie."""
        return Lists(self.item[first:last], self.code[first:last])

    def pack(self, nominal: Any) -> Packed:
        """Of columns of these kinds, for kernels."""
        return COLUMNS.pack(nominal, *self.item.shape, *self)


class Share(NamedTuple):
    """Nodes, or tests, that are worked on by blocks of one size."""

    chosen: NDArray[np.int64]
    warps: int

    @property
    def threads(self) -> int:
        return self.warps * LANES


def by_length(is_long: NDArray[np.bool_]) -> list[Share]:
    """A block of many warps to a long list, a warp to a short one."""
    shares = [Share(np.flatnonzero(is_long), MOST_WARPS), Share(np.flatnonzero(~is_long), 1)]
    return [share for share in shares if share.chosen.size]


def in_turns(d: int, most: int) -> list[tuple[int, int]]:
    """First and last of the columns that are worked on at once: `most` of d, or one."""
    width = min(max(most, 1), max(d, 1))
    return [(first, min(first + width, d)) for first in range(0, d, width)]


def offsets(sizes: Int64s) -> Int64s:
    """Where each of consecutive pieces begins, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def flags(values: NDArray[np.bool_]) -> Any:
    """Booleans on the device, as bytes."""
    return to_device(values, np.uint8)
