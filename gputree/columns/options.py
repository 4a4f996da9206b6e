"""Columns as the parameter `categorical_features` lists them, and what messages call them.

Ordered categories: which columns hold some, and in which order.

An ordered column is cut as a numeric one, along the ranks of its categories: "low", "medium",
"high" are 0, 1, 2, and trees test `level <= medium`, as R's trees do with ordered factors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import UNSEEN, Bools
from gputree.columns.categories import Lookup, as_numbers, as_objects, is_missing
from gputree.columns.cells import Cells, Coded, as_table, is_frame
from gputree.errors import InputError


def listed_columns(categorical_features: Any, X: Any) -> Bools | None:
    """The mask of the columns that the user lists, or None for "auto"."""
    if isinstance(categorical_features, str) and categorical_features == "auto":
        return None
    listed, d = np.asarray([] if categorical_features is None else categorical_features), X.shape[1]
    mask = np.zeros(d, np.bool_)
    if listed.ndim == 1 and listed.size == 0:
        return mask
    if listed.ndim == 1 and listed.dtype.kind == "b" and listed.size == d:
        return listed.copy()
    if listed.ndim == 1 and listed.dtype.kind in "iu" and 0 <= listed.min() <= listed.max() < d:
        mask[listed] = True
        return mask
    if listed.ndim == 1 and all(isinstance(name, str) for name in listed.tolist()):
        places = places_of("categorical_features", listed.tolist(), X)
        mask[places] = True
        return mask
    raise InputError(
        "The 'categorical_features' parameter must be 'auto', None, names of columns, indices "
        f"from 0 to {d - 1} or a mask of {d} booleans. Got {categorical_features!r} instead."
    )


def declared_nominal(X: Any, categorical_features: Any, d: int) -> Bools:
    """Mark the columns of d that are declared categorical: by a list, or by their types."""
    table = as_table(X, sparse=True)
    frame = table if is_frame(table) else np.empty((0, d))
    listed = listed_columns(categorical_features, frame)
    if listed is not None or not is_frame(table):
        return np.zeros(d, np.bool_) if listed is None else listed
    import narwhals as nw

    kinds = nw.from_native(table).schema.values()
    return np.array([kind in (nw.Categorical, nw.Enum) for kind in kinds], np.bool_)


def places_of(parameter: str, names: list[str], X: Any) -> list[int]:
    """Places of all columns of some names, which a parameter gives."""
    present = _names(X)
    if present is None:
        raise InputError(
            f"The '{parameter}' parameter names columns, but X has no column names. Got "
            f"{names!r}; pass a data frame, or indices."
        )
    unknown = sorted(set(names).difference(present))
    if unknown:
        raise InputError(
            f"The '{parameter}' parameter must name columns of X. Got {unknown!r}, which are none."
        )
    wanted = set(names)
    return [place for place, name in enumerate(present) if name in wanted]


def labels_of(X: Any) -> list[str]:
    """Names of the columns in messages: in quotes, or indices."""
    names = _names(X)
    return list(map(repr, range(X.shape[1]) if names is None else names))


def _names(X: Any) -> list[Any] | None:
    if not is_frame(X):
        return None
    return list(getattr(X, "column_names", None) or X.columns)


DECLARED = "declared"

_ALLOWED = (
    "The 'ordered_categories' parameter must be 'auto', None or a dict that gives, for a column by "
    "its name or index, a list of its categories in their order, 'declared' for the order of "
    "its type, or None for no order."
)


@dataclass(frozen=True)
class Orders:
    """The parameter `ordered_categories`, its columns by their places."""

    # categories in their order, "declared" for the order of a categorical type that is not ordered,
    # as an Enum of polars, or None for no order
    given: dict[int, Any]
    by_type: bool  # others are ordered where their type is, of pandas or of Arrow

    def mask(self, n_columns: int) -> Bools:
        """The columns that are given an order, whatever they hold."""
        found = np.zeros(n_columns, np.bool_)
        found[[f for f, order in self.given.items() if order is not None]] = True
        return found

    def of(self, f: int, cells: Cells, label: str) -> NDArray[Any] | None:
        """The categories of column f in their order; None where they have none."""
        by_type = self.by_type and isinstance(cells, Coded) and cells.ordered
        order = self.given.get(f, DECLARED if by_type else None)
        if order is None:
            return None
        assert isinstance(cells, Coded)
        if isinstance(order, str):
            if not cells.declared:
                raise InputError(
                    f"The 'ordered_categories' parameter takes the order of column {label} of X "
                    "from its type, which declares no categories: list them in their order."
                )
            return cells.values
        _require_listed(order, cells, label)
        return order


def declared_orders(ordered_categories: Any, X: Any) -> Orders:
    """The orders that the parameter gives for the columns of a table; ValueError if it is none."""
    if ordered_categories is None:
        return Orders({}, False)
    if isinstance(ordered_categories, str) and ordered_categories == "auto":
        return Orders({}, True)
    if not isinstance(ordered_categories, Mapping):
        raise InputError(f"{_ALLOWED} Got {ordered_categories!r} instead.")
    given: dict[int, Any] = {}
    for column, order in ordered_categories.items():
        levels = order
        if order is not None and not (isinstance(order, str) and order == DECLARED):
            levels = _levels(column, order)
        given |= dict.fromkeys(_places(column, X), levels)
    return Orders(given, True)


def _places(column: Any, X: Any) -> list[int]:
    """Places of the column of a name or an index."""
    if isinstance(column, str):
        return places_of("ordered_categories", [column], X)
    d = X.shape[1]
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < d:
        return [int(column)]
    raise InputError(
        "The 'ordered_categories' parameter must name columns of X, or give indices from 0 to "
        f"{d - 1}. Got {column!r} instead."
    )


def _levels(column: Any, order: Any) -> NDArray[Any]:
    is_list = isinstance(order, Sequence) and not isinstance(order, str)
    if not is_list and not hasattr(order, "tolist"):  # of NumPy, or an index of pandas
        raise InputError(f"{_ALLOWED} Got {order!r} for {column!r}.")
    words = order.tolist() if hasattr(order, "tolist") else list(order)
    complete = words and not any(map(is_missing, words))
    if not complete or not all(isinstance(word, (str, Real)) for word in words):
        raise InputError(
            f"The 'ordered_categories' parameter must list text or numbers, none of them missing. "
            f"Got {order!r} for {column!r}."
        )
    if len(set(words)) < len(words):
        twice = next(word for place, word in enumerate(words) if word in words[:place])
        raise InputError(
            f"The 'ordered_categories' parameter lists {twice!r} twice for column {column!r}."
        )
    return as_objects(words) if any(isinstance(w, str) for w in words) else as_numbers(words)


def _require_listed(order: NDArray[Any], cells: Coded, label: str) -> None:
    """Raise ValueError where a row has a category that is not listed."""
    unseen = Lookup(order).match(cells.values) == UNSEEN
    if not unseen.any():
        return
    present = np.zeros(unseen.size, np.bool_)
    present[cells.code[cells.code >= 0]] = True
    if (unseen & present).any():
        word = cells.values[np.flatnonzero(unseen & present)[0]]
        word = word.item() if isinstance(word, np.generic) else word
        raise InputError(
            f"Column {label} of X holds {word!r}, which 'ordered_categories' does not list: "
            f"{order.tolist()}."
        )
