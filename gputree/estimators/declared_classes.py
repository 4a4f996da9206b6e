"""Classes that are declared, rather than found in y: the parameter `classes`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.columns.categories import is_missing
from gputree.errors import InputError
from gputree.validation import code_dtype

DECLARED = "declared"


def declare_classes(
    estimator: Any, y: Any, present: NDArray[Any], codes: NDArray[np.integer]
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return the declared classes, ascending, and the code of each row's label among them.

    Parameters
    ----------
    estimator : classifier
        Its parameter `classes` is an array-like of labels or "declared".
    y : array-like of shape (n_rows,)
        The user's: its type may declare classes.
    present : array
        Classes that y has, ascending.
    codes : integer array of shape (n_rows,)
        Indices into `present`.

    Raises
    ------
    ValueError
        `classes` lists no different labels, y has others, or its type declares none.
    """
    name = type(estimator).__name__
    if isinstance(estimator.classes, str):
        declared = _of_type(y)
        if declared is None:
            raise InputError(
                f"{name}(classes='{DECLARED}') takes the classes that the type of y declares, "
                "and that declares none. Pass y as a pandas Categorical, a polars Enum or a "
                "pyarrow dictionary, or list the classes."
            )
    else:
        declared = _as_labels(estimator.classes)
    classes = _ascending(name, declared, present)
    place = np.searchsorted(classes, present).clip(max=classes.size - 1)
    unknown = present[classes[place] != present]
    if unknown.size:
        raise InputError(
            f"y contains labels that the 'classes' parameter of {name} does not list: "
            f"{unknown[:5].tolist()}."
        )
    return classes, place.astype(code_dtype(classes.size))[codes]


def _of_type(y: Any) -> NDArray[Any] | None:
    """The categories that the type of y declares: of pandas, polars or pyarrow; None without."""
    dictionary = getattr(y, "unify_dictionaries", None)  # of chunks
    if dictionary is not None and hasattr(y.type, "value_type"):
        y = dictionary().combine_chunks()
    found = getattr(y, "dictionary", None)
    if found is None:
        kind = getattr(y, "dtype", None)
        found = getattr(kind, "categories", None)
    return None if found is None else _as_labels(found)


def _as_labels(classes: Any) -> NDArray[Any]:
    labels = np.asarray(classes)
    if labels.dtype.kind in "US" and any(not isinstance(c, str) for c in classes):
        return np.array(list(classes), dtype=object)  # numbers next to text stay numbers
    return labels


def _ascending(name: str, declared: NDArray[Any], present: NDArray[Any]) -> NDArray[Any]:
    """Distinct labels, ascending, as the type of y's labels if it can represent them."""
    problem = f"The 'classes' parameter of {name} must list different labels"
    if declared.ndim != 1 or declared.size == 0 or any(map(is_missing, declared.tolist())):
        raise InputError(f"{problem}, none missing. Got {declared.tolist()!r} instead.")
    if (declared.dtype.kind in "biuf") != (present.dtype.kind in "biuf"):
        kind_of_y = "numbers" if present.dtype.kind in "biuf" else "text"
        raise InputError(
            f"{problem} of the kind of y, which holds {kind_of_y}. "
            f"Got {declared.tolist()!r} instead."
        )
    try:
        classes = np.unique(declared)
    except TypeError as error:
        raise InputError(f"{problem} of one kind. Got {declared.tolist()!r} instead.") from error
    if classes.size < declared.size:
        raise InputError(f"{problem}. Got {declared.tolist()!r} instead.")
    kind = present.dtype
    if kind.kind == "U":
        return classes.astype(np.str_)
    converted = classes.astype(kind)
    return converted if np.array_equal(converted, classes) else classes
