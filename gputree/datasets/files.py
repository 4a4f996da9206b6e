"""Tables in files that together are larger than memory: batches of rows, read repeatedly."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gputree.datasets.conversion import Kinds, listed
from gputree.datasets.damage import told
from gputree.datasets.delimited import column_types
from gputree.datasets.readers import feature_names, read_names, rows_of
from gputree.datasets.size import least_rows
from gputree.datasets.sources import C45, DELIMITERS, Source, source_of
from gputree.datasets.targets import target_values
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
    """

    def __init__(
        self,
        files: list[Path],
        target: str | None,
        names: list[str],
        kinds: Kinds,
        valueless: Collection[str] = (),
        batch_bytes: int | None = None,
    ) -> None:
        self._batch_bytes = batch_bytes
        self.files, self.target_name, self.names = files, target, names
        self._kinds, self._valueless = kinds, valueless
        self._seen = [_state(path) for path in files]
        self.n_bytes = sum(size for size, _ in self._seen)

    def least_rows(self) -> int:
        """A lower bound of the number of rows of all files, without reading them."""
        return sum(map(least_rows, self.files))

    def __iter__(self) -> Iterator[pa.Table | tuple[pa.Table, NDArray[Any]]]:
        wanted = [*self.names, *([] if self.target_name is None else [self.target_name])]
        empty = True
        for path, seen in zip(self.files, self._seen, strict=True):
            for batch in rows_of(path, wanted, self._kinds, batch_bytes=self._batch_bytes):
                empty = False
                if _state(path) != seen:
                    raise InputError(f"{path} changed while it was read.")
                columns = self._untyped(batch.select(self.names))
                if self.target_name is None:
                    yield columns
                else:
                    y = batch[self.target_name]
                    yield columns, target_values(str(path), self.target_name, y)
        pa.default_memory_pool().release_unused()
        if empty:
            others = len(self.files) - 1
            more = f", and {others} other files have none" if others else ""
            raise InputError(f"{self.files[0]} has a header but no rows{more}.")

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
        As in `read_table`. In CSV, columns that are not listed as text or numeric are of numbers,
        booleans or text by what the beginning of the first file with a value there suggests,
        and what does not fit further down is an error that says so; a target of integers
        there that has fractions further down must be listed in `numeric`.
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
    listed_files = list_files(paths)
    # without those that hold nothing at all, if any hold something
    files = [path for path in listed_files if not path.exists() or path.stat().st_size]
    files = files or listed_files
    sources = [source_of(path) for path in files]
    first = sources[0]
    if first.is_stream:
        raise InputError(f"{first.label} can be read once only, and batches are read twice.")
    names = feature_names(first.label, read_names(files[0]), target, columns, ignore)
    for path in files[1:]:
        feature_names(str(path), read_names(path), target, names, ())
    codes = {*categorical, *([] if target is None else [target])}.difference(text, numeric)
    held: dict[str, list[str]] = {
        "text": [*text],
        "numeric": [*numeric],
        "boolean": [],
        "whole": [],
    }
    valueless = set()
    if texts := [source for source in sources if source.kind in DELIMITERS]:
        given = {*text, *numeric}
        wanted = [*names, *([] if target is None else [target])]
        rest = [name for name in wanted if name not in given]
        for name, kind in _kinds(texts, rest, codes, missing).items():
            if kind == "unknown":
                held["numeric"].append(name)
                valueless.add(name)
            elif kind != "whole":
                held[kind].append(name)
            elif name not in codes:  # as labels and categories, integers stay so
                held["numeric"].append(name)
            elif name != target:
                held["whole"].append(name)
    kinds = Kinds(**held, categorical=sorted(codes), missing=[*missing])
    return FileBatches(files, target, names, kinds, valueless.difference([target]), batch_bytes)


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
    """Whether a file of a folder is a table, by its name; hidden ones are none."""
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
    """Which columns of CSV files hold text, numbers or booleans, by their beginnings.

    By those of the first file that has a value there; unknown, if none has.
    """
    found: dict[str, str] = {}
    for source in sources:
        open_ = [name for name in wanted if name not in found]
        if not open_:
            break
        with told(source):
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
    """What changes where a file does."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
