"""Stable partition of entries, and sums of row statistics over nodes.

Sides are marked as soon as splits are chosen, so that the host reads both in one copy. Entries are
copied with their sides, and move once it is known which nodes are split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Splits
from gputree.backends.binning import thresholds
from gputree.backends.cuda import tuning
from gputree.backends.cuda.categories import Sides, sides_of
from gputree.backends.cuda.encode import values_of
from gputree.backends.cuda.kernels import OPENING, SIDES, Packed, cupy
from gputree.backends.cuda.layout import Grower, HostTable, batches, to_device
from gputree.backends.cuda.workspace import DeviceChunks, NodePieces, allocate, bytes_of, cut, send
from gputree.base.dtypes import Int64s

# Fields of a split on the device, 8 bytes each: see record.cuh.
RECORD_WORDS = 12

NO_SIDES = (0, None, None, None, None, None, None)


class Marked(NamedTuple):
    """Nodes whose entries have their sides, and the arrays with which entries move later."""

    begin: Int64s
    splits: Splits
    middle: Int64s
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    parts: NodePieces
    lefts: Any
    records: Any  # (m, RECORD_WORDS) int64


def mark(
    grower: Grower, parts: NodePieces, records: Any, categories: Sides | None, lefts: Any
) -> None:
    """Mark the side of every entry of m nodes by the splits in `records`."""
    table, chunks = grower.table, parts.chunks
    grower.kernels(
        "partition", "mark_sides", (chunks.number,), table.values, table.width,
        table.stored and table.stored.place, table.packed, grower.entries, chunks.packed, records,
        SIDES.pack(*(categories or NO_SIDES)), grower.sided, lefts,
    )  # fmt: skip


def splits_of(
    grower: Grower, records: Int64s
) -> tuple[Splits, Int64s, NDArray[np.float64], NDArray[np.float64]]:
    """Splits in records, without categories; middles, and the values next to each cut."""
    column, weight, gain, cut_bin, next_bin, inside, left, seen, threshold, *rest = records.T.copy()
    middle, *keys = rest
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
        codes=np.full(column.size, None),
    )
    bits = grower.table.bits  # keys have the width of the table's values
    low, high = (values_of(key.view(np.uint64).astype(bits)).astype(np.float64) for key in keys)
    return splits, middle, low, high


def read(
    grower: Grower, begin: Int64s, parts: NodePieces, records: Any, found: Int64s, lefts: Any
) -> Marked:
    """Read the nodes marked by `records`, which the host has as `found`; without categories."""
    return Marked(begin, *splits_of(grower, found), parts, lefts, records)


def _write(splits: Splits, begin: Int64s) -> Int64s:
    """Make records of splits, without the fields that partition adds."""
    records = np.zeros((splits.feature.size, RECORD_WORDS), np.int64)
    columns: tuple[NDArray[Any], ...] = splits.chosen
    for field, values in enumerate(columns):
        records[:, field] = values.view(np.int64) if values.dtype.kind == "f" else values
    records[:, -3], records[:, -1] = begin, -1
    return records


def partition(
    grower: Grower, marked: list[Marked], begin: Int64s, end: Int64s, splits: Splits
) -> tuple[Int64s, NDArray[np.float64]]:
    """Partition the entries of nodes, which are `marked` if these splits were found here."""
    place = _find(marked, begin, splits)
    if place is None:
        marked, place = [_mark_given(grower, begin, end, splits)], np.arange(begin.size)
    for part in marked:
        _move(grower, part, np.isin(part.begin, begin))
    middle, low, high = (
        np.concatenate([getattr(part, name) for part in marked])[place]
        for name in ("middle", "low", "high")
    )
    host = grower.table.host
    return middle, thresholds(splits, low, high, host.by_code, host.highest, host.lowest)


def partition_rows(
    grower: Grower, begin: Int64s, end: Int64s, splits: Splits, meanwhile: Callable[[], None]
) -> tuple[Int64s, NDArray[np.float64], NDArray[np.float64]]:
    """The same with the values next to each cut instead of its threshold; infinite without any.

    While the device marks sides, the host runs `meanwhile`.
    """
    marked = _mark_given(grower, begin, end, splits, meanwhile)
    _move(grower, marked, np.ones(begin.size, np.bool_))
    low, high = marked.low, marked.high
    return marked.middle, np.fmax(low, -np.inf), np.fmin(high, np.inf)


def _mark_given(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    splits: Splits,
    meanwhile: Callable[[], None] = lambda: None,
) -> Marked:
    """Mark the sides of entries by splits from the host."""
    records, *listed = send(_write(splits, begin), *NodePieces.listed(begin, end))
    parts, sides = NodePieces.over(*listed), sides_of(grower, splits)
    lefts = cupy().empty(parts.chunks.number, dtype=np.int64)
    mark(grower, parts, records, sides, lefts)
    meanwhile()
    return read(grower, begin, parts, records, records.get(), lefts)


def _find(marked: list[Marked], begin: Int64s, splits: Splits) -> Int64s | None:
    """Places of nodes among those marked; None unless all are there with these splits."""
    if not marked:
        return None
    parts: list[tuple[Any, ...]] = [(part.begin, *part.splits.chosen) for part in marked]
    found: Any = parts[0] if len(parts) == 1 else [*map(np.concatenate, zip(*parts, strict=True))]
    starts = found[0]
    order = np.argsort(starts)
    place = order[np.minimum(np.searchsorted(starts[order], begin), starts.size - 1)]
    given: tuple[Any, ...] = (begin, *splits.chosen)
    for field, wanted in zip(found, given, strict=True):
        if not np.array_equal(field[place], wanted):
            return None
    return place


def _move(grower: Grower, marked: Marked, opened: NDArray[np.bool_]) -> None:
    has_split = marked.splits.feature >= 0  # of which the device knows
    chosen = None if np.array_equal(opened, has_split) else to_device(opened, np.uint8)
    place(grower, marked.parts, marked.records, marked.lefts, chosen)


# No level that is opened.
NOT_OPENED = OPENING.pack(*[None if word.types else 0 for word in OPENING.words])


def place(
    grower: Grower, parts: NodePieces, records: Any, lefts: Any, opened: Any = None,
    opening: Packed = NOT_OPENED,
) -> None:  # fmt: skip
    """Move the marked entries of nodes: of those `opened`, uint8, or of all that have a split.

    The next level is opened in the same launch, if there is one.
    """
    grower.kernels(
        "partition", "place_entries", (1 + parts.chunks.number,), grower.sided,
        parts.chunks.packed, parts.begin, parts.chunk, opened, records, lefts, grower.entries,
        opening,
    )  # fmt: skip


def node_statistics(grower: Grower, begin: Int64s, end: Int64s) -> Int64s:
    """Row statistics, shape (m, statistics), of m nodes."""
    width = grower.task.statistics
    workspace, pieces = grower.workspace, cut(begin, end)
    shape = (begin.size, width), np.int64
    if workspace.nbytes:  # memory of levels
        sent = workspace.counted.send(pieces, lambda: bytes_of(*3 * ((pieces[0].size, np.int64),)))
        (out,) = workspace.scores.allocate([shape], lambda: bytes_of(shape))
    else:
        sent, (out,) = send(*pieces), allocate(shape)
    out.data.memset_async(0, out.nbytes)
    chunks, fits = DeviceChunks.over(*sent), width * 8 <= tuning.TUNING.shared_bytes
    grower.kernels(
        "statistics", "node_statistics", (chunks.number,), grower.statistics, grower.entries,
        chunks.packed, width, int(fits), out, shared=width * 8 if fits else 0,
    )  # fmt: skip
    return out.get()


def categories(
    grower: Grower, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
) -> tuple[Int64s, NDArray[np.uint32]]:
    """See `gputree.backends.base.Backend.categories`."""
    counts = np.zeros(begin.size, np.int64)
    bounds = batches(end - begin, tuning.TUNING.listed_rows)
    parts = [np.empty(0, np.uint32)]
    for a, b in zip(bounds, bounds[1:], strict=False):
        found = _distinct_codes(grower, begin[a:b], end[a:b], feature[a:b])
        counts[a:b] = np.bincount((found >> np.uint64(32)).astype(np.int64), minlength=b - a)
        parts.append((found & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    return counts, np.concatenate(parts)


def _codes_decide(host: HostTable) -> NDArray[np.bool_]:
    """Columns whose bins have one value each."""
    bins = np.diff(host.offset) - host.missing
    same = (host.lowest == host.highest) | (np.arange(host.lowest.shape[1]) >= bins[:, None])
    decide: NDArray[np.bool_] = host.by_code & ((host.categories > 0) | same.all(axis=1))
    return decide


def _distinct_codes(
    grower: Grower, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """Nodes, in the upper halves, and their categories, ascending."""
    xp = cupy()
    table, chunks = grower.table, DeviceChunks.of(begin, end)
    start = np.cumsum(end - begin) - (end - begin)
    keys = xp.empty(int((end - begin).sum()), dtype=np.uint64)
    grower.kernels(
        "partition", "list_codes", (chunks.number,), table.values, table.packed, grower.entries,
        chunks.packed, to_device(begin), to_device(start), to_device(feature, np.int32),
        to_device(_codes_decide(table.host), np.uint8), keys,
    )  # fmt: skip
    ordered = xp.sort(keys)
    is_new = xp.concatenate([xp.ones(1, dtype=np.bool_), ordered[1:] != ordered[:-1]])
    distinct: NDArray[np.uint64] = ordered[is_new].get()
    return distinct[distinct != ~np.uint64(0)]
