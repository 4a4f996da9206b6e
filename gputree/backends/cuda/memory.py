"""Division of device memory before a tree is grown."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.base import Task
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.lists import ListTask

# Maximum bytes of a level for each byte of its histograms: those, the ones of its parents, sums
# over bins and marks of bins.
LEVEL_SHARE = 6

# Bytes for each (row, column) pair that is gathered and sorted to be refined, and in subtrees.
GATHERED_BYTES = 100
SORTED_BYTES = 80

# Bytes of an entry, and of its copy while nodes are partitioned.
ENTRY_BYTES = 4 + 4


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


def share_out(task: Task, rows: int, stride: int, value_bytes: int, used_bytes: int = 0) -> Memory:
    """Divide the limit `task.max_device_memory`, or a fraction of the free memory.

    A row has `stride` bytes of codes. The table has `value_bytes` of values on the host, and
    already uses `used_bytes` on the device.

    Raises
    ------
    MemoryError
        The codes and targets do not fit.
    """
    tuned, budget = tuning.TUNING, budget_of(task, used_bytes)
    given = task.max_device_memory is not None
    needed = rows * (stride + ENTRY_BYTES + statistics_bytes(task))
    if needed + tuned.least_work > budget:
        what = "max_device_memory allows" if given else "the free device memory is"
        raise MemoryError(
            f"Growing a tree on {rows:,} rows needs at least {needed + tuned.least_work:,} bytes "
            f"of device memory; {what} {budget:,}. Use device='cpu', or fewer rows or columns."
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


def budget_of(task: Task | ListTask, used_bytes: int) -> int:
    """Bytes that a task may use, including `used_bytes`, which its table already uses."""
    if task.max_device_memory is not None:
        return task.max_device_memory
    xp = cupy()
    free = xp.cuda.Device().mem_info[0] + xp.get_default_memory_pool().free_bytes()
    return int(tuning.TUNING.default_share * (free + used_bytes))


def statistics_bytes(task: Task) -> int:
    """Bytes of a row's target and weights."""
    rest = (task.weight, task.square, task.square_rest)
    target = 4 if task.n_classes else 8
    return target + 8 * sum(column is not None for column in rest)
