"""Constraints of the parameters of all exports: one table, one wording."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral
from typing import Any, TypeVar

from gputree.base.texts import fill
from gputree.errors import InputTypeError

# What docstrings have in common, by the word in braces that stands for it.
_FEATURES = """feature_names : sequence of str or None, default=None
        None takes the names seen in `fit`, else x0, x1, ..."""
_CLASSES = """
    class_names : sequence{of} or None, default=None
        In the order of `classes_`; None takes `classes_` itself. Unused in regression."""
_TEXTS = {
    "features": _FEATURES,
    "names": _FEATURES + _CLASSES.replace("{of}", " of str"),
    "labels": _FEATURES + _CLASSES.replace("{of}", ""),
    "missing": """missing : "error" or "largest", default="error"
        A C4.5 tree sends rows whose value is missing or unknown to all children with fractional
        weights, which the format does not support: raise, or send them down the branch of the
        largest weight (of equals the first), which changes the predictions for those rows.""",
    "ax": """ax : matplotlib Axes or None, default=None
        None makes a figure.""",
    "raises": """Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.""",
    "drawing": """Raises
    ------
    ImportError
        matplotlib (extra plot) is not installed.""",
}

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def valid_values() -> dict[str, list[Any]]:
    """Valid values of the parameters of exports; scikit-learn is imported for the first call."""
    from gputree.base.sklearn import HasMethods, Interval, Ordered, StrOptions

    count = [Interval(Integral, 0, None, closed="left"), None]
    return {
        "feature_names": [Ordered(), None],  # text alone is none
        "class_names": [Ordered(), None],
        "max_depth": count,
        "decimals": count,
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
        "missing": [StrOptions({"error", "largest"})],
        "inputs": [StrOptions({"auto", "matrix", "columns"})],
        "ax": [HasMethods(["add_patch", "plot"]), None],
    }


def checked(function: Function) -> Function:
    """Refuse parameters of an export that are not `valid_values`, as scikit-learn does.

    Its docstring is filled with the texts that several have.
    """
    parameters = inspect.signature(function).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    most = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)

    @cache
    def validated() -> Callable[..., Any]:
        from gputree.base.sklearn import validate_params

        taken = {name: values for name, values in valid_values().items() if name in parameters}
        return validate_params(taken, prefer_skip_nested_validation=False)(function)

    @wraps(fill(**_TEXTS)(function))
    def by_name(*arguments: Any, **named: Any) -> Any:
        if len(arguments) > most:
            raise InputTypeError(
                f"{function.__name__}() takes {most} positional argument{'s' * (most > 1)} but "
                f"{len(arguments)} were given: name the others. It writes no file: write or save "
                "what it returns."
            )
        return validated()(*arguments, **named)

    return by_name  # type: ignore[return-value]
