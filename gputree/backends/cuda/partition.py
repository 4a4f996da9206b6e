"""Stable partition of entries, and sums of row statistics over nodes.

Sides are marked as soon as splits are chosen, so that the host reads both in one copy;
entries move once it is known which nodes are opened.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.cuda.histogram import SHARED_BYTES
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, Grower, to_device
from gputree.backends.thresholds import thresholds

# Entries that one block partitions. Not measured on a device yet.
PARTITION_ROWS = 2048

# Fields of a split on the device, 8 bytes each: see record.cuh.
RECORD_WORDS = 12


class Marked(NamedTuple):
    """Nodes whose entries have their sides: on the host, and what moves entries later."""

    begin: Int64s
    splits: Splits
    middle: Int64s
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    starts: Any  # `begin` on the device
    chunks: Chunks
    lefts: Any
    records: Any  # (m, RECORD_WORDS) int64


def mark(grower: Grower, begin: Int64s, end: Int64s, records: Any) -> Marked:
    """Mark the side of every entry of m nodes by the splits in `records`."""
    xp = cupy()
    table, kernels = grower.table, grower.kernels
    chunks = Chunks.of(begin, end, PARTITION_ROWS)
    lefts = xp.empty(chunks.number, dtype=np.int64)
    neighbours = xp.zeros((begin.size, 2), dtype=table.bits)
    neighbours[:, 1] = ~table.bits.type(0)
    kernels(
        "partition", "mark_sides", (chunks.number,), table.values, table.codes, table.stride,
        table.columns, grower.entries, chunks.owner, chunks.first, chunks.last, records,
        table.offset, table.missing, table.by_code, grower.scratch.sides, lefts, neighbours,
    )  # fmt: skip
    starts = to_device(begin)
    kernels(
        "partition", "find_middles", (begin.size,), starts, to_device(chunks.node), neighbours,
        lefts, records, threads=32,
    )  # fmt: skip
    return Marked(begin, *_read(records.get()), starts, chunks, lefts, records)


def _read(
    records: Int64s,
) -> tuple[Splits, Int64s, NDArray[np.float64], NDArray[np.float64]]:
    """Splits, middles and neighbours from records on the host."""
    column, weight, gain, cut_bin, next_bin, inside, left, seen, threshold, *rest = records.T.copy()
    middle, low, high = rest
    splits = Splits(
        feature=column.astype(np.int32),
        weight=weight,
        gain=gain.view(np.float64),
        cut_bin=cut_bin.astype(np.int32),
        next_bin=next_bin.astype(np.int32),
        inside=inside != 0,
        missing_left=left != 0,
        seen_missing=seen != 0,
        threshold=threshold.view(np.float64),
    )
    return splits, middle, low.view(np.float64), high.view(np.float64)


def _write(splits: Splits) -> Int64s:
    """Records of splits, without what partition adds."""
    records = np.zeros((splits.feature.size, RECORD_WORDS), np.int64)
    columns: tuple[NDArray[Any], ...] = splits
    for field, values in enumerate(columns):
        records[:, field] = values.view(np.int64) if values.dtype.kind == "f" else values
    return records


def partition(
    grower: Grower, marked: list[Marked], begin: Int64s, end: Int64s, splits: Splits
) -> tuple[Int64s, NDArray[np.float64]]:
    """Partition the entries of nodes, which are `marked` if these splits were found here."""
    place = _find(marked, begin, splits)
    if place is None:
        marked = [mark(grower, begin, end, to_device(_write(splits)))]
        place = np.arange(begin.size)
    for part in marked:
        _move(grower, part, np.isin(part.begin, begin))
    middle, low, high = (
        np.concatenate([getattr(part, name) for part in marked])[place]
        for name in ("middle", "low", "high")
    )
    host = grower.table.host
    return middle, thresholds(splits, low, high, host.by_code, host.greatest, host.least)


def _find(marked: list[Marked], begin: Int64s, splits: Splits) -> Int64s | None:
    """Places of nodes among those marked, None unless all are there with these splits."""
    if not marked:
        return None
    starts = np.concatenate([part.begin for part in marked])
    order = np.argsort(starts)
    place = order[np.minimum(np.searchsorted(starts[order], begin), starts.size - 1)]
    fields = zip(*(part.splits for part in marked), strict=True)
    known: list[Any] = [starts[place], *(np.concatenate(field)[place] for field in fields)]
    wanted: list[Any] = [begin, *splits]
    same = all(np.array_equal(a, b) for a, b in zip(known, wanted, strict=True))
    return place if same else None


def _move(grower: Grower, marked: Marked, opened: NDArray[np.bool_]) -> None:
    chunks, scratch = marked.chunks, grower.scratch
    chosen = to_device(opened, np.uint8)
    grower.kernels(
        "partition", "place_entries", (chunks.number,), grower.entries, chunks.owner, chunks.first,
        chunks.last, marked.starts, chosen, marked.records, marked.lefts, scratch.sides,
        scratch.moved,
    )  # fmt: skip
    grower.kernels(
        "partition", "copy_entries", (chunks.number,), scratch.moved, chunks.owner, chunks.first,
        chunks.last, chosen, grower.entries,
    )  # fmt: skip


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
