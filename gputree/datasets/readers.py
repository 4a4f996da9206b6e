"""Tables from files: CSV, Parquet and Arrow, through pyarrow, ARFF and those of C4.5.

Reading keeps the file's own column types; estimators take `Table.columns` as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gputree._texts import hint
from gputree.datasets import delimited
from gputree.datasets.arff import read_arff
from gputree.datasets.c45 import read_c45
from gputree.datasets.conversion import Kinds, convert, listed
from gputree.datasets.damage import told, undamaged
from gputree.datasets.delimited import delimited_batches, open_delimited, read_delimited
from gputree.datasets.dialect import DELIMITERS as MARKS
from gputree.datasets.size import least_bits, require_memory_for_parquet
from gputree.datasets.sources import ARFF, C45, DELIMITERS, PARQUET, Origin, Source, source_of
from gputree.datasets.targets import declared_classes, target_values
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
    """

    columns: pa.Table
    target: NDArray | None
    target_name: str | None
    declared: NDArray | None = None

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
    verbose: bool = False,
) -> Table:
    """Read a CSV, Parquet, Arrow, ARFF or C4.5 file.

    The file has a header and at least one row. Its name ends in .csv, .tsv, .txt (also compressed:
    .gz, .bz2, .zst, .lz4), .parquet, .pq, .arrow, .feather, .arff, or in .data or .test with a
    .names file next to it, as C4.5 has them: the target is the column "class", and "?" is missing.
    Nominal columns of both keep the categories and the order that are declared. An empty cell is a
    missing value; in numeric columns so are the usual spellings of it (NA, NaN, null, ...). Cells
    of .csv are separated by semicolons, tabs or "|" where one of these parts the first rows as it
    does the header, else by commas; where it is no comma, as in .tsv, numbers may have decimal
    commas, and all cells of a column decide this. 007 is the number 7, but in the target and in
    columns of `categorical` it is text, as are all cells of such a column.

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
        Names of columns that hold numbers, booleans among them as 0 and 1, zeros before them of
        no meaning; others may be absent.
    categorical : sequence of str
        Names of columns whose cells are categories: dates and times are text there, the same
        whatever unit a file counts in, and so are the cells of CSV if any is an integer with
        leading zeros. Others keep their types. Names of `text` and `numeric` are what these say;
        others may be absent.
    whole : sequence of str
        Names of columns of categories that are numbers, zeros before them of no meaning: of CSV,
        whole ones beyond 64 bits are not rounded, as they are not in `categorical`. Others may be
        absent.
    missing : sequence of str
        Markers of missing values, such as "?", in addition to empty cells; blanks
        around it do not matter. In columns of numbers, of any format, a number such as "-999" means
        every cell of that value.
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
    source = source_of(path)
    names = [name for name in categorical if name not in numeric]
    codes = names if target is None or target in numeric else [*names, target]
    kinds = Kinds(text, numeric, (), names, whole, missing)
    with told(source):
        table = _read(source, kinds._replace(categorical=codes), verbose)
        _forbid_repeated(source.label, table.column_names)
        if table.num_rows == 0:
            raise InputError(f"{source.label} has a header but no rows.")
        wanted = feature_names(source.label, table.column_names, target, columns, ignore)
        table = table.select([*wanted, *([] if target is None else [target])])
        table = convert(source.label, undamaged(source, table), kinds)
        if target is None:
            return Table(table.select(wanted), None, None)
        values = target_values(source.label, target, table[target])
        return Table(table.select(wanted), values, target, declared_classes(table[target]))


def read_batches(
    path: Origin,
    columns: Sequence[str],
    *,
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    boolean: Sequence[str] = (),
    missing: Sequence[str] = (),
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
    missing, verbose
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
    kinds = Kinds(text, numeric, boolean, missing=missing)
    empty = True
    for batch in rows_of(path, columns, kinds, verbose, batch_bytes or _scan_bytes(path)):
        empty = False
        yield batch
    if empty:
        raise InputError(f"{source_of(path).label} has a header but no rows.")


def labelled_batches(
    path: Origin,
    target: str,
    columns: Sequence[str],
    *,
    text: Sequence[str],
    numeric: Sequence[str],
    missing: Sequence[str] = (),
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[Table]:
    """As `read_batches`, with a target whose cells say in each batch what they are."""
    label, inferred = source_of(path).label, [] if target in text else [target]
    if target in columns:
        raise InputError(f"The target column {target!r} cannot also be a feature column.")
    kinds = Kinds(text, numeric, missing=missing, inferred=inferred)
    empty, batch_bytes = True, batch_bytes or _scan_bytes(path)
    for batch in rows_of(path, [*columns, target], kinds, verbose, batch_bytes):
        empty = False
        yield Table(batch.select(columns), target_values(label, target, batch[target]), target)
    if empty:
        raise InputError(f"{label} has a header but no rows.")


def _scan_bytes(path: Origin) -> int | None:
    """Bytes of a batch of rows that are needed once; None for the usual size."""
    if source_of(path).kind not in DELIMITERS:
        return None
    return min(delimited.SCAN_BYTES, delimited.BATCH_BYTES)


def rows_of(
    path: Origin,
    columns: Sequence[str],
    kinds: Kinds,
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """As `read_batches`, of a file that may have no rows; in batches of the usual size if None."""
    source = source_of(path)
    batch_bytes = delimited.BATCH_BYTES if batch_bytes is None else batch_bytes
    with told(source):
        for batch in _batches(source, columns, kinds, verbose, batch_bytes):
            if batch.num_rows:
                yield batch


def read_names(path: Origin) -> list[str]:
    """Names of the columns of a file, as `read_table` finds them."""
    source = source_of(path)
    if source.kind in (*ARFF, *C45):
        with told(source):
            return list(_read_declared(source, False).column_names)
    with told(source), source.open(False) as file:
        if source.kind in DELIMITERS:
            return open_delimited(source, file).names
        found = pq.ParquetFile(file).schema_arrow if source.kind in PARQUET else None
        return (found or _arrow_reader(file).schema).names


# ------------------------------------------------------------------ reading
def _read(source: Source, kinds: Kinds, verbose: bool) -> pa.Table:
    """The table, its columns of the types that the file has or suggests."""
    if source.kind in DELIMITERS:
        return read_delimited(source, kinds, verbose)
    if source.kind in PARQUET:
        return _read_parquet(source, verbose)
    if source.kind in (*ARFF, *C45):
        return _read_declared(source, verbose, {*kinds.text, *kinds.categorical})
    with source.open(verbose) as file:
        return _arrow_reader(file).read_all()


def _read_parquet(source: Source, verbose: bool) -> pa.Table:
    assert source.path is not None
    require_memory_for_parquet(source.path)
    with source.open(verbose) as file:
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
        _check_header(source.label, table.column_names, wanted)
        yield convert(source.label, table.select(wanted), kinds)
        return
    with source.open(verbose) as file:
        if source.kind in DELIMITERS:
            opened = open_delimited(source, file, kinds.missing)
            _check_header(source.label, opened.names, wanted)
            yield from delimited_batches(source, opened, wanted, kinds, batch_bytes)
            return
        if source.kind in PARQUET:
            batches = _parquet_batches(source, file, wanted, batch_bytes)
        else:
            reader = _arrow_reader(file)
            _check_header(source.label, reader.schema.names, wanted)
            count = getattr(reader, "num_record_batches", None)
            batches = reader if count is None else map(reader.get_batch, range(count))
        for batch in batches:
            table = pa.Table.from_batches([batch])  # pa.table reads buffers, which may lie anywhere
            _check_present(source.label, table.column_names, wanted)
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
    _check_header(source.label, schema.names, wanted)
    row_bytes = sum(least_bits(schema.field(name).type) for name in wanted) / 8
    rows = int(min(max(batch_bytes / max(row_bytes, 1), 1), _BATCH_ROWS))
    yield from parquet.iter_batches(rows, columns=list(wanted), use_threads=not small)


# ------------------------------------------------------------------- checks
def _check_header(label: str, present: list[str], wanted: Sequence[str]) -> None:
    _forbid_repeated(label, present)
    _check_present(label, present, wanted)


def _forbid_repeated(label: str, present: Sequence[str]) -> None:
    if repeated := _repeated(present):
        raise InputError(f"{label} has columns of the same name: {listed(repeated)}.")


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def feature_names(
    label: str,
    present: list[str],
    target: str | None,
    columns: Sequence[str] | None,
    ignore: Sequence[str],
) -> list[str]:
    """Names of the feature columns."""
    wanted = [name for name in present if name != target] if columns is None else list(columns)
    _check_present(label, present, [*wanted, *ignore, *([] if target is None else [target])])
    if target in wanted:
        raise InputError(f"The target column {target!r} cannot also be a feature column.")
    if repeated := _repeated(wanted):
        raise InputError(f"{listed(repeated)} is listed twice in columns.")
    wanted = [name for name in wanted if name not in ignore]
    if not wanted:
        raise InputError(
            f"{label} has no feature columns other than the target and those left out."
        )
    return wanted


def _check_present(label: str, present: list[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        column = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{label} has no {column} {listed(missing)}.{hint(missing[0], present)} Its columns "
            f"are: {listed(present)}.{_separator_hint(present)}"
        )


def _separator_hint(present: list[str]) -> str:
    """A guess at what separates the names of a file that seems to have one column."""
    found = [mark for mark in MARKS if len(present) == 1 and mark in present[0]]
    if not found:
        return ""
    return (
        f" The separator seems to be {found[0]!r}; it must be a tab in .tsv, and in .csv part all "
        "rows alike."
    )
