"""Predictions compared with the true values, by scikit-learn's measures where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Weight
from gputree.base.texts import amount, shown
from gputree.evaluation.sums import ClassSums, Measure, Sums, sums_of_classes, sums_of_numbers
from gputree.inputs.labels import Labels
from gputree.inputs.targets import columns_of


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
    quantile: float | None = None  # the level of the quantile that is predicted, not a mean

    @property
    def measures(self) -> dict[str, Measure]:
        """Accuracy and log loss, or R2, MAE, RMSE, and the pinball loss of a quantile."""
        return self.sums.measures

    @property
    def sums(self) -> Sums:
        """Sums over the rows that measures are made of."""
        if self.labels is None or self.shares is None:
            return sums_of_numbers(self.y, self.predicted, self.weight, self.quantile)
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


def answers_by_target(estimator: Any, X: Any, y: Labels, weight: Weight = None) -> list[Answers]:
    """Predict rows whose true values are known, (n,), or (n, n_outputs) of several targets.

    Rows of weight zero take no part.
    """
    truth, predicted = columns_of(np.asarray(y)), columns_of(estimator.predict(X))
    pairs = list(zip(truth, predicted, strict=True))
    if not hasattr(estimator, "classes_"):
        given = estimator.get_params(deep=False)
        level = given["quantile"] if given.get("criterion") == "quantile" else None
        return [_weighed(Answers(*pair, None, None, weight, quantile=level)) for pair in pairs]
    classes, known = estimator.classes_, estimator.predict_proba(X)
    if not isinstance(classes, list):
        classes, known = [classes], [known]
    found = []
    for pair, of_target, shares in zip(pairs, classes, known, strict=True):
        labels = np.union1d(of_target, pair[0])
        of_labels = np.zeros((pair[0].size, labels.size))
        of_labels[:, np.searchsorted(labels, of_target)] = shares
        found.append(Answers(*pair, of_labels, labels, weight, _costs_of(estimator, *pair)))
    return list(map(_weighed, found))


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
        return Answers(**found, shares=None, labels=None, quantile=parts[0].quantile)
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


def measures_of_quantities(given: Answers, mean: float) -> dict[str, float]:
    """Errors, also relative to predicting the mean of the training rows."""
    basic = given.measures
    off, apart = given.y - given.predicted, given.y - mean
    squared = _ratio(given.total(off**2), given.total(apart**2))
    found = {
        "correlation": _correlation(given),
        "mean_absolute_error": basic["MAE"].value,
        "root_mean_squared_error": basic["RMSE"].value,
        "relative_absolute_error": _ratio(given.total(np.abs(off)), given.total(np.abs(apart))),
        "root_relative_squared_error": float(np.sqrt(squared)),
        "r2": basic["R2"].value,
    }
    if given.quantile is not None:
        found["mean_pinball_loss"] = basic["pinball loss"].value
    return found


def _correlation(given: Answers) -> float:
    """Correlation of targets and predictions; NaN where one of them does not vary."""
    if np.ptp(given.y) == 0 or np.ptp(given.predicted) == 0:
        return np.nan
    spread = np.cov(given.y, given.predicted, aweights=given.weight, ddof=0)
    return float(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))


def _ratio(a: float, b: float) -> float:
    return a / b if b else np.nan
