"""A tree as indented text, one line a condition: for `export_text` and `gputree show`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.export.describe import Description, descendants, describe, format_number, level_below
from gputree.export.model import Model, Split, model_of
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
    to other classes; in regression the weight and the mean squared error. Of several targets
    the prediction is a list, and the support has the mean of their impurities.

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
    description = describe(estimator_or_tree, feature_names, class_names, decimals, of_targets=True)
    return "".join(text_lines(description, max_depth, show_weights))


_BAR = "|   "
_MOST_BARS = 40  # deeper lines name their depth: else text grows with its square


def text_lines(
    description: Description,
    max_depth: int | None = None,
    show_weights: bool = False,
    numbers: NDArray[Any] | None = None,
) -> Iterator[str]:
    """The lines of `export_text`, made one by one: a large tree is much text.

    With `numbers` of the nodes each line begins with its own, and the root has one, too.
    """
    width = 0 if numbers is None else len(str(numbers.max())) + 2
    for node, line in _lines(description, max_depth, show_weights):
        if numbers is not None:
            line = f"{f'{numbers[node]}: ':>{width}}{line or 'all rows'}"
        elif not line:
            continue
        yield f"{line}\n"


def _lines(
    description: Description, max_depth: int | None, show_weights: bool
) -> Iterator[tuple[int, str]]:
    """Nodes and their lines; that of a root that is split is empty."""
    tree = description.tree
    limit = tree.max_depth if max_depth is None else max_depth
    below = descendants(tree)
    nodes = [0]  # a stack: trees may be deeper than Python recurses
    while nodes:
        node = nodes.pop()
        shown = tree.children(node) if tree.depth[node] < limit else range(0)
        nodes.extend(reversed(shown))
        head = _indent(tree.depth[node] - 1) + str(description.condition(node)) if node else ""
        if shown:
            yield node, head
            continue
        line = f"{head}: " if node else ""
        line += f"{description.answer(node)} ({description.support(node)})"
        if show_weights and description.tree.task == "classification":
            line += f" {description.weights(node)}"
        if below[node]:
            line += f" ... {below[node]} more nodes"  # never 1: there are no single children
        yield node, line


def _indent(depth: int) -> str:
    return _BAR * depth if depth <= _MOST_BARS else f"{_BAR * _MOST_BARS}[{depth}] "


@checked
def to_dict(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    decimals: int | None = 4,
) -> Any:
    """Nest a fitted tree in dictionaries: ``{feature: {value: subtree or prediction}}``.

    The key of a branch is its category, a tuple of its categories where several share a branch,
    ``"<= 2.45"`` or ``"> 2.45"`` for numbers (``"<= medium"`` for ordered categories), and None for
    the branch that only missing values take. What a branch does with missing values besides others
    is not shown (`export_text` does).

    Keys are Python's values, which JSON has not: tuples, None and numbers. To keep a tree, or to
    read it in another language, use `gputree.export_json`.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    {labels}
    decimals : int or None, default=4
        Of thresholds and of mean targets, as in `export_text`.

    Returns
    -------
    dict, or the prediction itself where the tree is one leaf
        Predictions are labels, or mean targets as floats. Trees much deeper than 900 are built,
        too, but Python prints and compares such dictionaries by recursion, which fails.

    {raises}
    ValueError
        The number of names does not fit the tree.

    Examples
    --------
    >>> from gputree import ID3Classifier
    >>> from gputree.datasets import load_fish
    >>> from gputree.export import to_dict
    >>> fish = load_fish()
    >>> tree = ID3Classifier().fit(fish.data, fish.target)
    >>> to_dict(tree, feature_names=fish.feature_names)
    {'no surfacing': {0: 'no', 1: {'flippers': {0: 'no', 1: 'yes'}}}}
    """
    model = model_of(estimator_or_tree, feature_names, class_names, by_costs=True)
    tree = model.tree
    predictions = tree.predictions[:, 0] if model.classes is None else model.labels
    below: list[Any] = [None] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):  # children have the higher numbers
        if not tree.children(node):
            below[node] = _answer(model, predictions[node], decimals)
            continue
        split = model.split(node)
        branches = {
            _key(model, split, ordinal, decimals): below[child]
            for ordinal, child in enumerate(split.children)
        }
        below[node] = {model.feature_names[split.feature]: branches}
    return below[0]


def _answer(model: Model, prediction: Any, decimals: int | None) -> Any:
    if model.classes is None:
        return float(format_number(prediction, decimals))
    label = model.classes[prediction]
    return label.item() if isinstance(label, np.generic) else label


def _key(model: Model, split: Split, ordinal: int, decimals: int | None) -> Any:
    if split.threshold is not None:
        if np.isposinf(split.threshold):
            return ("present", None)[ordinal]
        threshold = format_number(split.threshold, decimals)
        if split.feature in model.ordered:
            threshold = level_below(model.categories[split.feature], split.threshold)
        return f"{('<=', '>')[ordinal]} {threshold}"
    words = model.words(split.feature, split.codes[ordinal])
    if not words:
        return None
    return words[0] if len(words) == 1 else tuple(words)
