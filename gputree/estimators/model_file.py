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
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree.columns import Columns
from gputree.persistence import read_model, write_model
from gputree.pruning import PRUNERS, Pruner
from gputree.tree import Tree

_ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings


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
    write_model(path, header, estimator.tree_)


def load_model(path: str | os.PathLike[str]) -> BaseEstimator:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str or path-like

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
        The file is no model file, is damaged, or was written by a newer
        gputree.

    Examples
    --------
    >>> from gputree import ID3Classifier, load_model, save_model
    >>> from gputree.datasets import load_fish
    >>> save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), "fish.gputree")
    >>> load_model("fish.gputree").get_n_leaves()
    3
    """
    header, tree = read_model(path)
    try:
        return _rebuild(header, tree)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
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
    algorithm = header["algorithm"]
    if algorithm not in _registry():
        raise ValueError(f"algorithm must be one of {sorted(_registry())}, got {algorithm!r}.")
    kind = _registry()[algorithm]
    if issubclass(kind, ClassifierMixin) != (tree.task == "classification"):
        raise ValueError(f"{algorithm} cannot have a tree of task {tree.task!r}.")
    params = {key: _decode(value) for key, value in header["params"].items()}
    estimator = kind(**params)
    estimator.tree_ = tree
    estimator.n_features_in_ = tree.n_features
    estimator.columns_ = _columns(header, tree)
    estimator.n_outputs_ = 1
    names = header["feature_names"]
    if names is not None:
        _check_count("feature_names", names, tree.n_features)
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if tree.task == "classification":
        estimator.classes_ = np.asarray(_decode(header["classes"]))
        estimator.n_classes_ = len(estimator.classes_)
        _check_count("classes", estimator.classes_, tree.n_classes)
    return estimator


def _columns(header: dict[str, Any], tree: Tree) -> Columns:
    """The columns' specifications, if they are those of the tree."""
    if header["format_version"] == 1:
        return Columns.numeric(tree.n_features)
    categories = _decode(header["categories"])
    _check_count("categories", categories, tree.n_features)
    for words in categories:
        if words is not None and (words.ndim != 1 or len(set(words.tolist())) < words.size):
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
    if np.dtype(dtype).kind not in _ARRAY_KINDS:
        raise ValueError(f"an array has the unknown dtype {dtype!r}.")
    return np.array(_decode(values), dtype=dtype)


def _decode_pruner(description: list[Any]) -> Pruner:
    short, params = description
    return PRUNERS[short](**params)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "pruner": _decode_pruner,
}
