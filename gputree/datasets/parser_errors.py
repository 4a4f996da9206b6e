"""Errors of the reader of CSV: the file, the line, and a possible cause.

Damaged files: errors name them, and offsets and text are validated before use.
"""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from gputree.base.memory import OutOfMemory
from gputree.base.texts import is_number
from gputree.datasets.conversion import NotANumberError
from gputree.datasets.csv_head import Opened, not_utf8, open_delimited
from gputree.datasets.sources import ARROW, PARQUET, Source
from gputree.datasets.words import MANY_LINES
from gputree.errors import InputError

_NOT_UTF8 = re.compile(r"In CSV column #(\d+): .*invalid UTF8")
_NOT_CONVERTED = re.compile(
    r"In CSV column #(\d+): .*conversion error to (double|bool|int64): invalid value '(.*)'"
)
_RAGGED = re.compile(r"Expected (\d+) columns, got (\d+)")
_TOO_LONG = "straddling object"

_LONGEST_CELL = 1 << 28  # characters; longer ones are not looked for
_SHOWN = 60
_COMMENTS = ("#", "%", "//")


def explained(
    source: Source, error: Exception, opened: Opened | None, name: str | None = None
) -> Exception:
    """The reader's error with its place and its cause; other errors as they are.

    It is from reading a file whose beginning is `opened`, or a column called `name`.
    """
    names = [str(name)] if opened is None else opened.names
    if found := _NOT_UTF8.search(str(error)):
        return InputError(not_utf8(source, f"see {names[int(found[1])]!r}"))
    if found := _NOT_CONVERTED.search(str(error)):
        return _of_kinds(source, names[int(found[1])], found[2], found[3])
    if opened is not None and _RAGGED.search(str(error)):
        return _of_width(source, opened, str(error))
    if opened is not None and _TOO_LONG in str(error):
        return _of_length(source, opened)
    return error


def _of_kinds(source: Source, name: str, kind: str, cell: str) -> Exception:
    """The error about a cell that does not fit its column."""
    if kind == "double":
        return NotANumberError(source.label, name, cell)
    begins = "booleans" if kind == "bool" else "integers"
    advice = f"numbers: numeric=[{name!r}]" if is_number(cell) else f"text: text=[{name!r}]"
    return InputError(
        f"{source.label}: column {name!r} holds {begins} at the beginning, and {cell!r} further "
        f"down. Read it as {advice}."
    )


def _of_width(source: Source, opened: Opened, message: str) -> InputError:
    """The error about a row with more or fewer cells than the header."""
    width = len(opened.names)
    if opened.names[0].lstrip().startswith(_COMMENTS) and not opened.is_headless:
        return InputError(
            f"{source.label}, line {opened.skipped + 1}: {_short(opened.names[0])} looks like a "
            "comment, and must be the header: remove such lines"
        )
    for line, row, begin in _rows(source, opened):
        if len(row) != width and line - begin >= MANY_LINES:
            return InputError(
                f"{source.label}, lines {begin} to {line}: expected {width} cells, as the first "
                f"row has, got {len(row)}: a double quote may not be closed"
            )
        if len(row) != width:
            text = _short(opened.dialect.delimiter.join(row))
            return InputError(
                f"{source.label}, line {line}: expected {width} {'cell' if width == 1 else 'cells'}"
                f", as the first row has, got {len(row)}: {text}{_cause(row, width, opened)}"
            )
    found = _RAGGED.search(message)
    counts = f"expected {width} cells, got {found[2]}" if found else message
    return InputError(f"{source.label}: {counts} in a row.")


def _cause(row: list[str], width: int, opened: Opened) -> str:
    """A sentence about what a row of another width may be."""
    first = row[0].lstrip()
    if first.startswith(_COMMENTS):
        return ". It looks like a comment, which CSV does not have: remove such lines"
    if len(row) == 1 or not any(row[1:]):
        return ". It looks like a title or a note: remove it"
    if width == 1:
        return f". If the first row, {_short(opened.names[0])}, is a title, remove it"
    if (
        len(row) == width + 1
        and _all_wide(opened, width + 1)
        and not any(row[-1] for row in opened.rows)
    ):
        mark = opened.dialect.delimiter
        return f". Rows end in {mark!r}, and the first does not: add one to it, or remove these"
    if len(row) == width + 1 and is_number(first) | (first != "") and _all_wide(opened, width + 1):
        return ". The first row lacks a name for the column of row names: add one"
    if len(row) > width:
        mark = opened.dialect.delimiter
        return f". A cell that contains {mark!r} must be in double quotes"
    return ". Its last cells are missing, or a line break stands within a cell without quotes"


def _all_wide(opened: Opened, width: int) -> bool:
    return bool(opened.rows) and all(len(row) == width for row in opened.rows)


def _of_length(source: Source, opened: Opened) -> InputError:
    """The error about a row that is longer than what is read at once."""
    longest = (0, 0, 0)
    for line, row, begin in _rows(source, opened):
        longest = max(longest, (max(map(len, row), default=0), begin, line))
    size, begin, end = longest
    if not size:
        return InputError(f"{source.label} has a row that is too long to be read.")
    lines = f"line {begin}" if begin == end else f"lines {begin} to {end}"
    cause = "" if begin == end else ": a double quote may not be closed"
    return InputError(
        f"{source.label}, {lines}: a cell of {size:,} characters is too long to be read{cause}."
    )


def _rows(source: Source, opened: Opened) -> Iterator[tuple[int, list[str], int]]:
    """The rows of a file that can be read again, with their last and their first line."""
    if source.is_stream:
        return
    with source.open(False) as file, _long_cells():
        again = open_delimited(source, file)
        text = io.TextIOWrapper(io.BufferedReader(again.file), "utf-8-sig", "replace", newline="")
        lines = csv.reader(text, delimiter=opened.dialect.delimiter)
        before = 0
        for row in lines:
            if row and lines.line_num > opened.skipped:
                yield lines.line_num, row, before + 1
            before = lines.line_num


@contextmanager
def _long_cells() -> Iterator[None]:
    """Allow the csv module to read cells of any usual length."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


# What a file can unpack to, in bytes and in times its length: a run of equal cells is packed to
# little, and a damaged file claims exabytes.
LEAST_UNPACKED = 1 << 36
MOST_TIMES = 1 << 16


@contextmanager
def naming_file(source: Source) -> Iterator[None]:
    """Re-raise errors of readers with the file's name."""
    try:
        yield
    except UnicodeError as error:  # UTF-16 without its mark is no UnicodeDecodeError
        raise InputError(not_utf8(source, str(error))) from error
    except OutOfMemory:
        raise  # of a file that is whole, and it names that
    except MemoryError as error:
        if isinstance(error, pa.ArrowException) and not _may_unpack_to(source, error):
            raise InputError(f"{source.label} is damaged: {error}") from error
        raise MemoryError(f"Cannot read {source.label}: {error}") from error
    except (pa.ArrowException, OSError, OverflowError) as error:
        raise InputError(f"Cannot read {source.label}: {error}") from error


def _may_unpack_to(source: Source, error: MemoryError) -> bool:
    """Return whether a file of its length may need the bytes that could not be allocated."""
    size = source.path.stat().st_size if source.path is not None else LEAST_UNPACKED
    requested = re.search(r"size (\d+)", str(error))
    return requested is not None and int(requested[1]) <= max(LEAST_UNPACKED, MOST_TIMES * size)


def undamaged(source: Source, table: pa.Table) -> pa.Table:
    """Validate the offsets and the text of a table from a Parquet or Arrow file, and return it."""
    if source.kind not in (*PARQUET, *ARROW):
        return table  # which its reader has made, and found to be text
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"Cannot read {source.label}: column {name!r} is damaged, or holds text that is "
                f"not UTF-8: {error}"
            ) from error
    return table
