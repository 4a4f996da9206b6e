"""Sums over rows from which measures are computed; sums of batches add up.

Counts are exact; sums of numbers are those of scikit-learn's measures, as far as one batch goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Weight


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
    pinball: Moments | None = None  # losses of a quantile

    @property
    def rows(self) -> int:
        return self.target.n

    @property
    def weight(self) -> float | None:
        """Total weight of the rows; None where they were given no weights."""
        return self.target.weight if self.weighted else None

    @property
    def measures(self) -> dict[str, Measure]:
        """R2, MAE and RMSE; of a quantile the pinball loss, too."""
        variance, rmse = self.target.spread / self.target.weight, np.sqrt(self.squared.mean)
        r2 = np.nan
        if self.rows > 1:
            left = self.squared.total / self.target.spread if variance else float(rmse > 0.0)
            r2 = 1.0 - left
        squares = self.squared.error
        found = {
            # the variance of the target is taken as exact, the square root as linear
            "R2": Measure(r2, squares / variance if variance else np.nan),
            "MAE": Measure(self.absolute.mean, self.absolute.error),
            "RMSE": Measure(float(rmse), squares / (2.0 * float(rmse)) if rmse else 0.0),
        }
        if self.pinball is not None:
            found["pinball loss"] = Measure(self.pinball.mean, self.pinball.error)
        return found

    def joined(self, other: NumberSums) -> NumberSums:
        """Add the sums of two sets of rows."""
        names = ("target", "absolute", "squared")
        moments = {name: getattr(self, name).joined(getattr(other, name)) for name in names}
        if self.pinball is not None and other.pinball is not None:
            moments["pinball"] = self.pinball.joined(other.pinball)
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

    `labels` (K,) are ascending, and all that occur are among them; `shares` (n, K) are
    probabilities.
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


def sums_of_numbers(
    truth: Floats, predicted: Floats, weight: Weight, quantile: float | None = None
) -> NumberSums:
    """Sums of a regressor's predictions of n rows, each array of shape (n,).

    With the level that they are a `quantile` of, scikit-learn's `mean_pinball_loss` is one, too.
    """
    truth = np.asarray(truth, np.float64)
    off = truth - predicted
    target, absolute, squared = (Moments.of(one, weight) for one in (truth, np.abs(off), off**2))
    pinball = None
    if quantile is not None:
        pinball = Moments.of(np.maximum(quantile * off, (quantile - 1.0) * off), weight)
    return NumberSums(target, absolute, squared, weight is not None, pinball=pinball)
