"""A table that is read and coded once, for many fits."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends import DEVICES
from gputree.backends.binning import MAX_BINS
from gputree.backends.devices import InfinityError, resolve_device
from gputree.base.sklearn import DeviceName, Interval, validate_parameter_constraints
from gputree.base.threads import most_threads
from gputree.errors import InputError, InputTypeError
from gputree.estimators.batches import Batches, read_batches
from gputree.estimators.column_warnings import warn_of_mixed_columns
from gputree.inputs.labels import Labels
from gputree.inputs.tables import Table, TableReader, match_columns

# Rows that are predicted at once.
_SLICE_ROWS = 1 << 16


class CodedTable:
    """A table that is read, checked and coded once, for many fits.

    It can be passed to the estimators as `X`. Cross-validation folds, grid candidates and repeated
    fits share its codes; `take` selects rows without a copy. Numbers that need no conversion are
    not copied: do not modify X while the table is used.

    A tree with exact splits depends only on the rows of its fit, bit for bit, not on the other rows
    of the table. With ``splitter="binned"`` cuts are made between the bins of the table,
    those of all of its rows; rows of weight zero, or taken repeatedly, have separate bins.
    Categories are those of the table, too: a category without rows in a subset is treated as an
    unseen category.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        As for the estimators.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        As for the estimators; theirs must then be "auto".
    max_bins : int, default=256
        Bins of a column, 2 to 256, including that of missing values; `max_bins` of the estimators
        is ignored.
    device : "auto", "cpu", "cuda" or one by its number, as "cuda:1", default="auto"
        Device of the table; that of the estimators must be the same, or "auto".
    ordered_categories : "auto", dict or None, default="auto"
        As for the estimators; theirs must then be "auto".

    Attributes
    ----------
    shape : (n_rows, n_features)
    device : "cpu", "cuda" or one by its number
    feature_names_in_ : array of str of shape (n_features,), or None

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gputree import CodedTable, DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = CodedTable(X)
    >>> search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3]})
    >>> search.fit(table, y).best_params_
    {'max_depth': 3}
    """

    _target: Labels | None = None
    _target_names: NDArray | None = None  # of several targets that were a frame

    def __init__(
        self,
        X: Any,
        categorical_features: Any = "auto",
        max_bins: int = 256,
        device: str = "auto",
        ordered_categories: Any = "auto",
    ) -> None:
        _validate("CodedTable", max_bins, device)
        reader = TableReader("CodedTable", categorical_features, ordered_categories)
        chosen = resolve_device(device)
        table = reader.read(X, chosen)
        table.device, table.max_bins, table.stays = chosen, max_bins, device != "auto"
        self._table = _coded(table)
        _warn_of_mixed_columns("CodedTable", self._table, reader)

    @classmethod
    def of(cls, table: Table) -> CodedTable:
        """Return a table as one that can be indexed."""
        coded = cls.__new__(cls)
        coded._table = table
        return coded

    @classmethod
    def from_batches(
        cls,
        batches: Batches,
        categorical_features: Any = "auto",
        max_bins: int = 256,
        device: str = "auto",
        folder: str | PathLike[str] | None = None,
        verbose: int = 0,
        ordered_categories: Any = "auto",
    ) -> CodedTable:
        """Read a table that is larger than memory, batch by batch.

        Values and codes are in memory-mapped files, whose pages the system keeps in memory while
        there is space; trees are grown on parts of 64 MiB of values one after another. In memory
        are a few numbers per row: targets, weights, the order of rows. Rows of large nodes whose
        values decide, and those of small nodes, are gathered within a budget of 128 MiB. The tree
        is that of the same table in memory, field by field, exact or binned, whatever the batches
        are; only categories that batches declare differently may be numbered otherwise. On a CUDA
        device parts stay as far as they fit `max_device_memory`, others pass through. What
        copies rows as elsewhere must fit: the attribute lists of C4.5 and ID3, the rows that a
        pruner holds out, one column of more categories than bins.

        Parameters
        ----------
        batches : iterable, or function that returns one
            Parts of the rows as X, or as pairs (X, y): arrays or data frames of the same columns,
            such as ``pyarrow.dataset.dataset("folder").to_batches`` yields, or
            `gputree.datasets.open_batches` from files, or `gputree.datasets.ArrayBatches` from
            mapped arrays. They are read twice, and must be the same, in the same order: an
            iterator, which can be read once, is refused.
        categorical_features, max_bins, device
            As for `CodedTable`.
        folder : str or path-like, default=None
            Folder of the files, which have no names and are deleted with the table; None for
            the system's folder of temporary files. They take 5 bytes a value, or 9 of float64, and
            one more for binned fits; on a CUDA device that has memory for all, no codes.
        verbose : int, default=0
            Show the rows that are read, on a terminal or in a notebook.
        ordered_categories : "auto", dict or None, default="auto"
            As for `CodedTable`; types that are ordered must declare the same in all batches.

        Returns
        -------
        CodedTable
            Its `target` has the targets that came with the batches.

        Raises
        ------
        TypeError
            The batches can be read once only.
        ValueError
            Batches that do not fit together, and are named, or that change between the passes.
        OSError
            The folder has no space.

        Examples
        --------
        >>> import numpy as np
        >>> from gputree import CodedTable, DecisionTreeClassifier
        >>> def batches():
        ...     for seed in range(3):
        ...         X = np.random.default_rng(seed).normal(size=(100, 2))
        ...         yield X, X[:, 1] > 0
        >>> table = CodedTable.from_batches(batches)
        >>> table.shape
        (300, 2)
        >>> DecisionTreeClassifier().fit(table, table.target).get_n_leaves()
        2
        """
        _validate("CodedTable", max_bins, device)
        reader = TableReader("CodedTable", categorical_features, ordered_categories)
        kept = resolve_device(device), max_bins, folder, bool(verbose)
        table = cls._of_batches(batches, reader, *kept)
        _coded(table._table)
        return table

    @classmethod
    def _of_batches(cls, batches: Batches, reader: TableReader, *kept: Any) -> CodedTable:
        """Read batches, without coding the table; `kept` are arguments of `read_batches`."""
        table, target, names = read_batches(batches, reader, *kept)
        _warn_of_mixed_columns(reader.caller, table, reader)
        found = cls.of(table)
        found._target, found._target_names = target, names
        return found

    @property
    def target(self) -> NDArray | None:
        """Targets that came with the batches, (n_rows,) or (n_rows, k); None where none did.

        Text and integers of up to 256 different values are held as codes of a byte a row, and the
        array is made of them each time.
        """
        return None if self._target is None else np.asarray(self._target)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._table.shape

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def device(self) -> str:
        """Device of the table."""
        return self._table.device or "auto"

    @property
    def feature_names_in_(self) -> NDArray | None:
        """Names of the columns."""
        return self._table.names

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"CodedTable of {n:,} rows x {d:,} columns, device={self.device!r}"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        raise InputTypeError(
            "A CodedTable holds codes, and is no array: pass X itself to what is not of gputree."
        )

    def take(self, rows: Any) -> CodedTable:
        """Select rows; they share the codes of the table.

        Parameters
        ----------
        rows : array-like of int or bool, or slice
            Indices of rows, counted from the end where negative, or a mask over all. Rows that
            are taken repeatedly are copied.

        Returns
        -------
        CodedTable
        """
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = rows if rows.size else rows.astype(np.int64)
        places = np.arange(len(self))[rows]
        if places.ndim != 1:
            raise InputError("CodedTable.take takes places of rows, or a mask over all of them.")
        table = self.of(self._table.take(places))
        if self._target is not None:
            table._target, table._target_names = self._target[places], self._target_names
        return table

    def _slices(self) -> Iterator[tuple[slice, CodedTable]]:
        """The rows, some at a time, and which they are."""
        table = self._table
        for begin in range(0, len(self), _SLICE_ROWS):
            rows = slice(begin, min(begin + _SLICE_ROWS, len(self)))
            places = np.arange(rows.start, rows.stop) if table.rows is None else table.rows[rows]
            yield rows, self.of(table.with_rows(places))

    def __getitem__(self, rows: Any) -> CodedTable:
        if isinstance(rows, tuple):  # scikit-learn calls table[rows, ...]
            rows, *others = rows
            if any(place is not Ellipsis and place != slice(None) for place in others):
                raise InputTypeError("A CodedTable is indexed by rows: its columns stay together.")
        return self.take(rows)


def learn_table(estimator: Any, table: Table) -> Table:
    """Take the table of a `CodedTable` to fit an estimator, which learns its columns.

    ValueError without rows, or where the estimator needs another device or other columns.
    """
    _require_readable(
        type(estimator).__name__,
        table,
        estimator.device,
        categorical_features=getattr(estimator, "categorical_features", "auto"),
        ordered_categories=getattr(estimator, "ordered_categories", "auto"),
    )
    if estimator._every_nominal and not table.columns.nominal.all():
        raise InputError(
            f"{type(estimator).__name__} makes categories of numbers, and the numeric and ordered "
            "columns of a CodedTable are coded as numbers: pass X itself, or list all columns in "
            "CodedTable's 'categorical_features', with ordered_categories=None."
        )
    estimator.columns_ = table.columns
    estimator.n_features_in_ = table.shape[1]
    if table.names is not None:
        estimator.feature_names_in_ = table.names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return table


def _require_readable(name: str, table: Table, device: str, **how: Any) -> None:
    """Raise ValueError unless an estimator that reads by these parameters can take the table."""
    is_coded = table.device is not None
    if table.shape[0] == 0:
        raise InputError(
            f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required "
            f"by {name}."
        )
    if is_coded and device not in ("auto", table.device, str(table.device).partition(":")[0]):
        raise InputError(
            f"The table lies on {table.device!r}, and {name} is to grow on {device!r}: "
            "make it CodedTable(X, device=...) for that device, or leave the estimator's "
            "'device' at 'auto'."
        )
    for parameter, value in how.items():
        if is_coded and not (isinstance(value, str) and value == "auto"):
            raise InputError(
                f"A CodedTable knows its categories: give '{parameter}' to CodedTable, and leave "
                f"that of {name} at 'auto'. Got {value!r}."
            )


def known_table(estimator: Any, table: Table) -> Table:
    """Take the table of a `CodedTable`; ValueError unless its columns are those of fit."""
    name = type(estimator).__name__
    fitted = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    match_columns(name, (table.shape[1], table.names), fitted)
    if not table.columns.same_as(estimator.columns_):
        raise InputError(
            f"The categories of this CodedTable are coded otherwise than those that {name} was "
            "fitted on: pass X itself, or fit on this table."
        )
    return table


def read_whole(caller: str, X: Any, categorical_features: Any, device: str) -> Table:
    """Read a whole table as the estimators do, its columns contiguous; errors name `caller`.

    A `CodedTable` is taken as it is.
    """
    _validate(caller, MAX_BINS, device)
    if isinstance(X, CodedTable):
        _require_readable(caller, X._table, device, categorical_features=categorical_features)
        return X._table
    reader = TableReader(caller, categorical_features)
    table = reader.read(X, device, order="F")
    _warn_of_mixed_columns(caller, table, reader)
    return table


def _warn_of_mixed_columns(caller: str, table: Table, reader: TableReader) -> None:
    """Warn of columns of text that are nearly numbers, of a table that `reader` has read."""
    listed, count = reader.categorical_features, table.count_categories
    table.mixed = warn_of_mixed_columns(
        caller, table.columns, table.names, listed, count, reader.declared
    )


def _coded(table: Table) -> Table:
    n_threads = most_threads()
    try:
        table.on(table.device or "cpu", n_threads).prepare(table.max_bins or MAX_BINS, n_threads)
    except InfinityError as error:
        raise error.named(table.names) from error
    return table


def _validate(caller: str, max_bins: int, device: str) -> None:
    """Raise ValueError for a parameter that is none."""
    validate_parameter_constraints(
        {
            "max_bins": [Interval(Integral, 2, 256, closed="both")],
            "device": [DeviceName(set(DEVICES))],
        },
        {"max_bins": max_bins, "device": device},
        caller_name=caller,
    )
