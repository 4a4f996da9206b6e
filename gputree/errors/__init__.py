"""Errors and warnings whose cause is outside of this package: arguments, files, devices.

Each is also a built-in exception, as scikit-learn's conventions require: `InputError` is a
ValueError. The command prints these in one line, and any other error with its traceback.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import ContextDecorator
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = [
    "DeviceError",
    "GputreeError",
    "InputError",
    "InputIndexError",
    "InputTypeError",
    "MissingPackageError",
    "MixedColumnWarning",
]


class GputreeError(Exception):
    """Base class of the errors that gputree raises deliberately."""


class InputError(GputreeError, ValueError):
    """The value of a table, a target, a parameter or a file is invalid."""


class InputTypeError(GputreeError, TypeError):
    """An argument has an unsupported type."""


class InputIndexError(GputreeError, IndexError):
    """A sequence has no such place."""


class DeviceError(GputreeError, RuntimeError):
    """A device, its driver or its libraries are missing or too old."""


class MissingPackageError(GputreeError, ImportError):
    """An optional package is not installed or cannot be imported."""


class MixedColumnWarning(UserWarning):
    """A column of text holds numbers, and nothing or hardly anything else."""


class checks(ContextDecorator):
    """Convert errors of another library's checks to those above; for blocks and functions."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, GputreeError):
            return
        if isinstance(error, ValueError):
            raise InputError(str(error)) from None
        if isinstance(error, TypeError):
            raise InputTypeError(str(error)) from None


def place_in(place: int, n: int, what: str) -> int:
    """A place among `n`, counted from 0, as Python's sequences take it."""
    try:
        return range(n)[place]
    except IndexError:
        raise InputIndexError(f"index {place} is out of range for {n} {what}") from None


@cache
def _between() -> tuple[str, ...]:
    """Folders of code between the user's and ours: searches, pipelines, the compiler."""
    found = (find_spec(name) for name in ("gputree", "sklearn", "joblib", "numba"))
    files = (spec.origin for spec in found if spec is not None and spec.origin)
    return tuple(os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in files)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, at the line outside of this package and of scikit-learn that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_between()):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
