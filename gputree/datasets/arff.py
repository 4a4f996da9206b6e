"""ARFF, the text files of Weka, whose header declares the columns and their categories.

@relation weather
@attribute outlook {sunny, overcast, rainy}
@attribute temperature numeric
@data
sunny, 85
?, 80

A row in braces is sparse: each cell has the place of its column, from 0, before it, and all others
are 0, or the first category. A number in braces behind a row is its weight. Source: Weka's
`ArffLoader`, https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/.

Lines are split into tokens as by Weka's tokenizer: at commas and characters up to the blank, and at
braces; what follows % outside of quotes is a comment, and in quotes a backslash keeps a quote, or
means what it does in Java.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gputree.datasets.file_format import WEIGHTS
from gputree.errors import InputError

NUMBERS = ("numeric", "real", "integer")

_OF_KEEL = ("@input", "@inputs", "@output", "@outputs")

# A word in quotes, which end with the line at the latest; a brace; a word without; a comment.
_TOKEN = re.compile(
    r"""'((?:[^'\\]|\\.)*)(?:'|$)|"((?:[^"\\]|\\.)*)(?:"|$)|([{}])|([^\x00-\x20,'"{}%]+)|(%.*)"""
)
_GAP = re.compile(r"[\x00-\x20,]+")
_SPECIAL = re.compile(r"""['"{}%]""")
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)")
_ESCAPES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class Attribute(NamedTuple):
    """A column that a header declares; `words` are the values of a nominal one."""

    name: str
    kind: str
    words: list[str] | None = None


def read_arff(label: str, text: str, words: Collection[str] = ()) -> pa.Table:
    """A table from the text of an ARFF file, which messages call `label`.

    Nominal columns become dictionaries of the declared words in their order, numbers without a
    fraction integers, dates timestamps without a value, as no tree splits them; those of `words`
    text. Weights of rows, if there are any, are the last column, `WEIGHTS`. Errors name the line.
    """
    lines = _lines(text)
    attributes = _header(label, lines)
    columns: list[list[str | None]] = [[] for _ in attributes]
    places: list[int] = []
    weights: list[float] = []
    for place, _, line in lines:
        words_of_row, weight = _without_weight(label, place, line)
        weights.append(weight)
        if words_of_row[0].is_brace("{"):
            cells = _sparse_cells(label, place, words_of_row, attributes)
        else:
            cells = _cells(label, place, words_of_row)
        if len(cells) != len(attributes):
            raise InputError(
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
    table = pa.Table.from_arrays(arrays, names=names)
    return table if set(weights) <= {1.0} else table.append_column(WEIGHTS, pa.array(weights))


class Word(NamedTuple):
    """A word of a line, or a brace."""

    text: str
    quoted: bool = False

    def is_brace(self, brace: str) -> bool:
        """Return whether it is `brace`, not in quotes."""
        return self.text == brace and not self.quoted


def _lines(text: str) -> Iterator[tuple[int, str, list[Word]]]:
    for place, line in enumerate(_LINE_END.split(text), 1):
        if words := _words(line):
            yield place, line.strip(), words


def _words(line: str) -> list[Word]:
    if not _SPECIAL.search(line):
        return [Word(word) for word in _GAP.split(line) if word]
    found = []
    for match in _TOKEN.finditer(line):
        quoted = match[1] if match[1] is not None else match[2]
        if quoted is not None:
            found.append(Word(_ESCAPE.sub(_unescaped, quoted), True))
        elif match[5] is None:
            found.append(Word(match[3] or match[4]))
    return found


def _unescaped(match: re.Match[str]) -> str:
    what = match[1]
    return chr(int(what, 8)) if what[0] in "01234567" else _ESCAPES.get(what, what)


def _header(label: str, lines: Iterator[tuple[int, str, list[Word]]]) -> list[Attribute]:
    attributes: list[Attribute] = []
    for place, line, words in lines:
        first = words[0].text.lower()
        if first == "@data":
            return attributes
        if first == "@relation":
            continue
        attribute = _attribute(words[1:]) if first == "@attribute" else None
        if attribute is None:
            hint = ""
            if first in _OF_KEEL:
                hint = " It is of KEEL's files, and none of ARFF: remove it."
            raise InputError(f"{label}, line {place}: this declares no column: {line[:60]}{hint}")
        attributes.append(attribute)
    raise InputError(f"{label} has no line @data, after which rows begin.")


def _attribute(words: list[Word]) -> Attribute | None:
    """Column that words behind @attribute declare; None where they declare none."""
    if len(words) < 2:
        return None
    name, kind = words[0].text, words[1].text.lower()
    if not words[1].is_brace("{"):
        return Attribute(name, kind) if kind in (*NUMBERS, "string", "date") else None
    if not words[-1].is_brace("}") or any(word.is_brace("}") for word in words[:-1]):
        return None
    return Attribute(name, "nominal", list(dict.fromkeys(word.text for word in words[2:-1])))


def _without_weight(label: str, place: int, words: list[Word]) -> tuple[list[Word], float]:
    """The words of a row without its weight, and that: 1 where it has none."""
    if len(words) < 4 or not words[-3].is_brace("{") or not words[-1].is_brace("}"):
        return words, 1.0
    try:
        weight = _number(words[-2].text)
        if not 0.0 <= weight < float("inf"):
            raise InputError(words[-2].text)
    except ValueError:
        raise InputError(
            f"{label}, line {place}: the weight of a row must be a number from 0. Got "
            f"{words[-2].text!r} instead."
        ) from None
    return words[:-3], weight


def _cells(label: str, place: int, words: list[Word]) -> list[str | None]:
    """The cells of a row, None where one is missing."""
    if any(word.is_brace("{") or word.is_brace("}") for word in words):
        raise InputError(f"{label}, line {place}: a brace in a word must be in quotes.")
    return [None if word == Word("?") else word.text for word in words]


def _sparse_cells(
    label: str, place: int, words: list[Word], attributes: list[Attribute]
) -> list[str | None]:
    """The cells of a row that lists some: the place of a column, and the cell, in pairs."""
    cells: list[str | None] = [_implied(attribute) for attribute in attributes]
    if not words[-1].is_brace("}") or len(words) % 2:
        raise InputError(
            f"{label}, line {place}: a sparse row must be {{PLACE CELL, ...}}, with places from 0."
        )
    before = -1
    listed = _cells(label, place, words[1:-1])
    for column, cell in zip(listed[::2], listed[1::2], strict=True):
        j = int(column) if column is not None and column.isdecimal() else -1
        if not before < j < len(attributes):
            raise InputError(
                f"{label}, line {place}: places of a sparse row must ascend, from 0 to "
                f"{len(attributes) - 1}. Got {column!r} instead."
            )
        cells[j], before = cell, j
    return cells


def _implied(attribute: Attribute) -> str | None:
    """The cell of a sparse row that does not list it: 0, or the first category."""
    if attribute.words is not None:
        return attribute.words[0] if attribute.words else None
    return "0" if attribute.kind in NUMBERS else None


def _column(
    label: str, attribute: Attribute, cells: list[str | None], places: list[int]
) -> pa.Array:
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
        raise InputError(
            f"{label}, line {places[row]}: column {attribute.name!r} holds {cell!r}, which is not "
            f"{declared}, as its header declares."
        ) from None


def _numbers(attribute: Attribute, cells: list[str | None]) -> pa.Array:
    values = np.array([np.nan if cell is None else _number(cell) for cell in cells])
    if (np.abs(values) < 2.0**53).all() and (values == np.trunc(values)).all():
        return pa.array(values.astype(np.int64))
    if (np.abs(values) >= 2.0**53).any() and (exact := _whole(cells)) is not None:
        return exact
    return pa.array(values, from_pandas=True)


def _number(cell: str) -> float:
    """A number as Java reads it: Python would take 1_000, and digits of other scripts."""
    if "_" in cell or not cell.isascii():
        raise InputError(cell)
    return float(cell)


def _whole(cells: list[str | None]) -> pa.Array | None:
    """Integers that float64 rounds; None where a cell has a fraction or too many digits."""
    try:
        return pa.array([None if cell is None else int(cell) for cell in cells])
    except (OverflowError, ValueError):
        return None


def _codes(attribute: Attribute, cells: list[str | None]) -> pa.Array:
    place: dict[Any, Any] = {word: code for code, word in enumerate(attribute.words or ())}
    place[None] = None
    codes = pa.array([place[cell] for cell in cells], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(attribute.words, pa.string()))


def _fits(attribute: Attribute, cell: str | None) -> bool:
    if cell is None or attribute.words is not None:
        return cell is None or cell in (attribute.words or ())
    try:
        _number(cell)
    except ValueError:
        return False
    return True
