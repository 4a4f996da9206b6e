"""Errors that name a cause outside of this package: what was passed, a file, a device.

Each is of a built-in kind, too, as scikit-learn's conventions ask for: whoever catches ValueError
gets an `InputError`. The command ends in one line for these, and shows the traceback of any other.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["DeviceError", "GputreeError", "InputError", "InputTypeError", "MissingPackageError"]


class GputreeError(Exception):
    """What all errors that are raised on purpose have in common."""


class InputError(GputreeError, ValueError):
    """A table, a target, a parameter or a file holds what cannot be taken."""


class InputTypeError(GputreeError, TypeError):
    """An argument is of a type that cannot be taken."""


class DeviceError(GputreeError, RuntimeError):
    """A device, its driver or its libraries are not there, or too old."""


class MissingPackageError(GputreeError, ImportError):
    """An optional package is not installed, or does not start."""


class checks(ContextDecorator):
    """Errors of another library's checks are ours, within a block or of a function."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, GputreeError):
            return
        if isinstance(error, ValueError):
            raise InputError(str(error)) from None
        if isinstance(error, TypeError):
            raise InputTypeError(str(error)) from None
