"""Sizes that decide how work on shards is cut up; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """Sizes that measurements may change, and tests do: see `TUNING`."""

    # Histograms of one level, at most: on this machine, and on a cluster, where each worker has a
    # share of them. The parents' come on top.
    most_histogram_bytes: int = 1 << 27
    level_bytes_per_worker: int = 1 << 28
    most_level_bytes: int = 1 << 31
    # Rows of small nodes that are gathered at once, at most, or those of one node.
    gathered_bytes: int = 1 << 27
    # See `Finishing`: less than where rows need not be gathered.
    rows_per_statistic: float = 6.0
    # Statistics by category of one column, at most, that are summed at once.
    category_bytes: int = 1 << 27
    # Histograms, or other results, that a device has at once, at most, or one.
    result_bytes: int = 1 << 26
    # Values that are looked at before all of a column: most columns have more than bins.
    first_look: int = 1 << 12

    # Of `CutSearch`: counts of one round, at most, unless one interval alone has more: on this
    # machine, where a cache must hold them, and on a cluster, where a round takes longer. Rows to
    # a cell; cells to an interval, as powers of two.
    local_round_bytes: int = 1 << 22
    round_bytes: int = 1 << 24
    cell_rows: int = 4
    least_bits: int = 2
    most_bits: int = 12
    # Intervals that are listed at once, about.
    listed_bytes: int = 1 << 26
    # Rows that its last round gathers, at most; and for each row of their nodes and columns.
    sorted_bytes: int = 1 << 26
    sorted_share: float = 0.05
    # Sums that threads have to themselves, at most.
    partial_bytes: int = 1 << 27

    # Results that one task combines: fewer make the tree deeper, more make one worker wait for
    # more.
    fan_in: int = 8
    # Bytes that are worth one more task (`benchmarks.dask_constants`): a sum of many shards passes
    # into workers one after another, for as long as a task takes.
    task_bytes: int = 1 << 16
    # Pieces of work a thread of the cluster, at most, so that all have some to the end.
    pieces_per_thread: int = 2


TUNING = Tuning()
