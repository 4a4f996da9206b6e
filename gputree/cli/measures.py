"""How good the answers of a model are, by scikit-learn's measures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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


def shown(value: float) -> str:
    """A measure as text: four decimals, or digits."""
    if np.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"
