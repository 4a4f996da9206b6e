"""Columns coded losslessly and sorted, for attribute lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.sort import radix_argsort, sort_keys
from gputree.backends.lists import ColumnCodes
from gputree.base.dtypes import MISSING_CODE, ROW
from gputree.base.memory import require_memory
from gputree.base.threads import run
from gputree.errors import InputError

# Codes, and the distinct values of each numeric column.
CodedColumns = tuple[ColumnCodes, list[NDArray]]


def code_columns(values: NDArray, nominal: NDArray[np.bool_], n_threads: int) -> CodedColumns:
    """Code every column by its distinct values, and sort the rows by it.

    `values` (n, d), NaN where missing, are read by columns: Fortran order is faster. Values 0, 1,
    ... of `nominal` columns are their codes. Also returns the distinct values of each numeric
    column, ascending; `InfinityError` if one has an infinite value.
    """
    n, d = values.shape
    cell_bytes = np.dtype(ROW).itemsize + np.dtype(np.uint32).itemsize
    require_memory(
        n * d * cell_bytes,
        f"Sorting {n:,} rows by each of {d:,} columns",
        "Use fewer rows or columns.",
    )
    codes = ColumnCodes(np.empty((d, n), ROW), np.empty((d, n), np.uint32))
    distinct = run(
        n_threads,
        _code_column,
        [(values[:, f], bool(nominal[f]), codes.order[f], codes.code[f]) for f in range(d)],
    )
    ends = [found[:: max(found.size - 1, 1)] for found in distinct]  # ascending
    forbid_infinity(np.array([bool(np.isinf(end).any()) for end in ends]), values.dtype)
    return codes, distinct


class InfinityError(InputError):
    """A column, of number `column`, has an infinite value."""

    def __init__(self, dtype: np.dtype, column: int, label: str | None = None) -> None:
        super().__init__(
            f"Input X contains infinity or a value too large for {dtype!r}, in column "
            f"{column if label is None else repr(label)}."
        )
        self.dtype, self.column = dtype, column

    def named(self, names: Any) -> InfinityError:
        """Return the same error with the name of the column, if columns have names."""
        label = None if names is None else str(names[self.column])
        return InfinityError(self.dtype, self.column, label)


def forbid_infinity(infinite: NDArray[np.bool_], dtype: np.dtype) -> None:
    """Raise ValueError if a column is marked as having an infinite value."""
    if infinite.any():
        raise InfinityError(dtype, int(np.flatnonzero(infinite)[0]))


def _code_column(
    column: NDArray, nominal: bool, order: NDArray[np.int32], code: NDArray[np.uint32]
) -> NDArray:
    """Fill `order` and `code`; returns the distinct values of a numeric column."""
    if nominal:
        missing = np.isnan(column)
        after = np.fmax.reduce(column, initial=0) + 1  # of missing values: fewer digits than NaN
        keys = np.where(missing, after, column).astype(np.uint32)
        rows = np.arange(keys.size, dtype=np.int32)
        order[:], code[:] = sort_keys(keys, rows, int(after).bit_length())
        code[keys.size - np.count_nonzero(missing) :] = MISSING_CODE
        return column[:0]
    order[:], keys = radix_argsort(np.ascontiguousarray(column))
    n_present = int(np.searchsorted(keys, np.array(-1).astype(keys.dtype)))
    code[n_present:] = MISSING_CODE
    first = np.ones(n_present, np.bool_)
    np.not_equal(keys[1:n_present], keys[: max(n_present - 1, 0)], out=first[1:])
    np.cumsum(first, out=code[:n_present], dtype=np.uint32)
    code[:n_present] -= np.uint32(1)
    return column[order[:n_present][first]]
