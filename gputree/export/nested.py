"""A tree as nested dictionaries, the way textbooks print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gputree.export.describe import format_number, level_below
from gputree.export.model import Model, Split, model_of
from gputree.export.parameters import checked


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
    """A mean target, or the label of a class."""
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
