"""Decorators and small functions for CPU kernels."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gputree.compilation import (
    borrowing,
    inner,
    is_none,
    kernel,
    overload,
    overload_borrowing,
    pasted,
    written_out,
)
from gputree.compilation.declared import PREFETCH_ROWS, prefetch

__all__ = [
    "PREFETCH_ROWS",
    "borrowing",
    "inner",
    "kernel",
    "overload_borrowing",
    "pasted",
    "pick",
    "prefetch",
    "where_given",
    "written_out",
]


@borrowing
def pick(values: Any, row: Any, default: int) -> Any:
    """``values[row]``, or `default` where the table has no such values (None)."""
    if values is None:
        return default
    return values[row]


def where_given(otherwise: Callable, how: Callable = overload) -> Callable:
    """Register a function for first arguments that are not None; for None, `otherwise`.

    Needed where the type of the result differs; otherwise `if x is None` is enough. `how` may be
    `overload_borrowing`.
    """

    def register(function: Callable) -> Callable:
        @functools.wraps(function)
        def stub(given: Any, *rest: Any) -> Any:
            return (otherwise if given is None else function)(given, *rest)

        def choose(given: Any, *rest: Any) -> Callable:
            return otherwise if is_none(given) else function

        choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        how(stub, function.__module__)(choose)
        return stub

    return register
