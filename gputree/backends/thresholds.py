"""Thresholds of cuts, from bins and the values beside them: the same on every device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Splits
from gputree.backends.rules import midpoints


def thresholds(
    splits: Splits,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    by_code: NDArray[np.bool_],
    greatest: NDArray[np.float64],
    least: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Thresholds of m cuts; those between bins lie midway between the node's neighbours.

    Parameters
    ----------
    splits : Splits
        All with a feature.
    low, high : float64 arrays of shape (m,)
        Greatest value before and least after a cut between bins, where codes do not decide.
    by_code : bool array of shape (d,)
        Columns where codes decide.
    greatest, least : float64 arrays of shape (d, 256)
        Greatest and least value of their bins.
    """
    f, after = splits.feature, splits.next_bin
    known = by_code[f]
    low = np.where(known, greatest[f, splits.cut_bin], low)
    high = np.where(known, least[f, np.maximum(after, 0)], high)
    between = midpoints(low, np.where(after < 0, 0.0, high))
    between[after < 0] = np.inf
    return np.where(splits.inside, splits.threshold, between)
