"""Trees as a treelite model, which compilers and GPU inference servers take.

treelite's builder takes a node at a time, a minute for a million. Here it makes a model of as many
leaves, and trees take their place in its bytes, as treelite documents them: "Serialization, v4".
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.base.optional import require
from gputree.errors import MissingPackageError
from gputree.export.binary import NO_CODES, Binary, as_binary
from gputree.export.model import models_of
from gputree.export.parameters import checked

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


def _tree(binary: Binary, value: NDArray[np.float64]) -> bytes:
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
