"""Division of the device's memory among shards that stay, shards that pass, and work."""

from typing import NamedTuple

from gputree.backends.base import Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.memory import ENTRY_BYTES, budget_of, statistics_bytes
from gputree.backends.cuda.workspace import ALIGNMENT
from gputree.backends.sharded import tuning as sharded_tuning

# Divisor of the memory left after work and results: memory of shards that pass.
PASSING_SHARE = 4

# Divisor of the memory limit: the maximum memory of results.
RESULT_SHARE = 8

# Number of arrays of a shard; each array is aligned.
ARRAYS = 6


class Sizes(NamedTuple):
    """Sizes that decide how a table is divided into shards.

    Attributes
    ----------
    rows, columns : int
    stride : int
        Bytes of a row of codes.
    value_bytes : int
        Of a value; 0 where all cuts are by code.
    result_bytes : int
        Of the largest result of one node: a histogram, the statistics of a column's categories.
    """

    rows: int
    columns: int
    stride: int
    value_bytes: int
    result_bytes: int


class Plan(NamedTuple):
    """Division of a table into shards, and the shards that stay on the device.

    Attributes
    ----------
    rows : int
        Of a shard, except the last.
    staying : int
        Number of first shards, which stay on the device.
    valued : int
        Number of these, the first again, whose values stay as well.
    passing : int
        Number of other shards that fit at once, with their values.
    result_bytes : int
        Of results that are on the device at once.
    """

    rows: int
    staying: int
    valued: int
    passing: int
    result_bytes: int


def share_out(task: Task, sizes: Sizes) -> Plan:
    """Divide the limit `task.max_device_memory`, or a fraction of the free memory.

    Raises
    ------
    MemoryError
        Not even shards of few rows fit; names the bytes that these need.
    """
    budget, tuned = budget_of(task, 0), tuning.TUNING
    row = sizes.stride + statistics_bytes(task) + 4
    # two shards pass at a time, with values and work
    passing_row = 2 * (row + sizes.columns * sizes.value_bytes) + ENTRY_BYTES
    fewest = min(tuned.chunk_rows, sizes.rows)
    fixed = tuned.least_work + column_bytes(sizes) + 4 * ARRAYS * ALIGNMENT
    needed = fixed + sizes.result_bytes + fewest * passing_row
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
    free_bytes = budget - fixed - results
    rows = min(max(free_bytes // PASSING_SHARE // passing_row, fewest), sizes.rows)
    shards = -(-sizes.rows // rows)
    passing, shard = min(2, shards), rows * row + ARRAYS * ALIGNMENT
    free_bytes -= rows * passing_row
    if shards * shard <= free_bytes + passing * shard:  # where all stay, none passes
        free_bytes += passing * shard
    staying = min(free_bytes // shard, shards)
    values = rows * sizes.columns * sizes.value_bytes
    valued = min((free_bytes - staying * shard) // (values + ALIGNMENT), shards) if values else 0
    return Plan(rows, staying, valued, passing, results)


def column_bytes(sizes: Sizes) -> int:
    """Bytes of properties of columns: the values at the ends of bins, and flags."""
    return sizes.columns * (2 * 8 * MAX_BINS + MAX_BINS + 64)
