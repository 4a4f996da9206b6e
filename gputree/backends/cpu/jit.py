"""What CPU kernels are written with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gputree.compilation import (
    inner,
    is_none,
    kernel,
    lent,
    overload,
    overload_lent,
    pasted,
    written_out,
)
from gputree.compilation.prefetching import PREFETCH_ROWS, prefetch

__all__ = [
    "PREFETCH_ROWS", "inner", "is_none", "kernel", "lent", "overload_lent", "pasted", "pick",
    "prefetch", "where_given", "written_out",
]  # fmt: skip


def pick(values: Any, row: Any, default: int) -> Any:
    """``values[row]``, or `default` where the table has no such values (None)."""
    return default if values is None else values[row]


@overload(pick)
def _pick(values: Any, row: Any, default: Any) -> Any:
    if is_none(values):
        return lambda values, row, default: default
    return lambda values, row, default: values[row]


def where_given(otherwise: Callable, how: Callable = overload) -> Callable:
    """Register a function for first arguments that are not None; for None, `otherwise`.

    So that tasks without what it is about compile nothing of it. `how` may be `overload_lent`.
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
