"""Warnings that show the line of whoever called, not one of this package."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import numba
import sklearn

# Code between the user's and ours: searches, pipelines, decorators, the compiler.
_BETWEEN = tuple(
    os.path.join(os.path.dirname(os.path.abspath(file)), "")
    for file in (__file__, sklearn.__file__, joblib.__file__, numba.__file__)
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, at the line outside of this package and of scikit-learn that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
