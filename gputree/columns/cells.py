"""The cells of a table, column by column, whatever library holds it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import MISSING_CELL, Bools, Floats, Int64s
from gputree.base.memory import require_memory
from gputree.columns.categories import (
    EXACT_IN_FLOAT64,
    NUMBERS,
    as_numbers,
    as_objects,
    is_missing,
    text_first_seen,
)
from gputree.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import pyarrow as pa


class Coded(NamedTuple):
    """A column by its distinct values."""

    code: NDArray[np.integer]  # of each row's value; MISSING_CELL where there is none
    values: NDArray[Any]  # numbers or booleans, or objects: text, or text among numbers
    declared: bool  # the values and their order are those of a categorical type
    ordered: bool = False  # that says that they are ordered


class Exact(NamedTuple):
    """Numbers that float64 does not represent exactly, or that have missing values next to them."""

    values: NDArray[Any]  # integers, or objects: integers of any length, or floats
    known: Bools  # whether a cell is not missing; the value of another means nothing

    def as_floats(self) -> Floats:
        """The nearest numbers of float64, NaN where missing."""
        numbers = np.full(self.values.size, np.nan)
        numbers[self.known] = self.values[self.known].astype(np.float64)
        return numbers

    def distinct(self) -> tuple[Int64s, NDArray[Any]]:
        """Code of each cell, MISSING_CELL where it is missing; and what codes stand for."""
        code = np.full(self.values.size, MISSING_CELL, np.int64)
        code[self.known], found = text_first_seen(self.values[self.known])
        return code, as_numbers(found.tolist())


# Numbers or booleans, NaN where missing; numbers beyond those; or anything by its distinct values.
Cells = NDArray[Any] | Exact | Coded


def as_table(X: Any, sparse: bool = False) -> Any:
    """A batch of records of pyarrow as a table, sparse matrices as arrays; all else as it is.

    If `sparse`, sparse matrices are left as they are, too.
    """
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(X):
        return X if sparse else dense(X)
    if isinstance(X, np.ndarray) and X.dtype.names:
        raise InputError(
            "X is a structured array: pass pandas.DataFrame(X), its bytes decoded. "
            "gputree.datasets.read_table reads ARFF files, with text as it is."
        )
    if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):
        raise InputTypeError(
            "X is a LazyFrame, which holds no rows yet: pass X.collect(), or its batches to "
            "CodedTable.from_batches."
        )
    if type(X).__module__.partition(".")[0] != "pyarrow" or type(X).__name__ != "RecordBatch":
        return X
    import pyarrow as pa

    return pa.Table.from_batches([X])


def check_stored(X: Any) -> None:
    """Raise ValueError for a sparse matrix whose indices lead out of it, where SciPy reads on."""
    if X.format in ("csr", "csc", "bsr"):
        X.check_format()


def dense(X: Any) -> NDArray[Any]:
    """A sparse matrix as an array; MemoryError if it would clearly exceed the memory."""
    if X.dtype.kind == "c":
        raise InputError(f"Complex data not supported\n{X!r}\n")
    check_stored(X)
    instead = (
        "Keep fewer columns (min_frequency of OneHotEncoder, SelectKBest, TruncatedSVD), or pass "
        "the categorical columns themselves, which need no encoding."
    )
    if X.dtype.kind == "b":
        instead = (
            "Booleans are categories. Pass numbers (X.astype(np.uint8)), which stay sparse in CART "
            "trees and forests."
        )
    require_memory(
        float(math.prod(X.shape)) * X.dtype.itemsize,
        f"Converting sparse X of shape {X.shape} to a dense array",
        instead,
    )
    return X.toarray(order="C")  # columns first, rows would be copied once more


def is_frame(X: Any) -> bool:
    """Return whether `X` is a data frame: of pandas, polars, pyarrow or another narwhals knows."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def read_cells(X: Any, labels: Sequence[str]) -> list[Cells]:
    """The columns of a data frame or of a matrix; errors of what they hold name their labels."""
    cells = []
    for label, (read, column) in zip(labels, _columns(X), strict=True):
        try:
            cells.append(read(column))
        except TypeError as error:
            raise InputTypeError(f"Column {label} of X: {error}") from error
        except (ValueError, OverflowError) as error:
            raise InputError(f"Column {label} of X: {error}") from error
    return cells


def _columns(X: Any) -> list[tuple[Any, Any]]:
    """Each column with the function that reads it."""
    import narwhals as nw

    if isinstance(X, np.ndarray):
        return [(read_array, X[:, j]) for j in range(X.shape[1])]
    if nw.dependencies.is_pandas_dataframe(X):
        return [(_of_pandas, X.iloc[:, j]) for j in range(X.shape[1])]
    if nw.dependencies.is_pyarrow_table(X):
        pairs = zip(X.schema, X.columns, strict=True)
        return [(_of_enum if _is_enum(field) else _of_arrow, column) for field, column in pairs]
    frame = nw.from_native(X, eager_only=True)
    return [(_of_narwhals, column) for column in frame.iter_columns()]


def read_array(values: NDArray) -> Cells:
    """One column of an array."""
    if values.dtype.kind in NUMBERS:
        return values
    if values.dtype.kind == "U":
        return _of_fixed_text(values)
    if values.dtype.kind in "OT":
        return _of_objects(values.astype(object, copy=False))
    raise _refusal(values.dtype)


def _of_pandas(series: Any) -> Cells:
    import pyarrow as pa

    if isinstance(series.dtype, np.dtype):
        return read_array(series.to_numpy())
    if hasattr(series.dtype, "categories"):
        words = series.cat.categories
        if words.dtype.kind in "mM":  # whose texts do not depend on the unit of time
            words = words.astype(object)
        values = _as_categories(words.to_numpy())
        return Coded(series.cat.codes.to_numpy(), values, True, bool(series.dtype.ordered))
    if hasattr(series.dtype, "fill_value"):  # sparse
        return read_array(series.to_numpy())
    return _of_arrow(pa.array(series.array, from_pandas=True))


def _of_narwhals(series: Any) -> Cells:
    import narwhals as nw

    if series.dtype == nw.Categorical:  # its categories are those seen so far, in that order
        series = series.cast(nw.String)
    if series.dtype in (nw.Int128, nw.UInt128):  # which Arrow has not
        return _of_objects(as_objects(series.to_list()))
    return (_of_enum if series.dtype == nw.Enum else _of_arrow)(series.to_arrow())


def _is_enum(field: pa.Field) -> bool:
    """Return whether a column was an Enum of polars."""
    return any(key.startswith(b"_PL_ENUM") for key in field.metadata or ())


def _of_enum(column: pa.Array | pa.ChunkedArray) -> Cells:
    """An Enum of polars, which Arrow has as ordered: all have an order, meant or not."""
    cells = _of_arrow(column)
    return cells._replace(ordered=False) if isinstance(cells, Coded) else cells


def _of_arrow(column: pa.Array | pa.ChunkedArray) -> Cells:
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _of_dictionary(column)
    if _is_text(kind):
        return _of_codes(column.dictionary_encode(), False)
    if types.is_boolean(kind) and column.null_count:
        return _of_codes(column.dictionary_encode(), False)
    if types.is_null(kind):  # it is unknown what it would hold
        return Coded(np.full(len(column), MISSING_CELL, np.int64), as_objects([]), False)
    if not _is_number(kind):
        raise _refusal(kind)
    if types.is_decimal(kind):
        floats = np.asarray(column.cast(pa.float64(), safe=False), np.float64)
        return _with_large(floats, column.to_pylist() if _are_large(floats).any() else [])
    if types.is_integer(kind) and column.null_count and not _is_small(column):
        present = np.asarray(column.is_valid())
        return Exact(np.asarray(column.fill_null(0)), present)
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)


def _with_large(floats: Floats, cells: Any) -> Floats | Exact:
    """Numbers as float64, but as objects where one of the cells is a large integer."""
    values = None
    for place in np.flatnonzero(_are_large(floats)):
        cell = cells[int(place)]
        if not isinstance(cell, float) and cell == int(cell):
            values = floats.astype(object) if values is None else values
            values[place] = int(cell)
    return floats if values is None else Exact(values, ~np.isnan(floats))


def _are_large(floats: Floats) -> Bools:
    """Mark numbers that may be others as integers."""
    return np.isfinite(floats) & (np.abs(floats) >= EXACT_IN_FLOAT64)


def _is_small(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether all integers are exact as float64."""
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    least, greatest = ends["min"] or 0, ends["max"] or 0
    return bool(least >= -EXACT_IN_FLOAT64 and greatest <= EXACT_IN_FLOAT64)


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in tests)


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    # A column whose cells are all missing has the null type.
    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _of_dictionary(column: pa.Array | pa.ChunkedArray) -> Coded:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    words = column.dictionary
    if words.null_count or len(words.unique()) < len(words):  # Arrow allows either
        return _of_codes(column.cast(column.type.value_type).dictionary_encode(), False)
    return _of_codes(column, True)._replace(ordered=bool(column.type.ordered))


def _of_codes(column: pa.DictionaryArray | pa.ChunkedArray, declared: bool) -> Coded:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    code = column.indices
    if not pa.types.is_signed_integer(code.type):
        code = code.cast(pa.int64())
    code = code.fill_null(MISSING_CELL).to_numpy(zero_copy_only=False)
    words = column.dictionary
    if has_text_of_time(words.type):
        words = text_of_times(words)
    values = words.to_numpy(zero_copy_only=False)
    return Coded(code, _as_categories(values), declared)


def has_text_of_time(kind: pa.DataType) -> bool:
    """Return whether values of a type are days or times, which `text_of_times` takes."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind))


def text_of_times(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Days and times as text, the same whatever unit a column counts in.

    As Python and pandas write them: without a fraction, or of a second in 6 or 9 digits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.string())
    for pattern, form in (
        (r"\.(\d{3})(\D.*)?$", r".\1000\2"),
        (r"\.(\d{6})000(\D.*)?$", r".\1\2"),
        (r"\.000000(\D.*)?$", r"\1"),
    ):
        text = pc.replace_substring_regex(text, pattern, form)
    return text


def _as_categories(values: NDArray) -> NDArray:
    """The values of a categorical type: numbers, text, or anything else by its text."""
    values = np.asarray(values)
    if values.dtype.kind in NUMBERS:
        return values
    words = values.astype(object)
    for j, word in enumerate(words):
        if not isinstance(word, (str, Real)):
            words[j] = str(word)
    return words


def _of_fixed_text(values: NDArray[np.str_]) -> Coded:
    """A column of text of one width, distinguished by its bytes."""
    import pyarrow as pa

    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    kind, data = pa.binary(native.itemsize), pa.py_buffer(native.view(np.uint8))
    column = pa.FixedSizeBinaryArray.from_buffers(kind, native.size, [None, data])
    coded = column.dictionary_encode()
    words = np.array(coded.dictionary.to_pylist(), f"V{native.itemsize}").view(native.dtype)
    return Coded(coded.indices.to_numpy(), words.astype(object), False)


def _of_objects(values: NDArray) -> Cells:
    """A column of Python objects: nominal if any is text or a boolean, else numbers."""
    import pyarrow as pa

    first = next((value for value in values if not is_missing(value)), None)
    kind = pa.large_string() if isinstance(first, str) else None  # saves a pass to find out
    try:
        column = pa.array(values, kind, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        return _of_mixed(values)
    if _is_text(column.type) and any(issubclass(kind, bytes) for kind in set(map(type, values))):
        raise InputTypeError("it holds bytes among text. Decode them first.")
    if _is_text(column.type) or _is_number(column.type):
        return _of_arrow(column)
    return _of_mixed(values)


def _of_mixed(values: NDArray) -> Cells:
    """Objects of several types, one by one."""
    present = np.array([not is_missing(value) for value in values], np.bool_)
    kinds = set(map(type, values[present]))
    if not any(issubclass(kind, (str, bool, np.bool_)) for kind in kinds):
        return _of_numbers(values, present)
    for kind in kinds:
        if not issubclass(kind, (str, Real, np.bool_)):
            raise InputTypeError(f"it holds a {kind.__name__} among text or booleans.")
    code = np.full(values.size, MISSING_CELL, np.int64)
    code[present], distinct = text_first_seen(values[present])
    return Coded(code, distinct, False)


def _of_numbers(values: NDArray, present: Bools) -> Floats | Exact:
    """Convert objects to float64; refuse those that `float` would take but are no numbers."""
    for kind in set(map(type, values[present])):
        if issubclass(kind, (bytes, np.datetime64, np.timedelta64)):
            raise _refusal(kind.__name__)
        if not hasattr(kind, "__float__") and not hasattr(kind, "__index__"):
            said = "float() argument must be a string or a real number"  # in scikit-learn's words
            raise InputTypeError(f"{_refusal(kind.__name__)} ({said}.)")
    numbers = np.full(values.size, np.nan)
    numbers[present] = values[present].astype(np.float64)
    return _with_large(numbers, values)


def _refusal(kind: Any) -> ValueError:
    if kind is bytes or str(kind) == "bytes" or getattr(kind, "kind", "") == "S":
        return InputError(
            "it must hold numbers, booleans or text, got bytes: decode them first, as in "
            "column.str.decode('utf-8') of pandas. gputree.datasets.read_table reads ARFF files "
            "with text."
        )
    return InputError(
        f"it must hold numbers, booleans or text, got {kind}. Convert dates and bytes first, or "
        "leave the column out."
    )
