"""`gputree explain`: the path of rows through a tree, in words."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from gputree.cli.reading import add_tree, check_inputs, chosen, has_rules, load, require_one
from gputree.cli.report import UsageError, counted, escape_unknown_characters, with_examples
from gputree.cli.tables import add_reading, batches_for, label_of
from gputree.errors import InputError

FIRST_ROWS = "1-3"


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree explain`."""
    with_examples(
        parser,
        "Print the path of rows through the tree: each condition that a row satisfies, the "
        "training rows there, and where missing and unseen values go; or the first rule that "
        "covers them.",
        "gputree explain golf.gputree golf.csv",
        "gputree explain adult.gputree new.csv --rows 7,100-105",
    )
    parser.set_defaults(run=_explain)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument("data", metavar="DATA", help="table; - for CSV from standard input")
    parser.add_argument(
        "--rows",
        type=_rows,
        default=FIRST_ROWS,
        metavar="N,A-B,...",
        help="rows to explain, the first being 1; default: %(default)s",
    )
    parser.add_argument("--decimals", type=int, default=4, metavar="N", help="default: 4")
    add_tree(parser)
    add_reading(parser)


def _rows(text: str) -> list[range]:
    """Ranges of rows, from 1, ends included."""
    found = []
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        try:
            rows = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            rows = range(0)
        if not rows or rows[0] < 1:
            raise argparse.ArgumentTypeError(f"must be rows such as 7 or 1-10, got {item!r}")
        found.append(rows)
    return found


def _explain(arguments: argparse.Namespace) -> None:
    from gputree.export import explain

    check_inputs(arguments.model, arguments.data)
    if arguments.decimals < 0:
        raise UsageError(f"--decimals must be at least 0. Got {arguments.decimals}.")
    estimator = load(arguments.model)
    model = chosen(estimator, arguments.tree)
    require_one(model, "explain")
    tell = _rules_of if has_rules(model) else explain
    escape_unknown_characters()
    wanted, seen, is_next = arguments.rows, 0, False
    last = max(rows[-1] for rows in wanted)
    for X in batches_for(estimator, arguments):
        places = _within(wanted, seen, X.num_rows)
        if places.size:
            paths = tell(model, X.take(places), decimals=arguments.decimals)
            for place, path in zip(places.tolist(), paths, strict=True):
                print("\n" * is_next + f"row {seen + place + 1}: {path}")
                is_next = True
        seen += X.num_rows
        if seen >= last:
            return
    if arguments.rows != _rows(FIRST_ROWS):
        have = counted(seen, "row")
        raise InputError(f"{label_of(arguments.data)} has {have}; there is no row {last}.")


def _rules_of(estimator: Any, X: Any, decimals: int) -> list[str]:
    lines = estimator.rules_.to_text(decimals=decimals).splitlines()
    return [lines[place] for place in estimator.apply(X).tolist()]  # the last is the default


def _within(wanted: list[range], seen: int, count: int) -> Any:
    """Places in a batch, after `seen` rows, of the rows that are wanted, in order."""
    places: set[int] = set()
    for rows in wanted:
        places.update(range(max(rows[0] - 1 - seen, 0), min(rows[-1] - seen, count)))
    return np.array(sorted(places), np.int64)
