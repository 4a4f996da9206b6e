"""Columns of a table that is read in batches, merged from the columns of each batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools
from gputree.columns.categories import Lookup, as_numbers, as_objects, in_order, kind_of
from gputree.columns.specification import Columns
from gputree.errors import InputError

_NUMBERS, _CATEGORIES, _ORDERED = "numbers", "categories", "ordered categories"
_ADVICE = {
    False: "Convert it, or list it in 'categorical_features'.",
    True: "Give it one type, or its order in 'ordered_categories'.",
}


class MergedColumns:
    """Columns merged from all batches seen so far; messages use labels for them.

    Categories are those of all batches: where batches declare the same, in their order, else
    numbers by value, then text by code point. Batches without a value of a column do not affect it.
    """

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels
        self._kinds: list[str | None] = [None] * len(labels)  # None: no value so far
        self._categories = [_Merged(label) for label in labels]

    def add(self, columns: Columns, empty: Bools) -> None:
        """Learn from a batch, whose columns without a value are `empty`."""
        for f, label in enumerate(self.labels):
            categories, ordered = columns.categories[f], bool(columns.ordered[f])
            kind = _NUMBERS if categories is None else _ORDERED if ordered else _CATEGORIES
            before = self._kinds[f] or kind
            if before != kind and not empty[f]:
                raise InputError(
                    f"Column {label} of X held {before} in earlier batches and holds {kind} in "
                    f"this one. {_ADVICE[_ORDERED in (before, kind)]}"
                )
            if categories is not None:
                self._categories[f].add(categories, ordered)
            if not empty[f]:
                self._kinds[f] = kind

    def columns(self) -> KeptColumns:
        """Columns of all batches; one without any value has the type that its batches declare."""
        found = [merged.categories() for merged in self._categories]
        kinds = [
            kind or (_NUMBERS if labels is None else merged.kind)
            for labels, kind, merged in zip(found, self._kinds, self._categories, strict=True)
        ]
        categories = [
            None if kind == _NUMBERS else labels for labels, kind in zip(found, kinds, strict=True)
        ]
        nominal = [kind == _CATEGORIES for kind in kinds]
        return KeptColumns(np.array(nominal, np.bool_), tuple(categories))


class KeptColumns(Columns):
    """Columns of many batches, whose lookups of categories are kept."""

    def _lookups(self) -> list[Lookup | None]:
        return self._kept

    @cached_property
    def _kept(self) -> list[Lookup | None]:
        return super()._lookups()

    def plain(self) -> Columns:
        """The columns without kept lookups, for a single table."""
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
        self.kind = _CATEGORIES

    def add(self, more: NDArray, ordered: bool) -> None:
        """Learn the categories of a batch; those that are ordered never change."""
        if ordered:
            self.kind = _ORDERED
            before = [] if self._first is None else self._first.tolist()
            if before and before != more.tolist():
                raise InputError(
                    f"Column {self._label} of X declares the order {more.tolist()} in this batch, "
                    f"and {before} in earlier ones. Give it in 'ordered_categories'."
                )
        if self._first is None or self._first.size == 0:
            self._first = more
            return
        if self.kind == _ORDERED:
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
        """Categories of all batches, or None if no batch declared the column categorical."""
        if self._same:
            return self._first
        if not self._numeric:
            return in_order(as_objects(list(self._all)))
        values = sorted(self._all)
        found = np.array(values, np.result_type(*self._dtypes))
        return found if found.tolist() == values else as_numbers(values)
