"""Trees and forests of numbers as scikit-learn's, for the tools that read those.

scikit-learn rounds numbers to float32, and compares these with float64 thresholds:

    t   float64 threshold            x <= t goes left here
    t'  that of the converted tree   float32(x) <= t' goes left there

For float32 rows t' = t. Of two neighbours in a column of float64 numbers, a <= t < b, float32(a)
may be above t, or float32(b) not: t' has to be in float32(a) .. float32(b), which the rows show.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from gputree.base.dtypes import LEAF, THRESHOLD_SPLIT, Floats
from gputree.base.sklearn import tree_of
from gputree.errors import InputError
from gputree.export.model import Model, averaged, models_of
from gputree.export.rules import bounds_above
from gputree.prediction.descent import rounded_down
from gputree.tree import Tree

# Significant bits of a number that lies midway between two of float32, as long as the smaller of
# these is at least 2**-15 of the larger; float64 numbers such as 0.1 have 53.
_SHORT_BITS = 40

# Thresholds of the converted tree, one a node.
Thresholds = Callable[[Model], Floats]


def to_sklearn(estimator_or_tree: Any, X: Any = None) -> Any:
    """Convert a fitted tree or forest on numeric columns to one of scikit-learn.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
    X : array-like, data frame or CodedTable of shape (n_rows, n_features), default=None
        Rows to predict alike, such as those of `fit`, in float64: scikit-learn rounds their numbers
        to float32, and thresholds are placed between what these become. None for rows of float32
        numbers.

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier or DecisionTreeRegressor, or the class of the forest's name
        Fitted; it predicts as the tree or forest does, to the last bit, for the rows of X, or else
        for all rows of float32 numbers (as integers up to 2**24 are), missing ones included.
        Forests with ``n_jobs`` other than 1 add up in any order, which rounds. Ordered
        categories are numbers to it, their ranks, as ``columns_.encode(X)`` gives them.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The tree tests categories, or a missing value goes to no single child; it separates numbers
        that are equal in float32; or a random forest was grown on numbers that float32 does not
        have (its thresholds show it), and X is None.

    Notes
    -----
    A forest's trees do not see the rows that they have not drawn, and those often have the very
    value of a threshold: 4.9 is midway between 4.8 and 5.0, and float32(4.9) is above 4.9. Of a
    single tree no training row is between a threshold and its neighbours, so that it needs X only
    where these differ by less than float32 numbers do. Extremely randomized trees draw their
    thresholds, which are the number of a row by accident only.

    Examples
    --------
    >>> from gputree import RandomForestClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    >>> bool((to_sklearn(forest, X).predict_proba(X) == forest.predict_proba(X)).all())
    True
    """
    models = models_of(estimator_or_tree, of_targets=True)
    is_forest = bool(averaged(estimator_or_tree))
    draws_rows = is_forest and not estimator_or_tree._draws_cuts
    thresholds: Thresholds = partial(_of_float32_rows, draws_rows=draws_rows)
    if X is not None:
        thresholds = _Between(_rows_of(estimator_or_tree, X, models.first)).thresholds
    members = [_converted(model, thresholds) for model in models]
    made, model = members[0], models.first
    if is_forest:
        from sklearn import ensemble

        kinds = [kind.__name__ for kind in type(estimator_or_tree).__mro__]
        kind = next(getattr(ensemble, name) for name in kinds if hasattr(ensemble, name))
        made = kind(n_estimators=len(members), criterion=model.tree.criterion)
        made.estimator_, made.estimators_ = type(members[0])(), members
        made.n_features_in_, made.n_outputs_ = model.tree.n_features, model.tree.n_outputs
        made.n_classes_ = list(model.tree.target_classes) or model.tree.n_classes
    names = getattr(estimator_or_tree, "feature_names_in_", None)
    if names is not None:
        made.feature_names_in_ = names
    if model.tree.task == "classification":
        made.classes_ = list(model.target_classes) or model.classes
    return made


def _converted(model: Model, thresholds: Thresholds) -> Any:
    """A tree of scikit-learn, of classes 0, 1, ... as the trees of its forests are."""
    _check_splits(model)
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    is_regressor = model.tree.task == "regression"
    kind = DecisionTreeRegressor if is_regressor else DecisionTreeClassifier
    made = kind(criterion=model.tree.criterion)
    made.n_features_in_ = model.tree.n_features
    made.n_outputs_ = model.tree.n_outputs
    made.max_features_ = model.tree.n_features
    if model.tree.target_classes:
        made.n_classes_ = list(model.tree.target_classes)
        made.classes_ = [np.arange(float(count)) for count in made.n_classes_]
    elif not is_regressor:
        made.classes_ = np.arange(float(model.tree.n_classes))
        made.n_classes_ = model.tree.n_classes
    made.tree_ = _sklearn_tree(model.tree, thresholds(model))
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


def _of_float32_rows(model: Model, draws_rows: bool) -> Floats:
    """Thresholds of the tree; ValueError where float32 rows do not distinguish its children."""
    tree = model.tree
    numbers = (*bounds_above(tree), tree.threshold)
    lower, upper, threshold = (rounded_down(number, np.float32) for number in numbers)
    is_end = (threshold == lower) | (threshold == upper)
    inner = np.flatnonzero(~tree.is_leaf & np.isfinite(tree.threshold))
    if idle := inner[is_end[inner]].tolist():
        raise _one_number(model, idle[0])
    scaled = np.frexp(tree.threshold[inner])[0] * 2.0**_SHORT_BITS
    if draws_rows and (scaled != np.floor(scaled)).any():
        raise InputError(
            "scikit-learn's forests compare float32 numbers, and this one was grown on numbers "
            "that float32 does not have: they may go another way there. Pass the rows to predict "
            "alike, such as those of fit: to_sklearn(forest, X); or fit on float32 values."
        )
    return tree.threshold


def _one_number(model: Model, node: int) -> InputError:
    """The error of a node that divides numbers which are one in float32."""
    tree = model.tree
    return InputError(
        "scikit-learn's trees cannot represent this one: they compare float32 numbers, and "
        f"node {node} divides numbers at {float(tree.threshold[node])!r} (column "
        f"{model.feature_names[tree.feature[node]]!r}) that are one float32 number. Fit on "
        "float32 values, or use export_lightgbm, to_onnx or to_treelite."
    )


def _rows_of(estimator_or_tree: Any, X: Any, model: Model) -> Any:
    """Rows as the tree tests them, shape (n_rows, n_features)."""
    if not isinstance(estimator_or_tree, Tree):
        return estimator_or_tree._values(X)
    values = np.asarray(X, np.float64)
    d = model.tree.n_features
    if values.ndim != 2 or values.shape[1] != d:
        raise InputError(f"X must have {d} columns, as the tree has; got shape {values.shape}.")
    return values


class _Between:
    """Thresholds between the float32 images of rows, shape (n_rows, n_features)."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self._column = cache(self._sorted)  # of the trees of a forest once

    def _sorted(self, feature: int) -> Floats:
        """The different numbers of a column, ascending, between infinities."""
        column = self._values[:, feature].astype(np.float64)
        return np.concatenate([[-np.inf], np.unique(column[np.isfinite(column)]), [np.inf]])

    def thresholds(self, model: Model) -> Floats:
        """Thresholds of a tree; ValueError where none separates its neighbours as float32."""
        tree, found = model.tree, model.tree.threshold.copy()
        inner = np.flatnonzero(~tree.is_leaf & np.isfinite(found))
        for feature in np.unique(tree.feature[inner]).tolist():
            nodes = inner[tree.feature[inner] == feature]
            numbers = self._column(feature)
            after = np.searchsorted(numbers, found[nodes], "right")
            with np.errstate(over="ignore"):
                images = numbers.astype(np.float32).astype(np.float64)
            lower, upper = images[after - 1], images[after]
            if (alike := nodes[lower == upper]).size:
                raise _one_number(model, int(alike[0]))
            found[nodes] = np.clip(found[nodes], lower, np.nextafter(upper, -np.inf))
        return found


def _sklearn_tree(tree: Tree, thresholds: Floats) -> Any:
    counts = np.diff(tree.target_ends).astype(np.intp)
    made = tree_of(tree.n_features, counts, tree.n_outputs)
    state = made.__getstate__()
    nodes = np.zeros(tree.n_nodes, state["nodes"].dtype)  # its fields differ by version
    columns = {
        "left_child": tree.children_left,
        "right_child": tree.children_right,
        "feature": tree.feature,
        "threshold": thresholds,
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
