"""Validate arguments of users: tables, targets, weights. Errors read as scikit-learn's."""

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.backends.devices import count_labels, label_range, on_device, to_host
from gputree.base.dtypes import Floats, Int64s, Weight
from gputree.base.sklearn import (
    assert_all_finite,
    check_classification_targets,
    check_sample_weight,
    column_or_1d,
    validate_data,
)
from gputree.columns.cells import Coded, read_array
from gputree.criteria.named import check_ends
from gputree.errors import InputError, InputTypeError
from gputree.inputs.labels import (
    CodedLabels,
    exact_labels,
    forbid_long,
    forbid_missing,
    forbid_mixed,
    missing_labels,
)
from gputree.inputs.tables import Table, is_plain, read_table

# Integer labels in a range this wide, or as wide as the table is long, are counted.
COUNTED_LABELS = 1 << 16

LETTER = np.dtype("U1")  # text of one letter, whose number orders it
LABEL_BLOCK = 1 << 20  # labels that are coded at once, at least

# Squares of targets times total weights, and these in fixed point, stay within float64.
MOST_TARGET = 1e90
LEAST_TARGET_RANGE = 1e-90
MOST_WEIGHT = 1e100
LEAST_WEIGHT = 1e-100


def check_table(estimator: Any, X: Any, *, reset: bool, order: Literal["C", "F"] = "C") -> Table:
    """Read a table as a float32 or float64 matrix: numbers, codes of categories, NaN if missing.

    `reset` learns the columns (`columns_`, `n_features_in_`, `feature_names_in_`); without it they
    are compared with those of fit. `gputree.columns` says what tables may hold. Integers beyond
    2**53 are rounded to float64.

    A table on a CUDA device stays there, as a CuPy array, if a tree is to be grown there from its
    numbers alone; else it is copied to the host.

    ValueError for wrong shapes, no rows, no columns, other columns than at fit, dates, bytes and
    complex numbers; TypeError for objects that are no cells; MemoryError where sparse input is too
    large for a dense array.
    """
    table = read_table(
        X,
        caller=type(estimator).__name__,
        columns=None if reset else estimator.columns_,
        check_features=partial(_check_features, estimator, reset=reset),
        categorical_features=getattr(estimator, "categorical_features", "auto"),
        every_nominal=getattr(estimator, "_every_nominal", False),
        ordered_categories=getattr(estimator, "ordered_categories", "auto"),
        order=order,
        device=estimator.device if reset and estimator._grows_on_device else "cpu",
    )
    if reset:
        estimator.columns_ = table.columns
        table.names = getattr(estimator, "feature_names_in_", None)
    return table


def compare_columns(estimator: Any, X: Any) -> None:
    """Raise ValueError if a table has other columns than in fit; warn of missing names.

    By their number, and by their names where both have some: as scikit-learn's `predict` does.
    """
    _check_features(estimator, X, reset=False)


def _check_features(estimator: Any, X: Any, *, reset: bool) -> None:
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def _numbers(values: NDArray, complaint: str) -> Floats:
    """Objects as float64, None as NaN; text and dates, whose unit would be lost, are refused."""
    types = set(map(type, values.flat)) if values.dtype.kind == "O" else set()
    if values.dtype.kind in "USMm" or any(issubclass(t, (str, bytes)) for t in types):
        raise InputError(f"{complaint}. Convert text and dates to numbers first.")
    try:
        return values.astype(np.float64)
    except (OverflowError, ValueError) as error:
        raise InputError(f"{complaint}: {error}") from error
    except TypeError as error:
        raise InputTypeError(f"{complaint}: {error}") from error


def check_labels(caller: Any, y: Any, n_rows: int) -> tuple[NDArray, NDArray[np.integer]]:
    """Sorted class labels, and the code of each row's label.

    Codes of integers on a device stay there, as a CuPy array, unless they are spread too widely to
    be counted. ValueError for continuous, two-dimensional or missing labels, or another length than
    X.
    """
    if isinstance(y, CodedLabels):
        _check_length(y, n_rows)
        present, code = y.present()
        return present, code.astype(code_dtype(present.size), copy=False)
    if on_device(y):
        _check_length(y, n_rows)
        low, high = label_range(y)
        if high - low < max(COUNTED_LABELS, n_rows):
            return count_labels(y, low, high)
        y = to_host(y)
    y = _check_target(caller, y, n_rows)
    letters = y.dtype.kind == "U" and y.dtype.itemsize == LETTER.itemsize
    if letters or y.dtype.kind in "iu":
        numbers = np.ascontiguousarray(y, LETTER).view(np.uint32) if letters else y
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < max(COUNTED_LABELS, n_rows):
            classes, codes = _count_labels(numbers, low, high)
            return classes.view(LETTER).astype(y.dtype) if letters else classes, codes
    if y.dtype.kind in "OU" and (text := _text_labels(y)):
        return text
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y", estimator_name=name_of(caller))
    forbid_missing(y)
    forbid_long(y)
    if y.dtype.kind == "O":
        forbid_mixed(y)
    if y.dtype.kind not in "US":  # of text, nothing is left to check
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.dtype.kind == "f":
        classes += classes.dtype.type(0)  # of two zeros the positive one
    return classes, codes.astype(code_dtype(classes.size))


def _text_labels(y: NDArray) -> tuple[NDArray, NDArray[np.integer]] | None:
    """Labels and codes where all are text, without sorting them; None for anything else."""
    if not isinstance(y[0], str):
        return None
    coded = read_array(y)
    if not isinstance(coded, Coded) or not all(isinstance(value, str) for value in coded.values):
        return None
    if count := np.count_nonzero(coded.code < 0):
        raise missing_labels(int(count))
    classes, place = np.unique(coded.values.astype(y.dtype), return_inverse=True)
    return classes, place.astype(code_dtype(classes.size))[coded.code]


def _count_labels(y: NDArray, low: int, high: int) -> tuple[NDArray, NDArray[np.integer]]:
    """Labels and codes of integers in a narrow range, without sorting them.

    Converts in blocks: a float64 copy of `y` may exceed memory if the table is in files.
    """
    wide = np.int64 if y.dtype.kind == "i" else np.uint64  # int8 cannot represent 127 - -128
    size = max(LABEL_BLOCK, high - low + 1)
    blocks = [slice(a, a + size) for a in range(0, y.size, size)]

    def shifted(block: slice) -> Int64s:
        found = y[block].astype(wide, copy=False) - wide(low)
        return found.astype(np.int64, copy=False)

    count = np.zeros(high - low + 1, np.int64)
    for block in blocks:
        count += np.bincount(shifted(block), minlength=count.size)
    present = np.flatnonzero(count)
    dtype: type[np.integer] = code_dtype(present.size)
    classes = (present.astype(wide) + wide(low)).astype(y.dtype)
    codes: NDArray[np.integer] = np.empty(y.size, dtype)
    if present.size == count.size and dtype is np.uint8:  # no gaps: right modulo 256
        np.subtract(y, y.dtype.type(low), out=codes, casting="unsafe")
        return classes, codes
    code: NDArray[np.integer] = np.empty(count.size, dtype)
    code[present] = np.arange(present.size)
    for block in blocks:
        codes[block] = code[shifted(block)]
    return classes, codes


def code_dtype(n_classes: int) -> type[np.integer]:
    """Type of the codes of `n_classes` classes."""
    return np.uint8 if n_classes <= 256 else np.int32


def check_targets(caller: Any, y: Any, n_rows: int, criterion: str) -> Floats:
    """Regression targets as float64, such as the criterion of that name takes."""
    y = read_targets(caller, y, n_rows)
    check_target_range(float(y.min()), float(y.max()), criterion)
    return y


def read_targets(caller: Any, y: Any, n_rows: int) -> Floats:
    """Convert regression targets, or some of them, to float64, whatever their range.

    ValueError for labels that are not numbers, missing or infinite targets, or another length than
    X.
    """
    y = _check_target(caller, y, n_rows)
    forbid_missing(y)
    if y.dtype.kind in "fiub":
        y = y.astype(np.float64, copy=False)
    else:
        name = name_of(caller)
        y = _numbers(
            y, f"{name} takes numeric targets (for labels use a classifier); got y of {y.dtype}"
        )
    if not (np.isfinite(y.min(initial=0.0)) and np.isfinite(y.max(initial=0.0))):
        assert_all_finite(y, input_name="y", estimator_name=name_of(caller))
    return y


def check_target_labels(
    caller: Any, columns: list[Any], n_rows: int
) -> tuple[list[NDArray[Any]], NDArray[np.integer]]:
    """Sorted labels of each target, and their codes, of shape (n_rows, n_outputs).

    Errors are those of `check_labels`.
    """
    found = [check_labels(caller, column, n_rows) for column in columns]
    return [classes for classes, _ in found], np.stack([codes for _, codes in found], axis=1)


def check_target_numbers(caller: Any, columns: list[Any], n_rows: int, criterion: str) -> Floats:
    """Targets as float64 of shape (n_rows, n_outputs); errors are those of `check_targets`."""
    found = [check_targets(caller, column, n_rows, criterion) for column in columns]
    return np.stack(found).T


def check_target_range(low: float, high: float, criterion: str) -> None:
    """Refuse targets from `low` to `high` that the criterion does not take, or float64 squared."""
    check_ends(criterion, low, high)
    if max(-low, high) > MOST_TARGET or 0.0 < high - low < LEAST_TARGET_RANGE:
        raise InputError(
            f"Input y must lie within +-{MOST_TARGET:g} and be constant or span at least "
            f"{LEAST_TARGET_RANGE:g}, for squared errors in float64; got {low:g} to {high:g}."
        )


def name_of(caller: Any) -> str:
    """Name of the caller for errors: an estimator's class, or the text itself."""
    return caller if isinstance(caller, str) else type(caller).__name__


def _check_target(caller: Any, y: Any, n_rows: int) -> NDArray:
    if y is None:
        raise InputError(
            f"This {name_of(caller)} estimator requires y to be passed, but the target y is None."
        )
    if not is_plain(y, 1):
        y = exact_labels(y)
    if is_plain(y, 1):
        _check_length(y, n_rows)
        return y
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise InputError(
            f"{name_of(caller)} takes one target column, got an array of shape "
            f"{shape}. Fit one estimator a column."
        )
    y = column_or_1d(y, warn=True)
    _check_length(y, n_rows)
    return y


def _check_length(y: Any, n_rows: int) -> None:
    if y.size != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {y.size}]"
        )


def check_weights(sample_weight: Any, X: NDArray) -> Floats | None:
    """Sample weights as float64, or None; ValueError for invalid ones, or all zero."""
    if sample_weight is None:
        return None
    return check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def check_weight_range(weight: Weight) -> None:
    """Refuse weights, sample times class weights, whose sums or units leave float64."""
    greatest = 1.0 if weight is None else float(weight.max())
    if not LEAST_WEIGHT <= greatest <= MOST_WEIGHT:
        raise InputError(
            "The largest sample weight (times class weight) must lie between "
            f"{LEAST_WEIGHT:g} and {MOST_WEIGHT:g}; got {greatest:g}."
        )
