"""Small nodes are finished: their whole subtrees are grown on the device, a warp to a node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits, Subtrees
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Grower, sort_segments, to_device

# (row, column) pairs that are sorted at once, at most.
SORTED_PAIRS = 1 << 25

# A tree this deep has more nodes than rows.
DEEPEST = 40

LANES = 32


class Places(NamedTuple):
    """The rows of nodes, one after another: their entries and nodes."""

    start: Int64s  # (m + 1,), on the host
    entry: Any  # (rows,) int32
    node: Any  # (rows,) int32


class Lists(NamedTuple):
    """Each column's rows in order of value, node by node; see finish.cu."""

    keys: Any  # (d, rows)
    items: Any  # (d + 1, rows) int32


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
    room = np.append(0, np.cumsum(node_room(end - begin, depth, grower.task.limits)))
    nodes, used = _grow(grower, places, lists, statistics, room, depth, keys)
    _order_entries(grower, places, lists.items[-1])
    return _compact(nodes, used, room, begin)


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
    return Lists(keys[order].reshape(d, rows), items)


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
    """Room for the nodes of subtrees, on the device."""

    first_child: Any
    feature: Any
    threshold: Any
    missing_left: Any
    gain: Any
    begin: Any
    end: Any


def _grow(
    grower: Grower,
    places: Places,
    lists: Lists,
    statistics: Statistics,
    room: Int64s,
    depth: Int64s,
    keys: NDArray[np.uint64],
) -> tuple[Nodes, Int64s]:
    """Grow the subtrees; returns their nodes and how many each has."""
    xp = cupy()
    table, limits = grower.table, grower.task.limits
    m, rows, d, n_nodes = depth.size, places.entry.size, table.columns, int(room[-1])
    types = (np.int32, np.int32, np.float64, np.uint8, np.float64, np.int32, np.int32)
    nodes = Nodes(*(xp.empty(n_nodes, dtype=t) for t in types))
    used = xp.empty(m, dtype=np.int32)
    channels = int(statistics.channel[-1])
    _, unit, scale = grower.criterion
    drawing = limits.max_features < d
    grower.kernels(
        "finish", "grow_subtrees", (m,), unit, scale, limits.min_samples_leaf,
        limits.min_weight_leaf, limits.min_samples_split, limits.max_depth,
        float(limits.min_decrease), min(limits.max_features, d), int(limits.rounded), d, rows,
        to_device(places.start), to_device(depth), to_device(keys), to_device(room),
        to_device(statistics.channel), statistics.target, statistics.weight,
        lists.keys, lists.items, xp.empty(lists.keys.shape, dtype=lists.keys.dtype),
        xp.empty(lists.items.shape, dtype=np.int32), xp.empty(rows, dtype=np.uint8),
        xp.empty(channels, dtype=np.int64), xp.empty(channels * LANES, dtype=np.int64),
        xp.empty(m * d if drawing else 1, dtype=np.int32), table.by_code, table.low, table.high,
        *nodes, xp.empty(n_nodes, dtype=np.int32), xp.empty(n_nodes, dtype=np.uint64), used,
        threads=LANES,
    )  # fmt: skip
    return nodes, used.get().astype(np.int64)


def _order_entries(grower: Grower, places: Places, order: Any) -> None:
    out = cupy().empty(order.size, dtype=grower.entries.dtype)
    grower.kernels.each(
        "finish", "order_entries", order.size, grower.entries, places.entry,
        cupy().ascontiguousarray(order), order.size, out,
    )  # fmt: skip
    grower.entries[places.entry] = out


def _compact(nodes: Nodes, used: Int64s, room: Int64s, begin: Int64s) -> Subtrees:
    """The nodes that were made, on the host, one subtree after another."""
    starts = np.cumsum(used) - used
    owner = np.repeat(np.arange(used.size), used)
    place = to_device(np.arange(owner.size) - starts[owner] + room[owner])
    host = Nodes(*(field[place].get() for field in nodes))
    child = host.first_child.astype(np.int64)
    return Subtrees(
        root=starts,
        first_child=np.where(child < 0, -1, child + starts[owner]),
        feature=host.feature,
        threshold=host.threshold,
        missing_left=host.missing_left != 0,
        gain=host.gain,
        begin=host.begin + begin[owner],
        end=host.end + begin[owner],
    )
