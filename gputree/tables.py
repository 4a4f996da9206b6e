"""Read tables of any type as matrices, at once or in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._sklearn import check_array, feature_names
from gputree.backends.arrays import device_matrix, on_device, to_host
from gputree.backends.devices import resolve_device
from gputree.columns import Columns, fit_encode
from gputree.columns.categories import EXACT_IN_FLOAT64
from gputree.columns.cells import as_table, is_frame
from gputree.columns.options import declared_nominal
from gputree.compilation.arrays import writable
from gputree.dtypes import MOST_ROWS, Bools
from gputree.errors import InputError


class ReadTable(NamedTuple):
    """A table as a matrix: numbers, codes of categories, NaN where missing; and its columns."""

    values: Any
    columns: Columns


def read_table(
    X: Any,
    *,
    caller: str,
    check_features: Callable[[Any], object],
    columns: Columns | None = None,
    categorical_features: Any = "auto",
    every_nominal: bool = False,
    ordered_categories: Any = "auto",
    order: Literal["C", "F"] = "C",
    device: str = "cpu",
) -> ReadTable:
    """Read a table as `gputree.validation.check_table` documents it; errors name `caller`.

    `check_features` takes the table, of two dimensions, to learn or compare how many columns it has
    and what they are called. `columns` are what these are known to hold; None learns it, by the
    parameters of `gputree.columns.fit_encode`. Numbers that are learned may stay on a CUDA
    `device`, if that is what it amounts to.
    """
    if on_device(X):
        numeric = isinstance(categorical_features, str) and categorical_features == "auto"
        numeric = (numeric or categorical_features is None) and columns is None
        numeric = numeric and not isinstance(ordered_categories, Mapping)
        stays = numeric and resolve_device(device) == "cuda"
        matrix = device_matrix(X) if stays else None
        if matrix is not None:
            _check_shape(caller, X)
            _limit_rows(caller, X)
            check_features(X)
            return ReadTable(matrix, Columns.numeric(matrix.shape[1]))
        X = to_host(X)
    X = _two_dimensional(caller, as_table(X))
    check_features(X)
    _limit_rows(caller, X)
    if columns is not None:
        return ReadTable(writable(columns.encode(X, order)), columns)
    columns, values = fit_encode(X, categorical_features, every_nominal, order, ordered_categories)
    return ReadTable(writable(values), columns)


class TableReader:
    """Reads a table in parts, as an estimator reads one; errors name `caller`."""

    def __init__(
        self, caller: str, categorical_features: Any = "auto", ordered_categories: Any = "auto"
    ) -> None:
        self.caller, self.categorical_features = caller, categorical_features
        self.ordered_categories = ordered_categories
        self.columns_ = Columns.numeric(0)
        self._declared: Bools | None = None  # of all parts that were learned
        self._names: NDArray | None = None

    def read(self, X: Any, device: str = "cpu", order: Literal["C", "F"] = "C") -> ReadTable:
        """A part, whose columns are learned."""
        read = read_table(
            X,
            caller=self.caller,
            check_features=self._learn_names,
            categorical_features=self.categorical_features,
            ordered_categories=self.ordered_categories,
            order=order,
            device=device,
        )
        self.columns_ = read.columns
        return read

    def declared(self) -> Bools:
        """Mask of the columns that are listed, or are categorical by the type of any part."""
        assert self._declared is not None
        return self._declared

    def know(self, columns: Columns, names: NDArray | None) -> None:
        """Take what is known of the columns."""
        self.columns_, self._names = columns, names

    def values(self, X: Any, *, learn: bool) -> NDArray:
        """The matrix of a part on the host; its columns are learned, or those known."""
        if learn:
            return to_host(self.read(X).values)
        read = read_table(
            X, caller=self.caller, check_features=self._compare, columns=self.columns_
        )
        return read.values

    def names(self) -> NDArray | None:
        """Names of the columns of the part learned last."""
        return self._names

    def _learn_names(self, X: Any) -> None:
        self._names = feature_names(X)
        declared = declared_nominal(X, self.categorical_features, X.shape[1])
        before = self._declared
        if before is not None and before.size == declared.size:
            declared = declared | before
        self._declared = declared

    def _compare(self, X: Any) -> None:
        """Raise ValueError where a part has other columns than those known."""
        known = self.columns_.nominal.size
        match_columns(self.caller, (X.shape[1], feature_names(X)), (known, self._names))


def match_columns(
    caller: str, found: tuple[int, NDArray | None], known: tuple[int, NDArray | None]
) -> None:
    """Raise ValueError where a table has other columns than the one before it.

    Of both their number and their names, or None: names are compared where both have some.
    """
    (count, names), (known_count, known_names) = found, known
    if count != known_count:
        raise InputError(
            f"X has {count} features, but {caller} is expecting {known_count} features as input."
        )
    if names is None or known_names is None or names.tolist() == known_names.tolist():
        return
    order = ""
    if sorted(names) == sorted(known_names):
        order = " Feature names must be in the same order as they were in fit."
    raise InputError(
        f"The feature names should match those that were passed during fit.{order} {caller} was "
        f"fitted on {known_names.tolist()}, got {names.tolist()}."
    )


def _check_shape(caller: str, X: Any) -> None:
    """Refuse tables without rows or columns, by an array of that shape that takes no memory."""
    check_array(
        np.broadcast_to(np.float32(0), X.shape),
        estimator=caller,
        input_name="X",
        ensure_all_finite=False,  # or its many zeros are summed up
    )


def _limit_rows(caller: str, X: Any) -> None:
    if X.shape[0] > MOST_ROWS:
        raise InputError(f"{caller} takes at most {MOST_ROWS:,} rows, got {X.shape[0]:,}.")


def _two_dimensional(caller: str, X: Any) -> Any:
    """`X` as a data frame or as an array of two dimensions, with rows and columns."""
    if is_plain(X, 2) and X.size:  # check_array would find nothing, which takes small fits long
        return X
    if is_frame(X):
        _check_shape(caller, X)
        return X
    if isinstance(X, (list, tuple)) and _is_changed(np.asarray(X)):
        X = np.array(X, dtype=object)
    return check_array(X, estimator=caller, input_name="X", dtype=None, ensure_all_finite=False)


def _is_changed(array: NDArray) -> bool:
    """Return whether NumPy may have changed a list's numbers, to text or by rounding large ones."""
    if array.dtype.kind == "f":
        return bool((np.abs(array) >= EXACT_IN_FLOAT64).any())
    return array.dtype.kind in "US"


def is_plain(values: Any, ndim: int) -> bool:
    """Return whether values are an array of numbers of NumPy's class, which no check changes."""
    return type(values) is np.ndarray and values.ndim == ndim and values.dtype.kind in "fiub"
