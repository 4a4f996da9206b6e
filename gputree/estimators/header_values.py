"""Values of headers as JSON holds them, and what those of a file say of columns and classes.

Nothing here needs scikit-learn, or an estimator's class: `gputree.estimators.header` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree._warnings import warn
from gputree.columns import Columns
from gputree.errors import InputError, InputTypeError
from gputree.estimators.costs import check_costs
from gputree.tree import Task, Tree

if TYPE_CHECKING:
    from gputree.pruning import Pruner

# The estimators of one tree that files may name, and what their trees are for.
ALGORITHMS: dict[str, Task] = {
    "C45Classifier": "classification",
    "DecisionTreeClassifier": "classification",
    "DecisionTreeRegressor": "regression",
    "ID3Classifier": "classification",
}

_ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings

# Bytes of all text arrays in the header, whose dtypes may need much memory for little text;
# other values take no more than a few bytes for each of their characters.
_MOST_TEXT_BYTES = 1 << 28


@contextmanager
def refusing(source: str, header: dict[str, Any]) -> Iterator[None]:
    """Whatever a damaged header makes of its readers is a ValueError that names the file."""
    try:
        if (taken := _text_bytes(header)) > _MOST_TEXT_BYTES:
            raise InputError(
                f"its arrays of text take {taken:,} bytes, but {_MOST_TEXT_BYTES:,} are allowed."
            )
        yield
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise InputError(f"{source} does not hold a valid estimator: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What is wrong, where the error knows: others are of code that met what it did not expect."""
    if isinstance(error, RecursionError):
        return "its header is nested too deep."
    if isinstance(error, (ArithmeticError, AttributeError, LookupError)):
        return "its header is damaged."
    return str(error)


def algorithm_of(header: dict[str, Any], tree: Tree | None = None) -> str:
    """The estimator that a header names, one that has such a tree."""
    name: str = field_of(header, "algorithm", str)
    if name not in ALGORITHMS:
        raise InputError(f"algorithm must be one of {sorted(ALGORITHMS)}, got {name!r}.")
    if tree is not None and ALGORITHMS[name] != tree.task:
        raise InputError(f"{name} cannot have a tree of task {tree.task!r}.")
    return name


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
    if trees[0].task == "classification":
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
    """`winnowed_`; older files do not have the columns left out."""
    if estimator.winnow and "winnowed" not in header:
        return
    d = estimator.n_features_in_
    places = header.get("winnowed", [])
    if not isinstance(places, list) or not all(type(f) is int and 0 <= f < d for f in places):
        raise InputError("winnowed must be a list of columns.")
    estimator.winnowed_ = np.isin(np.arange(d), places)


def field_of(header: dict[str, Any], key: str, *kinds: type) -> Any:
    """What the header has under a key, if it is of one of the kinds."""
    if key not in header:
        raise InputError(f"its header lacks {key}.")
    if not isinstance(header[key], kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{key} must be of type {names}, got {type(header[key]).__name__}.")
    return header[key]


def _texts(key: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{key} must be a list of strings.")
    return values


def _classes(labels: Any) -> NDArray[Any]:
    """Class labels: a list of different ones, as `fit` leaves them."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in _ARRAY_KINDS:
        raise InputError("classes must be a list of labels.")
    if labels.size == 0:
        raise InputError("classes must contain at least one label.")
    if not np.array_equal(np.unique(labels), labels):
        raise InputError("classes must be ascending, and none missing.")
    return labels


def _columns(header: dict[str, Any], trees: list[Tree]) -> Columns:
    """The columns' specifications, if they are those of the trees."""
    categories = decode(field_of(header, "categories", list))
    check_count("categories", categories, trees[0].n_features)
    for words in categories:
        if words is None:
            continue
        if not isinstance(words, np.ndarray):
            raise InputError("the categories of a column are no array.")
        if words.ndim != 1 or len(set(words.tolist())) < words.size:
            raise InputError("the categories of a column are no list, or one is repeated.")
    nominal = np.array([words is not None for words in categories])
    columns = Columns(nominal, tuple(categories))
    for tree in trees:
        _check_tests(tree, columns)
    return columns


def _check_tests(tree: Tree, columns: Columns) -> None:
    """Raise ValueError where a tree tests categories that its columns do not have."""
    tests = np.flatnonzero(tree.tests_categories)
    if not columns.nominal[tree.feature[tests]].all():
        raise InputError("a split tests categories of a column that has none.")
    greatest = tree.branch_spans.greatest(tree.tests_categories, tree.branch_code)[tests]
    if (greatest >= columns.n_categories[tree.feature[tests]]).any():
        raise InputError("a split tests a category that its column does not have.")


def check_count(key: str, values: Any, count: int) -> None:
    """Raise ValueError unless there are so many values."""
    if len(values) != count:
        raise InputError(f"{key} must contain {count} elements, got {len(values)}.")


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
    if (short := _short_name(value)) is not None:
        return {"pruner": encode([short, value.get_params(deep=False)], name)}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        warn(f"The state of {name} is not stored; None is.")
        return None
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
    raise InputTypeError(f"A file cannot represent {name} of type {kind}.")


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
    raise InputError(f"a value has the unknown keys {sorted(value)}.")


def _decode_array(values: Any, dtype: str) -> np.ndarray:
    kind = _array_kind(dtype)
    if not isinstance(values, list):
        raise InputError(f"an array must be a list, got {type(values).__name__}.")
    array = np.array(decode(values), dtype=kind)
    if array.dtype.kind == "O" and not all(isinstance(v, (str, int, float)) for v in array.flat):
        raise InputError("an array holds something that is neither text nor a number.")
    return array


def _array_kind(dtype: Any) -> np.dtype:
    """The dtype of an array, if it is one that arrays of a file may have."""
    kind = np.dtype(dtype) if isinstance(dtype, str) else None
    if kind is None or kind.kind not in _ARRAY_KINDS or kind.itemsize == 0:  # text of any length
        raise InputError(f"an array has the unknown dtype {dtype!r}.")
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


def _short_name(value: Any) -> str | None:
    """The name of a pruner; None of what is none."""
    from gputree.pruning import PRUNERS

    return next((short for short, kind in PRUNERS.items() if kind is type(value)), None)


def _decode_pruner(description: list[Any]) -> Pruner:
    from gputree.pruning import PRUNERS

    short, params = description
    if short not in PRUNERS:
        raise InputError(f"pruning must be one of {sorted(PRUNERS)}, got {short!r}.")
    pruner = PRUNERS[short](**params)
    pruner._validate_params()
    return pruner


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "pruner": _decode_pruner,
}
