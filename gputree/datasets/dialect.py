"""Separators of cells and decimals of a CSV file, inferred from its first rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple

# Commas last: they stand within cells of the others, and these hardly ever within theirs.
DELIMITERS = (";", "\t", "|", ",")
_DIGIT = re.compile(r"\d")  # cells without one may well be missing
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_THOUSANDS = {mark: re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{mark}\d{{3}}\s*") for mark in (",", r"\.")}
_PARTS = {mark: re.compile(rf"\s*[+-]?\d*{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\.")}


class Dialect(NamedTuple):
    """How a table is written."""

    delimiter: str  # between cells
    decimal_point: str = "."  # within numbers: "." or, where cells are not separated by commas, ","
    # columns whose numbers have points where those of others have commas
    pointed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # texts that mean a missing cell, in addition to the usual ones


def dialect_of(head: str, is_whole: bool, delimiters: Sequence[str] = DELIMITERS) -> Dialect:
    """The dialect of a file by its first rows, `head`, of which the last may not be whole.

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
    if best == "," or not rows:
        return Dialect(best)
    columns = {
        name: [row[place] for row in rows[1:] if place < len(row)]
        for place, name in enumerate(rows[0])
    }
    if not any(_has(",", cells) for cells in columns.values()):
        return Dialect(best)
    return Dialect(best, ",", tuple(name for name, cells in columns.items() if _has(r"\.", cells)))


def _rows(head: str, is_whole: bool, delimiter: str) -> list[list[str]]:
    """The first rows as cells; none where they are no CSV."""
    lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in lines if row]
    except csv.Error:
        return []
    return rows if is_whole else rows[:-1]


def _has(mark: str, cells: Sequence[str]) -> bool:
    """Whether the numbers of a column have the decimal mark."""
    parts = list(filter(_PARTS[mark].fullmatch, cells))
    if all(map(_THOUSANDS[mark].fullmatch, parts)):  # or there are none
        return False
    known = sum(map(bool, map(_DIGIT.search, cells)))
    return 2 * (len(parts) + sum(map(bool, map(_WHOLE.fullmatch, cells)))) > known
