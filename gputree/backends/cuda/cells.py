"""Rows counted by ranges of their values, or by category, on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.encode import values_of
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import DeviceChunks, Grower
from gputree.backends.cuda.structs import INTERVALS
from gputree.backends.cuda.workspace import send

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
    counts = xp.zeros(cells * grower.task.channels, dtype=grower.cell_dtype)
    lowest, highest = (xp.empty(cells, dtype=np.uint64) for _ in range(2))
    lowest.fill(~np.uint64(0))
    highest.fill(np.uint64(0))
    grower.kernels(
        "cells", "count_intervals", (chunks.number,), grower.table.values,
        grower.table.width, grower.statistics, grower.entries, chunks.packed,
        INTERVALS.pack(key_shift, *sent), grower.task.channels, counts, lowest, highest,
    )  # fmt: skip
    meanwhile()
    ends = [values_of(keys.get()).astype(np.float64) for keys in (lowest, highest)]
    return counts.get(), ends[0], ends[1]


def count_categories(grower: Grower, begin: Int64s, end: Int64s, column: int) -> NDArray[Any]:
    """Statistics of each category of a column in m nodes, then of missing values.

    Shape (m, (categories + 1) x channels), uint32 or int64.
    """
    table, channels = grower.table, grower.task.channels
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
