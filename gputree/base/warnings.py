"""Warnings that show the line of whoever called, not one of this package."""

import os
import sys
import warnings
from functools import cache
from importlib.util import find_spec


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
