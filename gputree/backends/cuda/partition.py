"""Stable partition of entries, and sums of row statistics over nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.cuda.histogram import SHARED_BYTES
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, Grower, HostTable, to_device
from gputree.backends.thresholds import thresholds

# Entries that one block partitions. Not measured on a device yet.
PARTITION_ROWS = 2048


def partition(
    grower: Grower, begin: Int64s, end: Int64s, splits: Splits
) -> tuple[Int64s, NDArray[np.float64]]:
    """Partition the entries of nodes that all split; see `gputree.backends.base.Backend`."""
    xp = cupy()
    table, kernels = grower.table, grower.kernels
    chunks = Chunks.of(begin, end, PARTITION_ROWS)
    sides = xp.empty(table.rows, dtype=np.uint8)
    lefts = xp.empty(chunks.number, dtype=np.int64)
    neighbours = xp.zeros((begin.size, 2), dtype=table.bits)
    neighbours[:, 1] = ~table.bits.type(0)
    kernels(
        "partition", "mark_sides", (chunks.number,), table.values, table.codes, table.stride,
        table.columns, grower.entries, chunks.owner, chunks.first, chunks.last,
        *_cuts(table.host, splits), sides, lefts, neighbours,
    )  # fmt: skip
    starts, middles = to_device(begin), xp.empty(begin.size, dtype=np.int64)
    records = xp.empty((begin.size, 3), dtype=np.int64)
    kernels(
        "partition", "find_middles", (begin.size,), starts, to_device(chunks.node), neighbours,
        lefts, middles, records, threads=32,
    )  # fmt: skip
    out = xp.empty(table.rows, dtype=grower.entries.dtype)
    kernels(
        "partition", "place_entries", (chunks.number,), grower.entries, chunks.owner, chunks.first,
        chunks.last, starts, middles, lefts, sides, out,
    )  # fmt: skip
    kernels(
        "partition", "copy_entries", (chunks.number,), out, chunks.first, chunks.last,
        grower.entries,
    )  # fmt: skip
    middle, low, high = records.get().T.copy()
    neighbours = low.view(np.float64), high.view(np.float64)
    host = table.host
    return middle, thresholds(splits, *neighbours, host.by_code, host.low, host.high)


def _cuts(host: HostTable, splits: Splits) -> list[Any]:
    """The splits as `mark_sides` takes them."""
    f = splits.feature
    last = host.offset[f + 1] - host.offset[f] - 1
    return [
        to_device(f, np.int32),
        to_device(splits.cut_bin, np.int32),
        to_device(splits.next_bin, np.int32),
        to_device(splits.inside, np.uint8),
        to_device(splits.missing_left, np.uint8),
        to_device(np.where(host.missing[f], last, -1), np.int32),
        to_device(splits.threshold),
        to_device(host.by_code[f], np.uint8),
    ]


def node_statistics(grower: Grower, begin: Int64s, end: Int64s) -> Int64s:
    """Row statistics, shape (m, statistics), of m nodes."""
    width = grower.task.statistics
    rows = grower.rows
    out = cupy().zeros((begin.size, width), dtype=np.int64)
    fits = width * 8 <= SHARED_BYTES
    chunks = Chunks.of(begin, end)
    grower.kernels(
        "statistics", "node_statistics", (chunks.number,), rows.target, rows.weight, rows.square,
        rows.square_rest, grower.entries, chunks.owner, chunks.first, chunks.last, width,
        int(fits), out, shared=width * 8 if fits else 0,
    )  # fmt: skip
    return out.get()
