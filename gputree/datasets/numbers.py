"""Numbers that cells of text spell: the one place that decides it, for every way to read a file.

The reader of CSV makes numbers of most columns by itself. What it leaves as text comes here: other
spellings of missing values, decimal commas, marks between thousands, units, hexadecimal integers.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gputree.columns.near_numbers import MINUS
from gputree.errors import InputError

# Missing cells in columns of numbers, as R, pandas and NumPy write them.
PLAIN_MISSING = ("", "NA", "NaN", "nan", "-NaN", "-nan")

# Missing cells in columns of numbers, as others write them; worth a word.
OTHER_MISSING = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "N/A", "NULL", "n/a",
    "null",
)  # fmt: skip

# Blanks that do not break a line, which spreadsheets and R write between thousands.
BLANKS = "\u00a0\u2009\u202f"

_HEXADECIMAL = r"^[+-]?0[xX][0-9a-fA-F]+$"
_TRUTHS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
_MARK = rf"([^\d\s.,+{MINUS}-]*)"
_UNIT = re.compile(rf"^{_MARK}\s*([+{MINUS}-]?){_MARK}\s*([\d.,]+(?:[eE][+-]?\d+)?)\s*(.*?)$")


class Spelling(NamedTuple):
    """Format of numbers in text."""

    decimal: str = "."
    thousands: str | None = None
    missing: Sequence[str] = ()  # in addition to the usual spellings
    has_unit: bool = False
    unit: str | None = None  # as of `unit_of`; None is that of the first cell


class NotANumberError(InputError):
    """A cell of a column of numbers is none, or has another unit than the others."""

    def __init__(self, label: str, name: str, cell: str, unit: str | None = None) -> None:
        marks = "" if unit is None else unit.replace("#", "")
        such = f" with the unit {marks!r}" if marks else " without a unit" if unit else ""
        super().__init__(f"{label}: column {name!r} must hold numbers{such}; it holds {cell!r}.")
        self.cell, self.name, self.unit = cell, name, unit


def numbers_of(
    words: pa.ChunkedArray, spelling: Spelling, booleans: bool = False
) -> pa.ChunkedArray | str:
    """A column of text as float64, null where missing; or the first cell that is no number.

    With `booleans`, these are 0 and 1.
    """
    cells = without_missing(words, spelling.missing)
    if spelling.has_unit:
        found = _without_units(cells, spelling.unit)
        if isinstance(found, str):
            return found
        cells = found
    plain = _as_plain(cells, spelling)
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    plain = _without_words(plain, booleans)
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        return _first_word(cells, plain)


def missing_marks(missing: Sequence[str] = ()) -> list[str]:
    """Cells of columns of numbers that mean a missing one: the usual ones, and those given."""
    return [*PLAIN_MISSING, *OTHER_MISSING, *(mark.strip() for mark in missing)]


def without_missing(words: pa.ChunkedArray, missing: Sequence[str] = ()) -> pa.ChunkedArray:
    """Cells of text without blanks around them, null where they mean a missing number."""
    cells = pc.utf8_trim_whitespace(words)
    absent = pc.is_in(cells, value_set=pa.array(missing_marks(missing), cells.type))
    return pc.if_else(absent, pa.scalar(None, cells.type), cells)


def _as_plain(cells: pa.ChunkedArray, spelling: Spelling) -> pa.ChunkedArray:
    """Numbers without marks between thousands, with decimal points and the minus of ASCII."""
    cells = pc.replace_substring_regex(cells, f"^{MINUS}", "-")
    if spelling.thousands == " ":
        cells = pc.replace_substring_regex(cells, f"[{BLANKS}]", " ")
    if spelling.thousands is not None:
        mark, decimal = re.escape(spelling.thousands), re.escape(spelling.decimal)
        grouped = rf"^[+-]?[1-9]\d{{0,2}}({mark}\d{{3}})+({decimal}\d*)?$"
        plain = pc.replace_substring(cells, spelling.thousands, "")
        cells = pc.if_else(pc.match_substring_regex(cells, grouped), plain, cells)
    if spelling.decimal == ".":
        return cells
    # a point is no mark of such numbers: 1.5 is none
    marked = pc.replace_substring(cells, ".", "?")
    return pc.replace_substring(marked, spelling.decimal, ".")


def _without_words(plain: pa.ChunkedArray, booleans: bool) -> pa.ChunkedArray:
    """Hexadecimal integers as decimal ones, and booleans, if they are to be numbers, as 0 and 1."""
    for word, digit in _TRUTHS.items() if booleans else ():
        plain = pc.if_else(pc.equal(plain, word), digit, plain)
    found = pc.fill_null(pc.match_substring_regex(plain, _HEXADECIMAL), False)
    if not pc.any(found).as_py():
        return plain
    cells = plain.to_pylist()
    places = [place for place, is_one in enumerate(found.to_pylist()) if is_one]
    for place in places:
        cells[place] = str(int(cells[place], 16))
    return pa.chunked_array([pa.array(cells, plain.type)])


def _without_units(cells: pa.ChunkedArray, unit: str | None) -> pa.ChunkedArray | str:
    """Cells without the unit that all share; the first cell that has another one, or none."""
    words = cells.unique().drop_null().to_pylist()
    parts = {word: part for word in words if (part := unit_of(word)) is not None}
    for word in words:
        if word not in parts or parts[word][1] != (unit := unit or parts[word][1]):
            return str(word)
    numbers = [None if cell is None else parts[cell][0] for cell in cells.to_pylist()]
    return pa.chunked_array([pa.array(numbers, cells.type)])


def unit_of(word: str) -> tuple[str, str] | None:
    """The number of a cell, and the unit before or behind it; None where there is no number."""
    found = _UNIT.match(word)
    if found is None or not re.search(r"\d", found[4]) or re.search(r"\d", found[5]):
        return None
    before = found[1] or found[3]
    return found[2] + found[4], before + "#" + found[5]


def _first_word(cells: pa.ChunkedArray, plain: pa.ChunkedArray) -> str:
    """The first cell that is no number, as it is written."""
    for cell, number in zip(cells, plain, strict=True):
        try:
            number.cast(pa.float64())
        except pa.ArrowInvalid:
            return str(cell.as_py())
    raise AssertionError("every cell is a number")
