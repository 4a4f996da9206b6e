"""What the parameters of exports may be: one table, and one wording, for all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

from gputree._sklearn import HasMethods, Interval, Ordered, StrOptions, validate_params

Function = TypeVar("Function", bound=Callable[..., Any])

_COUNT = [Interval(Integral, 0, None, closed="left"), None]

PARAMETERS: dict[str, list[Any]] = {
    "feature_names": [Ordered(), None],  # text alone is none
    "class_names": [Ordered(), None],
    "max_depth": _COUNT,
    "decimals": _COUNT,
    "score": [str, None],
    "most": [Interval(Integral, 1, None, closed="left"), None],
    "show_weights": ["boolean"],
    "bars": ["boolean"],
    "lines_by_weight": ["boolean"],
    "all_categories": ["boolean"],
    "rotate": ["boolean"],
    "title": [str],
    "name": [str],
    "dialect": [StrOptions({"duckdb", "postgres", "sqlite"})],
    "output": [StrOptions({"prediction", "probability", "node"})],
    "table": [str, None],
    "nodes": [str, None],
    "missing": [StrOptions({"error", "largest"})],
    "inputs": [StrOptions({"auto", "matrix", "columns"})],
    "ax": [HasMethods(["add_patch", "plot"]), None],
}


def checked(function: Function) -> Function:
    """Refuse parameters of an export that are none of `PARAMETERS`, as scikit-learn does."""
    names = set(PARAMETERS).intersection(inspect.signature(function).parameters)
    taken = {name: PARAMETERS[name] for name in sorted(names)}
    return validate_params(taken, prefer_skip_nested_validation=False)(function)
