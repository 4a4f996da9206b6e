"""Source of all formats: a tree, the values that its codes stand for, and single splits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    THRESHOLD_SPLIT,
    Bools,
    Floats,
    Int32s,
)
from gputree.errors import InputError, InputTypeError
from gputree.inputs.labels import Costs, least_cost
from gputree.inputs.targets import forbid_targets
from gputree.tree import Tree

TEMPLATES = Path(__file__).parent / "templates"  # texts with missing values
LANGUAGES = ("en", "zh")  # of the labels of pages

_FOR_TARGETS = (
    "Pass the tree of one, tree_.of_target(0). export_json and save_model keep all, to_sklearn and "
    "to_onnx convert them, export_text, export_html, export_graphviz and plot_tree show them."
)


@dataclass(frozen=True)
class Split:
    """Children to which one inner node sends the values of its column."""

    node: int
    feature: int
    # ``x <= threshold`` goes to the first child, other numbers to the second; infinity
    # distinguishes missing values from others. None where categories decide
    threshold: float | None
    children: range  # nodes
    # one a child: the categories that go to each child, ascending; empty where a threshold decides
    codes: tuple[Int32s, ...]
    missing: int  # ordinal of the child that takes missing values, MISSING_TO_ALL or MISSING_STOPS
    unseen: int  # the same for a category that is in no child's `codes`


@dataclass(frozen=True)
class Names:
    """Names of columns, codes and classes."""

    feature_names: list[str]
    classes: NDArray[Any] | None
    # one a column: values of the codes 0, 1, ... of a column of categories; None where it
    # is numeric
    categories: tuple[NDArray[Any] | None, ...]
    # columns whose categories are ordered: thresholds part their codes, which are ranks. A value
    # that is no category of such a column goes as a missing one
    ordered: frozenset[int] = field(default=frozenset(), kw_only=True)

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def words(self, feature: int, codes: Int32s) -> list[Any]:
        """The categories of some codes as Python's values; codes where they have no names."""
        categories = self.categories[feature]
        return (codes if categories is None else categories[codes]).tolist()

    def sides(self, feature: int, threshold: float) -> tuple[Int32s, Int32s]:
        """Codes of the ordered categories that are at most a threshold, and of the others."""
        categories = self.categories[feature]
        assert categories is not None
        codes = np.arange(categories.size, dtype=np.int32)
        return codes[codes <= threshold], codes[codes > threshold]

    def as_sets(self, split: Split) -> Split:
        """The split with categories in place of a threshold, where they are ordered."""
        if split.threshold is None or split.feature not in self.ordered:
            return split
        codes = self.sides(split.feature, split.threshold)
        return replace(split, threshold=None, codes=codes, unseen=split.missing)


@dataclass(frozen=True)
class Model(Names):
    """Tree with the names of its columns, codes and classes."""

    tree: Tree
    # labels of each of several targets, of classes; `classes` is None then
    target_classes: tuple[NDArray[Any], ...] = ()
    target_names: tuple[str, ...] = ()  # one of several targets each, if they have names
    # (K, K): what errors cost, where that decides between classes; None where the highest
    # probability does
    costs: Costs | None = None
    # (n_nodes,): nodes that send what they cannot place, missing or unknown, to their
    # missing child, where the tree sent it down every branch
    gathered: Bools | None = None

    @property
    def labels(self) -> NDArray[np.intp]:
        """The class that each node predicts, shape (n_nodes,)."""
        return labels_of(self.tree.predictions, self.costs)

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
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    *,
    only_shown: bool = False,
    by_costs: bool = False,
    of_targets: bool = False,
) -> Model:
    """The model of a fitted estimator or a Tree.

    Names that are None are the estimator's, else x0, x1, ... and 0, 1, ... Texts and pictures are
    `only_shown`: they have a soft threshold as the threshold that it is around. Formats that write
    the class which a node predicts do so `by_costs`, also where it is that of the minimum expected
    cost; those of several targets are `of_targets`.

    Raises NotFittedError; TypeError for what is none of gputree's; ValueError where the number of
    names does not fit the tree, or soft thresholds, costs or several targets are what the format
    cannot say.
    """
    tree = tree_of(estimator_or_tree)
    if not only_shown:
        forbid_soft_thresholds(tree)
    if not of_targets:
        forbid_targets(tree.n_outputs, "This format", _FOR_TARGETS)
    weighs = getattr(estimator_or_tree, "_weighs_errors", False)
    costs: Costs | None = estimator_or_tree.costs_ if weighs else None
    if costs is not None and not by_costs:
        raise InputError(
            "This format predicts the class of the highest probability, and "
            f"{type(estimator_or_tree).__name__} with that of the minimum of "
            "'misclassification_costs', which may be another where there are more than two "
            "classes. Keep it with save_model; texts, pictures, SQL and ONNX show its predictions."
        )
    columns = getattr(estimator_or_tree, "columns_", None)
    categories = (None,) * tree.n_features if columns is None else tuple(columns.categories)
    ordered = frozenset(() if columns is None else np.flatnonzero(columns.ordered).tolist())
    features = check_names("feature_names", feature_names, tree.n_features)
    if features is None:
        found = getattr(estimator_or_tree, "feature_names_in_", None)
        features = [f"x{j}" for j in range(tree.n_features)] if found is None else list(found)
    named = tuple(map(str, getattr(estimator_or_tree, "target_names_in_", ())))
    if tree.task == "regression":
        return Model(features, None, categories, tree, target_names=named, ordered=ordered)
    if tree.target_classes:
        if class_names is not None:
            forbid_targets(tree.n_outputs, "class_names", "Leave it out.")
        targets = getattr(estimator_or_tree, "classes_", map(np.arange, tree.target_classes))
        return Model(features, None, categories, tree, tuple(targets), named, ordered=ordered)
    if class_names is None:
        classes = np.asarray(getattr(estimator_or_tree, "classes_", np.arange(tree.n_classes)))
    else:
        names = check_names("class_names", class_names, tree.n_classes)
        classes = np.array(names, dtype=object)
    return Model(features, classes, categories, tree, costs=costs, ordered=ordered)


class Models:
    """The trees whose predictions a model averages, each made when it is needed; often one."""

    def __init__(self, members: Sequence[Any], make: Callable[[Any], Model]) -> None:
        self._members, self._make = members, make
        self.first = make(members[0])  # whose names are those of all

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Model]:
        return map(self._make, self._members)

    def at_most(self, n_nodes: int, caller: str, n_trees: int = 1 << 31) -> list[Model]:
        """List the models; ValueError where a forest has more trees, or nodes in all."""
        found: list[Model] = []
        nodes = 0
        for model in self:
            found.append(model)
            nodes += model.tree.n_nodes
            if len(self) > 1 and (nodes > n_nodes or len(self) > n_trees):
                raise InputError(
                    f"{caller} takes forests of at most {n_nodes:,} nodes"
                    f"{f' and {n_trees:,} trees' if n_trees < 1 << 31 else ''}, and this one of "
                    f"{len(self)} trees is larger. Use to_onnx, to_treelite, export_lightgbm or "
                    "export_json, or grow fewer or smaller trees (n_estimators, max_leaf_nodes)."
                )
        return found


def models_of(
    estimator_or_tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    *,
    by_costs: bool = False,
    of_targets: bool = False,
    missing: str | None = None,
    format_name: str = "",
) -> Models:
    """Make the models of the trees of a fitted forest, or of one tree, as `model_of` does.

    With `missing` every row has one path, for a format of that name: see `single_paths`.
    """

    def make(member: Any) -> Model:
        model = model_of(
            member, feature_names, class_names, by_costs=by_costs, of_targets=of_targets
        )
        return model if missing is None else single_paths(model, missing, format_name)

    return Models(averaged(estimator_or_tree) or [estimator_or_tree], make)


def labels_of(shares: Floats, costs: Costs | None) -> NDArray[np.intp]:
    """Classes of the highest of `shares` (n, K), or of the minimum expected cost; the first of
    equals.
    """
    return shares.argmax(axis=1) if costs is None else least_cost(shares, costs)


def tree_of(estimator_or_tree: Any) -> Tree:
    """Return the tree itself, or the tree of a fitted estimator."""
    tree = getattr(estimator_or_tree, "tree_", estimator_or_tree)
    if isinstance(tree, Tree):
        return tree
    if hasattr(estimator_or_tree, "fit") and not isinstance(estimator_or_tree, type):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator_or_tree)
    if averaged(estimator_or_tree):
        raise InputTypeError(
            f"This function takes one tree, and {type(estimator_or_tree).__name__} has "
            f"{len(estimator_or_tree.estimators_)}: pass one of them, estimators_[i]."
        )
    raise InputTypeError(
        "Exports take a fitted estimator of gputree or its tree_, got "
        f"{type(estimator_or_tree).__name__}. Of a pipeline or a search, pass the tree in it: "
        "pipeline[-1], search.best_estimator_; of boosted trees, one of estimators_; of rules, "
        "rules_, which has to_text, to_json and to_sql."
    )


def averaged(estimator: Any) -> Sequence[Any]:
    """The trees of a fitted forest, whose predictions are averaged; none of other estimators."""
    found: Sequence[Any] = ()
    if getattr(type(estimator), "_averages", False):
        found = estimator.estimators_
    return found


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
            f"{name!r}). Pass missing='largest' to send them down the branch of the largest weight "
            "instead, which changes predictions for such rows only."
        )


def single_paths(model: Model, missing: str, format_name: str) -> Model:
    """The model, with every row on one path, for a format that knows no other.

    Where rows go down every branch, as their value is missing or unknown: raise ("error"), or send
    them to the child of the largest weight ("largest"), of equals the first.
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


def fill(template: str, **fields: str) -> str:
    """Return the file `template` of the folder `templates` with each ``$name`` replaced."""
    return Template((TEMPLATES / template).read_text("utf-8")).substitute(fields)
