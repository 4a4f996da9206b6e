"""Types and categories of the columns of a table, learned in `fit`, and tables coded by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import MISSING_CELL, UNSEEN, Bools, Int64s, Values
from gputree.base.memory import require_memory
from gputree.columns.categories import (
    NUMBERS,
    Lookup,
    codes_present,
    hold_codes,
    hold_text,
    in_order,
    is_decimal,
    kind_of,
)
from gputree.columns.cells import Cells, Coded, Exact, read_cells
from gputree.columns.options import Orders, declared_orders, labels_of, listed_columns
from gputree.errors import InputError

Order = Literal["C", "F"]

EXACT_IN_FLOAT32 = 1 << 24  # integers up to this

# Bytes of a C-contiguous matrix that are written at a time, to stay in the cache.
BLOCK_BYTES = 1 << 19

# Number of values sampled from each column before any column is tested whole: most float64 values
# are not exact as float32.
FIRST_LOOK = 1 << 10


class Writable(NamedTuple):
    """A column ready to be written: its vector, or places in a lookup table.

    The column is exact in float32 if the numbers `exact` are.
    """

    vector: NDArray[Any]
    lookup: Values | None
    exact: NDArray[Any]

    def as_type(self, dtype: type[np.floating]) -> Writable:
        """Convert the lookup table to the type of the matrix, once for all blocks."""
        lookup = None if self.lookup is None else self.lookup.astype(dtype)
        return self._replace(lookup=lookup)

    def write(self, out: Values, begin: int, end: int) -> None:
        """Write rows ``begin .. end`` of the column to `out`."""
        rows = self.vector[begin:end]
        out[...] = rows if self.lookup is None else self.lookup[rows]


@dataclass(frozen=True, eq=False)
class Columns:
    """Specifications of the d columns of a table.

    A table is coded to one matrix of numbers: numeric columns unchanged, categorical ones as the
    codes ``0 .. c`` of its c categories. NaN is a missing value, UNSEEN
    (-1) for a category that the table of `fit_columns` did not have.

    Categories that are ordered are not nominal: their codes are ranks, numbers to cut along the
    order. A category that has no rank is NaN, as a missing value.
    """

    nominal: Bools  # (d,): whether the column holds categories without an order
    # the categories of each categorical column in the order of their codes, or ranks: numbers,
    # booleans or objects (text, or numbers before text). None for a numeric column
    categories: tuple[NDArray[Any] | None, ...]

    @cached_property
    def ordered(self) -> Bools:
        """Columns of ordered categories, as a mask of shape (d,)."""
        coded = np.array([words is not None for words in self.categories], np.bool_)
        return coded & ~self.nominal

    @cached_property
    def n_categories(self) -> Int64s:
        """Number of categories of each nominal column, 0 for others; shape (d,)."""
        sizes = [0 if words is None else words.size for words in self.categories]
        return np.where(self.nominal, np.array(sizes, np.int64), 0)

    @cached_property
    def grown_categories(self) -> Int64s:
        """Categories of each nominal column in CART's growth, 0 of numeric ones.

        Where no column has more than two, their codes are numbers in growth: 0 throughout.
        """
        number = self.n_categories
        return number if (number > 2).any() else np.zeros_like(number)

    @classmethod
    def numeric(cls, n_columns: int) -> Columns:
        """Specifications of columns without categories."""
        return cls(np.zeros(n_columns, np.bool_), (None,) * n_columns)

    def same_as(self, other: Columns) -> bool:
        """Return whether the other specifications give every cell the same number."""
        if self is other:
            return True
        return np.array_equal(self.nominal, other.nominal) and all(
            a is b or (a is not None and b is not None and a.tolist() == b.tolist())
            for a, b in zip(self.categories, other.categories, strict=True)
        )

    def encode(self, X: Any, order: Order = "C") -> Values:
        """Code a table as a matrix (n_rows, d), whose rows ("C") or columns ("F") are contiguous.

        float32 where every value of every column is exact in it (float64 arrays without categorical
        columns stay float64). Arrays whose categories, if any, are codes already are not copied
        where they have that type. ValueError for another number of columns, text in a numeric
        column, or columns that hold neither numbers, booleans nor text.
        """
        if X.shape[1] != self.nominal.size:
            raise InputError(f"X has {X.shape[1]} columns, expected {self.nominal.size}.")
        plain = _plain_numbers(X)
        coded = self.nominal | self.ordered
        if plain is not None and not coded.any():
            return as_floats(plain, order)
        if plain is not None and self._holds_codes(plain, coded):
            return _as_narrow_floats(plain, order)
        labels = labels_of(X)
        cells = _factorize(read_cells(X, labels), coded, labels)
        return self._matrix(cells, labels, X.shape[0], order)

    def _holds_codes(self, X: NDArray, coded: Bools) -> bool:
        """Return whether a table of numbers holds the codes themselves in its coded columns."""
        places = np.flatnonzero(coded)
        words = [w for w in self.categories if w is not None]
        if not all(w.dtype.kind in "iuf" and np.array_equal(w, np.arange(w.size)) for w in words):
            return False
        return hold_codes(X, places, np.array([w.size for w in words]))

    def _lookups(self) -> list[Lookup | None]:
        """Lookup of the codes of each column of categories; None for a numeric one."""
        return [None if words is None else Lookup(words) for words in self.categories]

    def _matrix(
        self, cells: list[Cells], labels: Sequence[str], n_rows: int, order: Order
    ) -> Values:
        columns = [
            _number_column(column, label)
            if words is None
            else _code_column(column, words, label, np.nan if ordered else UNSEEN)
            for column, words, label, ordered in zip(
                cells, self._lookups(), labels, self.ordered, strict=True
            )
        ]
        dtype = np.float32 if _all_fit_float32([c.exact for c in columns]) else np.float64
        columns = [column.as_type(dtype) for column in columns]
        _require_memory(n_rows, len(columns), dtype)
        out = np.empty((n_rows, len(columns)), dtype, order)
        height = n_rows if order == "F" else max(BLOCK_BYTES // max(out[:1].nbytes, 1), 1)
        for begin in range(0, n_rows, max(height, 1)):
            end = min(begin + height, n_rows)
            for j, column in enumerate(columns):
                column.write(out[begin:end, j], begin, end)
        return out


def fit_columns(
    X: Any,
    categorical_features: Any = "auto",
    every_nominal: bool = False,
    ordered_categories: Any = "auto",
) -> Columns:
    """Determine the types and categories of the columns of a table.

    X is a data frame of pandas, polars, pyarrow or another library that narwhals reads, or an array
    of two dimensions. It holds numbers, booleans, text, categorical types or objects; None, NaN,
    NA, NaT and masked cells are missing. With "auto", columns of text, booleans, categorical types
    and objects with text or booleans are categorical; else `categorical_features` are names or
    indices of the categorical columns, or a mask over all, and None lists no column. Text is always
    categorical; with `every_nominal` so are numbers.

    The categories of a categorical type are those it declares, in its order, also where no row has
    them. Others are the distinct values: numbers (and booleans) by value, then text by code point.
    Columns are ordered by their types, and by `ordered_categories`: see
    `gputree.columns.options.Orders`; with `every_nominal` this is only the order of the categories.
    ValueError for columns that hold neither numbers, booleans nor text, infinite categories, or
    parameters that do not fit X.
    """
    return _fit(X, categorical_features, every_nominal, ordered_categories)[0]


def fit_encode(
    X: Any,
    categorical_features: Any = "auto",
    every_nominal: bool = False,
    order: Order = "C",
    ordered_categories: Any = "auto",
) -> tuple[Columns, Values]:
    """Apply `fit_columns` and `Columns.encode` to one table, which is read once."""
    columns, cells = _fit(X, categorical_features, every_nominal, ordered_categories)
    if isinstance(cells, np.ndarray):
        convert = _as_narrow_floats if columns.nominal.any() else as_floats
        return columns, convert(cells, order)
    return columns, columns._matrix(cells, labels_of(X), X.shape[0], order)


def _fit(
    X: Any, categorical_features: Any, every_nominal: bool, ordered_categories: Any
) -> tuple[Columns, list[Cells] | NDArray]:
    """Return the columns, and the cells (or plain numbers) that they were learned from."""
    labels = labels_of(X)
    listed = listed_columns(categorical_features, X)
    orders = declared_orders(ordered_categories, X)
    plain = _plain_numbers(X)
    if plain is not None and not every_nominal and not orders.given:
        columns = _numbers_as_they_are(plain, listed)
        if columns is not None:
            return columns, plain
    cells = read_cells(X, labels)
    nominal = np.array([_is_nominal(column, listed is None) for column in cells], np.bool_)
    if listed is not None:
        nominal |= listed
    if every_nominal:
        nominal[:] = True
    cells = _factorize(cells, nominal | orders.mask(len(cells)), labels)
    return _columns(cells, nominal, orders, labels, every_nominal), cells


def _columns(
    cells: list[Cells], nominal: Bools, orders: Orders, labels: list[str], every_nominal: bool
) -> Columns:
    """The columns of some cells, those with categories by their distinct values."""
    levels = [orders.of(f, column, labels[f]) for f, column in enumerate(cells)]
    categories = [
        _categories(column, is_nominal) if order is None else order
        for column, is_nominal, order in zip(cells, nominal, levels, strict=True)
    ]
    if not every_nominal:
        nominal = nominal & np.array([order is None for order in levels], np.bool_)
    return Columns(nominal, tuple(categories))


def _numbers_as_they_are(X: NDArray, listed: Bools | None) -> Columns | None:
    """Columns of an array that needs no coding, as its listed columns hold codes; else None."""
    if listed is None or not listed.any():
        return Columns.numeric(X.shape[1])
    at = np.flatnonzero(listed)
    counts = codes_present(X, at)
    if counts is None:
        return None
    words = dict(zip(at.tolist(), counts, strict=True))
    dtype = X.dtype if X.dtype.kind in "iu" else np.promote_types(X.dtype, np.float32)
    categories = (
        np.arange(words[f], dtype=dtype) if f in words else None for f in range(X.shape[1])
    )
    return Columns(listed, tuple(categories))


def _is_nominal(cells: Cells, by_type: bool) -> bool:
    """Return whether a column is nominal by its type, or because it cannot be numeric."""
    if isinstance(cells, Coded):
        return by_type or cells.values.dtype.kind not in NUMBERS
    return by_type and not isinstance(cells, Exact) and cells.dtype.kind == "b"


def _categories(cells: Cells, nominal: bool) -> NDArray | None:
    if not nominal:
        return None
    assert isinstance(cells, Coded)
    return cells.values if cells.declared else in_order(cells.values)


def _plain_numbers(X: Any) -> NDArray | None:
    """The table as one array of integers or floats, if that needs no conversion."""
    if not isinstance(X, np.ndarray):
        kinds = set(getattr(X, "dtypes", ())) if hasattr(X, "iloc") else set()
        if len(kinds) != 1 or not isinstance(kind := next(iter(kinds)), np.dtype):
            return None
        return X.to_numpy() if kind.kind in "iuf" else None
    return X if X.dtype.kind in "iuf" else None


def as_floats(X: NDArray, order: Order) -> Values:
    """Numbers as float32 where their type says that it is exact, else as float64."""
    if X.dtype.kind == "f":
        dtype = np.float32 if X.dtype.itemsize <= 4 else np.float64
    else:
        dtype = np.float32 if _fits_float32(X) else np.float64
    if X.dtype != dtype or not X.flags[order]:
        _require_memory(len(X), X.size // max(len(X), 1), dtype)
    with np.errstate(over="ignore"):  # long doubles overflow; callers raise an error for infinity
        return np.asarray(X, dtype, order=order)


def _as_narrow_floats(X: NDArray, order: Order) -> Values:
    """Convert as `as_floats`, to float32 also where every number turns out to be exact in it."""
    if X.dtype != np.float64 or not _all_fit_float32(list(X.T)):
        return as_floats(X, order)
    _require_memory(X.shape[0], X.shape[1], np.float32)
    return np.asarray(X, np.float32, order=order)


def _require_memory(n: int, d: int, dtype: type[np.floating]) -> None:
    """Refuse to make a matrix that clearly exceeds the memory."""
    needed = n * d * np.dtype(dtype).itemsize
    advice = "Use fewer rows or columns"
    advice += "." if dtype == np.float32 else ", or numbers of 32 bits, which take half."
    require_memory(needed, f"Holding {n:,} rows x {d:,} columns as numbers", advice)


def _fits_float32(values: NDArray) -> bool:
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "b" or values.size == 0:
        return True
    if kind in "iu":
        return size <= 2 or max(int(values.max()), -int(values.min())) <= EXACT_IN_FLOAT32
    if size <= 4:
        return True
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = values.astype(np.float32) == values
    return bool(exact.all() or (exact | (values != values)).all())  # most have no NaN


def _all_fit_float32(columns: list[NDArray]) -> bool:
    """Return whether every number of all columns is exact as float32; a sample is tested first."""
    some = (column[:: column.size // FIRST_LOOK + 1] for column in columns)
    return all(map(_fits_float32, some)) and all(map(_fits_float32, columns))


def _factorize(cells: list[Cells], coded: Bools, labels: Sequence[str]) -> list[Cells]:
    """Factorize the cells of `coded` columns into codes of distinct values."""
    return [
        _distinct(column, label) if is_coded and not isinstance(column, Coded) else column
        for column, is_coded, label in zip(cells, coded, labels, strict=True)
    ]


def _distinct(numbers: NDArray | Exact, label: str) -> Coded:
    """Numbers by their distinct values."""
    import pyarrow as pa

    if isinstance(numbers, Exact):
        return Coded(*numbers.distinct(), False)
    if numbers.dtype.kind == "f":
        numbers = as_floats(numbers, "C") + np.float32(0)  # -0.0 becomes 0.0
        if np.isinf(numbers).any():
            raise InputError(
                f"Input X contains infinity in column {label}, whose values are categories."
            )
    numbers = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))
    encoded = pa.array(numbers, from_pandas=True).dictionary_encode()
    code = encoded.indices.fill_null(MISSING_CELL).to_numpy(zero_copy_only=False)
    return Coded(code, encoded.dictionary.to_numpy(zero_copy_only=False), False)


def _code_column(cells: Cells, categories: Lookup, label: str, unseen: float) -> Writable:
    """The codes of a column of categories, looked up by its distinct values."""
    assert isinstance(cells, Coded)
    before, now = categories.kind, kind_of(cells.values)
    if {before, now} == {"numbers", "text"}:
        words = cells.values.tolist()
        if categories.categories.dtype.kind == "b":
            before = "booleans"
            words.sort(key=lambda word: str(word).lower() in ("true", "false"))  # the others first
        raise InputError(
            f"Column {label} of X held {before} in fit; now it holds {now}, such as {words[0]!r}."
        )
    found = categories.match(cells.values)
    lookup = np.append(np.where(found == UNSEEN, unseen, found), np.nan)  # last: MISSING_CELL
    return Writable(cells.code, lookup, np.array([categories.categories.size]))


def _number_column(cells: Cells, label: str) -> Writable:
    if isinstance(cells, Exact):
        cells = cells.as_floats()
    if not isinstance(cells, Coded):
        return Writable(cells, None, cells)
    if hold_text(cells.values) and cells.values.size:
        words = sorted(map(str, cells.values.tolist()), key=is_decimal)  # the others first
        raise InputError(
            f"Column {label} of X was numeric in fit; now it holds text, such as {words[0]!r}."
        )
    lookup = np.append(cells.values.astype(np.float64), np.nan)
    return Writable(cells.code, lookup, lookup)
