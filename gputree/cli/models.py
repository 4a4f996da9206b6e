"""Kinds of models that the commands take: a tree, rules, and trials of both that vote."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from gputree.cli.report import UsageError, counted, size


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add `--tree`."""
    parser.add_argument(
        "--tree",
        "--trial",
        dest="tree",
        type=int,
        metavar="N",
        help="of boosted trees or rules, those of this trial alone; of a forest, this tree",
    )


def has_rules(estimator: Any) -> bool:
    """Return whether a fitted model predicts by one rule set."""
    return hasattr(estimator, "rules_")


def members_of(estimator: Any) -> list[Any]:
    """The trees or rules of a fitted model that votes; none of others."""
    return getattr(estimator, "estimators_", [])


def member_name(estimator: Any) -> str:
    """Name of a part of a model that votes: tree or trial."""
    return "trial" if hasattr(estimator, "estimator_errors_") else "tree"


def chosen(estimator: Any, place: int | None) -> Any:
    """The model, or of one that votes the selected trial, from 1."""
    if place is None:
        return estimator
    members = members_of(estimator)
    if not members:
        raise UsageError(
            "--tree (--trial) is for boosted trees and rules, and for forests: this model is none."
        )
    if not 1 <= place <= len(members):
        raise UsageError(f"--tree (--trial) must be from 1 to {len(members)}. Got {place}.")
    return members[place - 1]


def require_one(estimator: Any, command: str) -> None:
    """Refuse models that vote."""
    if members := members_of(estimator):
        what = "rule set" if has_rules(members[0]) else "tree"
        raise UsageError(
            f"gputree {command} takes one {what}, and this model has {len(members)}: add --tree 1."
        )


def forbid_several(estimator: Any, command: str) -> None:
    """Refuse models that are no single tree."""
    if has_rules(estimator) or members_of(estimator):
        members = (
            "rules"
            if has_rules(estimator)
            else f"{len(members_of(estimator))} {member_name(estimator)}s"
        )
        raise UsageError(
            f"gputree {command} takes a model of one tree, and this one has {members}."
        )


def sizes(estimator: Any) -> dict[str, str]:
    """Size of a fitted model, columns removed by winnowing, and why boosting ended early."""
    first = f"{member_name(estimator)}s" if members_of(estimator) else "tree"
    found = dict(zip((first, "rules"), size_of(estimator), strict=False)) | _left_out(estimator)
    if (reason := getattr(estimator, "stop_reason_", None)) is not None:
        found["ended"] = f"before {estimator.n_trials} trials, since {reason}"
    return found


def size_of(estimator: Any) -> list[str]:
    """Size of a fitted model: of its tree, and the rules of that; or of its trials."""
    if has_rules(estimator):
        rules = estimator.rules_
        rule_counts = f"{counted(len(rules), 'rule')}, {counted(rules.n_conditions, 'condition')}"
        return [size(estimator.estimator_.tree_), rule_counts]
    if members := members_of(estimator):
        each = [parts(member) for member in members]
        counts = [count for _, count in each]
        kind = "rule set" if has_rules(members[0]) else "tree"
        least, most = min(counts), max(counts)
        spread = f"{least:,} to {most:,}" if least < most else f"{least:,}"
        of = f"of {spread} {each[0][0]}, {sum(counts):,} in all"
        return [f"{counted(len(members), kind)} {of}"]
    return [size(estimator.tree_)]


def _left_out(estimator: Any) -> dict[str, str]:
    """The columns that winnowing left out, if it was used."""
    estimator = getattr(estimator, "estimator_", estimator)
    if not getattr(estimator, "winnow", False) or not hasattr(estimator, "winnowed_"):
        return {}
    names = np.asarray(estimator.feature_names_in_)[estimator.winnowed_]
    return {"winnowed": ", ".join(map(str, names)) or "no column"}


def parts(estimator: Any) -> tuple[str, int]:
    """Unit of the size of a model, and the number of units."""
    if has_rules(estimator):
        return "rules", len(estimator.rules_)
    if members := members_of(estimator):
        each = [parts(member) for member in members]
        return each[0][0], sum(count for _, count in each)
    return "leaves", estimator.get_n_leaves()


def set_verbose(estimator: Any, verbose: int) -> Any:
    """Set how much a model, not fitted or fitted, reports of its progress."""
    of_tree = "estimator" in estimator.get_params(deep=False)
    return estimator.set_params(**{"estimator__verbose" if of_tree else "verbose": verbose})


def about_costs(tree: Any) -> str:
    """Sentences on costs below the printed lines: row weights, and the class that a leaf names."""
    if getattr(tree, "costs_", None) is None:
        return ""
    text = " Rows are weighted by the misclassification costs of their class."
    if not tree._weighs_errors:
        return text
    return f"{text} Leaves name the class of the minimum expected cost."
