"""Convert the cells of a table: missing values, text, numbers, dates.

Columns of classes and categories whose cells say more than a number or a time that they spell.

As numbers 007, 07 and 7 are one; as classes and categories they are three. So a column that is
used as such keeps its text where an integer in it has leading zeros or is of the kind 0x1F,
and where a reader takes its cells for dates or times, such as 10:30. Integers beyond 64 bits,
which a reader rounds to float64, are decimals.

The reader of CSV makes numbers of most columns by itself. Those that it leaves as text are read
here: other spellings of missing values, decimal commas, marks between thousands, units, hexadecimal
integers. No other place decides which numbers cells spell.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gputree.columns.categories import MINUS
from gputree.columns.cells import has_text_of_time, text_of_times
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


MOST_LISTED = 30

_ZEROS = re.compile(r"\s*[+-]?0\d")


class Kinds(NamedTuple):
    """Names of columns by their kind, as `read_table` documents it; not all are in the table."""

    text: Sequence[str] = ()
    numeric: Sequence[str] = ()
    boolean: Sequence[str] = ()  # of CSV that is read in batches
    categorical: Sequence[str] = ()
    whole: Sequence[str] = ()
    missing: Sequence[str] = ()  # texts that mean a missing cell, in addition to the empty one
    carried: Sequence[str] = ()  # text in CSV, else of the file's types
    inferred: Sequence[str] = ()  # of CSV in batches: what the cells of each batch suggest


def convert(label: str, table: pa.Table, kinds: Kinds) -> pa.Table:
    """Give columns the types that were requested, and cells that are missing none.

    NotANumberError where a column that is to be numeric holds something else.
    """
    for j, field in enumerate(table.schema):
        if field.name in kinds.carried:
            continue
        column = _computable(table.column(j))
        is_category = field.name in kinds.categorical
        if field.name in kinds.text or (is_category and is_date(field.type)):
            column = _as_text(column)
        column = _marks_to_null(empty_to_null(column, kinds.missing), kinds.missing)
        if field.name in kinds.numeric:
            column = _as_numbers(label, field.name, column)
        if column is not table.column(j):
            table = table.set_column(j, field.name, column)
    return table


def _computable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type that pyarrow computes with, of the same values."""
    kind = column.type
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if kind == pa.string_view():  # of polars, in Arrow files
        return column.cast(pa.string())
    if pa.types.is_dictionary(kind) and kind.value_type == pa.string_view():
        return column.cast(pa.dictionary(kind.index_type, pa.string(), kind.ordered))
    return column


def empty_to_null(column: pa.ChunkedArray, missing: Sequence[str] = ()) -> pa.ChunkedArray:
    """A column of text with nulls where cells are empty or, blanks aside, one of `missing`."""
    # In a column of text "NA" and "None" may well be categories; only "" is missing unasked.
    words = column
    if pa.types.is_dictionary(column.type):
        words = column.cast(column.type.value_type) if missing else column
    if not is_text(words.type):
        return column
    absent = pc.equal(words, "")
    if missing:
        tokens = pa.array([token.strip() for token in missing], words.type)
        absent = pc.or_(absent, pc.is_in(pc.utf8_trim_whitespace(words), value_set=tokens))
    if words is not column and not pc.any(absent).as_py():
        return column  # with its declared categories
    return pc.if_else(absent, pa.scalar(None, words.type), words)


def _marks_to_null(column: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """A column of numbers with nulls where cells are one of the numbers in `missing`."""
    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    marks = [mark for token in missing for mark in _number_of(token, kind)]
    if not marks:
        return column
    numbers = column.cast(kind)
    found = pc.is_in(numbers, value_set=pa.array(marks, kind))
    if coded and not pc.any(found).as_py():
        return column  # with its declared categories
    converted = pc.if_else(found, pa.scalar(None, kind), numbers)
    return converted.dictionary_encode() if coded else converted


def _number_of(token: str, kind: pa.DataType) -> list[Any]:
    """The number of a type that a text spells, if it does; 007 spells more than one."""
    try:
        number = Decimal(token.strip())
    except InvalidOperation:
        return []
    if _ZEROS.match(token) or number.is_nan():
        return []
    if types.is_floating(kind):
        return [float(number)]
    if types.is_decimal(kind):
        found: Any = number
    elif types.is_integer(kind) and number.is_finite() and number == int(number):
        found = int(number)
    else:
        return []
    try:
        pa.scalar(found, kind)
    except (pa.ArrowException, OverflowError):
        return []  # no cell of this type holds it
    return [found]


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers, booleans, dates and times as text; other types are left."""
    types, kind = pa.types, column.type
    if has_text_of_time(kind):
        return text_of_times(column)
    if types.is_integer(kind) or types.is_boolean(kind):
        return column.cast(pa.string())
    return column


def _as_numbers(label: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())
    if is_date(column.type):
        raise NotANumberError(label, name, str(column.drop_null()[0]))
    if not is_text(column.type):
        return column
    found = numbers_of(column, Spelling(), True)
    if isinstance(found, str):
        raise NotANumberError(label, name, found)
    return found


def is_date(kind: pa.DataType) -> bool:
    """Return whether a type is of dates, times or durations."""
    return bool(pa.types.is_temporal(kind))


def is_number_type(kind: pa.DataType) -> bool:
    """Return whether a type is of numbers."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def listed(names: Iterable[Any]) -> str:
    """Names in quotes, the first of many."""
    items = [repr(name) for name in names]
    rest = f" and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return ", ".join(items[:MOST_LISTED]) + rest


_WHOLE = r"^[+-]?\d+$"
_MOST_DIGITS = 38  # of a decimal
_EXACT = float(1 << 53)  # integers up to this are float64

_LEADING_ZEROS = r"^\s*[+-]?0(\d+|[xX][0-9a-fA-F]+)\s*$"


def says_more_than(kind: pa.DataType, words: pa.ChunkedArray) -> bool:
    """Return whether values of the type that a reader infers would lose something of their text."""
    if is_date(kind):
        return True
    number = types.is_integer(kind) or types.is_floating(kind)
    return number and leading_zeros(words) is not None


def exact_numbers(found: pa.ChunkedArray, words: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as a reader found them in `words`, or as decimals where it has rounded whole ones.

    `words` themselves where those have too many digits. Where a cell has a fraction, all are as
    found.
    """
    if not pa.types.is_floating(found.type):
        return found
    if not pc.any(pc.greater(pc.abs(found), _EXACT)).as_py():
        return found
    digits = pc.if_else(found.is_null(), pa.scalar(None, pa.string()), words)
    digits = pc.utf8_trim_whitespace(digits)
    if not pc.all(pc.match_substring_regex(digits, _WHOLE)).as_py():
        return found
    digits = pc.utf8_ltrim(digits, "+")
    longest = pc.max(pc.utf8_length(pc.utf8_ltrim(digits, "-"))).as_py()
    # more digits wrap around in a cast
    return words if longest > _MOST_DIGITS else digits.cast(pa.decimal128(_MOST_DIGITS))


def leading_zeros(words: pa.ChunkedArray | NDArray[Any]) -> str | None:
    """The first cell of text that is an integer with leading zeros; None if there is none."""
    words = pa.array(words) if isinstance(words, np.ndarray) else words
    place = pc.index(pc.match_substring_regex(words, _LEADING_ZEROS), True).as_py()
    return None if place < 0 else str(words[place])
