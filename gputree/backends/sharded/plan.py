"""How the device's memory is shared out among shards that stay, shards that pass, and work."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.base import Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.memory import ENTRY_BYTES, budget_of, statistics_bytes
from gputree.backends.cuda.workspace import ALIGNMENT
from gputree.backends.sharded import tuning as sharded_tuning

# Of the memory behind work and results: what shards that pass have.
PASSING_SHARE = 4

# Of the budget: what results have, at most.
RESULT_SHARE = 8

# Arrays of a shard, each of which ends where the next one may begin.
ARRAYS = 6


class Sizes(NamedTuple):
    """What decides how a table is cut into shards.

    Attributes
    ----------
    rows, columns : int
    stride : int
        Bytes of a row of codes.
    value_bytes : int
        Of a value; 0 where codes decide everywhere.
    result_bytes : int
        Of the largest result of one node: a histogram, the statistics of a column's categories.
    """

    rows: int
    columns: int
    stride: int
    value_bytes: int
    result_bytes: int


class Plan(NamedTuple):
    """How a table is cut into shards, and which stay.

    Attributes
    ----------
    rows : int
        Of a shard, but for the last.
    staying : int
        The first shards, which stay on the device.
    valued : int
        Those of them, the first again, whose values stay as well.
    passing : int
        Shards that others have room for at once, and their values.
    result_bytes : int
        Of results that are on the device at once.
    """

    rows: int
    staying: int
    valued: int
    passing: int
    result_bytes: int


def share_out(task: Task, sizes: Sizes) -> Plan:
    """Share out the budget `task.max_device_memory`, or a share of the free memory.

    Raises
    ------
    MemoryError
        Not even shards of few rows fit; names what these need.
    """
    budget, own = budget_of(task, 0), tuning.TUNING
    row, passing_row = _row_bytes(task, sizes)
    fewest = min(own.chunk_rows, sizes.rows)
    beside = own.least_work + column_bytes(sizes) + 4 * ARRAYS * ALIGNMENT
    needed = beside + sizes.result_bytes + fewest * passing_row
    if needed > budget:
        what = "max_device_memory allows" if task.max_device_memory else "the free device memory is"
        raise MemoryError(
            f"Growing a tree on parts of {fewest:,} rows needs at least {needed:,} bytes of "
            f"device memory; {what} {budget:,}. Use device='cpu', or fewer columns."
        )
    results = min(
        budget // RESULT_SHARE,
        sharded_tuning.TUNING.result_bytes,
        sizes.result_bytes + budget - needed,
    )
    results = max(results, sizes.result_bytes)
    room = budget - beside - results
    rows = min(max(room // PASSING_SHARE // passing_row, fewest), sizes.rows)
    shards = -(-sizes.rows // rows)
    passing, shard = min(2, shards), rows * row + ARRAYS * ALIGNMENT
    room -= rows * passing_row
    if shards * shard <= room + passing * shard:  # where all stay, none passes
        room += passing * shard
    staying = min(room // shard, shards)
    values = rows * sizes.columns * sizes.value_bytes
    valued = min((room - staying * shard) // (values + ALIGNMENT), shards) if values else 0
    return Plan(rows, staying, valued, passing, results)


def _row_bytes(task: Task, sizes: Sizes) -> tuple[int, int]:
    """Of a row that stays; of one that passes in one of two shards, with values and work."""
    row = sizes.stride + statistics_bytes(task) + 4
    return row, 2 * (row + sizes.columns * sizes.value_bytes) + ENTRY_BYTES


def column_bytes(sizes: Sizes) -> int:
    """What is known of columns: the values at the ends of bins, and flags."""
    return sizes.columns * (2 * 8 * MAX_BINS + MAX_BINS + 64)
