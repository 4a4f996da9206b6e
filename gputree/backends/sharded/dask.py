"""Shards on the workers of a cluster, such as Dask's: pure tasks on futures, and their sums.

    shard     values, codes, statistics of its rows; made once, never changed
    order     of its rows: the order of a level is made from the one before
    task      function(shard, order, ...), then a tree of sums

    shard 0   | group 0 | group 1 | ...       rows of small nodes go to a worker, group by group
    shard 1   | group 0 | group 1 | ...       of nodes; it builds and returns the subtrees
                   v         v
                worker     worker

Tasks depend on nothing else. If a worker is lost, the scheduler makes its shards and orders again,
on others, from the tasks that made them; no other code is involved.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Weights
from gputree.backends.base import Bounds, Larger, Rows, Splits, Subtrees, Task, Uint64s
from gputree.backends.binning import Bins
from gputree.backends.sharded import tuning
from gputree.backends.sharded.backend import ShardedBackend
from gputree.backends.sharded.coding import Layout, code, empty_table
from gputree.backends.sharded.histograms import (
    HistogramBlock,
    Histograms,
    add_up,
    all_nodes,
    cut_columns,
)
from gputree.backends.sharded.rows import Read, Rounding, ShardRanges, in_units, rows_of
from gputree.backends.sharded.shard import (
    BinKeys,
    HostShard,
    Partitioned,
    RowBlock,
    join_partitions,
)
from gputree.backends.sharded.shards import (
    Budget,
    Finished,
    Shape,
    SubtreeRoots,
    Sum,
    group_nodes,
    grow_gathered,
    grower_on,
    most_rows,
    places_of,
)
from gputree.backends.sharded.table import TableSummary
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import ROW, Floats, Int64s, writable
from gputree.tree.branches import concatenated_ranges


class Shared(NamedTuple):
    """Arguments of the tasks on all shards."""

    summary: TableSummary  # of one thread
    choose: Callable[[], str]  # returns "cpu" or "cuda" on the worker; or raises


class DaskShards:
    """`gputree.backends.sharded.shards.Shards` on workers, of futures of coded `RowBlock`.

    `summary` has as many threads as the client; a task has one. `choose` is called on a worker, and
    returns the device that it counts on, "cpu" or "cuda".
    """

    name = "cpu"  # of the client

    def __init__(
        self,
        tasks: Tasks,
        summary: TableSummary,
        choose: Callable[[], str],
        blocks: list[Any],
        sizes: Int64s,
    ) -> None:
        self.tasks, self.summary, self.blocks, self.sizes = tasks, summary, blocks, sizes
        self._summary = tasks.share(replace(summary, n_threads=1, keys=None))
        self._shared = tasks.submit(Shared, self._summary, choose)
        self._order = tasks.map(all_rows, sizes.tolist())

    def encode(self, max_bins: int) -> None:
        """Do nothing: shards are coded when they are made."""

    @property
    def budget(self) -> Budget:
        tuned = tuning.TUNING
        level = min(tuned.level_bytes_per_worker * self.tasks.workers, tuned.most_level_bytes)
        most = max(level, self.summary.histogram_bytes)
        return Budget(
            most,
            tuned.round_bytes,
            tuned.round_bytes,
            tuned.category_bytes,
            4 * tuned.listed_bytes,
            False,
        )

    def report(self) -> dict[str, int]:
        """Return the bytes of arrays that the client received."""
        return {"received_bytes": self.tasks.received}

    def new_histograms(self, m: int) -> Histograms:
        return Histograms(m, self.tasks, self.summary, self._summary)

    def count(
        self, out: Histograms, ranges: ShardRanges, slots: Int64s, larger: Larger | None
    ) -> None:
        """See `Shards`; futures are not waited for."""
        summary, whole = self.summary, None if larger is None else larger.whole
        offset = summary.table.offset
        size = slots.size * summary.histogram_bytes
        most = self.tasks.pieces(size, self.sizes.size)
        number = 1 << (most.bit_length() - 1)  # a power of two, see `cut_columns`
        if whole is not None:  # a block is inside one of the level above
            number = max(number, whole.number)
        out.number = number
        none = np.empty(0, np.int64)
        derived = (none, none, none) if larger is None else larger[1:]
        level = self.tasks.share((out.m, slots, derived))
        for columns in cut_columns(offset, number):
            found = self._map(count_columns, ranges, columns, summary.cell_dtype.str)
            pieces = self.tasks.narrowed(add_up, found)
            parent = None if whole is None else whole.around(columns)
            cells = self.tasks.submit(
                all_nodes, self._summary, pieces, columns, level, parent and parent.first,
                parent and parent.cells,
            )  # fmt: skip
            out.blocks.append(HistogramBlock(*columns, cells))

    def sum(self, method: str, sums: Sequence[Sum], ranges: ShardRanges, *args: Any) -> None:
        shapes = [one.shape() for one in sums]
        found = self._map(counted, ranges, method, shapes, *args)
        if found:
            for one, other in zip(sums, self.tasks.tree(combined, found), strict=True):
                one.combine(other)

    def collect(
        self, method: str, ranges: ShardRanges, *args: Any, join: Callable[..., Any] | None = None
    ) -> list[Any]:
        found = self._map(answer, ranges, method, *args)
        if join is None:
            return self.tasks.fetch(found)
        return [self.tasks.tree(join, found)] if found else []

    def _map(self, function: Callable[..., Any], ranges: ShardRanges, *given: Any) -> list[Any]:
        """Map ``function(shard, begin, end, *given)`` over shards with rows; returns futures."""
        shards, shared = ranges.shards(), self.tasks.share(given)
        return self.tasks.map(
            apply, *self._of(shards, ranges), [function] * len(shards), [shared] * len(shards)
        )

    def _of(self, shards: list[int], ranges: ShardRanges) -> list[list[Any]]:
        """Arguments of the tasks of some shards: shared ones, shards, and places of nodes."""
        places = [ranges.in_shard(p) for p in shards]
        return [
            [self._shared] * len(shards),
            [self.blocks[p] for p in shards],
            [self._order[p] for p in shards],
            [begin for begin, _ in places],
            [end for _, end in places],
        ]

    def partition(self, ranges: ShardRanges, splits: Splits) -> tuple[Int64s, Floats, Floats]:
        given, shards = self.tasks.share(splits), ranges.shards()
        ordered = self.tasks.map(partitioned, *self._of(shards, ranges), [given] * len(shards))
        for p, order in zip(shards, ordered, strict=True):
            self._order[p] = order
        found = self.tasks.fetch(self.tasks.map(without_order, ordered))
        return join_partitions(ranges, zip(shards, found, strict=True))

    def subtrees(self, nodes: SubtreeRoots) -> Iterator[tuple[Subtrees, Finished]]:
        tasks, futures = self.tasks, []
        for chosen in group_nodes(nodes.sizes, most_rows(self.summary, self._group_bytes(nodes))):
            group = nodes.take(chosen)
            shards = group.ranges.shards()
            pieces = tasks.map(rows_of_nodes, *self._of(shards, group.ranges))
            given = tasks.share((group.begin, group.depth, group.keys, group.bounds))
            sizes = group.ranges.rows[:, shards]
            futures.append(tasks.submit(grow_group, self._shared, pieces, sizes, given))
        for future in futures:
            yield tasks.fetch([future])[0]

    def _group_bytes(self, nodes: SubtreeRoots) -> int:
        """Bytes of rows per group: all threads have some, if it is worth the tasks."""
        row = self.summary.columns * (self.summary.table.values.dtype.itemsize + 9)
        whole = int(nodes.sizes.sum()) * row
        piece = whole // self.tasks.pieces(whole, self.sizes.size) + 1
        return min(tuning.TUNING.gathered_bytes, piece)


def all_rows(n: int) -> Partitioned:
    """Return the rows of a shard in their order."""
    none = np.empty(0)
    return Partitioned(np.arange(n, dtype=ROW), none.astype(np.int64), none, none)


def without_order(part: Partitioned) -> Partitioned:
    """Return the results of partitioning without the order of rows."""
    return part._replace(entries=part.entries[:0].copy())


def opened(shared: Shared, block: RowBlock, order: Partitioned) -> HostShard:
    """Build a read-only shard on this worker."""
    rows = Rows(*(None if x is None else writable(x) for x in block.rows))  # type: ignore[arg-type]
    values, codes = writable(block.values), writable(block.codes)
    host = shared.summary.writable().on_cpu(values, codes, rows, writable(order.entries))
    if shared.choose() == "cpu":
        return HostShard(host)
    from gputree.backends.sharded.cuda_shard import Cached, CudaShard  # here: not needed on CPUs

    return CudaShard(host, Cached(host, block.codes, order.entries))


def apply(
    shared: Shared,
    block: RowBlock,
    order: Partitioned,
    begin: Int64s,
    end: Int64s,
    function: Callable[..., Any],
    given: tuple[Any, ...],
) -> Any:
    """Apply a function to one shard."""
    return function(opened(shared, block, order), writable(begin), writable(end), *given)


def count_columns(
    shard: HostShard, begin: Int64s, end: Int64s, columns: tuple[int, int], dtype: str
) -> NDArray:
    """Count histograms of some columns of nodes in one shard."""
    table, channels = shard.host.table, shard.host.channels
    cells = int(table.offset[columns[1]] - table.offset[columns[0]])
    counts = np.zeros((begin.size, cells * channels), dtype)
    shard.count([counts], begin, end, np.arange(begin.size), columns)
    return counts


def counted(
    shard: HostShard, begin: Int64s, end: Int64s, method: str, shapes: list[Shape], *args: Any
) -> list[Sum]:
    """Return the sums of one shard."""
    sums = [one.start() for one in shapes]
    getattr(shard, method)([one.array for one in sums], begin, end, *args)
    return sums


def answer(shard: HostShard, begin: Int64s, end: Int64s, method: str, *args: Any) -> Any:
    """Call a method of one shard."""
    return getattr(shard, method)(begin, end, *args)


def combined(found: list[list[Sum]]) -> list[Sum]:
    """Add up the sums of some shards."""
    total = [one._replace(array=one.array.copy()) for one in found[0]]
    for others in found[1:]:
        for one, other in zip(total, others, strict=True):
            one.combine(other)
    return total


def partitioned(
    shared: Shared, block: RowBlock, order: Partitioned, begin: Int64s, end: Int64s, splits: Splits
) -> Partitioned:
    """Return the order of a shard with nodes partitioned."""
    splits = Splits(*(writable(field) for field in splits))
    return opened(shared, block, order).partition(writable(begin), writable(end), splits)


def rows_of_nodes(
    shared: Shared, block: RowBlock, order: Partitioned, begin: Int64s, end: Int64s
) -> RowBlock:
    """Return the rows of some nodes in one shard, one node after another."""
    rows = order.entries[concatenated_ranges(begin, end - begin)]
    out = RowBlock.empty(rows.size, block, coded=True)
    out.put(np.arange(rows.size), block, rows)
    return out


def grow_group(
    shared: Shared,
    pieces: list[RowBlock],
    sizes: Int64s,
    given: tuple[Int64s, Int64s, Uint64s, Bounds | None],
) -> tuple[Subtrees, Finished]:
    """Grow the subtrees of nodes; piece p has ``sizes[j, p]`` rows of node j."""
    begin, depth, keys, bounds = given
    places, out = places_of(sizes), RowBlock.empty(int(sizes.sum()), pieces[0], coded=True)
    for piece, first, n in zip(pieces, places.T, sizes.T, strict=True):
        out.put(concatenated_ranges(first, n), piece)
    grower = grower_on(shared.choose(), shared.summary.writable().on_cpu(*out))
    limits = bounds and Bounds(*map(writable, bounds))
    return grow_gathered(grower, begin, sizes.sum(axis=1), writable(depth), writable(keys), limits)


# Weights and their rounding, the criterion of regression or None, the ends of targets.
Statistics = tuple[Weights, Rounding, str | None, tuple[float, float]]


def spread(
    tasks: Tasks,
    rows: list[Any],
    layout: Layout,
    bins: Bins,
    how: Statistics,
    task: Task,
    n_threads: int,
    choose: Callable[[], str],
) -> ShardedBackend:
    """Return a backend of rows on workers, futures of `Read`, which are coded there.

    `task` has no rows. The client has `n_threads`; a task has one. `choose` is as for `DaskShards`.
    """
    given = tasks.share(layout)
    shared_bins, shared_how = tasks.share(bins), tasks.share(how)
    blocks = tasks.each(make_block, rows, shared_bins, given, shared_how)
    sizes = np.array(tasks.fetch(tasks.each(count_rows, rows)), np.int64)
    keys = BinKeys.of(bins, layout.found.low, layout.found.high)
    summary = TableSummary(empty_table(bins, layout), task, int(sizes.sum()), n_threads, keys)
    return ShardedBackend(DaskShards(tasks, summary, choose, blocks, sizes))


def make_block(part: Read, bins: Bins, layout: Layout, how: Statistics) -> RowBlock:
    """Code the rows of a partition, and convert their statistics to units."""
    codes = code(part, bins, layout).codes if part.codes is None else part.codes
    return RowBlock(rows_of(part).values, codes, in_units(part, *how))


def count_rows(shard: Read) -> int:
    """Return the number of rows of a shard."""
    return len(shard.values)
