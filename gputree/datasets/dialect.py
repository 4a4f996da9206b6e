"""What separates the cells of a CSV file, and the parts of its numbers: told by its first rows."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice
from typing import NamedTuple

# Others are looked for only where commas do not part all rows alike.
_DELIMITERS = (",", ";", "\t", "|")
_ROWS = 50
_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")


class Dialect(NamedTuple):
    """How a table is written.

    Attributes
    ----------
    delimiter : str
        Between cells.
    decimal_point : str
        Within numbers: "." or, where cells are not separated by commas, ",".
    """

    delimiter: str
    decimal_point: str = "."


def dialect_of(head: str, is_whole: bool) -> Dialect:
    """The dialect of a file named .csv.

    Commas, unless other marks part the first rows into as many cells each, and commas do not.
    Numbers have decimal commas if some cell says so and none has a decimal point. Where all
    commas stand before three digits, as between thousands, they part nothing.

    Parameters
    ----------
    head : str
        The first rows.
    is_whole : bool
        Whether the last of them is whole.
    """
    for delimiter in _DELIMITERS:
        rows = _rows(head, is_whole, delimiter)
        widths = set(map(len, rows))
        if len(widths) == 1 and widths.pop() > 1:
            commas = delimiter != "," and _has_decimal_commas(rows[1:])
            return Dialect(delimiter, "," if commas else ".")
    return Dialect(",")


def _rows(head: str, is_whole: bool, delimiter: str) -> list[list[str]]:
    """The first rows as cells; none where they are no CSV."""
    lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in islice(lines, _ROWS + 1) if row]
    except csv.Error:
        return []
    return rows if is_whole and len(rows) <= _ROWS else rows[:-1]


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell for row in rows for cell in row]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    if all(map(_THOUSANDS.fullmatch, commas)):  # or there are none
        return False
    return not any(map(_POINT.fullmatch, cells))
