"""How good the answers of a model are, by scikit-learn's measures where it has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array

from gputree._texts import aligned, shown, tabled


class Measure(NamedTuple):
    """A measure over rows, and its standard error."""

    value: float
    error: float


class Answers(NamedTuple):
    """What a model answered, beside what is true.

    Attributes
    ----------
    y : array of shape (n_rows,)
    predicted : array of shape (n_rows,)
    shares : float64 array of shape (n_rows, n_labels), or None
        Of each of `labels`; None for regression.
    labels : array of shape (n_labels,), or None
        The classes of the model and of `y`, in their order.
    """

    y: NDArray[Any]
    predicted: NDArray[Any]
    shares: NDArray[np.float64] | None
    labels: NDArray[Any] | None

    @property
    def measures(self) -> dict[str, Measure]:
        """Accuracy and log loss, or R2, MAE and RMSE."""
        return _of_numbers(self) if self.labels is None else _of_classes(self)


def answers(estimator: Any, X: Any, y: NDArray[Any]) -> Answers:
    """Let a model answer for rows whose truth is known."""
    predicted = estimator.predict(X)
    if not hasattr(estimator, "classes_"):
        return Answers(y, predicted, None, None)
    classes = estimator.classes_
    labels = np.union1d(classes, y)
    shares = np.zeros((y.size, labels.size))
    shares[:, np.searchsorted(labels, classes)] = estimator.predict_proba(X)
    return Answers(y, predicted, shares, labels)


def _of_classes(given: Answers) -> dict[str, Measure]:
    from sklearn.metrics import accuracy_score, log_loss

    assert given.labels is not None
    assert given.shares is not None
    hits = given.y == given.predicted
    loss = 0.0  # scikit-learn refuses a single label
    of_truth = given.shares[np.arange(given.y.size), np.searchsorted(given.labels, given.y)]
    each = -np.log(np.maximum(of_truth, np.finfo(np.float64).eps))
    if given.labels.size > 1:
        loss = float(log_loss(given.y, given.shares, labels=given.labels))
    return {
        "accuracy": Measure(float(accuracy_score(given.y, given.predicted)), _error(hits)),
        "log loss": Measure(loss, _error(each)),
    }


def _of_numbers(given: Answers) -> dict[str, Measure]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    off = np.abs(given.y - given.predicted)
    rmse = float(root_mean_squared_error(given.y, given.predicted))
    variance = float(np.var(given.y))
    squares = _error(off**2)
    r2 = float(r2_score(given.y, given.predicted)) if given.y.size > 1 else np.nan
    return {
        # the variance of the target is taken as known, and the root as straight where it lies
        "R2": Measure(r2, squares / variance if variance else np.nan),
        "MAE": Measure(float(mean_absolute_error(given.y, given.predicted)), _error(off)),
        "RMSE": Measure(rmse, squares / (2.0 * rmse) if rmse else 0.0),
    }


def _error(losses: NDArray[Any]) -> float:
    """Standard error of a mean."""
    if losses.size < 2:
        return np.nan
    return float(np.std(losses, ddof=1) / np.sqrt(losses.size))


class PerClass:
    """Precision, recall and F1, and the confusion matrix, by scikit-learn."""

    def __init__(self, found: Answers) -> None:
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

        assert found.labels is not None
        self.labels = found.labels
        with warnings.catch_warnings():  # that there is one label
            warnings.simplefilter("ignore")
            self.matrix = confusion_matrix(found.y, found.predicted, labels=found.labels)
        by_class = precision_recall_fscore_support(
            found.y, found.predicted, labels=found.labels, zero_division=0.0
        )
        self.scores = list(zip(*(column.tolist() for column in by_class), strict=True))
        self.means = tuple(np.mean(np.array(self.scores)[:, :3], axis=0).tolist())

    def confusions(self) -> Iterator[tuple[Any, Any, int]]:
        """True class, answer, rows."""
        for true, row in zip(self.labels.tolist(), self.matrix.tolist(), strict=True):
            for answer, rows in zip(self.labels.tolist(), row, strict=True):
                yield true, answer, rows


def score_rows(classes: PerClass) -> list[list[str]]:
    """A table of the scores of each class, as text cell by cell."""
    rows = [["class", "precision", "recall", "F1", "rows"]]
    for label, (*scores, support) in zip(classes.labels.tolist(), classes.scores, strict=True):
        rows.append([str(label), *map(shown, scores), f"{support:,}"])
    return [*rows, ["mean", *map(shown, classes.means), f"{sum(s[3] for s in classes.scores):,}"]]


def confusion_rows(classes: PerClass) -> list[list[str]]:
    """A table of the confusion matrix, as text cell by cell."""
    labels = [str(label) for label in classes.labels.tolist()]
    rows = [["true class \\ answer", *labels]]
    counts = classes.matrix.tolist()
    rows += [
        [label, *(f"{count:,}" for count in row)] for label, row in zip(labels, counts, strict=True)
    ]
    return rows


# ------------------------------------------------------------------- reports
@dataclass(frozen=True, eq=False)
class Report:
    """A tree and its answers beside the truth, as J48, C5.0 and rpart tell them.

    Printed, it is a table of words; `as_dict` has the numbers.

    Attributes
    ----------
    nodes, leaves, depth, rows : int
    measures : dict of str to float
        Of classes: ``right``, ``errors`` (rows), ``accuracy``, ``error_rate``, ``kappa``, and
        over all rows and classes the ``mean_absolute_error`` and ``root_mean_squared_error`` of
        the probabilities, as Weka has them. Of numbers: ``correlation``,
        ``mean_absolute_error``, ``root_mean_squared_error``, ``relative_absolute_error`` and
        ``root_relative_squared_error`` (to answering with the mean target of the training
        rows), ``r2``. NaN where a measure is not defined.
    classes : PerClass or None
        Scores of each class and the confusion matrix; None for regression.
    """

    nodes: int
    leaves: int
    depth: int
    rows: int
    measures: dict[str, float]
    classes: PerClass | None

    def as_dict(self) -> dict[str, Any]:
        """All numbers, as JSON holds them: NaN is None.

        Returns
        -------
        dict
            ``nodes``, ``leaves``, ``depth``, ``rows``, the measures by name, and of classes
            ``labels``, ``precision``, ``recall``, ``f1``, ``support`` and
            ``confusion_matrix`` (true class by answer).
        """
        content: dict[str, Any] = {
            name: getattr(self, name) for name in ("nodes", "leaves", "depth", "rows")
        }
        content |= {k: None if np.isnan(v) else v for k, v in self.measures.items()}
        if self.classes is not None:
            content["labels"] = self.classes.labels.tolist()
            columns = zip(*self.classes.scores, strict=True)
            names = ("precision", "recall", "f1", "support")
            content |= dict(zip(names, map(list, columns), strict=True))
            content["confusion_matrix"] = self.classes.matrix.tolist()
        return content

    def __str__(self) -> str:
        size = {name: f"{getattr(self, name):,}" for name in ("leaves", "nodes", "depth", "rows")}
        told = self.measures.copy()
        for count, share in (("right", "accuracy"), ("errors", "error_rate")):
            if count in told:
                size[count] = f"{int(told.pop(count)):,} ({told.pop(share):.2%})"
        values = {name.replace("_", " "): shown(value) for name, value in told.items()}
        parts = [aligned(size | values)]
        if self.classes is not None:
            parts += [tabled(score_rows(self.classes)), tabled(confusion_rows(self.classes))]
        return "\n\n".join(parts)

    __repr__ = __str__


def report(estimator: Any, X: Any, y: NDArray[Any]) -> Report:
    """The report of a fitted tree on rows whose truth is known.

    Raises
    ------
    ValueError
        y holds numbers where the tree knows text, or text where it knows numbers; or NaN.
    """
    if not hasattr(estimator, "classes_"):
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    elif (y.dtype.kind in "biuf") != (estimator.classes_.dtype.kind in "biuf"):
        held = "numbers" if y.dtype.kind in "biuf" else "others"
        raise ValueError(
            "y must hold labels of the kind in fit, such as "
            f"{estimator.classes_.item(0)!r}; got {held}."
        )
    assert_all_finite(y, input_name="y")
    found, tree = answers(estimator, X, y), estimator.tree_
    if found.labels is None:
        measures, classes = _of_quantities(found, float(tree.statistics[0, 0])), None
    else:
        measures, classes = _of_labels(found), PerClass(found)
    size = tree.n_nodes, tree.n_leaves, tree.max_depth
    return Report(*size, int(found.y.size), measures, classes)


def _of_labels(given: Answers) -> dict[str, float]:
    from sklearn.metrics import cohen_kappa_score

    assert given.labels is not None
    assert given.shares is not None
    right = int(np.count_nonzero(given.y == given.predicted))
    n = given.y.size
    kappa = 1.0  # one label, always answered; scikit-learn has NaN there
    if right < n:
        kappa = float(cohen_kappa_score(given.y, given.predicted, labels=given.labels))
    off = given.shares - (given.y[:, None] == given.labels)
    return {
        "right": right,
        "errors": n - right,
        "accuracy": right / n,
        "error_rate": (n - right) / n,
        "kappa": kappa,
        "mean_absolute_error": float(np.abs(off).mean()),
        "root_mean_squared_error": float(np.sqrt((off**2).mean())),
    }


def _of_quantities(given: Answers, mean: float) -> dict[str, float]:
    """Errors, also relative to those of answering with the mean of the training rows."""
    basic = given.measures
    off, apart = np.abs(given.y - given.predicted), np.abs(given.y - mean)
    varies = np.ptp(given.y) > 0 and np.ptp(given.predicted) > 0
    return {
        "correlation": float(np.corrcoef(given.y, given.predicted)[0, 1]) if varies else np.nan,
        "mean_absolute_error": basic["MAE"].value,
        "root_mean_squared_error": basic["RMSE"].value,
        "relative_absolute_error": _ratio(off.sum(), apart.sum()),
        "root_relative_squared_error": _ratio(np.sqrt((off**2).sum()), np.sqrt((apart**2).sum())),
        "r2": basic["R2"].value,
    }


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b else np.nan
