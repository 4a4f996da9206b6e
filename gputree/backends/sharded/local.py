"""Shards of a table on this machine, in memory or mapped from files, counted by threads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gputree.backends.base import Larger, Splits, Subtrees, Task
from gputree.backends.cpu import tuning as cpu_tuning
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Table
from gputree.backends.sharded import tuning
from gputree.backends.sharded.histograms import HistogramBlock, Histograms
from gputree.backends.sharded.rows import ShardRanges
from gputree.backends.sharded.shard import HostShard, RowBlock, join_partitions
from gputree.backends.sharded.shards import (
    Budget,
    Finished,
    SubtreeRoots,
    Sum,
    group_nodes,
    grow_gathered,
    grower_on,
    most_rows,
    places_of,
)
from gputree.backends.sharded.table import ShardedTable, TableSummary, slice_table
from gputree.backends.sharded.tasks import Here, Tasks
from gputree.base.dtypes import Floats, Int64s
from gputree.base.threads import cut, run
from gputree.tree.branches import concatenated_ranges


class LocalShards:
    """`gputree.backends.sharded.shards.Shards` of this process.

    Trees are grown on all rows, or on `entries`, ascending. `spans` are the rows of each shard; by
    default, those that the table defines.
    """

    name = "cpu"

    def __init__(
        self,
        table: ShardedTable,
        task: Task,
        n_threads: int,
        entries: Int64s | None = None,
        spans: list[tuple[int, int]] | None = None,
    ) -> None:
        self.data, self.n_threads = table, n_threads
        self.spans = table.spans() if spans is None else spans
        self.summary = TableSummary.of(table.whole.bare, task, n_threads, None)

        def shard(a: int, b: int) -> HostShard:
            part = replace(task, rows=task.rows.take(slice(a, b)))
            return HostShard(CpuBackend(table.part(a, b), part, n_threads, between(entries, a, b)))

        self.shards = [shard(a, b) for a, b in self.spans]
        self.sizes = np.array([shard.host.entries.size for shard in self.shards])

    def encode(self, max_bins: int) -> None:
        task = self.summary.task
        coded = self.data.whole.coded(max_bins, task.exact, self.n_threads)
        self.take_codes(coded, self.data.bin_keys(max_bins, task.exact))

    def take_codes(self, coded: Table, keys: Any) -> None:
        """Set the codes of the rows of all shards."""
        self.summary = TableSummary.of(coded, self.summary.task, self.n_threads, keys)
        for shard, (a, b) in zip(self.shards, self.spans, strict=True):
            shard.host.table = slice_table(coded, a, b)

    @property
    def budget(self) -> Budget:
        tuned, smallest = tuning.TUNING, cpu_tuning.TUNING.least_histogram_bytes
        most = min(self.data.whole.values.nbytes // 2, tuned.most_histogram_bytes)
        # at least one histogram, or the whole table would be gathered instead
        most = max(smallest, most, self.summary.histogram_bytes)
        return Budget(
            histograms=most,
            round_bytes=tuned.local_round_bytes,
            sorted_bytes=tuned.sorted_bytes,
            category_bytes=tuned.category_bytes,
            listed_bytes=tuned.listed_bytes,
            one_first=True,
        )

    def report(self) -> dict[str, int]:
        return {}

    def new_histograms(self, m: int) -> Histograms:
        return Histograms(m, Tasks(Here()), self.summary, self.summary)

    def count(
        self, out: Histograms, ranges: ShardRanges, slots: Int64s, larger: Larger | None
    ) -> None:
        count_one_block(out, ranges, slots, larger, ((p, self.shards[p]) for p in ranges.shards()))

    def sum(self, method: str, sums: Sequence[Sum], ranges: ShardRanges, *args: Any) -> None:
        """Run shards in threads, each with separate sums; if shards are few, divide the nodes."""
        numbers = ranges.shards()
        size = sum(each.array.nbytes for each in sums)
        fit = max(tuning.TUNING.partial_bytes // max(size, 1), 1)
        rows = ranges.rows
        if len(numbers) >= 2 * self.n_threads or len(rows) == 1:
            parts = cut(rows[:, numbers].sum(axis=0), min(self.n_threads, fit, len(numbers)))
            partial = [sums, *([each.shape().start() for each in sums] for _ in parts[1:])]
            work = [
                (numbers[a:b], ranges, mine) for (a, b), mine in zip(parts, partial, strict=True)
            ]
        else:
            partial = [sums]
            parts = cut(rows.sum(axis=1), min(4 * self.n_threads, len(rows)))
            work = [(numbers, only(ranges, a, b), sums) for a, b in parts]

        def add(shards: list[int], ranges: ShardRanges, mine: Sequence[Sum]) -> None:
            arrays = [each.array for each in mine]
            for p in shards:
                getattr(self.shards[p], method)(arrays, *ranges.in_shard(p), *args)

        run(self.n_threads, add, work)
        for others in partial[1:]:
            for each, other in zip(sums, others, strict=True):
                each.combine(other)

    def collect(
        self, method: str, ranges: ShardRanges, *args: Any, join: Callable[..., Any] | None = None
    ) -> list[Any]:
        shards, rows = ranges.shards(), ranges.rows
        pieces = -(-2 * self.n_threads // max(len(shards), 1)) if self.n_threads > 1 else 1
        parts = cut(rows.sum(axis=1), min(pieces, len(rows)))
        work = [(p, only(ranges, a, b)) for p in shards for a, b in parts]

        def find(p: int, ranges: ShardRanges) -> Any:
            return getattr(self.shards[p], method)(*ranges.in_shard(p), *args)

        return run(self.n_threads, find, work)

    def partition(self, ranges: ShardRanges, splits: Splits) -> tuple[Int64s, Floats, Floats]:
        return partition_each(((p, self.shards[p]) for p in ranges.shards()), ranges, splits)

    def subtrees(self, nodes: SubtreeRoots) -> Iterator[tuple[Subtrees, Finished]]:
        return self.subtrees_on("cpu", nodes, tuning.TUNING.gathered_bytes)

    def subtrees_on(
        self, device: str, nodes: SubtreeRoots, most_bytes: int
    ) -> Iterator[tuple[Subtrees, Finished]]:
        """Like `subtrees`, on "cpu" or "cuda", gathering at most `most_bytes` of rows at once."""
        for chosen in group_nodes(nodes.sizes, most_rows(self.summary, most_bytes)):
            group = nodes.take(chosen)
            grower = grower_on(device, self._gather(group.ranges))
            yield grow_gathered(
                grower, group.begin, group.sizes, group.depth, group.keys, group.bounds
            )

    def _gather(self, ranges: ShardRanges) -> CpuBackend:
        """Gather rows of nodes, one node after another in their order, as a table."""
        sizes = ranges.rows
        places, like = places_of(sizes), self.shards[0].block()
        out = RowBlock.empty(int(sizes.sum()), like, coded=self.summary.is_coded)

        def put(p: int) -> None:
            positions = concatenated_ranges(places[:, p], sizes[:, p])
            self.shards[p].gather(*ranges.in_shard(p), out, positions)

        run(self.n_threads, put, [(p,) for p in ranges.shards()])
        return self.summary.on_cpu(*out)


def count_one_block(
    out: Histograms,
    ranges: ShardRanges,
    slots: Int64s,
    larger: Larger | None,
    shards: Iterator[tuple[int, Any]],
) -> None:
    """Count shards, one after another, into histograms that are one block; then subtract."""
    summary = out.summary
    cells = np.zeros((out.m, summary.histogram_cells * summary.task.channels), summary.cell_dtype)
    for p, shard in shards:
        shard.count([cells], *ranges.in_shard(p), slots, (0, summary.columns))
    if larger is not None:
        summary.on_cpu().subtract(cells, larger._replace(whole=larger.whole.blocks[0].cells))
    out.blocks = [HistogramBlock(0, summary.columns, cells)]


def partition_each(
    shards: Iterator[tuple[int, Any]], ranges: ShardRanges, splits: Splits
) -> tuple[Int64s, Floats, Floats]:
    """Partition shards, one after another; see `Shards.partition`."""
    found = ((p, shard.partition(*ranges.in_shard(p), splits)) for p, shard in shards)
    return join_partitions(ranges, found)


def only(ranges: ShardRanges, begin: int, end: int) -> ShardRanges:
    """Return the ranges with nodes other than ``begin .. end`` empty."""
    last = ranges.first.copy()
    last[begin:end] = ranges.last[begin:end]
    return ShardRanges(ranges.first, last)


def between(entries: Int64s | None, begin: int, end: int) -> Int64s | None:
    """Ascending rows ``begin .. end`` among `entries`, relative to `begin`."""
    if entries is None:
        return None
    first, last = np.searchsorted(entries, [begin, end])
    return entries[first:last] - begin
