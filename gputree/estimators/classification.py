"""What all classifiers share: labels, class weights, answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree._sklearn import StrOptions
from gputree.dtypes import MISSING_TO_ALL
from gputree.estimators.arguments import explained
from gputree.estimators.base import BaseDecisionTree
from gputree.estimators.declared_classes import DECLARED, declare_classes
from gputree.estimators.held import View
from gputree.estimators.table_estimator import TableEstimator
from gputree.validation import check_labels

# What the parameter `classes` may be.
CLASSES = ["array-like", StrOptions({DECLARED}), None]


class TableClassifier(ClassifierMixin, TableEstimator):
    """A classifier on tables: labels, class weights."""

    classes_: NDArray[Any]
    n_classes_: int
    class_weight: dict[Any, float] | str | None
    classes: ArrayLike | str | None

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        self.classes_, codes = check_labels(self, y, n_rows)
        if self.classes is not None:
            self.classes_, codes = declare_classes(self, y, self.classes_, codes)
        self.n_classes_ = self.classes_.size
        return codes

    def _combine_weights(
        self, weight: NDArray[np.float64] | None, codes: NDArray[Any]
    ) -> NDArray[np.float64] | None:
        """Sample weights times class weights."""
        if self.class_weight is None:
            return weight
        by_class = compute_sample_weight(self.class_weight, self.classes_[codes])
        if not (np.isfinite(by_class) & (by_class >= 0.0)).all():
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must give finite, "
                f"non-negative weights. Got {self.class_weight!r} instead."
            )
        return by_class if weight is None else weight * by_class

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


class TreeClassifier(TableClassifier, BaseDecisionTree):
    """A classifier that answers with the class weights where a row stops."""

    def _takes_device_labels(self, view: View, sample_weight: Any) -> bool:
        weighted = sample_weight is not None or self.class_weight is not None
        alone = not weighted and self.pruning is self.classes is None and view.rows is None
        return self._grows_on_device and alone

    @explained
    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the greatest class where each row stops; of equals, the first.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        if self._has_fractions:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self._take(self.classes_[self.tree_.value[:, 0].argmax(axis=1)], X)

    @explained
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of each class where each row stops.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_classes)
        """
        return self._descend(prediction.class_distributions, X)

    @property
    def _has_fractions(self) -> bool:
        """Whether rows may go down several branches at once."""
        check_is_fitted(self, "tree_")
        return bool((self.tree_.missing_child == MISSING_TO_ALL).any())
