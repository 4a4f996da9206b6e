"""What files say of a fitted estimator beside its tree: one header for every format.

- ``algorithm``: name of the estimator's class
- ``params``: object, the estimator's parameters by name
- ``classes``: the class labels in the order of the tree's statistics; null for
  regression
- ``feature_names``: list of strings, or null where `fit` saw no names
- ``categories``: list of an array of categories, or null, for each column
- ``missing_marks``: list of strings, what stood in missing cells of the text that `gputree
  train` read; absent where nothing did. The estimator has them as ``missing_marks_``.
- ``winnowed``: list of the columns that `winnow` left out; absent where it was not asked for

Values that JSON lacks are written as objects with one meaning each:
``{"float": "inf"}`` (also "-inf" and "nan"), ``{"tuple": [...]}``,
``{"dict": [[key, value], ...]}`` (keys need not be strings),
``{"pruner": [short name, params]}`` and ``{"array": [...], "dtype": "<i8"}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree._warnings import warn
from gputree.columns import Columns
from gputree.estimators.costs import check_costs
from gputree.pruning import PRUNERS, Pruner
from gputree.tree import Tree

_ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings

# Bytes of all text arrays in the header, whose dtypes may ask for much room for little text;
# other values take no more than a few bytes for each of their characters.
_MOST_TEXT_BYTES = 1 << 28


def header_of(estimator: Any, caller: str, also: Iterable[str] = ()) -> dict[str, Any]:
    """The header of a fitted estimator, as JSON holds it; the caller may take others, too.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that no file can hold.
    ValueError
        A parameter that was set since `fit` is none that the estimator takes, or is other costs.
    """
    name = type(estimator).__name__
    if _registry().get(name) is not type(estimator):
        raise TypeError(f"{caller} takes one of {sorted([*_registry(), *also])}, got {name}.")
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
    """Files hold the parameter, but trees answer by the costs of `fit`."""
    costs: Any = check_costs(classifier, classifier.classes_)
    if not np.array_equal(costs, classifier.costs_):
        raise ValueError(
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


@contextmanager
def refusing(source: str, header: dict[str, Any]) -> Iterator[None]:
    """Whatever a damaged header makes of its readers is a ValueError that names the file."""
    try:
        if (taken := _text_bytes(header)) > _MOST_TEXT_BYTES:
            raise ValueError(
                f"its arrays of text take {taken:,} bytes, but {_MOST_TEXT_BYTES:,} are allowed."
            )
        yield
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise ValueError(f"{source} does not hold a valid estimator: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What is wrong, where the error knows: others are of code that met what it did not expect."""
    if isinstance(error, RecursionError):
        return "its header is nested too deep."
    if isinstance(error, (ArithmeticError, AttributeError, LookupError)):
        return "its header is damaged."
    return str(error)


def _registry() -> dict[str, type[BaseEstimator]]:
    """The estimators that files may name."""
    from gputree import estimators  # here, for the package imports this module
    from gputree.estimators.base import BaseDecisionTree

    public = (getattr(estimators, name) for name in estimators.__all__)
    return {
        item.__name__: item
        for item in public
        if isinstance(item, type) and issubclass(item, BaseDecisionTree)
    }


def _rebuild(header: dict[str, Any], tree: Tree, columns: Columns | None = None) -> Any:
    kind = _kind_of(header)
    if issubclass(kind, ClassifierMixin) != (tree.task == "classification"):
        raise ValueError(f"{kind.__name__} cannot have a tree of task {tree.task!r}.")
    estimator = with_params(kind, header)
    estimator.tree_ = tree
    estimator.n_outputs_ = 1
    return completed(estimator, header, [tree], columns)


def unfitted_of(header: dict[str, Any]) -> Any:
    """An estimator of a tree with the parameters of a header."""
    return with_params(_kind_of(header), header)


def _kind_of(header: dict[str, Any]) -> type[BaseEstimator]:
    algorithm = field_of(header, "algorithm", str)
    if algorithm not in _registry():
        raise ValueError(f"algorithm must be one of {sorted(_registry())}, got {algorithm!r}.")
    return _registry()[algorithm]


def with_params(kind: Any, header: dict[str, Any]) -> Any:
    """An estimator of some kind with the parameters of a header."""
    params = {key: decode(value) for key, value in field_of(header, "params", dict).items()}
    estimator = kind(**params)
    estimator._validate_params()
    return estimator


def completed(
    estimator: Any, header: dict[str, Any], trees: list[Tree], columns: Columns | None = None
) -> Any:
    """The estimator with what the header says of its columns and classes, those of its trees."""
    d = trees[0].n_features
    estimator.n_features_in_ = d
    estimator.columns_ = _columns(header, trees) if columns is None else columns
    names = field_of(header, "feature_names", list, type(None))
    if names is not None:
        check_count("feature_names", names, d)
        estimator.feature_names_in_ = np.array(_texts("feature_names", names), dtype=object)
    restore_marks(estimator, header)
    if hasattr(estimator, "winnow"):
        _restore_winnowed(estimator, header)
    if isinstance(estimator, ClassifierMixin):
        estimator.classes_ = _classes(decode(field_of(header, "classes", dict, list)))
        estimator.n_classes_ = len(estimator.classes_)
        estimator.costs_ = check_costs(estimator, estimator.classes_)
    check_count("classes", getattr(estimator, "classes_", [None]), trees[0].n_classes)
    return estimator


def restore_marks(estimator: Any, header: dict[str, Any]) -> None:
    """`missing_marks_`, where the header has some."""
    if "missing_marks" in header:
        estimator.missing_marks_ = _texts("missing_marks", header["missing_marks"])


def _restore_winnowed(estimator: Any, header: dict[str, Any]) -> None:
    """`winnowed_`; files of before do not tell which columns were left out."""
    if estimator.winnow and "winnowed" not in header:
        return
    d = estimator.n_features_in_
    places = header.get("winnowed", [])
    if not isinstance(places, list) or not all(type(f) is int and 0 <= f < d for f in places):
        raise ValueError("winnowed must be a list of columns.")
    estimator.winnowed_ = np.isin(np.arange(d), places)


def field_of(header: dict[str, Any], key: str, *kinds: type) -> Any:
    """What the header has under a key, if it is of one of the kinds."""
    if key not in header:
        raise ValueError(f"its header lacks {key}.")
    if not isinstance(header[key], kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{key} must be of type {names}, got {type(header[key]).__name__}.")
    return header[key]


def _texts(key: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{key} must be a list of strings.")
    return values


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


def _columns(header: dict[str, Any], trees: list[Tree]) -> Columns:
    """The columns' specifications, if they are those of the trees."""
    categories = decode(field_of(header, "categories", list))
    check_count("categories", categories, trees[0].n_features)
    for words in categories:
        if words is None:
            continue
        if not isinstance(words, np.ndarray):
            raise ValueError("the categories of a column are no array.")
        if words.ndim != 1 or len(set(words.tolist())) < words.size:
            raise ValueError("the categories of a column are no list, or one is repeated.")
    nominal = np.array([words is not None for words in categories])
    columns = Columns(nominal, tuple(categories))
    for tree in trees:
        _check_tests(tree, columns)
    return columns


def _check_tests(tree: Tree, columns: Columns) -> None:
    """Raise ValueError where a tree tests categories that its columns do not have."""
    tests = np.flatnonzero(tree.tests_categories)
    if not columns.nominal[tree.feature[tests]].all():
        raise ValueError("a split tests categories of a column that has none.")
    greatest = tree.branch_spans.greatest(tree.tests_categories, tree.branch_code)[tests]
    if (greatest >= columns.n_categories[tree.feature[tests]]).any():
        raise ValueError("a split tests a category that its column does not have.")


def check_count(key: str, values: Any, count: int) -> None:
    """Raise ValueError unless there are so many values."""
    if len(values) != count:
        raise ValueError(f"{key} must contain {count} elements, got {len(values)}.")


# ---------------------------------------------------------- JSON and beyond
def encode(value: Any, name: str) -> Any:
    """`value` as JSON holds it; `name` is for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": encode(list(value), name)}
    if isinstance(value, dict):
        return {"dict": [encode(list(item), name) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _ARRAY_KINDS:
        return {"array": encode(value.tolist(), name), "dtype": value.dtype.str}
    if isinstance(value, Pruner):
        short = next(short for short, kind in PRUNERS.items() if kind is type(value))
        return {"pruner": encode([short, value.get_params(deep=False)], name)}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        warn(f"The state of {name} is not stored; None is.")
        return None
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
    raise TypeError(f"A file cannot hold {name} of type {kind}.")


def decode(value: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return _decode_array(value["array"], value["dtype"])
    if len(value) == 1 and (tag := next(iter(value))) in _DECODERS:
        return _DECODERS[tag](decode(value[tag]))
    raise ValueError(f"a value has the unknown keys {sorted(value)}.")


def _decode_array(values: Any, dtype: str) -> np.ndarray:
    kind = _array_kind(dtype)
    if not isinstance(values, list):
        raise ValueError(f"an array must be a list, got {type(values).__name__}.")
    array = np.array(decode(values), dtype=kind)
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
    if short not in PRUNERS:
        raise ValueError(f"pruning must be one of {sorted(PRUNERS)}, got {short!r}.")
    pruner = PRUNERS[short](**params)
    pruner._validate_params()
    return pruner


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "pruner": _decode_pruner,
}
