"""What formats are made from: a tree, the values behind its codes, and each split by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.costs import Costs, least_cost
from gputree.dtypes import BRANCH_SPLIT, LEAF, MISSING_STOPS, MISSING_TO_ALL, THRESHOLD_SPLIT
from gputree.errors import InputError, InputTypeError
from gputree.tree import Tree


@dataclass(frozen=True)
class Split:
    """Where one inner node sends each value of its column.

    Attributes
    ----------
    node : int
    feature : int
    threshold : float or None
        ``x <= threshold`` goes to the first child, other numbers to the second; infinity
        distinguishes missing values from others. None where categories decide.
    children : range
        Nodes.
    codes : tuple of int arrays, one a child
        The categories that go to each child, ascending; empty where a threshold decides.
    missing : int
        Ordinal of the child that takes missing values, MISSING_TO_ALL or MISSING_STOPS.
    unseen : int
        The same for a category that is in no child's `codes`.
    """

    node: int
    feature: int
    threshold: float | None
    children: range
    codes: tuple[NDArray[np.int32], ...]
    missing: int
    unseen: int


@dataclass(frozen=True)
class Names:
    """What columns, codes and classes stand for.

    Attributes
    ----------
    feature_names : list of str, one a column
    classes : array of K labels; None for regression
    categories : tuple of arrays or None, one a column
        Values of the codes 0, 1, ... of a column of categories; None where it is numeric.
    """

    feature_names: list[str]
    classes: NDArray[Any] | None
    categories: tuple[NDArray[Any] | None, ...]

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def words(self, feature: int, codes: NDArray[np.int32]) -> list[Any]:
        """The categories of some codes as Python's values; codes where they have no names."""
        categories = self.categories[feature]
        return (codes if categories is None else categories[codes]).tolist()


@dataclass(frozen=True)
class Model(Names):
    """A tree, and what its columns, codes and classes stand for.

    Attributes
    ----------
    tree : Tree
    costs : float64 array of shape (K, K), or None
        What errors cost, where that decides between classes; None where the highest probability
        does.
    gathered : bool array of shape (n_nodes,), or None
        Nodes that send what they cannot place, missing or unknown, to their missing child, where
        the tree sent it down every branch.
    """

    tree: Tree
    costs: Costs | None = None
    gathered: NDArray[np.bool_] | None = None

    @property
    def labels(self) -> NDArray[np.intp]:
        """The class that each node predicts, shape (n_nodes,)."""
        return labels_of(self.tree.value[:, 0], self.costs)

    def split(self, node: int) -> Split:
        """The split of an inner node."""
        tree = self.tree
        feature, children = int(tree.feature[node]), tree.children(node)
        missing = int(tree.missing_child[node])
        if tree.split_kind[node] == LEAF:
            raise InputError(f"Node {node} is a leaf.")
        if tree.split_kind[node] == THRESHOLD_SPLIT:
            threshold = float(tree.threshold[node])
            return Split(node, feature, threshold, children, (), missing, missing)
        codes = tuple(tree.categories(child) for child in children)
        # Missing values with a separate branch do not take categories without one.
        gathered = self.gathered is not None and self.gathered[node]
        apart = tree.split_kind[node] == BRANCH_SPLIT and missing >= 0 and not gathered
        return Split(
            node, feature, None, children, codes, missing, MISSING_STOPS if apart else missing
        )


def model_of(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    only_shown: bool = False,
    by_costs: bool = False,
) -> Model:
    """The model of a fitted estimator or a Tree.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    feature_names : sequence of str or None
        None takes the estimator's `feature_names_in_`, else x0, x1, ...
    class_names : sequence or None
        None takes the estimator's `classes_`, else 0, 1, ...
    only_shown : bool, default=False
        For texts and pictures, which show a soft threshold as the threshold that it is around.
    by_costs : bool, default=False
        For formats that write the class which a node predicts, also where it is that of the
        minimum expected cost.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        It is none of gputree's, nor a Tree.
    ValueError
        The number of names is not that of the tree, or its thresholds are soft, or costs decide
        between its classes, and the format cannot say so.
    """
    tree = tree_of(estimator_or_tree)
    if not only_shown:
        forbid_soft_thresholds(tree)
    costs = _costs_of(estimator_or_tree)
    if costs is not None and not by_costs:
        raise InputError(
            "This format predicts the class of the highest probability, and "
            f"{type(estimator_or_tree).__name__} with that of the minimum of "
            "'misclassification_costs', which may be another where there are more than two "
            "classes. Keep it with save_model; texts, pictures, SQL and ONNX show its predictions."
        )
    columns = getattr(estimator_or_tree, "columns_", None)
    categories = (None,) * tree.n_features if columns is None else tuple(columns.categories)
    features = check_names("feature_names", feature_names, tree.n_features)
    if features is None:
        found = getattr(estimator_or_tree, "feature_names_in_", None)
        features = [f"x{j}" for j in range(tree.n_features)] if found is None else list(found)
    if tree.task == "regression":
        return Model(features, None, categories, tree)
    if class_names is None:
        classes = np.asarray(getattr(estimator_or_tree, "classes_", np.arange(tree.n_classes)))
    else:
        names = check_names("class_names", class_names, tree.n_classes)
        classes = np.array(names, dtype=object)
    return Model(features, classes, categories, tree, costs)


def labels_of(shares: NDArray[np.float64], costs: Costs | None) -> NDArray[np.intp]:
    """Classes of the highest probability, or of the minimum expected cost; of equals the first.

    Parameters
    ----------
    shares : float64 array of shape (n, K)
    costs : float64 array of shape (K, K), or None
    """
    return shares.argmax(axis=1) if costs is None else least_cost(shares, costs)


def _costs_of(estimator_or_tree: Any) -> Costs | None:
    """What errors cost, if the class of most weight may not be the one that `predict` returns."""
    weighs = getattr(estimator_or_tree, "_weighs_errors", False)
    return estimator_or_tree.costs_ if weighs else None


def tree_of(estimator_or_tree: Any) -> Tree:
    """The tree itself, or that of a fitted estimator."""
    tree = getattr(estimator_or_tree, "tree_", estimator_or_tree)
    if isinstance(tree, Tree):
        return tree
    if hasattr(estimator_or_tree, "fit") and not isinstance(estimator_or_tree, type):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator_or_tree)
    raise InputTypeError(
        "Exports take a fitted estimator of gputree or its tree_, got "
        f"{type(estimator_or_tree).__name__}. Of a pipeline or a search, pass the tree in it: "
        "pipeline[-1], search.best_estimator_; of boosted trees, one of estimators_."
    )


def require_estimator(estimator: Any, caller: str) -> None:
    """Raise TypeError for a bare tree, which does not know how its columns are coded."""
    if isinstance(estimator, Tree):
        raise InputTypeError(f"{caller} takes a fitted estimator of gputree, got Tree.")


def check_names(parameter: str, names: Sequence[Any] | None, count: int) -> list[str] | None:
    """The names as strings, if there are `count`."""
    if names is None:
        return None
    if len(names) != count:
        raise InputError(f"{parameter} must contain {count} elements, got {len(names)}.")
    return list(map(str, names))


def forbid_soft_thresholds(tree: Tree) -> None:
    """Raise ValueError if numbers near a threshold go down both branches."""
    if tree.soft_lower is not None:
        raise InputError(
            "This tree has soft thresholds: numbers near one go down both branches, with "
            "fractional weights, which save_model and export_json alone support. Fit with "
            "soft_thresholds=False, which changes predictions for such numbers only."
        )


def forbid_fractions(model: Model, format_name: str) -> None:
    """Raise ValueError if the tree sends rows down every branch, which `format_name` cannot say."""
    tree = model.tree
    spreads = np.flatnonzero(~tree.is_leaf & (tree.missing_child == MISSING_TO_ALL))
    if spreads.size:
        name = model.feature_names[tree.feature[spreads[0]]]
        raise InputError(
            f"{format_name} cannot represent this tree: it sends rows to all children, with "
            f"fractional weights, where a value is missing or unknown (node {spreads[0]}, column "
            f"{name!r}). Pass "
            "missing='largest' to send them down the branch of the largest weight instead, "
            "which changes predictions for such rows only."
        )


def single_paths(model: Model, missing: str, format_name: str) -> Model:
    """The model, with every row on one path, for a format that knows no other.

    Parameters
    ----------
    model : Model
    missing : "error" or "largest"
        What to do where rows go down every branch, as their value is missing or unknown: raise,
        or send them to the child of the largest weight (of equals the first).
    format_name : str
        For the message.
    """
    if missing == "error":
        forbid_fractions(model, format_name)
        return model
    tree = model.tree
    missing_child = tree.missing_child.copy()
    gathered = ~tree.is_leaf & (missing_child == MISSING_TO_ALL)
    for node in np.flatnonzero(gathered).tolist():
        missing_child[node] = int(tree.weight[tree.children(node)].argmax())
    return replace(model, tree=replace(tree, missing_child=missing_child), gathered=gathered)
