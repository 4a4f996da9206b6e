"""Bins of numeric columns, equal on every device: the sample of rows, the edges, the grid.

Thresholds of cuts, from bins and the values next to them, and the other rules of a split that are
the same on every device, for arrays and for CPU kernels.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Splits
from gputree.base.dtypes import Bools, Floats, Int64s
from gputree.compilation import jitable

MAX_BINS = 256
GRID_CELLS = 2048

# Rows whose values place the bin edges: 256 per bin on average, where bins are even.
SAMPLE_ROWS = 65_536

# Number of distinct values in a sample that is enough to place 256 bins.
FEWEST_DISTINCT = 16 * MAX_BINS


class Bins(NamedTuple):
    """Bin edges of d columns, padded with infinity, and the grid over them."""

    edge: NDArray  # (d, 512) maximum value of each bin but the last
    count: NDArray  # type: ignore[assignment]  # (d,) int64: bins of values
    lossless: NDArray  # (d,) bool: one distinct value a bin
    lowest: NDArray  # (d, 256) minimum value of each bin, of the rows that the bins are fitted to
    highest: NDArray  # (d, 256) maximum such value
    low: NDArray  # (d,) half the first edge
    scale: NDArray  # (d,) grid cells per half unit
    cell: NDArray  # (d, GRID_CELLS) uint8: edges in earlier cells
    steps: NDArray  # (d,) int64: halving steps within a cell
    even: NDArray  # (d,) bool: bins have equal numbers of rows; else fewer near both ends


def bin_bytes(itemsize: int) -> int:
    """Bytes of the bins of a column with values of `itemsize` bytes; ends of bins are float64."""
    return (2 * MAX_BINS + 2 * MAX_BINS) * itemsize + GRID_CELLS + 2 * MAX_BINS * 8


@lru_cache
def uneven_quantiles(max_bins: int) -> Floats:
    """Quantiles of the edges of exact bins, which have fewer rows near both ends.

    The gap between a bin's bound and the scores at its ends grows with its rows divided by
    ``sqrt(q (1 - q))``, where q is the fraction of rows before the bin. Edges that are evenly
    spaced in ``asin(sqrt(q))`` make the gap the same for all bins, but give bins in the middle
    pi / 2 times the rows. So half of the density of edges is that, and half is even.
    """
    angle = np.linspace(0.0, 1.0, 1 << 10)
    quantile = np.sin(np.pi / 2 * angle) ** 2
    found = np.interp(np.arange(1, max_bins) / max_bins, (quantile + angle) / 2, quantile)
    found.flags.writeable = False
    return found


def empty_bins(d: int, dtype: np.dtype, even: bool = True) -> Bins:
    """Bins of d columns, not yet fitted."""
    return Bins(
        edge=np.full((d, 2 * MAX_BINS), np.inf, dtype),  # halving may look past the last
        count=np.ones(d, np.int64),
        lossless=np.zeros(d, np.bool_),
        lowest=np.zeros((d, MAX_BINS), dtype),
        highest=np.zeros((d, MAX_BINS), dtype),
        low=np.zeros(d, dtype),
        scale=np.zeros(d, dtype),
        cell=np.zeros((d, GRID_CELLS), np.uint8),
        steps=np.zeros(d, np.int64),
        even=np.full(d, even),
    )


def single_bins(bins: Bins, missing: Bools) -> tuple[Int64s, Bools]:
    """Offsets of the ragged histogram, and which of its bins hold one distinct value."""
    counts = bins.count + missing
    offset = np.concatenate([[0], np.cumsum(counts)])
    single = np.zeros(offset[-1], np.bool_)
    for f in range(bins.count.size):
        n = int(bins.count[f])
        alone = single[offset[f] : offset[f + 1]]
        alone[n:] = True
        if bins.lossless[f]:
            alone[:] = True
        else:
            edge = bins.edge[f, : n - 1]
            alone[1 : n - 1] = edge[:-1] == np.nextafter(edge[1:], edge.dtype.type(-np.inf))
    return offset, single


@jitable
def fewest_rows(limits: Any) -> Any:
    """Minimum number of rows of a node that is split."""
    return max(limits.min_samples_split, 2 * limits.min_samples_leaf, 2)


@jitable
def missing_goes_left(seen: Any, missing_left: Any, left_rows: Any, right_rows: Any) -> Any:
    """Return True where missing values go left: as learned, or, if none was seen, to most rows.

    To the right of equal sides. Arguments are arrays of nodes, or scalars.
    """
    return (seen & missing_left) | ((seen < 1) & (left_rows > right_rows))


@jitable
def child_bounds(sign: Any, lower: Any, upper: Any, left_mean: Any, right_mean: Any) -> Any:
    """Bounds of both children of a node: (lower, upper) of the first, then of the second.

    Below a cut of a constrained column, each child stays on its side of the middle of their means.
    Arguments are of one node, whose `sign` is not 0.
    """
    middle = 0.5 * left_mean + 0.5 * right_mean
    if sign > 0:
        return lower, middle, middle, upper
    return middle, upper, lower, middle


@jitable
def midpoint(low: Any, high: Any) -> Any:
    """Threshold between two neighbouring values: the midpoint, or `low` if that rounds up."""
    middle = 0.5 * np.float64(low) + 0.5 * np.float64(high)
    return middle if middle < high else np.float64(low)


def midpoints(low: Floats, high: Floats) -> Floats:
    """`midpoint` of every pair of two arrays."""
    middle = 0.5 * low + 0.5 * high
    return np.where(middle < high, middle, low)


def thresholds(
    splits: Splits, low: Floats, high: Floats, by_code: Bools, highest: Floats, lowest: Floats
) -> Floats:
    """Thresholds of m cuts; those between bins are midway between the node's neighbours.

    These are `low` and `high`, or, in columns (d,) where codes decide, the maximum and minimum
    values of their bins (d, 256).
    """
    f, after = splits.feature, splits.next_bin
    coded = by_code[f]
    low = np.where(coded, highest[f, splits.cut_bin], low)
    high = np.where(coded, lowest[f, np.maximum(after, 0)], high)
    between = midpoints(low, np.where(after < 0, 0.0, high))
    between[after < 0] = np.inf
    return np.where(splits.inside, splits.threshold, between)
