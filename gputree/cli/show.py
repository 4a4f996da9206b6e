"""`gputree show`: a model as text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from gputree.cli.models import add_tree, as_shown, has_rules, one_tree, size_of, trees_of
from gputree.cli.report import UsageError, counted, escape_unknown_characters, size, with_examples
from gputree.cli.streams import load
from gputree.dtypes import BRANCH_SPLIT, MISSING_TO_ALL
from gputree.tree import Tree


def add_show(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree show`."""
    with_examples(
        parser,
        "Print a model as an indented tree: each leaf with its answer, the weight of the training "
        "rows there and, after a slash, of those of other classes (or the mean squared error). "
        "Boosted trees are printed one after the other; rules one a line, each with its "
        "confidence and the weight of the rows that it covers.",
        "gputree show golf.gputree",
        "gputree show boosted.gputree --tree 1",
        "gputree show adult.gputree --max-depth 3 | less",
    )
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "--max-depth", type=int, default=None, metavar="N", help="depth of the deepest nodes shown"
    )
    add_tree(parser)


def _show(arguments: argparse.Namespace) -> None:
    if arguments.max_depth is not None and arguments.max_depth < 0:
        raise UsageError(f"--max-depth must be at least 0. Got {arguments.max_depth}.")
    estimator: Any = load(arguments.model)
    body = _rules(estimator, arguments) if has_rules(estimator) else _trees(estimator, arguments)
    escape_unknown_characters()
    print(f"{_head(estimator)}\n")
    for lines in body:
        sys.stdout.writelines(lines)


def _rules(estimator: Any, arguments: argparse.Namespace) -> list[Iterable[str]]:
    if arguments.max_depth is not None or arguments.tree is not None:
        raise UsageError("--max-depth and --tree are for trees, and this model has rules.")
    return [f"{estimator.rules_}\n"]


def _trees(estimator: Any, arguments: argparse.Namespace) -> list[Iterable[str]]:
    """The lines of each tree; of several with a line above that says which it is."""
    from gputree.export.describe import describe
    from gputree.export.text import text_lines

    trees = trees_of(estimator)
    if not trees or arguments.tree is not None:
        trees = [one_tree(estimator, "show", arguments.tree)]
    body: list[Iterable[str]] = []
    for place, tree in enumerate(trees, 1):
        lines = text_lines(describe(as_shown(tree)[0]), max_depth=arguments.max_depth)
        if len(trees) > 1:
            body.append(f"{chr(10) * (place > 1)}Tree {place}: {size(tree.tree_)}\n")
        body.append(lines)
    return body


def _head(estimator: Any) -> str:
    """What the model is, and what its lines do not say."""
    tree = (trees_of(estimator) or [getattr(estimator, "estimator_", estimator)])[0]
    columns = counted(tree.n_features_in_, "column")
    missing = _missing_rule(tree.tree_)
    if has_rules(estimator):
        missing = "A missing value meets no condition, but that it is missing."
    marks = ", ".join(map(repr, getattr(estimator, "missing_marks_", ())))
    told = f" Missing is what is written as {marks}." if marks else ""
    told += "" if has_rules(estimator) else as_shown(tree)[1]
    kind = f"{type(estimator).__name__} ({tree.tree_.criterion})"
    return f"{kind}: {columns}, {', '.join(size_of(estimator))}\n{missing}{told}"


def _missing_rule(tree: Tree) -> str:
    """What the lines do not say of missing values."""
    inner = ~tree.is_leaf
    if (tree.missing_child[inner] == MISSING_TO_ALL).any():
        return "Missing and unknown values follow all branches, in shares."
    if (tree.split_kind == BRANCH_SPLIT).any():
        return "Values without a branch, missing ones among them, stop at the node."
    return "Missing values follow the branch of more rows unless marked."
