"""The search inside candidate bins, by sub-bins, which a level does not wait for.

Candidate bins are counted into sub-bins on the device: the rows of those whose bound reaches the
best score are gathered, sorted and scanned. The host does not know the number of sub-bins, and
allocates memory for the maximum. It does not know the number of rows either, and allocates memory
for few of them. Where it does not suffice, or where a sub-bin has more rows than a warp sorts, the
device says so at the end of the level: then the host gathers with sizes that it knows, in batches
that fit memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import (
    GRID,
    LANES,
    PAIR_LIST,
    SLOTS,
    SUB_BINS,
    THREADS,
    Packed,
)
from gputree.backends.cuda.layout import Grower, batches, sort_segments
from gputree.backends.cuda.level import CUT_WORDS, SearchLevel, Tally
from gputree.backends.cuda.memory import GATHERED_BYTES
from gputree.backends.cuda.workspace import Shaped, allocate, bytes_of

# Approximate number of blocks that sum up or mark sub-bins: where nodes are few, many blocks share
# a column.
MARKING_BLOCKS = 1024
MOST_SLICES = 8


class SubBinSearch(NamedTuple):
    """A search in device memory."""

    grid: Packed  # for kernels: sub-bins of columns and bins
    sub_bins: Packed  # their statistics and slots
    listed: Packed  # pairs in candidate bins
    slot: Any  # (sub-bins,) int64: the first one of each candidate
    candidates: Any  # (sub-bins,) int32: in front, their numbers
    free_bytes: int  # for gathering rows


def search_sub_bins(grower: Grower, level: SearchLevel) -> tuple[SubBinSearch, Packed]:
    """Queue the search of a level; returns it, and the cuts found."""
    nodes, rows, largest = level.extent
    cell_rows, cells = _rows_and_number(grower, nodes, rows, largest)
    sizes, buffer = _sizes(grower, rows, cells), grower.workspace.inside
    arrays = buffer.allocate(
        _arrays(grower, nodes, sizes),
        lambda: min(_most_bytes(grower), grower.memory.gathered_bytes),
    )
    keys, items, lefts, earlier, cuts = arrays[17:]
    search = SubBinSearch(
        grid=GRID.pack(*arrays[:5], *grower.table.scales),
        sub_bins=SUB_BINS.pack(*arrays[5:14]),
        listed=PAIR_LIST.pack(sizes.pairs, *arrays[14:17]),
        slot=arrays[10],
        candidates=arrays[13],
        free_bytes=grower.memory.gathered_bytes - buffer.nbytes,
    )
    found, slots = level.found(earlier, cuts), SLOTS.pack(0, sizes.slots, None, keys, items)
    _mark(grower, level, search, cell_rows, sizes)
    _gather(grower, level, search, slots)
    _scan(grower, level, search, slots, found, lefts)
    return search, found


def search_in_batches(
    grower: Grower, level: SearchLevel, search: SubBinSearch, tally: Tally
) -> Packed:
    """Gather and scan the candidates that are marked; returns the cuts found."""
    blocks = scanning_blocks(grower, tally.candidates)
    lefts, earlier, cuts = allocate(
        ((blocks, grower.channels, LANES), np.int64), (tally.candidates, np.int32),
        ((tally.candidates, CUT_WORDS), np.int64),
    )  # fmt: skip
    found = level.found(earlier, cuts)
    level.latest.fill(-1)
    level.results[Tally._fields.index("overflows")] = 0
    for begin, end in _batches(search, tally):
        n, is_sorted = end - begin, tally.overflows > 1  # a warp cannot sort some candidate
        keys, items, segments = allocate(
            (n, grower.table.bits), (n, np.int32), (n if is_sorted else 0, np.uint32)
        )
        segment = segments if is_sorted else None
        _gather(grower, level, search, SLOTS.pack(begin, end, segment, keys, items))
        if is_sorted:
            order = sort_segments(segments, keys)
            keys, items = keys[order], items[order]
        slots = SLOTS.pack(begin, end, None, keys, items)
        _scan(grower, level, search, slots, found, lefts)
    return found


def _batches(search: SubBinSearch, tally: Tally) -> Iterator[tuple[int, int]]:
    """Slots that are gathered at once: all, or those of candidates that fit."""
    most = min(max(search.free_bytes // GATHERED_BYTES, 1), tuning.TUNING.gathered_pairs)
    if tally.slots <= most:
        yield 0, tally.slots
        return
    first = np.sort(search.slot[search.candidates[: tally.candidates]].get())
    ends = np.append(first, tally.slots)
    bounds = batches(np.diff(ends), most)
    yield from zip(ends[bounds[:-1]].tolist(), ends[bounds[1:]].tolist(), strict=True)


# --------------------------------------------------------------------------- kernels
def _mark(
    grower: Grower, level: SearchLevel, search: SubBinSearch, cell_rows: int, most: _Sizes
) -> None:
    """Count candidate bins into sub-bins, list their pairs, and mark the candidates."""
    kernels, table = grower.kernels, grower.table
    columns = level.extent.nodes * table.columns
    grid, sub_bins, monotonic = search.grid, search.sub_bins, level.scores.monotonic
    kernels(
        "sub_bins", "mark_candidates", (columns,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visited, level.cuts, cell_rows, grid, sub_bins, level.results,
    )  # fmt: skip
    kernels(
        "sub_bins", "count_sub_bins", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, grower.channels, grid, sub_bins,
        search.listed, level.results,
    )  # fmt: skip
    slices = min(max(MARKING_BLOCKS // columns, 1), MOST_SLICES)
    kernels(
        "sub_bins", "accumulate_sub_bins", (columns * slices,), grower.rules, table.packed,
        level.packed, monotonic, grid, sub_bins, slices, level.best_boundaries,
    )  # fmt: skip
    kernels(
        "sub_bins", "mark_sub_bins", (min(-(-most.cells // THREADS), MARKING_BLOCKS),),
        grower.rules, table.packed, level.packed, monotonic, grid, sub_bins, level.results,
        level.best_boundaries, most.slots, most.cuts,
    )  # fmt: skip


def _gather(grower: Grower, level: SearchLevel, search: SubBinSearch, slots: Packed) -> None:
    grower.kernels(
        "refine", "gather_rows", (level.chunks.number,), grower.table.values, grower.table.packed,
        grower.entries, level.chunks.packed, search.grid, search.sub_bins, search.listed, slots,
        level.results,
    )  # fmt: skip


def _scan(
    grower: Grower, level: SearchLevel, search: SubBinSearch, slots: Packed, found: Packed,
    lefts: Any,
) -> None:  # fmt: skip
    grower.kernels(
        "refine", "scan_candidates", (len(lefts),), grower.rules, grower.table.packed,
        level.packed, level.scores.monotonic, grower.statistics, search.sub_bins, slots, found,
        lefts, threads=LANES,
    )  # fmt: skip


# ---------------------------------------------------------------------------- memory
class _Sizes(NamedTuple):
    """Maximum numbers of things of a search."""

    cells: int  # sub-bins
    pairs: int  # that are listed
    slots: int
    cuts: int


def _rows_and_number(grower: Grower, m: int, rows: int, largest: int) -> tuple[int, int]:
    """Average rows of a sub-bin, and maximum number of sub-bins.

    Where memory is short, sub-bins have more rows: they use a quarter of the memory for pairs, or
    are one for each bin.
    """
    pairs = rows * grower.table.columns
    bins = min(m * grower.table.cells, pairs // 2)  # a candidate has two rows, or more
    cell_rows = tuning.TUNING.cell_rows
    # Counts, sums, column, slot, least key, and five numbers of 32 bits.
    cell_bytes = grower.cell_bytes + 8 * grower.channels + 16 + grower.table.bits.itemsize + 20
    most = grower.memory.gathered_bytes // 4 // cell_bytes
    while cell_rows < largest and bins + 2 * pairs // cell_rows > most:
        cell_rows *= 8
    return cell_rows, bins + (2 * pairs // cell_rows if cell_rows < largest else 0)


def _sizes(grower: Grower, rows: int, cells: int) -> _Sizes:
    """Sizes of a search: lists of pairs and slots have a quarter of the memory for pairs each."""
    tuned, memory = tuning.TUNING, grower.memory
    pair_bytes = 8 + grower.table.bits.itemsize  # its sub-bin, row and value
    pairs = min(int(tuned.listed_share * rows), memory.gathered_bytes // 4 // pair_bytes)
    slots = max(tuned.fewest_slots, tuned.slot_share * rows)
    slots = int(min(slots, grower.most_gathered_pairs // 4, rows * grower.table.columns))
    return _Sizes(cells, pairs, slots, min(-(-slots // 4), cells))


def _arrays(grower: Grower, m: int, sizes: _Sizes) -> list[Shaped]:
    """Arrays of a search: of columns and bins, of sub-bins, of pairs, and of slots and cuts."""
    n, channels, bits = sizes.cells, grower.channels, grower.table.bits
    columns, bins, i4, i8 = m * grower.table.columns, m * grower.table.cells, np.int32, np.int64
    return [
        (columns, i8), (columns, i8), (columns, i4), (bins, i4), (bins, np.uint32),
        (n * channels, grower.cell_dtype), (n * channels, i8), (n, i8), (n, i4), (n, i4), (n, i8),
        (n, np.uint32), (n, bits), (n, i4),
        (sizes.pairs, i4), (sizes.pairs, i4), (sizes.pairs, bits),
        (sizes.slots, bits), (sizes.slots, i4),
        ((scanning_blocks(grower, sizes.cuts), channels, LANES), i8), (sizes.cuts, i4),
        ((sizes.cuts, CUT_WORDS), i8),
    ]  # fmt: skip


def _most_bytes(grower: Grower) -> int:
    """Maximum bytes of the arrays of a search."""
    m, rows = grower.most_nodes, grower.entries.size
    cells = _rows_and_number(grower, m, rows, rows)[1]
    return bytes_of(*_arrays(grower, m, _sizes(grower, rows, cells)))


def scanning_blocks(grower: Grower, candidates: int) -> int:
    """Number of warps that scan candidates; each has memory for the statistics of its lanes."""
    most = grower.memory.gathered_bytes // 4 // (8 * LANES * grower.channels)
    return max(min(tuning.TUNING.candidate_blocks, most, candidates), 1)
