"""Tables from files: CSV, Parquet and Arrow through pyarrow, ARFF, and the files of C4.5.

Reading keeps the file's own column types; estimators take `Table.columns` as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gputree.base.dtypes import Weight
from gputree.datasets.conversion import Kinds, convert, is_number_type
from gputree.datasets.csv_head import Opened
from gputree.datasets.file_format import INFERRED, WEIGHTS, FileFormat, Guess, warn_of
from gputree.datasets.first_rows import (
    feature_names,
    forbid_repeated,
    guess_of_index,
    guesses_of_counters,
    guesses_of_first_rows,
    index_columns,
    pandas_index,
)
from gputree.datasets.formats import read_whole, rows_of, scan_bytes, schema_of
from gputree.datasets.parser_errors import naming_file, undamaged
from gputree.datasets.sources import Origin, Source, source_of
from gputree.datasets.targets import (
    check_missing_target,
    declared_classes,
    has_target,
    target_values,
)
from gputree.datasets.words import (
    guesses_of_classes,
    guesses_of_integers,
    guesses_of_quotes,
    guesses_of_text,
)
from gputree.errors import InputError


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
    declared : array of str or None
        The classes that the type of the target column declares: nominal in ARFF, a dictionary of
        text in Parquet and Arrow files.
    weight : ndarray of shape (n_rows,) or None
        Weights of the rows, of an ARFF file that has some.
    left_out : tuple of str
        Columns that name the rows, such as the index of a data frame of pandas.
    n_dropped : int
        Rows without a target that were dropped.
    units : mapping of str to str or None
        Units of the columns that `FileFormat.units` names.
    """

    columns: pa.Table
    target: NDArray | None
    target_name: str | None
    declared: NDArray | None = None
    weight: Weight = None
    left_out: tuple[str, ...] = ()
    n_dropped: int = 0
    units: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the feature columns."""
        return self.columns.column_names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.num_rows


def read_table(
    path: Origin,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    whole: Sequence[str] = (),
    missing: Sequence[str] = (),
    missing_target: str = "error",
    file_format: FileFormat = INFERRED,
    carried: Sequence[str] = (),
    verbose: bool = False,
) -> Table:
    """Read a CSV, Parquet, Arrow, ARFF or C4.5 file.

    The file has a header, unless `file_format` says otherwise, and at least one row. Its name ends
    in .csv, .tsv, .txt (also compressed: .gz, .bz2, .zst, .lz4, .xz, or alone in a .zip), .parquet,
    .pq, .arrow, .feather, .arff, or in .data or .test with a .names file next to it, as C4.5 has
    them: the target is the column "class", and "?" is missing. Nominal columns of both keep the
    categories and the order that are declared. An empty cell is a missing value; in numeric columns
    so are the usual spellings of it (NA, NaN, null, ...). Cells of .csv are separated by
    semicolons, tabs or "|" where one of these splits the first rows like the header, else by
    commas; where it is no comma, as in .tsv, numbers may have decimal commas, and all cells of a
    column decide this. 007 is the number 7, but in the target and in columns of `categorical` it is
    text, as are all cells of such a column.

    Guesses that may be wrong are warnings (`ReadingWarning`), each with the parameter that says
    otherwise: a header that looks like a row of values, a column of text that is nearly one of
    numbers, thousands that may be decimals, leading zeros, a column that counts the rows. Columns
    that name the rows are left out: the index of pandas in Parquet, and columns without a name
    whose cells all differ, as R and pandas write them to CSV.

    Parameters
    ----------
    path : str, path-like or binary file
        A binary file, such as ``sys.stdin.buffer``, holds CSV.
    target : str or None
        Name of the target column; None reads a table without one.
    columns : sequence of str or None
        Names of the feature columns, in the order wanted; None takes all columns but the target.
    ignore : sequence of str
        Names of columns to leave out.
    text : sequence of str
        Names of columns that hold text, whatever it looks like; others may be absent.
    numeric : sequence of str
        Names of columns that hold numbers, and booleans as 0 and 1; leading zeros have no
        meaning. Others may be absent.
    categorical : sequence of str
        Names of columns whose cells are categories: dates and times are text there, the same
        whatever unit a file counts in, and so are the cells of CSV if any is an integer with
        leading zeros. Others keep their types. Names of `text` and `numeric` are what these say;
        others may be absent.
    whole : sequence of str
        Names of columns of categories that are numbers, whose leading zeros have no meaning.
        Integers of CSV beyond 64 bits are not rounded there, nor in `categorical`. Others may be
        absent.
    missing : sequence of str
        Markers of missing values, such as "?", in addition to empty cells; blanks
        around it do not matter. In columns of numbers, of any format, a number such as "-999" means
        every cell of that value.
    missing_target : {"error", "drop"}
        Rows without a target are an error, or are dropped, as Weka's trees do.
    file_format : FileFormat
        How the file is written, where neither its name nor its first rows say so.
    carried : sequence of str
        Names of columns whose cells are not looked at: text in CSV, of the file's types elsewhere.
        Others may be absent.
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
        The file cannot be parsed, is empty, repeats a column name, lacks a requested column, has
        text in a column of `numeric`, or has missing or infinite values in the target.
    """
    check_missing_target(missing_target)
    names = [name for name in categorical if name not in numeric]
    return _read(
        source_of(path, file_format),
        _Wanted(target, columns, ignore, missing_target),
        Kinds(text, numeric, (), names, whole, missing, carried),
        file_format,
        verbose,
    )


class _Wanted(NamedTuple):
    """Target and features that are wanted of a table, as `read_table` documents them."""

    target: str | None
    columns: Sequence[str] | None
    ignore: Sequence[str]
    missing_target: str


def _read(source: Source, wanted: _Wanted, kinds: Kinds, form: FileFormat, verbose: bool) -> Table:
    """Read a table, and warn of what is guessed about it."""
    label, target = source.label, wanted.target
    targets = [] if target is None else [target]
    codes = [*kinds.categorical, *(name for name in targets if name not in kinds.numeric)]
    with naming_file(source):
        table, opened, guesses = read_whole(source, kinds._replace(categorical=codes), verbose)
        forbid_repeated(label, table.column_names, opened)
        if table.num_rows == 0:
            raise InputError(f"{label} has a header but no rows.")
        row_weights = None
        if WEIGHTS in table.column_names:  # of ARFF
            row_weights, table = table[WEIGHTS].to_numpy(), table.drop_columns([WEIGHTS])
        left_out = [] if wanted.columns is not None else index_columns(table)
        left_out = [name for name in left_out if name != target]
        features = feature_names(
            label, table.column_names, target, wanted.columns, [*wanted.ignore, *left_out]
        )
        declared = pandas_index(table.schema)
        of_index = [
            guess_of_index(name, name in declared, table[name].null_count == table.num_rows)
            for name in left_out
            if name not in wanted.ignore
        ]
        table = table.select([*features, *targets])
        table = convert(label, undamaged(source, table), kinds)
    of_cells = [guess for guess in guesses if guess.column in features]
    of_columns = _guesses_about(table.select(features), opened, kinds, form)
    warn_of(label, [*of_index, *of_cells, *of_columns])
    units = opened.dialect.units if opened else {}
    found = Table(
        table.select(features), None, None, None, row_weights, tuple(left_out), units=units
    )
    if target is None:
        return found
    return _with_target(label, found, target, table[target], wanted.missing_target)


def _with_target(
    label: str, table: Table, name: str, cells: pa.ChunkedArray, missing_target: str
) -> Table:
    """The table with its target; rows without one are an error, or dropped."""
    if missing_target == "drop":
        present = has_target(cells)
        cells = cells.filter(present)
        if not len(cells):
            raise InputError(f"The target column {name!r} of {label} has no value in any row.")
        weight = None if table.weight is None else table.weight[np.asarray(present)]
        table = replace(
            table,
            columns=table.columns.filter(present),
            weight=weight,
            n_dropped=table.n_rows - len(cells),
        )
    values = target_values(label, name, cells)
    warn_of(label, guesses_of_classes(name, values))
    warn_of(label, guesses_of_quotes(pa.table({name: cells})))
    return replace(table, target=values, target_name=name, declared=declared_classes(cells))


def _guesses_about(
    columns: pa.Table, opened: Opened | None, kinds: Kinds, form: FileFormat
) -> list[Guess]:
    """Guesses about the feature columns of a table; those with a given kind are none."""
    sure = {*kinds.text, *kinds.numeric, *kinds.categorical, *kinds.whole}
    open_ = columns.drop_columns([name for name in columns.column_names if name in sure])
    texts = guesses_of_text(open_, opened is not None)
    found = [*guesses_of_counters(open_), *guesses_of_integers(open_), *texts]
    if opened is not None:
        numbers = [field.name for field in columns.schema if is_number_type(field.type)]
        first = guesses_of_first_rows(opened, numbers, sure, form.decimal is not None)
        found = [*first, *found]
    return found


def read_batches(
    path: Origin,
    columns: Sequence[str],
    *,
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    boolean: Sequence[str] = (),
    missing: Sequence[str] = (),
    file_format: FileFormat = INFERRED,
    carried: Sequence[str] = (),
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """Read some columns of a file in batches of rows, which are small compared with the memory.

    Parameters
    ----------
    path : str, path-like or binary file
        As in `read_table`.
    columns : sequence of str
        Names of columns, in the order wanted.
    text, numeric, boolean : sequence of str
        Which of them hold text, which numbers, and which booleans (of CSV alone). In
        CSV every column has to be listed: the types of later batches are unknown.
    missing, carried, file_format, verbose
        As in `read_table`.
    batch_bytes : int, default=None
        As in `open_batches`.

    Yields
    ------
    pyarrow.Table
        With one row at least.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_table`; what is wrong further down is found when it is reached.
    """
    source, empty = source_of(path, file_format), True
    kinds = Kinds(text, numeric, boolean, missing=missing, carried=carried)
    for batch in rows_of(source, columns, kinds, verbose, batch_bytes or scan_bytes(source)):
        empty = False
        yield batch
    if empty:
        raise InputError(f"{source.label} has a header but no rows.")


def labelled_batches(
    path: Origin,
    target: str,
    columns: Sequence[str],
    *,
    text: Sequence[str],
    numeric: Sequence[str],
    missing: Sequence[str] = (),
    missing_target: str = "error",
    file_format: FileFormat = INFERRED,
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[Table]:
    """Read batches as `read_batches` does, with a target typed by its cells in each batch.

    Where rows without a target are dropped, a batch may be left without rows.
    """
    source = source_of(path, file_format)
    label, inferred = source.label, [] if target in text else [target]
    if target in columns:
        raise InputError(f"The target column {target!r} cannot also be a feature column.")
    kinds = Kinds(text, numeric, missing=missing, inferred=inferred)
    n_rows, n_dropped = 0, 0
    batch_bytes = batch_bytes or scan_bytes(source)
    for batch in rows_of(source, [*columns, target], kinds, verbose, batch_bytes):
        kept = batch.filter(has_target(batch[target])) if missing_target == "drop" else batch
        dropped = batch.num_rows - kept.num_rows
        n_rows, n_dropped = n_rows + kept.num_rows, n_dropped + dropped
        values = target_values(label, target, kept[target], is_part=True)
        yield Table(kept.select(columns), values, target, n_dropped=dropped)
    if n_dropped and not n_rows:
        raise InputError(f"The target column {target!r} of {label} has no value in any row.")
    if not n_rows:
        raise InputError(f"{label} has a header but no rows.")


def read_names(path: Origin, form: FileFormat = INFERRED) -> list[str]:
    """Names of the columns of a file, as `read_table` finds them; without weights of rows."""
    return schema_of(source_of(path, form)).names
