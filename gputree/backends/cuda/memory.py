"""How the device's memory is shared out before a tree is grown."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.base import Task
from gputree.backends.cuda.kernels import cupy

# Of the free memory, where no budget is set: room for CuPy's pool to be uneven in.
DEFAULT_SHARE = 0.8

# Bytes that growth works in, at least, and those it leaves free for work before it keeps
# the values of a table on the device.
LEAST_WORK = 1 << 24
AMPLE_WORK = 1 << 32

# A level holds its histograms, those of its parents, sums over bins and marks of bins: bytes
# for each byte of its histograms, at most.
LEVEL_SHARE = 6

# Bytes for each (row, column) pair that is gathered and sorted to be refined, and to be finished.
GATHERED_BYTES = 100
SORTED_BYTES = 80


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


def share_out(task: Task, rows: int, stride: int, value_bytes: int) -> Memory:
    """Share out the budget `task.max_device_memory`, or a share of the free memory.

    Parameters
    ----------
    task : Task
    rows : int
    stride : int
        Bytes of a row of codes.
    value_bytes : int
        Bytes of the table's values where they are still on the host, else 0.

    Raises
    ------
    MemoryError
        The codes and targets alone do not fit.
    """
    budget = task.max_device_memory
    given = budget is not None
    if budget is None:
        budget = int(DEFAULT_SHARE * free_bytes())
    needed = rows * _row_bytes(task, stride)
    if needed + LEAST_WORK > budget:
        what = "max_device_memory allows" if given else "the device has room for"
        raise MemoryError(
            f"Growing a tree on {rows:,} rows needs at least {needed + LEAST_WORK:,} bytes of "
            f"device memory; {what} {budget:,}. Use device='cpu', or fewer rows or columns."
        )
    work = budget - needed
    keeps_values = value_bytes + min(work // 4, AMPLE_WORK) <= work
    work -= value_bytes if keeps_values else 0
    return Memory(
        keeps_values=keeps_values,
        histogram_bytes=work // 2 // LEVEL_SHARE,
        gathered_pairs=max(work // 2 // GATHERED_BYTES, 1),
        sorted_pairs=max(work // SORTED_BYTES, 1),
    )


def free_bytes() -> int:
    """Free memory of the device, what CuPy's pool holds unused included."""
    xp = cupy()
    return xp.cuda.Device().mem_info[0] + xp.get_default_memory_pool().free_bytes()


def _row_bytes(task: Task, stride: int) -> int:
    """Bytes of a row's codes, entry, side, place and statistics."""
    rest = (task.weight, task.square, task.square_rest)
    target = 4 if task.n_classes else 8
    return stride + 4 + 1 + 4 + target + 8 * sum(column is not None for column in rest)
