"""Errors whose cause is outside of this package: arguments, files, devices.

Each is also a built-in exception, as scikit-learn's conventions require: `InputError` is a
ValueError. The command prints these in one line, and any other error with its traceback.
"""

from __future__ import annotations

from contextlib import ContextDecorator
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
