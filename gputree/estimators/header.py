"""What files say of a fitted estimator in addition to its tree: one header for every format.

- ``algorithm``: name of the estimator's class
- ``params``: object, the estimator's parameters by name
- ``classes``: the class labels in the order of the tree's statistics; null for
  regression
- ``feature_names``: list of strings, or null where `fit` saw no names
- ``categories``: list of an array of categories, or null, for each column
- ``missing_marks``: list of strings, what stood in missing cells of the text that `gputree
  train` read; absent where nothing did. The estimator has them as ``missing_marks_``.
- ``winnowed``: list of the columns that `winnow` left out; absent where it was not used

Values that JSON lacks are written as objects with one meaning each:
``{"float": "inf"}`` (also "-inf" and "nan"), ``{"tuple": [...]}``,
``{"dict": [[key, value], ...]}`` (keys need not be strings),
``{"pruner": [short name, params]}`` and ``{"array": [...], "dtype": "<i8"}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree import estimators
from gputree.columns import Columns
from gputree.errors import InputError, InputTypeError
from gputree.estimators.costs import check_costs
from gputree.estimators.header_values import (
    ALGORITHMS,
    algorithm_of,
    completed,
    decode,
    encode,
    field_of,
    refusing,
)
from gputree.tree import Tree


def header_of(estimator: Any, caller: str, also: Iterable[str] = ()) -> dict[str, Any]:
    """The header of a fitted estimator, as JSON holds it; the caller may take others, too.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that no file can represent.
    ValueError
        A parameter that was set since `fit` is none that the estimator takes, or is other costs.
    """
    name = type(estimator).__name__
    if name not in ALGORITHMS or getattr(estimators, name) is not type(estimator):
        raise InputTypeError(f"{caller} takes one of {sorted([*ALGORITHMS, *also])}, got {name}.")
    check_is_fitted(estimator, "tree_")
    return described(estimator)


def described(estimator: Any) -> dict[str, Any]:
    """The header of a fitted estimator of one tree, or of several over the same columns."""
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    header = {
        "algorithm": type(estimator).__name__,
        "params": params_of(estimator, classes),
        "classes": encode(classes, "classes_"),
        "feature_names": None if names is None else list(map(str, names)),
        "categories": encode(list(estimator.columns_.categories), "columns_"),
    }
    if marks := list(getattr(estimator, "missing_marks_", ())):
        header["missing_marks"] = encode(marks, "missing_marks_")
    if getattr(estimator, "winnow", False) and hasattr(estimator, "winnowed_"):
        header["winnowed"] = np.flatnonzero(estimator.winnowed_).tolist()
    estimator._validate_params()  # for those that were set since, and that no file is read with
    if isinstance(estimator, ClassifierMixin):
        _require_costs_of_fit(estimator)
    return header


def params_of(estimator: Any, classes: Any) -> dict[str, Any]:
    """The parameters of an estimator of these classes, as JSON holds them."""
    params = {}
    for key, value in estimator.get_params(deep=False).items():
        if hasattr(value, "columns"):  # costs in a frame, by the order of the classes
            value = check_costs(estimator, classes)
        params[key] = encode(value, key)  # no comprehension: its frame would be warned at
    return params


def _require_costs_of_fit(classifier: Any) -> None:
    """Files hold the parameter, but trees predict by the costs of `fit`."""
    costs: Any = check_costs(classifier, classifier.classes_)
    if not np.array_equal(costs, classifier.costs_):
        raise InputError(
            f"The 'misclassification_costs' parameter of {type(classifier).__name__} was set "
            "after fit: fit again, or set it back."
        )


def rebuild(source: str, header: dict[str, Any], tree: Tree, columns: Columns | None = None) -> Any:
    """The estimator of a header and a tree, neither of which is believed.

    Parameters
    ----------
    source : str
        What errors call the file.
    header : dict
    tree : Tree
    columns : Columns or None
        Instead of those that the header lists.

    Raises
    ------
    ValueError
        The header is not that of an estimator with this tree.
    """
    with refusing(source, header):
        return _rebuild(header, tree, columns)


def _rebuild(header: dict[str, Any], tree: Tree, columns: Columns | None = None) -> Any:
    estimator = with_params(getattr(estimators, algorithm_of(header, tree)), header)
    estimator.tree_ = tree
    estimator.n_outputs_ = 1
    return completed(estimator, header, [tree], columns)


def unfitted_of(header: dict[str, Any]) -> Any:
    """An estimator of a tree with the parameters of a header."""
    return with_params(getattr(estimators, algorithm_of(header)), header)


def with_params(kind: Any, header: dict[str, Any]) -> Any:
    """An estimator of some kind with the parameters of a header."""
    params = {key: decode(value) for key, value in field_of(header, "params", dict).items()}
    estimator = kind(**params)
    estimator._validate_params()
    return estimator
