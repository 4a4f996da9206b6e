"""Tables of each format of files, whole and in batches of rows, with their columns' types.

C4.5's pair of files: a table in .data or .test, whose columns a .names file declares.

    | a comment                             the classes come first
    play, don't play.

    outlook: sunny, overcast, rain.
    temperature: continuous.
    day: ignore.                            or label; discrete 7: any words

As by C4.5's own reader, an entry ends with its line or with a period before a blank, a backslash
keeps what follows it, "|" begins a comment, and "?" is a missing value. The classes are the last
column, named `TARGET`; as in C5.0, the name of a declared column in their place makes that the
target. Source: Quinlan, C4.5: Programs for Machine Learning (1993), chapter 7, `getnames.c`.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from gputree.datasets import delimited
from gputree.datasets.arff import read_arff
from gputree.datasets.conversion import Kinds, convert, listed
from gputree.datasets.csv_head import Opened, open_delimited
from gputree.datasets.delimited import delimited_batches, read_delimited
from gputree.datasets.file_format import Guess
from gputree.datasets.first_rows import check_header, check_present, forbid_repeated
from gputree.datasets.parser_errors import naming_file, undamaged
from gputree.datasets.sources import (
    ARFF,
    C45,
    COMPRESSION,
    DELIMITERS,
    PARQUET,
    Source,
    least_bits,
    require_memory_for_parquet,
)
from gputree.errors import InputError

TARGET = "class"

# A mark, the end of an entry, or a part of a name; blanks within names are one.
_TOKEN = re.compile(r"(:=|[:,])|(\.(?=\s|\||$)|\n)|((?:\\.|[^\\:,|\n.]|\.(?!\s|\||$))+)")
_COMMENT = re.compile(r"(?<!\\)\|[^\n]*")
_ESCAPED = re.compile(r"\\(.)")
_LINE_END = re.compile(r"\r\n?|\n")  # and no others: str.splitlines has ten
_CELL = re.compile(r"(?:\\.|[^\\,])*")


class _Column(NamedTuple):
    name: str
    words: list[str]  # those declared, or the kind alone


def names_file(path: Path) -> Path:
    """The file that declares the columns of a table."""
    table = path.with_suffix("") if path.suffix.lower() in COMPRESSION else path
    found = table.with_suffix(".names")
    if not found.is_file():
        raise InputError(
            f"{path} needs {found.name} next to it, in C4.5's format, which declares its columns. "
            "For a table with a header, name it .csv."
        )
    return found


def read_c45(path: Path, text: str) -> pa.Table:
    """A table from the text of a .data or .test file at `path`; errors name the line.

    Columns of listed words become dictionaries of these, continuous ones float64, discrete ones
    text; ignored ones are left out.
    """
    columns = _columns(names_file(path))
    cells: list[list[str | None]] = [[] for _ in columns]
    lines: list[int] = []
    for number, line in enumerate(_LINE_END.split(_COMMENT.sub("", text)), 1):
        row = [_unescaped(cell) for cell in _split(line)]
        if row == [""]:
            continue
        row[-1] = row[-1].removesuffix(".").rstrip() if len(row) == len(columns) else row[-1]
        if len(row) != len(columns):
            raise InputError(
                f"{path}, line {number}: expected {len(columns)} cells, as the .names file "
                f"declares, got {len(row)}."
            )
        for column, cell in zip(cells, row, strict=True):
            column.append(None if cell == "?" else cell)
        lines.append(number)
    kept = [k for k, column in enumerate(columns) if column.words not in (["ignore"], ["label"])]
    arrays = [_array(path, columns[k], cells[k], lines) for k in kept]
    return pa.table(arrays, names=[columns[k].name for k in kept])


def _array(path: Path, column: _Column, cells: list[str | None], lines: list[int]) -> pa.Array:
    kind = column.words[0].split()[0] if len(column.words) == 1 else ""
    if kind == "discrete":
        return pa.array(cells, pa.string())
    place = {word: k for k, word in enumerate(column.words)}
    read = float if kind == "continuous" else place.__getitem__
    values: list[float | int | None] = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            values.append(None if cell is None else read(cell))
        except (KeyError, ValueError):
            declared = f"not declared: it has {listed(column.words)}"
            what = "no number" if kind == "continuous" else declared
            raise InputError(
                f"{path}, line {line}: {cell!r} of {column.name!r} is {what}."
            ) from None
    if kind == "continuous":
        return pa.array(values, pa.float64())
    return pa.DictionaryArray.from_arrays(pa.array(values, pa.int32()), column.words)


def _columns(path: Path) -> list[_Column]:
    """The columns in the order of the cells."""
    try:
        text = _COMMENT.sub("", path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text, as it must be: {error}.") from error
    entries = list(_entries(path, text))
    if not entries or entries[0][0]:
        raise InputError(f"{path} must begin with the names of the classes, separated by commas.")
    classes, columns = entries[0][1], [_Column(name, words) for name, words in entries[1:]]
    names = [column.name for column in columns]
    if not columns or "" in names:
        raise InputError(
            f"{path} is not in C4.5's format: after the classes, each entry must be NAME: "
            "continuous, discrete N, ignore or the values, separated by commas."
        )
    if len(classes) == 1 and classes[0] in names:
        return columns
    if TARGET in names:
        raise InputError(f"{path} declares a column {TARGET!r}, which is the name of the target.")
    return [*columns, _Column(TARGET, classes)]


def _entries(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each entry, empty if it has none, and its words."""
    name, words, open_ = "", [""], False  # open_: a comma or a colon came last
    for mark, end, part in _TOKEN.findall(text + "\n"):
        if mark == ":=":
            raise InputError(f"{path}: columns that are computed (:=) are not supported.")
        if mark == ":":
            name, words, open_ = words[-1], [""], True
        elif mark == ",":
            words.append("")
            open_ = True
        elif end:
            if any(words) and not (end == "\n" and open_ and not words[-1]):
                yield name, [word for word in words if word]
                name, words = "", [""]
            open_ = open_ and end == "\n"
        elif part.strip():
            words[-1] = _unescaped(part)
            open_ = False


def _split(line: str) -> list[str]:
    """Cells of a line, at commas that no backslash keeps."""
    found = [_CELL.match(line)]
    while found[-1] is not None and found[-1].end() < len(line):
        found.append(_CELL.match(line, found[-1].end() + 1))
    return [match[0] for match in found if match is not None]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", " ".join(text.split()))


_BATCH_ROWS = 1 << 16  # rows of a batch of Parquet, at most

# Bytes of a column of a Parquet file that are read at once, at most.
_BUFFER_BYTES = 1 << 20


def schema_of(source: Source) -> pa.Schema:
    """Names of the columns of a file, with their types where it declares them."""
    if source.kind in (*ARFF, *C45):
        with naming_file(source):
            return _read_declared(source, False).schema
    with naming_file(source), source.open(False) as file:
        if source.kind in DELIMITERS:
            return pa.schema([(name, pa.null()) for name in open_delimited(source, file).names])
        found = pq.ParquetFile(file).schema_arrow if source.kind in PARQUET else None
        return found or _arrow_reader(file).schema


def read_whole(
    source: Source, kinds: Kinds, verbose: bool
) -> tuple[pa.Table, Opened | None, list[Guess]]:
    """The table, with types that the file has or suggests; of CSV, its beginning and guesses."""
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


def scan_bytes(source: Source) -> int | None:
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
    """Read like `read_batches`, but take files without rows, too; None is the usual size."""
    batch_bytes = delimited.BATCH_BYTES if batch_bytes is None else batch_bytes
    with naming_file(source):
        for batch in _batches(source, columns, kinds, verbose, batch_bytes):
            if batch.num_rows:
                yield batch


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
