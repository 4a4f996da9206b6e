"""Registrations with numba before the first compilation, and the options of all compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# nogil: kernels run on a thread pool. numpy's error model: a division by zero gives inf
# or NaN instead of a branch in every inner loop.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Options that are omitted are inherited from the first caller. Wrappers that unpack records of a
# dozen arrays are a quarter of all compilation; only functions that Python calls need one.
INNER: dict[str, Any] = {
    **OPTIONS, "no_cpython_wrapper": True, "_nrt": True, "forceinline": False,
}  # fmt: skip

_undeclared: list[Callable[[], object]] = []


def when_compiling(tell: Callable[[], object]) -> None:
    """Register a function to call before the first compilation; it may import numba."""
    _undeclared.append(tell)


def declare() -> None:
    """Register everything with numba that was decorated since the last time."""
    while _undeclared:
        _undeclared[0]()
        del _undeclared[0]  # and not before: it may be interrupted
