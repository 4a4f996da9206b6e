"""Warnings of columns of text that are nearly numbers, or numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree._warnings import warn
from gputree.columns import Columns
from gputree.columns.categories import NUMBERS
from gputree.columns.near_numbers import (
    LEAST_NUMBERS,
    MARKS,
    MINUS,
    MOST_EXAMPLES,
    NearlyNumeric,
    is_decimal,
    nearly_numeric,
)
from gputree.columns.options import listed_columns
from gputree.dtypes import Bools
from gputree.errors import MixedColumnWarning


def warn_of_mixed_columns(
    caller: str,
    columns: Columns,
    names: NDArray | None,
    categorical_features: Any,
    count: Callable[[int], NDArray],
    declared: Callable[[], Bools],
) -> list[int]:
    """Warn of each column of text that is nearly one of numbers, unless it is listed.

    A column of numbers alone is not meant, either, if its type declares categories. Returns the
    columns that it has warned of.

    Parameters
    ----------
    caller : str
        What takes the column for categories.
    columns : Columns
    names : array of str, or None
    categorical_features : "auto", None or array-like
    count : function of an index
        Rows of each category of that column; called where a column may be one.
    declared : function
        Mask of the columns that are listed, or categorical by their types.
    """
    mixed = list(_mixed_columns(columns, count))
    if not mixed:
        return []
    listed, by_type = _listed(categorical_features, names, columns.nominal.size), declared()
    mixed = [(f, found) for f, found in mixed if not (listed if found.n_text else by_type)[f]]
    for f, found in mixed:
        label = str(f) if names is None else repr(names[f])
        warn(
            f"Column {label} of X {claim(found)}, and {caller} takes all of it for categories, "
            f"which have no order. {conversion(found)}; if it holds categories, list it in "
            "'categorical_features'.",
            MixedColumnWarning,
        )
    return [f for f, _ in mixed]


def _listed(categorical_features: Any, names: NDArray | None, d: int) -> Bools:
    """The columns that the user lists, of a table of such names."""
    table: Any = np.empty((0, d))
    if names is not None:
        import pyarrow as pa

        table = pa.table([[]] * d, names.tolist())
    listed = listed_columns(categorical_features, table)
    return np.zeros(d, np.bool_) if listed is None else listed


def mixed_column(words: NDArray | None, count: Callable[[], NDArray]) -> NearlyNumeric | None:
    """The numbers and the texts of a column of such categories, if it is nearly one of numbers."""
    if words is None or words.dtype.kind in NUMBERS:
        return None
    texts = list(map(_as_text, words.tolist()))
    if not _has_few_texts(texts):
        return None
    return nearly_numeric(texts, count())


def claim(found: NearlyNumeric) -> str:
    """Number of cells of either kind in a column, with examples of text, for the warning."""
    numbers = f"{found.n_numbers:,} number{'s' * (found.n_numbers > 1)}"
    if not found.n_text:
        return f"holds {numbers} as text"
    cells = "cell is" if found.n_text == 1 else "cells are"
    shown = ", ".join(map(repr, found.examples))
    such = "such as " if len(found.examples) == MOST_EXAMPLES else ""
    return f"holds {numbers}, but {found.n_text:,} {cells} text ({such}{shown})"


def conversion(found: NearlyNumeric) -> str:
    """Advice on the conversion of a column to numbers, without its stop."""
    column = f"column.str.replace({MINUS!r}, '-')" if found.has_minus else "column"
    if not found.n_text:
        return f"Convert it, as by pandas.to_numeric({column})"
    return (
        "If other cells than numbers are missing values, convert it, as by "
        f"pandas.to_numeric({column}, errors='coerce')"
    )


def _mixed_columns(
    columns: Columns, count: Callable[[int], NDArray]
) -> Iterator[tuple[int, NearlyNumeric]]:
    for f in np.flatnonzero(columns.nominal).tolist():
        found = mixed_column(columns.categories[f], partial(count, f))
        if found is not None:
            yield f, found


def _as_text(word: Any) -> Any:
    """A number among text as a text."""
    return repr(word) if isinstance(word, Real) and not isinstance(word, bool) else word


def _has_few_texts(words: list[Any]) -> bool:
    """Return whether few enough categories are text for the others to be meant as numbers."""
    most, texts = max(len(words) // (LEAST_NUMBERS + 1), len(MARKS)), 0
    for word in words:
        texts += not (isinstance(word, str) and is_decimal(word))
        if texts > most:
            return False
    return texts < len(words)
