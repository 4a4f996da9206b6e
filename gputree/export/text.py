"""A tree as indented text, one line a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gputree.export.describe import describe
from gputree.export.lines import text_lines
from gputree.export.parameters import checked


@checked
def export_text(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    decimals: int | None = 4,
    show_weights: bool = False,
) -> str:
    """Write a fitted tree as text.

    Every line is a condition, indented by its depth. A line that ends in a leaf
    adds the leaf's prediction and its support in parentheses: in classification the
    weight of the training rows there and, after a slash, of those that belong
    to other classes; in regression the weight and the mean squared error.

    Missing values follow the child with more training rows, of equals the last,
    unless ``or missing`` marks another or ``is missing`` a separate child; in a C4.5
    tree they go to all children, with fractional weights, and weights are fractions. A leaf of
    weight 0 predicts as its parent. Control characters in names are escaped.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    {names}
    max_depth : int or None, default=None
        Depth of the deepest nodes shown, the root's being 0; those below are counted and left out.
    decimals : int or None, default=4
        Decimals of numbers, or significant digits of those below 1; more for thresholds of one
        feature that would look the same. None writes them exactly.
    show_weights : bool, default=False
        Add the weight of every class to leaves (classification).

    Returns
    -------
    str
        Lines that end in a newline each.

    {raises}
    ValueError
        The number of names does not fit the tree, or `max_depth` or `decimals` is negative.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier, export_text
    >>> from gputree.datasets import load_iris
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> print(export_text(tree, feature_names=iris.feature_names), end="")
    petal length <= 2.45: setosa (50)
    petal length > 2.45
    |   petal width <= 1.75: versicolor (54/5)
    |   petal width > 1.75: virginica (46/1)

    Categories go by their names:

    >>> from gputree import ID3Classifier
    >>> from gputree.datasets import load_fish
    >>> fish = load_fish()
    >>> tree = ID3Classifier().fit(fish.data, fish.target)
    >>> print(export_text(tree, feature_names=fish.feature_names), end="")
    no surfacing = 0: no (2)
    no surfacing = 1
    |   flippers = 0: no (1)
    |   flippers = 1: yes (2)
    """
    description = describe(estimator_or_tree, feature_names, class_names, decimals)
    return "".join(text_lines(description, max_depth, show_weights))
