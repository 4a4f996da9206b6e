"""Device memory of attribute lists, within a limit.

A level of E entries and the next one are in memory together. If the next one is made in groups of
nodes, levels wait: one of E entries, one of E / 2, and so on, two tables of entries in all.

Structures that the launchers of list kernels share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import COLUMNS, LANES, Kernels, Packed
from gputree.backends.cuda.memory import INSTEAD, budget_of
from gputree.backends.lists import ListTask
from gputree.base.dtypes import MOST_ROWS, Int64s
from gputree.base.memory import OutOfMemory

# Bytes of an entry in the list of a column, and of its code.
LIST_ENTRY_BYTES = 4 + 4

# Bytes of an entry while it is moved: its route, and its place if it is a fraction.
ROUTE_BYTES = 8 + 4

# Bytes of a cursor of a list that is partitioned.
CURSOR_BYTES = 4

# Divisor of the table's rows: the minimum size of the level that is grown, in addition to those
# that wait. Smaller levels would be many.
LEAST_SHARE = 8

# Rows of a table for each part of a level that memory is reserved for.
PART_ROWS = 4

# Words of a part in addition to its class weights.
PART_WORDS = 6

# Bytes between allocations: lists of pieces of nodes are aligned to them.
ALIGNED = 512


class Ledger:
    """Bytes of device memory of one growth: a `budget`, and `used` by levels and shared arrays."""

    def __init__(self, task: ListTask) -> None:
        self.is_given = task.max_device_memory is not None
        self.budget = budget_of(task.max_device_memory, 0)
        self.used = 0

    @property
    def left(self) -> int:
        """Bytes that are unused."""
        return self.budget - self.used

    @property
    def bound(self) -> str:
        """Memory limit in words."""
        what = "max_device_memory allows" if self.is_given else "the free device memory is"
        return f"{what} {self.budget:,}"

    def require(self, nbytes: int, what: str) -> None:
        """Raise MemoryError unless `nbytes` more are within the limit."""
        if nbytes > self.left:
            raise OutOfMemory(
                f"{what} needs {self.used + nbytes:,} bytes of device memory together with the "
                f"attribute lists there; {self.bound}.",
                INSTEAD,
            )

    def require_table(self, task: ListTask, d: int, n: int) -> None:
        """Raise MemoryError if a table of n rows and d columns cannot be grown within the limit."""
        needed = self.used + least_bytes(task, d, n)
        if needed > self.budget:
            raise OutOfMemory(
                f"The attribute lists of {n:,} rows x {d:,} columns, two levels of them, need at "
                f"least {needed:,} bytes of device memory; {self.bound}.",
                "Use device='cpu'.",
            )


def least_bytes(task: ListTask, d: int, n: int) -> int:
    """Minimum bytes of the levels of a table of n rows and d columns."""
    return (2 * n + -(-n // LEAST_SHARE)) * _entry_bytes(task, d) + n * _work_bytes(task)


def most_entries(task: ListTask, d: int, n: int, free_bytes: int) -> int:
    """Maximum number of entries of a level with which growth uses at most `free_bytes` bytes.

    Levels that wait, and the one that is made below them, add up to two tables and such a level, or
    to three such levels where these are larger than the table.
    """
    entry, work = _entry_bytes(task, d), _work_bytes(task)
    few = (free_bytes - n * work) // entry - 2 * n
    return min(few if few <= n else free_bytes // (3 * entry + work), MOST_ROWS)


def _entry_bytes(task: ListTask, d: int) -> int:
    """Bytes per entry: one item and code in each of d lists, plus target and weight."""
    return LIST_ENTRY_BYTES * d + 4 + (0 if task.weight is None else 8)


def _work_bytes(task: ListTask) -> int:
    """Bytes per entry while a level is scored, assigned and moved."""
    return ROUTE_BYTES + 8 * (task.n_classes + PART_WORDS) // PART_ROWS


# ------------------------------------------------------------------ of each step
def score_bytes(n_classes: int, d: int, m: int) -> tuple[int, int]:
    """Bytes sent for m nodes, and bytes of the candidates of each column."""
    return m * (8 * (3 + n_classes) + d), 6 * 8 * m


def assign_bytes(n_classes: int, m: int, n_parts: int, n_entries: int) -> int:
    """Bytes of the tests of m nodes, and of their parts."""
    pieces = m + n_entries // tuning.TUNING.lists_chunk_places + 1
    return (
        8 * n_parts * (n_classes + PART_WORDS)
        + m * (6 * 8 + 2 * 4)
        + 8
        + 3 * (8 * pieces + ALIGNED)
    )


def level_bytes(task: ListTask, d: int, n_entries: int) -> int:
    """Bytes of the entries of a level and their lists."""
    return n_entries * _entry_bytes(task, d)


def move_bytes(d: int, m: int, n_parts: int, n_entries: int, fractions: int) -> int:
    """Bytes of the routes of entries and fractions, and of the arrays sent to move them."""
    return 8 * n_entries + 4 * max(fractions, 1) + 2 * 8 * n_parts + m * (4 * 8 + d) + 3 * 8


def nbytes_of(*arrays: Any) -> int:
    """Bytes of arrays; None has none."""
    return sum(int(array.nbytes) for array in arrays if array is not None)


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
