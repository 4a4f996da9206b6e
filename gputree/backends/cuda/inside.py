"""Cuts inside bins of few rows: sizes stay on the device, and the host does not wait for any.

Where more pairs are alive than are worth it without cells, or a bin has more rows than a warp
sorts, the device says so at the level's end, and `gputree.backends.cuda.refine` looks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gputree.backends.cuda import finer, tuning
from gputree.backends.cuda.layout import Grower
from gputree.backends.cuda.structs import FOUND, LIVING, Packed
from gputree.backends.cuda.workspace import Shaped, bytes_of

if TYPE_CHECKING:
    from gputree.backends.cuda.refine import Level

# A cut on the device, as int64: see cut.cuh.
CUT_WORDS = 4

LANES = 32

NOTHING_FOUND = FOUND.pack(None, None, None)


class Living(NamedTuple):
    """Room for what lies inside living bins of a level."""

    blocks: int
    keys: Any  # (slots,)
    items: Any  # (slots,) int32
    lefts: Any  # (blocks, channels, LANES) int64
    packed: Packed  # the rest, for kernels
    found: Packed


def look_inside(grower: Grower, level: Level, boundaries: Packed) -> Packed:
    """Choose boundaries, and find the best cuts inside living bins if their rows have room."""
    living = _room(grower, level)
    kernels, table = grower.kernels, grower.table
    shape = grower.rules, table.packed, level.packed
    kernels(
        "inside", "mark_leading", (level.nodes,), *shape, boundaries, living.packed, threads=LANES
    )
    _scan(grower, level, living, 0)
    kernels(
        "inside", "mark_others", (level.nodes * table.columns,), *shape, level.scores.bound,
        level.visited, level.cuts, level.lead, living.packed, threads=LANES,
    )  # fmt: skip
    _scan(grower, level, living, 1)
    return living.found


def _room(grower: Grower, level: Level) -> Living:
    m, rows = level.nodes, level.rows
    slots, leading = _slots(grower, rows), _leading_bins(grower, m, rows)
    room = grower.workspace.inside.carve(
        _arrays(grower, m, rows),
        lambda: bytes_of(*_arrays(grower, grower.most_nodes, grower.entries.size)),
    )
    keys, items, lefts, place, taken, first, number, column, bin_of, begin, end, cuts = room
    own = first, number, cuts
    packed = LIVING.pack(
        slots, level.plan.tally, place, taken, leading, (column, bin_of, begin, end), own
    )
    return Living(len(lefts), keys, items, lefts, packed, FOUND.pack(*own))


def _arrays(grower: Grower, m: int, rows: int) -> list[Shaped]:
    """Room inside the bins of m nodes that have so many rows together."""
    table, channels = grower.table, grower.task.channels
    cells, pairs, slots = grower.cells, m * table.columns, _slots(grower, rows)
    bins = _leading_bins(grower, m, rows) + min(m * cells, slots // 2)
    scratch = grower.memory.gathered_bytes // 4 // (8 * LANES * channels)
    blocks = max(min(tuning.TUNING.living_blocks, scratch, bins), 1)
    i4, i8 = np.int32, np.int64
    return [
        (slots, table.bits), (slots, i4), ((blocks, channels, LANES), i8), ((m, cells), i4),
        ((m, cells), np.uint32), (pairs, i8), (pairs, i4), (bins, i8), (bins, i4), (bins, i8),
        (bins, i8), ((bins, CUT_WORDS), i8),
    ]  # fmt: skip


def _leading_bins(grower: Grower, m: int, rows: int) -> int:
    """Living bins of the leading columns, at most: each has two rows, or more."""
    widest = int(np.diff(grower.table.host.offset).max())
    return min(m * widest, _slots(grower, rows) // 2)


def _slots(grower: Grower, rows: int) -> int:
    """Rows of living bins up to which cells are not worth it, and that memory has room for."""
    least = finer.least_worth(rows)
    most = min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs)
    return int(min(least, most, tuning.TUNING.living_pairs, rows * grower.table.columns))


def _scan(grower: Grower, level: Level, living: Living, others: int) -> None:
    """The best cut inside each living bin of the leading columns, or of all others."""
    kernels, table = grower.kernels, grower.table
    kernels(
        "inside", "gather_living", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, level.lead, others, living.packed, living.keys,
        living.items,
    )  # fmt: skip
    kernels(
        "inside", "scan_living", (living.blocks,), grower.rules, table.packed, level.packed,
        level.held, grower.statistics, others, living.packed, living.keys, living.items,
        living.lefts, threads=LANES,
    )  # fmt: skip
