"""Text that is certainly a date or a time, an error in the command with advice.

A column does if each of its cells is one of

- a day, month and year in any order of use between "/", "-" or ".", the year of four digits;
  of two only between slashes, as in 12/31/20;
- a day or a month and a year with the name of the month: 3 Feb 2020, Jan 2020;
- a year and its month or week: 2020-01, 1/2020, 2020-W05; years with the next one, 2001-02 and
  2002-03 throughout, are seasons;
- a time with two digits for the hour, with seconds, or with am or pm: 09:30, 9:30:00, 9:30 pm;
- a day with a time, in any of the usual zones.

All else is text, and a category: 3:45 may be a length, 20-12-31 a code, 10.10.10 a version.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

_FIRST_CELLS = 1000  # cells that are looked at before all are

_DAY = r"(0?[1-9]|[12]\d|3[01])"
_MONTH = r"(0?[1-9]|1[0-2])"
_YEAR = r"((1[5-9]|2[01])\d\d)"
_NAME = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?"
    r"|oct(ober)?|nov(ember)?|dec(ember)?)\.?"
)
_WEEKDAY = (
    r"((mon(day)?|tue(s(day)?)?|wed(nesday)?|thu(r(s(day)?)?)?|fri(day)?|sat(urday)?"
    r"|sun(day)?)[,.]? )?"
)


def _between(mark: str) -> list[str]:
    """Days of years in the orders that are in use."""
    return [
        f"{_DAY}{mark}{_MONTH}{mark}{_YEAR}",
        f"{_MONTH}{mark}{_DAY}{mark}{_YEAR}",
        f"{_YEAR}{mark}{_MONTH}{mark}{_DAY}",
    ]


_DATES = [
    *_between("/"),
    *_between("-"),
    *_between(r"\."),
    rf"{_DAY}/{_MONTH}/\d\d",
    rf"{_MONTH}/{_DAY}/\d\d",
    rf"\d\d/{_MONTH}/{_DAY}",
    f"{_YEAR}-{_MONTH}",
    f"{_MONTH}/{_YEAR}",
    rf"{_YEAR}-?W[0-5]\d(-?[1-7])?",
    rf"{_WEEKDAY}{_DAY}(st|nd|rd|th)?[ ./-]+{_NAME}[ ,./-]+({_YEAR}|\d\d)",
    rf"{_WEEKDAY}{_NAME}[ -]{_DAY}(st|nd|rd|th)?,? {_YEAR}",
    rf"{_NAME}[ -]{_YEAR}",
]
_ZONE = r"( ?(z|utc|gmt|[+-]\d\d:?\d\d))?"
_SECONDS, _HALF = r":[0-6]\d([.,]\d+)?", r" ?[ap]\.?m\.?"
_SHORT_HOUR, _HOUR = r"([01]?\d|2[0-4]):[0-5]\d", r"([01]\d|2[0-4]):[0-5]\d"
_OF_A_DAY = f"{_SHORT_HOUR}({_SECONDS})?({_HALF})?{_ZONE}"
_ALONE = f"({_HOUR}|{_SHORT_HOUR}({_SECONDS}({_HALF})?|{_HALF})){_ZONE}"
_PATTERN = rf"^\s*(({'|'.join(_DATES)})([t, ]+{_OF_A_DAY})?|{_ALONE})\s*$"
_SEASON = re.compile(r"\s*\d\d(\d\d)-(\d\d)\s*")


def dates_in(column: pa.ChunkedArray, marks: Collection[str] = ()) -> str | None:
    """The first cell of a column of text where every cell is a date or a time, else None.

    `marks` stand in cells that are missing, and need not be any.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    first = _all_dates(column.drop_null().slice(0, _FIRST_CELLS), marks)
    words = None if first is None or len(first) == 0 else _all_dates(column, marks)
    return None if words is None else str(words[0]).strip()


def _all_dates(column: pa.ChunkedArray, marks: Collection[str]) -> pa.Array | None:
    """The different cells, if each is a date or a time, except markers."""
    words = column.unique().drop_null()
    present = pc.invert(
        pc.is_in(pc.utf8_trim_whitespace(words), value_set=pa.array(["", *marks], words.type))
    )
    words = words.filter(present)
    found = pc.match_substring_regex(words, _PATTERN, ignore_case=True)
    if not pc.all(found, min_count=0).as_py() or (len(words) and _are_seasons(words)):
        return None
    return words


def _are_seasons(words: pa.Array) -> bool:
    """Return whether each word is a year with the next one."""
    parts = map(_SEASON.fullmatch, words.to_pylist())
    return all(part and (int(part[1]) + 1) % 100 == int(part[2]) for part in parts)
