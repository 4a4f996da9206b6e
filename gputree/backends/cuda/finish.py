"""Whole subtrees of small nodes, grown on the device by a block each.

Their rows are listed column by column in order of value; lists that fit are in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Limits, Subtrees, Task
from gputree.backends.cuda import tuning
from gputree.backends.cuda.categories import group_arrays, group_ends
from gputree.backends.cuda.kernels import (
    LANES,
    LISTS,
    NODES,
    ROOTS,
    ROWS,
    RUN_MEMORY,
    SCRATCH,
    Packed,
    cupy,
)
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
    allocate,
    allocate_in,
    bytes_of,
    granted_bytes,
    send,
    views,
)
from gputree.base.dtypes import Int64s

# Maximum number of bytes between arrays of roots, of nodes, and of nodes in use: 40 are aligned.
ALIGNED_BYTES = 40 * ALIGNMENT

# Bytes of a statistic of a warp: one of its node, and of each lane.
SUM_BYTES = 8 * (1 + LANES)

# Maximum bytes of the shared variables of a block.
STATIC_BYTES = 512

# Maximum number of rows of a root whose places have 16 bits; one more is of missing values.
MOST_ROWS = 0xFFFF

# A deeper tree would have more nodes than rows.
DEEPEST = 40

# Divisor of the memory that lists are sorted in; while subtrees are grown, this part of it is for
# statistics.
SCRATCH_SHARE = 4


class Places(NamedTuple):
    """The rows of nodes, one after another: their entries and nodes."""

    start: Int64s  # (m + 1,), on the host
    sent: Any  # the same, on the device
    entry: Any  # (rows,) int32
    node: Any  # (rows,) int32


class SortedLists(NamedTuple):
    """Rows of each column in order of value, node by node; see sorted_lists.cuh."""

    keys: Any  # (d, rows), sorted
    ranks: Any  # (d, rows) uint16; uint32 of roots of more than `MOST_ROWS`
    items: Any  # (d + 1, rows), of the same type
    spill: Any  # (d + 1, rows): rows of the right side, while lists are partitioned
    sides: Any  # (rows,) uint8: sides of the current split

    @property
    def packed(self) -> Packed:
        d, rows = self.keys.shape
        return LISTS.pack(*self[1:], rows, d)


class Roots(NamedTuple):
    """Nodes whose subtrees are grown, on the host: places ``first .. last`` of the rows."""

    first: Int64s
    last: Int64s
    depth: Int64s
    key: NDArray[np.uint64]
    channels: Int64s  # statistics of each
    constraints: list[NDArray[Any]]  # see `constraints_of`

    @property
    def sizes(self) -> Int64s:
        return self.last - self.first

    def take(self, nodes: Int64s) -> Roots:
        """Return the given roots."""
        fields = (field[nodes] for field in self[:-1])
        return Roots._make([*fields, [array[nodes] for array in self.constraints]])


# Nodes of subtrees: the fields that the host reads, and those that others are grown by, before
# constraints; see Nodes of finish.cu.
GROWN = (np.int32, np.int32, np.float64, np.uint8, np.float64, np.int32, np.int32)
GROWING = (np.int32, np.uint64)


def _allocate_nodes(size: int, task: Task) -> Packed:
    """Allocate `size` nodes, with the constraints of a task."""
    constraints = 2 * [task.limits.monotonic is not None] + [task.interactions is not None]
    types = (np.float64, np.float64, np.int64)
    needed = [kind for kind, is_needed in zip(types, constraints, strict=True) if is_needed]
    arrays = iter(allocate(*((size, kind) for kind in (*GROWN, *GROWING, *needed))))
    fixed = [next(arrays) for _ in (*GROWN, *GROWING)]
    return NODES.pack(*fixed, *(next(arrays) if is_needed else None for is_needed in constraints))


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


def _pack_scratch(grower: Grower, roots: Roots, warps: int) -> Packed:
    """Memory of `warps` warps for each of some roots."""
    xp, d = cupy(), grower.table.columns
    words = 0 if _few_classes(grower) else SUM_BYTES // 8 * warps * int(roots.channels.sum())
    sums = xp.empty(words, dtype=np.int64) if words else None
    drawing = grower.task.limits.max_features < d
    drawn = xp.empty(roots.depth.size * warps * d if drawing else 1, dtype=np.int32)
    if not grower.table.host.categories.any():
        return SCRATCH.pack(sums, drawn, tuple(None for _ in RUN_MEMORY.fields), None)
    most = np.repeat(_most_categories(grower, roots.sizes), warps)
    # all nodes of a subtree have the offsets of its root
    ends = group_ends(most, (most + 3) * np.repeat(roots.channels, warps))
    arrays = allocate(*group_arrays(*ends))
    sides = xp.empty(arrays[0].size, dtype=np.uint8)
    return SCRATCH.pack(sums, drawn, (*send(*(end[:-1] for end in ends)), *arrays), sides)


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
    if (end - begin).max(initial=0) > MOST_ROWS:
        grower = grower._replace(kernels=grower.kernels.wide)
    places = _list_places(grower, begin, end)
    lists = _sort_columns(grower, places)
    statistics = _local_statistics(grower, places)
    channels = np.diff(statistics.channel)
    constraints = constraints_of(grower.task, bounds)
    roots = Roots(places.start[:-1], places.start[1:], depth, keys, channels, constraints)
    found = _grow(grower, lists, statistics, roots)
    _order_entries(grower, places, lists.items[-1])
    shift = (begin - places.start[:-1])[np.searchsorted(places.start, found.begin, "right") - 1]
    return found._replace(begin=found.begin + shift, end=found.end + shift)


def _few_classes(grower: Grower) -> int:
    """Classes, or statistics of targets, if they are not renumbered: sums are in shared memory."""
    channels = grower.task.n_classes or 2
    return channels if channels <= tuning.TUNING.few_classes else 0


def shared_rows(grower: Grower) -> tuple[int, int]:
    """Rows of the largest roots whose statistics, and whose lists are in shared memory."""
    tuned, (_, of_statistics, of_lists) = tuning.TUNING, _row_bytes(grower)
    free = min(tuned.finish_bytes, granted_bytes() - STATIC_BYTES)
    free -= SUM_BYTES * tuned.finish_warps * _few_classes(grower)
    return free // of_statistics, free // of_lists


def _item_type(grower: Grower) -> np.dtype:
    """Type of the places and ranks of lists."""
    return np.dtype(np.uint32 if grower.kernels.variant.wide else np.uint16)


def _row_bytes(grower: Grower) -> tuple[int, int, int]:
    """Bytes of a row in shared memory by `Launch.copied`."""
    statistics = grower.rows.target.itemsize + (0 if grower.rows.weight is None else 8)
    item = _item_type(grower).itemsize
    return 0, statistics, statistics + item * (3 * grower.table.columns + 2) + 1


class Launch(NamedTuple):
    """Roots of a launch: the first, and the one after the last."""

    first: int
    last: int
    warps: int  # of a block
    copied: int  # to shared memory: see Copied of finish.cu
    shared: int  # bytes of shared memory


def launches(grower: Grower, roots: Roots) -> Iterator[Launch]:
    """Launches for roots, the largest first: of nearly equal size, whose memory fits together."""
    tuned, sizes = tuning.TUNING, roots.sizes
    most, most_listed = shared_rows(grower)
    warps = np.clip(sizes // tuned.warp_rows, 1, tuned.finish_warps)
    scratch = SUM_BYTES * roots.channels + 4 * grower.table.columns
    words = _run_words(grower.task, grower.table.host.categories)
    scratch += 8 * words * _most_categories(grower, sizes)  # of a warp
    sorted_bytes = SORTED_BYTES * grower.memory.sorted_pairs
    most_scratch = min(tuned.scratch_bytes, sorted_bytes // SCRATCH_SHARE)
    copied = (sizes <= most).astype(np.int64) + (sizes <= most_listed)
    halves = np.log2(sizes[0] / sizes).astype(np.int64)
    kinds = np.minimum(halves, tuned.shared_classes - 1) + tuned.shared_classes * copied
    ends = [0, *(np.flatnonzero(np.diff(kinds, append=-1)) + 1).tolist()]
    for a, b in zip(ends, ends[1:], strict=False):
        shared = _row_bytes(grower)[copied[a]] * int(sizes[a])
        shared += SUM_BYTES * int(warps[a]) * _few_classes(grower)
        bounds = batches(warps[a] * scratch[a:b], most_scratch)
        for first, last in zip(bounds, bounds[1:], strict=False):
            yield Launch(a + first, a + last, int(warps[a]), int(copied[a]), shared)


def largest_first(size: Int64s) -> Int64s:
    """Order of nodes by descending size: the last warps at work have little left to do."""
    return np.argsort(-size, kind="stable")


def _list_places(grower: Grower, begin: Int64s, end: Int64s) -> Places:
    start = offsets(end - begin)
    entry, node = (cupy().empty(int(start[-1]), dtype=np.int32) for _ in range(2))
    first, sent = send(begin, start)
    grower.kernels("finish", "list_places", (begin.size,), first, sent, entry, node)
    return Places(start, sent, entry, node)


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
    kind = _item_type(grower)
    ranks, items, spill = (xp.empty((lists, rows), dtype=kind) for lists in (d, d + 1, d + 1))
    sides = xp.empty(rows, dtype=np.uint8)
    lists = SortedLists(keys[order].reshape(d, rows), ranks, items, spill, sides)
    grower.kernels.each(
        "finish", "rank_rows", (d + 1) * rows, lists.keys, order, places.node, places.sent,
        lists.packed,
    )  # fmt: skip
    return lists


def _local_statistics(grower: Grower, places: Places) -> Statistics:
    """Renumber the classes present in each node 0, 1, ... in their order, unless they are few."""
    xp = cupy()
    rows = grower.entries[places.entry]
    target = grower.rows.target[rows]
    weight = None if grower.rows.weight is None else grower.rows.weight[rows]
    nodes = places.start.size - 1
    if few := _few_classes(grower):
        return Statistics(target, weight, few * np.arange(nodes + 1))
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


def _grow(grower: Grower, lists: SortedLists, statistics: Statistics, roots: Roots) -> Subtrees:
    """Grow subtrees; the nodes begin and end at places of all rows."""
    task = grower.task
    order = largest_first(roots.sizes)
    roots = roots.take(order)
    room = offsets(node_room(roots.sizes, roots.depth, task.limits))
    sent = send(*roots[:4], room, offsets(roots.channels), *roots.constraints)
    packed, (monotonic, sets) = ROOTS.pack(*sent[:6]), pack_constraints(grower, sent[6:])
    nodes = _allocate_nodes(int(room[-1]), task)
    used = cupy().empty(order.size, dtype=np.int32)
    rows = ROWS.pack(statistics.target, statistics.weight, None, None)
    for launch in launches(grower, roots):
        some = roots.take(np.arange(launch.first, launch.last))
        grower.kernels(
            "finish", "grow_subtrees", (launch.last - launch.first,), grower.rules, grower.search,
            grower.table.packed, rows, lists.packed, lists.keys, packed, launch.first,
            launch.copied, monotonic, grower.interactions, sets,
            _pack_scratch(grower, some, launch.warps), nodes, used,
            threads=LANES * launch.warps, shared=launch.shared,
        )  # fmt: skip
    return _compact(grower, nodes, used, packed, order)


def _compact(grower: Grower, nodes: Packed, used: Any, roots: Packed, order: Int64s) -> Subtrees:
    """Nodes in use, on the host, one subtree after another; subtree j has root ``order[j]``."""
    starts = offsets(used.get().astype(np.int64))
    arrays = [(int(starts[-1]), kind) for kind in GROWN]
    block = cupy().zeros(bytes_of(*arrays), dtype=np.uint8)
    rest = (len(NODES.fields) - len(GROWN)) * (None,)
    grower.kernels(
        "finish", "compact_nodes", (order.size,), nodes, roots, used, *send(starts[:-1]),
        NODES.pack(*allocate_in(block.data, *arrays), *rest),
    )  # fmt: skip
    child, feature, threshold, missing_left, gain, *places = views(block.get(), *arrays)
    root = np.empty_like(order)
    root[order] = starts[:-1]
    child, begin, end = (field.astype(np.int64) for field in (child, *places))
    return Subtrees(root, child, feature, threshold, missing_left != 0, gain, begin, end)


def _order_entries(grower: Grower, places: Places, order: Any) -> None:
    out = cupy().empty(order.size, dtype=grower.entries.dtype)
    grower.kernels.each(
        "finish", "order_entries", order.size, grower.entries, places.entry, places.node,
        places.sent, cupy().ascontiguousarray(order), order.size, out,
    )  # fmt: skip
    grower.entries[places.entry] = out
