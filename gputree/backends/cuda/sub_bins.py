"""Candidate bins counted into sub-bins on the device, so that few of their rows are sorted.

The marks of candidate bins, counted in sub-bins, say where each bin's sub-bins are; the result is
marks of candidate sub-bins, counted in rows, which are gathered, sorted and scanned as those of
bins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import LANES, cupy
from gputree.backends.cuda.layout import Grower, HostTable, to_device
from gputree.backends.cuda.levels import Candidates, Level
from gputree.backends.cuda.structs import GRID, SUB_BINS
from gputree.backends.cuda.workspace import allocate


def least_worth(rows: int) -> float:
    """Pairs of candidate bins from which on they are subdivided, in a level of so many rows."""
    own = tuning.TUNING
    return max(own.counted_pairs, own.candidate_share * rows)


def most_sub_bins(grower: Grower, level: Level) -> int:
    """Sub-bins that fit the memory for gathered pairs."""
    nbytes = grower.task.channels * (level.histograms.dtype.itemsize + 8) + 12
    return grower.memory.gathered_bytes // 4 // nbytes


def subdivide(grower: Grower, level: Level, bins: Candidates, n: int) -> Candidates:
    """Candidates among the n sub-bins of candidate bins, with the rows that they take."""
    xp, kernels, table = cupy(), grower.kernels, grower.table
    m, d, channels = level.nodes, table.columns, grower.task.channels
    low, scale = map(to_device, bin_scales(table.host))
    grid = GRID.pack(bins.used, bins.starts[0], bins.place, bins.taken, low, scale)
    counts = xp.zeros(n * channels, dtype=level.histograms.dtype)
    sums, bin_of, place, taken, best_scores = allocate(
        (n * channels, np.int64), (n, np.int32), (n, np.int32), (n, np.uint32), (m, np.int64)
    )
    packed = SUB_BINS.pack(counts, sums, bin_of)
    kernels.each("sub_bins", "start_best", m, m, level.cuts, best_scores)
    kernels(
        "sub_bins", "count_sub_bins", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, channels, grid, packed,
    )  # fmt: skip
    kernels(
        "sub_bins", "accumulate_sub_bins", (m * d,), table.packed, channels, level.packed, grid,
        packed, threads=LANES,
    )  # fmt: skip
    shared = (
        grower.rules, table.packed, level.packed, level.scores.monotonic, grid, packed, best_scores,
    )  # fmt: skip
    kernels("sub_bins", "raise_best", (m * d,), *shared, threads=128)
    used = xp.zeros((2, m * d + 1), dtype=np.int64)
    kernels(
        "sub_bins", "mark_sub_bins", (m * d,), *shared, place, taken, used[0, 1:], used[1, 1:],
        threads=LANES,
    )  # fmt: skip
    return Candidates(place, taken, used[0, 1:], xp.cumsum(used, axis=1), grid, packed)


def bin_scales(table: HostTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Half of the least value of each bin of a histogram, and the inverse of half its width.

    Between the values that its edges were found from: others are in its first sub-bin or its last.
    """
    exists = np.arange(table.least.shape[1]) < np.diff(table.offset)[:, None]
    low = 0.5 * table.least[exists]
    width = 0.5 * table.greatest[exists] - low
    scale = np.zeros_like(width)
    np.divide(1.0, width, out=scale, where=width > np.finfo(np.float64).tiny * 2.0**24)
    return low, scale
