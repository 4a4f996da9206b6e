"""Ordered categories on the command line: `--ordered "size=small<medium<large"`."""

from __future__ import annotations

import argparse
import re
from typing import Any

from gputree.cli.names import HOW, parse_names, parse_quoted
from gputree.cli.report import UsageError

_DECLARED = "declared"  # of the parameter `ordered_categories`

_QUOTED = r'\s*"(?:[^"]|"")*"\s*'
_ORDER = re.compile(rf'({_QUOTED}|[^"=<]+)=(.*)', re.S)
_LEVEL = re.compile(rf'({_QUOTED}|[^"<]+)(<|$)', re.S)


def add_ordered(parser: Any) -> None:
    """Add `--ordered`."""
    parser.add_argument(
        "--ordered",
        type=parse_order,
        metavar="A=X<Y<...",
        action="extend",
        default=[],
        help="column of ordered categories, from the lowest to the highest, which is cut along "
        "their order; names and categories that contain = or < in double quotes; may be repeated. "
        f"A,B,...: the order that an ARFF header, or a type, declares; names are {HOW}",
    )


def parse_order(text: str) -> list[tuple[str, Any]]:
    """Columns, each with its categories in their order, or "declared"."""
    found = _ORDER.fullmatch(text)
    if found is None:
        return [(name, _DECLARED) for name in parse_names(text)]
    words = _LEVEL.findall(found[2])
    levels = [parse_quoted(word.strip()) for word, _ in words]
    whole = "".join(word + end for word, end in words) == found[2] and not found[2].endswith("<")
    name = parse_quoted(found[1].strip())
    if not whole or len(levels) < 2 or not all(levels) or not name:
        raise argparse.ArgumentTypeError(
            "must be COLUMN=LOWEST<...<HIGHEST, with names and categories in double quotes where "
            f"they contain = or <, or names of columns, got {text!r}"
        )
    return [(name, levels)]


def orders_of(arguments: argparse.Namespace) -> dict[str, Any] | str:
    """The parameter `ordered_categories`."""
    return dict(arguments.ordered) or "auto"


def listed_levels(arguments: argparse.Namespace) -> list[str]:
    """Columns whose categories are listed: as text, whatever they look like."""
    return [name for name, levels in arguments.ordered if levels != _DECLARED]


def check_orders(arguments: argparse.Namespace) -> None:
    """Refuse columns that are ordered twice, or said to be something else."""
    names = [name for name, _ in arguments.ordered]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--ordered gives two orders of {name!r}.")
        for option in ("categorical", "numeric"):
            if name in getattr(arguments, option):
                raise UsageError(f"--{option} and --ordered both name {name!r}.")
