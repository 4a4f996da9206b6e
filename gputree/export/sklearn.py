"""Trees and forests of numbers as scikit-learn's, for the tools that read those."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree._sklearn import tree_of
from gputree.dtypes import LEAF, THRESHOLD_SPLIT
from gputree.errors import InputError
from gputree.export.bounds import bounds_above
from gputree.export.model import Model, averaged, models_of
from gputree.prediction.descent import rounded_down
from gputree.tree import Tree


def to_sklearn(estimator_or_tree: Any) -> Any:
    """Convert a fitted tree or forest on numeric columns to one of scikit-learn.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier or DecisionTreeRegressor, or the class of the forest's name
        Fitted; it predicts as the tree or forest does, to the last bit, for rows of float32
        numbers, missing ones included. (It rounds float64 numbers to float32 before it compares
        them; forests with ``n_jobs`` other than 1 add up in any order, which rounds.) Ordered
        categories are numbers to it, their ranks, as ``columns_.encode(X)`` gives them.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The tree tests categories, a missing value goes to no single child, or it separates
        numbers that are equal in float32.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import to_sklearn
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> to_sklearn(tree).score(iris.data, iris.target) == tree.score(iris.data, iris.target)
    True
    """
    models = models_of(estimator_or_tree)
    members = list(map(_converted, models))
    made, model = members[0], models.first
    if averaged(estimator_or_tree):
        from sklearn import ensemble

        kinds = [kind.__name__ for kind in type(estimator_or_tree).__mro__]
        kind = next(getattr(ensemble, name) for name in kinds if hasattr(ensemble, name))
        made = kind(n_estimators=len(members), criterion=model.tree.criterion)
        made.estimator_, made.estimators_ = type(members[0])(), members
        made.n_features_in_, made.n_outputs_ = model.tree.n_features, 1
        made.n_classes_ = model.tree.n_classes
    names = getattr(estimator_or_tree, "feature_names_in_", None)
    if names is not None:
        made.feature_names_in_ = names
    if model.classes is not None:
        made.classes_ = model.classes
    return made


def _converted(model: Model) -> Any:
    """A tree of scikit-learn, of classes 0, 1, ... as the trees of its forests are."""
    _check_splits(model)
    _check_thresholds(model)
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if model.classes is None else DecisionTreeClassifier
    made = kind(criterion=model.tree.criterion)
    made.n_features_in_ = model.tree.n_features
    made.n_outputs_ = 1
    made.max_features_ = model.tree.n_features
    if model.classes is not None:
        made.classes_ = np.arange(float(model.tree.n_classes))
        made.n_classes_ = model.tree.n_classes
    made.tree_ = _sklearn_tree(model.tree)
    return made


def _check_splits(model: Model) -> None:
    tree = model.tree
    other = np.flatnonzero(~np.isin(tree.split_kind, (LEAF, THRESHOLD_SPLIT)))
    if other.size:
        raise InputError(
            "scikit-learn's trees cannot represent this one: it tests categories (node "
            f"{other[0]}, column {model.feature_names[tree.feature[other[0]]]!r}). "
            "export_lightgbm, to_onnx and to_treelite can."
        )
    apart = np.flatnonzero(~tree.is_leaf & (tree.missing_child < 0))
    if apart.size:
        raise InputError(
            "scikit-learn's trees cannot represent this one: a missing value goes to no single "
            f"child (node {apart[0]}, column {model.feature_names[tree.feature[apart[0]]]!r}). "
            "export_python can."
        )


def _check_thresholds(model: Model) -> None:
    """Raise ValueError where a test divides numbers that are one float32 number."""
    tree = model.tree
    numbers = (*bounds_above(tree), tree.threshold)
    lower, upper, at = (rounded_down(own, np.float32) for own in numbers)
    is_end = (at == lower) | (at == upper)
    idle = np.flatnonzero(~tree.is_leaf & np.isfinite(tree.threshold) & is_end)
    if idle.size:
        node = idle[0]
        raise InputError(
            "scikit-learn's trees cannot represent this one: they compare float32 numbers, and "
            f"node {node} divides numbers at {float(tree.threshold[node])!r} (column "
            f"{model.feature_names[tree.feature[node]]!r}) that are one float32 number. Fit on "
            "float32 values, or use export_lightgbm, to_onnx or to_treelite."
        )


def _sklearn_tree(tree: Tree) -> Any:
    n_classes = np.array([tree.n_classes if tree.task == "classification" else 1], np.intp)
    made = tree_of(tree.n_features, n_classes, 1)
    state = made.__getstate__()
    nodes = np.zeros(tree.n_nodes, state["nodes"].dtype)  # its fields differ by version
    columns = {
        "left_child": tree.children_left,
        "right_child": tree.children_right,
        "feature": tree.feature,
        "threshold": tree.threshold,
        "impurity": tree.impurity,
        "n_node_samples": tree.n_node_samples,
        "weighted_n_node_samples": tree.weighted_n_node_samples,
        "missing_go_to_left": tree.missing_go_to_left,
    }
    for name, values in columns.items():
        nodes[name] = values
    state |= {
        "max_depth": tree.max_depth,
        "node_count": tree.n_nodes,
        "nodes": nodes,
        "values": np.ascontiguousarray(tree.value),
    }
    made.__setstate__(state)
    return made
