"""How the device's memory is shared out before a tree is grown."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.base import Task
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy

# A level holds its histograms, those of its parents, sums over bins and marks of bins: bytes
# for each byte of its histograms, at most.
LEVEL_SHARE = 6

# Bytes for each (row, column) pair that is gathered and sorted to be refined, and to be finished.
GATHERED_BYTES = 100
SORTED_BYTES = 80

# Bytes of an entry, and of its copy while nodes are partitioned.
ENTRY_BYTES = 4 + 4


class Memory(NamedTuple):
    """What a growth may use.

    Attributes
    ----------
    keeps_values : bool
        Whether the values of a host table fit, beside the codes.
    histogram_bytes : int
        Of the histograms of one level.
    gathered_pairs, sorted_pairs : int
        (row, column) pairs that are refined, and finished, at once.
    """

    keeps_values: bool
    histogram_bytes: int
    gathered_pairs: int
    sorted_pairs: int

    @property
    def gathered_bytes(self) -> int:
        """Of the pairs that are refined at once."""
        return self.gathered_pairs * GATHERED_BYTES


def share_out(task: Task, rows: int, stride: int, value_bytes: int, held_bytes: int = 0) -> Memory:
    """Share out the budget `task.max_device_memory`, or a share of the free memory.

    Parameters
    ----------
    task : Task
    rows : int
    stride : int
        Bytes of a row of codes.
    value_bytes : int
        Bytes of the table's values where they were given on the host, else 0.
    held_bytes : int
        Of the table, already on the device: free for it.

    Raises
    ------
    MemoryError
        The codes and targets alone do not fit.
    """
    own, budget = tuning.TUNING, budget_of(task, held_bytes)
    given = task.max_device_memory is not None
    needed = rows * (stride + ENTRY_BYTES + statistics_bytes(task))
    if needed + own.least_work > budget:
        what = "max_device_memory allows" if given else "the free device memory is"
        raise MemoryError(
            f"Growing a tree on {rows:,} rows needs at least {needed + own.least_work:,} bytes of "
            f"device memory; {what} {budget:,}. Use device='cpu', or fewer rows or columns."
        )
    work = budget - needed
    keeps_values = value_bytes + min(work // 4, own.ample_work) <= work
    work -= value_bytes if keeps_values else 0
    return Memory(
        keeps_values=keeps_values,
        histogram_bytes=work // 2 // LEVEL_SHARE,
        gathered_pairs=max(work // 2 // GATHERED_BYTES, 1),
        sorted_pairs=max(work // SORTED_BYTES, 1),
    )


def budget_of(task: Task, held_bytes: int) -> int:
    """Bytes that a task may use, of which so many are held."""
    if task.max_device_memory is not None:
        return task.max_device_memory
    return int(tuning.TUNING.default_share * (free_bytes() + held_bytes))


def free_bytes() -> int:
    """Free memory of the device, what CuPy's pool holds unused included."""
    xp = cupy()
    return xp.cuda.Device().mem_info[0] + xp.get_default_memory_pool().free_bytes()


def statistics_bytes(task: Task) -> int:
    """Bytes of a row's target and weights."""
    rest = (task.weight, task.square, task.square_rest)
    target = 4 if task.n_classes else 8
    return target + 8 * sum(column is not None for column in rest)
