"""The columns of a table that is read in batches, from those of each batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.columns.categories import Lookup, as_numbers, as_objects, in_order, kind_of
from gputree.columns.specification import Columns
from gputree.dtypes import Bools
from gputree.errors import InputError


class MergedColumns:
    """What the columns of all batches hold, as far as they were seen; messages call them by labels.

    Categories are those of all batches: where batches declare the same, in their order, else
    numbers by value, then text by code point. Batches without a value of a column do not affect it.
    """

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels
        self._nominal: list[bool | None] = [None] * len(labels)  # None: no value so far
        self._categories = [_Merged(label) for label in labels]

    def add(self, columns: Columns, empty: Bools) -> None:
        """Learn from a batch, whose columns without a value are `empty`."""
        for f, label in enumerate(self.labels):
            categories = columns.categories[f]
            if categories is not None:
                self._categories[f].add(categories)
            if empty[f]:
                continue
            nominal = categories is not None
            if self._nominal[f] is None:
                self._nominal[f] = nominal
            if self._nominal[f] != nominal:
                held, holds = ("categories", "numbers")[:: 1 if self._nominal[f] else -1]
                raise InputError(
                    f"Column {label} of X held {held} in earlier batches and holds {holds} in "
                    "this one. Convert it, or list it in 'categorical_features'."
                )

    def columns(self) -> KeptColumns:
        """The columns of all batches; one without any value holds what its batches said."""
        found = [merged.categories() for merged in self._categories]
        nominal = [
            own is not None if known is None else known
            for own, known in zip(found, self._nominal, strict=True)
        ]
        categories = [
            own if is_nominal else None for own, is_nominal in zip(found, nominal, strict=True)
        ]
        return KeptColumns(np.array(nominal, np.bool_), tuple(categories))


class KeptColumns(Columns):
    """Columns of many batches, for which what looks up categories is kept."""

    def _lookups(self) -> list[Lookup | None]:
        return self._kept

    @cached_property
    def _kept(self) -> list[Lookup | None]:
        return super()._lookups()

    def plain(self) -> Columns:
        """The same, for one table."""
        return Columns(self.nominal, self.categories)


class _Merged:
    """Categories of one column: as batches declare them, or in order, in time linear in them."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._first: NDArray | None = None
        self._same = True  # no batch has others than the first, or an other order
        self._all: dict[Any, None] = {}
        self._numeric = False
        self._dtypes: set[np.dtype] = set()

    def add(self, more: NDArray) -> None:
        """Learn the categories of a batch."""
        if self._first is None or self._first.size == 0:
            self._first = more
            return
        if more.size == 0 or (self._same and self._first.tolist() == more.tolist()):
            return
        if self._same:
            self._same, self._numeric = False, kind_of(self._first) == "numbers"
            self._all.update(dict.fromkeys(self._first.tolist()))
            self._dtypes = {self._first.dtype}
        if self._numeric != (kind_of(more) == "numbers"):
            raise InputError(
                f"Column {self._label} of X holds text in some batches and numbers in others. "
                "Convert it."
            )
        self._dtypes.add(more.dtype)
        self._all.update(dict.fromkeys(more.tolist()))

    def categories(self) -> NDArray | None:
        """Those of all batches; None if no batch had any, not even none."""
        if self._same:
            return self._first
        if not self._numeric:
            return in_order(as_objects(list(self._all)))
        values = sorted(self._all)
        found = np.array(values, np.result_type(*self._dtypes))
        return found if found.tolist() == values else as_numbers(values)
