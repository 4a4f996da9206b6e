"""Errors of the commands, and messages on the terminal.

Names of columns on the command line: between commas, in double quotes where they hold one.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from gputree.errors import InputError

DIFFERENT = 3  # the exit status of `gputree check` where a tree differs


class UsageError(InputError):
    """The command line is wrong, independent of the contents of files."""


def say(message: str) -> None:
    """One line on standard error."""
    print(f"gputree: {' '.join(message.split())}", file=sys.stderr, flush=True)


def in_words_of_the_command(message: str) -> str:
    """Replace names of Python in a message of the library by options of the command."""
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message


def _as_flag(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')} must be"


_WORDS: Sequence[tuple[str, Any]] = (
    (r"The 'n_trials' parameter of \w+ must", "--trials must"),
    (r"The 'misclassification_costs' parameter of \w+ must", "--costs must"),
    (r"The 'confidence' parameter of C45Rules must", "--rule-confidence must"),
    (r"[Tt]he 'classes' parameter of \w+", "--classes"),
    (r"The '(\w+)' parameter of \w+ must be", _as_flag),
    (r"ordered_categories=\{'(.*)': \[\.\.\.\]\}", r'--ordered "\1=...<..."'),
    (r"(The )?'ordered_categories'( parameter)?", "--ordered"),
    (r" or None(?=\. Got )", ""),
    (r"([Cc]olumn '[^']*') of X\b", r"\1"),
    (r"\bin fit\b", "in training"),
    (r"\b([Ll])eave it out\.", r"\1eave it out with --ignore."),
    (r"'?\binteraction_cst\b'?", "--interactions"),
    (r"'?\bmonotonic_cst\b'?", "--monotonic-cst"),
    (r"'?\bforced_splits\b'?", "--forced-splits"),
    (r": categorical=\[\.\.\.\]", " with --categorical"),
    (r": ignore=\[\.\.\.\]", " with --ignore"),
    (r" Read it as (text|numbers): \w+=\[.*\]", " Write it alike everywhere, or raise --memory"),
    (r"device='([\w:]+)'", r"--device \1"),
    (r"encoding='([\w-]+)'", r"--encoding \1"),
    (r"or pass the format", "or add --format"),
    (r"pass missing_target='drop'", "add --drop-missing-target"),
    (r"delimiter=' '", "--delimiter ' '"),
    (r"add has_header=False", "add --no-header"),
    (r"Use C45Classifier, which has thresholds.* If they are", "Add --algorithm c45. If they are"),
    (r"For numbers use \w+\.", "For numbers add --task regression."),
    (r"For classes use \w+\.", "For classes add --task classification."),
    (r"gini or entropy use DecisionTreeClassifier", "gini or entropy add --algorithm cart"),
    (r"C45Classifier splits by", "--algorithm c45 splits by"),
    (r"ExtraTrees\w+ draws cuts", "--algorithm extra-trees draws cuts"),
    (r"list them in 'categorical_features'", "add --categorical NAME"),
    (r"pass exclude_high_cardinality=False", "add --no-exclude-high-cardinality"),
    (r"Name another one in 'folder'", "Set TMPDIR to another one, or raise --memory"),
    (r"\bPass missing='largest'", "Use --missing-rows largest"),
    (r"missing='largest'", "--missing-rows largest"),
)


def size(tree: Any) -> str:
    """Nodes, leaves and depth."""
    leaves = counted(tree.n_leaves, "leaf", "leaves")
    return f"{counted(tree.n_nodes, 'node')}, {leaves}, depth {tree.max_depth}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def escape_unknown_characters() -> None:
    """Text for people is to appear on any terminal; predictions must not be changed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def with_examples(parser: argparse.ArgumentParser, about: str, *examples: str) -> None:
    """Give the help of a command its first paragraph and, at its end, examples."""
    parser.description = about
    parser.epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
    parser.formatter_class = _Formatter


class _Formatter(argparse.HelpFormatter):
    """Text is wrapped, but for lines that are indented, and for breaks within a help text."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs: list[str] = []
        for line in text.splitlines():
            whole = line.startswith("  ") or not line
            wrapped = [line] if whole else textwrap.wrap(line, width)
            paragraphs += [indent + part for part in wrapped]
        return "\n".join(paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [part for line in text.splitlines() for part in textwrap.wrap(line, width)]


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
