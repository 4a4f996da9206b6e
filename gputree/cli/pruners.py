"""`--pruning NAME:PARAMETER=VALUE,...`: a pruner on the command line."""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Any

from gputree.cli.names import number
from gputree.cli.report import in_words_of_the_command

if TYPE_CHECKING:
    from gputree.pruning import Pruner

NO_PRUNING = "none"

# Parameters of the methods, with defaults: written out, since the classes take time to import.
METHODS = {
    "cost_complexity": "alpha or cp, risk=impurity",  # one price has to be given
    "cost_complexity_cv": "cv=10, rule=min, risk=impurity",
    "penalized_loss": "alpha=1.0",
    "pessimistic": "confidence=0.25, subtree_raising=true, quantile=exact",
    "reduced_error": "validation_fraction=0.3",
    "validation_pre_pruning": "validation_fraction=0.3",
}


def pruner_help() -> str:
    """The methods and their parameters, one a line."""
    return "\n".join(f"{name} ({parameters})" for name, parameters in METHODS.items())


def parse_pruner(text: str) -> str | Pruner:
    """A pruner, or its name alone where all parameters are the defaults.

    As in ``cost_complexity:alpha=0.01``; dashes stand for underscores, too.
    """
    name, colon, rest = text.partition(":")
    name = name.strip().replace("-", "_")
    if name == NO_PRUNING and not colon:
        return NO_PRUNING
    if name not in METHODS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join([*METHODS, NO_PRUNING])}")
    given = dict(_pair(name, item) for item in rest.split(",") if item.strip())
    if name == "cost_complexity" and {"alpha", "cp"}.isdisjoint(given):
        raise argparse.ArgumentTypeError(
            "cost_complexity lacks its alpha: write cost_complexity:alpha=0.01, or cp=0.01 as "
            "a fraction of the root's risk, or cost_complexity_cv, which chooses alpha by "
            "cross-validation"
        )
    if not given:
        return name
    from gputree._sklearn import InvalidParameterError
    from gputree.pruning import PRUNERS

    pruner = PRUNERS[name](**given)
    try:
        pruner._validate_params()
    except InvalidParameterError as error:
        words = in_words_of_the_command(str(error)).removeprefix("--").rstrip(".")
        parameter, _, rest = words.partition(" ")
        parameter = parameter.replace("-", "_")
        raise argparse.ArgumentTypeError(f"{name}: {parameter} {rest}") from None
    return pruner


def _pair(name: str, item: str) -> tuple[str, Any]:
    from gputree.pruning import PRUNERS

    key, equals, value = item.partition("=")
    key = key.strip().replace("-", "_")
    known = inspect.signature(PRUNERS[name]).parameters
    if not equals or key not in known:
        raise argparse.ArgumentTypeError(
            f"{name} takes {', '.join(f'{p}=...' for p in known)}; got {item.strip()!r}"
        )
    return key, _value(value.strip())


def _value(text: str) -> bool | int | float | str:
    """Convert the text of a value to a boolean or a number, if it is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return number(text)
    except ValueError:
        return text
