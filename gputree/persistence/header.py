"""Header of files, for every format: a fitted estimator without its trees.

README.md lists its keys. Nothing here needs scikit-learn, or an estimator's class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools
from gputree.columns import Columns
from gputree.editing.history import read_history
from gputree.errors import InputError
from gputree.estimators.costs import check_costs, forbid_costs_of_targets
from gputree.inputs.targets import forbid_targets
from gputree.persistence.container import ARRAY_KINDS, check_text_bytes, decode, encode
from gputree.persistence.model_file import FORMAT
from gputree.tree import Tree

if TYPE_CHECKING:
    from gputree.pruning.cost_complexity import CPTable

_MOST_UNLISTED = 1 << 20  # columns of a file whose header does not list them


def header_of(estimator: Any) -> dict[str, Any]:
    """The header of a fitted estimator of one tree, or of several over the same columns.

    Errors are as for `gputree.persistence.codecs.contents_of`.
    """
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, list):
        forbid_costs_of_targets(estimator, len(classes))
    header = {
        "algorithm": type(estimator).__name__,
        "params": params_of(estimator, classes),
        "classes": encode(classes, "classes_"),
        "feature_names": None if names is None else list(map(str, names)),
        "categories": encode(list(estimator.columns_.categories), "columns_"),
        **marks_of(estimator),
    }
    if (targets := getattr(estimator, "target_names_in_", None)) is not None:
        header["target_names"] = targets.tolist()
    if estimator.columns_.ordered.any():
        header["ordered"] = np.flatnonzero(estimator.columns_.ordered).tolist()
    if getattr(estimator, "winnow", False) and hasattr(estimator, "winnowed_"):
        header["winnowed"] = np.flatnonzero(estimator.winnowed_).tolist()
    if (table := getattr(estimator, "cp_table_", None)) is not None:
        columns = {name: encode(table[name].tolist(), "cp_table_") for name in table.dtype.names}
        header["cp_table"] = {"risk": table.risk} | columns
    if edits := getattr(estimator, "edits_", []):
        header["edits"] = read_history(edits)
    estimator._validate_params()  # for those that were set since, and that no file is read with
    of_one = classes is not None and not isinstance(classes, list)
    if of_one and not np.array_equal(
        check_costs(estimator, classes),  # type: ignore[arg-type]  # or None
        estimator.costs_,
    ):  # files hold the parameter, but trees predict by the costs of `fit`
        raise InputError(
            f"The 'misclassification_costs' parameter of {type(estimator).__name__} was set "
            "after fit: fit again, or set it back."
        )
    return header


def params_of(estimator: Any, classes: Any) -> dict[str, Any]:
    """The parameters of an estimator of these classes, as JSON holds them."""
    params = {}
    for key, value in estimator.get_params(deep=False).items():
        if hasattr(value, "columns"):  # costs in a frame, by the order of the classes
            value = check_costs(estimator, classes)
        params[key] = encode(value, key)  # no comprehension: its frame would be warned at
    return params


def marks_of(estimator: Any) -> dict[str, Any]:
    """``missing_marks`` and ``reading``, where there are some."""
    marks = list(getattr(estimator, "missing_marks_", ()))
    found = {"missing_marks": encode(marks, "missing_marks_")} if marks else {}
    if reading := getattr(estimator, "reading_", {}):
        found["reading"] = _check_reading(reading)
    return found


@contextmanager
def refusing(source: str, header: dict[str, Any]) -> Iterator[None]:
    """Whatever a damaged header makes of its readers is a ValueError that names the file."""
    try:
        check_text_bytes(header)
        yield
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise InputError(f"{source} does not hold a valid estimator: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Message of an error of validation; a generic one for errors that damage causes elsewhere."""
    if isinstance(error, RecursionError):
        return "its header is nested too deep."
    if isinstance(error, (ArithmeticError, AttributeError, LookupError)):
        return "its header is damaged."
    return str(error)


def with_params(kind: Any, header: dict[str, Any]) -> Any:
    """An estimator of some kind with the parameters of a header."""
    params = {key: decode(value) for key, value in field_of(header, "params", dict).items()}
    estimator = kind(**params)
    estimator._validate_params()
    return estimator


def complete(estimator: Any, header: dict[str, Any], trees: Sequence[Tree]) -> Any:
    """Restore an estimator's columns and classes from the header; the trees must agree."""
    d = trees[0].n_features
    estimator.n_features_in_ = d
    estimator.columns_ = _columns(header, trees)
    names = field_of(header, "feature_names", list, type(None))
    if names is not None:
        check_count("feature_names", names, d)
        estimator.feature_names_in_ = np.array(_texts("feature_names", names), dtype=object)
    restore_marks(estimator, header)
    if "cp_table" in header:
        estimator.cp_table_ = _cp_table(header["cp_table"])
    if "edits" in header:
        estimator.edits_ = read_history(field_of(header, "edits", list))
    if hasattr(estimator, "winnow"):
        _restore_winnowed(estimator, header, trees)
    if trees[0].n_outputs > 1:
        _complete_targets(estimator, header, trees[0])
        return estimator
    if trees[0].task == "classification":
        estimator.classes_ = _classes(decode(field_of(header, "classes", dict, list)))
        estimator.n_classes_ = len(estimator.classes_)
        estimator.costs_ = check_costs(estimator, estimator.classes_)
    check_count("classes", getattr(estimator, "classes_", [None]), trees[0].n_classes)
    return estimator


def _complete_targets(estimator: Any, header: dict[str, Any], tree: Tree) -> None:
    """Restore the classes of several targets; ValueError where an estimator takes one."""
    if not getattr(estimator, "_takes_targets", True):
        forbid_targets(tree.n_outputs, type(estimator).__name__, "Its file may be damaged.")
    if "target_names" in header:
        names = _texts("target_names", header["target_names"])
        check_count("target_names", names, tree.n_outputs)
        estimator.target_names_in_ = np.array(names, dtype=object)
    if tree.task == "regression":
        return
    forbid_costs_of_targets(estimator, tree.n_outputs)
    found = decode(field_of(header, "classes", list))
    check_count("classes", found, tree.n_outputs)
    estimator.classes_ = list(map(_classes, found))
    for labels, count in zip(estimator.classes_, tree.target_classes, strict=True):
        check_count("classes", labels, count)
    estimator.n_classes_ = list(tree.target_classes)
    estimator.costs_ = None


def restore_marks(estimator: Any, header: dict[str, Any]) -> None:
    """`missing_marks_` and `reading_`, where the header has some."""
    if "missing_marks" in header:
        estimator.missing_marks_ = _texts("missing_marks", header["missing_marks"])
    if "reading" in header:
        estimator.reading_ = _check_reading(header["reading"])


def _check_reading(reading: Any) -> dict[str, Any]:
    """Validate the options that a table was read with: fields of the types that readers need."""
    if not isinstance(reading, dict) or not isinstance(reading.get("format", {}), dict):
        raise InputError("reading must be an object, and so must its format.")
    form = reading.get("format", {})
    for fields, texts, lists, other in (
        (reading, ("target", "weights"), ("ignored",), "format"),
        (form, ("encoding", "delimiter", "decimal", "thousands"), ("names", "units"), "has_header"),
    ):
        unknown = set(fields).difference(texts, lists, [other])
        if unknown:
            raise InputError(f"reading has the unknown field {min(unknown)!r}.")
        for key in texts:
            if not isinstance(fields.get(key, ""), str):
                raise InputError(f"{key} of reading must be a string.")
        for key in lists:
            words = fields.get(key, [])
            if key == "units" and isinstance(words, dict):
                words = [*words, *(unit for unit in words.values() if unit is not None)]
            _texts(f"{key} of reading", words)
    if not isinstance(form.get("has_header", True), bool):
        raise InputError("has_header of reading must be a boolean.")
    return reading


def _restore_winnowed(estimator: Any, header: dict[str, Any], trees: Sequence[Tree]) -> None:
    """`winnowed_`; older files do not have the columns left out."""
    if estimator.winnow and "winnowed" not in header:
        return
    estimator.winnowed_ = _mask(header, "winnowed", estimator.n_features_in_)
    for tree in trees:
        if estimator.winnowed_[tree.feature[~tree.is_leaf]].any():
            raise InputError("a split tests a column of winnowed, which no tree has seen.")


def _mask(header: dict[str, Any], key: str, d: int) -> Bools:
    """The columns that a header lists under a key; none where it has no such key."""
    places = header.get(key, [])
    if not isinstance(places, list) or not all(type(f) is int and 0 <= f < d for f in places):
        raise InputError(f"{key} must be a list of columns.")
    return np.isin(np.arange(d), places)


def _cp_table(columns: Any) -> CPTable:
    """The table of a cross-validated cost-complexity sequence."""
    from gputree.pruning.cost_complexity import CP_FIELDS, CP_TABLE, CPTable

    if not isinstance(columns, dict) or set(columns) != {"risk", *CP_FIELDS}:
        raise InputError(f"cp_table must have the keys {sorted({'risk', *CP_FIELDS})}.")
    if columns["risk"] not in ("impurity", "error"):
        raise InputError(
            f"the risk of cp_table must be impurity or error, got {columns['risk']!r}."
        )
    n = len(field_of(columns, "alpha", list))
    rows = np.empty(n, CP_TABLE)
    for name, dtype in CP_FIELDS.items():
        kinds = (int,) if dtype is np.int64 else (int, float)
        values = decode(field_of(columns, name, list))
        check_count(name, values, n)
        if any(type(value) not in kinds or value < 0 for value in values):
            raise InputError(f"{name} of cp_table must be numbers from 0.")
        rows[name] = values
    return CPTable(rows, columns["risk"])


def field_of(header: dict[str, Any], key: str, *kinds: type) -> Any:
    """Value of a key of the header, if it is of one of the kinds."""
    if key not in header:
        raise InputError(f"its header lacks {key}.")
    if not isinstance(header[key], kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{key} must be of type {names}, got {type(header[key]).__name__}.")
    return header[key]


def check_count(key: str, values: Any, count: int) -> None:
    """Raise ValueError unless there are `count` values."""
    if len(values) != count:
        raise InputError(f"{key} must contain {count} elements, got {len(values)}.")


def numbers_of(
    header: dict[str, Any], key: str, count: int, most: float, kinds: tuple[type, ...]
) -> list[Any]:
    """Numbers under a key of the header: `count`, of these types, from 0 to `most`."""
    values: list[Any] = field_of(header, key, list)
    check_count(key, values, count)
    if not all(type(value) in kinds and 0 <= value <= most for value in values):
        name = "numbers" if float in kinds else "integers"
        raise InputError(f"{key} must be {name} from 0 to {most:g}.")
    return values


def _texts(key: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{key} must be a list of strings.")
    return values


def _classes(labels: Any) -> NDArray[Any]:
    """Class labels: a list of different ones, as `fit` leaves them."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in ARRAY_KINDS:
        raise InputError("classes must be a list of labels.")
    if labels.size == 0:
        raise InputError("classes must contain at least one label.")
    if not np.array_equal(np.unique(labels), labels):
        raise InputError("classes must be ascending, and none missing.")
    return labels


def _columns(header: dict[str, Any], trees: Sequence[Tree]) -> Columns:
    """Specifications of the columns; the trees must agree."""
    d = trees[0].n_features
    if header.get("format") == FORMAT and header.get("format_version") == 1:
        if d > _MOST_UNLISTED:
            raise InputError(f"n_features must be at most {_MOST_UNLISTED}, got {d}.")
        return Columns.numeric(d)
    categories = decode(field_of(header, "categories", list))
    check_count("categories", categories, d)
    for words in categories:
        if words is None:
            continue
        if not isinstance(words, np.ndarray):
            raise InputError("the categories of a column are no array.")
        if words.ndim != 1 or len(set(words.tolist())) < words.size:
            raise InputError("the categories of a column are no list, or one is repeated.")
    coded = np.array([words is not None for words in categories])
    ordered = _mask(header, "ordered", d)
    if (ordered & ~coded).any():
        raise InputError("a column of ordered categories has none.")
    columns = Columns(coded & ~ordered, tuple(categories))
    for tree in trees:
        _check_tests(tree, columns)
        numeric = ~tree.is_leaf & ~tree.tests_categories
        if ordered.any() and columns.nominal[tree.feature[numeric]].any():
            raise InputError("a threshold cuts categories that are not among the ordered ones.")
    return columns


def _check_tests(tree: Tree, columns: Columns) -> None:
    """Raise ValueError where a tree tests categories that its columns do not have."""
    tests = np.flatnonzero(tree.tests_categories)
    if not columns.nominal[tree.feature[tests]].all():
        raise InputError("a split tests categories of a column that has none, or orders them.")
    highest = tree.branch_spans.highest(tree.tests_categories, tree.branch_code)[tests]
    if (highest >= columns.n_categories[tree.feature[tests]]).any():
        raise InputError("a split tests a category that its column does not have.")
