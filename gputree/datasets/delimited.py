"""CSV text, whole or in batches, through pyarrow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gputree.datasets.conversion import NotANumberError, convert, listed
from gputree.datasets.dialect import Dialect, dialect_of
from gputree.datasets.size import require_memory_for_csv
from gputree.datasets.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes that are looked at before the rest: they hold the header.
HEAD_BYTES = 1 << 18

# Bytes of text in a batch: small beside the memory, large beside the cost of a call.
BATCH_BYTES = 1 << 24

_MARKS = {
    b"\xff\xfe": "UTF-16 text, and must be UTF-8",
    b"\xfe\xff": "UTF-16 text, and must be UTF-8",
    b"\x1f\x8b": "compressed, and its name does not say so: it must end in .gz",
    b"BZh": "compressed, and its name does not say so: it must end in .bz2",
    b"\x28\xb5\x2f\xfd": "compressed, and its name does not say so: it must end in .zst",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet; save the table as CSV",
    b"PAR1": "a Parquet file; its name must end in .parquet",
    b"ARROW1": "an Arrow file; its name must end in .arrow",
}
_NOT_CONVERTED = re.compile(
    r"In CSV column #(\d+): .*conversion error to (double|bool): invalid value '(.*)'"
)


def read_delimited(
    source: Source, *, text: Sequence[str], missing: Sequence[str], verbose: bool
) -> pa.Table:
    """The whole table, with the types that its cells suggest."""
    import pyarrow as pa
    import pyarrow.csv as pc

    with source.open(verbose) as file:
        again, head = _after_a_look(source, file)
        dialect = _dialect(source, head)
        if source.path is not None and not source.is_stream:
            require_memory_for_csv(source.path, dialect.delimiter, source.codec)
        table = pc.read_csv(
            again,
            parse_options=_parsing(dialect),
            convert_options=_converting(dialect, dict.fromkeys(text, pa.string()), missing),
        )
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:  # what the reader makes of bytes that are not UTF-8
        raise ValueError(not_utf8(source, f"see {listed(binary)}"))
    return _with_points(table, set(dialect.pointed).difference(text), missing)


def delimited_batches(
    source: Source,
    opened: Opened,
    wanted: Sequence[str],
    *,
    text: Sequence[str],
    numeric: Sequence[str],
    boolean: Sequence[str],
    missing: Sequence[str],
) -> Iterator[pa.Table]:
    """Some columns, batch by batch; each is of text, of numbers or of truth values."""
    import pyarrow as pa
    import pyarrow.csv as pc

    pointed = set(opened.dialect.pointed).intersection(numeric)
    types = dict.fromkeys([*text, *pointed], pa.string())
    types |= dict.fromkeys(set(numeric) - pointed, pa.float64())
    types |= dict.fromkeys(boolean, pa.bool_())
    try:
        reader = pc.open_csv(
            opened.file,
            read_options=pc.ReadOptions(block_size=BATCH_BYTES),
            parse_options=_parsing(opened.dialect),
            convert_options=_converting(opened.dialect, types, missing, wanted),
        )
        for batch in reader:
            table = _with_points(pa.table(batch), pointed, missing)
            yield convert(source.label, table, numeric=list(pointed), missing=missing)
    except pa.ArrowInvalid as error:
        if "invalid UTF8" in str(error):
            raise ValueError(not_utf8(source, "in a column of text")) from error
        found = _NOT_CONVERTED.search(str(error))
        if found is None:
            raise
        name = opened.names[int(found[1])]
        if found[2] == "bool":
            raise ValueError(
                f"{source.label}: column {name!r} holds truth values at the beginning, and "
                f"{found[3]!r} further down. Read it as text: text=[{name!r}]."
            ) from error
        raise NotANumberError(source.label, name, found[3]) from error


class Opened(NamedTuple):
    """A file from its beginning, and what its head tells."""

    file: Any
    dialect: Dialect
    names: list[str]


def column_types(
    source: Source, wanted: Sequence[str], missing: Sequence[str]
) -> dict[str, pa.DataType]:
    """The types that the beginning of a file suggests; null where no value is there."""
    import pyarrow as pa
    import pyarrow.csv as pc

    with source.open(False) as file:
        opened = open_delimited(source, file)
        reader = pc.open_csv(
            opened.file,
            read_options=pc.ReadOptions(block_size=BATCH_BYTES),
            parse_options=_parsing(opened.dialect),
            convert_options=_converting(opened.dialect, {}, missing, wanted),
        )
        types = {field.name: field.type for field in reader.schema}
        types |= {name: pa.float64() for name in opened.dialect.pointed if name in types}
    if binary := [name for name in wanted if pa.types.is_binary(types[name])]:
        raise ValueError(not_utf8(source, f"see {listed(binary)}"))
    return types


def open_delimited(source: Source, file: Any) -> Opened:
    """The file from its beginning, how it is written, and the names of its columns."""
    again, head = _after_a_look(source, file)
    dialect = _dialect(source, head)
    lines = csv.reader(io.StringIO(_text(head), newline=""), delimiter=dialect.delimiter)
    try:
        names = next((names for names in lines if names), [])
    except csv.Error as error:
        raise ValueError(f"Cannot read the header of {source.label}: {error}.") from error
    if any("\ufffd" in name for name in names) and "\ufffd".encode() not in head:
        raise ValueError(not_utf8(source, "see the names of its columns"))
    return Opened(again, dialect, names)


def not_utf8(source: Source, where: str) -> str:
    """What to say of text in another encoding."""
    return (
        f"{source.label} is not UTF-8 text, as it must be: {where}. Convert it first, for "
        "instance: iconv -f latin1 -t utf-8"
    )


def _after_a_look(source: Source, file: Any) -> tuple[Any, bytes]:
    """The file from its beginning, and its first bytes, which are text."""
    import pyarrow as pa

    head: bytes = file.read(HEAD_BYTES)
    if not head.strip():
        raise ValueError(f"{source.label} is empty.")
    for mark, kind in _MARKS.items():
        if head.startswith(mark):
            raise ValueError(f"Cannot read {source.label}: it is {kind}.")
    if b"\0" in head:
        raise ValueError(f"Cannot read {source.label}: it holds bytes that are no text.")
    if source.is_plain:
        file.seek(0)
        return file, head
    return pa.PythonFile(io.BufferedReader(_Replayed(head, file)), "r"), head


def _dialect(source: Source, head: bytes) -> Dialect:
    """As the name of the file says; .csv is for other marks than commas, too."""
    if source.delimiter != ",":
        return Dialect(source.delimiter)
    return dialect_of(_text(head), len(head) < HEAD_BYTES)


def _text(head: bytes) -> str:
    return head.decode("utf-8-sig", errors="replace")


def _parsing(dialect: Dialect) -> Any:
    import pyarrow.csv as pc

    # Without the second, a line break within quotes may end a row where blocks of text meet.
    return pc.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)


def _converting(
    dialect: Dialect,
    types: dict[str, Any],
    missing: Sequence[str],
    wanted: Sequence[str] | None = None,
) -> Any:
    import pyarrow.csv as pc

    return pc.ConvertOptions(
        include_columns=[] if wanted is None else list(wanted),  # none is all
        column_types=types,
        null_values=_null_values(missing),
        decimal_point=dialect.decimal_point,
    )


def _with_points(table: pa.Table, names: Collection[str], missing: Sequence[str]) -> pa.Table:
    """Numbers with points in columns of text, where all cells are such or missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for j, field in enumerate(table.schema):
        if field.name not in names or not pa.types.is_string(field.type):
            continue
        words = pc.utf8_trim_whitespace(table.column(j))
        absent = pc.is_in(words, value_set=pa.array(_null_values(missing), pa.string()))
        try:
            numbers = pc.if_else(absent, pa.scalar(None, pa.string()), words).cast(pa.float64())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(j, field.name, numbers)
    return table


def _null_values(missing: Sequence[str]) -> list[str]:
    import pyarrow.csv as pc

    spaced = [form.format(token.strip()) for token in missing for form in ("{}", " {}", "{} ")]
    return [*pc.ConvertOptions().null_values, *spaced]


class _Replayed(io.RawIOBase):
    """A stream whose first bytes have been read, from its beginning."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] if self._head else self._rest.read(len(buffer))
        self._head = self._head[len(data) :] if self._head else self._head
        buffer[: len(data)] = data
        return len(data)
