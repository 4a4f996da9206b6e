"""The beginning of a CSV file: its encoding, its dialect, and the names of its columns.

The dialect, that is the separators of cells and of decimals, is inferred from the first rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from gputree.datasets.conversion import missing_marks, unit_of
from gputree.datasets.file_format import FileFormat
from gputree.datasets.sources import Source
from gputree.errors import InputError

HEAD_BYTES = 1 << 18  # bytes that are looked at before the rest: they hold the header

_PASS = "pass its encoding: encoding='utf-16'"
_MARKS = {
    b"\xff\xfe": f"UTF-16 text; {_PASS}",
    b"\xfe\xff": f"UTF-16 text; {_PASS}",
    b"\x1f\x8b": "compressed, and its name does not say so: it must end in .gz",
    b"BZh": "compressed, and its name does not say so: it must end in .bz2",
    b"\x28\xb5\x2f\xfd": "compressed, and its name does not say so: it must end in .zst",
    b"\xfd7zXZ\x00": "compressed, and its name does not say so: it must end in .xz",
    b"PK\x03\x04": "a ZIP archive, whose name must end in .zip, or a spreadsheet; save that as CSV",
    b"PAR1": "a Parquet file; its name must end in .parquet",
    b"ARROW1": "an Arrow file; its name must end in .arrow",
}

# The first line by which spreadsheets know the delimiter.
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n')


class Opened(NamedTuple):
    """A file from its beginning, and what its first rows show."""

    file: Any
    dialect: Dialect
    names: list[str]
    rows: list[list[str]]  # the first ones, as cells
    is_headless: bool
    skipped: int  # lines before the header


def open_delimited(source: Source, file: Any, missing: tuple[str, ...] = ()) -> Opened:
    """The file from its beginning, how it is written, and the names of its columns."""
    again, data = _after_a_look(source, file)
    text = data.decode("utf-8-sig", errors="replace")
    line = _SEPARATOR_LINE.match(text)
    found = _head(source, text[line.end() :] if line else text, len(data) < HEAD_BYTES, line)
    if any("\ufffd" in name for name in found.names) and "\ufffd".encode() not in data:
        raise InputError(not_utf8(source, "see the names of its columns"))
    units = _units_of(source.form.units, found, missing)
    dialect = found.dialect._replace(missing=missing, units=units)
    headless = source.form.is_headless
    return Opened(again, dialect, found.names, found.rows, headless, int(line is not None))


def _units_of(
    given: Sequence[str] | Mapping[str, str | None], found: Head, missing: Sequence[str]
) -> dict[str, str | None]:
    """Units of the columns that have one: as given, or of the first cell that has one."""
    units: dict[str, str | None] = dict(
        given if isinstance(given, Mapping) else dict.fromkeys(given)
    )
    marks = missing_marks(missing)
    for place, name in enumerate(found.names):
        if name in units and units[name] is None:
            cells = (row[place].strip() for row in found.rows if place < len(row))
            parts = (unit_of(cell) for cell in cells if cell not in marks)
            units[name] = next((part[1] for part in parts if part), None)
    return units


def _head(source: Source, text: str, is_whole: bool, line: re.Match[str] | None) -> Head:
    """The first rows; .csv is for other marks than commas, too, .tsv for tabs alone."""
    given = source.form.delimiter or (line[1] if line else None)
    if given is not None:
        marks: tuple[str, ...] = (given,)
    else:
        marks = DELIMITERS if source.delimiter == "," else (source.delimiter,)
    return head_of(source.label, text, is_whole, source.form, marks)


def not_utf8(source: Source, where: str) -> str:
    """Message about text in another encoding."""
    if source.form.encoding is not None:
        return f"{source.label} is not text of the encoding {source.form.encoding!r}: {where}."
    return (
        f"{source.label} is not UTF-8 text, as it must be: {where}. If it is of another encoding, "
        "pass that: encoding='cp1252' (Western European, Excel's) or encoding='gbk', for instance"
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


# Commas last: they stand within cells of the others, and these hardly ever within theirs.
DELIMITERS = (";", "\t", "|", ",")
_DIGIT = re.compile(r"\d")  # cells without one may well be missing
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_THOUSANDS = {mark: re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{mark}\d{{3}}\s*") for mark in (",", r"\.")}
_PARTS = {mark: re.compile(rf"\s*[+-]?\d*{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\.")}


class Dialect(NamedTuple):
    """Format of a CSV table."""

    delimiter: str  # between cells
    decimal_point: str = "."  # within numbers: "." or, where cells are not separated by commas, ","
    # columns whose numbers have points where those of others have commas
    pointed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # texts that mean a missing cell, in addition to the usual ones
    thousands: str | None = None  # between groups of three digits
    # of columns of numbers with a unit, that unit as of `unit_of`; None is that of the first cell
    units: Mapping[str, str | None] = MappingProxyType({})


class Head(NamedTuple):
    """The first rows of a file, and how it is written."""

    dialect: Dialect
    names: list[str]
    rows: list[list[str]]  # of cells, without the header


def head_of(
    label: str,
    head: str,
    is_whole: bool,
    form: FileFormat,
    delimiters: Sequence[str] = DELIMITERS,
) -> Head:
    """Infer the dialect of a file from its first rows, `head`; the last one may be incomplete.

    The mark that parts the most rows into as many cells as the header, and the header at all; of
    equals the first of semicolon, tab, bar and comma; where none does, the last. Where that is no
    comma, all cells of a column decide whether its numbers have decimal commas or points: one of
    them is in most of its cells, other numbers being whole. A mark that always stands before three
    digits, as between thousands, is ambiguous.
    """
    best, parted = delimiters[-1], 0.0
    rows: list[list[str]] = []
    for delimiter in delimiters:
        found = _rows(head, is_whole, delimiter)
        width = len(found[0]) if found else 0
        share = sum(len(row) == width for row in found) / len(found) if width > 1 else 0.0
        if share > parted:
            best, parted, rows = delimiter, share, found
    rows = rows or _rows(head, is_whole, best)
    first = rows[0] if rows else header_of(label, head, best)
    names = form.names_of(len(first), label) if form.is_headless else first
    body = rows if form.is_headless else rows[1:]
    dialect = Dialect(best, form.decimal or ".", thousands=form.thousands)
    if form.decimal is None and best != ",":
        dialect = _with_decimals(dialect, names, body)
    return Head(dialect, names, body)


def header_of(label: str, head: str, delimiter: str) -> list[str]:
    """The cells of the first row that has some."""
    lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        return next((cells for cells in lines if cells), [])
    except csv.Error as error:
        raise InputError(f"Cannot read the header of {label}: {error}.") from error


def _with_decimals(dialect: Dialect, names: list[str], rows: list[list[str]]) -> Dialect:
    """The dialect with the decimal marks of its columns; other marks than commas part the cells."""
    if dialect.thousands == ".":
        return dialect._replace(decimal_point=",")
    columns = {
        name: [row[place] for row in rows if place < len(row)] for place, name in enumerate(names)
    }
    if not any(_has(",", cells) for cells in columns.values()):
        return dialect
    pointed = tuple(name for name, cells in columns.items() if _has(r"\.", cells))
    return dialect._replace(decimal_point=",", pointed=pointed)


def _rows(head: str, is_whole: bool, delimiter: str) -> list[list[str]]:
    """The first rows as cells; none where they are no CSV."""
    lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in lines if row]
    except csv.Error:
        return []
    return rows if is_whole else rows[:-1]


def _has(mark: str, cells: Sequence[str]) -> bool:
    """Return whether the numbers of a column have the decimal mark."""
    parts = list(filter(_PARTS[mark].fullmatch, cells))
    if all(map(_THOUSANDS[mark].fullmatch, parts)):  # or there are none
        return False
    n_with_digit = sum(map(bool, map(_DIGIT.search, cells)))
    return 2 * (len(parts) + sum(map(bool, map(_WHOLE.fullmatch, cells)))) > n_with_digit


def has_fractions(mark: str, cells: Sequence[str]) -> bool:
    """Return whether a number has a mark that is certainly decimal: not before three digits."""
    parts, groups = (
        _PARTS[re.escape(mark) if mark == "." else mark],
        _THOUSANDS[re.escape(mark) if mark == "." else mark],
    )
    return any(parts.fullmatch(cell) and not groups.fullmatch(cell) for cell in cells)


def groups_of_three(mark: str, cells: Sequence[str]) -> list[str]:
    """Numbers with a mark before three digits, where no number without one has four digits."""
    groups = _THOUSANDS[re.escape(mark) if mark == "." else mark]
    long = any(_WHOLE.fullmatch(cell) and len(cell.strip(" +-")) > 3 for cell in cells)
    return [] if long else list(filter(groups.fullmatch, cells))
