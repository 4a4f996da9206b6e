r"""Fitted estimators as JSON and back, for readers in any language.

A document is what `json_schema` describes: the header of `gputree.estimators.header`, and the
arrays of `gputree.tree.Tree` under ``tree``, one entry a node. Arrays, not objects inside
objects: parsers recurse, and trees may be a million nodes deep; nodes that split one column
again and again share one list of categories, which nested nodes would copy; and no name is
written once a node. Numbers have the smallest number of digits that read back as the same float64.

A row is predicted like this (``stay`` predicts with the node itself)::

    x:    numbers as they are; a category's place in categories[column].array, -1 if it is
          not there; missing where there is no value
    t = 0
    while n_children[t] > 0:
        x = row[feature[t]]
        if x is missing:                go = missing_child[t]
        elif split_kind[t] == 1:        go = 0 if x <= threshold[t] else 1
        elif x is in branch_code[branch_begin[c] : branch_end[c]] of a child c:
                                        go = c - first_child[t]
        elif split_kind[t] == 2 and missing_child[t] >= 0:
                                        go = -2
        else:                           go = missing_child[t]
        if go == -2:                    stay
        if go == -1:                    go to every child c of weight > 0, with the share
                                        weight[c] / (sum of the children's weights);
                                        stay where that sum is 0
        t = first_child[t] + go
    answer: statistics[t] / weight[t] are the classes' shares, the first of the largest is
            the label; statistics[t][0] is the mean target in regression. Where weight[t] is
            0, the nearest ancestor with weight predicts. Predictions of a row that went to
            several children are added up with fractional weights, in the order of the nodes.

Format versions:

1. The first.
2. Arrays ``lower`` and ``upper``, too, of trees held to be monotonic: the probability of the second
   class, or the mean target, is ``min(max(it, lower[t]), upper[t])``, and that of the first
   class is 1 less it.
3. With ``smoothing``, and perhaps arrays ``soft_lower`` and ``soft_upper``, in their
   place. Shares are
   ``(statistics[t] + smoothing) / (weight[t] + smoothing * number of classes)``. Where split_kind
   is 1 and ``soft_lower[t] < x < soft_upper[t]``, the first child has the share
   ``1 - 0.5 * (x - soft_lower[t]) / (threshold[t] - soft_lower[t])`` up to the threshold, then
   ``0.5 - 0.5 * (x - threshold[t]) / (soft_upper[t] - threshold[t])``; the second has the rest.
   Other documents are of version 1.
"""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from gputree._files import naming, replaced_file, require_file
from gputree._memory import require_memory
from gputree.errors import InputError, InputTypeError
from gputree.estimators.header import header_of, rebuild
from gputree.estimators.header_values import decode, encode
from gputree.persistence import (
    FutureModelError,
    additions,
    arrays_of,
    check_format,
    check_scalars,
    kinds_of,
    own_header,
)
from gputree.plausibility import check_statistics
from gputree.tree import Tree

FORMAT = "gputree-json"
FORMAT_VERSION = 3
_LAST_WITHOUT_BOUNDS = 1

# Bytes that a document takes for each of its bytes while it is read, at least.
_TIMES_IN_MEMORY = 3


def export_json(estimator: Any, file: str | os.PathLike[str] | None = None) -> str:
    """Write a fitted estimator as JSON, of the schema that `json_schema` returns.

    The document contains what `save_model` stores: parameters, columns with their categories,
    classes, and the tree with every number to the last bit. `gputree.estimators.json_file`
    describes how to predict with it in any language.

    Parameters
    ----------
    estimator : fitted estimator of gputree
    file : str, path-like or None, default=None
        Where to write it, too, in UTF-8; an older file of that name is replaced, or kept on
        failure.

    Returns
    -------
    str

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that JSON cannot represent.
    ValueError
        A parameter set after `fit` is invalid, or is other costs; or there are costs of more than
        two classes, which only `save_model` supports.

    Examples
    --------
    >>> from gputree import ID3Classifier, export_json, read_json
    >>> from gputree.datasets import load_fish
    >>> text = export_json(ID3Classifier().fit(*load_fish(return_X_y=True)))
    >>> read_json(text).get_n_leaves()
    3
    """
    header = header_of(estimator, "export_json")
    if getattr(estimator, "_weighs_errors", False):
        raise InputError(
            "JSON predicts the class of the highest probability, and "
            f"{type(estimator).__name__} with that of the minimum of 'misclassification_costs', "
            "which may be another where there are more than two classes. Keep it with save_model."
        )
    tree: Tree = estimator.tree_
    tree.check()
    own = own_header(FORMAT, _LAST_WITHOUT_BOUNDS + additions(tree), tree)
    members = own.pop("tree") | {name: _numbers(getattr(tree, name)) for name in arrays_of(tree)}
    outer = ",\n".join(f"  {_json(key)}: {_json(value)}" for key, value in (own | header).items())
    inner = ",\n".join(f"    {_json(key)}: {_json(value)}" for key, value in members.items())
    text = f'{{\n{outer},\n  "tree": {{\n{inner}\n  }}\n}}\n'
    if file is not None:
        with replaced_file(file) as opened:
            opened.write(text.encode())
    return text


def read_json(source: str | os.PathLike[str]) -> BaseEstimator:
    """Read a fitted estimator from JSON that `export_json` wrote, or another program did.

    Parameters
    ----------
    source : str or path-like
        A document (its first letter is a brace), or the name of a file that holds one.

    Returns
    -------
    estimator
        Equal to the one written in every field that `save_model` keeps.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        There is no such file.
    TypeError
        `source` is neither.
    ValueError
        The document is none of `json_schema`, was written by a newer gputree, or its arrays do not
        form a valid tree; or it has costs of more than two classes, which `export_json` does not
        write.
    MemoryError
        The file is larger than what fits into memory.

    Examples
    --------
    >>> from gputree import DecisionTreeRegressor, export_json, read_json
    >>> tree = DecisionTreeRegressor().fit([[1.0], [2.0], [3.0]], [0.1, 0.2, 0.4])
    >>> read_json(export_json(tree)).tree_.equals(tree.tree_)
    True
    """
    is_text = isinstance(source, str) and source.lstrip()[:1] in ("{", "")
    name = "The text" if is_text else str(source)
    text = str(source) if is_text else _read(source)
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
        check_format(document, name, "it", FORMAT, FORMAT_VERSION)
        tree = _tree(document.pop("tree", None), document["format_version"])
    except (FutureModelError, MemoryError):
        raise
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{name} is not a valid gputree JSON document: {error}") from error
    estimator: BaseEstimator = rebuild(name, document, tree)
    if getattr(estimator, "_weighs_errors", False):
        raise InputError(
            f"{name} is not a valid gputree JSON document: its 'misclassification_costs' are of "
            "more than two classes, and JSON predicts the class of the highest probability. "
            "save_model keeps such a tree."
        )
    return estimator


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the documents that `export_json` writes.

    Returns
    -------
    dict

    Examples
    --------
    >>> from gputree import json_schema
    >>> json_schema()["title"]
    'A decision tree of gputree, format versions 1 to 3'
    """
    text = resources.files("gputree.estimators").joinpath("model.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


# ------------------------------------------------------------------ writing
def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _numbers(array: NDArray) -> Any:
    """An array as lists; what JSON has no numbers for as in the header."""
    values = array.tolist()
    is_plain = array.dtype.kind != "f" or np.isfinite(array).all()
    return values if is_plain else encode(values, "tree")


# ------------------------------------------------------------------ reading
def _read(source: str | os.PathLike[str]) -> bytes:
    if not isinstance(source, (str, os.PathLike)):
        raise InputTypeError(
            "read_json takes a JSON document as a str, or the name of a file that holds one, got "
            f"{type(source).__name__}."
        )
    path = require_file(source, "JSON")
    require_memory(
        _TIMES_IN_MEMORY * path.stat().st_size,
        f"Reading {path}",
        "Read it on a larger machine, or keep the tree with save_model.",
    )
    with naming(path):
        return path.read_bytes()


def _refuse_constant(word: str) -> None:
    raise InputError(f'JSON has no {word}: write {{"float": "inf"}}, "-inf" or "nan".')


def _tree(members: Any, version: int) -> Tree:
    is_soft = isinstance(members, dict) and "soft_lower" in members
    kinds = kinds_of(version - _LAST_WITHOUT_BOUNDS, is_soft)
    check_scalars(members, set(kinds), version - _LAST_WITHOUT_BOUNDS)
    arrays: dict[str, Any] = {
        name: _array(name, members[name], *kind) for name, kind in kinds.items()
    }
    scalars = {key: value for key, value in members.items() if key not in kinds}
    tree = Tree(**scalars, **arrays)
    tree.check()
    check_statistics(tree)
    return tree


def _array(name: str, values: Any, dtype: type[np.generic], n_dimensions: int) -> NDArray:
    """The array, if it is a list of numbers (or of such lists) that the type can represent."""
    rows = values if n_dimensions == 2 else [values]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InputError(f"array {name} must have {n_dimensions} dimensions.")
    if np.dtype(dtype).kind == "f" and dict in _types(rows):
        rows = decode(rows)
    others = _types(rows) - ({int, float} if np.dtype(dtype).kind == "f" else {int})
    if others:
        kinds = ", ".join(sorted(kind.__name__ for kind in others))
        raise InputError(f"array {name} must hold {np.dtype(dtype)}, got {kinds}.")
    return np.array(rows if n_dimensions == 2 else rows[0], dtype=dtype)


def _types(rows: list[list[Any]]) -> set[type]:
    return set().union(*(set(map(type, row)) for row in rows))
