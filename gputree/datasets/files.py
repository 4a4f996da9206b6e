"""Tables in files that together are larger than memory: batches of rows, read repeatedly."""

import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gputree.datasets.conversion import Kinds, listed
from gputree.datasets.csv_head import Opened, open_delimited
from gputree.datasets.delimited import column_types
from gputree.datasets.file_format import INFERRED, WEIGHTS, FileFormat, warn_of
from gputree.datasets.first_rows import (
    feature_names,
    guess_of_index,
    guesses_of_counters,
    guesses_of_first_rows,
    index_columns,
    pandas_index,
)
from gputree.datasets.formats import rows_of, schema_of
from gputree.datasets.parser_errors import naming_file
from gputree.datasets.sources import C45, DELIMITERS, Source, least_rows, source_of
from gputree.datasets.targets import check_missing_target, has_target, target_values
from gputree.datasets.words import guesses_of_integers
from gputree.errors import InputError


class FileBatches:
    """Batches of the rows of files, for `gputree.CodedTable.from_batches`: see `open_batches`.

    Attributes
    ----------
    files : list of Path
    names : list of str
        Of the feature columns.
    target_name : str or None
    n_bytes : int
        Of all files.
    left_out : tuple of str
        Columns that name the rows, see `read_table`.
    units : mapping of str to str or None
        The unit of each column of numbers that has one.
    n_dropped : int
        Rows without a target, which were dropped when the batches were last read.
    """

    def __init__(
        self,
        files: list[Path],
        target: str | None,
        names: list[str],
        kinds: Kinds,
        valueless: Collection[str],
        batch_bytes: int | None,
        missing_target: str,
        file_format: FileFormat,
        left_out: Sequence[str],
        units: Mapping[str, str | None],
    ) -> None:
        self._batch_bytes, self._missing_target = batch_bytes, missing_target
        self._form, self.left_out, self.units = file_format, tuple(left_out), units
        self.files, self.target_name, self.names, self.n_dropped = files, target, names, 0
        self._kinds, self._valueless = kinds, valueless
        self._seen = [_state(path) for path in files]
        self.n_bytes = sum(size for size, _ in self._seen)

    def least_rows(self) -> int:
        """A lower bound of the number of rows of all files, without reading them."""
        return sum(least_rows(path, self._form) for path in self.files)

    def __iter__(self) -> Iterator[pa.Table | tuple[pa.Table, NDArray[Any]]]:
        wanted = [*self.names, *([] if self.target_name is None else [self.target_name])]
        empty, self.n_dropped = True, 0
        for path, seen in zip(self.files, self._seen, strict=True):
            source = source_of(path, self._form)
            for batch in rows_of(source, wanted, self._kinds, batch_bytes=self._batch_bytes):
                empty = False
                if _state(path) != seen:
                    raise InputError(f"{path} changed while it was read.")
                if self.target_name is not None:
                    batch = self._with_target(batch)
                columns = self._untyped(batch.select(self.names))
                if self.target_name is None:
                    yield columns
                elif columns.num_rows:
                    y = batch[self.target_name]
                    yield columns, target_values(str(path), self.target_name, y, True)
        pa.default_memory_pool().release_unused()
        if empty:
            others = len(self.files) - 1
            more = f", and {others} other files have none" if others else ""
            raise InputError(f"{self.files[0]} has a header but no rows{more}.")

    def _with_target(self, batch: pa.Table) -> pa.Table:
        """The rows that have a target, where others are to be dropped."""
        if self._missing_target == "error":
            return batch
        kept = batch.filter(has_target(batch[self.target_name]))
        self.n_dropped += batch.num_rows - kept.num_rows
        return kept

    def _untyped(self, columns: pa.Table) -> pa.Table:
        """The table with Arrow's null type for columns without a value in any file."""
        for name in self._valueless:
            if columns[name].null_count == columns.num_rows:
                j = columns.column_names.index(name)
                columns = columns.set_column(j, name, pa.nulls(columns.num_rows))
        return columns


def open_batches(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    missing: Sequence[str] = (),
    missing_target: str = "error",
    file_format: FileFormat = INFERRED,
    batch_bytes: int | None = None,
) -> FileBatches:
    """Open files that are larger than memory together, to be read batch by batch.

    Parameters
    ----------
    paths : str, path-like or sequence of them
        A CSV, Parquet or Arrow file as in `read_table`, a pattern such as ``"data/*.parquet"``, a
        folder of such files, or a list of files; in the order of their names, or of the list.
        All have the columns of the first; files without rows are skipped.
    target : str or None
        Name of the target column; batches are pairs (table, target) then, else tables.
    columns, ignore, text, numeric, categorical, missing
        As in `read_table`. In CSV, whether a column that is not listed as text or numeric has
        numbers, booleans or text is inferred from the beginning of the first file that has a value
        in it; a cell further down that does not fit is an error. List a target in `numeric` if it
        begins with integers and has fractions further down. Guesses about the first rows of the
        first file are warnings.
    missing_target, file_format
        As in `read_table`.
    batch_bytes : int, default=None
        Bytes of CSV text in a batch, which hold a row at least, or of the cells of Parquet; None
        for 16 MiB. Below that, one thread reads. While a Parquet file is read, its pages take up to
        about 4 MB a column.

    Returns
    -------
    FileBatches
        Can be iterated repeatedly; batches are pyarrow tables of `batch_bytes`, of Parquet of
        65,536 rows at most, or as an Arrow file has them.

    Raises
    ------
    FileNotFoundError
        There is no such file, or none of that pattern.
    ValueError
        A file cannot be read or lacks a column; while reading, too, and then also if a file
        changes.

    Examples
    --------
    >>> from gputree import CodedTable, DecisionTreeClassifier
    >>> from gputree.datasets import open_batches
    >>> table = CodedTable.from_batches(
    ...     open_batches("data/*.parquet", target="y")
    ... )  # doctest: +SKIP
    >>> tree = DecisionTreeClassifier().fit(table, table.target)  # doctest: +SKIP
    """
    check_missing_target(missing_target)
    listed_files = list_files(paths)
    # without those that hold nothing at all, if any hold something
    files = [path for path in listed_files if not path.exists() or path.stat().st_size]
    files = files or listed_files
    sources = [source_of(path, file_format) for path in files]
    first = sources[0]
    if first.is_stream:
        raise InputError(f"{first.label} can be read once only, and batches are read twice.")
    schema = _schema_of_batches(first)
    left_out = [name for name in pandas_index(schema) if columns is None and name != target]
    names = feature_names(first.label, schema.names, target, columns, [*ignore, *left_out])
    for source in sources[1:]:
        feature_names(source.label, _schema_of_batches(source).names, target, names, ())
    codes = {*categorical, *([] if target is None else [target])}.difference(text, numeric)
    given = Kinds([*text], [*numeric], (), sorted(codes), (), [*missing])
    kinds, valueless = _with_inferred(sources, names, target, given)
    units: Mapping[str, str | None] = {}
    if first.kind in DELIMITERS:
        with naming_file(first), first.open(False) as file:
            opened = open_delimited(first, file, tuple(missing))
        units = opened.dialect.units
        file_format = file_format._replace(units=units)
        index = _look_at_first_rows(first, opened, names, given, kinds, columns is None, valueless)
        names = feature_names(first.label, names, None, None, index)
        left_out += index
    warn_of(
        first.label,
        [
            guess_of_index(name, True)
            for name in pandas_index(schema)
            if name in left_out and name not in ignore
        ],
    )
    return FileBatches(
        files,
        target,
        names,
        kinds,
        valueless.intersection(names),
        batch_bytes,
        missing_target,
        file_format,
        left_out,
        units,
    )


def _schema_of_batches(source: Source) -> pa.Schema:
    """The schema of a file, which must not have weights of rows."""
    schema = schema_of(source)
    if WEIGHTS in schema.names:
        raise InputError(
            f"{source.label} has weights of rows, which are read of one file in memory alone."
        )
    return schema


def _look_at_first_rows(
    source: Source,
    opened: Opened,
    names: list[str],
    given: Kinds,
    kinds: Kinds,
    is_open: bool,
    valueless: Collection[str],
) -> list[str]:
    """Warn of guesses about a CSV file; the columns that name its rows, or hold nothing."""
    sure = {*given.text, *given.numeric, *given.categorical}
    cells = {
        name: [row[place] or None for row in opened.rows if place < len(row)]
        for place, name in enumerate(opened.names)
        if name in names
    }
    text = pa.table({name: pa.array(words, pa.string()) for name, words in cells.items()})
    index = index_columns(text) if is_open else []
    empty = {name for name in index if text[name].null_count == text.num_rows}
    index = [name for name in index if name in valueless or name not in empty]
    numbers = [name for name in kinds.numeric if name not in index]
    whole = _whole(text, [name for name in numbers if name not in sure])
    is_given = source.form.decimal is not None
    warn_of(
        source.label,
        [
            *guesses_of_first_rows(opened, numbers, sure, is_given),
            *(guess_of_index(name, False, name in empty) for name in index),
            *guesses_of_counters(whole),
            *guesses_of_integers(whole),
        ],
    )
    return index


def _whole(text: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns of text whose cells are all integers, as such."""
    found = {}
    for name in names:
        try:
            found[name] = text[name].cast(pa.int64())
        except pa.ArrowInvalid:
            continue
    return pa.table(found)


def _with_inferred(
    sources: list[Source], names: list[str], target: str | None, given: Kinds
) -> tuple[Kinds, set[str]]:
    """The kinds of all columns of CSV, and those that have no value in any file."""
    found: dict[str, list[str]] = {
        "text": [*given.text],
        "numeric": [*given.numeric],
        "boolean": [],
        "whole": [],
    }
    valueless: set[str] = set()
    if texts := [source for source in sources if source.kind in DELIMITERS]:
        wanted = [*names, *([] if target is None else [target])]
        rest = [name for name in wanted if name not in {*given.text, *given.numeric}]
        for name, kind in _kinds(texts, rest, given.categorical, given.missing).items():
            if kind == "unknown":
                found["numeric"].append(name)
                valueless.add(name)
            elif kind != "whole":
                found[kind].append(name)
            elif name not in given.categorical:  # as labels and categories, integers stay so
                found["numeric"].append(name)
            elif name != target:
                found["whole"].append(name)
    return Kinds(**found, categorical=given.categorical, missing=given.missing), valueless


def list_files(paths: Any) -> list[Path]:
    """The files that are meant by `paths` of `open_batches`, at least one."""
    if not isinstance(paths, str | PathLike):
        files = [Path(fspath(path)) for path in paths]
        if not files:
            raise InputError("The list of files to read is empty.")
        return files
    path = Path(fspath(paths))
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _is_table(file))
        if not files:
            raise FileNotFoundError(f"There is no CSV, Parquet or Arrow file in {path}.")
        return files
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    files = sorted(map(Path, glob.glob(str(path))))
    if not files:
        raise FileNotFoundError(f"There is no file {path}.")
    return files


def _is_table(path: Path) -> bool:
    """Return whether a file of a folder is a table, by its name; hidden ones are none."""
    if path.name.startswith((".", "_")) or not path.is_file():
        return False
    if path.suffix.lower() in (".txt", *C45):  # notes, or rows to test on
        return False
    try:
        source_of(path)
    except ValueError:
        return False
    return True


def _kinds(
    sources: list[Source], wanted: list[str], codes: Collection[str], missing: Sequence[str]
) -> dict[str, str]:
    """Map columns of CSV files to text, numbers or booleans, by the beginnings of the files.

    Taken from the first file that has a value there; unknown, if none has.
    """
    found: dict[str, str] = {}
    for source in sources:
        open_ = [name for name in wanted if name not in found]
        if not open_:
            break
        with naming_file(source):
            kinds = column_types(source, open_, codes, missing)
        dates = [name for name in open_ if types.is_temporal(kinds[name])]
        if dates:
            raise InputError(
                f"{source.label}: {listed(dates)} hold dates or times. Convert them to numbers, "
                "such as days or hours, take them for categories: categorical=[...], or leave them "
                "out: ignore=[...]."
            )
        for name in open_:
            if not types.is_null(kinds[name]):
                found[name] = _KINDS.get(str(kinds[name]), "numeric")
    return dict.fromkeys(wanted, "unknown") | found


# All else is numbers.
_KINDS = {"string": "text", "bool": "boolean", "int64": "whole", "decimal128(38, 0)": "whole"}


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file, which change where its contents do."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
