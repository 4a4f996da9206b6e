"""The beginning of a CSV file: its encoding, its dialect, and the names of its columns."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from gputree.datasets.dialect import DELIMITERS, Dialect, Head, head_of
from gputree.datasets.numbers import missing_marks, unit_of
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
