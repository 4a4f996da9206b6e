"""Guesses about columns of text: numbers with a few texts, other notations, missing values."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gputree.columns.categories import EXACT_IN_FLOAT64, NearlyNumeric, is_decimal, nearly_numeric
from gputree.datasets.conversion import BLANKS, Spelling, numbers_of, unit_of
from gputree.datasets.file_format import Guess, Option, shown
from gputree.inputs.labels import CodedLabels, Labels, distinct

# Missing values among text; other markers, such as "None", may well be categories.
_AMONG_TEXT = ("?", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan")

# Decimal marks and marks between thousands, the first that fits.
_NOTATIONS = ((".", ","), (",", None), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_MARK_NAMES = {",": "commas", ".": "points", " ": "blanks", "'": "apostrophes"}

# From here on, text has an exponent: no integers of codes.
_MANY_DIGITS = 1e22

# Line breaks from which a cell may hold rows that follow a quote.
MANY_LINES = 10

_IN_PARENTHESES = re.compile(r"^\((.*)\)$")  # negative numbers, in accounting

_SIGNS = "%‰$€£¥₹₽₩°"


def guesses_of_text(
    columns: pa.Table,
    is_delimited: bool,
    count: Callable[[str], Sequence[int]] | None = None,
) -> Iterator[Guess]:
    """Guesses about the columns of text of a table, which may be one of delimited text.

    Where columns hold their different cells alone, `count` counts the rows of each, by name.
    """
    yield from guesses_of_quotes(columns)
    among_text: dict[str, list[str]] = {}
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        counted = column.drop_null().value_counts()
        words = counted.field("values")
        numbers = counted.field("counts").to_pylist() if count is None else count(name)
        if (near := nearly_numeric(words, numbers)) is not None:
            yield _of_few_texts(name, near)
        elif (guess := _of_notation(name, words)) is not None:
            plain = guess._replace(advice="Write plain numbers to the file", options=())
            yield guess if is_delimited else plain
        else:
            distinct = set(pc.utf8_trim_whitespace(words).to_pylist())
            for mark in _AMONG_TEXT:
                if mark in distinct and len(distinct) > 1:
                    among_text.setdefault(mark, []).append(name)
    for mark, names in among_text.items():
        yield Guess(
            f"{mark!r} is a category like others in {shown(names)}",
            "If it stands for a missing value, add {0}",
            (Option("missing", [mark]),),
            names[0] if len(names) == 1 else None,
        )


def guesses_of_quotes(columns: pa.Table) -> Iterator[Guess]:
    """Guess from cells of very many lines that a quote is not closed."""
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        if not pa.types.is_string(column.type):
            continue
        lines = pc.max(pc.count_substring(column, "\n")).as_py() or 0
        if lines >= MANY_LINES:
            yield Guess(
                f"column {name!r} holds a cell of {lines + 1:,} lines: if it is no text of so "
                "many, a double quote is not closed, and rows are lost",
                column=name,
            )


def _of_few_texts(name: str, near: NearlyNumeric) -> Guess:
    numeric = Option("numeric", [name])
    if not near.n_text:
        return Guess(
            f"column {name!r} holds {near.n_numbers:,} numbers as text, and is taken for text",
            "{0} takes it for numbers",
            (numeric,),
            name,
        )
    texts = "1 text" if near.n_text == 1 else f"{near.n_text:,} texts"
    numbers = "1 number" if near.n_numbers == 1 else f"{near.n_numbers:,} numbers"
    examples = ", ".join(map(repr, near.examples))
    stand, it = ("that stands", "it") if near.n_text == 1 else ("these stand", "them")
    return Guess(
        f"column {name!r} holds {numbers} and {texts} ({examples}), and is taken for text",
        f"If {stand} for a missing value, add {{0}}; {{1}} makes an error of {it}",
        (Option("missing", near.examples), numeric),
        name,
    )


def _of_notation(name: str, words: pa.Array) -> Guess | None:
    """The guess about a column whose cells are numbers in another notation."""
    cells = pa.chunked_array([words])
    present = [word for word in pc.utf8_trim_whitespace(words).to_pylist() if word]
    if present and all(any(sign in word for sign in _SIGNS) for word in present):
        unit = unit_of(present[0])
        if unit is not None and all(map(unit_of, present)):
            return Guess(
                f"column {name!r} holds numbers with a unit, such as {min(present)}, and is taken "
                "for text",
                "For numbers add {0}",
                (Option("units", [name]),),
                name,
            )
        return None
    signed = [_IN_PARENTHESES.sub(r"-\1", word) for word in present]
    if signed != present and all(map(is_decimal, signed)):
        return Guess(
            f"column {name!r} holds numbers in parentheses, such as "
            f"{min(set(present).difference(signed))}, and is taken for text",
            "If these are negative, write them with a minus sign to the file",
            column=name,
        )
    for decimal, thousands in _NOTATIONS:
        mark = thousands or decimal
        marks = (mark, *BLANKS) if mark == " " else (mark,)
        such = min((word for word in present if any(map(word.__contains__, marks))), default=None)
        found = such and numbers_of(cells, Spelling(decimal, thousands))
        if such is not None and not isinstance(found, str):
            return _of_marks(name, such, decimal, thousands)
    return None


def _of_marks(name: str, such: str, decimal: str, thousands: str | None) -> Guess:
    """The guess about numbers with these marks, such as `such`."""
    mark = thousands or decimal
    if thousands is None:
        return Guess(
            f"column {name!r} holds numbers with commas, such as {such}, and is taken for text",
            "If these are decimal commas, add {0}",
            (Option("decimal", ","),),
            name,
        )
    options = (Option("thousands", mark), *((Option("decimal", ","),) if decimal == "," else ()))
    places = " and ".join(f"{{{place}}}" for place in range(len(options)))
    return Guess(
        f"column {name!r} holds numbers with {_MARK_NAMES[mark]} before three digits, such as "
        f"{such}, and is taken for text",
        f"If they separate thousands, add {places}",
        options,
        name,
    )


def guess_of_missing(name: str, counts: Mapping[str, int]) -> Guess:
    """The guess about cells of a column of numbers that were taken as missing by their spelling."""
    cells = sum(counts.values())
    ranked: list[str] = sorted(counts, key=counts.__getitem__, reverse=True)
    words = shown(ranked, 3)
    return Guess(
        f"column {name!r} holds numbers and {words} in {cells:,} "
        f"{'cell, which is' if cells == 1 else 'cells, which are'} taken as missing",
        "{0} says so",
        (Option("missing", list(counts)),),
        name,
    )


def guesses_of_classes(name: str, target: Labels) -> Iterator[Guess]:
    """Guesses about classes that usually mean a missing value."""
    if target.dtype.kind != "U":
        return
    labels = {label.strip(): label for label in distinct(target).tolist()}
    for mark in _AMONG_TEXT:
        if mark in labels:
            count = _rows_of(target, labels[mark])
            yield Guess(
                f"{mark!r} is a class of the target column {name!r}, of "
                f"{'1 row' if count == 1 else f'{count:,} rows'}",
                "If it stands for a missing value, add {0} and {1}",
                (Option("missing", [mark]), Option("missing_target", "drop")),
                name,
            )


def _rows_of(target: Labels, label: str) -> int:
    """Number of rows with a label."""
    if isinstance(target, CodedLabels):
        return int(np.count_nonzero(target.codes == target.classes.tolist().index(label)))
    return int(np.count_nonzero(target == label))


def guesses_of_integers(columns: pa.Table) -> Iterator[Guess]:
    """Guesses about columns of integers that float64 does not represent."""
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        large = _large(column)
        if large is not None:
            yield Guess(
                f"column {name!r} holds integers beyond 2**53, such as {large}, and is taken for "
                "numbers, which are rounded to 53 bits",
                "For codes add {0}, or leave it out: {1}; {2} says that they are numbers",
                (
                    Option("categorical", [name]),
                    Option("ignore", [name]),
                    Option("numeric", [name]),
                ),
                name,
            )


def _large(column: pa.ChunkedArray) -> str | None:
    """An integer beyond 2**53; of float64, the first where all are whole and below 1e22."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_float64(kind)) or not len(column):
        return None
    ends = pc.min_max(column).as_py()
    if ends["min"] is None or max(-ends["min"], ends["max"]) <= EXACT_IN_FLOAT64:
        return None
    if pa.types.is_float64(kind):
        whole = pc.all(pc.equal(column, pc.trunc(column))).as_py()
        if not whole or max(-ends["min"], ends["max"]) >= _MANY_DIGITS:
            return None
    largest = ends["max"] if ends["max"] > EXACT_IN_FLOAT64 else ends["min"]
    return f"{largest:.0f}" if isinstance(largest, float) else str(largest)
