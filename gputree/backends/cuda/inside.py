"""Cuts inside bins of few rows: sizes stay on the device, so the host never waits for them.

Where bins are expected to have more rows than a warp sorts, `gputree.backends.cuda.refine` searches
instead. If some bins have more nevertheless, or there are more candidate pairs than are efficient
without sub-bins, the device reports it at the end of the level, which is then searched again.

A level on the device while its splits are searched, and its candidate bins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.cuda import tuning
from gputree.backends.cuda.categories import MASK_WORDS, Sides
from gputree.backends.cuda.kernels import FOUND, INSIDE, LANES, Packed
from gputree.backends.cuda.layout import TALLY_WORDS, Grower, LevelPlan
from gputree.backends.cuda.partition import RECORD_WORDS
from gputree.backends.cuda.pieces import DeviceChunks
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.workspace import Shaped, bytes_of

# A cut on the device, as int64: see cut.cuh.
CUT_WORDS = 5

# Maximum number of rows of a bin that a warp sorts: see inside.cuh.
MOST_SORTED = 1024

NOTHING_FOUND = FOUND.pack(None, None, None)


class Inside(NamedTuple):
    """Device memory for the search inside candidate bins of a level."""

    keys: Any  # (slots,)
    items: Any  # (slots,) int32
    lefts: Any  # (blocks, channels, LANES) int64
    packed: Packed  # the rest, for kernels
    found: Packed


def has_small_bins(grower: Grower, level: SearchLevel) -> bool:
    """Return True if a warp can sort an average bin of the largest node in its widest column."""
    return level.largest <= MOST_SORTED * grower.table.divisible


def look_inside(grower: Grower, level: SearchLevel) -> Packed:
    """Find the best cuts inside candidate bins if their rows fit memory."""
    inside = _allocate(grower, level)
    kernels, table = grower.kernels, grower.table
    kernels(
        "inside", "mark_inside", (level.nodes * table.columns,), grower.rules, table.packed,
        level.packed, level.scores.bound, level.visited, level.cuts, inside.packed, threads=LANES,
    )  # fmt: skip
    kernels(
        "inside", "gather_inside", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, inside.packed, inside.keys, inside.items,
    )  # fmt: skip
    kernels(
        "inside", "scan_inside", (len(inside.lefts),), grower.rules, table.packed, level.packed,
        level.scores.monotonic, grower.statistics, inside.packed, inside.keys, inside.items,
        inside.lefts, threads=LANES,
    )  # fmt: skip
    return inside.found


def _allocate(grower: Grower, level: SearchLevel) -> Inside:
    m, rows = level.nodes, level.rows
    keys, items, lefts, place, taken, first, number, column, bin_of, begin, end, cuts = (
        grower.workspace.inside.allocate(
            _arrays(grower, m, rows),
            lambda: bytes_of(*_arrays(grower, grower.most_nodes, grower.entries.size)),
        )
    )
    found = first, number, cuts
    packed = INSIDE.pack(
        keys.size, level.plan.tally, place, taken, (column, bin_of, begin, end), found
    )
    return Inside(keys, items, lefts, packed, FOUND.pack(*found))


def _arrays(grower: Grower, m: int, rows: int) -> list[Shaped]:
    """Arrays for the search inside bins of m nodes that have `rows` rows together."""
    table, channels = grower.table, grower.channels
    cells, pairs, slots = grower.table.cells, m * table.columns, _slots(grower, rows)
    bins = min(m * cells, slots // 2)  # a candidate has two rows or more
    blocks = scanning_blocks(grower, bins)
    i4, i8 = np.int32, np.int64
    return [
        (slots, table.bits), (slots, i4), ((blocks, channels, LANES), i8), ((m, cells), i4),
        ((m, cells), np.uint32), (pairs, i8), (pairs, i4), (bins, i8), (bins, i4), (bins, i8),
        (bins, i8), ((bins, CUT_WORDS), i8),
    ]  # fmt: skip


def scanning_blocks(grower: Grower, bins: int) -> int:
    """Number of warps that scan `bins`; each has memory for the statistics of its lanes."""
    most = grower.memory.gathered_bytes // 4 // (8 * LANES * grower.channels)
    return max(min(tuning.TUNING.candidate_blocks, most, bins), 1)


def _slots(grower: Grower, rows: int) -> int:
    """Rows of candidate bins up to which sub-bins are not worth it, and that fit memory."""
    tuned = tuning.TUNING
    least_worth = max(tuned.counted_pairs, tuned.candidate_share * rows)
    most = min(tuned.candidate_pairs, grower.most_gathered_pairs)
    return int(min(least_worth, most, rows * grower.table.columns))


class SearchLevel(NamedTuple):
    """Nodes whose splits are searched."""

    rows: int
    largest: int  # rows of the largest node
    plan: LevelPlan
    histograms: Any
    scores: DeviceScores
    cuts: Any  # (m, CUT_WORDS) int64
    results: Any  # int64: the host reads it, see `Results`
    lefts: Any  # of the parts that are partitioned, int64
    sides: Sides | None
    packed: Packed  # its histograms, for kernels
    visited: Packed  # columns that nodes visit, see Visits of cut.cuh
    scored: Packed  # `scores`

    @property
    def nodes(self) -> int:
        return self.scores.total.shape[0]

    @property
    def chunks(self) -> DeviceChunks:
        return self.plan.chunks

    @property
    def records(self) -> Any:
        """(m, RECORD_WORDS) int64: the splits."""
        return Results.of(self.results, self.nodes).records


class Results(NamedTuple):
    """Results of m nodes that the host reads in one copy, int64."""

    tally: Any  # (TALLY_WORDS,)
    records: Any  # (m, RECORD_WORDS): the splits
    masks: Any  # (m, MASK_WORDS): categories that go left; none without categorical columns

    @classmethod
    def of(cls, words: Any, m: int) -> Results:
        """Views of `words`, which are contiguous."""
        first, last = TALLY_WORDS, TALLY_WORDS + m * RECORD_WORDS
        masks = words[last:].reshape(-1, MASK_WORDS)
        return cls(words[:first], words[first:last].reshape(-1, RECORD_WORDS), masks)


class CandidateSubBins(NamedTuple):
    """Sub-bins of bins that may contain the best cut, and the slots of their rows."""

    # (3, m x d + 1) int64: slots, candidates, and those too large for a warp, in the columns
    # before.
    starts: Any
    totals: Any  # (4,) int64: the same of all columns, and pairs in candidate bins
    grid: Packed  # for kernels: sub-bins that have rows
    counted: Packed  # their statistics
    listed: Packed  # pairs in candidate bins
    room: int  # for so many pairs
    free_bytes: int  # for gathering rows


class Batch(NamedTuple):
    """Columns ``begin .. end``, counted through all nodes, that are refined at once."""

    begin: int
    end: int
    rows: int
    candidates: int
    sorts: bool  # each is sorted by the warp that scans it
    row_start: Any  # (m x d + 1,) int64: relative to the batch's first
    first: Any  # the same for candidates
