"""A warning if a few extreme targets or weights make fixed point too coarse for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights
from gputree.base.warnings import warn

# Number of rows sampled at even distances: enough to estimate 5 % quantiles.
SAMPLE_ROWS = 1 << 14

# Fraction of the rows on either side that may be extreme.
EXTREME_SHARE = 0.05

# The middle 90 % span fewer steps than this where targets are coarse. Normal targets span 3.3
# standard deviations; at 8 steps to one of these, rounding adds 1 part in 800 to the variance.
FEWEST_STEPS = 16.0

# A weight that is off by more than this fraction of itself is coarse.
MOST_WEIGHT_ERROR = 1.0 / FEWEST_STEPS / 2.0


def warn_if_coarse(
    sample_weight: NDArray[np.float64] | None,
    weights: Weights,
    y: NDArray[np.float64] | None = None,
    targets: Targets | None = None,
    rows: NDArray[np.int64] | None = None,
    subject: str = "Targets",
) -> None:
    """Warn where extreme rows make steps so wide that ordinary ones cannot be distinguished.

    Parameters
    ----------
    sample_weight : array of shape (n,), or None
    weights : Weights
        The same in fixed point.
    y : float64 array of shape (n,), or None
        Regression targets.
    targets : Targets or None
        The same in fixed point.
    rows : int array, or None
        Rows with weight; None for all.
    subject : str
        The first word or words of the message on targets.

    Warns
    -----
    UserWarning
        What is lost, what range would not lose it, and what to do.
    """
    if rows is not None:
        sample_weight = None if sample_weight is None else sample_weight[rows]
        if weights.weight is not None:
            weights = weights._replace(weight=weights.weight[rows])
        if y is not None and targets is not None:
            y, targets = y[rows], targets._replace(target=targets.target[rows])
    if sample_weight is not None and weights.weight is not None:
        _look_at_weights(sample_weight, weights)
    if y is not None and targets is not None:
        _look_at_targets(y, weights, targets, subject)


def _look_at_weights(sample_weight: NDArray[np.float64], weights: Weights) -> None:
    assert weights.weight is not None
    rows = _sample(sample_weight.size)
    given = sample_weight[rows]
    unit = weights.unit * weights.scale
    error = np.abs(weights.weight[rows] * unit / given - 1.0)
    if np.median(error) <= MOST_WEIGHT_ERROR:
        return
    warn(
        f"Sample weights reach up to {sample_weight.max():.3g} and are rounded to multiples of "
        f"{unit:.2g}, for exact sums; most of them, {np.median(given):.3g} in the median, change. "
        "Clip the largest weights, or leave their rows out: up to a maximum of "
        f"{sample_weight.max() * np.median(given) / FEWEST_STEPS / unit:.2g} the others are exact.",
    )


def _look_at_targets(
    y: NDArray[np.float64], weights: Weights, targets: Targets, subject: str
) -> None:
    rows = _sample(y.size)
    given, fixed = y[rows], targets.target[rows] * targets.unit
    weight = None if weights.weight is None else weights.weight[rows]
    if weight is not None:
        fixed = fixed / weight
    extreme = max(int(EXTREME_SHARE * rows.size), 1)
    if rows.size <= 2 * extreme + 1:
        return
    ordered = np.partition(given, (extreme, rows.size - 1 - extreme))
    low, high = float(ordered[extreme]), float(ordered[-1 - extreme])
    noise = 8.0 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    # numbers are off by a quarter of a step in the mean, unless steps suit them
    error = float(np.average(np.abs(targets.centre + fixed - given), weights=weight))
    if high - low <= noise or high - low >= FEWEST_STEPS * 4.0 * error:
        return
    step = targets.unit
    if weight is not None and targets.rounded:
        step /= float(np.median(weight))
    lowest, highest = float(y.min()), float(y.max())
    kept = (highest - lowest) * (high - low) / FEWEST_STEPS / step / 4.0  # steps double
    warn(
        f"{subject} range from {lowest:.3g} to {highest:.3g} and are rounded to multiples of about "
        f"{step:.2g}, for exact sums, but most of them are between {low:.3g} and {high:.3g}, so "
        "that smaller differences are lost. Clip the extreme targets, leave their rows out, or "
        "transform all targets, by a logarithm for instance: in a range of "
        f"{kept:.2g} the others are distinguished.",
    )


def _sample(n: int) -> NDArray[np.int64]:
    """Rows at even distances."""
    return np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(np.int64)
