"""Additive histograms of row statistics by (column, bin).

Rows counted by ranges of their values, or by category, on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Larger
from gputree.backends.cuda import tuning
from gputree.backends.cuda.encode import WORD, values_of
from gputree.backends.cuda.kernels import INTERVALS, LANES, LARGER, Packed, cupy
from gputree.backends.cuda.layout import Grower, to_device
from gputree.backends.cuda.workspace import DeviceChunks, bytes_of, cut, send
from gputree.base.dtypes import Int64s


def column_groups(offset: Int64s, cell_bytes: int) -> Int64s | None:
    """Bounds, in words, of groups of columns that fit shared memory; None if a word does not."""
    columns = offset.size - 1
    words = -(-columns // WORD)
    edges = offset[np.minimum(np.arange(words + 1) * WORD, columns)] * cell_bytes
    if np.diff(edges).max() > tuning.TUNING.shared_bytes:
        return None
    bounds = [0]
    for word in range(words):
        if edges[word + 1] - edges[bounds[-1]] > tuning.TUNING.shared_bytes:
            bounds.append(word)
    even = np.searchsorted(edges, np.linspace(0, edges[-1], len(bounds) + 1))
    fits = np.diff(edges[even]).max() <= tuning.TUNING.shared_bytes
    return np.unique(even) if fits else np.array([*bounds, words])


# Histograms of which none is a difference.
ALL_COUNTED = LARGER.pack(None, None, None)


def new_histograms(grower: Grower, m: int) -> Any:
    """Zeroed histograms of m nodes."""
    width = grower.table.cells * grower.channels
    most = lambda: bytes_of(((grower.most_nodes, width), grower.cell_dtype))  # noqa: E731
    buffer = grower.workspace.for_histograms()
    (cells,) = buffer.allocate([((m, width), grower.cell_dtype)], most)
    cells.data.memset_async(0, cells.nbytes)
    return cells


class Counting(NamedTuple):
    """Kernel that counts the rows of a table, and its arguments: of every level."""

    kernel: str
    groups: Any  # bounds of groups of columns, in words, or in columns for two classes: int64
    sizes: tuple[Any, ...]
    shared: int = 0  # bytes of shared memory
    draws: bool = False  # counts the columns that nodes draw, and no others


def histogram(
    grower: Grower,
    counting: Counting,
    begin: Int64s,
    end: Int64s,
    out: Any,
    slots: Int64s,
    larger: Larger | None,
) -> Packed:
    """Add the entries of node j to the zeroed ``out[slots[j]]``; returns what scoring subtracts."""
    rest = () if larger is None else _differences(out.shape[0], larger)
    sent = grower.workspace.counted.send(
        (*cut(begin, end), slots, *rest), lambda: _most_bytes(grower)
    )
    owner, first, last, slot_of_node, *differences = sent
    count(grower, counting, DeviceChunks.over(owner, first, last), out, slot_of_node)
    return ALL_COUNTED if larger is None else LARGER.pack(larger.whole, *differences)


def _differences(m: int, larger: Larger) -> tuple[Int64s, Int64s]:
    """Histogram above each of m histograms, -1 of those counted, and the one subtracted from it."""
    whole, part = np.full(m, -1), np.zeros(m, np.int64)
    whole[larger.slots], part[larger.slots] = larger.whole_slots, larger.part_slots
    return whole, part


def count(
    grower: Grower,
    counting: Counting,
    chunks: DeviceChunks,
    out: Any,
    slots: Any = None,
    orders: Any = None,
) -> None:
    """Add pieces of nodes to the zeroed histograms of their nodes, at ``slots`` or in order.

    With `orders` (m, d), int32, of the columns that come first there.
    """
    groups = counting.groups.size - 1
    listed = (orders,) if counting.kernel in LISTED else ()
    grower.kernels(
        "histogram", counting.kernel, (chunks.number * groups,), grower.table.packed,
        grower.statistics, grower.entries, chunks.packed, slots, counting.groups, groups,
        *listed, *counting.sizes, out, shared=counting.shared,
    )  # fmt: skip


# Kernels that take columns as nodes order them.
LISTED = ("histogram_of_two", "histogram_of_drawn")


# Maximum number of rows that a warp counts at once in the same columns: see histogram.cu.
MOST_COPIES = 4

# Bytes of a word in every bank of shared memory.
BANKS_BYTES = 4 * LANES


def choose_counting(grower: Grower, columns: tuple[int, int] | None = None) -> Counting:
    """Choose how to count columns first .. last, and those whose codes share words; or all."""
    table, channels = grower.table, grower.channels
    if columns is None and (of_two := _of_two(grower, table.columns)):
        return of_two
    found = column_groups(table.host.offset, grower.cell_bytes)
    groups = np.array([0, table.stride // WORD]) if found is None else found
    edges = table.host.offset[np.minimum(groups * WORD, table.columns)]
    if columns is not None:
        groups = np.unique(groups.clip(columns[0] // WORD, -(-columns[1] // WORD)))
    if found is None:
        return Counting("histogram_global", to_device(groups), (channels,))
    shared = int(np.diff(edges).max()) * grower.cell_bytes
    return Counting("histogram", to_device(groups), (channels,), shared)


def choose_drawn(grower: Grower) -> Counting | None:
    """Choose how to count the columns that nodes visit first; None where all are counted.

    They are counted in both siblings, all columns in the smaller one: in half of the rows at most.
    """
    drawn, bins = grower.task.limits.max_features, _most_bins(grower)
    most = tuning.TUNING.shared_bytes // (bins * grower.cell_bytes)
    if 2 * drawn > grower.table.columns or most == 0:
        return None
    if of_two := _of_two(grower, drawn):
        return of_two._replace(draws=True)
    groups, width = _even(drawn, most)
    sizes, shared = (grower.channels, bins), width * bins * grower.cell_bytes
    return Counting("histogram_of_drawn", to_device(groups), sizes, shared, draws=True)


def _of_two(grower: Grower, columns: int) -> Counting | None:
    """Counting of so many columns of two classes; None for other statistics, or many bins."""
    bins = _most_bins(grower)
    is_counted = grower.task.n_classes == 2 and grower.cell_dtype == np.uint32
    if not is_counted or BANKS_BYTES * bins > tuning.TUNING.shared_bytes:
        return None
    groups, width = _even(columns, LANES)
    copies = min(1 << (LANES // width).bit_length() - 1, MOST_COPIES)
    return Counting("histogram_of_two", to_device(groups), (copies, bins), BANKS_BYTES * bins)


def _most_bins(grower: Grower) -> int:
    return int(np.diff(grower.table.host.offset).max())


def _even(columns: int, most: int) -> tuple[Int64s, int]:
    """Bounds of groups of columns, and their width: at most so many."""
    number = -(-columns // most)
    width = -(-columns // number)
    return np.minimum(np.arange(number + 1) * width, columns), width


def _most_bytes(grower: Grower) -> int:
    """Maximum bytes sent for the nodes of a level that are counted or subtracted."""
    chunks = grower.most_chunks
    sizes = (*3 * (chunks,), *4 * (grower.most_nodes,))
    return bytes_of(*((size, np.int64) for size in sizes))


Float64s = NDArray[np.float64]


def count_intervals(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    key_shift: int,
    *arrays: NDArray[Any],
    meanwhile: Callable[[], None],
) -> tuple[NDArray[Any], Float64s, Float64s]:
    """Count the rows of nodes into cells of ranges of keys; `meanwhile` runs on the host.

    `arrays` are the fields of `Intervals` in cells.cu, with the end of all cells behind the first
    of each. Returns counts, uint32 or int64 of shape (cells x channels,), and the minimum and
    maximum values of cells, NaN where a cell has no rows.
    """
    xp, cells, chunks = cupy(), int(arrays[-1][-1]), DeviceChunks.of(begin, end)
    node_pairs, column, *ranges = arrays
    sent = send(node_pairs, grower.table.places(column), *ranges)
    counts = xp.zeros(cells * grower.channels, dtype=grower.cell_dtype)
    lowest, highest = (xp.empty(cells, dtype=np.uint64) for _ in range(2))
    lowest.fill(~np.uint64(0))
    highest.fill(np.uint64(0))
    grower.kernels(
        "cells", "count_intervals", (chunks.number,), grower.table.values,
        grower.table.width, grower.statistics, grower.entries, chunks.packed,
        INTERVALS.pack(key_shift, *sent), grower.channels, counts, lowest, highest,
    )  # fmt: skip
    meanwhile()
    ends = [values_of(keys.get()).astype(np.float64) for keys in (lowest, highest)]
    return counts.get(), ends[0], ends[1]


def count_categories(grower: Grower, begin: Int64s, end: Int64s, column: int) -> NDArray[Any]:
    """Statistics of each category of a column in m nodes, then of missing values.

    Shape (m, (categories + 1) x channels), uint32 or int64.
    """
    table, channels = grower.table, grower.channels
    categories, place = int(table.host.categories[column]), table.places(np.array([column]))[0]
    shape = begin.size, (categories + 1) * channels
    counts = cupy().zeros(shape, dtype=grower.cell_dtype)
    chunks = DeviceChunks.of(begin, end)
    grower.kernels(
        "cells", "count_categories", (chunks.number,), table.values, table.width, place,
        categories, grower.statistics, grower.entries, chunks.packed, channels, counts,
    )  # fmt: skip
    found: NDArray[Any] = counts.get()
    return found
