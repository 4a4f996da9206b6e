"""Tables as matrices of numbers and codes: read from any type, with all rows or some."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends import new_table
from gputree.backends.base import DeviceTable, Sharding
from gputree.backends.devices import (
    CodedColumns,
    code_columns,
    device_matrix,
    missing_columns,
    on_device,
    on_named,
    other_devices,
    resolve_device,
    take_rows,
    to_host,
    within_memory,
)
from gputree.backends.lists import ColumnCodes
from gputree.base.dtypes import MOST_ROWS, Bools, Int64s, writable
from gputree.base.sklearn import check_array, feature_names
from gputree.columns import Columns, fit_encode
from gputree.columns.categories import EXACT_IN_FLOAT64, count_codes
from gputree.columns.cells import as_table, is_frame
from gputree.columns.options import declared_nominal
from gputree.errors import InputError
from gputree.prediction.sparse import SparseRows, is_sparse

# Bytes of values that are copied at once where some rows of a table are read.
BLOCK_BYTES = 1 << 26

T = TypeVar("T")


class Table:
    """A table of n rows and d columns, or some of its rows, to fit on or to predict.

    Numbers, codes of categories, NaN where missing. It is inspected and coded once on a device for
    all that is grown on any of its rows.

    Parameters
    ----------
    source : float32 or float64 array of shape (n, d), or SparseRows
        All rows, NumPy's or CuPy's; sparse ones become dense where growth reads all values.
    columns : Columns
    names : array of str of shape (d,), default=None
    device : "cpu", "cuda", one by its number, or None, default=None
        The only device that it is for; None for any.
    max_bins : int, default=None
        The only number of bins that it is coded into; None for any.
    sharding : Sharding, default=None
        Shards that the host works on; None for all rows at once.

    Attributes
    ----------
    rows : int array, or None
        Distinct rows that it has, in its order; None for all in order.
    mixed : collection of int
        Columns of numbers as text, which a warning has named.
    stays : bool
        The user has named `device`; False where "auto" chose it.
    """

    rows: Int64s | None = None
    mixed: Collection[int] = ()
    stays: bool = True

    def __init__(
        self,
        source: Any,
        columns: Columns,
        names: NDArray | None = None,
        device: str | None = None,
        max_bins: int | None = None,
        sharding: Sharding | None = None,
    ) -> None:
        self.source = source
        self.columns = columns
        self.names = names
        self.device = device
        self.max_bins = max_bins
        self.sharding = sharding
        self._on_devices: dict[str, DeviceTable] = {}
        self._lists: CodedColumns | None = None
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "stored": to_host(self.source)}
        del state["_lock"], state["source"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        source = state.pop("stored")  # the name in pickles of older builds
        self.source = writable(source) if isinstance(source, np.ndarray) else source
        vars(self).update(state, _lock=Lock())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.source.shape
        return (n if self.rows is None else self.rows.size), d

    @property
    def stored(self) -> Any:
        """Matrix of all rows, NumPy's or CuPy's."""
        return self.source.dense if isinstance(self.source, SparseRows) else self.source

    @property
    def given(self) -> Any:
        """The rows as a matrix, or as `SparseRows`; a copy unless they are all."""
        return self.source if self.rows is None else take_rows(self.source, self.rows)

    @property
    def values(self) -> Any:
        """The rows as a matrix; a copy unless they are all."""
        rows = self.given
        return rows.dense if isinstance(rows, SparseRows) else rows

    def blocks(self) -> Iterator[NDArray | SparseRows]:
        """Yield the rows in blocks, at least one block, on the host."""
        if self.rows is None or isinstance(self.source, SparseRows):
            yield to_host(self.given)
            return
        height = max(BLOCK_BYTES // (self.shape[1] * self.stored.dtype.itemsize), 1)
        for begin in range(0, max(self.rows.size, 1), height):
            yield to_host(take_rows(self.stored, self.rows[begin : begin + height]))

    def column(self, f: int) -> NDArray:
        """The values of column f, on the host."""
        column: NDArray = to_host(self.stored[:, f])
        return column if self.rows is None else column[self.rows]

    def count_categories(self, f: int) -> Int64s:
        """Rows of each category of column f."""
        return count_codes(self.column(f), int(self.columns.n_categories[f]))

    def take(self, places: Int64s) -> Table:
        """Select rows by their places; those taken repeatedly are copied."""
        rows = places if self.rows is None else self.rows[places]
        is_taken = np.zeros(len(self.source), np.bool_)
        is_taken[rows] = True
        if np.count_nonzero(is_taken) < rows.size:
            return self.copy_rows(rows)
        return self.with_rows(rows)

    def with_rows(self, rows: Int64s) -> Table:
        """Return some of the stored rows as a table that shares the codes of all."""
        table = object.__new__(type(self))
        vars(table).update(vars(self), rows=rows)
        return table

    def compact(self) -> Table:
        """Return the same rows as all of a table."""
        return self if self.rows is None else self.copy_rows(self.rows)

    def copy_rows(self, rows: Int64s) -> Table:
        """Copy stored rows, in their order, to a separate table."""
        values = take_rows(self.source, rows)
        return Table(values, self.columns, self.names, self.device, self.max_bins)

    def keep_lists(self, n_threads: int) -> None:
        """Code the columns for all trees that are grown from attribute lists on all rows."""
        self._lists = self.lists(n_threads)

    def lists(self, n_threads: int) -> CodedColumns:
        """Code all rows as `gputree.backends.devices.code_columns` does, for growth to use up.

        Raises
        ------
        ValueError
            If there is an infinite value.
        """
        if self._lists is None:
            return code_columns(to_host(self.stored), self.columns.nominal, n_threads)
        codes, distinct = self._lists
        return ColumnCodes(codes.order.copy(), codes.code.copy()), distinct

    def on(self, device: str, n_threads: int) -> DeviceTable:
        """Return all stored rows on "cpu", "cuda" or one by its number, as "cuda:1", inspected.

        Raises
        ------
        ValueError
            If there is an infinite value.
        """
        with self._lock:
            if device not in self._on_devices:
                if isinstance(self.source, SparseRows) and device == "cpu":
                    values: Any = self.source
                elif isinstance(self.stored, np.ndarray):
                    values = np.ascontiguousarray(self.stored)
                elif device == "cpu":
                    values = to_host(self.stored)
                else:
                    values = on_named(self.stored, device)
                missing = missing_columns(values, n_threads)
                given = values, missing, self.columns.grown_categories, self.sharding
                self._on_devices[device] = new_table(device, *given)
            return self._on_devices[device]

    def within_memory(self, device: str, chosen: str, grow: Callable[[str], T]) -> T:
        """Call `grow` with the device that was `chosen` for the parameter `device`, or the CPU.

        As `gputree.backends.devices.within_memory`; the CPU takes the place of a device for this
        table unless the user has named the one that it is for.
        """
        return within_memory(self._wanted(device), chosen, grow, self._leave)

    def other_devices(self, device: str, chosen: str, n_threads: int, verbose: bool) -> list[str]:
        """Devices that grow trees in addition to the one `chosen` for the parameter `device`.

        None where that is not any CUDA device, or the table is in parts.
        """
        if chosen != "cuda" or self.sharding is not None:
            return []
        used: Any = self.on(chosen, n_threads)
        return other_devices(self._wanted(device), int(used.device), verbose)

    def _wanted(self, device: str) -> str:
        """The parameter `device`, but for a table that the user has made for a device."""
        return "cuda" if self.device and self.stays else device

    def _leave(self, device: str) -> None:
        """Release what lies on a device; the CPU takes its place."""
        with self._lock:
            self._on_devices.pop(device, None)
        if self.device == device:
            self.device = "cpu"


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
) -> Table:
    """Read a table as `gputree.inputs.validation.check_table` documents it; errors name `caller`.

    `check_features` takes the table, of two dimensions, to learn or compare the number and names of
    its columns. `columns` are the types and categories learned before; None learns them, by the
    parameters of `gputree.columns.fit_encode`. A table of numbers whose columns are learned may
    stay on a CUDA device, if `device` resolves to one.
    """
    numeric = isinstance(categorical_features, str) and categorical_features == "auto"
    numeric = (numeric or categorical_features is None) and columns is None
    numeric = numeric and not isinstance(ordered_categories, Mapping)
    numbers = getattr(X, "dtype", None) != np.bool_ or categorical_features is None
    if numeric and numbers and not every_nominal and order == "C" and is_sparse(X):
        check_features(X)
        _limit_rows(caller, X)
        return Table(SparseRows.of(X), Columns.numeric(X.shape[1]))
    if on_device(X):
        stays = numeric and (chosen := resolve_device(device)) != "cpu"
        matrix = device_matrix(X) if stays else None
        if matrix is not None:
            _check_shape(caller, X)
            _limit_rows(caller, X)
            check_features(X)
            return Table(on_named(matrix, chosen), Columns.numeric(matrix.shape[1]))
        X = to_host(X)
    X = _two_dimensional(caller, as_table(X))
    check_features(X)
    _limit_rows(caller, X)
    if columns is not None:
        return Table(writable(columns.encode(X, order)), columns)
    columns, values = fit_encode(X, categorical_features, every_nominal, order, ordered_categories)
    return Table(writable(values), columns)


class TableReader:
    """Reads a table in parts, as an estimator reads one; errors name `caller`."""

    def __init__(
        self, caller: str, categorical_features: Any = "auto", ordered_categories: Any = "auto"
    ) -> None:
        self.caller, self.categorical_features = caller, categorical_features
        self.ordered_categories = ordered_categories
        self.columns_ = Columns.numeric(0)
        self._names: NDArray | None = None
        self._declared: Bools | None = None  # of all parts that were learned

    def read(self, X: Any, device: str = "cpu", order: Literal["C", "F"] = "C") -> Table:
        """A part, whose columns are learned."""
        table = read_table(
            X,
            caller=self.caller,
            check_features=self._learn_names,
            categorical_features=self.categorical_features,
            ordered_categories=self.ordered_categories,
            order=order,
            device=device,
        )
        self.columns_, table.names = table.columns, self._names
        return table

    def declared(self) -> Bools:
        """Mask of the columns that are listed, or are categorical by the type of any part."""
        assert self._declared is not None
        return self._declared

    def know(self, columns: Columns, names: NDArray | None) -> None:
        self.columns_, self._names = columns, names

    def values(self, X: Any, *, learn: bool) -> NDArray:
        """The matrix of a part on the host; its columns are learned, or those known."""
        if learn:
            return to_host(self.read(X).stored)
        return read_table(
            X, caller=self.caller, check_features=self._compare, columns=self.columns_
        ).stored

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
        fitted = self.columns_.nominal.size
        match_columns(self.caller, (X.shape[1], feature_names(X)), (fitted, self._names))


def match_columns(
    caller: str, found: tuple[int, NDArray | None], fitted: tuple[int, NDArray | None]
) -> None:
    """Raise ValueError where a table has other columns than the one before it.

    `found` and `fitted` are the number of columns and their names, or None: names are compared
    where both have some.
    """
    (count, names), (fitted_count, fitted_names) = found, fitted
    if count != fitted_count:
        raise InputError(
            f"X has {count} features, but {caller} is expecting {fitted_count} features as input."
        )
    if names is None or fitted_names is None or names.tolist() == fitted_names.tolist():
        return
    order = ""
    if sorted(names) == sorted(fitted_names):
        order = " Feature names must be in the same order as they were in fit."
    raise InputError(
        f"The feature names should match those that were passed during fit.{order} {caller} was "
        f"fitted on {fitted_names.tolist()}, got {names.tolist()}."
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
