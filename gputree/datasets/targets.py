"""Target columns as labels or numbers, and the task that their values suggest."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gputree.columns.cells import has_text_of_time, text_of_times
from gputree.errors import InputError
from gputree.inputs.labels import CodedLabels, distinct
from gputree.tree import Task

# Number of different integers in a target that may be classes or quantities.
UNCERTAIN_CLASSES = range(7, 31)

MAX_CLASSES_INFERRED = 20  # digits and ratings are classes, counts and years are not


def infer_task(target: NDArray | CodedLabels) -> Task:
    """Infer classification or regression by the target's values.

    Strings and booleans are classes. Numbers with fractional parts are a regression target.
    Integers are classes if they are 0 and 1, or if there are at most 20 different ones and each
    occurs twice or more on average; otherwise they are a regression target.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)

    Returns
    -------
    "classification" or "regression"
    """
    target = target if isinstance(target, CodedLabels) else np.asarray(target)
    if target.dtype.kind not in "iuf":
        return "classification"
    if target.dtype.kind == "f" and not np.array_equal(target, np.trunc(target)):
        return "regression"
    values = distinct(target)
    n_distinct = values.size
    if values.tolist() == [0, 1]:
        return "classification"
    few = n_distinct <= MAX_CLASSES_INFERRED and 2 * n_distinct <= target.size
    return "classification" if few else "regression"


def uncertain_classes(target: NDArray | CodedLabels) -> int:
    """Number of different integers of a target that may be either task; 0 for any other target."""
    if target.dtype.kind not in "iuf":
        return 0
    values = distinct(target)
    whole = bool(np.array_equal(values, np.trunc(values)))
    return values.size if whole and values.size in UNCERTAIN_CLASSES else 0


def check_missing_target(missing_target: str) -> None:
    """Raise ValueError for an unknown value of the parameter."""
    if missing_target not in ("error", "drop"):
        raise InputError(
            "The 'missing_target' parameter must be 'error' or 'drop'. Got "
            f"{missing_target!r} instead."
        )


def has_target(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mark the rows that have a target."""
    present = column.is_valid()
    if pa.types.is_floating(column.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(column), False)))
    return present


def target_values(label: str, name: str, column: pa.ChunkedArray, is_part: bool = False) -> NDArray:
    """A target column, or a batch of its rows, as labels or targets; see `Table`."""
    if column.null_count:
        raise InputError(_missing_target(label, name, column.null_count, is_part))
    if pa.types.is_decimal(column.type):
        column = _plain_numbers(column)
    types = pa.types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    if has_text_of_time(column.type):
        column = text_of_times(column)
    if not number and not types.is_boolean(column.type):
        return column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(np.str_)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        missing = int(np.count_nonzero(np.isnan(values)))
        if missing:
            raise InputError(_missing_target(label, name, missing, is_part))
        raise InputError(f"The target column {name!r} of {label} holds infinite values.")
    return values


def _plain_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as integers, as text if one exceeds 64 bits, as float64 if one has a fraction."""
    whole = column.type.scale <= 0
    for kind in (pa.int64(), pa.uint64()) if whole else ():
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column.cast(pa.string() if whole else pa.float64())


def declared_classes(column: pa.ChunkedArray) -> NDArray | None:
    """The values that the type of a column of text declares."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or not pa.types.is_string(kind.value_type):
        return None
    words = column.unify_dictionaries().combine_chunks().dictionary
    return words.to_numpy(zero_copy_only=False).astype(np.str_)


def _missing_target(label: str, name: str, count: int, is_part: bool) -> str:
    rows, them = ("row", "it") if count == 1 and not is_part else ("rows", "them")
    number = f"some {rows}" if is_part else f"{count:,} {rows}"  # later batches are not read
    return (
        f"The target column {name!r} of {label} has no value in {number}. Remove {them} "
        "first, or pass missing_target='drop'."
    )
