"""Reports of a model: its size, its measures, and tables that add up over parts of the rows."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gputree.base.dtypes import Floats, Weight
from gputree.base.texts import aligned, amount, html_table, shown, tabled
from gputree.evaluation.predictions import (
    Answers,
    PerClass,
    confusion_rows,
    measures_of_classes,
    measures_of_quantities,
    score_rows,
)

# A table of a report: a dict a line, all with the same keys.
Lines = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Report:
    """A model and its predictions compared with the true labels, as J48, C5.0 and rpart print them.

    Printed, it is a table of words, in a notebook one of HTML; `as_dict` has the numbers.

    Attributes
    ----------
    size : dict of str to int
        Of a tree ``leaves``, ``nodes`` and ``depth``; of rules ``rules`` and ``conditions``; of
        a boosted model how many trees or rule sets it has, and their leaves or rules together.
    rows : int
        Number of rows that have weight.
    weight : float or None
        Weight of the rows, if they were given weights: then numbers of rows below are weights.
    measures : dict of str to float
        Of classes: ``right``, ``errors`` (rows), ``accuracy``, ``error_rate``, ``kappa``, and
        over all rows and classes the ``mean_absolute_error`` and ``root_mean_squared_error`` of
        the probabilities, as Weka has them; where errors have costs, the mean ``cost``. Of
        numbers: ``correlation``, ``mean_absolute_error``, ``root_mean_squared_error``,
        ``relative_absolute_error`` and ``root_relative_squared_error`` (to predicting the mean
        target of the training rows; of a forest, the mean over its trees of the mean target of the
        rows that each has drawn), ``r2``; of a quantile ``mean_pinball_loss``. NaN where a measure
        is not defined.
    classes : PerClass or None
        Scores of each class and the confusion matrix; None for regression.
    tables : dict of str to list of dict
        Of trees ``column_usage``, of rules that and ``each_rule``, of a boosted model
        ``each_trial``; see the estimator's `report`.
    """

    size: dict[str, int]
    rows: int
    weight: float | None
    measures: dict[str, float]
    classes: PerClass | None
    tables: dict[str, Lines] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers in a form that JSON can represent: NaN is None.

        Returns
        -------
        dict
            Items of `size`, ``rows``, ``weight`` if rows have weights, the measures by name; for
            classifiers ``labels``, ``precision``, ``recall``, ``f1``, ``support`` and
            ``confusion_matrix`` (true by predicted class); and the `tables`.
        """
        content: dict[str, Any] = self.size | {"rows": self.rows}
        if self.weight is not None:
            content["weight"] = self.weight
        content |= {k: None if np.isnan(v) else v for k, v in self.measures.items()}
        if self.classes is not None:
            content["labels"] = self.classes.labels.tolist()
            columns = zip(*self.classes.scores, strict=True)
            names = ("precision", "recall", "f1", "support")
            content |= dict(zip(names, map(list, columns), strict=True))
            content["confusion_matrix"] = self.classes.matrix.tolist()
        return content | self.tables

    def _head(self) -> dict[str, str]:
        """Size, rows and measures, by their names in words."""
        head = {name: f"{count:,}" for name, count in (self.size | {"rows": self.rows}).items()}
        if self.weight is not None:
            head["weight"] = amount(self.weight)
        measures = self.measures.copy()
        for count, share in (("right", "accuracy"), ("errors", "error_rate")):
            if count in measures:
                head[count] = f"{amount(measures.pop(count))} ({measures.pop(share):.2%})"
        values = {name.replace("_", " "): shown(value) for name, value in measures.items()}
        return head | values

    def __str__(self) -> str:
        parts = [aligned(self._head())]
        if self.classes is not None:
            parts += [tabled(score_rows(self.classes)), tabled(confusion_rows(self.classes))]
        return "\n\n".join([*parts, *table_texts(self.tables)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = [list(map(list, self._head().items()))]
        if self.classes is not None:
            tables += [score_rows(self.classes), confusion_rows(self.classes)]
        tables += _tables_in_words(self.tables)
        return "".join(html_table(rows, head=place > 0) for place, rows in enumerate(tables))


def table_texts(tables: dict[str, Lines]) -> list[str]:
    """The tables of a report as text, those without lines left out."""
    return list(map(tabled, _tables_in_words(tables)))


def _tables_in_words(tables: dict[str, Lines]) -> list[list[list[str]]]:
    return [_cells(lines) for lines in tables.values() if lines]


def usage_lines(share: Floats, names: Any) -> Lines:
    """The attribute usage of each column that is used, in descending order.

    `share` is of rows, of shape (d,); names that are None are x0, x1, ...
    """
    order = [f for f in np.argsort(-share, kind="stable").tolist() if share[f] > 0]
    return [
        {"column": f"x{f}" if names is None else str(names[f]), "usage": float(share[f])}
        for f in order
    ]


def _cells(lines: Lines) -> list[list[str]]:
    head = [key.replace("_", " ") for key in lines[0]]
    return [head, *([_cell(key, value) for key, value in line.items()] for line in lines)]


def _cell(key: str, value: Any) -> str:
    """Format fractions, of the keys that name them, counts and weights; None is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    if key in ("error_rate", "usage"):
        return f"{value:.1%}"
    return f"{value:.3f}" if key == "confidence" else amount(value)


# Fields that are numbers of rows, or weights: they add up over parts of the rows.
_ADDED = ("covered", "errors", "used", "wrong", "gained", "lost")


class TableSums:
    """The tables of a report, added up over parts of the rows.

    `names` are those of the columns, in their order.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._places = {str(name): place for place, name in enumerate(names)}
        self._total = 0.0
        self._tables: dict[str, Lines] = {}
        self._used: dict[str, float] = {}

    def add(self, tables: dict[str, Lines], weight: Weight, rows: int) -> None:
        """Add the tables of a part of the rows, by their weights or their number."""
        total = float(rows if weight is None else weight.sum())
        self._total += total
        for line in tables.get("column_usage", []):
            used = line["usage"] * total
            name, used = line["column"], used if weight is not None else round(used)
            self._used[name] = self._used.get(name, 0.0) + used
        for key, lines in tables.items():
            if key in self._tables and key != "column_usage":
                pairs = zip(self._tables[key], lines, strict=True)
                lines = [
                    one | {k: one[k] + other[k] for k in _ADDED if one.get(k) is not None}
                    for one, other in pairs
                ]
            self._tables[key] = lines

    @property
    def tables(self) -> dict[str, Lines]:
        """The tables of all rows."""
        share = np.zeros(len(self._places))
        for name, used in self._used.items():
            share[self._places[name]] = used / self._total
        found = {key: [line.copy() for line in lines] for key, lines in self._tables.items()}
        if "column_usage" in found:
            found["column_usage"] = usage_lines(share, list(self._places))
        for line in found.get("each_trial", []):
            line["error_rate"] = line["errors"] / self._total
        return found


def report(found: Answers, mean: float, size: dict[str, int], tables: dict[str, Lines]) -> Report:
    """The report of a model on rows whose true values are known.

    `mean` is the mean target of the training rows, of regression; `size` and `tables` are as of
    `Report`.
    """
    if found.labels is None:
        measures, classes = measures_of_quantities(found, mean), None
    else:
        measures, classes = measures_of_classes(found), PerClass(found)
    weight = None if found.weight is None else float(found.weight.sum())
    return Report(size, int(found.y.size), weight, measures, classes, tables)


def rows_of(weight: Weight, value: float) -> float:
    """A weight, as an int where it counts rows."""
    return int(value) if weight is None else float(value)
