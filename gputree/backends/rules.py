"""Rules of a split that are the same on every device, for arrays and for CPU kernels.

Thresholds of cuts, from bins and the values next to them: the same on every device.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Floats, Splits
from gputree.compilation import jitable


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


def midpoints(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
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
