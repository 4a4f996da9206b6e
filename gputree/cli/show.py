"""`gputree show`: a model as text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gputree.base.dtypes import BRANCH_SPLIT, MISSING_TO_ALL
from gputree.base.texts import aligned
from gputree.cli.edit import add_rows, editor_of, node_number
from gputree.cli.reading import (
    about_costs,
    add_tree,
    chosen,
    has_rules,
    load_saved,
    member_name,
    members_of,
    require_one,
    size_of,
)
from gputree.cli.report import UsageError, counted, escape_unknown_characters, with_examples
from gputree.cli.tables import add_reading, add_target
from gputree.cli.targets import add_weights

if TYPE_CHECKING:
    from gputree.pruning.cost_complexity import CPTable
    from gputree.tree import Tree
    from gputree.tree.weakest_links import Risk


def add_show(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree show`."""
    with_examples(
        parser,
        "Print a model as an indented tree: each leaf with its prediction, the weight of the "
        "training rows there and, after a slash, of those of other classes (or the mean squared "
        "error). Rules are printed one a line, each with its confidence and the weight of the rows "
        "that it covers; boosted trees and rules one trial after the other, and so the trees of a "
        "forest.",
        "gputree show golf.gputree",
        "gputree show boosted.gputree --tree 1",
        "gputree show adult.gputree --max-depth 3 | less",
        "gputree show adult.gputree --cp",
        "gputree show adult.gputree --alternatives 5 --data adult.csv",
        "gputree show adult.gputree --summary --data adult.csv",
    )
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "--max-depth", type=int, default=None, metavar="N", help="depth of the deepest nodes shown"
    )
    parser.add_argument(
        "--cp",
        action="store_true",
        help="instead of the tree, the table of its cost-complexity sequence, as rpart's printcp: "
        "with cross-validated errors if it was pruned by cost_complexity_cv",
    )
    add_tree(parser)
    parser.add_argument(
        "--history",
        action="store_true",
        help="instead of the tree, how gputree edit changed it, as JSON for edit --replay",
    )
    group = parser.add_argument_group(
        "alternatives of a node", "Nodes have the numbers that gputree edit prints."
    )
    group.add_argument(
        "--alternatives",
        metavar="NODE",
        help="instead of the tree, the best split of each column at a node, and its agreement with "
        "the split in use, as of rpart's surrogates; needs --data",
    )
    group.add_argument(
        "--summary",
        action="store_true",
        help="instead of the tree, its nodes as rpart's summary: complexity, primary and surrogate "
        "splits; needs --data (cart)",
    )
    add_rows(group)
    add_target(group)
    add_weights(group)
    add_reading(group)


def _show(arguments: argparse.Namespace) -> None:
    if arguments.max_depth is not None and arguments.max_depth < 0:
        raise UsageError(f"--max-depth must be at least 0. Got {arguments.max_depth}.")
    instead = ["cp", "history", "summary"]
    parts = [f"--{name}" for name in instead if getattr(arguments, name)]
    parts += ["--alternatives"] if arguments.alternatives is not None else []
    if len(parts) > 1:
        raise UsageError(f"{' and '.join(parts)} each print something else instead of the tree.")
    if arguments.alternatives is not None:
        return _show_alternatives(arguments)
    if arguments.summary:
        return _show_summary(arguments)
    if arguments.data:
        raise UsageError("--data is for --alternatives NODE and --summary.")
    estimator: Any = load_saved(arguments.model)
    if arguments.history:
        edits = [json.dumps(edit, ensure_ascii=False) for edit in getattr(estimator, "edits_", [])]
        return print(f"[{','.join(f'{chr(10)}  {edit}' for edit in edits)}\n]")
    if arguments.cp:
        return _show_cp(estimator, arguments)
    members = members_of(estimator)
    shown = [chosen(estimator, arguments.tree)] if arguments.tree or not members else members
    body = [_lines(model, arguments) for model in shown]
    escape_unknown_characters()
    print(f"{_head(estimator)}\n")
    for place, (model, lines) in enumerate(zip(shown, body, strict=True), 1):
        if len(shown) > 1:
            name = member_name(estimator).capitalize()
            print(f"{chr(10) * (place > 1)}{name} {place}: {size_of(model)[-1]}")
        sys.stdout.writelines(lines)


def _show_alternatives(arguments: argparse.Namespace) -> None:
    if not arguments.data:
        raise UsageError("--alternatives needs the rows of the tree: add --data FILE.")
    node = node_number(arguments.alternatives)
    editor = editor_of(arguments, "show --alternatives")
    conditions = " and ".join(editor.path(node)) or "all rows"
    found = editor.alternatives(node)
    escape_unknown_characters()
    print(f"Node {node}: {conditions}\n\n{found}", end="")


def _show_summary(arguments: argparse.Namespace) -> None:
    """Print the nodes of a tree as rpart's summary does."""
    if not arguments.data:
        raise UsageError("--summary needs the rows of the tree: add --data FILE.")
    from gputree.editing.node_summaries import node_summaries

    found = node_summaries(editor_of(arguments, "show --summary"))
    escape_unknown_characters()
    print(*found, sep="\n", end="")


def _show_cp(estimator: Any, arguments: argparse.Namespace) -> None:
    """Print the cp table of the model, or of one of its trees."""
    if arguments.max_depth is not None:
        raise UsageError("--max-depth is no option with --cp.")
    one = chosen(estimator, arguments.tree)
    require_one(one, "show --cp")
    if has_rules(one):
        raise UsageError("--cp is for trees, and this model has rules.")
    text = _cp_text(one)
    escape_unknown_characters()
    print(f"{_head(one).partition(chr(10))[0]}\n\n{text}")


def _lines(model: Any, arguments: argparse.Namespace) -> Iterable[str]:
    from gputree.export.describe import describe
    from gputree.export.text import text_lines

    if not has_rules(model):
        return text_lines(describe(model, of_targets=True), max_depth=arguments.max_depth)
    if arguments.max_depth is not None:
        raise UsageError("--max-depth is for trees, and this model has rules.")
    return [f"{model.rules_}\n"]


def _head(estimator: Any) -> str:
    """Description above the lines of a model: its kind and size, missing values, costs."""
    first = (members_of(estimator) or [estimator])[0]
    tree = getattr(first, "estimator_", first)
    columns = counted(tree.n_features_in_, "column")
    missing = _missing_rule(tree.tree_)
    if has_rules(first):
        missing = 'Missing values fail every test except "is missing".'
    marks = ", ".join(map(repr, getattr(estimator, "missing_marks_", ())))
    notes = f" Missing values are written as {marks}." if marks else ""
    notes += about_costs(tree)
    kind = f"{type(estimator).__name__} ({tree.tree_.criterion})"
    return f"{kind}: {columns}, {', '.join(size_of(estimator))}\n{missing}{notes}"


def _missing_rule(tree: Tree) -> str:
    """Sentence on the child that missing values go to."""
    inner = ~tree.is_leaf
    if not inner.any():
        return "All rows get the same prediction."
    if (tree.missing_child[inner] == MISSING_TO_ALL).any():
        return "Missing and unseen values go to all children, with fractional weights."
    if (tree.split_kind == BRANCH_SPLIT).any():
        return "Values without a branch, also missing ones, get the node's majority class."
    return "Missing values go to the child with more rows unless marked."


def _cp_text(estimator: Any) -> str:
    """Cost-complexity table of a model of one tree, below the figures that it is relative to."""
    from gputree.pruning import cp_table

    tree: Tree = estimator.tree_
    is_validated = hasattr(estimator, "cp_table_")
    table: CPTable = estimator.cp_table_ if is_validated else cp_table(tree, "error")
    lines = {
        "columns used": ", ".join(_used(estimator)) or "none",
        "root node error": _root_risk(tree, "error"),
    }
    if table.risk == "impurity" and tree.task == "classification":
        lines[f"root node {tree.criterion}"] = _root_risk(tree, "impurity")
    lines["rows"] = f"{tree.n_rows[0]:,}"
    return f"{aligned(lines)}\n\n{table}\n\n{_hint(tree, table, is_validated)}"


def _used(estimator: Any) -> list[str]:
    tree = estimator.tree_
    names = getattr(estimator, "feature_names_in_", None)
    tested = np.unique(tree.feature[~tree.is_leaf]).tolist()
    return [f"x{f}" if names is None else str(names[f]) for f in tested]


def _root_risk(tree: Tree, risk: Risk) -> str:
    from gputree.tree.weakest_links import node_risk

    cost, weight = float(node_risk(tree, risk)[0]), float(tree.weight[0])
    return f"{cost:.6g}/{weight:.6g} = {cost / weight:.5g}"


def _hint(tree: Tree, table: CPTable, is_validated: bool) -> str:
    """Hint: the option that makes the tree of a line, and that which adds errors of new rows."""
    risk = f",risk={table.risk}" if tree.task == "classification" else ""
    advice = f"--pruning cost_complexity:cp=CP{risk} makes the tree of a line."
    if is_validated:
        return advice
    return f"{advice} xerror and xstd: train or prune with --pruning cost_complexity_cv."
