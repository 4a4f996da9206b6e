"""One table in shards of rows: what shards count is summed, and one grower decides for all.

    Shard             rows with their codes and order; counts nodes, the CPU's way or a device's
    Shards            where they run, and how their sums come together:
      LocalShards     in memory, or mapped from files; threads take them in turn
      DaskShards      on the workers of a cluster, made and counted by pure tasks
      DeviceShards    on the host; those that fit stay on a CUDA device, others pass through it
    TableSummary      columns, bins and task: all that is known of a table without its rows
    CutSearch         exact cuts inside bins, of a whole level at once, from counts of intervals
    ShardedBackend    grows over any of them

The tree is that of the table in one piece, field by field, wherever it is cut into shards.
"""
