"""Fitted estimators to model files or JSON, and back: README.md describes both formats."""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.files import FilePath, naming, replaced_file, require_file
from gputree.base.memory import require_memory
from gputree.criteria.named import NAMED
from gputree.errors import InputError, InputTypeError
from gputree.persistence.codecs import ALGORITHMS, FORESTS, SEVERAL, contents_of, rebuild
from gputree.persistence.container import decode, encode
from gputree.persistence.header import refusing
from gputree.persistence.model_file import Contents, read_contents, write_contents
from gputree.persistence.one_tree import rebuild_saved
from gputree.persistence.trees import (
    FutureModelError,
    ModelFormat,
    added_of,
    arrays_of,
    kinds_of,
    read_tree,
    scalars_of,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from gputree.tree import Tree


def save_model(estimator: BaseEstimator, path: FilePath) -> None:
    """Write a fitted estimator to a model file.

    The file contains no pickle, so that reading it runs no code. A file of that
    name is replaced only once the new one is complete.

    Parameters
    ----------
    estimator : fitted estimator of gputree
    path : str or path-like

    Notes
    -----
    ``unpruned_tree_`` and ``growth_report_`` are not stored. Boosted trees are stored in one file,
    and rules with the tree that they were made from.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that the file cannot represent.
    ValueError
        A parameter set after `fit` is invalid.

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
    contents = contents_of(estimator, "save_model")
    write_contents(path, contents, contents.header["algorithm"] not in ALGORITHMS)


def load_model(path: FilePath, *, max_bytes: int | None = None) -> BaseEstimator:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        Maximum unpacked size: otherwise a small untrusted file could exhaust the memory. None for
        256 MiB, or 50 times the size of the file if that is more.

    Returns
    -------
    estimator
        Of the class and with the parameters it was saved with; its predictions
        are the same to the last bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    OSError
        The system cannot read it.
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
    contents = read_contents(path, max_bytes)
    names = SEVERAL if "trees" in contents.header else ALGORITHMS
    return rebuild(str(path), contents, names)


def read_saved(path: FilePath) -> Any:
    """Read a tree to show it, without its estimator's class, which takes longer to import.

    A file of several trees or of rules gives the estimator. Errors are as for `load_model`.
    """
    contents = read_contents(path)
    if "trees" in contents.header:
        return rebuild(str(path), contents, SEVERAL)
    with refusing(str(path), contents.header):
        return rebuild_saved(contents)


FORMAT = ModelFormat("gputree-json", plain=1, of_several=4, of_ordered=5, last=6)

# Bytes that a document takes for each of its bytes while it is read, at least.
_TIMES_IN_MEMORY = 3


def export_json(estimator: Any, file: FilePath | None = None) -> str:
    """Write a fitted estimator as JSON, of the schema that `json_schema` returns.

    The document contains what `save_model` stores: parameters, columns with their categories,
    classes, and the tree, or those of a forest, with every number to the last bit.
    `gputree/persistence/README.md` describes how to predict with it in any language.

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
    header, trees, _ = contents_of(estimator, "export_json", ALGORITHMS.keys() | FORESTS)
    is_forest = header["algorithm"] in FORESTS
    if getattr(estimator, "_weighs_errors", False):
        raise InputError(
            "JSON predicts the class of the highest probability, and "
            f"{type(estimator).__name__} with that of the minimum of 'misclassification_costs', "
            "which may be another where there are more than two classes. Keep it with save_model."
        )
    lines = FORMAT.lines(header, trees[0], is_forest)
    outer = "".join(f"  {_json(key)}: {_json(value)},\n" for key, value in (lines | header).items())
    inner = ", ".join(map(_members, trees))
    inner = f'"trees": [{inner}]' if is_forest else f'"tree": {inner}'
    text = f"{{\n{outer}  {inner}\n}}\n"
    if file is not None:
        with replaced_file(file) as opened:
            opened.write(text.encode())
    return text


def read_json(source: FilePath) -> BaseEstimator:
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
        FORMAT.check(document, name, "it")
        is_forest = "trees" in document
        trees = FORMAT.trees(document, _tree)
        for key in ("tree", "trees"):
            document.pop(key, None)
    except (FutureModelError, MemoryError):
        raise
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{name} is not a valid gputree JSON document: {error}") from error
    names = FORESTS if is_forest else ALGORITHMS
    estimator: BaseEstimator = rebuild(name, Contents(document, trees), names)
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
    'A tree or a forest of gputree, format versions 1 to 6'
    """
    text = resources.files("gputree.persistence").joinpath("model.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    found = schema["$defs"]["tree"]["properties"]
    found["criterion"]["enum"] = list(NAMED)
    *most, last = (entry.text for entry in NAMED.values())
    impurities = f"{', '.join(most)}, or {last}"
    found["impurity"]["description"] = f"By the criterion: {impurities}."
    return schema


def _members(tree: Tree) -> str:
    members = scalars_of(tree) | {name: _numbers(a) for name, a in arrays_of(tree).items()}
    lines = (f"    {_json(key)}: {_json(value)}" for key, value in members.items())
    return "{\n" + ",\n".join(lines) + "\n  }"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _numbers(array: NDArray) -> Any:
    """Convert an array to lists; NaN and infinities are encoded as in the header."""
    values = array.tolist()
    is_plain = array.dtype.kind != "f" or np.isfinite(array).all()
    return values if is_plain else encode(values, "tree")


def _read(source: FilePath) -> bytes:
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


def _tree(members: Any, added: int | None, _: str) -> Tree:
    if not isinstance(members, dict):
        raise InputError("the tree must be an object.")
    added = added_of(members, "lower" in members) if added is None else added
    kinds = kinds_of(added, "soft_lower" in members)
    scalars = {key: value for key, value in members.items() if key not in kinds}
    return read_tree(scalars, added, _Lists(members))


class _Lists:
    """The arrays of a document, as lists by their names."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def array(self, name: str, dtype: type[np.generic], n_dimensions: int) -> NDArray:
        """The array, if it is a list of numbers (or of such lists) that the type can represent."""
        if name not in self:
            raise InputError(f"the tree lacks {name}.")
        values = self.members[name]
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
