"""Division of device memory before a tree is grown.

Cached copies on the device of arrays of the host, within a memory limit.

A copy is released when its array is deleted, or, the least recently used first, when others need
its memory; it is made again when it is required.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from numpy.typing import NDArray

from gputree.backends.base import Task
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.base.memory import OutOfMemory

# Maximum bytes of a level for each byte of its histograms: those, the ones of its parents, sums
# over bins and marks of bins.
LEVEL_SHARE = 6

# Bytes for each (row, column) pair that is gathered and sorted to be refined, and in subtrees.
GATHERED_BYTES = 100
SORTED_BYTES = 80

# Bytes of an entry, and of its copy while nodes are partitioned.
ENTRY_BYTES = 4 + 4

# Bytes of an entry of one of several trees: these, its row, and at most four statistics.
STACKED_BYTES = ENTRY_BYTES + 4 + 4 * 8

INSTEAD = "Use device='cpu', or fewer rows or columns."


class Memory(NamedTuple):
    """Limits of a growth."""

    keeps_values: bool  # the values of a host table fit in addition to the codes
    histogram_bytes: int  # of one level
    gathered_pairs: int  # (row, column) pairs that are refined at once
    sorted_pairs: int  # and in small subtrees that are built at once

    @property
    def gathered_bytes(self) -> int:
        """Bytes of the pairs that are refined at once."""
        return self.gathered_pairs * GATHERED_BYTES


def share_out(
    task: Task, rows: int, code_bytes: int, value_bytes: int, used_bytes: int = 0
) -> Memory:
    """Divide the limit `task.max_device_memory`, or a fraction of the free memory.

    The task has statistics of so many rows. The table has `code_bytes` of codes, `value_bytes` of
    values on the host, and already uses `used_bytes` on the device.

    Raises
    ------
    MemoryError
        The codes and targets do not fit.
    """
    tuned, budget = tuning.TUNING, budget_of(task.max_device_memory, used_bytes)
    given = task.max_device_memory is not None
    needed = code_bytes + rows * (ENTRY_BYTES + statistics_bytes(task))
    needed += set_bytes(task)
    if needed + tuned.least_work > budget:
        what = "max_device_memory allows" if given else "the free device memory is"
        raise OutOfMemory(
            f"Growing a tree on {rows:,} rows needs at least {needed + tuned.least_work:,} bytes "
            f"of device memory; {what} {budget:,}.",
            INSTEAD,
        )
    work = budget - needed
    keeps_values = value_bytes + min(work // 4, tuned.ample_work) <= work
    work -= value_bytes if keeps_values else 0
    return Memory(
        keeps_values=keeps_values,
        histogram_bytes=work // 2 // LEVEL_SHARE,
        gathered_pairs=max(work // 2 // GATHERED_BYTES, 1),
        sorted_pairs=max(work // SORTED_BYTES, 1),
    )


def budget_of(max_device_memory: int | None, used_bytes: int) -> int:
    """Bytes that growth may use, including `used_bytes`, which its table already uses."""
    if max_device_memory is not None:
        return max_device_memory
    xp = cupy()
    free = xp.cuda.Device().mem_info[0] + xp.get_default_memory_pool().free_bytes()
    return int(tuning.TUNING.default_share * (free + used_bytes))


def refused_allocation(error: MemoryError) -> str | None:
    """The reason to give for an allocation that CuPy was refused; None for other errors."""
    if not isinstance(error, cupy().cuda.memory.OutOfMemoryError):
        return None
    return f"The CUDA device has not enough memory: {str(error).rstrip('.')}."


def release() -> None:
    """Return to the device what CuPy keeps of memory that is no longer used."""
    cupy().get_default_memory_pool().free_all_blocks()


def statistics_bytes(task: Task) -> int:
    """Bytes of a row's target and weights."""
    target = 4 if task.n_classes else 8
    return target + 8 * sum(column is not None for column in task.rows[1:])


def set_bytes(task: Task) -> int:
    """Bytes of the sets of columns that may interact."""
    return sum(array.nbytes for array in (task.interactions or ())[:3])


class _Copy(NamedTuple):
    owner: weakref.ref[NDArray[Any]]
    value: Any
    nbytes: int


class Copies:
    """Copies on the device of arrays of the host, by the identity of these arrays.

    One thread at a time calls methods; arrays may be deleted in any.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Copy] = {}  # least recently used first

    @property
    def nbytes(self) -> int:
        """Bytes of all copies."""
        return sum(copy.nbytes for copy in list(self._kept.values()))

    def find(self, owner: NDArray[Any]) -> Any:
        """Return the copy that is kept for an array, or None."""
        copy = self._kept.pop(id(owner), None)
        if copy is None:
            return None
        self._kept[id(owner)] = copy
        return copy.value

    def keep(self, owner: NDArray[Any], value: Any, nbytes: int) -> None:
        """Keep `value` as the copy for an array, until the array is deleted."""
        key = id(owner)
        gone = weakref.ref(owner, lambda _: self._kept.pop(key, None))
        self._kept[key] = _Copy(gone, value, nbytes)

    def make_room(self, nbytes: int, budget: int) -> None:
        """Release copies until `nbytes` more are within `budget`, or none is left."""
        for key in list(self._kept):
            if self.nbytes + nbytes <= budget:
                return
            self._kept.pop(key, None)
