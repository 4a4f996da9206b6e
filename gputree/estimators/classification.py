"""Base classes of all classifiers: labels, class weights, predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree._sklearn import compute_sample_weight
from gputree.coded_labels import CodedLabels
from gputree.costs import Costs, class_costs, least_cost, weighs_errors
from gputree.dtypes import MISSING_TO_ALL
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.estimators.base import BaseDecisionTree
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.costs import check_costs, cost_weights, given_costs
from gputree.estimators.declared_classes import declare_classes
from gputree.estimators.table_estimator import TableEstimator
from gputree.labels import exact_labels
from gputree.tables import Table
from gputree.validation import check_labels, check_weight_range


class LogProbabilities:
    """Mixin of classifiers that have `predict_proba`."""

    predict_proba: Callable[..., NDArray[np.float64]]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Natural logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        log_probabilities : float64 array of shape (n_rows, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TableClassifier(LogProbabilities, ClassifierMixin, TableEstimator):
    """A classifier on tables: labels, class weights."""

    classes_: NDArray[Any]
    n_classes_: int
    class_weight: dict[Any, float] | str | None
    classes: ArrayLike | str | None
    misclassification_costs: Any
    costs_: Costs | None = None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the fraction of rows whose prediction is their label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracy : float
        """
        if isinstance(X, CodedTable) and isinstance(y, CodedLabels):
            hit = np.empty(y.size, np.bool_)
            for rows, part in X._slices():
                hit[rows] = self.predict(part) == np.asarray(y[rows])
            return float(np.average(hit, weights=sample_weight))
        return float(super().score(X, exact_labels(y), sample_weight))

    @explained
    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the class with the highest probability in each row; of equals, the first.

        With `misclassification_costs`, of the class of the minimum expected cost.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        return self._answer(self.predict_proba(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class.

        A tree predicts its fraction of the weight in the node where a row stops, a forest the mean
        over its trees, boosting the mean confidence of its members.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_classes)
        """
        raise NotImplementedError

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        self.classes_, codes = check_labels(self, y, n_rows)
        if self.classes is not None:
            self.classes_, codes = declare_classes(self, y, self.classes_, codes)
        self.n_classes_ = self.classes_.size
        self.costs_ = check_costs(self, self.classes_)
        return codes

    def _combine_weights(
        self, weight: NDArray[np.float64] | None, codes: NDArray[Any]
    ) -> NDArray[np.float64] | None:
        """Sample weights times class weights, and what errors of the classes cost."""
        weight = self._times_class_weights(weight, codes)
        if self.costs_ is None:
            return weight
        check_weight_range(weight)
        return cost_weights(self.costs_, weight, codes)

    def _times_class_weights(
        self, weight: NDArray[np.float64] | None, codes: NDArray[Any]
    ) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return weight
        if isinstance(self.class_weight, str):  # balanced
            by_class = compute_sample_weight(self.class_weight, self.classes_[codes])
        else:  # of every class, even if these rows lack it
            by_class = compute_sample_weight(self.class_weight, self.classes_)[codes]
        if not (np.isfinite(by_class) & (by_class >= 0.0)).all():
            raise InputError(
                f"The 'class_weight' parameter of {type(self).__name__} must give finite, "
                f"non-negative weights. Got {self.class_weight!r} instead."
            )
        return by_class if weight is None else weight * by_class

    def _loss_weights(self, weight: NDArray[np.float64], codes: NDArray) -> NDArray[np.float64]:
        """Combine weights as `_combine_weights`, also for labels not seen in `fit`, of code -1.

        They keep their weights. Where no error of the others costs, these have weight 0.
        """
        known = np.flatnonzero(codes >= 0)
        if known.size == 0:
            return weight
        codes, found = codes[known], weight.copy()
        of_known = self._times_class_weights(weight[known], codes)
        if self.costs_ is not None:
            costly = (of_known * class_costs(self.costs_)[codes]).any()
            none = np.zeros(known.size)
            of_known = cost_weights(self.costs_, of_known, codes) if costly else none
        found[known] = of_known
        return found

    def _answer(self, shares: NDArray[np.float64]) -> NDArray[Any]:
        """Labels of the highest probability, or of the minimum expected cost."""
        if self.costs_ is not None and self._weighs_errors:
            return self.classes_[least_cost(shares, self.costs_)]
        return self.classes_[shares.argmax(axis=1)]

    @property
    def _given_costs(self) -> Costs | None:
        """Costs of errors, in the units of the parameter; None where all cost the same."""
        return None if self.costs_ is None else given_costs(self, self.classes_)

    @property
    def _weighs_errors(self) -> bool:
        """Return whether another class than the majority class may have the minimum cost."""
        return weighs_errors(self.costs_)


class TreeClassifier(TableClassifier, BaseDecisionTree):
    """A classifier that predicts from the class weights where a row stops."""

    def _takes_device_labels(self, table: Table, sample_weight: Any) -> bool:
        by_class = self.class_weight is not None or self.misclassification_costs is not None
        weighted = sample_weight is not None or by_class
        alone = not weighted and self.pruning is self.classes is None and table.rows is None
        return self._grows_on_device and alone

    @explained
    def predict(self, X: Any) -> NDArray[Any]:
        if self._has_fractions or self._weighs_errors:
            return self._answer(self.predict_proba(X))
        return self._take(self.classes_[self.tree_.value[:, 0].argmax(axis=1)], X)

    @explained
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self._descend(prediction.class_distributions, X)

    @property
    def _has_fractions(self) -> bool:
        """Return whether rows may go down several branches at once."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        return tree.soft_lower is not None or bool((tree.missing_child == MISSING_TO_ALL).any())
