"""`--pruning NAME:PARAMETER=VALUE,...`: a pruner on the command line."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from gputree._sklearn import InvalidParameterError
from gputree.cli.report import in_words_of_the_command
from gputree.pruning import PRUNERS, Pruner

NO_PRUNING = "none"


def pruner_help() -> str:
    """The methods and their parameters, with defaults, one a line."""
    methods = []
    for name, kind in PRUNERS.items():
        known = {key: value for key, value in _parameters(kind).items() if key not in _OWN}
        told = [f"{key}={_written(value)}" for key, value in known.items()]
        if name == "cost_complexity":
            told = ["alpha or cp", "risk=impurity"]  # one price has to be given
        methods.append(f"{name} ({', '.join(told)})")
    return "\n".join(methods)


def parse_pruner(text: str) -> str | Pruner:
    """A pruner, or its name alone where all parameters are the defaults.

    Parameters
    ----------
    text : str
        As in ``cost_complexity:alpha=0.01``; dashes stand for underscores, too.

    Raises
    ------
    argparse.ArgumentTypeError
        There is no such method or parameter, or a value is none that it takes.
    """
    name, colon, rest = text.partition(":")
    name = name.strip().replace("-", "_")
    if name == NO_PRUNING and not colon:
        return NO_PRUNING
    if name not in PRUNERS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join([*PRUNERS, NO_PRUNING])}")
    given = dict(_pair(name, item) for item in rest.split(",") if item.strip())
    if name == "cost_complexity" and {"alpha", "cp"}.isdisjoint(given):
        raise argparse.ArgumentTypeError(
            "cost_complexity lacks its alpha: write cost_complexity:alpha=0.01, or cp=0.01 as "
            "a share of the root's risk, or cost_complexity_cv, which chooses alpha by "
            "cross-validation"
        )
    if not given:
        return name
    pruner = PRUNERS[name](**given)
    try:
        pruner._validate_params()
    except InvalidParameterError as error:
        words = in_words_of_the_command(str(error)).removeprefix("--").rstrip(".")
        raise argparse.ArgumentTypeError(f"{name}: {words}") from None
    return pruner


_OWN = ("random_state",)  # of --random-state, unless given


def _pair(name: str, item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    key = key.strip().replace("-", "_")
    known = _parameters(PRUNERS[name])
    if not equals or key not in known:
        raise argparse.ArgumentTypeError(
            f"{name} takes {', '.join(f'{p}=...' for p in known)}; got {item.strip()!r}"
        )
    return key, _value(value.strip())


def _parameters(kind: type[Pruner]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(kind).parameters.items()}


def _value(text: str) -> bool | int | float | str:
    """What the text stands for."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
