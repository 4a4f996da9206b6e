"""`gputree show`: a model as text."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gputree.cli.report import UsageError, counted, escape_unknown_characters, size, with_examples
from gputree.cli.streams import load
from gputree.dtypes import BRANCH_SPLIT, MISSING_TO_ALL
from gputree.tree import Tree


def add_show(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree show`."""
    with_examples(
        parser,
        "Print a model as an indented tree: each leaf with its answer, the weight of the training "
        "rows there and, after a slash, of those of other classes (or the mean squared error).",
        "gputree show golf.gputree",
        "gputree show adult.gputree --max-depth 3 | less",
    )
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "--max-depth", type=int, default=None, metavar="N", help="depth of the deepest nodes shown"
    )


def _show(arguments: argparse.Namespace) -> None:
    from gputree.export.describe import describe
    from gputree.export.text import text_lines

    if arguments.max_depth is not None and arguments.max_depth < 0:
        raise UsageError(f"--max-depth must be at least 0. Got {arguments.max_depth}.")
    estimator: Any = load(arguments.model)
    tree = estimator.tree_
    lines = text_lines(describe(estimator), max_depth=arguments.max_depth)
    escape_unknown_characters()
    columns = counted(tree.n_features, "column")
    print(f"{type(estimator).__name__} ({tree.criterion}): {columns}, {size(tree)}")
    marks = ", ".join(map(repr, getattr(estimator, "missing_marks_", ())))
    print(f"{_missing_rule(tree)}{f' Missing is what is written as {marks}.' if marks else ''}\n")
    sys.stdout.writelines(lines)


def _missing_rule(tree: Tree) -> str:
    """What the lines do not say of missing values."""
    inner = ~tree.is_leaf
    if (tree.missing_child[inner] == MISSING_TO_ALL).any():
        return "Missing and unknown values follow all branches, in shares."
    if (tree.split_kind == BRANCH_SPLIT).any():
        return "Values without a branch, missing ones among them, stop at the node."
    return "Missing values follow the branch of more rows unless marked."
