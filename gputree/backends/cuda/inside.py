"""Cuts inside bins of few rows: sizes stay on the device, and the host does not wait for any.

Where more pairs are alive than are worth it without cells, or a bin has more rows than a warp
sorts, the device says so at the level's end, and `gputree.backends.cuda.refine` looks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gputree.backends.cuda import finer, tuning
from gputree.backends.cuda.layout import Grower, carve
from gputree.backends.cuda.memory import GATHERED_BYTES
from gputree.backends.cuda.structs import FOUND, LIVING, Packed

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
    table, channels = grower.table, grower.task.channels
    m, d, cells = level.nodes, table.columns, int(table.host.offset[-1])
    slots = _slots(grower, level)
    # A living bin has two rows, or more.
    leading = min(m * int(np.diff(table.host.offset).max()), slots // 2)
    bins = leading + min(m * cells, slots // 2)
    scratch = grower.memory.gathered_pairs * GATHERED_BYTES // 4 // (8 * LANES * channels)
    blocks = max(min(tuning.TUNING.living_blocks, scratch, bins), 1)
    i4, i8 = np.int32, np.int64
    keys, items, lefts, place, taken, first, number, column, bin_of, begin, end, cuts = carve(
        (slots, table.bits), (slots, i4), ((blocks, channels, LANES), i8), ((m, cells), i4),
        ((m, cells), np.uint32), (m * d, i8), (m * d, i4), (bins, i8), (bins, i4), (bins, i8),
        (bins, i8), ((bins, CUT_WORDS), i8),
    )  # fmt: skip
    own = first, number, cuts
    packed = LIVING.pack(
        slots, level.plan.tally, place, taken, leading, (column, bin_of, begin, end), own
    )
    return Living(blocks, keys, items, lefts, packed, FOUND.pack(*own))


def _slots(grower: Grower, level: Level) -> int:
    """Rows of living bins up to which cells are not worth it, and that memory has room for."""
    least = finer.least_worth(level.rows)
    most = min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs)
    return int(min(least, most, tuning.TUNING.living_pairs, level.rows * grower.table.columns))


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
