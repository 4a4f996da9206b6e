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
from gputree.backends.cuda.encode import values_of
from gputree.backends.cuda.kernels import INTERVALS, LANES, LARGER, Packed, cupy
from gputree.backends.cuda.layout import Grower, to_device
from gputree.backends.cuda.workspace import DeviceChunks, bytes_of, cut, send
from gputree.base.dtypes import Int64s

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
    groups: Any  # bounds of groups of columns: int64
    sizes: tuple[int, ...]
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
    grower.kernels(
        "histogram", counting.kernel, (chunks.number * groups,), grower.table.packed,
        grower.statistics, grower.entries, chunks.packed, slots, counting.groups, groups,
        orders, *counting.sizes, out, shared=counting.shared,
    )  # fmt: skip


# Maximum number of rows that a warp counts at once in the same columns: see histogram.cu.
MOST_COPIES = 4

# Bytes of a word in every bank of shared memory.
BANKS_BYTES = 4 * LANES


def choose_counting(grower: Grower, columns: tuple[int, int] | None = None) -> Counting:
    """Choose how to count columns first .. last, or all: of the table, or of orders of nodes."""
    table, (first, last) = grower.table, columns or (0, grower.table.columns)
    bins, shared = int(np.diff(table.host.offset).max()), tuning.TUNING.shared_bytes
    of_two = grower.task.n_classes == 2 and grower.cell_dtype == np.uint32
    of_two = of_two and BANKS_BYTES * bins <= shared
    column_bytes = bins * grower.cell_bytes
    most = LANES if of_two else shared // column_bytes or last - first
    width = -(-(last - first) // -(-(last - first) // most))
    groups = to_device(np.append(np.arange(first, last, width), last))
    if of_two:
        copies = min(1 << (LANES // width).bit_length() - 1, MOST_COPIES)
        return Counting("histogram_of_two", groups, (copies, bins), BANKS_BYTES * bins)
    bins *= column_bytes <= shared
    return Counting("histogram", groups, (grower.channels, bins), width * bins * grower.cell_bytes)


def choose_drawn(grower: Grower) -> Counting | None:
    """Choose how to count the columns that nodes visit first; None where all are counted.

    They are counted in both siblings, all columns in the smaller one: in half of the rows at most.
    """
    drawn = grower.task.limits.max_features
    if 2 * drawn > grower.table.columns:
        return None
    return choose_counting(grower, (0, drawn))._replace(draws=True)


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
