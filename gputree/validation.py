"""What a user may pass: tables, targets, weights. Errors read as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, validate_data

FLOAT32_INTEGER = 1 << 24  # integers up to this are exact in float32

# Integer labels in a range this wide, or as wide as the table is long, are counted.
COUNTED_LABELS = 1 << 16


def check_table(estimator: Any, X: Any, *, reset: bool) -> NDArray:
    """The table as a C-contiguous float32 or float64 matrix, NaN where missing.

    float32 is chosen only where it holds every value exactly: float64 columns and wide
    integers keep their precision.

    Raises
    ------
    ValueError
        Wrong shape, no rows, no columns, other columns than at fit, strings, complex
        numbers.
    TypeError
        Sparse input.
    """
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    return np.ascontiguousarray(_to_float(estimator, X))


def _to_float(estimator: Any, X: NDArray) -> NDArray:
    """`X` as float32 where that is exact, else as float64."""
    kind, size = X.dtype.kind, X.dtype.itemsize
    if kind == "f":
        native = X.dtype.newbyteorder("=")
        return X.astype(np.float32 if size <= 4 else np.float64, copy=X.dtype != native or size < 4)
    if kind in "iub":
        exact = kind == "b" or size <= 2 or _greatest(X) <= FLOAT32_INTEGER
        return X.astype(np.float32 if exact else np.float64)
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{type(estimator).__name__} takes numeric columns; got a table of {X.dtype}: {error}"
        ) from error


def _greatest(X: NDArray) -> int:
    return max(abs(int(X.max())), abs(int(X.min())))


def check_labels(estimator: Any, y: Any, n_rows: int) -> tuple[NDArray, NDArray[np.integer]]:
    """Sorted class labels, and the code of each row's label.

    Raises
    ------
    ValueError
        Continuous or two-dimensional labels, missing labels, another length than X.
    """
    y = _check_target(estimator, y, n_rows)
    if y.dtype.kind in "iu":
        low, high = int(y.min()), int(y.max())
        if high - low < max(COUNTED_LABELS, n_rows):
            return _count_labels(y, low, high)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(_code_dtype(classes.size))


def _count_labels(y: NDArray, low: int, high: int) -> tuple[NDArray, NDArray[np.integer]]:
    """Labels and codes of integers in a narrow range, without sorting them."""
    shifted = (y - y.dtype.type(low)).astype(np.int64, copy=False)
    present = np.flatnonzero(np.bincount(shifted, minlength=high - low + 1))
    code = np.empty(high - low + 1, _code_dtype(present.size))
    code[present] = np.arange(present.size)
    return (present + low).astype(y.dtype), code[shifted]


def _code_dtype(n_classes: int) -> type[np.integer]:
    return np.uint8 if n_classes <= 256 else np.int32


def check_targets(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Regression targets as float64.

    Raises
    ------
    ValueError
        Labels that are not numbers, missing or infinite targets, another length than X.
    """
    y = _check_target(estimator, y, n_rows)
    if y.dtype.kind not in "fiub":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{type(estimator).__name__} takes numeric targets, got y of {y.dtype}: {error}. "
                "For labels use a classifier."
            ) from error
    y = y.astype(np.float64, copy=False)
    if not np.isfinite(y).all():
        what = "NaN" if np.isnan(y).any() else "infinity"
        raise ValueError(f"Input y contains {what}.")
    if np.ptp(y) > np.finfo(np.float64).max / 4 or np.abs(y).max() > 1e150:
        raise ValueError(
            "Input y is too wide for squared errors in float64: its values must lie within "
            f"+-1e150, got {y.min():g} to {y.max():g}."
        )
    return y


def _check_target(estimator: Any, y: Any, n_rows: int) -> NDArray:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target "
            "y is None."
        )
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise ValueError(
            f"{type(estimator).__name__} takes one target column, got an array of shape "
            f"{np.shape(y)}. Fit one estimator a column."
        )
    y = column_or_1d(y, warn=True)
    if y.size != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {y.size}]"
        )
    if y.dtype.kind == "O" and any(v is None or v != v for v in y):
        raise ValueError("Input y contains missing values.")
    return y


def check_weights(sample_weight: Any, X: NDArray) -> NDArray[np.float64] | None:
    """Sample weights as float64, or None.

    Raises
    ------
    ValueError
        Negative, missing or infinite weights, all zero, or another length than X.
    """
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_consistent_length(X, weight)
    if not weight.any():
        raise ValueError("Sample weights must not all be zero.")
    return weight
