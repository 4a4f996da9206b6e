"""The paths of a tree as rules, one a leaf, with the tests of a column merged into one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gputree.base.dtypes import THRESHOLD_SPLIT, Floats, Int32s
from gputree.export.describe import Description, describe
from gputree.export.model import forbid_soft_thresholds, tree_of
from gputree.export.parameters import checked
from gputree.tree import Tree


@dataclass(frozen=True)
class Rule:
    """The rule of one leaf.

    Attributes
    ----------
    node : int
        The leaf.
    conditions : tuple of str
        All hold; in the order of the path. Empty for a tree of one leaf.
    prediction : str
        The class, or the mean target.
    support : float
        Weight of the training rows in the leaf; fractions of rows in a C4.5 tree.
    coverage : float
        The same as a fraction of the root's.
    confidence : float or None
        Fraction of the predicted class in that weight; None for regression, and without rows.
    error : float or None
        Mean squared error in the leaf, or half the mean Poisson deviance, as the tree was
        grown by; None for classification.
    error_name : str
        "mse" or "deviance"; empty for classification.
    """

    node: int
    conditions: tuple[str, ...]
    prediction: str
    support: float
    coverage: float
    confidence: float | None
    error: float | None
    error_name: str

    def __str__(self) -> str:
        condition = f"if {' and '.join(self.conditions)} " if self.conditions else ""
        measure = "" if self.confidence is None else f", confidence {self.confidence:.3g}"
        if self.error is not None:
            measure = f", {self.error_name} {self.error:.4g}"
        return f"{condition}then {self.prediction} (support {self.support:.6g}{measure})"


@checked
def path_rules(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    decimals: int | None = 4,
) -> list[Rule]:
    r"""List the paths of a fitted tree as rules, one per leaf, from left to right.

    The tests of a column on a path are one condition: an interval ``2 < x <= 5``, the
    categories that are left, or that the value is present or missing. Missing values are named
    as in `export_text`: ``or missing`` where they follow the path although it is not the one
    with more training rows. In a C4.5 tree they follow all branches with fractional weights, and
    rules are for known values.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    {names}
    decimals : int or None, default=4
        Of thresholds and predictions, as in `export_text`.

    Returns
    -------
    list of Rule
        ``print(*path_rules(tree), sep="\n")`` prints them.

    {raises}
    ValueError
        The number of names does not fit the tree, or `decimals` is negative.

    See Also
    --------
    gputree.to_rules : Fewer and shorter rules, made from these with the training rows.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import path_rules
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target)
    >>> print(path_rules(tree, feature_names=iris.feature_names)[1])  # doctest: +ELLIPSIS
    if 2.45 < petal length <= 4.95 and petal width <= 1.75 then versicolor (support 48, ...
    """
    forbid_soft_thresholds(tree_of(estimator_or_tree))
    description = describe(estimator_or_tree, feature_names, class_names, decimals)
    return [
        _rule(
            description, leaf, tuple(_condition(description, j, k) for j, k in conditions.items())
        )
        for leaf, conditions in _leaves(description)
    ]


class _Bounds(NamedTuple):
    """Bounds that the tests of a path set to one column."""

    lower: float = -np.inf
    upper: float = np.inf
    codes: Int32s | None = None
    only: str = ""  # "present" or "missing"
    takes_missing: bool = True
    says_missing: bool = False


def _leaves(description: Description) -> Iterator[tuple[int, dict[int, _Bounds]]]:
    """Leaves from left to right, each with what is known of its columns."""
    found = walk(description.tree, partial(_narrowed, description))
    return (one for one in found if not description.tree.n_children[one[0]])


def _narrowed(description: Description, node: int, before: _Bounds | None) -> _Bounds:
    """Add to `before`, the known bounds of the parent's column, the condition of `node`."""
    tree, parent = description.tree, int(description.tree.parent[node])
    ordinal, bounds = node - int(tree.first_child[parent]), before or _Bounds()
    takes = bounds.takes_missing and tree.missing_child[parent] == ordinal
    says = bounds.says_missing or description.condition(node).or_missing
    bounds = bounds._replace(takes_missing=takes, says_missing=says)
    if tree.split_kind[parent] != THRESHOLD_SPLIT:
        codes = tree.categories(node)
        if codes.size == 0:
            return bounds._replace(only="missing")
        return bounds._replace(codes=codes)
    threshold = float(tree.threshold[parent])
    if np.isposinf(threshold):
        return bounds._replace(only=("present", "missing")[ordinal])
    if ordinal == 0:
        return bounds._replace(upper=min(threshold, bounds.upper))
    return bounds._replace(lower=max(threshold, bounds.lower))


def _condition(description: Description, feature: int, bounds: _Bounds) -> str:
    name = description.feature_names[feature]
    if bounds.only == "missing":
        return f"{name} is missing"
    if bounds.codes is not None:
        text = f"{name} {' '.join(description.words_of_set(feature, bounds.codes))}"
    elif np.isinf(bounds.lower) and np.isinf(bounds.upper):
        return f"{name} is present"
    elif np.isinf(bounds.lower):
        text = f"{name} <= {description.threshold(feature, bounds.upper)}"
    elif np.isinf(bounds.upper):
        text = f"{name} > {description.threshold(feature, bounds.lower)}"
    else:
        lower = description.threshold(feature, bounds.lower)
        upper = description.threshold(feature, bounds.upper)
        text = f"{lower} < {name} <= {upper}"
    return f"({text} or missing)" if bounds.takes_missing and bounds.says_missing else text


def _rule(description: Description, leaf: int, conditions: tuple[str, ...]) -> Rule:
    tree: Tree = description.tree
    weight = float(tree.weight[leaf])
    is_classifier = description.class_names is not None
    confidence = None
    if is_classifier and weight:
        confidence = float(tree.statistics[leaf, description.label(leaf)] / weight)
    return Rule(
        node=leaf,
        conditions=conditions,
        prediction=description.answer(leaf),
        support=weight,
        coverage=weight / float(tree.weight[0]),
        confidence=confidence,
        error=None if is_classifier else float(tree.impurity[leaf]),
        error_name=description.error_name,
    )


State = TypeVar("State")


def walk(
    tree: Tree, narrowed: Callable[[int, State | None], State]
) -> Iterator[tuple[int, dict[int, State]]]:
    """Iterate over nodes in preorder, each with the bounds that tests above set to columns.

    ``narrowed(node, before)`` returns the bounds of the column that the node's parent tests, from
    those above the parent. All nodes get the same dictionary, which is changed in between.
    """
    bounds: dict[int, State] = {}
    # A node to visit, or a column and the bounds to restore after its subtree.
    rest: list[tuple[int, int, State | None]] = [(0, -1, None)]
    while rest:
        node, feature, before = rest.pop()
        if node < 0:
            if before is None:
                del bounds[feature]
            else:
                bounds[feature] = before
            continue
        if node > 0:
            bounds[feature] = narrowed(node, before)
        yield node, bounds
        if tree.n_children[node]:
            feature = int(tree.feature[node])
            before = bounds.get(feature)
            rest.append((-1, feature, before))
            rest += [(child, feature, before) for child in reversed(tree.children(node))]


def bounds_above(tree: Tree) -> tuple[Floats, Floats]:
    """Bounds of known numbers in the column that each node tests: ``lower < x <= upper``.

    Infinite where no test above bounds the column, and at leaves.
    """
    lower, upper = np.full(tree.n_nodes, -np.inf), np.full(tree.n_nodes, np.inf)

    def narrowed(node: int, before: tuple[float, float] | None) -> tuple[float, float]:
        low, high = before or (-np.inf, np.inf)
        parent = int(tree.parent[node])
        if tree.split_kind[parent] != THRESHOLD_SPLIT:
            return low, high
        threshold = float(tree.threshold[parent])
        is_first = node == tree.first_child[parent]
        return (low, min(threshold, high)) if is_first else (max(threshold, low), high)

    for node, bounds in walk(tree, narrowed):
        if tree.n_children[node]:
            lower[node], upper[node] = bounds.get(int(tree.feature[node]), (-np.inf, np.inf))
    return lower, upper
