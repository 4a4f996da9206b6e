"""Format of a file, where neither its name nor its rows show it; guesses, which are warnings."""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gputree.errors import InputError, warn

_OF_FORMAT = ("has_header", "names", "decimal", "thousands", "units", "encoding", "format")


class Option(NamedTuple):
    """A parameter of the functions that read tables, or a field of `FileFormat`."""

    name: str
    value: object

    def __str__(self) -> str:
        given = f"{self.name}={self.value!r}"
        return f"file_format=FileFormat({given})" if self.name in _OF_FORMAT else given


class Guess(NamedTuple):
    """A guess about a table, and the parameters that replace it."""

    text: str  # what was taken for what, without a period
    advice: str = ""  # a sentence with places for the options, such as "For numbers add {0}"
    options: tuple[Option, ...] = ()
    column: str | None = None
    is_certain: bool = False  # the file says so, and there is nothing to do

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


# Formats by the names that users give, with the suffix that stands for each.
FORMATS = {
    "csv": ".csv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "arff": ".arff",
    "c45": ".data",
}
DECIMALS = (".", ",")

# Name of the column of weights of an ARFF file that has some.
WEIGHTS = "@weight"


class FileFormat(NamedTuple):
    """Format of a file; None is inferred from its name and its first rows.

    All but `format` and `encoding` are for text whose cells a mark separates: .csv, .tsv, .txt.

    Attributes
    ----------
    format : {"csv", "tsv", "parquet", "arrow", "arff", "c45"} or None
        Instead of the format that the suffix of the name stands for.
    encoding : str or None
        Of text, such as "cp1252", "gbk" or "utf-16"; None is UTF-8.
    has_header : bool
        Whether the first row names the columns. If not, they are V1, V2, ... as in R.
    names : sequence of str or None
        Names of all columns, of a file without a header.
    delimiter : str or None
        Mark between cells, one character.
    decimal : {".", ","} or None
        Mark before the fraction of a number.
    thousands : str or None
        Mark between groups of three digits, which numbers are read without.
    units : sequence of str, or mapping of str to str or None
        Names of columns of numbers with a unit before or behind each, such as 12.5%, $1.25 or 3 kg:
        they are read without it. Numbers of one column must not have different units; a mapping
        says which one they must have, with # for the number, such as "$#" or "#kg".
    may_lack : str or None
        The one of `names` that the file may lack: the target of a table to predict.
    """

    format: str | None = None
    encoding: str | None = None
    has_header: bool = True
    names: Sequence[str] | None = None
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    units: Sequence[str] | Mapping[str, str | None] = ()
    may_lack: str | None = None

    @property
    def is_headless(self) -> bool:
        """Return whether the first row holds values."""
        return not self.has_header or self.names is not None

    def names_of(self, width: int, label: str) -> list[str]:
        """Names of the `width` columns of a file without a header."""
        if self.names is None:
            return [f"V{place}" for place in range(1, width + 1)]
        if self.may_lack in self.names and len(self.names) == width + 1:
            return [name for name in self.names if name != self.may_lack]
        if len(self.names) != width:
            raise InputError(
                f"{label} has {width} columns, and {len(self.names)} names were given for them."
            )
        return list(self.names)


INFERRED = FileFormat()


def check_format(form: FileFormat) -> None:
    """Raise ValueError for a format that no file has."""
    _require_one_of("format", form.format, [*FORMATS])
    _require_one_of("decimal", form.decimal, DECIMALS)
    for key, mark in (("delimiter", form.delimiter), ("thousands", form.thousands)):
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '\r\n"'):
            raise InputError(f"The {key!r} of a file must be one character. Got {mark!r} instead.")
    marks = [mark for mark in (form.decimal, form.thousands) if mark is not None]
    if len(set(marks)) < len(marks):
        raise InputError(f"The 'decimal' and 'thousands' of a file must differ. Got {marks[0]!r}.")
    if form.encoding is not None and not _is_of_files(form.encoding):
        raise InputError(
            "The 'encoding' of a file must be one that Python knows, such as 'cp1252' or "
            f"'gbk'. Got {form.encoding!r} instead."
        )


def _is_of_files(encoding: str) -> bool:
    """Return whether Python knows an encoding of text, other than those of host names."""
    try:
        "a".encode(encoding)  # an error of hex, rot13 and others, which are none of text
    except (LookupError, UnicodeError):
        return False
    return codecs.lookup(encoding).name not in ("idna", "punycode")


def _require_one_of(key: str, value: str | None, allowed: Sequence[str]) -> None:
    if value is not None and value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise InputError(f"The {key!r} of a file must be one of {listed}. Got {value!r} instead.")
