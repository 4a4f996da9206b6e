"""One description of a tree's conditions and predictions, shared by every format.

Numbers have few digits, but as many as distinguish thresholds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NO_CHILD, THRESHOLD_SPLIT, Floats, Int32s, Int64s
from gputree.columns.categories import MINUS, is_decimal
from gputree.criteria.named import OF_REGRESSION
from gputree.errors import InputError
from gputree.export.model import labels_of, model_of
from gputree.inputs.labels import Costs
from gputree.inputs.targets import most_probable
from gputree.tree import Tree
from gputree.tree.branches import add_up

_ERROR_DIGITS = 4  # significant: squares of large targets have many before the point
MOST_CATEGORIES = 20  # of a set, before the others are counted
LONGEST = 60  # letters of a line in a picture
_UNCLEAR = re.compile(r'^$|^\s|\s$|[,{}":]|^(missing|present)$')  # words that need quotes
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # would break or garble lines


@dataclass(frozen=True)
class Condition:
    """Condition that sends a row from a node to one of its children.

    Attributes
    ----------
    feature : str
    operator : str
        "<=", ">", "=", "in" or "is" (present or missing).
    operand : str
        Threshold, category (of ordered ones the last on the side of "<="; a number only where
        they ascend as numbers do), ``{a, b}``, "present" or "missing". Categories that could be
        mistaken for something else are in double quotes; of many, the first are named and
        the others counted.
    or_missing : bool
        The child takes missing values although it is not the one that takes them
        where no training value was missing: the one of most rows, of equals the last.
    """

    feature: str
    operator: str
    operand: str
    or_missing: bool = False

    def __str__(self) -> str:
        suffix = " or missing" if self.or_missing else ""
        return f"{self.feature} {self.operator} {self.operand}{suffix}"


@dataclass(frozen=True)
class Description:
    """A tree with the words for its features, classes and numbers."""

    tree: Tree
    feature_names: Sequence[str]  # one a feature
    class_names: Sequence[str] | None  # one a class; None for regression
    decimals: int | None  # see `format_number`
    # one a feature: what the codes of categories stand for, ordered or not
    # (`gputree.columns.Columns.categories`); None where they stand for themselves
    categories: Sequence[NDArray[Any] | None] | None = None
    # of a longer set the others are counted; None names all
    most_categories: int | None = MOST_CATEGORIES
    costs: Costs | None = None  # (K, K): as of `gputree.export.model.Model`
    target_classes: Sequence[Sequence[str]] = ()  # names of classes of each of several targets
    target_names: Sequence[str] = ()  # one of several targets each, if they have names

    def condition(self, node: int) -> Condition:
        """The condition that leads from the parent of `node` (not the root) to it."""
        tree, parent = self.tree, int(self.tree.parent[node])
        if parent == NO_CHILD:
            raise InputError("The root has no condition.")
        ordinal = node - int(tree.first_child[parent])
        feature = self.feature_names[tree.feature[parent]]
        if tree.split_kind[parent] != THRESHOLD_SPLIT:
            codes = tree.categories(node)
            if codes.size == 0 and tree.missing_child[parent] == ordinal:
                return Condition(feature, "is", "missing")
            operator, operand = self.words_of_set(int(tree.feature[parent]), codes)
        elif np.isposinf(tree.threshold[parent]):
            return Condition(feature, "is", ("present", "missing")[ordinal])
        else:
            operator = ("<=", ">")[ordinal]
            operand = self.threshold(int(tree.feature[parent]), tree.threshold[parent])
        return Condition(feature, operator, operand, self._takes_missing(parent, ordinal))

    def answer(self, node: int) -> str:
        """The class with the largest weight (the first of equals), or the mean target.

        Where errors of more than two classes have costs, the class of the minimum expected cost. A
        node without cases predicts as its nearest ancestor with some. Of several targets a list.
        """
        if self.class_names is None:
            return self.words_of(self._answers[node])
        return self.class_names[self.label(node)]

    def predictions(self, node: int) -> list[str]:
        """Means, or labels, of several targets, after the names of these."""
        return self._each(self._answers[node])

    def words_of(self, prediction: Floats) -> str:
        """A mean target, or the list of those, or of the labels, of several targets."""
        if self.tree.n_outputs == 1:
            return self.number(prediction[0])
        return f"[{', '.join(self._each(prediction))}]"

    def _each(self, prediction: Floats) -> list[str]:
        words = list(map(self.number, prediction))
        if self.target_classes:
            codes = most_probable(prediction[None], self.tree.target_ends)[0]
            words = [names[k] for names, k in zip(self.target_classes, codes, strict=True)]
        return self._named(words)

    def _named(self, words: list[str]) -> list[str]:
        """Words of several targets after the names of these, if they have some."""
        if not self.target_names:
            return words
        return [f"{name} {word}" for name, word in zip(self.target_names, words, strict=True)]

    def label(self, node: int) -> int:
        """The class that `answer` names."""
        return int(self._labels[node])

    @cached_property
    def _labels(self) -> NDArray[np.intp]:
        shares = self._answers if self.costs is None else self.tree.predictions
        return labels_of(shares, self.costs)

    @cached_property
    def _answers(self) -> Floats:
        """Values that each node's prediction is made from."""
        return self.tree.answers

    def support(self, node: int) -> str:
        """``weight`` or ``weight/errors`` (classification), ``weight, mse 2.5`` (regression).

        Of classes of several targets ``weight, gini 0.2``.
        """
        tree = self.tree
        weight = self.number(tree.weight[node])
        if self.class_names is None:
            return f"{weight}, {self.error_name} {float(tree.impurity[node]):.{_ERROR_DIGITS}g}"
        statistics = tree.statistics[node]
        errors = np.delete(statistics, self.label(node)).sum()  # exactly 0 where pure
        return f"{weight}/{self.number(errors)}" if errors > 0 else weight

    @property
    def error_name(self) -> str:
        """Label of the impurity of a regression tree, or of several targets; else empty."""
        if self.target_classes:
            return self.tree.criterion
        return OF_REGRESSION[self.tree.criterion].label if self.tree.task == "regression" else ""

    def weights(self, node: int) -> str:
        """The weight of every class, ``[a 3, b 1]``; of each of several targets such a list."""
        lists, weights = [], iter(self.tree.statistics[node])
        for names in self.target_classes or [self.class_names or ()]:
            words = (f"{name} {self.number(next(weights))}" for name in names)
            lists.append(f"[{', '.join(words)}]")
        return " ".join(self._named(lists))

    def number(self, value: float) -> str:
        """Format `value`; see `format_number`."""
        return format_number(value, self.decimals)

    def threshold(self, feature: int, value: float) -> str:
        """Format a threshold, by more digits where another of its feature would read the same.

        Of ordered categories it is the last that goes to the first child.
        """
        if self.categories is not None and self.categories[feature] is not None:
            return level_below(self.categories[feature], value)
        decimals = self._more_digits.get((feature, float(value)), self.decimals)
        return format_number(value, decimals)

    @cached_property
    def _more_digits(self) -> dict[tuple[int, float], int | None]:
        """`decimals` of thresholds that need more than others, by feature and value."""
        return {} if self.decimals is None else more_digits(self.tree, self.decimals)

    def words_of_set(self, feature: int, codes: Int32s) -> tuple[str, str]:
        """Operator and operand of a test for some categories of a feature."""
        categories = None if self.categories is None else self.categories[feature]
        return words_of_set(categories, codes, self.most_categories)

    def _takes_missing(self, node: int, ordinal: int) -> bool:
        # The rule of growth where nothing was missing, which is not worth saying. Rows, not
        # weights: to the left if it has strictly more of them.
        if self.tree.missing_child[node] != ordinal:
            return False
        rows = self.tree.n_rows[self.tree.children(node)]
        return bool(ordinal != rows.size - 1 - rows[::-1].argmax())


def describe(
    estimator_or_tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    decimals: int | None = 4,
    all_categories: bool = False,
    of_targets: bool = False,
) -> Description:
    """Name the parts of a fitted estimator or a Tree; `model_of` has the names and errors."""
    model = model_of(
        estimator_or_tree, feature_names, class_names,
        only_shown=True, by_costs=True, of_targets=of_targets,
    )  # fmt: skip
    features = list(map(on_one_line, model.feature_names))
    classes = None
    if model.classes is not None:
        classes = [on_one_line(str(label)) for label in model.classes]
    most = None if all_categories else MOST_CATEGORIES
    targets = [[on_one_line(str(label)) for label in labels] for labels in model.target_classes]
    return Description(
        model.tree,
        features,
        classes,
        decimals,
        model.categories,
        most,
        model.costs,
        targets,
        list(map(on_one_line, model.target_names)),
    )


def shown_part(whole: Description, max_depth: int | None) -> Description:
    """The part down to a depth; its nodes keep their numbers, as those below come last."""
    if max_depth is None:
        return whole
    return replace(whole, tree=whole.tree.collapse(whole.tree.depth >= max_depth))


def words_of_set(
    categories: NDArray[Any] | None, codes: Int32s, most: int | None = MOST_CATEGORIES
) -> tuple[str, str]:
    """Operator and operand of a test for some categories; codes stand for themselves if None."""
    words = [_category(categories, int(code)) for code in codes[:most]]
    if len(words) == 1:
        return "=", words[0]
    if codes.size > len(words):
        words.append(f"... {codes.size - len(words):,} more")
    return "in", f"{{{', '.join(words)}}}"


def level_below(categories: Any, threshold: float) -> str:
    """The last of ordered categories that a threshold takes in.

    In quotes if it is a number and the order is not that of numbers: ``x <= 2.5`` would be misread.
    """
    level = _category(categories, int(np.clip(np.floor(threshold), 0, len(categories) - 1)))
    return f'"{level}"' if is_decimal(level) and not _ascend(categories) else level


def _ascend(categories: Any) -> bool:
    """Return whether ordered categories are numbers that ascend."""
    words = [str(category).replace(MINUS, "-") for category in categories]
    if not all(map(is_decimal, words)):
        return False
    numbers = list(map(float, words))
    return numbers == sorted(numbers)


def _category(categories: NDArray[Any] | None, code: int) -> str:
    if categories is None:
        return str(code)
    category = categories[code]
    if isinstance(category, str):
        return _word(category)
    exact = isinstance(category, (bool, np.bool_, int, np.integer))
    return str(category) if exact else format_number(category, None)


def descendants(tree: Tree) -> Int64s:
    """Number of nodes below each node."""
    return add_up(tree.parent, np.ones(tree.n_nodes, np.int64)) - 1


def wrapped(words: str, width: int) -> list[str]:
    """The text on lines of at most `width` letters, or of one category."""
    lines = [""]
    for word in words.split(", "):
        if lines[-1] and len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += ","
            lines.append("")
        lines[-1] += f", {word}" if lines[-1] else word
    return lines


def shorten(line: str) -> str:
    """The line, or where it is too long for a picture, its beginning and its end."""
    if len(line) <= LONGEST:
        return line
    kept = (LONGEST - 5) // 2
    return f"{line[:kept]} ... {line[-kept:]}"


def _word(category: str) -> str:
    """A category on one line, in double quotes where it could be mistaken."""
    if _UNCLEAR.search(category):
        category = f'"{category}"'
    return on_one_line(category)


def on_one_line(name: str) -> str:
    """The name with control characters as escapes."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), name)


_FIXED_POINT_BELOW = 1e16  # from here on a float64 is a multiple of 2
_MOST_DECIMALS = 16  # then numbers are written exactly


def format_number(value: float, decimals: int | None) -> str:
    """A number without superfluous digits.

    `decimals` are digits after the point, or significant digits of a number below 1; trailing zeros
    are removed. None writes the smallest number of digits that read back as the same float64.
    """
    value = float(value)
    if decimals is None:
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    size = abs(value)
    if size < 1 or size >= _FIXED_POINT_BELOW:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def more_digits(tree: Tree, decimals: int) -> dict[tuple[int, float], int | None]:
    """Thresholds that would read as a neighbour of theirs, and the decimals that prevent it.

    Two thresholds of one feature that are rounded to the same text would contradict each other on a
    path: ``x > 0.5``, and below it ``x <= 0.5``. By feature and threshold; None where only all
    digits distinguish.
    """
    nodes = np.flatnonzero((tree.split_kind == THRESHOLD_SPLIT) & np.isfinite(tree.threshold))
    return apart(tree.feature[nodes], tree.threshold[nodes], decimals)


def apart(
    feature: NDArray[Any], threshold: Floats, decimals: int
) -> dict[tuple[int, float], int | None]:
    """`more_digits` of thresholds and their features, in any order."""
    order = np.lexsort((threshold, feature))
    value, feature = threshold[order], feature[order]
    near = np.diff(value) <= 1.5 * 10.0**-decimals  # rounding moves each by half a digit at most
    near |= np.abs(value[1:]) >= _FIXED_POINT_BELOW
    near &= (np.diff(feature) == 0) & (np.diff(value) > 0)
    found: dict[tuple[int, float], int | None] = {}
    for i in np.flatnonzero(near):
        low, high = float(value[i]), float(value[i + 1])
        enough = _apart(low, high, decimals)
        if enough != decimals:
            for end in (low, high):
                key = int(feature[i]), end
                so_far = found.get(key, decimals)
                found[key] = None if so_far is None or enough is None else max(so_far, enough)
    return found


def _apart(low: float, high: float, decimals: int) -> int | None:
    """The minimum decimals, at least those given, that distinguish two numbers.

    From which on: either may be shown with more. 5.4999 and 5.5001 are 5 and 6, but both 5.5.
    """
    for alike in range(_MOST_DECIMALS, decimals - 1, -1):
        if format_number(low, alike) == format_number(high, alike):
            return None if alike == _MOST_DECIMALS else alike + 1
    return decimals
