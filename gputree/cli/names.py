"""Names of columns on the command line: between commas, in double quotes where they hold one."""

from __future__ import annotations

import argparse
import csv
import re
import shlex
from collections.abc import Iterable

# Help text of every option that takes names.
HOW = (
    "names separated by commas, a name that contains a comma in double quotes: 'a,\"b, c\"'; "
    "may be repeated"
)
_PLAIN = re.compile(r'[^",\s]([^",\r\n]*[^",\s])?')  # needs no quotes


def parse_names(text: str) -> list[str]:
    """Split names at commas, as in a line of CSV; an empty text is one empty name."""
    if not text:
        return [""]
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{error}, got {text!r}") from None


def parse_quoted(name: str) -> str:
    """One name, which may stand in double quotes."""
    quoted = len(name) > 1 and name.startswith('"') and name.endswith('"')
    return name[1:-1].replace('""', '"') if quoted else name


def as_argument(names: Iterable[str]) -> str:
    """Quote names for `parse_names`, and for a shell."""
    quoted = []
    for name in names:
        plain = _PLAIN.fullmatch(name)
        quoted.append(name if plain else '"' + name.replace('"', '""') + '"')
    return shlex.quote(",".join(quoted))


def number(text: str) -> int | float:
    """An integer as int, which is a count; any other as float, which is a fraction."""
    try:
        return int(text)
    except ValueError:
        return float(text)
