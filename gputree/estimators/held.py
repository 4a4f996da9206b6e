"""The values of a table, inspected and brought to a device once for all that is grown on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends import get_sharded_table, get_table
from gputree.backends.arrays import take_rows, to_host
from gputree.backends.base import DeviceTable, Int64s
from gputree.backends.encoding import CodedColumns, code_columns, forbid_infinity
from gputree.backends.inspection import inspect
from gputree.backends.lists import ColumnCodes
from gputree.columns import Columns
from gputree.columns.integers import count_codes
from gputree.compilation.arrays import writable
from gputree.estimators.growing_categories import categories_in_growth

# Bytes of values that are copied at once where some rows of a table are read.
BLOCK_BYTES = 1 << 26


def missing_columns(values: NDArray, n_threads: int) -> NDArray[np.bool_]:
    """Mark columns with missing values.

    Raises
    ------
    ValueError
        If there is an infinite value.
    """
    missing, infinite = inspect(values, n_threads)
    forbid_infinity(infinite, values.dtype)
    return missing


class Parts(NamedTuple):
    """A table that is worked on in shards of rows; see `gputree.backends.sharded.table`."""

    bounds: Int64s
    new_codes: Callable[[tuple[int, int]], NDArray] | None = None


class Held:
    """A table of n rows and d columns; many views of its rows share it.

    Parameters
    ----------
    columns : Columns
    values : float32 or float64 array of shape (n, d)
        NumPy's, or CuPy's: numbers, codes of categories, NaN where missing.
    names : array of str of shape (d,), or None
    device : "cpu", "cuda" or None
        The only device that it is for; None for any.
    max_bins : int or None
        The only number of bins that it is coded into; None for any.
    parts : Parts or None
        How the host works on it, in parts of rows; None for all at once.
    """

    # Columns of numbers as text, which a warning has named.
    mixed: Collection[int] = ()

    def __init__(
        self,
        columns: Columns,
        values: Any,
        names: NDArray | None,
        device: str | None = None,
        max_bins: int | None = None,
        parts: Parts | None = None,
    ) -> None:
        self.columns = columns
        self.values = values
        self.names = names
        self.device = device
        self.max_bins = max_bins
        self.parts = parts
        self._tables: dict[str, DeviceTable] = {}
        self._lists: CodedColumns | None = None
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "values": to_host(self.values)}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, values=writable(state["values"]), _lock=Lock())

    def keep_lists(self, n_threads: int) -> None:
        """Code the columns for all trees that are grown from attribute lists on all rows."""
        self._lists = self.lists(n_threads)

    def lists(self, n_threads: int) -> CodedColumns:
        """The columns as `gputree.backends.encoding.code_columns` codes them, for growth to use up.

        Raises
        ------
        ValueError
            If there is an infinite value.
        """
        if self._lists is None:
            return code_columns(to_host(self.values), self.columns.nominal, n_threads)
        codes, distinct = self._lists
        return ColumnCodes(codes.order.copy(), codes.code.copy()), distinct

    def of_rows(self, rows: Int64s) -> Held:
        """Copy rows, in their order, to a separate table."""
        values = take_rows(self.values, rows)
        return Held(self.columns, values, self.names, self.device, self.max_bins)

    def on(self, device: str, n_threads: int) -> DeviceTable:
        """The table on "cpu" or "cuda", inspected.

        Raises
        ------
        ValueError
            If there is an infinite value.
        """
        with self._lock:
            if device not in self._tables:
                values = self.values
                if isinstance(values, np.ndarray):
                    values = np.ascontiguousarray(values)
                missing = missing_columns(values, n_threads)
                categories = categories_in_growth(self.columns)
                if self.parts is None:
                    self._tables[device] = get_table(device)(values, missing, categories)
                else:
                    kind = get_sharded_table(device)
                    self._tables[device] = kind(values, missing, categories, *self.parts)
            return self._tables[device]


class View:
    """Rows of a table that an estimator is fitted on, some or all.

    Parameters
    ----------
    held : Held
    rows : int array, or None
        Distinct places of rows, in the order of the view; None for all in order.
    """

    def __init__(self, held: Held, rows: Int64s | None = None) -> None:
        self.held = held
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.held.values.shape
        return (n if self.rows is None else self.rows.size), d

    @property
    def values(self) -> NDArray:
        """The view as a matrix; a copy of its rows unless it has all."""
        values: NDArray = self.held.values
        return values if self.rows is None else take_rows(values, self.rows)

    def blocks(self) -> Iterator[NDArray]:
        """Yield the view in blocks of rows, at least one block, on the host."""
        values: NDArray = self.held.values
        if self.rows is None:
            yield to_host(values)
            return
        height = max(BLOCK_BYTES // (values.shape[1] * values.dtype.itemsize), 1)
        for begin in range(0, max(self.rows.size, 1), height):
            yield to_host(take_rows(values, self.rows[begin : begin + height]))

    def column(self, f: int) -> NDArray:
        """The rows' values of column f, on the host."""
        column = to_host(self.held.values[:, f])
        return column if self.rows is None else column[self.rows]

    @property
    def entries(self) -> Int64s | None:
        """Rows of the table to grow on, ascending; None for all."""
        return None if self.rows is None else np.flatnonzero(self._mask(self.rows))

    def take(self, places: Int64s) -> View:
        """Select rows of the view; those taken repeatedly are copied."""
        rows = places if self.rows is None else self.rows[places]
        if np.count_nonzero(self._mask(rows)) < rows.size:
            return View(self.held.of_rows(rows))
        return View(self.held, rows)

    def _mask(self, rows: Int64s) -> NDArray[np.bool_]:
        """Mark the rows of the table that are among `rows`."""
        mask = np.zeros(self.held.values.shape[0], np.bool_)
        mask[rows] = True
        return mask

    def alone(self) -> View:
        """The same rows as all of a table."""
        return self if self.rows is None else View(self.held.of_rows(self.rows))

    def spread(self, column: NDArray[Any] | None) -> NDArray[Any] | None:
        """Scatter a column of the view to the rows of the table; 0 elsewhere."""
        if self.rows is None or column is None:
            return column
        whole = np.zeros(self.held.values.shape[0], column.dtype)
        whole[self.rows] = column
        return whole


def count_of_view(view: View, f: int) -> NDArray[np.int64]:
    """Rows of each category of column f."""
    return count_codes(view.column(f), int(view.held.columns.n_categories[f]))
