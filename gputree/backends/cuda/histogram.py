"""Additive histograms of row statistics by (column, bin)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.encode import WORD
from gputree.backends.cuda.layout import Chunks, Grower, cut, send


def column_groups(offset: Int64s, cell_bytes: int) -> Int64s | None:
    """Bounds, in words, of groups of columns whose cells fit shared memory; None if one cannot."""
    columns = offset.size - 1
    words = -(-columns // WORD)
    edges = offset[np.minimum(np.arange(words + 1) * WORD, columns)] * cell_bytes
    if np.diff(edges).max() > tuning.TUNING.shared_bytes:
        return None
    bounds = [0]
    for word in range(words):
        if edges[word + 1] - edges[bounds[-1]] > tuning.TUNING.shared_bytes:
            bounds.append(word)
    return np.array([*bounds, words])


def histogram(
    grower: Grower, begin: Int64s, end: Int64s, out: Any, slots: Int64s, cell_bytes: int
) -> None:
    """Add the entries of node j to the zeroed ``out[slots[j]]``."""
    table = grower.table
    groups = column_groups(table.host.offset, cell_bytes)
    kernel, shared = "histogram", 0
    if groups is None:
        kernel, groups = "histogram_global", np.array([0, table.stride // WORD])
    else:
        edges = table.host.offset[np.minimum(groups * WORD, table.columns)]
        shared = int(np.diff(edges).max()) * cell_bytes
    *pieces, own, bounds = send(*cut(begin, end), slots, groups)
    chunks = Chunks.over(*pieces)
    grower.kernels(
        "histogram", kernel, (chunks.number * (groups.size - 1),), table.packed,
        grower.statistics, grower.entries, chunks.packed, own, bounds, groups.size - 1,
        grower.task.channels, out, shared=shared,
    )  # fmt: skip


def subtract(
    grower: Grower, whole: Any, whole_slots: Int64s, out: Any, part_slots: Int64s, slots: Int64s
) -> None:
    """``out[slots] = whole[whole_slots] - out[part_slots]``."""
    width = out.shape[1]
    sources, parts, targets = send(whole_slots, part_slots, slots)
    grower.kernels.each(
        "histogram", "subtract", slots.size * width, whole, sources, out, parts,
        targets, slots.size, width,
    )  # fmt: skip
