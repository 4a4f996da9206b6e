"""Columns as the parameter `categorical_features` lists them, and what messages call them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.columns.cells import as_table, is_frame
from gputree.dtypes import Bools
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
    table = as_table(X)
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
