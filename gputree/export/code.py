"""Trees as source code that predicts by itself: a module of Python, or a file of C.

The code walks flat tables of numbers, and needs no library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    MISSING_STOPS,
    MISSING_TO_ALL,
    SUBSET_SPLIT,
    Bools,
    Floats,
    Int64s,
)
from gputree.errors import InputError, InputTypeError
from gputree.export.model import Model, Models, fill, models_of
from gputree.export.parameters import checked
from gputree.prediction.answers import portions

_WIDTH = 96  # letters of a line of numbers
# Of a forest: Python takes 12 s and 1 GB to compile its module, gcc 6 s to compile its C.
MOST_NODES = 100_000
_SPECIAL = {"inf": "INFINITY", "nan": "NAN"}  # by their names in C, which the module has, too


@checked
def export_python(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
) -> str:
    """Write a fitted tree or a small forest as a module of Python that needs nothing else.

    The module has ``predict(row)``, and ``predict_proba(row)`` in classification. A row is a
    sequence of the columns' values in the order of `fit`, or a dictionary by their names:
    numbers, categories as they were in `fit`, None or NaN where missing. Predictions equal the
    estimator's to the last bit, rows that go down several branches included.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
        Categories of a bare Tree are codes.
    {labels}

    Returns
    -------
    str
        The module's source.

    {raises}
    ValueError
        The number of names does not fit the tree, or a forest has more than 100,000 nodes.
    TypeError
        Labels or categories are of a type that has no literal in Python.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.export import export_python
    >>> golf = load_golf()
    >>> tree = C45Classifier().fit(golf.data, golf.target)
    >>> module = {}
    >>> exec(export_python(tree, feature_names=golf.feature_names), module)
    >>> module["predict"](["sunny", "mild", "high", "weak"])
    'no'
    """
    models = models_of(estimator_or_tree, feature_names, class_names)
    model = models.first
    flat = flatten(models.at_most(MOST_NODES, "export_python"))
    categories = [
        None if words is None else {_literal(word): code for code, word in enumerate(words)}
        for words in map(_values, model.categories)
    ]
    classes = None if model.classes is None else list(map(_literal, model.classes.tolist()))
    text = [f"{name} = {_python_tuple(values)}" for name, values in _columns(flat).items()]
    return fill(
        "tree.py.txt",
        about=_about(models, flat),
        features=repr(list(map(str, model.feature_names))),
        classes=repr(classes),
        categories=repr(categories),
        ordered=repr(sorted(model.ordered)),
        tables="\n".join(text),
    )


@checked
def export_c(
    estimator_or_tree: Any,
    *,
    name: str = "tree",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
) -> str:
    """Write a fitted tree or a small forest as a file of C (C99, C++17) that needs no library.

    It has ``NAME_predict(x, out)``, which writes class probabilities or the mean target,
    ``NAME_class(x)`` in classification, an index into ``NAME_classes``, and ``NAME_code(column,
    word)``, the code of a category. x is an array of doubles in the order of `fit`: numbers, codes
    of categories (-1 where unknown), NAN where missing. Predictions equal the estimator's to the
    last bit, unless the compiler may violate IEEE arithmetic (``-ffast-math``).

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
    name : str, default="tree"
        What the names of all functions and tables begin with.
    feature_names, class_names
        As in `export_python`.

    Returns
    -------
    str
        The file's text, in ASCII.

    {raises}
    ValueError
        The number of names does not fit the tree, `name` is no identifier of C, categories
        or classes are the same text, as 1 and "1" are, or hold a NUL, or a forest has more than
        100,000 nodes.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import export_c
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> text = export_c(tree, name="iris", feature_names=iris.feature_names)
    >>> "int iris_class(const double *x)" in text
    True
    """
    if not (name.isascii() and name.isidentifier()):
        raise InputError(f"name must be an identifier of C, got {name!r}.")
    models = models_of(estimator_or_tree, feature_names, class_names)
    model = models.first
    flat = flatten(models.at_most(MOST_NODES, "export_c"))
    words = [
        _c_words(f"categories of column {column!r}", _values(categories) or [])
        for column, categories in zip(model.feature_names, model.categories, strict=True)
    ]
    begin = np.append(0, np.cumsum([len(c) for c in words]))
    ordered = np.isin(np.arange(len(words)), list(model.ordered))
    classes = _c_words("classes", _values(model.classes) or [])
    text = [
        _c_strings(f"{name}_features", list(map(str, model.feature_names))),
        _c_strings(f"{name}_classes", classes),
        _c_strings(f"{name}_words", [word for column in words for word in column]),
        _c_numbers(f"{name}_words_begin", begin),
        _c_numbers(f"{name}_ordered", ordered.astype(np.int64)),
    ]
    for key, values in _columns(flat).items():
        text.append(_c_numbers(f"{name}_{'codes' if key == 'CODE' else key.lower()}", values))
    fields = {"name": name, "n_outputs": str(flat.value.shape[1])}
    return fill(
        "tree.c.txt",
        about=_about(models, flat),
        n_nodes=str(flat.feature.size),
        n_trees=str(len(models)),
        n_features=str(model.tree.n_features),
        tables="\n".join(text),
        classify=fill("classify.c.txt", **fields) if model.is_classifier else "",
        **fields,
    )


def _columns(flat: Flat) -> dict[str, np.ndarray]:
    """The tables by name."""
    fields = {key.upper(): values for key, values in flat._asdict().items()}
    fields["SPREADS"] = flat.spreads.astype(np.int64)
    fields["VALUE"] = flat.value.ravel()
    return fields


def _values(categories: Any) -> list[Any] | None:
    return None if categories is None else categories.tolist()


def _about(models: Models, flat: Flat) -> str:
    tree = models.first.tree
    classes = f", {tree.n_classes} classes" if models.first.is_classifier else ""
    trees = "a tree" if len(models) == 1 else f"a forest of {len(models)} trees"
    return (
        f"{tree.task.capitalize()} by {trees} of {flat.feature.size} nodes{classes} and "
        f"{tree.n_features} columns, written by gputree"
    )


def _literal(value: Any) -> Any:
    """The value, if Python's source can say it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputTypeError(
        f"Python source cannot represent {value!r} of type {type(value).__name__}."
    )


def _python_tuple(values: np.ndarray) -> str:
    words = [_SPECIAL.get(str(value), repr(value)) for value in values.tolist()]
    return f"({_lines(words)})" if len(words) != 1 else f"({words[0]},)"


def _c_numbers(name: str, values: np.ndarray) -> str:
    kind = "double" if values.dtype.kind == "f" else "int"
    words = [_SPECIAL.get(str(v), v.hex()) if kind == "double" else str(v) for v in values.tolist()]
    return f"static const {kind} {name}[] = {{{_lines(words or ['0'])}}};"


def _c_words(kind: str, values: list[Any]) -> list[str]:
    """Categories or classes as the text that C knows them by, each by a distinct text."""
    seen: dict[str, Any] = {}
    for value in values:
        word = str(value)
        if "\0" in word:
            raise InputError(
                f"C cannot represent this tree: of the {kind}, {value!r} holds a NUL, where text "
                "ends. Rename it, and fit again."
            )
        if word in seen:
            raise InputError(
                f"C cannot represent this tree: of the {kind}, {seen[word]!r} and {value!r} are "
                "the same text. Rename one, and fit again."
            )
        seen[word] = value
    return list(seen)


def _c_strings(name: str, words: list[str]) -> str:
    literals = list(map(_c_string, words or [""]))
    return f"const char *const {name}[] = {{{_lines(literals)}}};"


def _c_string(word: str) -> str:
    """A literal of ASCII: other bytes of UTF-8 in octal, which ends after three digits."""
    safe = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in word.encode("utf-8", "surrogatepass")
    )
    return f'"{safe}"'


def _lines(words: list[str]) -> str:
    """Words with commas between them, on one line or on separate lines."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += f"{word}, "
    if len(lines) == 1:
        return lines[0].removesuffix(", ")
    return "".join(f"\n    {line.rstrip()}" for line in lines) + "\n"


class Flat(NamedTuple):
    """One entry a node, except where noted; a node stands for itself where a row stays."""

    feature: Int64s  # -1 at leaves
    # ``x <= threshold`` goes to `first`, other numbers to the node after it; NaN where
    # categories decide
    threshold: Floats
    # nodes: the first child, and where missing values and unknown categories go
    first: Int64s
    missing: Int64s
    unseen: Int64s
    begin: Int64s  # (N + 1,): categories of node t are ``code[begin[t]:begin[t + 1]]``, ascending
    # a category's code, and the node it goes to
    code: Int64s
    target: Int64s
    n_children: Int64s
    # whether the node sends what it cannot place to all children, with fractional weights
    spreads: Bools
    portion: Floats  # the fraction of a node among its siblings
    value: Floats  # (N, K): class shares, or the mean target
    root: Int64s  # (trees,): nodes; what trees predict is added in this order, and averaged


_NODES = ("first", "missing", "unseen", "target", "root")  # what numbers those of all trees


def flatten(models: Sequence[Model]) -> Flat:
    """The tables of some trees, one after the other."""
    each = [_flatten(model)._asdict() for model in models]
    nodes = np.cumsum([0, *(flat["feature"].size for flat in each)])
    places = np.cumsum([0, *(flat["code"].size for flat in each)])
    for flat, node, place in zip(each, nodes, places, strict=False):
        flat |= {name: flat[name] + node for name in _NODES}
        flat["begin"] = flat["begin"][:-1] + place
    whole = {name: np.concatenate([flat[name] for flat in each]) for name in Flat._fields}
    return Flat(**whole | {"begin": np.append(whole["begin"], places[-1])})


def _flatten(model: Model) -> Flat:
    tree = model.tree
    itself = np.arange(tree.n_nodes)
    leaf = tree.is_leaf
    by_code = np.isin(tree.split_kind, (BRANCH_SPLIT, SUBSET_SPLIT))
    missing, unseen = itself.copy(), itself.copy()
    codes: list[NDArray] = [np.empty(0, np.int64)]
    targets: list[NDArray] = [np.empty(0, np.int64)]
    sizes = np.zeros(tree.n_nodes, np.int64)
    for node in np.flatnonzero(~leaf).tolist():
        split = model.split(node)
        missing[node] = _place(node, split.children, split.missing)
        unseen[node] = _place(node, split.children, split.unseen)
        if split.codes:
            code = np.concatenate(split.codes)
            target = np.repeat(np.array(split.children), [c.size for c in split.codes])
            order = np.argsort(code)
            codes.append(code[order])
            targets.append(target[order])
            sizes[node] = code.size
    parts = portions(tree)
    return Flat(
        feature=np.where(leaf, -1, tree.feature).astype(np.int64),
        threshold=np.where(leaf, 0.0, np.where(by_code, np.nan, tree.threshold)),
        first=np.where(leaf, itself, tree.first_child),
        missing=missing,
        unseen=unseen,
        begin=np.append(0, np.cumsum(sizes)),
        code=np.concatenate(codes),
        target=np.concatenate(targets),
        n_children=tree.n_children.astype(np.int64),
        spreads=parts.spreads,
        portion=parts.portion,
        value=np.ascontiguousarray(tree.predictions),
        root=np.zeros(1, np.int64),
    )


def _place(node: int, children: range, ordinal: int) -> int:
    return node if ordinal in (MISSING_STOPS, MISSING_TO_ALL) else children[ordinal]
