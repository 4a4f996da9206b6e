"""Thresholds of cuts, from bins and the values next to them: the same on every device."""

from __future__ import annotations

import numpy as np

from gputree.backends.base import Bools, Floats, Splits
from gputree.backends.rules import midpoints


def thresholds(
    splits: Splits, low: Floats, high: Floats, by_code: Bools, highest: Floats, lowest: Floats
) -> Floats:
    """Thresholds of m cuts; those between bins are midway between the node's neighbours.

    These are `low` and `high`, or, in columns (d,) where codes decide, the maximum and minimum
    values of their bins (d, 256).
    """
    f, after = splits.feature, splits.next_bin
    known = by_code[f]
    low = np.where(known, highest[f, splits.cut_bin], low)
    high = np.where(known, lowest[f, np.maximum(after, 0)], high)
    between = midpoints(low, np.where(after < 0, 0.0, high))
    between[after < 0] = np.inf
    return np.where(splits.inside, splits.threshold, between)
