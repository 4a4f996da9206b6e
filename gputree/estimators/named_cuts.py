"""Splits that a user writes: by names of columns and of categories."""

import sys
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from gputree.base.texts import hint
from gputree.columns import Columns
from gputree.errors import InputError

FLAGS = (bool, np.bool_)


def names_of(estimator: Any) -> list[Any]:
    """Names of the columns of an estimator, or their indices."""
    names = getattr(estimator, "feature_names_in_", None)
    return list(range(estimator.n_features_in_)) if names is None else list(map(str, names))


def place_of(names: Sequence[Any], column: Any) -> int:
    """Return the index of a column, which is given by its name or index."""
    if isinstance(column, FLAGS):
        raise InputError(f"A column is given by its name or index, got {column!r}.")
    if column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and 0 <= column < len(names):
        return int(column)
    called = [f"x{name}" if isinstance(name, int) else name for name in names]
    if column in called:  # as exports call columns without a name
        return called.index(column)
    raise InputError(f"There is no column {column!r}.{hint(str(column), map(str, called))}")


def cut_of(
    columns: Columns, feature: int, name: Any, threshold: Any, categories: Any
) -> tuple[float | None, Any]:
    """Return the threshold, or codes, of a split of a column, of which one is given."""
    if (threshold is None) == (categories is None):
        number = "neither" if threshold is None else "both"
        raise InputError(f"A split takes 'threshold' or 'categories'; {name!r} has {number}.")
    if isinstance(categories, str):
        raise InputError(f"Write the categories of column {name!r} as a list: [{categories!r}].")
    is_nominal = bool(columns.nominal[feature])
    if is_nominal != (threshold is None):
        takes = "categories" if is_nominal else "threshold"
        raise InputError(f"Column {name!r} is split by '{takes}'.")
    words = columns.categories[feature]
    if words is None:
        return finite(threshold, name), None
    # True equals 1, the name of another category
    known = {(word, isinstance(word, FLAGS)): code for code, word in enumerate(words.tolist())}
    codes = []
    for word in [threshold] if threshold is not None else categories:
        key = word, isinstance(word, FLAGS)
        if not isinstance(word, Hashable) or key not in known:
            near = hint(str(word), map(str, words.tolist()))
            raise InputError(f"Column {name!r} has no category {word!r}.{near}")
        codes.append(known[key])
    return (float(codes[0]), None) if threshold is not None else (None, np.array(codes))


def finite(threshold: Any, name: Any) -> float:
    """Return a threshold as a finite number."""
    # integers of JSON can be larger than any float
    is_number = isinstance(threshold, Real) and not isinstance(threshold, FLAGS)
    if not is_number or not abs(threshold) <= sys.float_info.max:
        raise InputError(f"The threshold of column {name!r} must be a number, got {threshold!r}.")
    return float(threshold)
