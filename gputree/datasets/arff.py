"""ARFF, the text files of Weka, whose header declares the columns and their categories.

@relation weather
@attribute outlook {sunny, overcast, rainy}
@attribute temperature numeric
@data
sunny, 85
?, 80
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("numeric", "real", "integer")

# A word in quotes, within which a backslash keeps the next character, or one without.
_WORD = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,\s]+)""")
_ATTRIBUTE = re.compile(rf"@attribute\s+(?:{_WORD.pattern})\s+(.+)$", re.IGNORECASE)


class Attribute(NamedTuple):
    """A column that a header declares; `words` are those of a nominal one."""

    name: str
    kind: str
    words: list[str] | None = None


def read_arff(label: str, text: str, words: Collection[str] = ()) -> pa.Table:
    """A table from the text of an ARFF file.

    Nominal columns become dictionaries of the declared words in their order, numbers without a
    fraction integers, dates timestamps without a value, as no tree splits them.

    Parameters
    ----------
    label : str
        What messages call the file.
    text : str
    words : collection of str
        Names of columns whose dates are text.

    Raises
    ------
    ValueError
        The header cannot be read, rows are sparse or do not fit it. The line is named.
    """
    import pyarrow as pa

    lines = _lines(text)
    attributes = _header(label, lines)
    columns: list[list[str | None]] = [[] for _ in attributes]
    places: list[int] = []
    for place, line in lines:
        if line.startswith("{"):
            raise ValueError(f"{label}, line {place}: sparse rows are not read.")
        cells = _cells(line)
        if len(cells) != len(attributes):
            raise ValueError(
                f"{label}, line {place}: expected {len(attributes)} cells, got {len(cells)}."
            )
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
        places.append(place)
    pairs = zip(attributes, columns, strict=True)
    names = [attribute.name for attribute in attributes]
    arrays = [
        pa.array(cells, pa.string())
        if attribute.kind == "date" and attribute.name in words
        else _column(label, attribute, cells, places)
        for attribute, cells in pairs
    ]
    return pa.Table.from_arrays(arrays, names=names)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither empty nor comments, with their numbers."""
    for place, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith("%"):
            yield place, line


def _header(label: str, lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    attributes: list[Attribute] = []
    for place, line in lines:
        word = line.split()[0].lower()
        if word == "@data":
            return attributes
        if word == "@relation":
            continue
        found = _ATTRIBUTE.match(line)
        attribute = None if found is None else _attribute(_unquoted(found), found[4].strip())
        if attribute is None:
            raise ValueError(f"{label}, line {place}: this declares no column: {line[:60]}")
        attributes.append(attribute)
    raise ValueError(f"{label} has no line @data, after which rows begin.")


def _attribute(name: str, kind: str) -> Attribute | None:
    if kind.startswith("{") and kind.endswith("}"):
        words = [_unquoted(found) for found in _WORD.finditer(kind[1:-1])]
        return Attribute(name, "nominal", list(dict.fromkeys(words)))
    kind = kind.split()[0].lower()
    return Attribute(name, kind) if kind in (*NUMBERS, "string", "date") else None


def _unquoted(found: re.Match[str]) -> str:
    if found[3] is not None:
        return found[3]
    return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2])


def _cells(line: str) -> list[str | None]:
    """The cells of a row, None where one is missing."""
    if "'" not in line and '"' not in line:
        return [None if cell == "?" else cell for cell in line.replace(",", " ").split()]
    return [None if found[3] == "?" else _unquoted(found) for found in _WORD.finditer(line)]


# ---------------------------------------------------------------------------- columns
def _column(
    label: str, attribute: Attribute, cells: list[str | None], places: list[int]
) -> pa.Array:
    import pyarrow as pa

    if attribute.kind == "string":
        return pa.array(cells, pa.string())
    if attribute.kind == "date":
        return pa.nulls(len(cells), pa.timestamp("s"))  # of whatever form: no tree splits them
    read = _numbers if attribute.words is None else _codes
    try:
        return read(attribute, cells)
    except (KeyError, ValueError):
        row, cell = next(pair for pair in enumerate(cells) if not _fits(attribute, pair[1]))
        declared = "a number" if attribute.words is None else f"one of {attribute.words[:30]}"
        raise ValueError(
            f"{label}, line {places[row]}: column {attribute.name!r} holds {cell!r}, which is not "
            f"{declared}, as its header declares."
        ) from None


def _numbers(attribute: Attribute, cells: list[str | None]) -> pa.Array:
    import pyarrow as pa

    values = np.array([np.nan if cell is None else float(cell) for cell in cells])
    if (np.abs(values) < 2.0**53).all() and (values == np.trunc(values)).all():
        return pa.array(values.astype(np.int64))
    if (np.abs(values) >= 2.0**53).any() and (exact := _whole(cells)) is not None:
        return exact
    return pa.array(values, from_pandas=True)


def _whole(cells: list[str | None]) -> pa.Array | None:
    """Whole numbers that float64 rounds; None where a cell has a fraction or too many digits."""
    import pyarrow as pa

    try:
        return pa.array([None if cell is None else int(cell) for cell in cells])
    except (OverflowError, ValueError):
        return None


def _codes(attribute: Attribute, cells: list[str | None]) -> pa.Array:
    import pyarrow as pa

    place: dict[Any, Any] = {word: code for code, word in enumerate(attribute.words or ())}
    place[None] = None
    codes = pa.array([place[cell] for cell in cells], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(attribute.words, pa.string()))


def _fits(attribute: Attribute, cell: str | None) -> bool:
    if cell is None or attribute.words is not None:
        return cell is None or cell in (attribute.words or ())
    try:
        float(cell)
    except ValueError:
        return False
    return True
