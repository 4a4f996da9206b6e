"""Upper confidence limit of the errors of a leaf, by its training rows (Quinlan 1993, 4.2)."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gputree.base.dtypes import Floats
from gputree.compilation import inner, kernel

Quantile = Literal["exact", "release8"]

# Release 8 interpolates the normal quantile of its confidence in this table.
RELEASE8_CONFIDENCE = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
RELEASE8_DEVIATE = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)

# Errors that Release 8 adds for each correct row of a leaf with almost none.
RELEASE8_FEW_CORRECT = 0.67


class ErrorLimit(NamedTuple):
    """Parameters of the limit, for kernels."""

    confidence: float
    # normal deviate that is exceeded with this probability; below 0 nothing is added
    deviate: float
    release8: bool


def error_limit(confidence: float, quantile: Quantile) -> ErrorLimit:
    """Return the limit for a confidence, with its normal deviate."""
    if quantile == "release8":
        deviate = float(np.interp(confidence, RELEASE8_CONFIDENCE, RELEASE8_DEVIATE))
    else:
        from statistics import NormalDist  # here: importing it takes as long as all other pruners

        deviate = -NormalDist().inv_cdf(confidence)  # 1 - confidence may round to 1
    return ErrorLimit(confidence, deviate, quantile == "release8")


def add_errors(
    n: ArrayLike, errors: ArrayLike, confidence: float = 0.25, quantile: Quantile = "exact"
) -> Floats:
    """Errors to add to those observed, for an upper confidence limit.

    Parameters
    ----------
    n : array-like
        Weight of the rows in each leaf; 0 adds nothing.
    errors : array-like, broadcast against `n`
        Weight of the misclassified ones, at most `n`.
    confidence : float in (0, 1), default=0.25
    quantile : {"exact", "release8"}, default="exact"

    Returns
    -------
    float64 array
        With no error ``n * (1 - confidence ** (1 / n))``; up to one error linear between the values
        at 0 and 1; beyond, the normal approximation of the binomial with continuity correction.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. 1993. Section 4.2.
    """
    n, errors = np.broadcast_arrays(np.asarray(n, float), np.asarray(errors, float))
    added = np.empty(n.shape)
    _add_all(n.ravel(), errors.ravel(), error_limit(confidence, quantile), added.reshape(-1))
    return added


def limit_errors(class_weights: Floats, limit: ErrorLimit) -> Floats:
    """Upper limit of the errors of leaves with these class weights, of shape (n, K)."""
    limits = np.empty(len(class_weights))
    _limit_all(class_weights, limit, limits)
    return limits


@inner
def added_errors(n: float, errors: float, limit: ErrorLimit) -> float:
    """`add_errors` for one leaf."""
    if n <= 0.0 or limit.deviate < 0.0:
        return 0.0
    if errors >= 1.0:
        return _normal(n, errors, limit)
    at_zero = n * (1.0 - limit.confidence ** (1.0 / n))
    return at_zero + errors * (_normal(n, 1.0, limit) - at_zero)


@inner
def _normal(n: float, errors: float, limit: ErrorLimit) -> float:
    """The normal approximation of the limit, for one error and more."""
    corrected = errors + 0.5
    if corrected >= n:
        return RELEASE8_FEW_CORRECT * (n - errors) if limit.release8 else max(n - errors, 0.0)
    c = limit.deviate * limit.deviate
    spread = np.sqrt(c * (corrected * (1.0 - corrected / n) + c / 4.0))
    return n * (corrected + c / 2.0 + spread) / (n + c) - errors


@inner
def limited_errors(class_weights: Floats, limit: ErrorLimit) -> float:
    """Upper limit of the errors of one leaf."""
    n = most = 0.0
    for weight in class_weights:
        n += weight
        most = max(most, weight)
    return n - most + added_errors(n, n - most, limit)


@kernel
def _add_all(n: Floats, errors: Floats, limit: ErrorLimit, added: Floats) -> None:
    for i in range(n.size):
        added[i] = added_errors(n[i], errors[i], limit)


@kernel
def _limit_all(class_weights: Floats, limit: ErrorLimit, limits: Floats) -> None:
    for i in range(limits.size):
        limits[i] = limited_errors(class_weights[i], limit)
