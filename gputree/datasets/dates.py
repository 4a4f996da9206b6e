"""Text that tells a day or a time, in the ways that tables have it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# Cells that are looked at before all are.
_FIRST_CELLS = 1000

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


_TWO_DIGITS = r"(0[1-9]|[12]\d|3[01])", r"(0[1-9]|1[0-2])"  # of a day, of a month


def _between(mark: str, day: str, month: str) -> list[str]:
    """Days of years in the orders that are in use; `day` and `month` are those of short years."""
    return [
        f"{_DAY}{mark}{_MONTH}{mark}{_YEAR}",
        f"{_MONTH}{mark}{_DAY}{mark}{_YEAR}",
        f"{_YEAR}{mark}{_MONTH}{mark}{_DAY}",
        rf"{day}{mark}{month}{mark}\d\d",
        rf"{month}{mark}{day}{mark}\d\d",
        rf"\d\d{mark}{month}{mark}{day}",
    ]


_DATES = [
    *_between("/", _DAY, _MONTH),
    *_between("-", *_TWO_DIGITS),  # 1.2.10 is a version
    *_between(r"\.", *_TWO_DIGITS),
    f"{_YEAR}-{_MONTH}",
    f"{_MONTH}/{_YEAR}",
    rf"{_YEAR}-?W[0-5]\d(-?[1-7])?",
    rf"{_WEEKDAY}{_DAY}(st|nd|rd|th)?[ ./-]+{_NAME}[ ,./-]+({_YEAR}|\d\d)",
    rf"{_WEEKDAY}{_NAME}[ -]{_DAY}(st|nd|rd|th)?,? {_YEAR}",
    rf"{_NAME}[ -]{_YEAR}",
]
_ZONE = r"( ?(z|utc|gmt|[+-]\d\d:?\d\d))?"
_TIME = rf"([01]?\d|2[0-4]):[0-5]\d(:[0-6]\d([.,]\d+)?)?( ?[ap]\.?m\.?)?{_ZONE}"
_PATTERN = rf"^\s*(({'|'.join(_DATES)})([t, ]+{_TIME})?|{_TIME})\s*$"


def dates_in(column: pa.ChunkedArray, marks: Collection[str] = ()) -> str | None:
    """The first cell of a column of text where every cell tells a day or a time, else None.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of any type; None where it is no text.
    marks : collection of str
        What stands in cells that are missing, and need not tell any.
    """
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    first = _all_dates(column.drop_null().slice(0, _FIRST_CELLS), marks)
    return None if first is None or len(first) == 0 else _first(_all_dates(column, marks))


def _first(words: pa.Array | None) -> str | None:
    return None if words is None else str(words[0]).strip()


def _all_dates(column: pa.ChunkedArray, marks: Collection[str]) -> pa.Array | None:
    """The different cells, if each tells a day or a time, but for marks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = column.unique().drop_null()
    known = pc.invert(
        pc.is_in(pc.utf8_trim_whitespace(words), value_set=pa.array(["", *marks], words.type))
    )
    words = words.filter(known)
    found = pc.match_substring_regex(words, _PATTERN, ignore_case=True)
    return words if pc.all(found, min_count=0).as_py() else None
