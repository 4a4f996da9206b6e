"""Trees as LightGBM's text model, which many other programs read.

Trees as a treelite model, which compilers and GPU inference servers take.

treelite's builder takes a node at a time, a minute for a million. Here it makes a model of as many
leaves, and trees take their place in its bytes, as treelite documents them: "Serialization, v4".
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NO_CHILD, NODE, THRESHOLD_SPLIT, Floats, Int32s, Int64s
from gputree.base.optional import require
from gputree.errors import InputError, MissingPackageError
from gputree.export.binary import NO_CODES, Binary, as_binary
from gputree.export.model import Model, models_of
from gputree.export.parameters import checked
from gputree.tree import Tree
from gputree.tree.branches import add_up

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
    """Write a fitted tree or forest as a text model of LightGBM (version 4).

    ``lightgbm.Booster(model_str=...)`` predicts as the model does, bit for bit: the mean target; of
    two classes the probability of the second; of more, that of each. It takes matrices with the
    codes of categories (-1 where unknown; of ordered ones NaN), and pandas data frames whose
    categorical columns it codes itself, taking unknown categories for missing ones.
    ``predict(pred_contrib=True)`` gives exact Shapley values. Models of one output also open in
    treelite, SHAP and other readers.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
    {missing}
    feature_names : sequence of str or None, default=None
        None takes the names seen in `fit`, else x0, x1, ... Blanks and characters that the
        format reserves become underscores; a name that would
        stand twice has the column's number behind it.

    Returns
    -------
    str

    {raises}
    ValueError
        The tree sends rows down every branch and `missing` is "error", it separates numbers nearer
        to 0 than 1e-35, or the number of names does not fit the tree.

    Notes
    -----
    A split into several branches becomes a chain of tests for sets of categories. Numbers of
    rows, by which Shapley values are weighted, are the weights where these are integers, and
    at least 1 in each leaf. Of a forest, which is written with ``average_output``, LightGBM divides
    what it predicts by the number of trees, but neither ``raw_score=True`` nor
    ``pred_contrib=True``: these are sums over the trees. LightGBM reads numbers
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
    models = models_of(
        estimator_or_tree, feature_names, missing=missing, format_name="LightGBM's format"
    )
    first = models.first
    trees = [text for model in models for text in _texts(model)]
    n_outputs = len(trees) // len(models)
    trees = [f"Tree={place}\n{text}" for place, text in enumerate(trees)]
    header = [
        "tree",
        "version=v4",
        f"num_class={n_outputs}",
        f"num_tree_per_iteration={n_outputs}",
        "label_index=0",
        f"max_feature_idx={first.tree.n_features - 1}",
        *(["objective=regression"] if n_outputs == 1 else []),
        *(["average_output"] if len(models) > 1 else []),
        f"feature_names={_join(_plain(first.feature_names))}",
        f"feature_infos={_join(_ranges(first))}",
        f"tree_sizes={_join(map(len, trees))}",  # in ASCII, letters are bytes
    ]
    coded = [words.tolist() for words in first.categories if words is not None]
    footer = "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\n"
    names = f"pandas_categorical:{json.dumps(coded or None)}\n"
    return "".join(["\n".join(header), "\n\n", *trees, footer, names])


def _texts(model: Model) -> list[str]:
    """Text of each output's tree, without its number."""
    _forbid_small(model)
    binary = as_binary(model)
    value = model.tree.predictions[binary.source]
    if model.tree.n_classes == 2:
        value = value[:, 1:]
    shape = _shape(binary, np.maximum(_rows(model.tree)[binary.source], 1))
    return [f"{shape}{_answers(binary, output)}\n" for output in value.T]


def _forbid_small(model: Model) -> None:
    """Raise ValueError if a threshold is among the numbers that LightGBM takes for 0."""
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


def _shape(binary: Binary, rows: Int64s) -> str:
    """Text of a tree without predictions: splits, thresholds, sets, children, numbers of rows."""
    inner = np.flatnonzero(~binary.is_leaf)
    is_set = np.isnan(binary.threshold[inner])
    sets = [binary.codes[node] for node in inner[is_set].tolist()]
    words = list(map(_bits, sets))
    threshold = np.where(is_set, np.cumsum(is_set) - 1, binary.threshold[inner])
    decision = np.where(is_set, _CATEGORICAL, _MISSING_LEFT * binary.missing_left[inner])
    number = np.where(binary.is_leaf, 0 - np.cumsum(binary.is_leaf), np.cumsum(~binary.is_leaf) - 1)
    counts = _counts(binary, rows)
    lines = {
        "num_leaves": binary.is_leaf.sum(),
        "num_cat": len(sets),
        "split_feature": _join(binary.feature[inner]),
        "split_gain": _join(np.zeros(inner.size, int)),
        "threshold": _numbers(threshold),
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


def _rows(tree: Tree) -> Int64s:
    whole = (tree.weight == np.floor(tree.weight)).all() and tree.weight[0] < 1 << 31
    return tree.weight.astype(np.int64) if whole else tree.n_rows


def _answers(binary: Binary, value: Floats) -> str:
    leaves, inner = _numbers(value[binary.is_leaf]), _numbers(value[~binary.is_leaf])
    return f"leaf_value={leaves}\ninternal_value={inner}\nis_linear=0\nshrinkage=1\n\n"


def _counts(binary: Binary, rows: Int64s) -> Int64s:
    """Number of rows of each node, summed over its leaves."""
    inner = np.flatnonzero(~binary.is_leaf)
    parent = np.full(rows.size, NO_CHILD, NODE)
    parent[binary.left[inner]] = parent[binary.right[inner]] = inner
    return add_up(parent, np.where(binary.is_leaf, rows, 0))


def _bits(codes: Int32s) -> NDArray[np.uint32]:
    """A set of codes, a bit each."""
    words = np.zeros(codes.max(initial=0) // _WORD + 1, np.uint32)
    np.bitwise_or.at(words, codes // _WORD, np.uint32(1) << (codes % _WORD).astype(np.uint32))
    return words


def _ranges(model: Model) -> Iterator[str]:
    """The numbers of each column: those that a tree is tested with, or all codes of categories."""
    for f, categories in enumerate(model.categories):
        if categories is None:
            yield "[-1.7976931348623157e+308:1.7976931348623157e+308]"
        elif f in model.ordered:
            yield f"[0:{categories.size - 1}]" if categories.size else "none"
        else:
            yield ":".join(map(str, range(categories.size))) or "none"


def _plain(names: Sequence[str]) -> list[str]:
    """Replace characters that the format reserves, and make names unique."""
    plain: list[str] = []
    for j, name in enumerate(names):
        word = re.sub(r'[\s"\\,:\[\]{}]', "_", name) or "_"
        plain.append(f"{word}_{j}" if word in plain else word)
    return plain


def _numbers(values: Floats) -> str:
    return " ".join([f"{value:.17g}" for value in values.tolist()])


def _join(values: Iterable[Any]) -> str:
    return " ".join(map(str, values.tolist() if isinstance(values, np.ndarray) else values))


_LEAF, _NUMBER, _SET = range(3)  # kinds of nodes
_AT_MOST = 3  # its operator <=


@checked
def to_treelite(estimator_or_tree: Any, *, missing: Literal["error", "largest"] = "error") -> Any:
    """Convert a fitted tree or forest to a treelite model.

    Its output is the probability of each class, or the mean target, in float64. Rows are matrices
    with the codes of categories (-1 where unknown; of ordered ones NaN), NaN where missing.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
    {missing}

    Returns
    -------
    treelite.Model

    Raises
    ------
    ImportError
        treelite (extra export) is not installed.
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The tree sends rows down every branch and `missing` is "error".

    Notes
    -----
    A split into several branches becomes a chain of tests for sets of categories.
    """
    builder = require("treelite.model_builder", "to_treelite")
    models = models_of(estimator_or_tree, missing=missing, format_name="treelite")
    n_classes = models.first.tree.n_classes
    several = n_classes > 1
    made = builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builder.Metadata(
            num_feature=models.first.tree.n_features,
            task_type="kMultiClf" if several else "kRegressor",
            average_tree_output=len(models) > 1,
            num_target=1,
            num_class=[n_classes],
            leaf_vector_shape=(1, n_classes),
        ),
        tree_annotation=builder.TreeAnnotation(
            num_tree=len(models),
            target_id=[0] * len(models),
            class_id=[-1 if several else 0] * len(models),
        ),
        postprocessor=builder.PostProcessorFunc(
            name="identity_multiclass" if several else "identity"
        ),
        base_scores=[0.0] * n_classes,
    )
    for _ in range(len(models)):
        made.start_tree()
        made.start_node(0)
        made.leaf([0.0] * n_classes if several else 0.0)
        made.end_node()
        made.end_tree()
    blank = made.commit().serialize_bytes()
    leaves = _tree(_ONE_LEAF, np.zeros((1, n_classes))) * len(models)
    if not blank.endswith(leaves):
        raise MissingPackageError("to_treelite needs treelite 4: install that version.")
    trees = [blank.removesuffix(leaves)]
    for model in models:
        binary = as_binary(model)
        trees.append(_tree(binary, model.tree.predictions[binary.source]))
    return require("treelite", "to_treelite").Model.deserialize_bytes(b"".join(trees))


_ONE_LEAF = Binary(
    source=np.array([0]),
    feature=np.array([-1]),
    threshold=np.array([np.nan]),
    missing_left=np.array([False]),
    codes=[NO_CODES],
    right=np.array([-1]),
)


def _tree(binary: Binary, value: Floats) -> bytes:
    """A tree in treelite's format; `value` (M, K) is what its nodes predict."""
    leaf = binary.is_leaf
    is_set = ~leaf & np.isnan(binary.threshold)
    kind = np.where(leaf, _LEAF, np.where(is_set, _SET, _NUMBER))
    is_vector = value.shape[1] > 1
    vectors = np.where(leaf & is_vector, value.shape[1], 0)
    categories = np.array([codes.size for codes in binary.codes])
    parts = [
        np.array(leaf.size, "<i4").tobytes(),
        np.array(is_set.any(), np.uint8).tobytes(),
        _array(kind, "i1"),
        _array(binary.left, "<i4"),
        _array(binary.right, "<i4"),
        _array(binary.feature, "<i4"),
        _array(binary.missing_left, "u1"),
        _array(np.where(leaf & (not is_vector), value[:, 0], 0.0), "<f8"),
        _array(np.nan_to_num(binary.threshold), "<f8"),
        _array(np.where(kind == _NUMBER, _AT_MOST, 0), "i1"),
        _array(np.zeros(leaf.size), "u1"),  # whether categories go right
        *_lists(value[leaf & is_vector].ravel(), vectors, "<f8"),
        *_lists(np.concatenate(binary.codes), categories, "<u4"),
        bytes(6 * 8 + 2 * 4),  # statistics of nodes, and what is to be added later: none
    ]
    return b"".join(parts)


def _array(values: NDArray[Any], dtype: str) -> bytes:
    return np.array(values.size, "<u8").tobytes() + values.astype(dtype).tobytes()


def _lists(values: NDArray[Any], sizes: NDArray[Any], dtype: str) -> list[bytes]:
    """Lists of the nodes one after the other; where each begins, and ends."""
    end = np.cumsum(sizes)
    return [_array(values, dtype), _array(end - sizes, "<u8"), _array(end, "<u8")]
