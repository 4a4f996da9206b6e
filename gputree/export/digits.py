"""Numbers as text: few digits, but as many as distinguish thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import THRESHOLD_SPLIT, Floats
from gputree.tree import Tree

_FIXED_POINT_BELOW = 1e16  # from here on a float64 is a multiple of 2
_MOST_DECIMALS = 16  # then numbers are written exactly


def format_number(value: float, decimals: int | None) -> str:
    """A number without superfluous digits.

    `decimals` are digits after the point, or significant digits of a number below 1; trailing zeros
    are removed. None writes the smallest number of digits that read back as the same float64.
    """
    value = float(value)
    if decimals is None:
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    size = abs(value)
    if size < 1 or size >= _FIXED_POINT_BELOW:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def more_digits(tree: Tree, decimals: int) -> dict[tuple[int, float], int | None]:
    """Thresholds that would read as a neighbour of theirs, and the decimals that prevent it.

    Two thresholds of one feature that are rounded to the same text would contradict each other on a
    path: ``x > 0.5``, and below it ``x <= 0.5``. By feature and threshold; None where only all
    digits distinguish.
    """
    nodes = np.flatnonzero((tree.split_kind == THRESHOLD_SPLIT) & np.isfinite(tree.threshold))
    return apart(tree.feature[nodes], tree.threshold[nodes], decimals)


def apart(
    feature: NDArray[Any], threshold: Floats, decimals: int
) -> dict[tuple[int, float], int | None]:
    """`more_digits` of thresholds and their features, in any order."""
    order = np.lexsort((threshold, feature))
    value, feature = threshold[order], feature[order]
    near = np.diff(value) <= 1.5 * 10.0**-decimals  # rounding moves each by half a digit at most
    near |= np.abs(value[1:]) >= _FIXED_POINT_BELOW
    near &= (np.diff(feature) == 0) & (np.diff(value) > 0)
    found: dict[tuple[int, float], int | None] = {}
    for i in np.flatnonzero(near):
        low, high = float(value[i]), float(value[i + 1])
        enough = _apart(low, high, decimals)
        if enough != decimals:
            for end in (low, high):
                key = int(feature[i]), end
                so_far = found.get(key, decimals)
                found[key] = None if so_far is None or enough is None else max(so_far, enough)
    return found


def _apart(low: float, high: float, decimals: int) -> int | None:
    """The minimum decimals, at least those given, that distinguish two numbers.

    From which on: either may be shown with more. 5.4999 and 5.5001 are 5 and 6, but both 5.5.
    """
    for alike in range(_MOST_DECIMALS, decimals - 1, -1):
        if format_number(low, alike) == format_number(high, alike):
            return None if alike == _MOST_DECIMALS else alike + 1
    return decimals
