"""Candidate bins counted into sub-bins on the device, so that few of their rows are sorted.

The result is marks of candidate sub-bins and their numbers of rows, which are gathered, sorted and
scanned. The host does not know the number of sub-bins: memory is allocated for the maximum.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Grower
from gputree.backends.cuda.levels import CandidateSubBins, SearchLevel
from gputree.backends.cuda.structs import GRID, SUB_BINS
from gputree.backends.cuda.workspace import allocate

# Approximate number of blocks that mark sub-bins: where nodes are few, many blocks share a column.
MARKING_BLOCKS = 1024


def _rows_and_number(grower: Grower, level: SearchLevel, columns: int) -> tuple[int, int]:
    """Average rows of a sub-bin, and maximum number of sub-bins in `columns` columns of each node.

    Where memory is short, sub-bins have more rows: they use a quarter of the memory for pairs, or
    are one for each bin.
    """
    pairs = level.rows * columns
    bins = min(level.nodes * grower.cells, pairs // 2)  # a candidate has two rows, or more
    rows = tuning.TUNING.cell_rows
    most = grower.memory.gathered_bytes // 4 // _cell_bytes(grower)
    while rows < level.largest and bins + 2 * pairs // rows > most:
        rows *= 8
    return rows, bins + (2 * pairs // rows if rows < level.largest else 0)


def _cell_bytes(grower: Grower) -> int:
    """Bytes of a sub-bin: counts, sums, its bin, its number, place and cursor."""
    return grower.cell_bytes + 8 * grower.task.channels + 16


def subdivide(grower: Grower, level: SearchLevel, lead_only: int) -> CandidateSubBins:
    """Candidates among the sub-bins of candidate bins, with their numbers of rows.

    Only of the leading column of each node, or of all others.
    """
    kernels, table = grower.kernels, grower.table
    m, d, channels = level.nodes, table.columns, grower.task.channels
    cell_rows, n = _rows_and_number(grower, level, 1 if lead_only else d)
    bin_place, size, sums, bin_of, listed, place, taken, best_scores = allocate(
        ((m, grower.cells), np.int32), ((m, grower.cells), np.uint32), (n * channels, np.int64),
        (n, np.int32), (n, np.int32), (n, np.int32), (n, np.uint32), (m, np.int64),
    )  # fmt: skip
    counts = cupy().zeros(n * channels, dtype=grower.cell_dtype)
    starts = cupy().zeros((4, m * d + 1), dtype=np.int64)
    used, rows = starts[0], starts[1:]
    kernels(
        "sub_bins", "mark_candidates", (m * d,), grower.rules, table.packed, level.packed,
        level.scores.bound, level.visited, level.cuts, level.lead, lead_only, cell_rows,
        bin_place, size, used[1:], best_scores,
    )  # fmt: skip
    kernels("sub_bins", "sum_counts", (1,), used, used.size, threads=1024)
    grid = GRID.pack(used, bin_place, size, *table.scales)
    packed = SUB_BINS.pack(counts, sums, bin_of, place, taken, listed)
    kernels(
        "sub_bins", "count_sub_bins", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, channels, grid, packed,
    )  # fmt: skip
    kernels(
        "sub_bins", "accumulate_sub_bins", (m * d,), table.packed, channels, level.packed, grid,
        packed,
    )  # fmt: skip
    slices = max(MARKING_BLOCKS // (m * d), 1)
    scored = (
        grower.rules, table.packed, level.packed, level.scores.monotonic, grid, packed, slices,
        best_scores,
    )  # fmt: skip
    kernels("sub_bins", "raise_best", (m * d * slices,), *scored)
    kernels("sub_bins", "mark_sub_bins", (m * d * slices,), *scored)
    kernels("sub_bins", "list_sub_bins", (m * d,), grower.rules, grid, packed, *rows[:, 1:])
    kernels("sub_bins", "sum_counts", (3,), rows, used.size, threads=1024)
    return CandidateSubBins(
        rows, grid, packed, grower.memory.gathered_bytes - n * _cell_bytes(grower)
    )
