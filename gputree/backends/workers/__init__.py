"""One table in parts of rows that lie on the workers of a cluster.

    parts     made and counted by pure tasks, which whoever has lost them makes again
    sums      of integers, by a tree of tasks, in any order
    shards    of columns: sums of histograms, which stay on workers and are scored there
    client    one grower decides, as for parts on one machine

What runs tasks is a client with `submit`, `map`, `gather` and `nthreads`, such as Dask's.
"""
