"""One table in shards of rows: shards count, and one grower chooses all splits from the sums.

    HostShard         rows with their codes and order; counts nodes, the CPU's way or a device's
    Shards            where shards run, and how their counts are summed:
      LocalShards     in memory, or mapped from files; threads count them in turn
      DaskShards      on the workers of a cluster, made and counted by pure tasks
      DeviceShards    on the host; those that fit stay on a CUDA device, others pass through it
    TableSummary      columns, bins and task: everything about a table except its rows
    CutSearch         exact cuts inside bins, of a whole level at once, from counts of intervals
    ShardedBackend    grows over any of them

The tree equals the tree of the whole table, field by field, however the table is divided into
shards.
"""
