"""A tree as a treelite model, which compilers and GPU inference servers take."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gputree._optional import require
from gputree.export.binary import as_binary
from gputree.export.model import model_of, single_paths
from gputree.export.parameters import checked


@checked
def to_treelite(estimator_or_tree: Any, *, missing: Literal["error", "largest"] = "error") -> Any:
    """Convert a fitted tree to a treelite model.

    Its output is the probability of each class, or the mean target, in float64. Rows are matrices
    with the codes of categories (-1 where unknown), NaN where missing.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    missing : "error" or "largest", default="error"
        A C4.5 tree sends rows whose value is missing or unknown to all children with fractional
        weights, which treelite does not support: raise, or send them down the branch of the largest
        weight (of equals the first), which changes the predictions for those rows.

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
    model = single_paths(model_of(estimator_or_tree), missing, "treelite")
    binary = as_binary(model)
    value = model.tree.value[binary.source, 0]
    n_classes = model.tree.n_classes
    tree = builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builder.Metadata(
            num_feature=model.tree.n_features,
            task_type="kMultiClf" if model.is_classifier and n_classes > 1 else "kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[n_classes],
            leaf_vector_shape=(1, n_classes),
        ),
        tree_annotation=builder.TreeAnnotation(
            num_tree=1, target_id=[0], class_id=[-1 if n_classes > 1 else 0]
        ),
        postprocessor=builder.PostProcessorFunc(
            name="identity_multiclass" if n_classes > 1 else "identity"
        ),
        base_scores=[0.0] * n_classes,
    )
    tree.start_tree()
    left = binary.left
    for node in range(left.size):
        tree.start_node(node)
        children = {"left_child_key": int(left[node]), "right_child_key": int(binary.right[node])}
        if binary.is_leaf[node]:
            answer = value[node].tolist()
            tree.leaf(answer if n_classes > 1 else answer[0])
        elif np.isnan(binary.threshold[node]):
            tree.categorical_test(
                int(binary.feature[node]),
                default_left=False,
                category_list=binary.codes[node].tolist(),
                category_list_right_child=False,
                **children,
            )
        else:
            tree.numerical_test(
                int(binary.feature[node]),
                float(binary.threshold[node]),
                default_left=bool(binary.missing_left[node]),
                opname="<=",
                **children,
            )
        tree.end_node()
    tree.end_tree()
    return tree.commit()
