"""Sizes that decide how work is cut up on workers; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """What hardware will tune, and tests change: see `TUNING`."""

    # Histograms of one level, at most, of which each worker has a share; the parents' beside them.
    level_bytes_per_worker: int = 1 << 28
    most_level_bytes: int = 1 << 31
    # Statistics by category of one column, at most, that come to the client at once.
    category_bytes: int = 1 << 27
    # Histograms, or other results, that a device has at once, at most, or one.
    result_bytes: int = 1 << 26
    # Rows that one worker grows subtrees on at once, at most.
    group_bytes: int = 1 << 27
    # Values that are looked at before all of a column: most columns have more than bins.
    first_look: int = 1 << 12

    # Counts of one round, at most, unless one interval alone has more.
    round_bytes: int = 1 << 24
    # Rows to a cell; and cells to an interval, as powers of two.
    cell_rows: int = 4
    least_bits: int = 2
    most_bits: int = 12

    # Results that one task combines: fewer make the tree deeper, more make one worker wait for
    # more.
    fan_in: int = 8
    # Bytes that are worth one more task: of 8 to 1,000 parts a sum passes 8 to 27 times as many
    # into workers, one after another, at 0.5 GB/s, in the 1 to 2 ms of a task
    # (`benchmarks.dask_constants`).
    task_bytes: int = 1 << 16
    # Pieces of work a thread of the cluster, at most, so that all have some to the end.
    pieces_per_thread: int = 2


TUNING = Tuning()
