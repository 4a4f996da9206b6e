"""Small nodes are finished: their whole subtrees are grown on the device, a warp to a node.

Subtrees are grown in global memory down to nodes that fit shared memory, and those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits, Subtrees
from gputree.backends.cuda.histogram import SHARED_BYTES
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Grower, sort_segments, to_device
from gputree.dtypes import PUT_OFF

# (row, column) pairs that are sorted at once, at most.
SORTED_PAIRS = 1 << 25

# A tree this deep has more nodes than rows.
DEEPEST = 40

LANES = 32

# Nodes whose lists fit shared memory are finished there, in launches by size: as much as fits,
# down to halves of it. None of these figures is measured on a device yet.
FEWEST_SHARED_ROWS = 8
SHARED_CLASSES = 4

# Bytes of a node, and of all nodes and statistics that are finished at once there.
NODE_BYTES = 45
SCRATCH_BYTES = 1 << 28


class Places(NamedTuple):
    """The rows of nodes, one after another: their entries and nodes."""

    start: Int64s  # (m + 1,), on the host
    entry: Any  # (rows,) int32
    node: Any  # (rows,) int32


class Lists(NamedTuple):
    """Each column's rows in order of value, node by node; see finish.cu."""

    keys: Any  # (d, rows)
    items: Any  # (d + 1, rows) int32
    sides: Any  # (rows,) uint8: of the split at work


class Roots(NamedTuple):
    """Nodes whose subtrees are grown, on the host: places ``first .. last`` of the rows."""

    first: Int64s
    last: Int64s
    depth: Int64s
    key: NDArray[np.uint64]
    channels: Int64s  # statistics of each


class Grown(NamedTuple):
    """Subtrees on the host, as `Subtrees`, by places; nodes put off are PUT_OFF as first child."""

    root: Int64s
    first_child: Int64s
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    gain: NDArray[np.float64]
    begin: Int64s
    end: Int64s
    depth: Int64s
    key: NDArray[np.uint64]

    def moved(self, number: int) -> Grown:
        """The same behind `number` other nodes."""
        child = np.where(self.first_child < 0, self.first_child, self.first_child + number)
        return self._replace(root=self.root + number, first_child=child)


class Statistics(NamedTuple):
    """Targets of the rows in local classes, and where each node's statistics lie."""

    target: Any
    weight: Any
    channel: Int64s  # (m + 1,), on the host


def finish(
    grower: Grower, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
) -> Subtrees:
    """Grow the subtrees of nodes whole; their entries end in leaf order."""
    most = min(SORTED_PAIRS, grower.memory.sorted_pairs)
    bounds = batches((end - begin) * (grower.table.columns + 1), most)
    parts = [
        _finish_batch(grower, begin[a:b], end[a:b], depth[a:b], keys[a:b])
        for a, b in zip(bounds, bounds[1:], strict=False)
    ]
    starts = np.cumsum([0] + [part.feature.size for part in parts])
    moved = [
        part._replace(
            root=part.root + start,
            first_child=np.where(part.first_child < 0, -1, part.first_child + start),
        )
        for part, start in zip(parts, starts, strict=False)
    ]
    return Subtrees(*(np.concatenate(field) for field in zip(*moved, strict=True)))


def batches(sizes: Int64s, most: int) -> list[int]:
    """Bounds of batches of at most `most` in total, or of one."""
    ends = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < sizes.size:
        before = ends[bounds[-1] - 1] if bounds[-1] else 0
        fit = int(np.searchsorted(ends, before + most, side="right"))
        bounds.append(max(fit, bounds[-1] + 1))
    return bounds


def node_room(sizes: Int64s, depth: Int64s, limits: Limits) -> Int64s:
    """Nodes that subtrees of `sizes` rows with roots at `depth` may have."""
    most = 2 * (sizes // max(limits.min_samples_leaf, 1)) + 1
    levels = np.clip(limits.max_depth - depth, 0, DEEPEST)
    return np.maximum(np.minimum(most, (2 << levels) - 1), 1)


def _finish_batch(
    grower: Grower, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
) -> Subtrees:
    places = _list_places(grower, begin, end)
    lists = _sort_columns(grower, places)
    statistics = _local_statistics(grower, places)
    channels = np.diff(statistics.channel)
    roots = Roots(places.start[:-1], places.start[1:], depth, keys, channels)
    most = shared_rows(grower)
    grown = _grow(grower, lists, statistics, roots, max(most, 1))
    if most:
        grown = _grow_small(grower, lists, statistics, roots, grown, most)
    _order_entries(grower, places, lists.items[-1])
    shift = (begin - places.start[:-1])[np.searchsorted(places.start, grown.begin, "right") - 1]
    return Subtrees(grown.root, *grown[1:6], begin=grown.begin + shift, end=grown.end + shift)


def shared_rows(grower: Grower) -> int:
    """Rows of the largest node that is finished in shared memory; 0 where that is too few."""
    most = SHARED_BYTES // _shared_row_bytes(grower)
    return most if most >= FEWEST_SHARED_ROWS else 0


def _shared_row_bytes(grower: Grower) -> int:
    """Keys and items of a row in all lists, and of those spilled."""
    d = grower.table.columns
    return 2 * (d * grower.table.bits.itemsize + (d + 1) * 4)


def _grow_small(
    grower: Grower, lists: Lists, statistics: Statistics, roots: Roots, grown: Grown, most: int
) -> Grown:
    """Grow the nodes that were put off, in shared memory."""
    off = np.flatnonzero(grown.first_child == PUT_OFF)
    owner = np.searchsorted(roots.last, grown.begin[off], side="right")
    small = Roots(
        grown.begin[off], grown.end[off], grown.depth[off], grown.key[off], roots.channels[owner]
    )
    parts, number = [grown], grown.first_child.size
    for nodes in _launches(grower, small, most):
        some = Roots._make(field[nodes] for field in small)
        part = _grow(grower, lists, statistics, some, 0).moved(number)
        for name in grown._fields[1:]:
            getattr(grown, name)[off[nodes]] = getattr(part, name)[part.root - number]
        number += part.first_child.size
        parts.append(part)
    fields = (np.concatenate(field) for field in zip(*(part[1:] for part in parts), strict=True))
    return Grown(grown.root, *fields)


def _launches(grower: Grower, small: Roots, most: int) -> Iterator[Int64s]:
    """Nodes that are grown at once: of about one size, and within memory."""
    size = small.last - small.first
    scratch = NODE_BYTES * node_room(size, small.depth, grower.task.limits)
    scratch += (LANES + 1) * 8 * small.channels
    share = np.minimum(np.log2(most / size).astype(np.int64), SHARED_CLASSES - 1)
    for one in range(SHARED_CLASSES):
        nodes = np.flatnonzero(share == one)
        bounds = batches(scratch[nodes], SCRATCH_BYTES)
        for a, b in zip(bounds, bounds[1:], strict=False):
            yield nodes[a:b]


def _list_places(grower: Grower, begin: Int64s, end: Int64s) -> Places:
    xp = cupy()
    start = np.append(0, np.cumsum(end - begin))
    entry, node = (xp.empty(int(start[-1]), dtype=np.int32) for _ in range(2))
    grower.kernels(
        "finish", "list_places", (begin.size,), to_device(begin), to_device(start), entry, node
    )
    return Places(start, entry, node)


def _sort_columns(grower: Grower, places: Places) -> Lists:
    xp = cupy()
    table = grower.table
    rows, d, nodes = places.entry.size, table.columns, places.start.size - 1
    keys = xp.empty(d * rows, dtype=table.bits)
    segments = xp.empty(d * rows, dtype=np.uint32)
    grower.kernels.each(
        "finish", "fill_lists", d * rows, table.values, table.codes, table.stride, d,
        table.offset, table.missing, table.by_code, grower.entries, places.entry, places.node,
        nodes, rows, keys, segments,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    items = xp.empty((d + 1, rows), dtype=np.int32)
    items[:d] = (order % rows).reshape(d, rows).astype(np.int32)
    items[d] = xp.arange(rows, dtype=np.int32)
    return Lists(keys[order].reshape(d, rows), items, xp.empty(rows, dtype=np.uint8))


def _local_statistics(grower: Grower, places: Places) -> Statistics:
    """Classes that a node has are renumbered 0, 1, ... in their order."""
    xp = cupy()
    rows = grower.entries[places.entry]
    target = grower.rows.target[rows]
    weight = None if grower.rows.weight is None else grower.rows.weight[rows]
    nodes = places.start.size - 1
    if grower.task.n_classes == 0:
        return Statistics(target, weight, 2 * np.arange(nodes + 1))
    pairs = places.node.astype(np.int64) * grower.task.n_classes + target
    order = xp.argsort(pairs)
    ordered = pairs[order]
    is_new = xp.concatenate([xp.ones(1, dtype=np.bool_), ordered[1:] != ordered[:-1]])
    number = xp.empty(pairs.size, dtype=np.int64)
    number[order] = xp.cumsum(is_new) - 1
    owner = ordered[xp.flatnonzero(is_new)] // grower.task.n_classes
    channel = xp.searchsorted(owner, xp.arange(nodes + 1, dtype=np.int64))
    local = (number - channel[places.node]).astype(np.int32)
    return Statistics(local, weight, channel.get())


class Nodes(NamedTuple):
    """Room for the nodes of subtrees, on the device; see finish.cu."""

    first_child: Any
    feature: Any
    threshold: Any
    missing_left: Any
    gain: Any
    begin: Any
    end: Any
    depth: Any
    key: Any

    @classmethod
    def empty(cls, size: int) -> Nodes:
        i4, u1, f8 = np.int32, np.uint8, np.float64
        types = (i4, i4, f8, u1, f8, i4, i4, i4, np.uint64)
        return cls(*(cupy().empty(size, dtype=t) for t in types))


def _grow(grower: Grower, lists: Lists, statistics: Statistics, roots: Roots, small: int) -> Grown:
    """Grow subtrees; nodes of up to `small` rows are put off. 0: all in shared memory."""
    xp = cupy()
    table, limits = grower.table, grower.task.limits
    m, d = roots.depth.size, table.columns
    sizes = roots.last - roots.first
    room = np.append(0, np.cumsum(node_room(sizes, roots.depth, limits)))
    channel = np.append(0, np.cumsum(roots.channels))
    nodes, used = Nodes.empty(int(room[-1])), xp.empty(m, dtype=np.int32)
    spill = small > 0
    _, unit, scale = grower.criterion
    drawing = limits.max_features < d
    grower.kernels(
        "finish", "grow_subtrees", (m,), unit, scale, limits.min_samples_leaf,
        limits.min_weight_leaf, limits.min_samples_split, limits.max_depth,
        float(limits.min_decrease), min(limits.max_features, d), int(limits.rounded), d,
        lists.items.shape[1], small, to_device(roots.first), to_device(roots.last),
        to_device(roots.depth), to_device(roots.key), to_device(room), to_device(channel),
        statistics.target, statistics.weight, lists.keys, lists.items,
        xp.empty(lists.keys.shape, dtype=lists.keys.dtype) if spill else None,
        xp.empty(lists.items.shape, dtype=np.int32) if spill else None, lists.sides,
        xp.empty(channel[-1], dtype=np.int64), xp.empty(LANES * channel[-1], dtype=np.int64),
        xp.empty(m * d if drawing else 1, dtype=np.int32), table.by_code, table.greatest,
        table.least, *nodes, used, threads=LANES,
        shared=0 if spill else int(sizes.max()) * _shared_row_bytes(grower),
    )  # fmt: skip
    return _compact(nodes, used.get().astype(np.int64), room, roots.first)


def _compact(nodes: Nodes, used: Int64s, room: Int64s, first: Int64s) -> Grown:
    """The nodes that were made, on the host, one subtree after another; places of all rows."""
    starts = np.cumsum(used) - used
    owner = np.repeat(np.arange(used.size), used)
    place = to_device(np.arange(owner.size) - starts[owner] + room[owner])
    host = Nodes(*(field[place].get() for field in nodes))
    child = host.first_child.astype(np.int64)
    return Grown(
        root=starts,
        first_child=np.where(child < 0, child, child + starts[owner]),
        feature=host.feature,
        threshold=host.threshold,
        missing_left=host.missing_left != 0,
        gain=host.gain,
        begin=host.begin + first[owner],
        end=host.end + first[owner],
        depth=host.depth.astype(np.int64),
        key=host.key,
    )


def _order_entries(grower: Grower, places: Places, order: Any) -> None:
    out = cupy().empty(order.size, dtype=grower.entries.dtype)
    grower.kernels.each(
        "finish", "order_entries", order.size, grower.entries, places.entry,
        cupy().ascontiguousarray(order), order.size, out,
    )  # fmt: skip
    grower.entries[places.entry] = out
