"""Why a tree predicts a row as it does: the row's path in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import MISSING_STOPS
from gputree.export.describe import Description, describe
from gputree.export.model import Model, Split, labels_of, model_of, require_estimator
from gputree.export.parameters import checked
from gputree.prediction.answers import ChildShares, portions

_SHARE_DIGITS = 3  # significant

# Names of what leaves of regression predict, where it is no mean.
_ANSWERS = {"absolute_error": "median", "quantile": "quantile"}


@dataclass(frozen=True)
class Step:
    """One node that a row, or a part of it, passes."""

    node: int
    share: float  # how much of the row arrives; 1 unless a missing value went down several branches
    condition: str  # the condition that leads here, empty at the root
    # why a value that the condition does not name came here, or why the row stops at a node
    # that splits; else empty
    note: str
    weight: float  # of the training rows in the node
    mix: str  # weights of the classes that are there, or the mean target
    depth: int


@dataclass(frozen=True, repr=False)
class Explanation:
    """The path of one row; its repr is the text that ``print`` shows, line by line.

    Attributes
    ----------
    prediction : str
        The class (of the minimum expected cost, where errors have costs), or the mean target.
    probabilities : dict of str to float
        The predicted probability of each class; empty for regression.
    steps : tuple of Step
        From the root; where a row goes down several branches, each before what is below it.
    """

    prediction: str
    probabilities: dict[str, float]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        parts = [f"{name} {_short(part)}" for name, part in self.probabilities.items() if part > 0]
        lines = [f"{self.prediction} ({', '.join(parts)})" if parts else self.prediction]
        for step in self.steps:
            share = f"with weight {_short(step.share)}, " if step.share < 1 else ""
            head = f"{share}{step.condition}: " if step.condition else ""
            note = f" ({step.note})" if step.note else ""
            lines.append(f"{'  ' * (step.depth + 1)}{head}{step.mix}{note}")
        return "\n".join(lines)

    __repr__ = __str__


class Explanations(list[Explanation]):
    """Paths of rows: a list whose repr is their text."""

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self))


@checked
def explain(
    estimator: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    decimals: int | None = 4,
) -> Explanations:
    """The path of each row through a fitted tree, in words.

    Each step has the condition that the row satisfied, the training rows there by class (or their
    mean target), and the direction of a missing or unseen value. Use it for the rows of interest,
    not for a whole table.

    For the contributions of columns to a prediction (exact Shapley values), see `shap_values`.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like of shape (n_rows, n_features)
    feature_names, class_names, decimals
        As in `export_text`.

    Returns
    -------
    list of Explanation, one per row; the repr of the list is their text

    {raises}
    TypeError
        It is a Tree, which has no columns to read X by.
    ValueError
        X is not a table as in `fit`, the number of names does not fit the tree, or
        `decimals` is negative.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.export import explain
    >>> golf = load_golf()
    >>> tree = C45Classifier().fit(golf.data, golf.target)
    >>> row = ["sunny", "mild", "high", "weak"]
    >>> explain(tree, [row], feature_names=golf.feature_names)
    no (no 1)
      no 5, yes 9
        outlook = sunny: no 3, yes 2
          humidity = high: no 3
    """
    require_estimator(estimator, "explain")
    description = describe(estimator, feature_names, class_names, decimals, of_targets=True)
    model = model_of(estimator, by_costs=True, of_targets=True)
    return Explanations(_explanation(description, model, row) for row in estimator._values(X))


def _explanation(description: Description, model: Model, row: NDArray) -> Explanation:
    tree, parts = model.tree, portions(model.tree)
    steps: list[Step] = []
    stops: dict[int, float] = {}
    rest = [(0, 1.0, "")]  # nodes that parts of the row arrive at, and why
    while rest:
        node, share, why = rest.pop()
        notes = [why] if why else []
        onward: list[tuple[int, float]] = []
        if tree.n_children[node]:
            split = model.split(node)
            x = float(row[split.feature])  # not as float32
            ordinal, why = _sent(split, x)
            if why and split.feature in model.ordered:
                why = "missing or unknown"
            why = f"{description.feature_names[split.feature]} is {why}" if why else ""
            onward = _onward(parts, split, ordinal)
            if not onward:
                notes.append(f"{why}: no branch, the node predicts")
        if not onward:
            stops[node] = share
        steps.append(_step(description, node, share, "; ".join(notes)))
        rest += [(child, share * part, why) for child, part in reversed(onward)]
    out, predictions = np.zeros(tree.n_classes), tree.predictions
    for node in sorted(stops):  # as prediction adds them up
        out += stops[node] * predictions[node]
    if description.class_names is None:
        return Explanation(description.words_of(out), {}, tuple(steps))
    shares = dict(zip(description.class_names, out.tolist(), strict=True))
    (label,) = labels_of(out[None], description.costs)
    return Explanation(description.class_names[label], shares, tuple(steps))


def _sent(split: Split, x: float) -> tuple[int, str]:
    """The ordinal that a value is sent to, and what is special about it."""
    if np.isnan(x):
        return split.missing, "missing"
    if split.threshold is not None:
        return int(x > split.threshold), ""
    for ordinal, codes in enumerate(split.codes):
        if x in codes:
            return ordinal, ""
    return split.unseen, "unknown"


def _onward(parts: ChildShares, split: Split, ordinal: int) -> list[tuple[int, float]]:
    """The children that a row goes on to, with its parts; none where it ends."""
    if ordinal >= 0:
        return [(split.children[ordinal], 1.0)]
    if ordinal == MISSING_STOPS or not parts.spreads[split.node]:
        return []
    shares = parts.portion[split.children].tolist()
    return [(child, part) for child, part in zip(split.children, shares, strict=True) if part]


def _step(description: Description, node: int, share: float, note: str) -> Step:
    tree = description.tree
    condition = str(description.condition(node)) if node else ""
    weight, depth = float(tree.weight[node]), int(tree.depth[node])
    return Step(node, share, condition, note, weight, _mix(description, node), depth)


def _mix(description: Description, node: int) -> str:
    """Weights of the classes that are there, or the mean or quantile of targets and the weight."""
    tree, number = description.tree, description.number
    if description.target_classes:
        return description.weights(node)
    if description.class_names is None:
        answer = _ANSWERS.get(tree.criterion, "mean")
        return f"{answer} {description.answer(node)} of {number(tree.weight[node])}"
    pairs = zip(description.class_names, tree.statistics[node], strict=True)
    return ", ".join(f"{name} {number(value)}" for name, value in pairs if value) or "no rows"


def _short(share: float) -> str:
    return f"{share:.{_SHARE_DIGITS}g}"
