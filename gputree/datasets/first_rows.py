"""Guesses that the first rows of a CSV file show, as they are written.

Header, thousands that are read as decimals, and leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from gputree.columns.near_numbers import is_decimal
from gputree.datasets.csv_head import Opened
from gputree.datasets.dialect import groups_of_three, has_fractions
from gputree.datasets.guesses import Guess, Option

_ZEROS = re.compile(r"\s*[+-]?0\d{2,}\s*")  # 01 to 12 and the like are numbers
_WHOLE = re.compile(r"\s*\d+\s*")

_MOST_SHOWN = 4


def guesses_of_first_rows(
    opened: Opened, numbers: Collection[str], sure: Collection[str], is_decimal_given: bool
) -> Iterator[Guess]:
    """Guesses about a file; `numbers` were read as such, `sure` are columns with a given kind."""
    if not opened.is_headless and header_is_row(opened.names, opened.rows):
        yield _of_header(opened.names)
    columns = {
        name: [row[place] for row in opened.rows if place < len(row)]
        for place, name in enumerate(opened.names)
        if name in numbers and name not in sure
    }
    if opened.dialect.delimiter != "," and not is_decimal_given:
        yield from _of_thousands(opened, columns)
    for name, cells in columns.items():
        zeros = next(filter(_ZEROS.fullmatch, cells), "").strip()
        if zeros:
            yield Guess(
                f"column {name!r} holds integers with leading zeros, such as {zeros}, and is taken "
                f"for numbers: {zeros} is {int(zeros)}",
                "For codes add {0}; {1} says that they are numbers",
                (Option("categorical", [name]), Option("numeric", [name])),
                name,
            )


def _of_header(names: Sequence[str]) -> Guess:
    more = ", ..." if len(names) > _MOST_SHOWN else ""
    return Guess(
        f"the header looks like a row of values: {', '.join(names[:_MOST_SHOWN])}{more}",
        "If it is one, add {0}, or {1} with a name for each column",
        (Option("has_header", False), Option("names", [])),
    )


def header_is_row(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether names of columns look like the values below them.

    Numbers that do not count columns or years; or, where no column holds numbers, words that all
    stand in their own columns, too.
    """
    if not rows:
        return False
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(names))]
    numbers = [
        name
        for name, cells in zip(names, columns, strict=True)
        if is_decimal(name) and _mostly_decimal(cells)
    ]
    if numbers:
        return not _count(numbers)
    if any(map(_mostly_decimal, columns)) or len(names) < 2:
        return False
    return all(
        bool(name.strip()) and name in cells for name, cells in zip(names, columns, strict=True)
    )


def _mostly_decimal(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if cell.strip()]
    return bool(known) and 2 * sum(map(is_decimal, known)) > len(known)


def _count(numbers: Sequence[str]) -> bool:
    """Return whether names are numbers of columns, such as 0, 1, 2, or years, ascending."""
    if not all(map(_WHOLE.fullmatch, numbers)):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(numbers)}
    return len(steps) <= 1 and min(steps, default=1) > 0


def _of_thousands(opened: Opened, columns: dict[str, list[str]]) -> Iterator[Guess]:
    """Numbers read as decimals whose points may separate thousands, of a file without fractions."""
    everywhere = [
        [row[place] for row in opened.rows if place < len(row)]
        for place in range(len(opened.names))
    ]
    if any(has_fractions(opened.dialect.decimal_point, cells) for cells in everywhere):
        return
    for name, cells in columns.items():
        found = groups_of_three(opened.dialect.decimal_point, cells)
        if not found:
            continue
        mark, value = opened.dialect.decimal_point, found[0].strip()
        yield Guess(
            f"column {name!r} holds numbers with {'points' if mark == '.' else 'commas'} before "
            f"three digits, such as {value}, which are read as decimals",
            "If they separate thousands, add {0}; {1} says that they are decimals",
            (Option("thousands", mark), Option("decimal", mark)),
            name,
        )
