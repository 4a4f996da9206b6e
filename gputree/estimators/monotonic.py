"""The direction of predictions with columns, as a user says it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree._sklearn import check_monotonic_cst
from gputree.columns import Columns
from gputree.errors import InputError

MOST_CLASSES = 2


def monotonic_signs(estimator: Any, columns: Columns) -> NDArray[np.int8] | None:
    """The sign of each column, shape (d,); None where no column has one, or nothing can go wrong.

    Parameters
    ----------
    estimator : estimator of CART, whose table and targets are checked
        Its ``monotonic_cst`` is an array of -1, 0 and 1, a dict of them by column, or None.
    columns : Columns

    Raises
    ------
    ValueError
        There are more than two classes; the values or their number are others; a name is none of
        the table; or a column with a sign holds categories.
    """
    if estimator.monotonic_cst is None:
        return None
    n_classes = getattr(estimator, "n_classes_", 0)
    if n_classes > MOST_CLASSES:
        raise InputError(
            "Monotonicity constraints are not supported with multiclass classification. "
            f"{type(estimator).__name__} got y with {n_classes} classes and "
            f"monotonic_cst={estimator.monotonic_cst!r}."
        )
    signs: NDArray[np.int8] = _signs(estimator)
    signed = np.flatnonzero((signs != 0) & (columns.n_categories > 0))
    if signed.size:
        names = getattr(estimator, "feature_names_in_", np.arange(signs.size))
        raise InputError(
            "Monotonicity constraints are not supported with categories, which have no order. "
            f"{type(estimator).__name__} got monotonic_cst with {int(signs[signed[0]])} for column "
            f"{names[signed[0]]!r}, which is categorical. Write 0, or give its categories an "
            f"order: ordered_categories={{{names[signed[0]]!r}: [...]}}."
        )
    return signs if signs.any() and n_classes != 1 else None


def _signs(estimator: Any) -> NDArray[np.int8]:
    given = estimator.monotonic_cst
    if not isinstance(given, dict) and np.ndim(given) != 1:
        raise InputError(
            "monotonic_cst must be None, a dict or an array-like of one dimension, but got one of "
            f"{np.ndim(given)}."
        )
    return np.asarray(check_monotonic_cst(estimator, given), np.int8)
