"""Tables from files: CSV and Parquet, through pyarrow.

Reading keeps the file's own column types; estimators take `Table.columns` as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gputree.datasets.counted import opened
from gputree.datasets.size import require_memory_for_csv, require_memory_for_parquet
from gputree.tree import Task

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CLASSES_INFERRED = 20  # digits and ratings are classes, counts and years are not

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHER_DELIMITERS = (";", "\t", "|", ",")
_PARQUET = (".parquet", ".pq")
_COMPRESSION = (".gz", ".bz2", ".zst", ".lz4")


@dataclass(frozen=True)
class Table:
    """Columns of a file, with or without a target.

    Attributes
    ----------
    columns : pyarrow.Table
        The feature columns in their own types; missing cells are null.
    target : ndarray of shape (n_rows,) or None
        Booleans, integers and floats as they are, everything else as strings.
    target_name : str or None
    """

    columns: pa.Table
    target: NDArray | None
    target_name: str | None

    @property
    def names(self) -> list[str]:
        """Names of the feature columns."""
        return self.columns.column_names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.num_rows


def read_table(
    path: str | PathLike[str],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    verbose: bool = False,
) -> Table:
    """Read a CSV or Parquet file.

    The file has a header and at least one row. Its name ends in .csv, .tsv
    (either also compressed: .gz, .bz2, .zst, .lz4), .parquet or .pq. An empty
    cell is a missing value; in numeric columns so are the usual spellings of
    it (NA, NaN, null, ...).

    Parameters
    ----------
    path : str or path-like
    target : str or None
        Name of the target column; None reads a table without one.
    columns : sequence of str or None
        Names of the feature columns, in the order wanted; None takes all
        columns but the target.
    ignore : sequence of str
        Names of columns to leave out.
    text : sequence of str
        Names of columns that a CSV file holds as text, whatever it looks like; others
        may be absent.
    verbose : bool
        Show the bytes that are read, on a terminal or in a notebook, while it takes a while.

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
        There is no such file.
    MemoryError
        The table would clearly exceed the memory that is available.
    ValueError
        The file cannot be parsed, is empty, repeats a column name, lacks a
        column asked for, or has missing or infinite values in the target.
    """
    path = Path(fspath(path))
    table = _read(path, text, verbose)
    if repeated := _repeated(table.column_names):
        raise ValueError(f"{path} has columns of the same name: {_listed(repeated)}.")
    if table.num_rows == 0:
        raise ValueError(f"{path} has a header but no rows.")
    wanted = _wanted(path, table.column_names, target, columns, ignore)
    values = None if target is None else _target(path, target, table[target])
    return Table(table.select(wanted), values, target)


def infer_task(target: NDArray) -> Task:
    """Tell classification from regression by the target's values.

    Strings and booleans are classes. Numbers with fractional parts are a
    regression target. Whole numbers are classes if there are at most 20
    different ones and each occurs twice or more on average; otherwise they are
    a regression target.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)

    Returns
    -------
    "classification" or "regression"
    """
    target = np.asarray(target)
    if target.dtype.kind not in "iuf":
        return "classification"
    if target.dtype.kind == "f" and not np.array_equal(target, np.trunc(target)):
        return "regression"
    n_distinct = np.unique(target).size
    few = n_distinct <= MAX_CLASSES_INFERRED and 2 * n_distinct <= target.size
    return "classification" if few else "regression"


# ------------------------------------------------------------------ reading
def _read(path: Path, text: Sequence[str], verbose: bool) -> pa.Table:
    import pyarrow as pa

    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSION]
    kind = suffixes[-1] if suffixes else ""
    if kind not in _DELIMITERS and kind not in _PARQUET:
        raise ValueError(
            f"Cannot tell the format of {path}. Its name must end in .csv, .tsv (or either with "
            f"{', '.join(_COMPRESSION)}), .parquet or .pq."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    try:
        if kind in _PARQUET:
            table = _read_parquet(path, verbose)
        else:
            table = _read_csv(path, _DELIMITERS[kind], text, verbose)
        _ = table.column_names  # decoded only now: a header may not be UTF-8
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text, as it must be: {error}.") from error
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"Cannot read {path}: {error}") from error
    return table


def _read_parquet(path: Path, verbose: bool) -> pa.Table:
    import pyarrow.parquet as pq

    require_memory_for_parquet(path)
    with opened(path, verbose) as file:
        return pq.read_table(file)


def _read_csv(path: Path, delimiter: str, text: Sequence[str], verbose: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as pc

    compressed = path.suffix.lower() in _COMPRESSION
    codec = pa.Codec.detect(path.name.lower()).name if compressed else None
    require_memory_for_csv(path, delimiter, codec)
    with opened(path, verbose, codec) as file:
        table = pc.read_csv(
            file,
            parse_options=pc.ParseOptions(delimiter=delimiter),
            convert_options=pc.ConvertOptions(column_types=dict.fromkeys(text, pa.string())),
        )
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:  # what the reader makes of bytes that are not UTF-8
        raise ValueError(f"{path} is not UTF-8 text, as it must be: see {_listed(binary)}.")
    for j, column in enumerate(table.columns):
        table = table.set_column(j, table.field(j), _empty_to_null(column))
    return table


def _empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # In a column of text "NA" and "None" may well be categories; only "" is missing.
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


# ------------------------------------------------------------------- checks
def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _wanted(
    path: Path,
    present: list[str],
    target: str | None,
    columns: Sequence[str] | None,
    ignore: Sequence[str],
) -> list[str]:
    """Names of the feature columns."""
    wanted = [name for name in present if name != target] if columns is None else list(columns)
    _check_present(path, present, [*wanted, *ignore, *([] if target is None else [target])])
    if target in wanted:
        raise ValueError(f"The target column {target!r} cannot also be a feature column.")
    if repeated := _repeated(wanted):
        raise ValueError(f"{_listed(repeated)} is asked for twice in columns.")
    wanted = [name for name in wanted if name not in ignore]
    if not wanted:
        raise ValueError(f"{path} has no feature columns beside the target and those left out.")
    return wanted


def _check_present(path: Path, present: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        column = "column" if len(missing) == 1 else "columns"
        raise ValueError(
            f"{path} has no {column} {_listed(missing)}. Its columns are: {_listed(present)}."
            f"{_separator_hint(present)}"
        )


def _separator_hint(present: list[str]) -> str:
    """A guess at what separates the names of a file that seems to have one column."""
    found = [mark for mark in _OTHER_DELIMITERS if len(present) == 1 and mark in present[0]]
    if not found:
        return ""
    return f" The separator seems to be {found[0]!r}; it must be ',' in .csv and a tab in .tsv."


def _listed(names: Iterable[str]) -> str:
    return _shortened([repr(name) for name in names])


def _shortened(items: list[str], most: int = 30) -> str:
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


# ------------------------------------------------------------------- target
def _target(path: Path, name: str, column: pa.ChunkedArray) -> NDArray:
    import pyarrow as pa

    if column.null_count:
        raise ValueError(_missing_target(path, name, column.null_count))
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    types = pa.types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    if not number and not types.is_boolean(column.type):
        return column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(np.str_)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        missing = int(np.count_nonzero(np.isnan(values)))
        if missing:
            raise ValueError(_missing_target(path, name, missing))
        raise ValueError(f"The target column {name!r} of {path} holds infinite values.")
    return values


def _missing_target(path: Path, name: str, count: int) -> str:
    rows = "row" if count == 1 else "rows"
    return f"The target column {name!r} of {path} has {count} missing {rows}. Remove them first."
