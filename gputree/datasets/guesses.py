"""Guesses about a table, and how a user says otherwise; each is a warning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gputree.base.warnings import warn

_OF_FORMAT = ("has_header", "names", "decimal", "thousands", "units", "encoding", "format")


class Option(NamedTuple):
    """A parameter of the functions that read tables, or a field of `FileFormat`."""

    name: str
    value: object

    def __str__(self) -> str:
        given = f"{self.name}={self.value!r}"
        return f"file_format=FileFormat({given})" if self.name in _OF_FORMAT else given


class Guess(NamedTuple):
    """A guess about a table, and the parameters that replace it.

    Attributes
    ----------
    text : str
        What was taken for what, without a period.
    advice : str
        A sentence with places for the options, such as "For numbers add {0}"; or empty.
    options : tuple of Option
    column : str or None
    is_certain : bool
        Whether the file says so, and there is nothing to do: no more than a message.
    """

    text: str
    advice: str = ""
    options: tuple[Option, ...] = ()
    column: str | None = None
    is_certain: bool = False

    def sentence(self, given: Iterable[str]) -> str:
        """The text and the advice, with options as they are given."""
        return f"{self.text}. {self.advice.format(*given)}" if self.advice else self.text


class ReadingWarning(UserWarning):
    """A guess about a table that was read, with `guess` and the `label` of the table."""

    def __init__(self, label: str, guess: Guess) -> None:
        super().__init__(f"{label}: {guess.sentence(map(str, guess.options))}")
        self.label, self.guess = label, guess


def warn_of(label: str, guesses: Iterable[Guess]) -> None:
    """Issue a warning for each guess."""
    for guess in guesses:
        warn(ReadingWarning(label, guess), ReadingWarning)


def shown(names: Iterable[object], most: int = 5) -> str:
    """Names in quotes, the first of many."""
    listed = list(map(repr, names))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
