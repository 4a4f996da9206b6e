"""Sizes by which work on shards is divided; no tree depends on them."""

from typing import NamedTuple


class ShardTuning(NamedTuple):
    """Sizes that measurements may change, and tests do: see `TUNING`."""

    # Maximum bytes of histograms of one level: on this machine, and on a cluster, per worker and in
    # all. Those of the parents are in addition.
    most_histogram_bytes: int = 1 << 27
    level_bytes_per_worker: int = 1 << 28
    most_level_bytes: int = 1 << 31
    # Maximum bytes of rows of small nodes that are gathered at once, unless one node has more.
    gathered_bytes: int = 1 << 27
    # See `Finishing`: lower than where rows need not be gathered.
    rows_per_statistic: float = 6.0
    # Maximum bytes of statistics by category of one column that are summed at once.
    category_bytes: int = 1 << 27
    # Maximum bytes of histograms, or other results, that a device has at once, unless one has more.
    result_bytes: int = 1 << 26
    # Values that are inspected before all of a column: most columns have more than bins.
    first_look: int = 1 << 12

    # Of `CutSearch`: maximum bytes of counts of one round, unless one interval has more: on this
    # machine, where a cache must have space for them, and on a cluster, where a round takes longer.
    # Rows per cell; cells per interval, as powers of two.
    local_round_bytes: int = 1 << 22
    round_bytes: int = 1 << 24
    cell_rows: int = 4
    least_bits: int = 2
    most_bits: int = 12
    # Approximate bytes of intervals that are listed at once.
    listed_bytes: int = 1 << 26
    # Maximum bytes of rows that its last round gathers; and a maximum for each row of their nodes
    # and columns.
    sorted_bytes: int = 1 << 26
    sorted_share: float = 0.05
    # Maximum bytes of sums that are separate for threads.
    partial_bytes: int = 1 << 27

    # Results that one task combines: fewer make the tree deeper, more make one worker wait for
    # more.
    fan_in: int = 8
    # Bytes that are worth one more task (`benchmarks.dask_constants`): workers receive a sum of
    # many shards one after another, which takes as long as a task each.
    task_bytes: int = 1 << 16
    # Maximum pieces of work per thread of the cluster, so that all have some to the end.
    pieces_per_thread: int = 2


TUNING = ShardTuning()
