"""A tree as LightGBM's text model, which many other programs read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import THRESHOLD_SPLIT
from gputree.errors import InputError
from gputree.export.binary import Binary, as_binary
from gputree.export.model import Model, model_of, single_paths
from gputree.export.parameters import checked

# Bits of `decision_type`.
_CATEGORICAL = 1
_MISSING_LEFT = 2
_MISSING_IS_NAN = 2 << 2

_ZERO = float(np.float32(1e-35))  # its kZeroThreshold

_WORD = 32  # bits of one number of a set


@checked
def export_lightgbm(
    estimator_or_tree: Any,
    *,
    missing: Literal["error", "largest"] = "error",
    feature_names: Sequence[str] | None = None,
) -> str:
    """Write a fitted tree as a text model of LightGBM (version 4).

    ``lightgbm.Booster(model_str=...)`` predicts as the tree does, bit for bit: the mean target; of
    two classes the probability of the second; of more, that of each. It takes matrices with the
    codes of categories (-1 where unknown), and pandas data frames whose categorical columns it
    codes itself, taking unknown categories for missing ones. ``predict(pred_contrib=True)`` gives
    exact Shapley values. Models of one output also open in treelite, SHAP and other readers.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    missing : "error" or "largest", default="error"
        A C4.5 tree sends rows whose value is missing or unknown to all children with fractional
        weights, which LightGBM does not support: raise, or send them down the branch of the largest
        weight (of equals the first), which changes the predictions for those rows.
    feature_names : sequence of str or None, default=None
        None takes the names seen in `fit`, else x0, x1, ... Blanks and characters that the
        format reserves become underscores; a name that would
        stand twice has the column's number behind it.

    Returns
    -------
    str

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The tree sends rows down every branch and `missing` is "error", it separates numbers nearer
        to 0 than 1e-35, or the number of names is not that of the tree.

    Notes
    -----
    A split into several branches becomes a chain of tests for sets of categories. Numbers of
    rows, by which Shapley values are weighted, are at least 1 in each leaf. LightGBM reads numbers
    nearer to 0 than 1e-35 as 0, which matters where a threshold is 0 and a value so near to it.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import export_lightgbm
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> print(export_lightgbm(tree).splitlines()[1])
    version=v4
    """
    model = model_of(estimator_or_tree, feature_names=feature_names)
    model = single_paths(model, missing, "LightGBM's format")
    _forbid_small(model)
    binary = as_binary(model)
    value = model.tree.value[binary.source, 0]
    if model.tree.n_classes == 2:
        value = value[:, 1:]
    shape = _shape(binary, np.maximum(model.tree.n_rows[binary.source], 1))
    trees = [f"Tree={k}\n{shape}{_answers(binary, value[:, k])}\n" for k in range(value.shape[1])]
    sizes = _join(len(tree.encode()) for tree in trees)
    header = [
        "tree",
        "version=v4",
        f"num_class={value.shape[1]}",
        f"num_tree_per_iteration={value.shape[1]}",
        "label_index=0",
        f"max_feature_idx={model.tree.n_features - 1}",
        *(["objective=regression"] if value.shape[1] == 1 else []),
        f"feature_names={_join(_plain(model.feature_names))}",
        f"feature_infos={_join(map(_range, model.categories))}",
        f"tree_sizes={sizes}",
    ]
    lines = "\n".join(header) + "\n\n" + "".join(trees)
    footer = "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\n"
    return f"{lines}{footer}pandas_categorical:{_pandas_categories(model)}\n"


def _forbid_small(model: Model) -> None:
    """Raise ValueError where a threshold lies among numbers that LightGBM takes for 0."""
    tree = model.tree
    small = (np.abs(tree.threshold) <= _ZERO) & (tree.threshold != 0.0)
    found = np.flatnonzero(small & (tree.split_kind == THRESHOLD_SPLIT))
    if found.size:
        raise InputError(
            f"LightGBM cannot represent this tree: node {found[0]} divides numbers at "
            f"{float(tree.threshold[found[0]])!r} (column "
            f"{model.feature_names[tree.feature[found[0]]]!r}), and LightGBM reads numbers nearer "
            "to 0 than 1e-35 as 0. Fit on numbers in other units."
        )


def _shape(binary: Binary, rows: NDArray[np.int64]) -> str:
    """All but the predictions: splits, thresholds and sets, children, numbers of rows."""
    inner = np.flatnonzero(~binary.is_leaf)
    sets = [binary.codes[node] for node in inner if np.isnan(binary.threshold[node])]
    words = list(map(_bits, sets))
    is_set = np.isnan(binary.threshold[inner])
    threshold = np.where(is_set, np.cumsum(is_set) - 1, binary.threshold[inner])
    decision = np.where(is_set, _CATEGORICAL, _MISSING_LEFT * binary.missing_left[inner])
    number = np.where(binary.is_leaf, 0 - np.cumsum(binary.is_leaf), np.cumsum(~binary.is_leaf) - 1)
    counts = _counts(binary, rows)
    lines = {
        "num_leaves": binary.is_leaf.sum(),
        "num_cat": len(sets),
        "split_feature": _join(binary.feature[inner]),
        "split_gain": _join(np.zeros(inner.size, int)),
        "threshold": _join(map(_number, threshold)),
        "decision_type": _join(decision + _MISSING_IS_NAN),
        "left_child": _join(number[binary.left[inner]]),
        "right_child": _join(number[binary.right[inner]]),
        "leaf_weight": _join(counts[binary.is_leaf]),
        "leaf_count": _join(counts[binary.is_leaf]),
        "internal_weight": _join(counts[inner]),
        "internal_count": _join(counts[inner]),
    }
    if sets:
        lines["cat_boundaries"] = _join(np.cumsum([0, *map(len, words)]))
        lines["cat_threshold"] = _join(np.concatenate(words))
    return "".join(f"{key}={text}\n" for key, text in lines.items())


def _answers(binary: Binary, value: NDArray[np.float64]) -> str:
    leaves = _join(map(_number, value[binary.is_leaf]))
    inner = _join(map(_number, value[~binary.is_leaf]))
    return f"leaf_value={leaves}\ninternal_value={inner}\nis_linear=0\nshrinkage=1\n\n"


def _counts(binary: Binary, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each node: those of the leaves, added up."""
    counts = np.where(binary.is_leaf, rows, 0)
    left, right = binary.left, binary.right
    for node in np.flatnonzero(~binary.is_leaf)[::-1].tolist():  # children come after it
        counts[node] = counts[left[node]] + counts[right[node]]
    return counts


def _bits(codes: NDArray[np.int32]) -> NDArray[np.uint32]:
    """A set of codes, a bit each."""
    words = np.zeros(codes.max(initial=0) // _WORD + 1, np.uint32)
    np.bitwise_or.at(words, codes // _WORD, np.uint32(1) << (codes % _WORD).astype(np.uint32))
    return words


def _pandas_categories(model: Model) -> str:
    """Categories of the columns that have some, as pandas has them."""
    lists = [words.tolist() for words in model.categories if words is not None]
    return json.dumps(lists) if lists else "null"


def _range(categories: NDArray[Any] | None) -> str:
    if categories is None:
        return "[-1.7976931348623157e+308:1.7976931348623157e+308]"
    return ":".join(map(str, range(categories.size))) or "none"


def _plain(names: Sequence[str]) -> list[str]:
    """Names without what the format reserves, each one once."""
    plain: list[str] = []
    for j, name in enumerate(names):
        word = re.sub(r'[\s"\\,:\[\]{}]', "_", name) or "_"
        plain.append(f"{word}_{j}" if word in plain else word)
    return plain


def _number(value: float) -> str:
    return f"{value:.17g}"


def _join(values: Iterable[Any]) -> str:
    return " ".join(map(str, values))
