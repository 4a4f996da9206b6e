"""Several targets: their columns, labels as codes, and the results that are lists of them."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import UNKNOWN_CLASS, Floats
from gputree.columns.cells import is_frame
from gputree.errors import InputError
from gputree.inputs.labels import exact_labels

# Labels of a target, or of each of several.
Classes = NDArray[Any] | list[NDArray[Any]]


def target_columns(y: Any) -> list[Any] | None:
    """Columns of `y` where it has several, each of its type; None where it has one."""
    if isinstance(y, list | tuple):
        return _columns_of_rows(y)
    shape: Any = getattr(y, "shape", ())
    if len(shape) != 2 or shape[1] < 2:
        return None
    if hasattr(y, "toarray"):
        raise InputError(
            "Sparse data was passed for y, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    if not is_frame(y):
        return list(np.ascontiguousarray(np.asarray(y).T))
    return [column.to_native() for column in _frame_of(y).iter_columns()]


def target_names(y: Any) -> NDArray[Any] | None:
    """Names of several targets, where `y` is a frame whose columns all have strings as names."""
    if getattr(y, "ndim", 2) != 2 or not is_frame(y) or y.shape[1] < 2:
        return None
    names = list(_frame_of(y).columns)
    return np.array(names, object) if all(isinstance(name, str) for name in names) else None


def _frame_of(y: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(y, eager_only=True)
    except ValueError as error:  # two columns of a name
        raise InputError(f"y: {' '.join(str(error).split())}.") from error


def _columns_of_rows(y: Sequence[Any]) -> list[Any] | None:
    """Columns of a list of rows."""
    if len(y) == 0 or isinstance(y[0], str) or np.ndim(y[0]) != 1:
        return None
    widths = {len(row) for row in y}
    if len(widths) > 1:
        raise InputError(
            "You appear to be using a legacy multi-label data representation. Sequence of "
            "sequences are no longer supported; use a binary array instead - the "
            "MultiLabelBinarizer transformer can convert to this format."
        )
    return None if widths == {1} else list(map(list, zip(*y, strict=True)))


def encode_labels(classes: Classes, y: Any) -> NDArray[np.intp]:
    """Codes of labels among classes, -1 for others; of shape (n_rows,) or (n_rows, n_outputs)."""
    from gputree.base.sklearn import column_or_1d

    if isinstance(classes, list):
        columns = known_columns(y, len(classes))
        return np.stack(list(map(encode_labels, classes, columns)), axis=1)
    labels = column_or_1d(exact_labels(y), warn=True)
    code = np.searchsorted(classes, labels).clip(max=classes.size - 1)
    return np.where(classes[code] == labels, code, UNKNOWN_CLASS)


def encode_numbers(y: Any, n_outputs: int) -> Floats:
    """Targets as float64, of shape (n_rows,), or (n_rows, n_outputs) of several."""
    from gputree.base.sklearn import column_or_1d

    if n_outputs > 1:
        return np.stack([encode_numbers(part, 1) for part in known_columns(y, n_outputs)], axis=1)
    found: Floats = column_or_1d(y, dtype=np.float64, warn=True)
    return found


def known_columns(y: Any, n_outputs: int) -> list[Any]:
    """Columns of `y`, as many as in fit."""
    columns = target_columns(y) or [y]
    if len(columns) != n_outputs:
        raise InputError(f"y must have {n_outputs} targets, as in fit; got {len(columns)}.")
    return columns


def forbid_targets(n_outputs: int, user: str, advice: str) -> None:
    """Raise ValueError if a model has several targets, and `user`, a function, takes one.

    `advice` ends the message, as a sentence.
    """
    if n_outputs > 1:
        raise InputError(f"{user} takes one target, and this model has {n_outputs}. {advice}")


def ends_of(classes: Classes) -> tuple[int, ...]:
    """Columns of joined class weights before each target, and all of them."""
    several = classes if isinstance(classes, list) else [classes]
    return tuple(np.cumsum([0, *(labels.size for labels in several)]).tolist())


def by_target(joined: Floats, ends: Sequence[int]) -> list[Floats]:
    """The columns of each target, as contiguous arrays of shape (n, K)."""
    return [np.ascontiguousarray(joined[:, begin:end]) for begin, end in pairwise(ends)]


def padded(joined: Floats, ends: Sequence[int]) -> Floats:
    """Stack the columns of each target, as (n, K, n_outputs); zeros follow those of fewer."""
    found = np.zeros((len(joined), max(np.diff(ends)), len(ends) - 1))
    for j, part in enumerate(by_target(joined, ends)):
        found[:, : part.shape[1], j] = part
    return found


def most_probable(joined: Floats, ends: Sequence[int]) -> NDArray[np.intp]:
    """Code of the highest value of each target, the first of equals; shape (n, n_outputs)."""
    return np.stack([joined[:, a:b].argmax(axis=1) for a, b in pairwise(ends)], axis=1)


def labels_of_codes(classes: Classes, codes: NDArray[Any]) -> NDArray[Any]:
    """Labels of codes (n,), or (n, n_outputs), as `join_labels` joins them."""
    if not isinstance(classes, list):
        return classes[codes]
    return join_labels([labels[codes[:, j]] for j, labels in enumerate(classes)])


def join_labels(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack columns as an array; of objects if they mix text, booleans and numbers."""
    kinds = {"n" if column.dtype.kind in "iuf" else column.dtype.kind for column in columns}
    if len(kinds) > 1:  # numbers and booleans would be written as text, booleans as 0 and 1
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)


def columns_of(y: Any) -> list[Any]:
    """The columns that `join_labels` has joined; one target as it is."""
    if y.ndim == 1:
        return [y]
    plain = y.dtype.kind != "O"
    return [column if plain else np.array(column.tolist()) for column in np.asarray(y).T]


def listed(classes: Classes) -> list[Any]:
    """Labels as a list of Python's values; of several targets, a list of lists."""
    each: Callable[[NDArray[Any]], list[Any]] = np.ndarray.tolist
    return list(map(each, classes)) if isinstance(classes, list) else each(classes)
