"""Additive histograms of row statistics by (column, bin)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda.encode import WORD
from gputree.backends.cuda.layout import Chunks, Grower, to_device

# Shared memory of a block that every device grants.
SHARED_BYTES = 48 * 1024


def column_groups(offset: Int64s, cell_bytes: int) -> Int64s | None:
    """Bounds, in words, of groups of columns whose cells fit shared memory; None if one cannot."""
    columns = offset.size - 1
    words = -(-columns // WORD)
    edges = offset[np.minimum(np.arange(words + 1) * WORD, columns)] * cell_bytes
    if np.diff(edges).max() > SHARED_BYTES:
        return None
    bounds = [0]
    for word in range(words):
        if edges[word + 1] - edges[bounds[-1]] > SHARED_BYTES:
            bounds.append(word)
    return np.array([*bounds, words])


def histogram(
    grower: Grower, begin: Int64s, end: Int64s, out: Any, slots: Int64s, cell_bytes: int
) -> None:
    """Add the entries of node j to the zeroed ``out[slots[j]]``."""
    table, rows, task = grower.table, grower.rows, grower.task
    groups = column_groups(table.host.offset, cell_bytes)
    chunks = Chunks.of(begin, end)
    kernel, shared = "histogram", 0
    if groups is None:
        kernel, groups = "histogram_global", np.array([0, table.stride // WORD])
    else:
        edges = table.host.offset[np.minimum(groups * WORD, table.columns)]
        shared = int(np.diff(edges).max()) * cell_bytes
    owner = np.repeat(np.arange(begin.size), np.diff(chunks.node))
    grower.kernels(
        "histogram", kernel, (chunks.number * (groups.size - 1),), table.codes, table.stride,
        rows.target, rows.weight, rows.square, grower.entries, to_device(slots[owner]),
        chunks.first, chunks.last, to_device(groups), groups.size - 1, table.columns,
        table.offset, task.channels, out, shared=shared,
    )  # fmt: skip


def subtract(
    grower: Grower, whole: Any, whole_slots: Int64s, out: Any, part_slots: Int64s, slots: Int64s
) -> None:
    """``out[slots] = whole[whole_slots] - out[part_slots]``."""
    width = out.shape[1]
    grower.kernels.each(
        "histogram", "subtract", slots.size * width, whole, to_device(whole_slots), out,
        to_device(part_slots), to_device(slots), slots.size, width,
    )  # fmt: skip
