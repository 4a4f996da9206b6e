"""Tables from files: CSV, Parquet and Arrow through pyarrow, ARFF, and the files of C4.5.

Reading keeps the file's own column types; estimators take `Table.columns` as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gputree.datasets import delimited
from gputree.datasets.arff import WEIGHTS, read_arff
from gputree.datasets.c45 import read_c45
from gputree.datasets.column_names import (
    check_header,
    check_present,
    feature_names,
    forbid_repeated,
)
from gputree.datasets.conversion import Kinds, convert
from gputree.datasets.csv_head import Opened, open_delimited
from gputree.datasets.damage import told, undamaged
from gputree.datasets.delimited import delimited_batches, read_delimited
from gputree.datasets.file_format import INFERRED, FileFormat
from gputree.datasets.guesses import Guess, warn_of
from gputree.datasets.row_names import (
    guess_of_index,
    index_columns,
    pandas_index,
)
from gputree.datasets.size import least_bits, require_memory_for_parquet
from gputree.datasets.sources import ARFF, C45, DELIMITERS, PARQUET, Origin, Source, source_of
from gputree.datasets.table_guesses import guesses_about
from gputree.datasets.targets import (
    check_missing_target,
    declared_classes,
    has_target,
    target_values,
)
from gputree.datasets.words import guesses_of_classes, guesses_of_quotes
from gputree.errors import InputError

_BATCH_ROWS = 1 << 16  # rows of a batch of Parquet, at most

# Bytes of a column of a Parquet file that are read at once, at most.
_BUFFER_BYTES = 1 << 20


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
    weight: NDArray[np.float64] | None = None
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
    source = source_of(path, file_format)
    names = [name for name in categorical if name not in numeric]
    codes = names if target is None or target in numeric else [*names, target]
    kinds = Kinds(text, numeric, (), names, whole, missing, carried)
    with told(source):
        table, opened, guesses = _read(source, kinds._replace(categorical=codes), verbose)
        forbid_repeated(source.label, table.column_names, opened)
        if table.num_rows == 0:
            raise InputError(f"{source.label} has a header but no rows.")
        row_weights, table = _row_weights(table)
        left_out = [name for name in index_columns(table) if columns is None and name != target]
        wanted = feature_names(
            source.label, table.column_names, target, columns, [*ignore, *left_out]
        )
        declared = pandas_index(table.schema)
        empty = {name for name in left_out if table[name].null_count == table.num_rows}
        table = table.select([*wanted, *([] if target is None else [target])])
        table = convert(source.label, undamaged(source, table), kinds)
    warn_of(
        source.label,
        [
            *(
                guess_of_index(name, name in declared, name in empty)
                for name in left_out
                if name not in ignore
            ),
            *(guess for guess in guesses if guess.column in wanted),
            *guesses_about(table.select(wanted), opened, kinds, file_format),
        ],
    )
    units = opened.dialect.units if opened else {}
    if target is None:
        return Table(
            table.select(wanted), None, None, None, row_weights, tuple(left_out), units=units
        )
    n_dropped = 0
    if missing_target == "drop":
        known = has_target(table[target])
        n_dropped = table.num_rows - pc.sum(known).as_py()
        row_weights = None if row_weights is None else row_weights[np.asarray(known)]
        table = table.filter(known)
        if not table.num_rows:
            raise InputError(
                f"The target column {target!r} of {source.label} has no value in any row."
            )
    values = target_values(source.label, target, table[target])
    warn_of(source.label, guesses_of_classes(target, values))
    warn_of(source.label, guesses_of_quotes(table.select([target])))
    return Table(
        table.select(wanted),
        values,
        target,
        declared_classes(table[target]),
        row_weights,
        tuple(left_out),
        n_dropped,
        units,
    )


def _row_weights(table: pa.Table) -> tuple[NDArray[np.float64] | None, pa.Table]:
    """Weights of rows that a file of ARFF has, and the table without them."""
    if WEIGHTS not in table.column_names:
        return None, table
    return table[WEIGHTS].to_numpy(), table.drop_columns([WEIGHTS])


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
    kinds = Kinds(text, numeric, boolean, missing=missing, carried=carried)
    empty = True
    source = source_of(path, file_format)
    for batch in rows_of(source, columns, kinds, verbose, batch_bytes or _scan_bytes(source)):
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
    batch_bytes = batch_bytes or _scan_bytes(source)
    for batch in rows_of(source, [*columns, target], kinds, verbose, batch_bytes):
        known = batch.filter(has_target(batch[target])) if missing_target == "drop" else batch
        dropped = batch.num_rows - known.num_rows
        n_rows, n_dropped = n_rows + known.num_rows, n_dropped + dropped
        values = target_values(label, target, known[target], is_part=True)
        yield Table(known.select(columns), values, target, n_dropped=dropped)
    if n_dropped and not n_rows:
        raise InputError(f"The target column {target!r} of {label} has no value in any row.")
    if not n_rows:
        raise InputError(f"{label} has a header but no rows.")


def _scan_bytes(source: Source) -> int | None:
    """Bytes of a batch of rows that are needed once; None for the usual size."""
    if source.kind not in DELIMITERS:
        return None
    return min(delimited.SCAN_BYTES, delimited.BATCH_BYTES)


def rows_of(
    source: Source,
    columns: Sequence[str],
    kinds: Kinds,
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """Read as `read_batches`, also a file without rows; batches have the usual size if None."""
    batch_bytes = delimited.BATCH_BYTES if batch_bytes is None else batch_bytes
    with told(source):
        for batch in _batches(source, columns, kinds, verbose, batch_bytes):
            if batch.num_rows:
                yield batch


def read_names(path: Origin, form: FileFormat = INFERRED) -> list[str]:
    """Names of the columns of a file, as `read_table` finds them; without weights of rows."""
    return schema_of(source_of(path, form)).names


def schema_of(source: Source) -> pa.Schema:
    """Names of the columns of a file, with their types where it declares them."""
    if source.kind in (*ARFF, *C45):
        with told(source):
            return _read_declared(source, False).schema
    with told(source), source.open(False) as file:
        if source.kind in DELIMITERS:
            return pa.schema([(name, pa.null()) for name in open_delimited(source, file).names])
        found = pq.ParquetFile(file).schema_arrow if source.kind in PARQUET else None
        return found or _arrow_reader(file).schema


# ------------------------------------------------------------------ reading
def _read(
    source: Source, kinds: Kinds, verbose: bool
) -> tuple[pa.Table, Opened | None, list[Guess]]:
    """The table, its columns of the types that the file has or suggests; what CSV shows."""
    if source.kind in DELIMITERS:
        return read_delimited(source, kinds, verbose)
    if source.kind in PARQUET:
        return _read_parquet(source, verbose), None, []
    if source.kind in (*ARFF, *C45):
        return _read_declared(source, verbose, {*kinds.text, *kinds.categorical}), None, []
    with source.open(verbose) as file:
        return _arrow_reader(file).read_all(), None, []


def _read_parquet(source: Source, verbose: bool) -> pa.Table:
    assert source.path is not None
    require_memory_for_parquet(source.path)
    with source.open(verbose) as file:
        forbid_repeated(source.label, pq.ParquetFile(file).schema_arrow.names)
        return pq.read_table(file)


def _read_declared(source: Source, verbose: bool, text: Collection[str] = ()) -> pa.Table:
    """The table of a file whose columns are declared."""
    with source.open(verbose) as file:
        content = file.read().decode("utf-8-sig")
    if source.kind in C45:
        assert source.path is not None
        return read_c45(source.path, content)
    return read_arff(source.label, content, text)


def _arrow_reader(file: Any) -> Any:
    """Reader of an Arrow file (also named Feather), of a table that may have been streamed."""
    head = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if head == b"ARROW1" else pa.ipc.open_stream(file)


def _batches(
    source: Source, wanted: Sequence[str], kinds: Kinds, verbose: bool, batch_bytes: int
) -> Iterator[pa.Table]:
    if source.kind in (*ARFF, *C45):
        table = _read_declared(source, verbose, {*kinds.text, *kinds.categorical})
        check_header(source.label, table.column_names, wanted)
        yield convert(source.label, table.select(wanted), kinds)
        return
    with source.open(verbose) as file:
        if source.kind in DELIMITERS:
            opened = open_delimited(source, file, tuple(kinds.missing))
            check_header(source.label, opened.names, wanted)
            yield from delimited_batches(source, opened, wanted, kinds, batch_bytes)
            return
        if source.kind in PARQUET:
            batches = _parquet_batches(source, file, wanted, batch_bytes)
        else:
            reader = _arrow_reader(file)
            check_header(source.label, reader.schema.names, wanted)
            count = getattr(reader, "num_record_batches", None)
            batches = reader if count is None else map(reader.get_batch, range(count))
        for batch in batches:
            table = pa.Table.from_batches([batch])  # pa.table reads buffers, which may lie anywhere
            check_present(source.label, table.column_names, wanted)
            yield convert(source.label, undamaged(source, table.select(wanted)), kinds)


def _parquet_batches(
    source: Source, file: Any, wanted: Sequence[str], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file, read page by page: a group of rows may be most of a file."""
    # of smaller batches, each thread's memory counts
    small = batch_bytes < delimited.BATCH_BYTES
    size = min(_BUFFER_BYTES, batch_bytes >> 4)
    parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=size)
    schema = parquet.schema_arrow
    check_header(source.label, schema.names, wanted)
    row_bytes = sum(least_bits(schema.field(name).type) for name in wanted) / 8
    rows = int(min(max(batch_bytes / max(row_bytes, 1), 1), _BATCH_ROWS))
    yield from parquet.iter_batches(rows, columns=list(wanted), use_threads=not small)
