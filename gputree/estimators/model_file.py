"""Fitted estimators to model files and back.

Beside what `gputree.persistence` writes, the header of an estimator's file has

- ``algorithm``: name of the estimator's class
- ``params``: object, the estimator's parameters by name
- ``classes``: the class labels in the order of the tree's statistics; null for
  regression
- ``feature_names``: list of strings, or null where `fit` saw no names
- ``categories``: list of an array of categories, or null, for each column (since format
  version 2; before, all columns are numeric)

Values that JSON lacks are written as objects with one meaning each:
``{"float": "inf"}`` (also "-inf" and "nan"), ``{"tuple": [...]}``,
``{"dict": [[key, value], ...]}`` (keys need not be strings),
``{"pruner": [short name, params]}`` and ``{"array": [...], "dtype": "<i8"}``.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree.columns import Columns
from gputree.persistence import read_model, write_model
from gputree.pruning import PRUNERS, Pruner
from gputree.tree import Tree

_ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings

# Bytes of all text arrays in the header, whose dtypes may ask for much room for little text;
# other values take no more than a few bytes for each of their characters.
_MOST_TEXT_BYTES = 1 << 28

# Columns of a file whose header does not list them.
_MOST_UNLISTED = 1 << 20


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file.

    The file holds no pickle, so that reading one runs no code. A file of that
    name is replaced only once the new one is complete.

    Parameters
    ----------
    estimator : fitted estimator of gputree
    path : str or path-like

    Notes
    -----
    What only growing knows, ``unpruned_tree_`` and ``growth_report_``, is not stored.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that the file
        cannot hold.
    ValueError
        A parameter that was set since `fit` is none that the estimator takes.

    Warns
    -----
    UserWarning
        `random_state` is a generator object: its state is not stored, the
        loaded estimator has None. The fitted tree is not affected.

    Examples
    --------
    >>> from gputree import ID3Classifier, save_model
    >>> from gputree.datasets import load_fish
    >>> save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), "fish.gputree")
    """
    name = type(estimator).__name__
    if _registry().get(name) is not type(estimator):
        raise TypeError(f"save_model takes one of {sorted(_registry())}, got {name}.")
    check_is_fitted(estimator, "tree_")
    params = estimator.get_params(deep=False)
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "algorithm": name,
        "params": {key: _encode(value, key) for key, value in params.items()},
        "classes": _encode(getattr(estimator, "classes_", None), "classes_"),
        "feature_names": None if names is None else list(map(str, names)),
        "categories": _encode(list(estimator.columns_.categories), "columns_"),
    }
    estimator._validate_params()  # for those that were set since, and that no file is read with
    write_model(path, header, estimator.tree_)


def load_model(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> BaseEstimator:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        What the file may unpack to: a small file from elsewhere could else exhaust the
        memory. None for 256 MiB, or 50 times its size where that is more.

    Returns
    -------
    estimator
        Of the class and with the parameters it was saved with; its predictions
        are the same to the last bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is no model file, is damaged, was written by a newer gputree, or unpacks
        to more than is allowed.

    Examples
    --------
    >>> from gputree import ID3Classifier, load_model, save_model
    >>> from gputree.datasets import load_fish
    >>> save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), "fish.gputree")
    >>> load_model("fish.gputree").get_n_leaves()
    3
    """
    header, tree = read_model(path, max_bytes)
    try:
        return _rebuild(header, tree)
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise ValueError(f"{path} does not hold a valid estimator: {error}") from error


def _registry() -> dict[str, type[BaseEstimator]]:
    """The estimators that files may name."""
    from gputree import estimators  # here, for the package imports this module

    public = (getattr(estimators, name) for name in estimators.__all__)
    return {
        item.__name__: item
        for item in public
        if isinstance(item, type) and issubclass(item, BaseEstimator)
    }


def _rebuild(header: dict[str, Any], tree: Tree) -> BaseEstimator:
    if (taken := _text_bytes(header)) > _MOST_TEXT_BYTES:
        raise ValueError(
            f"its arrays of text take {taken:,} bytes, but {_MOST_TEXT_BYTES:,} are allowed."
        )
    algorithm = _of_kind(header, "algorithm", str)
    if algorithm not in _registry():
        raise ValueError(f"algorithm must be one of {sorted(_registry())}, got {algorithm!r}.")
    kind = _registry()[algorithm]
    if issubclass(kind, ClassifierMixin) != (tree.task == "classification"):
        raise ValueError(f"{algorithm} cannot have a tree of task {tree.task!r}.")
    params = {key: _decode(value) for key, value in _of_kind(header, "params", dict).items()}
    estimator = kind(**params)
    estimator._validate_params()
    estimator.tree_ = tree
    estimator.n_features_in_ = tree.n_features
    estimator.columns_ = _columns(header, tree)
    estimator.n_outputs_ = 1
    names = _of_kind(header, "feature_names", list, type(None))
    if names is not None:
        _check_count("feature_names", names, tree.n_features)
        if not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names must be strings.")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if tree.task == "classification":
        estimator.classes_ = _classes(_decode(header["classes"]))
        estimator.n_classes_ = len(estimator.classes_)
    _check_count("classes", getattr(estimator, "classes_", [None]), tree.n_classes)
    return estimator


def _of_kind(header: dict[str, Any], key: str, *kinds: type) -> Any:
    """What the header has under a key, if it is of one of the kinds."""
    if key not in header:
        raise ValueError(f"its header lacks {key}.")
    if not isinstance(header[key], kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{key} must be of type {names}, got {type(header[key]).__name__}.")
    return header[key]


def _classes(labels: Any) -> NDArray[Any]:
    """Class labels: a list of different ones, as `fit` leaves them."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in _ARRAY_KINDS:
        raise ValueError("classes must be a list of labels.")
    if labels.size == 0:
        raise ValueError("classes must contain at least one label.")
    if not np.array_equal(np.unique(labels), labels):
        raise ValueError("classes must be ascending, and none missing.")
    return labels


def _columns(header: dict[str, Any], tree: Tree) -> Columns:
    """The columns' specifications, if they are those of the tree."""
    if header["format_version"] == 1:
        if tree.n_features > _MOST_UNLISTED:
            raise ValueError(f"n_features must be at most {_MOST_UNLISTED}, got {tree.n_features}.")
        return Columns.numeric(tree.n_features)
    categories = _decode(_of_kind(header, "categories", list))
    _check_count("categories", categories, tree.n_features)
    for words in categories:
        if words is None:
            continue
        if not isinstance(words, np.ndarray):
            raise ValueError("the categories of a column are no array.")
        if words.ndim != 1 or len(set(words.tolist())) < words.size:
            raise ValueError("the categories of a column are no list, or one is repeated.")
    nominal = np.array([words is not None for words in categories])
    columns = Columns(nominal, tuple(categories))
    tests = np.flatnonzero(tree.tests_categories)
    if not nominal[tree.feature[tests]].all():
        raise ValueError("a split tests categories of a column that has none.")
    greatest = tree.branch_spans.greatest(tree.tests_categories, tree.branch_code)[tests]
    if (greatest >= columns.n_categories[tree.feature[tests]]).any():
        raise ValueError("a split tests a category that its column does not have.")
    return columns


def _check_count(key: str, values: Any, count: int) -> None:
    if len(values) != count:
        raise ValueError(f"{key} must contain {count} elements, got {len(values)}.")


# ---------------------------------------------------------- JSON and beyond
def _encode(value: Any, name: str) -> Any:
    """`value` as JSON holds it; `name` is for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [_encode(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": _encode(list(value), name)}
    if isinstance(value, dict):
        return {"dict": [_encode(list(item), name) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _ARRAY_KINDS:
        return {"array": _encode(value.tolist(), name), "dtype": value.dtype.str}
    if isinstance(value, Pruner):
        short = next(short for short, kind in PRUNERS.items() if kind is type(value))
        return {"pruner": _encode([short, value.get_params(deep=False)], name)}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        warnings.warn(f"The state of {name} is not stored; None is.", UserWarning, stacklevel=4)
        return None
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
    raise TypeError(f"A model file cannot hold {name} of type {kind}.")


def _decode(value: Any) -> Any:
    """The value that `_encode` was given."""
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return _decode_array(value["array"], value["dtype"])
    if len(value) == 1 and (tag := next(iter(value))) in _DECODERS:
        return _DECODERS[tag](_decode(value[tag]))
    raise ValueError(f"a value has the unknown keys {sorted(value)}.")


def _decode_array(values: Any, dtype: str) -> np.ndarray:
    kind = _array_kind(dtype)
    if not isinstance(values, list):
        raise ValueError(f"an array must be a list, got {type(values).__name__}.")
    array = np.array(_decode(values), dtype=kind)
    if array.dtype.kind == "O" and not all(isinstance(v, (str, int, float)) for v in array.flat):
        raise ValueError("an array holds something that is neither text nor a number.")
    return array


def _array_kind(dtype: Any) -> np.dtype:
    """The dtype of an array, if it is one that arrays of a file may have."""
    kind = np.dtype(dtype) if isinstance(dtype, str) else None
    if kind is None or kind.kind not in _ARRAY_KINDS or kind.itemsize == 0:  # text of any length
        raise ValueError(f"an array has the unknown dtype {dtype!r}.")
    return kind


def _text_bytes(value: Any) -> int:
    """What all arrays of text in a value of the header take, before they are made."""
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    if not isinstance(value, dict):
        return 0
    if set(value) == {"array", "dtype"}:
        kind = _array_kind(value["dtype"])
        if kind.kind == "U":  # its values may be lists
            return kind.itemsize * np.array(value["array"], dtype=object).size
    return sum(map(_text_bytes, value.values()))


def _decode_pruner(description: list[Any]) -> Pruner:
    short, params = description
    pruner = PRUNERS[short](**params)
    pruner._validate_params()
    return pruner


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "pruner": _decode_pruner,
}
