"""The columns of a table that is read in batches, from those of each batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.columns.categories import NUMBERS, as_objects, in_order
from gputree.columns.specification import Columns


class MergedColumns:
    """What the columns of all batches hold, as far as they were seen.

    Categories are those of all batches: where batches declare the same, in their order, else
    numbers by value, then text by code point. A column without a value in a batch tells nothing.

    Parameters
    ----------
    labels : list of str
        What messages call the columns.
    """

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels
        self._nominal: list[bool | None] = [None] * len(labels)  # None: no value so far
        self._categories: list[NDArray | None] = [None] * len(labels)

    def add(self, columns: Columns, empty: NDArray[np.bool_]) -> None:
        """Learn from a batch, whose columns without a value are `empty`.

        Raises
        ------
        ValueError
            A column holds numbers in one batch and categories in another, or text in one and
            numbers in another.
        """
        for f, label in enumerate(self.labels):
            categories = columns.categories[f]
            if categories is not None:
                self._categories[f] = _union(self._categories[f], categories, label)
            if empty[f]:
                continue
            nominal = categories is not None
            if self._nominal[f] is None:
                self._nominal[f] = nominal
            if self._nominal[f] != nominal:
                held, holds = ("categories", "numbers")[:: 1 if self._nominal[f] else -1]
                raise ValueError(
                    f"Column {label} of X held {held} in earlier batches and holds {holds} in "
                    "this one. Convert it, or list it in 'categorical_features'."
                )

    def columns(self) -> Columns:
        """The columns of all batches; one without any value holds what its batches said."""
        nominal = [
            self._categories[f] is not None if known is None else known
            for f, known in enumerate(self._nominal)
        ]
        categories = [
            own if is_nominal else None
            for own, is_nominal in zip(self._categories, nominal, strict=True)
        ]
        return Columns(np.array(nominal, np.bool_), tuple(categories))


def _union(known: NDArray | None, more: NDArray, label: str) -> NDArray:
    if known is None or known.size == 0:
        return more
    if more.size == 0 or known.tolist() == more.tolist():
        return known
    if _is_numeric(known) and _is_numeric(more):
        return np.union1d(known, more)
    if _is_numeric(known) != _is_numeric(more):
        raise ValueError(
            f"Column {label} of X holds text in some batches and numbers in others. Convert it."
        )
    values: list[Any] = list({*known.tolist(), *more.tolist()})
    return in_order(as_objects(values))


def _is_numeric(categories: NDArray) -> bool:
    return categories.dtype.kind in NUMBERS
