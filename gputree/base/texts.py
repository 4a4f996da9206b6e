"""Numbers and tables as text in a monospaced font, and docstrings with shared parts."""

import difflib
import html
import inspect
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar


def aligned(lines: dict[str, str]) -> str:
    """A line for each key, the values below one another."""
    width = max(map(display_width, lines)) + 2
    return "\n".join(f"{padded(key, width)}{value}" for key, value in lines.items())


def tabled(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Rows of a table: some columns to the left, by default the first, the others to the right."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    signed = [width if j in left else -width for j, width in enumerate(widths)]
    return "\n".join("  ".join(map(padded, row, signed)).rstrip() for row in rows)


def html_table(rows: Sequence[Sequence[str]], head: bool = True) -> str:
    """The same as HTML, the first row as its `head`; texts are escaped."""
    lines = []
    for place, row in enumerate(rows):
        tag = "th" if head and place == 0 else "td"
        cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def padded(text: str, width: int) -> str:
    """Text padded to a display width: on the right, or on the left if the width is negative."""
    spaces = " " * (abs(width) - display_width(text))
    return text + spaces if width > 0 else spaces + text


def display_width(text: str) -> int:
    """Columns of a terminal: two for a wide character, such as a Chinese one."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def shown(value: float) -> str:
    """A measure as text: four decimals, or digits."""
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def amount(value: float) -> str:
    """Rows as text, or their weights: a decimal where that is no integer."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar name, ignoring case; None if none is similar."""
    folded = {word.casefold(): word for word in reversed(list(names))}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    return folded[near[0]] if near else None


def hint(name: str, names: Iterable[str]) -> str:
    """A sentence that suggests the most similar name, after a space; or an empty string."""
    near = nearest(name, names)
    return "" if near is None else f" Did you mean {near!r}?"


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


Documented = TypeVar("Documented", bound=Callable[..., Any])


def fill(**texts: str) -> Callable[[Documented], Documented]:
    """Put texts, indented as in a function, in the place of ``{name}`` in a docstring."""

    def filled(thing: Documented) -> Documented:
        if thing.__doc__:  # python -OO has none
            doc = inspect.cleandoc(thing.__doc__)  # as Python 3.13 does by itself
            for name, text in texts.items():
                doc = doc.replace(f"{{{name}}}", text.replace("\n    ", "\n"))
            thing.__doc__ = doc
        return thing

    return filled
