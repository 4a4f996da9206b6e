"""An ordered set of rules, for reading and for prediction."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import WORD, Words, lowest_bit, meet_all
from gputree.base.dtypes import Floats, Int32s, Int64s, Values
from gputree.base.sklearn import StrOptions, validate_params
from gputree.base.texts import html_table
from gputree.base.threads import run
from gputree.compilation import kernel
from gputree.errors import place_in
from gputree.export.describe import (
    MOST_CATEGORIES,
    apart,
    format_number,
    level_below,
    on_one_line,
    words_of_set,
)
from gputree.export.model import Names, check_names
from gputree.export.parameters import checked, valid_values
from gputree.rules.conditions import ClassRule, Condition, Output, Rules, write_sql
from gputree.rules.coverage import Masks

# Rows in the class proportions of the table that are added to the rows of each rule. Mean log
# loss over 22 real tables, by the rows that a rule decides: 0.491 with 1, 0.475 with 2, 0.491 with
# one per class; by the rows that it covers: 0.508, 0.491, 0.500.
PRIOR_WEIGHT = 2.0

MOST_SHOWN = 100  # maximum number of rules shown in a notebook

ANSWERED = 1 << 14  # minimum number of rows that one thread predicts at a time

_SQL_PARAMETERS = {
    "output": [StrOptions({"prediction", "confidence", "rule"})],
    **{name: valid_values()[name] for name in ("dialect", "table", "feature_names", "class_names")},
}

JSON_FORMAT = "gputree-rules"
JSON_VERSION = 1


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules in the order in which they are tried, and a class for rows that none covers.

    ``str(rules)`` prints them, and a notebook shows a table of the first 100; ``len(rules)`` is
    their number, ``rules[0]`` the first, and a loop gives one after the other.

    Attributes
    ----------
    rules : Rules
        Conditions and classes as arrays.
    confidence : float64 array of shape (R,)
        One minus the pessimistic error rate of each rule.
    class_weights : float64 array of shape (R, K)
        Weight of the training rows that each rule covers, by class.
    default : int
        Place in `classes` of the class of rows that no rule covers.
    decided_weights : float64 array of shape (R + 1, K)
        Weight of the training rows that each rule decides, because no rule before it covers them,
        and behind them of those that no rule covers, by class.
    names : Names
        Of the columns, the classes and the categories.
    """

    rules: Rules
    confidence: Floats
    class_weights: Floats
    default: int
    decided_weights: Floats
    names: Names

    @property
    def classes(self) -> NDArray[Any]:
        """Class labels, ascending."""
        assert self.names.classes is not None
        return self.names.classes

    @property
    def n_conditions(self) -> int:
        """Conditions of all rules."""
        return int(self.rules.condition.size)

    @cached_property
    def coverage(self) -> Floats:
        """Weight of the training rows that each rule covers, shape (R,)."""
        return self.class_weights.sum(axis=1)

    @cached_property
    def errors(self) -> Floats:
        """Weight of the rows of other classes among them, shape (R,)."""
        others = self.class_weights.copy()
        others[np.arange(len(self)), self.rules.label] = 0.0
        return others.sum(axis=1)

    def __len__(self) -> int:
        return int(self.rules.label.size)

    @overload
    def __getitem__(self, place: int) -> ClassRule: ...
    @overload
    def __getitem__(self, place: slice) -> list[ClassRule]: ...
    def __getitem__(self, place: int | slice) -> ClassRule | list[ClassRule]:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        place = place_in(place, len(self), "rules")
        return ClassRule(
            tuple(self.rules.conditions[i] for i in self.rules.of(place)),
            self.classes[self.rules.label[place]],
            float(self.coverage[place]),
            float(self.errors[place]),
            float(self.confidence[place]),
            self.class_weights[place],
            self._line(place, self.names, 4),
        )

    def __iter__(self) -> Iterator[ClassRule]:
        return (self[place] for place in range(len(self)))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<RuleSet of {len(self)} rules, {self.n_conditions} conditions>"

    def decide(self, values: Values, n_threads: int = 1) -> Int32s:
        """The rule that decides each row: the first that covers it; R where none does.

        Parameters
        ----------
        values : float array of shape (n_rows, n_features)
            Numbers, codes of categories, NaN where missing.
        n_threads : int, default=1
        """
        masks = Masks(values, self.rules.conditions)
        found = np.full(values.shape[0], len(self), np.int32)

        def decide(first: int) -> None:
            block = masks.block(first)
            part = found[first : first + masks.height]
            _first_rules(block.rows, block.masks, self.rules.begin, self.rules.condition, part)

        n = values.shape[0]
        masks.height = min(masks.height, -(-max(n // n_threads, ANSWERED) // WORD) * WORD)
        run(n_threads, decide, [(first,) for first in range(0, n, masks.height)])
        return found

    @property
    def answers(self) -> Int64s:
        """Code of the class that each rule predicts, and last of the default; shape (R + 1,)."""
        return np.append(self.rules.label, self.default)

    @cached_property
    def probabilities(self) -> Floats:
        """Class proportions where each rule, and behind them no rule, decides.

        Of the training rows that it decides (those that it covers where it decides none), and of
        `PRIOR_WEIGHT` rows more, of the class proportions of all training rows. Shape (R + 1, K).
        """
        weights = self.decided_weights.copy()
        idle = np.flatnonzero(weights[:-1].sum(axis=1) == 0.0)
        weights[idle] = self.class_weights[idle]
        prior = self.decided_weights.sum(axis=0)
        weights += PRIOR_WEIGHT * (prior / prior.sum())
        return weights / weights.sum(axis=1, keepdims=True)

    @checked
    def to_text(
        self,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        decimals: int | None = 4,
    ) -> str:
        """Print the rules, one per line, in the order in which they are tried.

        A line ends in the rule's confidence, and in the weight of the training rows that it
        covers, with that of the rows of other classes among them: ``[0.937] (45/1)``.

        Parameters
        ----------
        feature_names : sequence of str or None, default=None
            None takes the names seen in `fit`, else x0, x1, ...
        class_names : sequence of str or None, default=None
            In the order of `classes`; None takes `classes` itself.
        decimals : int or None, default=4
            Of thresholds, as in `gputree.export_text`.

        Returns
        -------
        str
        """
        names = self._named(feature_names, class_names)
        lines = [
            f"Rule {place + 1}: {self._line(place, names, decimals)}" for place in range(len(self))
        ]
        default = on_one_line(str(names.classes[self.default]))  # type: ignore[index]
        return "\n".join([*lines, f"Default: class {default}"])

    def _named(
        self, feature_names: Sequence[str] | None, class_names: Sequence[Any] | None
    ) -> Names:
        features = check_names("feature_names", feature_names, len(self.names.feature_names))
        classes = check_names("class_names", class_names, self.classes.size)
        return Names(
            self.names.feature_names if features is None else features,
            self.classes if classes is None else np.array(classes, dtype=object),
            self.names.categories,
            ordered=self.names.ordered,
        )

    def _line(self, place: int, names: Names, decimals: int | None) -> str:
        conditions, label, confidence, weight = self._parts(place, names, decimals)
        return f"{conditions} -> class {label} [{confidence}] ({weight})"

    def _parts(self, place: int, names: Names, decimals: int | None) -> tuple[str, str, str, str]:
        """Conditions, class, confidence and weights of a rule, in words."""
        conditions = [self.rules.conditions[i] for i in self.rules.of(place)]
        tests = " and ".join(self._words(condition, names, decimals) for condition in conditions)
        label = on_one_line(str(names.classes[self.rules.label[place]]))  # type: ignore[index]
        weight = format_number(self.coverage[place], 2)
        if self.errors[place] > 0:
            weight += f"/{format_number(self.errors[place], 2)}"
        return tests, label, f"{self.confidence[place]:.3f}", weight

    def _repr_html_(self) -> str:
        shown = range(min(len(self), MOST_SHOWN))
        rows = [["rule", "if", "class", "confidence", "rows/errors"]]
        rows += [[str(place + 1), *self._parts(place, self.names, 4)] for place in shown]
        if more := len(self) - len(shown):
            rows.append(["...", f"{more:,} more", "", "", ""])
        default = on_one_line(str(self.classes[self.default]))
        return html_table([*rows, ["default", "no rule", default, "", ""]])

    def _words(self, condition: Condition, names: Names, decimals: int | None) -> str:
        name = on_one_line(names.feature_names[condition.feature])
        if condition.kind == "in":
            codes = np.array(condition.codes, np.int32)
            words = words_of_set(names.categories[condition.feature], codes, MOST_CATEGORIES)
            return f"{name} {' '.join(words)}"
        if condition.kind in ("present", "missing"):
            return f"{name} is {condition.kind}"
        if condition.feature in names.ordered:
            level = level_below(names.categories[condition.feature], condition.threshold)
            return f"{name} {condition.kind} {level}"
        if decimals is not None:
            decimals = self._more_digits(decimals).get(condition[::2], decimals)
        return f"{name} {condition.kind} {format_number(condition.threshold, decimals)}"

    def _more_digits(self, decimals: int) -> dict[Any, int | None]:
        """Decimals of thresholds that would otherwise be printed like another of their column."""
        found = self._digits.get(decimals)
        if found is None:
            numeric = [one for one in self.rules.conditions if one.kind in ("<=", ">")]
            feature = np.array([one.feature for one in numeric], np.int64)
            threshold = np.array([one.threshold for one in numeric], np.float64)
            found = self._digits[decimals] = apart(feature, threshold, decimals)
        return found

    @cached_property
    def _digits(self) -> dict[int, dict[Any, int | None]]:
        return {}

    def to_json(self, *, indent: int | None = None) -> str:
        """Write the rules as JSON: all that `predict` and `predict_proba` need, in values.

        An object of ``format``, ``version``, ``features``, ``classes``, ``rules`` and ``default``.
        A rule has ``conditions``, ``class``, ``confidence``, ``coverage``, ``errors``,
        ``class_weights`` and ``probabilities``; a condition ``feature``, ``column`` (from 0),
        ``operator`` ("<=", ">", "in", "present" or "missing") and ``threshold`` or ``values``. The
        first rule whose conditions all hold decides; a missing value satisfies "missing" alone.
        Conditions for ordered categories are "in" those on their side; there "missing" has the
        ``values`` that are known, and holds for all others, too.

        Parameters
        ----------
        indent : int or None, default=None
            As of `json.dumps`.

        Returns
        -------
        str
        """
        classes = self.classes.tolist()
        default = {
            "class": classes[self.default],
            "coverage": float(self.decided_weights[-1].sum()),
            "class_weights": self.decided_weights[-1].tolist(),
            "probabilities": self.probabilities[-1].tolist(),
        }
        whole = {
            "format": JSON_FORMAT,
            "version": JSON_VERSION,
            "features": [str(name) for name in self.names.feature_names],
            "classes": classes,
            "rules": [self._plain(place) for place in range(len(self))],
            "default": default,
        }
        return json.dumps(whole, indent=indent, ensure_ascii=False, allow_nan=False)

    def _plain(self, place: int) -> dict[str, Any]:
        conditions = [self.rules.conditions[i] for i in self.rules.of(place)]
        return {
            "conditions": [self._plain_condition(condition) for condition in conditions],
            "class": self.classes.tolist()[self.rules.label[place]],
            "confidence": float(self.confidence[place]),
            "coverage": float(self.coverage[place]),
            "errors": float(self.errors[place]),
            "class_weights": self.class_weights[place].tolist(),
            "probabilities": self.probabilities[place].tolist(),
        }

    def _plain_condition(self, condition: Condition) -> dict[str, Any]:
        condition, feature = condition.as_set(self.names), condition.feature
        found: dict[str, Any] = {
            "feature": str(self.names.feature_names[feature]),
            "column": feature,
            "operator": condition.kind,
        }
        if condition.kind == "in" or condition.codes:
            found["values"] = self.names.words(feature, np.array(condition.codes, np.int32))
        elif condition.kind in ("<=", ">"):
            found["threshold"] = condition.threshold
        return found

    @validate_params(_SQL_PARAMETERS, prefer_skip_nested_validation=False)
    def to_sql(
        self,
        *,
        dialect: Literal["duckdb", "postgres", "sqlite"] = "duckdb",
        output: Output = "prediction",
        table: str | None = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> str:
        """Write the rules as one CASE expression of SQL, with the predictions of `predict`.

        Parameters
        ----------
        dialect : "duckdb", "postgres" or "sqlite", default="duckdb"
        output : "prediction", "confidence" or "rule", default="prediction"
            The label; the confidence of the rule that decides, NULL where none does; or its
            number, from 1, and 0 where none does.
        table : str or None, default=None
            Write a query that adds the prediction to the rows of this table, instead of the
            expression alone.
        feature_names : sequence of str or None, default=None
            Names of columns; None takes the names seen in `fit`, else x0, x1, ...
        class_names : sequence or None, default=None
            In the order of `classes`; None takes `classes` itself.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            A name, label or category cannot be written in SQL.
        """
        names = self._named(feature_names, class_names)
        described = self.rules, self.default, self.confidence
        return write_sql(names, *described, dialect, output, table)


@kernel
def _first_rules(
    rows: Words, masks: Words, begin: Int64s, condition: Int64s, found: Int32s
) -> None:
    """Write the first rule that covers each row of a block; other rows are not changed."""
    for w in range(rows.size):
        open_rows = rows[w]
        for rule in range(begin.size - 1):
            met = meet_all(open_rows, masks, w, begin, condition, rule)
            open_rows &= ~met
            while met != 0:
                found[w * WORD + lowest_bit(met)] = rule
                met &= met - np.uint64(1)
            if open_rows == 0:
                break
