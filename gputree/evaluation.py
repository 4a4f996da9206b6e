"""Quality of a model's predictions, by scikit-learn's measures where it has them.

Sums over rows from which measures are computed; sums of batches add up.

Counts are exact; sums of numbers are those of scikit-learn's measures, as far as one batch goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats
from gputree.base.texts import aligned, amount, html_table, shown, tabled
from gputree.inputs.labels import Labels


class Answers(NamedTuple):
    """Predictions of a model and the true values."""

    y: NDArray[Any]  # (n_rows,)
    predicted: NDArray[Any]  # (n_rows,)
    shares: Floats | None  # (n_rows, n_labels): of each of `labels`; None for regression
    labels: NDArray[Any] | None  # (n_labels,): the classes of the model and of `y`, in their order
    # (n_rows,): what the rows count, more than 0; None where they count the same
    weight: Weight = None
    # (n_rows,): what the predictions cost, NaN for labels that the model does not know;
    # None without costs
    cost: Floats | None = None

    @property
    def measures(self) -> dict[str, Measure]:
        """Accuracy and log loss, or R2, MAE and RMSE."""
        return self.sums.measures

    @property
    def sums(self) -> Sums:
        """Sums over the rows that measures are made of."""
        if self.labels is None or self.shares is None:
            return sums_of_numbers(self.y, self.predicted, self.weight)
        return sums_of_classes(
            self.y, self.predicted, self.shares, self.labels, self.weight, self.cost
        )

    def of_rows(self, rows: slice | NDArray[np.integer]) -> Answers:
        """Select rows."""
        names = ("y", "predicted", "shares", "weight", "cost")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        found: dict[str, Any] = {k: v if v is None else v[rows] for k, v in given.items()}
        return self._replace(**found)

    def total(self, of_rows: NDArray[Any]) -> float:
        """Weighted sum of a number per row."""
        return float(of_rows.sum() if self.weight is None else self.weight @ of_rows)


def answers(estimator: Any, X: Any, y: Labels, weight: Weight = None) -> Answers:
    """Predict rows whose true values are known; rows of weight zero take no part."""
    y, predicted = np.asarray(y), estimator.predict(X)
    if not hasattr(estimator, "classes_"):
        return _weighed(Answers(y, predicted, None, None, weight))
    classes = estimator.classes_
    labels = np.union1d(classes, y)
    shares = np.zeros((y.size, labels.size))
    shares[:, np.searchsorted(labels, classes)] = estimator.predict_proba(X)
    return _weighed(
        Answers(y, predicted, shares, labels, weight, _costs_of(estimator, y, predicted))
    )


def pooled(parts: list[Answers]) -> Answers:
    """Join the predictions of several models, each for other rows."""
    if any(part.weight is not None for part in parts):  # of some files of ARFF
        parts = [p if p.weight is not None else p._replace(weight=np.ones(p.y.size)) for p in parts]
    found: dict[str, Any] = {
        key: None
        if getattr(parts[0], key) is None
        else np.concatenate([getattr(part, key) for part in parts])
        for key in ("y", "predicted", "weight", "cost")
    }
    if parts[0].labels is None:
        return Answers(**found, shares=None, labels=None)
    of_parts: list[NDArray[Any]] = [part.labels for part in parts if part.labels is not None]
    labels = np.unique(np.concatenate(of_parts))
    shares = [np.zeros((part.y.size, labels.size)) for part in parts]
    for placed, part, classes in zip(shares, parts, of_parts, strict=True):
        placed[:, np.searchsorted(labels, classes)] = part.shares
    return Answers(**found, shares=np.concatenate(shares), labels=labels)


def in_blocks(parts: Iterable[Answers], rows: int) -> Iterator[Answers]:
    """Yield blocks of `rows` rows: sums of blocks do not depend on how rows were read."""
    waiting: list[Answers] = []
    n = 0
    for part in parts:
        begin, end = 0, part.y.size
        while n + end - begin >= rows:
            stop = begin + rows - n
            yield pooled([*waiting, part.of_rows(slice(begin, stop))])
            waiting, n, begin = [], 0, stop
        if begin < end:
            waiting.append(part.of_rows(slice(begin, end)))
            n += end - begin
    if waiting:
        yield pooled(waiting)


def _costs_of(estimator: Any, y: NDArray[Any], predicted: NDArray[Any]) -> Any:
    """Cost of each prediction, shape (n_rows,); None where all errors cost the same."""
    costs = getattr(getattr(estimator, "estimator_", estimator), "_given_costs", None)
    if costs is None:
        return None
    classes = estimator.classes_
    true, guess = (np.searchsorted(classes, labels) for labels in (y, predicted))
    true = true.clip(max=classes.size - 1)
    return np.where(classes[true] == y, costs[true, guess], np.nan)


def _weighed(given: Answers) -> Answers:
    """The rows that have weight."""
    if given.weight is None or given.weight.all():
        return given
    return given.of_rows(np.flatnonzero(given.weight))


class PerClass:
    """Precision, recall and F1, and the confusion matrix, by scikit-learn."""

    def __init__(self, found: Answers | Sums) -> None:
        from sklearn.metrics import precision_recall_fscore_support

        sums = _class_sums(found)
        self.labels, self.matrix = sums.labels, sums.matrix
        true, guess, weight = _pairs(sums)
        *by_class, support = precision_recall_fscore_support(
            true, guess, labels=self.labels, sample_weight=weight, zero_division=0.0
        )
        support = self.matrix.sum(axis=1)  # integers where these are rows
        columns = [column.tolist() for column in (*by_class, support)]
        self.scores = list(zip(*columns, strict=True))
        self.means = tuple(np.mean(np.array(self.scores)[:, :3], axis=0).tolist())

    def confusions(self) -> Iterator[tuple[Any, Any, float]]:
        """True class, predicted class, rows (or their weight)."""
        for true, row in zip(self.labels.tolist(), self.matrix.tolist(), strict=True):
            for guess, rows in zip(self.labels.tolist(), row, strict=True):
                yield true, guess, rows


def score_rows(classes: PerClass) -> list[list[str]]:
    """A table of the scores of each class, as text cell by cell."""
    rows = [["class", "precision", "recall", "F1", "rows"]]
    for label, (*scores, support) in zip(classes.labels.tolist(), classes.scores, strict=True):
        rows.append([str(label), *map(shown, scores), amount(support)])
    return [*rows, ["mean", *map(shown, classes.means), amount(sum(s[3] for s in classes.scores))]]


def confusion_rows(classes: PerClass) -> list[list[str]]:
    """A table of the confusion matrix, as text cell by cell."""
    labels = [str(label) for label in classes.labels.tolist()]
    rows = [["true class \\ predicted", *labels]]
    counts = classes.matrix.tolist()
    rows += [[label, *map(amount, row)] for label, row in zip(labels, counts, strict=True)]
    return rows


# ------------------------------------------------------------------- reports
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
        Those that have weight.
    weight : float or None
        Of the rows, where they were given weights. Then rows below are their weights.
    measures : dict of str to float
        Of classes: ``right``, ``errors`` (rows), ``accuracy``, ``error_rate``, ``kappa``, and
        over all rows and classes the ``mean_absolute_error`` and ``root_mean_squared_error`` of
        the probabilities, as Weka has them; where errors have costs, the mean ``cost``. Of
        numbers: ``correlation``, ``mean_absolute_error``, ``root_mean_squared_error``,
        ``relative_absolute_error`` and ``root_relative_squared_error`` (to predicting the mean
        target of the training rows; of a forest, the mean over its trees of the mean target of the
        rows that each has drawn), ``r2``. NaN where a measure is not defined.
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
    """Shares by their names, and counts or weights; nothing for None."""
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
                lines = [_added(one, other) for one, other in pairs]
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


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A line of both parts of the rows."""
    return one | {k: one[k] + other[k] for k in _ADDED if one.get(k) is not None}


def report(found: Answers, mean: float, size: dict[str, int], tables: dict[str, Lines]) -> Report:
    """The report of a model on rows whose true values are known.

    `mean` is the mean target of the training rows, of regression; `size` and `tables` are as of
    `Report`.
    """
    if found.labels is None:
        measures, classes = _of_quantities(found, mean), None
    else:
        measures, classes = measures_of_classes(found), PerClass(found)
    weight = None if found.weight is None else float(found.weight.sum())
    return Report(size, int(found.y.size), weight, measures, classes, tables)


def rows_of(weight: Weight, value: float) -> float:
    """A weight, as an int where it counts rows."""
    return int(value) if weight is None else float(value)


# Of the measures of classes, kappa and the errors of the probabilities, as Weka has them.
AS_WEKA = ("kappa", "mean_absolute_error", "root_mean_squared_error")


def measures_of_classes(given: Answers | Sums) -> dict[str, float]:
    """Measures of a classifier, for `Report.measures`."""
    from sklearn.metrics import cohen_kappa_score

    sums = _class_sums(given)
    total, right, k = sums.hits.weight, sums.hits.total, sums.labels.size
    errors = float(sums.matrix.sum() - np.trace(sums.matrix))
    kappa = 1.0  # one label, always predicted; scikit-learn has NaN there
    if errors:
        true, guess, weight = _pairs(sums)
        kappa = float(cohen_kappa_score(true, guess, labels=sums.labels, sample_weight=weight))
    found = {
        "right": right if sums.weighted else int(right),
        "errors": errors if sums.weighted else int(errors),
        "accuracy": right / total,
        "error_rate": errors / total,
        "kappa": kappa,
        "mean_absolute_error": sums.absolute.mean / k,
        "root_mean_squared_error": float(np.sqrt(sums.squared.mean / k)),
    }
    return found if sums.cost is None else found | {"cost": sums.cost.mean}


def _class_sums(given: Answers | Sums) -> ClassSums:
    sums = given.sums if isinstance(given, Answers) else given
    assert isinstance(sums, ClassSums)
    return sums


def _pairs(sums: ClassSums) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """True and predicted labels as rows of scikit-learn's functions, and how many are such."""
    k = sums.labels.size
    return sums.labels.repeat(k), np.tile(sums.labels, k), sums.matrix.ravel().astype(np.float64)


def _of_quantities(given: Answers, mean: float) -> dict[str, float]:
    """Errors, also relative to predicting the mean of the training rows."""
    basic = given.measures
    off, apart = given.y - given.predicted, given.y - mean
    squared = _ratio(given.total(off**2), given.total(apart**2))
    return {
        "correlation": _correlation(given),
        "mean_absolute_error": basic["MAE"].value,
        "root_mean_squared_error": basic["RMSE"].value,
        "relative_absolute_error": _ratio(given.total(np.abs(off)), given.total(np.abs(apart))),
        "root_relative_squared_error": float(np.sqrt(squared)),
        "r2": basic["R2"].value,
    }


def _correlation(given: Answers) -> float:
    """Correlation of targets and predictions; NaN where one of them does not vary."""
    if np.ptp(given.y) == 0 or np.ptp(given.predicted) == 0:
        return np.nan
    spread = np.cov(given.y, given.predicted, aweights=given.weight, ddof=0)
    return float(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))


def _ratio(a: float, b: float) -> float:
    return a / b if b else np.nan


Weight = Floats | None


class Measure(NamedTuple):
    """A measure over rows, and its standard error."""

    value: float
    error: float


class Moments(NamedTuple):
    """Weighted sums of n numbers, with their spread around the mean."""

    n: int
    weight: float
    total: float  # weighted sum
    spread: float  # weighted sum of squares around the mean
    squares: float  # sum of squared weights
    mean_by_squares: float  # mean by squared weights, and the spread around it by these
    spread_by_squares: float

    @classmethod
    def of(cls, values: NDArray[Any], weight: Weight) -> Moments:
        """Compute the sums of numbers of shape (n,), n > 0."""
        if weight is None:
            n, total = values.size, float(values.sum())
            spread = float(((values - total / n) ** 2).sum())
            return cls(n, float(n), total, spread, float(n), total / n, spread)
        sums = float(weight.sum()), float((values * weight).sum())
        spread = float((weight * (values - sums[1] / sums[0]) ** 2).sum())
        second = weight**2
        mean = float(np.average(values, weights=second))
        by_squares = float((second * (values - mean) ** 2).sum())
        return cls(values.size, *sums, spread, float(second.sum()), mean, by_squares)

    def joined(self, other: Moments) -> Moments:
        """Add the sums of two sets of rows (Chan, Golub and LeVeque 1979)."""
        weight, squares = self.weight + other.weight, self.squares + other.squares
        share = other.squares / squares
        gap = other.mean - self.mean
        gap_by_squares = other.mean_by_squares - self.mean_by_squares
        between = self.weight * other.weight / weight * gap**2
        by_squares = self.squares * share * gap_by_squares**2
        return Moments(
            self.n + other.n,
            weight,
            self.total + other.total,
            self.spread + other.spread + between,
            squares,
            self.mean_by_squares + share * gap_by_squares,
            self.spread_by_squares + other.spread_by_squares + by_squares,
        )

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return self.total / self.weight

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN of one row."""
        if self.n < 2:
            return np.nan
        off = self.squares * (self.mean_by_squares - self.mean) ** 2
        squares = (self.spread_by_squares + off) / self.weight**2
        return float(np.sqrt(squares * self.n / (self.n - 1)))


class ClassSums(NamedTuple):
    """Predicted classes compared with the true ones, of K labels."""

    labels: NDArray[Any]  # (K,) ascending
    matrix: NDArray[Any]  # (K, K) rows, or weight, by true and predicted label
    hits: Moments
    loss: Moments  # log loss, in nats
    # sums over labels of what probabilities are off, and of its square
    absolute: Moments
    squared: Moments
    cost: Moments | None  # NaN where a true label has no cost
    weighted: bool

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.hits.n

    @property
    def weight(self) -> float | None:
        """Total weight of the rows; None where they were given no weights."""
        return self.hits.weight if self.weighted else None

    @property
    def measures(self) -> dict[str, Measure]:
        """Accuracy and log loss; the mean cost, where errors have costs."""
        loss = self.loss.mean if self.labels.size > 1 else 0.0  # scikit-learn refuses one label
        found = {
            "accuracy": Measure(self.hits.mean, self.hits.error),
            "log loss": Measure(loss, self.loss.error),
        }
        if self.cost is not None:
            found["cost"] = Measure(self.cost.mean, self.cost.error)
        return found

    def of_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The matrix over more labels."""
        matrix = np.zeros((labels.size, labels.size), self.matrix.dtype)
        places = np.searchsorted(labels, self.labels)
        matrix[np.ix_(places, places)] = self.matrix
        return matrix

    def joined(self, other: ClassSums) -> ClassSums:
        """Add the sums of two sets of rows; the labels are their union."""
        labels = np.union1d(self.labels, other.labels)
        names = ("hits", "loss", "absolute", "squared")
        moments = {name: getattr(self, name).joined(getattr(other, name)) for name in names}
        cost = None
        if self.cost is not None and other.cost is not None:
            cost = self.cost.joined(other.cost)
        matrix = self.of_labels(labels) + other.of_labels(labels)
        weighted = self.weighted or other.weighted
        return self._replace(labels=labels, matrix=matrix, cost=cost, weighted=weighted, **moments)


class NumberSums(NamedTuple):
    """Predicted numbers compared with the true ones."""

    target: Moments
    absolute: Moments  # errors
    squared: Moments
    weighted: bool
    labels: None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.target.n

    @property
    def weight(self) -> float | None:
        """Total weight of the rows; None where they were given no weights."""
        return self.target.weight if self.weighted else None

    @property
    def measures(self) -> dict[str, Measure]:
        """R2, MAE and RMSE."""
        variance, rmse = self.target.spread / self.target.weight, np.sqrt(self.squared.mean)
        r2 = np.nan
        if self.rows > 1:
            left = self.squared.total / self.target.spread if variance else float(rmse > 0.0)
            r2 = 1.0 - left
        squares = self.squared.error
        return {
            # the variance of the target is taken as exact, the square root as linear
            "R2": Measure(r2, squares / variance if variance else np.nan),
            "MAE": Measure(self.absolute.mean, self.absolute.error),
            "RMSE": Measure(float(rmse), squares / (2.0 * float(rmse)) if rmse else 0.0),
        }

    def joined(self, other: NumberSums) -> NumberSums:
        """Add the sums of two sets of rows."""
        names = ("target", "absolute", "squared")
        moments = {name: getattr(self, name).joined(getattr(other, name)) for name in names}
        return self._replace(weighted=self.weighted or other.weighted, **moments)


Sums = ClassSums | NumberSums


def sums_of_classes(
    truth: NDArray[Any],
    predicted: NDArray[Any],
    shares: Floats,
    labels: NDArray[Any],
    weight: Weight,
    cost: Floats | None,
) -> ClassSums:
    """Sums of a classifier's predictions of n rows.

    Parameters
    ----------
    truth, predicted : arrays of shape (n,)
    shares : float64 array of shape (n, K)
        Probability of each label.
    labels : array of shape (K,)
        Ascending; all that occur are among them.
    weight, cost : float64 arrays of shape (n,), or None
    """
    codes, guesses = (np.searchsorted(labels, names) for names in (truth, predicted))
    k = labels.size
    matrix = np.bincount(codes * k + guesses, weight, minlength=k * k).reshape(k, k)
    eps = np.finfo(np.float64).eps  # as scikit-learn clips probabilities
    of_truth = shares[np.arange(codes.size), codes].clip(eps, 1.0 - eps)
    off = shares.copy()
    off[np.arange(codes.size), codes] -= 1.0
    return ClassSums(
        labels,
        matrix,
        Moments.of((codes == guesses).astype(np.float64), weight),
        Moments.of(-np.log(of_truth), weight),
        Moments.of(np.abs(off).sum(axis=1), weight),
        Moments.of((off**2).sum(axis=1), weight),
        None if cost is None else Moments.of(cost, weight),
        weight is not None,
    )


def sums_of_numbers(truth: Floats, predicted: Floats, weight: Weight) -> NumberSums:
    """Sums of a regressor's predictions of n rows, each argument of shape (n,)."""
    truth = np.asarray(truth, np.float64)
    off = truth - predicted
    target, absolute, squared = (Moments.of(one, weight) for one in (truth, np.abs(off), off**2))
    return NumberSums(target, absolute, squared, weight is not None)
