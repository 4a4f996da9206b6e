"""Numbers and tables as text of one width a letter."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence


def aligned(lines: dict[str, str]) -> str:
    """A line for each key, the values below one another."""
    width = max(map(len, lines)) + 2
    return "\n".join(f"{key:{width}}{value}" for key, value in lines.items())


def tabled(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)


def shown(value: float) -> str:
    """A measure as text: four decimals, or digits."""
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def amount(value: float) -> str:
    """Rows as text, or their weights: a decimal where that is no integer."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar name, ignoring case; None if none is similar."""
    folded = {own.casefold(): own for own in reversed(list(known))}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    return folded[near[0]] if near else None


def hint(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the most similar name, after a space; or an empty string."""
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near!r}?"
