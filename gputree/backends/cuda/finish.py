"""Whole subtrees of small nodes, grown on the device by a warp each.

They are grown in global memory down to nodes that fit shared memory, and these are grown there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Limits, Subtrees, Task
from gputree.backends.cuda import tuning
from gputree.backends.cuda.categories import group_arrays, group_ends
from gputree.backends.cuda.kernels import LANES, LISTS, NODES, ROOTS, ROWS, RUN_MEMORY, Packed, cupy
from gputree.backends.cuda.layout import (
    Grower,
    batches,
    constraints_of,
    offsets,
    pack_constraints,
    sort_segments,
)
from gputree.backends.cuda.memory import SORTED_BYTES
from gputree.backends.cuda.workspace import (
    ALIGNMENT,
    Shaped,
    allocate,
    allocate_in,
    bytes_of,
    send,
    views,
)
from gputree.base.dtypes import PUT_OFF, Int64s

# Maximum number of bytes between arrays of roots, of nodes, and of nodes in use: 40 are aligned.
ALIGNED_BYTES = 40 * ALIGNMENT

# A deeper tree would have more nodes than rows.
DEEPEST = 40

# Divisor of the memory that lists are sorted in; while lists in shared memory are grown, this part
# of it is for nodes and statistics.
SCRATCH_SHARE = 4


class Places(NamedTuple):
    """The rows of nodes, one after another: their entries and nodes."""

    start: Int64s  # (m + 1,), on the host
    entry: Any  # (rows,) int32
    node: Any  # (rows,) int32


class SortedLists(NamedTuple):
    """Rows of each column in order of value, node by node; see sorted_lists.cuh."""

    keys: Any  # (d, rows)
    items: Any  # (d + 1, rows) int32
    sides: Any  # (rows,) uint8: sides of the current split

    def pack(self, spill: bool) -> Packed:
        """Pack the lists for kernels, with global memory to partition through if they spill."""
        keys, items = (
            cupy().empty(lists.shape, dtype=lists.dtype) if spill else None for lists in self[:2]
        )
        d, rows = self.keys.shape
        return LISTS.pack(self.keys, self.items, keys, items, self.sides, rows, d)


class Roots(NamedTuple):
    """Nodes whose subtrees are grown, on the host: places ``first .. last`` of the rows."""

    first: Int64s
    last: Int64s
    depth: Int64s
    key: NDArray[np.uint64]
    channels: Int64s  # statistics of each
    constraints: list[NDArray[Any]]  # see `constraints_of`

    def take(self, nodes: Int64s) -> Roots:
        """Return the given roots."""
        fields = (field[nodes] for field in self[:-1])
        return Roots._make([*fields, [array[nodes] for array in self.constraints]])


class SubtreeNodes(NamedTuple):
    """Nodes of subtrees, on device or host; see finish.cu."""

    first_child: Any  # PUT_OFF where a node is put off
    feature: Any
    threshold: Any
    missing_left: Any
    gain: Any
    begin: Any
    end: Any
    depth: Any
    key: Any
    lower: Any  # or None without monotonic constraints
    upper: Any
    set: Any  # or None without interaction constraints

    @classmethod
    def arranged(cls, arrays: list[Any], task: Task) -> SubtreeNodes:
        """Nodes with the constraints of a task from arrays as `node_arrays` has them."""
        lower, upper = (None, None) if task.limits.monotonic is None else arrays[9:11]
        sets = None if task.interactions is None else arrays[-1]
        return cls._make([*arrays[:9], lower, upper, sets])

    @property
    def constraints(self) -> list[Any]:
        """The arrays of `constraints_of`."""
        return [array for array in self[9:] if array is not None]

    @classmethod
    def join(cls, parts: list[SubtreeNodes]) -> SubtreeNodes:
        """Nodes on the host, one part after another."""
        fields = zip(*parts, strict=True)
        return cls(*(None if field[0] is None else np.concatenate(field) for field in fields))


def node_arrays(size: int, task: Task) -> list[Shaped]:
    """Arrays of `size` nodes, with the constraints of a task."""
    i4, u1, f8 = np.int32, np.uint8, np.float64
    types = [i4, i4, f8, u1, f8, i4, i4, i4, np.uint64]
    types += [] if task.limits.monotonic is None else [f8, f8]
    types += [] if task.interactions is None else [np.int64]
    return [(size, kind) for kind in types]


def _node_bytes(task: Task) -> int:
    """Bytes of a node."""
    return sum(np.dtype(kind).itemsize for _, kind in node_arrays(1, task))


class GrownSubtrees(NamedTuple):
    """Subtrees on the host, by places of all rows."""

    root: Int64s
    nodes: SubtreeNodes


class Statistics(NamedTuple):
    """Targets of the rows in local classes, and offsets of each node's statistics."""

    target: Any
    weight: Any
    channel: Int64s  # (m + 1,), on the host


def finish(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    depth: Int64s,
    keys: NDArray[np.uint64],
    bounds: Bounds | None,
) -> Subtrees:
    """Build whole subtrees of small nodes with constraints; entries end in leaf order."""
    most = min(tuning.TUNING.sorted_pairs, grower.memory.sorted_pairs)
    ends = batches((end - begin) * pairs_of_row(grower.task, grower.table.host.categories), most)
    return Subtrees.join(
        _finish_batch(
            grower, begin[a:b], end[a:b], depth[a:b], keys[a:b], bounds and bounds.take(slice(a, b))
        )
        for a, b in zip(ends, ends[1:], strict=False)
    )


def pairs_of_row(task: Task, categories: Int64s) -> int:
    """Number of (row, column) pairs that count as the work of a row of a small node."""
    return categories.size + 1 + _run_words(task, categories)


def _run_words(task: Task, categories: Int64s) -> int:
    """Approximate words of memory per category while subsets are searched."""
    return 5 + task.statistics if categories.any() else 0


def _most_categories(grower: Grower, sizes: Int64s) -> Int64s:
    """Maximum number of categories that nodes of `sizes` rows have of one column."""
    return np.minimum(sizes, grower.table.host.categories.max(initial=0))


def _group_memory(grower: Grower, sizes: Int64s, channels: Int64s) -> tuple[Packed, Any]:
    """Memory for the categories of roots, of given sizes and statistics, and for their sides."""
    if not grower.table.host.categories.any():
        return RUN_MEMORY.pack(*(None for _ in RUN_MEMORY.fields)), None
    most = _most_categories(grower, sizes)
    # all nodes of a subtree have the offsets of its root
    ends = group_ends(most, (most + 3) * channels)
    arrays = allocate(*group_arrays(*ends))
    packed = RUN_MEMORY.pack(*send(*(end[:-1] for end in ends)), *arrays)
    return packed, cupy().empty(arrays[0].size, dtype=np.uint8)


def node_room(sizes: Int64s, depth: Int64s, limits: Limits) -> Int64s:
    """Maximum number of nodes of subtrees of `sizes` rows with roots at `depth`."""
    most = 2 * (sizes // max(limits.min_samples_leaf, 1)) + 1
    levels = np.clip(limits.max_depth - depth, 0, DEEPEST)
    return np.maximum(np.minimum(most, (2 << levels) - 1), 1)


def _finish_batch(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    depth: Int64s,
    keys: NDArray[np.uint64],
    bounds: Bounds | None,
) -> Subtrees:
    places = _list_places(grower, begin, end)
    lists = _sort_columns(grower, places)
    statistics = _local_statistics(grower, places)
    channels = np.diff(statistics.channel)
    constraints = constraints_of(grower.task, bounds)
    roots = Roots(places.start[:-1], places.start[1:], depth, keys, channels, constraints)
    most = shared_rows(grower)
    grown = _grow(grower, lists, statistics, roots, max(most, 1))
    if most:
        grown = _grow_small(grower, lists, statistics, roots, grown)
    _order_entries(grower, places, lists.items[-1])
    nodes = grown.nodes
    shift = (begin - places.start[:-1])[np.searchsorted(places.start, nodes.begin, "right") - 1]
    return Subtrees(grown.root, *nodes[:5], begin=nodes.begin + shift, end=nodes.end + shift)


def shared_rows(grower: Grower) -> int:
    """Rows of the largest node that is grown in shared memory; 0 where that is too few."""
    most = tuning.TUNING.finish_bytes // _shared_row_bytes(grower)
    return most if most >= tuning.TUNING.fewest_shared_rows else 0


def _shared_row_bytes(grower: Grower) -> int:
    """Bytes of the keys and items of a row in all lists, and of the spilled ones."""
    d = grower.table.columns
    return 2 * (d * grower.table.bits.itemsize + (d + 1) * 4)


def _grow_small(
    grower: Grower,
    lists: SortedLists,
    statistics: Statistics,
    roots: Roots,
    grown: GrownSubtrees,
) -> GrownSubtrees:
    """Grow the nodes that were put off, in shared memory."""
    nodes = grown.nodes
    off = np.flatnonzero(nodes.first_child == PUT_OFF)
    channels = roots.channels[np.searchsorted(roots.last, nodes.begin[off], side="right")]
    first, last, depth, key = (field[off] for field in nodes[5:9])
    constraints = [array[off] for array in nodes.constraints]
    small = Roots(first, last, depth, key, channels, constraints)
    parts, number = [nodes], nodes.feature.size
    for chosen in _groups(grower, small):
        root, part = _grow(grower, lists, statistics, small.take(chosen), 0)
        child = np.where(part.first_child < 0, part.first_child, part.first_child + number)
        parts.append(part._replace(first_child=child))
        for whole, field in zip(nodes, parts[-1], strict=True):
            if whole is not None:
                whole[off[chosen]] = field[root]
        number += child.size
    return GrownSubtrees(grown.root, SubtreeNodes.join(parts))


def _groups(grower: Grower, small: Roots) -> Iterator[Int64s]:
    """Groups of nodes, the largest first, that fit memory together."""
    size = small.last - small.first
    scratch = _node_bytes(grower.task) * node_room(size, small.depth, grower.task.limits)
    scratch += (LANES + 1) * 8 * small.channels
    words = _run_words(grower.task, grower.table.host.categories)
    scratch += 8 * words * _most_categories(grower, size)
    sorted_bytes = SORTED_BYTES * grower.memory.sorted_pairs
    most_scratch = min(tuning.TUNING.scratch_bytes, sorted_bytes // SCRATCH_SHARE)
    order = largest_first(size)
    bounds = batches(scratch[order], most_scratch)
    for a, b in zip(bounds, bounds[1:], strict=False):
        yield order[a:b]


def largest_first(size: Int64s) -> Int64s:
    """Order of nodes by descending size: the last warps at work have little left to do."""
    return np.argsort(-size, kind="stable")


def _list_places(grower: Grower, begin: Int64s, end: Int64s) -> Places:
    start = offsets(end - begin)
    entry, node = (cupy().empty(int(start[-1]), dtype=np.int32) for _ in range(2))
    grower.kernels("finish", "list_places", (begin.size,), *send(begin, start), entry, node)
    return Places(start, entry, node)


def _sort_columns(grower: Grower, places: Places) -> SortedLists:
    xp = cupy()
    table = grower.table
    rows, d, nodes = places.entry.size, table.columns, places.start.size - 1
    keys = xp.empty(d * rows, dtype=table.bits)
    segments = xp.empty(d * rows, dtype=np.uint32)
    grower.kernels.each(
        "finish", "fill_lists", d * rows, table.values, table.packed, grower.entries,
        places.entry, places.node, nodes, rows, keys, segments,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    items = xp.empty((d + 1, rows), dtype=np.int32)
    items[:d] = (order % rows).reshape(d, rows).astype(np.int32)
    items[d] = xp.arange(rows, dtype=np.int32)
    return SortedLists(keys[order].reshape(d, rows), items, xp.empty(rows, dtype=np.uint8))


def _local_statistics(grower: Grower, places: Places) -> Statistics:
    """Renumber the classes present in each node 0, 1, ... in their order, unless they are few."""
    xp = cupy()
    rows = grower.entries[places.entry]
    target = grower.rows.target[rows]
    weight = None if grower.rows.weight is None else grower.rows.weight[rows]
    nodes = places.start.size - 1
    channels = grower.task.n_classes or 2
    if channels <= tuning.TUNING.few_classes:
        return Statistics(target, weight, channels * np.arange(nodes + 1))
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


def _grow(
    grower: Grower, lists: SortedLists, statistics: Statistics, roots: Roots, small: int
) -> GrownSubtrees:
    """Grow subtrees; nodes of up to `small` rows are put off. 0: all in shared memory."""
    xp = cupy()
    table, limits = grower.table, grower.task.limits
    m, d = roots.depth.size, table.columns
    order = largest_first(roots.last - roots.first)
    roots = roots.take(order)
    sizes = roots.last - roots.first
    room, channel = offsets(node_room(sizes, roots.depth, limits)), offsets(roots.channels)
    sent = send(*roots[:4], room, channel, *roots.constraints)
    packed, (monotonic, sets) = ROOTS.pack(*sent[:6]), pack_constraints(grower, sent[6:])
    task = grower.task
    nodes = SubtreeNodes.arranged(allocate(*node_arrays(int(room[-1]), task)), task)
    used = xp.empty(m, dtype=np.int32)
    drawing = limits.max_features < d
    before = (
        grower.rules, grower.search, table.packed,
        ROWS.pack(statistics.target, statistics.weight, None, None), lists.pack(small > 0), small,
    )  # fmt: skip
    after = (
        packed, monotonic, grower.interactions, sets, xp.empty(channel[-1], dtype=np.int64),
        xp.empty(LANES * channel[-1], dtype=np.int64),
        xp.empty(m * d if drawing else 1, dtype=np.int32), NODES.pack(*nodes), used,
        *_group_memory(grower, sizes, roots.channels),
    )  # fmt: skip
    for first, last in [(0, m)] if small else _launches(grower, sizes):
        shared = 0 if small else int(sizes[first]) * _shared_row_bytes(grower)
        grower.kernels(
            "finish", "grow_subtrees", (last - first,), *before, first, *after, threads=LANES,
            shared=shared,
        )  # fmt: skip
    return _compact(grower, nodes, used, packed, order)


def _launches(grower: Grower, sizes: Int64s) -> Iterator[tuple[int, int]]:
    """Spans of roots, the largest first: each begins with half the size of the one before."""
    share = np.log2(shared_rows(grower) / sizes).astype(np.int64)
    classes = np.minimum(share, tuning.TUNING.shared_classes - 1)
    ends = np.flatnonzero(np.diff(classes, append=-1)) + 1
    return zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)


def _compact(
    grower: Grower, nodes: SubtreeNodes, used: Any, roots: Packed, order: Int64s
) -> GrownSubtrees:
    """Nodes in use, on the host, one subtree after another; subtree j has root ``order[j]``."""
    starts, task = offsets(used.get().astype(np.int64)), grower.task
    arrays = node_arrays(int(starts[-1]), task)
    block = cupy().zeros(bytes_of(*arrays), dtype=np.uint8)
    grower.kernels(
        "finish", "compact_nodes", (order.size,), NODES.pack(*nodes), roots, used,
        *send(starts[:-1]),
        NODES.pack(*SubtreeNodes.arranged(allocate_in(block.data, *arrays), task)),
    )  # fmt: skip
    host = SubtreeNodes.arranged(views(block.get(), *arrays), task)
    root = np.empty_like(order)
    root[order] = starts[:-1]
    wide = ("first_child", "begin", "end", "depth")
    host = host._replace(**{name: getattr(host, name).astype(np.int64) for name in wide})
    return GrownSubtrees(root, host._replace(missing_left=host.missing_left != 0))


def _order_entries(grower: Grower, places: Places, order: Any) -> None:
    out = cupy().empty(order.size, dtype=grower.entries.dtype)
    grower.kernels.each(
        "finish", "order_entries", order.size, grower.entries, places.entry,
        cupy().ascontiguousarray(order), order.size, out,
    )  # fmt: skip
    grower.entries[places.entry] = out
