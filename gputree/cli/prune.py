"""`gputree prune`: a smaller tree from a model file, without growing again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputree.base.texts import aligned
from gputree.cli.options import RANDOM_STATE, add_pruning
from gputree.cli.reading import (
    STANDARD,
    check_inputs,
    check_output,
    forbid_several,
    forbid_terminal,
    load,
    save,
)
from gputree.cli.report import UsageError, escape_unknown_characters, size, with_examples
from gputree.cli.tables import add_reading, add_target, label_of_all, tables_with_target
from gputree.cli.targets import add_weights
from gputree.cli.training import files_of

if TYPE_CHECKING:
    from gputree.pruning import Pruner


def add_prune(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree prune`."""
    with_examples(
        parser,
        "Prune a saved model, without growing again. Some methods need rows: pessimistic and "
        "cost_complexity_cv those that the tree was grown on, reduced_error and "
        "validation_pre_pruning others.",
        "gputree prune big.gputree --pruning cost_complexity:alpha=0.001 -o s.gputree",
        "gputree prune big.gputree other.csv --pruning reduced_error -o s.gputree",
    )
    parser.set_defaults(run=_prune)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="*",
        help="table with the target, for methods that need one; - for CSV from standard input; "
        "several files as for train",
    )
    add_pruning(parser, required=True)
    about = "model file to write; - for standard output"
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=about)
    add_target(parser)
    add_weights(parser)
    parser.add_argument(
        "--random-state",
        type=int,
        metavar="N",
        default=RANDOM_STATE,
        help="seed of what is drawn; default: %(default)s",
    )
    parser.add_argument("--quiet", action="store_true", help="no summary")
    add_reading(parser)


def _prune(arguments: argparse.Namespace) -> None:
    from gputree.pruning import CostComplexityCV, get_pruner

    if arguments.pruning == "none":
        raise UsageError("--pruning none leaves the tree as it is.")
    files = files_of(arguments.data) if arguments.data else []
    check_inputs(arguments.model, *files)
    check_output(arguments.output, arguments.model, *files)
    forbid_terminal(arguments.output, "A model file")
    pruner = get_pruner(arguments.pruning)
    if "random_state" in pruner.get_params() and pruner.random_state is None:
        pruner.set_params(random_state=arguments.random_state)
    needed = _rows_needed(pruner)
    if needed and not files:
        raise UsageError(
            f"--pruning {_name(arguments)} needs {needed}: name the table after MODEL."
        )
    if not needed and files:
        label = label_of_all(files)
        raise UsageError(f"--pruning {_name(arguments)} needs no rows: leave {label} out.")
    if not needed and arguments.weights is not None:
        raise UsageError(f"--pruning {_name(arguments)} needs no rows: leave --weights out.")
    estimator = load(arguments.model)
    forbid_several(estimator, "prune")
    if files:
        table, weight = tables_with_target(estimator, arguments, files)
        pruned = pruner.prune(estimator, table.columns, table.target, weight)
    else:
        pruned = pruner.prune(estimator)
    save(pruned, arguments.output)
    if arguments.quiet:
        return
    escape_unknown_characters()
    lines = {"before": size(estimator.tree_), "after": size(pruned.tree_)}
    if isinstance(pruner, CostComplexityCV):
        lines["alpha"] = f"{pruner.alpha_:.6g}"
    lines["model"] = "standard output" if arguments.output == STANDARD else arguments.output
    print(aligned(lines), file=sys.stderr if arguments.output == STANDARD else sys.stdout)


def _rows_needed(pruner: Pruner) -> str:
    """Rows that a method requires; empty where none."""
    from gputree.pruning import CostComplexityCV, Pessimistic, ValidationPruner

    if isinstance(pruner, ValidationPruner):
        return "rows that the tree was not grown on"
    if isinstance(pruner, CostComplexityCV) or (
        isinstance(pruner, Pessimistic) and pruner.subtree_raising
    ):
        return "the rows that the tree was grown on"
    return ""


def _name(arguments: argparse.Namespace) -> str:
    from gputree.pruning import PRUNERS

    given = arguments.pruning
    if isinstance(given, str):
        return given
    return next(name for name, kind in PRUNERS.items() if kind is type(given))
