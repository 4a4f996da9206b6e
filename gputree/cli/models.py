"""What kinds of models the commands know: a tree, boosted trees, rules."""

from __future__ import annotations

import argparse
from copy import copy
from typing import Any

import numpy as np

from gputree.cli.report import UsageError, counted, size


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add `--tree`."""
    parser.add_argument("--tree", type=int, metavar="N", help="of boosted trees, this one alone")


def has_rules(estimator: Any) -> bool:
    """Whether a fitted model answers by rules."""
    return hasattr(estimator, "rules_")


def trees_of(estimator: Any) -> list[Any]:
    """The trees of a fitted model that votes; none of others."""
    found: list[Any] = getattr(estimator, "estimators_", [])
    return found


def one_tree(estimator: Any, command: str, place: int | None = None) -> Any:
    """The tree of a model, or of boosted trees the one that was asked for, from 1.

    Raises
    ------
    UsageError
        There is no such tree, or there are several and none was asked for; or the model has rules.
    """
    trees = trees_of(estimator)
    if place is not None and not trees:
        raise UsageError("--tree is for boosted trees, and this model has none.")
    if has_rules(estimator):
        raise UsageError(f"gputree {command} takes a tree, and this model has rules.")
    if not trees:
        return estimator
    if place is None:
        raise UsageError(
            f"gputree {command} takes one tree, and this model has {len(trees)}: add --tree 1."
        )
    if not 1 <= place <= len(trees):
        raise UsageError(f"--tree must be from 1 to {len(trees)}. Got {place}.")
    return trees[place - 1]


def forbid_several(estimator: Any, command: str) -> None:
    """Refuse models that are no single tree."""
    if has_rules(estimator) or trees_of(estimator):
        held = "rules" if has_rules(estimator) else f"{len(trees_of(estimator))} boosted trees"
        raise UsageError(f"gputree {command} takes a model of one tree, and this one has {held}.")


def sizes(estimator: Any) -> dict[str, str]:
    """How large a fitted model is, and which columns winnowing left out, for a summary."""
    first = "trees" if trees_of(estimator) else "tree"
    return dict(zip((first, "rules"), size_of(estimator), strict=False)) | _left_out(estimator)


def size_of(estimator: Any) -> list[str]:
    """How large a fitted model is: its tree, and the rules of that; or its trees."""
    if has_rules(estimator):
        rules = estimator.rules_
        told = f"{counted(len(rules), 'rule')}, {counted(rules.n_conditions, 'condition')}"
        return [size(estimator.estimator_.tree_), told]
    if trees := trees_of(estimator):
        leaves = [tree.get_n_leaves() for tree in trees]
        of = f"of {min(leaves):,} to {max(leaves):,} leaves, {sum(leaves):,} in all"
        return [f"{counted(len(trees), 'tree')} {of}"]
    return [size(estimator.tree_)]


def _left_out(estimator: Any) -> dict[str, str]:
    """The columns that winnowing left out, if it was asked for."""
    estimator = getattr(estimator, "estimator_", estimator)
    if not getattr(estimator, "winnow", False) or not hasattr(estimator, "winnowed_"):
        return {}
    names = np.asarray(estimator.feature_names_in_)[estimator.winnowed_]
    return {"winnowed": ", ".join(map(str, names)) or "no column"}


def parts(estimator: Any) -> tuple[str, int]:
    """What the size of a model is counted in, and how many there are."""
    if has_rules(estimator):
        return "rules", len(estimator.rules_)
    if trees := trees_of(estimator):
        return "leaves", sum(tree.get_n_leaves() for tree in trees)
    return "leaves", estimator.get_n_leaves()


def set_verbose(estimator: Any, verbose: int) -> Any:
    """Let a model, not fitted or fitted, tell how far it is."""
    of_tree = hasattr(estimator, "rule_weight")
    return estimator.set_params(**{"estimator__verbose" if of_tree else "verbose": verbose})


def as_shown(tree: Any) -> tuple[Any, str]:
    """A tree for texts, which name the class of most weight, and where that is not the answer."""
    if not getattr(tree, "_weighs_errors", False):
        return tree, ""
    shown = copy(tree)
    shown.costs_ = None
    return shown, " Leaves name the class of most weight; answers are those of the least cost."
