"""CSV text, whole or in batches, through pyarrow."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from gputree._texts import is_number
from gputree.datasets.codes import exact_numbers, leading_zeros, says_more_than
from gputree.datasets.conversion import Kinds, NotANumberError, convert, listed
from gputree.datasets.dialect import DELIMITERS, Dialect, dialect_of
from gputree.datasets.size import require_memory_for_csv
from gputree.datasets.sources import Source
from gputree.errors import InputError

HEAD_BYTES = 1 << 18  # bytes that are looked at before the rest: they hold the header

# Bytes in a batch, by default: small compared with the memory, large compared with the cost of a
# call.
BATCH_BYTES = 1 << 24

# Bytes in a batch of rows that are predicted one after another: the reader holds several batches,
# as text and as columns, 270 MB of 16 MiB and 65 MB of 1 MiB, for the same CPU time (2,000,000
# rows of 7 columns).
SCAN_BYTES = 1 << 20

# Bytes in a batch for each column of the file, at least: a row has to fit.
_COLUMN_BYTES = 1 << 10

# Bytes of text whose types are inferred at once, and columns of which a row may be longer.
_SMALL_BLOCK = 1 << 20
_MANY_COLUMNS = 1 << 12

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
_NOT_UTF8 = re.compile(r"In CSV column #(\d+): .*invalid UTF8")
_NOT_CONVERTED = re.compile(
    r"In CSV column #(\d+): .*conversion error to (double|bool|int64): invalid value '(.*)'"
)


def read_delimited(source: Source, kinds: Kinds, verbose: bool) -> pa.Table:
    """The whole table, with the types that its cells suggest; see `codes` for those of categories.

    Whole columns are numbers, whatever zeros are before them.
    """
    with source.open(verbose) as file:
        opened = open_delimited(source, file, kinds.missing)
        dialect = opened.dialect
        if source.path is not None and not source.is_stream:
            require_memory_for_csv(source.path, dialect.delimiter, source.codec)
        types = dict.fromkeys([*kinds.text, *kinds.categorical, *kinds.whole], pa.string())
        try:
            table = pcsv.read_csv(
                opened.file,
                parse_options=_parsing(dialect),
                convert_options=_converting(dialect, types),
            )
        except pa.ArrowInvalid as error:
            raise _explained(source, error, opened.names) from error
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:  # what the reader makes of bytes that are not UTF-8
        raise InputError(not_utf8(source, f"see {listed(binary)}"))
    table = _exact_whole(table, set(kinds.whole).difference(kinds.text, dialect.pointed), dialect)
    table, kept = _types_of_codes(table, set(kinds.categorical).difference(kinds.text), dialect)
    return _with_points(table, set(dialect.pointed).difference(kinds.text, kept), dialect)


def delimited_batches(
    source: Source, opened: Opened, wanted: Sequence[str], kinds: Kinds, batch_bytes: int
) -> Iterator[pa.Table]:
    """Some columns, batch by batch; each is of text, of numbers or of booleans.

    Categories that are of none of them are of integers, which may be of any length, and have
    fractions further down, where they are named as whole.
    """
    dialect = opened.dialect
    pointed = set(dialect.pointed).intersection(kinds.numeric)
    types = dict.fromkeys([*kinds.text, *pointed], pa.string())
    types |= dict.fromkeys(set(kinds.numeric) - pointed, pa.float64())
    types |= dict.fromkeys(kinds.boolean, pa.bool_())
    categorical = set(kinds.categorical).intersection(wanted)
    codes = {
        name: types.get(name, pa.int64())
        for name in categorical.difference(kinds.text, kinds.boolean)
    }
    types |= dict.fromkeys([*codes, *kinds.inferred], pa.string())
    points = Kinds(numeric=list(pointed), missing=kinds.missing)
    least = min(_COLUMN_BYTES * len(opened.names), BATCH_BYTES)
    try:
        reader = pcsv.open_csv(
            opened.file,
            read_options=pcsv.ReadOptions(
                block_size=max(batch_bytes, least), use_threads=batch_bytes >= BATCH_BYTES
            ),
            parse_options=_parsing(dialect),
            convert_options=_converting(dialect, types, wanted),
        )
        for batch in reader:
            table = _numbers_of_codes(source, pa.table(batch), codes, kinds.whole, dialect)
            table, kept = _types_of_codes(table, set(kinds.inferred), dialect)
            others = set(dialect.pointed).intersection(kinds.inferred).difference(kept)
            yield convert(source.label, _with_points(table, pointed | others, dialect), points)
    except pa.ArrowInvalid as error:
        raise _explained(source, error, opened.names) from error


def _explained(source: Source, error: Exception, names: Sequence[str]) -> Exception:
    """What to say of a cell that does not fit its column; other errors as they are."""
    if found := _NOT_UTF8.search(str(error)):
        return InputError(not_utf8(source, f"see {names[int(found[1])]!r}"))
    found = _NOT_CONVERTED.search(str(error))
    if found is None:
        return error
    name, kind, cell = names[int(found[1])], found[2], found[3]
    if kind == "double":
        return NotANumberError(source.label, name, cell)
    begins = "booleans" if kind == "bool" else "integers"
    advice = f"numbers: numeric=[{name!r}]" if is_number(cell) else f"text: text=[{name!r}]"
    return InputError(
        f"{source.label}: column {name!r} holds {begins} at the beginning, and {cell!r} further "
        f"down. Read it as {advice}."
    )


class Opened(NamedTuple):
    """A file from its beginning, and the types inferred from its first bytes."""

    file: Any
    dialect: Dialect
    names: list[str]


def column_types(
    source: Source, wanted: Sequence[str], categorical: Collection[str], missing: Sequence[str]
) -> dict[str, pa.DataType]:
    """The types that the beginning of a file suggests; null where no value is there."""
    # as text, and column by column: to infer all types at once takes 20 times a block
    text = dict.fromkeys(wanted, pa.string())
    with source.open(False) as file:
        opened = open_delimited(source, file, missing)
        dialect = opened.dialect
        size = BATCH_BYTES
        if len(opened.names) < _MANY_COLUMNS:
            size = min(size, _SMALL_BLOCK)
        try:
            reader = pcsv.open_csv(
                opened.file,
                read_options=pcsv.ReadOptions(block_size=size, use_threads=False),
                parse_options=_parsing(dialect),
                convert_options=_converting(dialect, text, wanted),
            )
            first = pa.Table.from_batches(
                itertools.islice(reader, BATCH_BYTES // size), reader.schema
            )
        except pa.ArrowInvalid as error:
            raise _explained(source, error, opened.names) from error
        del reader
    types = {}
    for name in wanted:
        if name in categorical:
            one, kept = _types_of_codes(first.select([name]), {name}, dialect)
            kind = one.schema.field(0).type
        else:
            kind, kept = _taken(first[name], dialect).type, []
        types[name] = pa.float64() if name in dialect.pointed and not kept else kind
    del first
    pa.default_memory_pool().release_unused()
    return types


def open_delimited(source: Source, file: Any, missing: Sequence[str] = ()) -> Opened:
    """The file from its beginning, how it is written, and the names of its columns."""
    again, head = _after_a_look(source, file)
    dialect = _dialect(source, head)._replace(missing=tuple(missing))
    lines = csv.reader(io.StringIO(_text(head), newline=""), delimiter=dialect.delimiter)
    try:
        names = next((names for names in lines if names), [])
    except csv.Error as error:
        raise InputError(f"Cannot read the header of {source.label}: {error}.") from error
    if any("\ufffd" in name for name in names) and "\ufffd".encode() not in head:
        raise InputError(not_utf8(source, "see the names of its columns"))
    return Opened(again, dialect, names)


def not_utf8(source: Source, where: str) -> str:
    """What to say of text in another encoding."""
    return (
        f"{source.label} is not UTF-8 text, as it must be: {where}. Convert it first, for "
        "instance: iconv -f ENCODING -t utf-8, with the encoding of the file, such as gbk or latin1"
    )


def _after_a_look(source: Source, file: Any) -> tuple[Any, bytes]:
    """The file from its beginning, and its first bytes, which are text."""
    head: bytes = file.read(HEAD_BYTES)
    if not head.strip():
        raise InputError(f"{source.label} is empty.")
    for mark, kind in _MARKS.items():
        if head.startswith(mark):
            raise InputError(f"Cannot read {source.label}: it is {kind}.")
    if b"\0" in head:
        raise InputError(f"Cannot read {source.label}: it holds bytes that are no text.")
    if source.is_plain:
        file.seek(0)
        return file, head
    return pa.PythonFile(io.BufferedReader(_Replayed(head, file)), "r"), head


def _dialect(source: Source, head: bytes) -> Dialect:
    """What the first rows show; .csv is for other marks than commas, too, .tsv for tabs alone."""
    marks = DELIMITERS if source.delimiter == "," else (source.delimiter,)
    return dialect_of(_text(head), len(head) < HEAD_BYTES, marks)


def _text(head: bytes) -> str:
    return head.decode("utf-8-sig", errors="replace")


def _parsing(dialect: Dialect) -> Any:
    # Without the second, a line break within quotes may end a row at the boundary of blocks of
    # text.
    return pcsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)


def _converting(
    dialect: Dialect, types: dict[str, Any], wanted: Sequence[str] | None = None
) -> Any:
    return pcsv.ConvertOptions(
        include_columns=[] if wanted is None else list(wanted),  # none is all
        column_types=types,
        null_values=_null_values(dialect),
        decimal_point=dialect.decimal_point,
    )


def _types_of_codes(
    table: pa.Table, names: Collection[str], dialect: Dialect
) -> tuple[pa.Table, list[str]]:
    """Columns of text with the types that their cells suggest, and names of those left as text."""
    kept = []
    for j, name in enumerate(table.column_names):
        if name not in names:
            continue
        words = table.column(j)
        found = _taken(words, dialect)
        exact = exact_numbers(found, words)
        if says_more_than(found.type, words) or exact is words:
            kept.append(name)
        elif name not in dialect.pointed:
            table = table.set_column(j, name, exact)
    return table, kept


def _exact_whole(table: pa.Table, names: Collection[str], dialect: Dialect) -> pa.Table:
    """Columns of text as the reader takes them, but with integers as they stand."""
    for j, name in enumerate(table.column_names):
        if name in names:
            words = table.column(j)
            table = table.set_column(j, name, exact_numbers(_taken(words, dialect), words))
    return table


def _numbers_of_codes(
    source: Source,
    table: pa.Table,
    types: Mapping[str, pa.DataType],
    whole: Collection[str],
    dialect: Dialect,
) -> pa.Table:
    """Columns of text as numbers of these types, which the beginning of the table suggested."""
    for j, name in enumerate(table.column_names):
        if name not in types:
            continue
        words = table.column(j)
        if (cell := leading_zeros(words)) is not None:
            raise InputError(
                f"{source.label}: column {name!r} holds numbers at the beginning, and {cell!r} "
                f"further down. Read it as text: text=[{name!r}]; or as numbers, without the "
                f"leading zeros: numeric=[{name!r}]."
            )
        if name not in dialect.pointed:
            try:
                numbers = _of_type(words, dialect, types[name], name in whole)
                table = table.set_column(j, name, numbers)
            except pa.ArrowInvalid as error:
                raise _explained(source, error, [name]) from error
    return table


def _of_type(
    words: pa.ChunkedArray, dialect: Dialect, kind: pa.DataType, of_any: bool
) -> pa.ChunkedArray:
    """Cells of text as numbers of a type; whole ones beyond it, and others if `of_any`, as well."""
    try:
        return _taken(words, dialect, kind)
    except pa.ArrowInvalid:
        found = _taken(words, dialect) if pa.types.is_integer(kind) else words
        numbers = exact_numbers(found, words)
        if pa.types.is_decimal(numbers.type) or (of_any and pa.types.is_floating(numbers.type)):
            return numbers
        raise


def _taken(
    words: pa.ChunkedArray, dialect: Dialect, kind: pa.DataType | None = None
) -> pa.ChunkedArray:
    """Cells of text as the reader of CSV takes them, of a type or of the one that it finds."""
    sink = pa.BufferOutputStream()
    pcsv.write_csv(pa.table({"": words}), sink)
    table = pcsv.read_csv(
        pa.BufferReader(sink.getvalue()),
        parse_options=_parsing(Dialect(",")),
        convert_options=_converting(dialect, {} if kind is None else {"": kind}),
    )
    return table.column(0)


def _with_points(table: pa.Table, names: Collection[str], dialect: Dialect) -> pa.Table:
    """Numbers with points in columns of text, where all cells are such or missing."""
    for j, field in enumerate(table.schema):
        if field.name not in names or not pa.types.is_string(field.type):
            continue
        words = pc.utf8_trim_whitespace(table.column(j))
        absent = pc.is_in(words, value_set=pa.array(_null_values(dialect), pa.string()))
        try:
            numbers = pc.if_else(absent, pa.scalar(None, pa.string()), words).cast(pa.float64())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(j, field.name, numbers)
    return table


def _null_values(dialect: Dialect) -> list[str]:
    forms = ("{}", " {}", "{} ")
    spaced = [form.format(token.strip()) for token in dialect.missing for form in forms]
    return [*pcsv.ConvertOptions().null_values, *spaced]


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
