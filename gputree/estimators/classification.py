"""Base classes of all classifiers: labels, class weights, predictions.

Classes that are declared, rather than found in y: the parameter `classes`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.base.dtypes import MISSING_TO_ALL, Floats, Weight
from gputree.base.sklearn import compute_sample_weight
from gputree.columns.categories import is_missing
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.estimators.base import BaseDecisionTree
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.costs import check_costs, cost_weights, forbid_costs_of_targets, given_costs
from gputree.estimators.table_estimator import TableEstimator
from gputree.inputs.labels import (
    CodedLabels,
    Costs,
    class_costs,
    exact_labels,
    least_cost,
    weighs_errors,
)
from gputree.inputs.tables import Table
from gputree.inputs.targets import (
    by_target,
    encode_labels,
    ends_of,
    labels_of_codes,
    most_probable,
    target_columns,
)
from gputree.inputs.validation import (
    check_labels,
    check_target_labels,
    check_weight_range,
    code_dtype,
)


class LogProbabilities:
    """Mixin of classifiers that have `predict_proba`."""

    predict_proba: Callable[..., Any]

    def predict_log_proba(self, X: Any) -> Any:
        """Natural logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        log_probabilities : float64 array of shape (n_rows, n_classes)
            Of several targets a list of them.
        """
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return list(map(np.log, found)) if isinstance(found, list) else np.log(found)


class TableClassifier(LogProbabilities, ClassifierMixin, TableEstimator):
    """A classifier on tables: labels, class weights."""

    classes_: Any  # labels, or a list of those of each target
    n_classes_: Any
    class_weight: dict[Any, float] | list[dict[Any, float]] | str | None
    classes: ArrayLike | str | None
    misclassification_costs: Any
    costs_: Costs | None = None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the fraction of rows whose prediction is their label, or all of their labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
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
        if self._has_targets:
            hit = encode_labels(self.classes_, y) == most_probable(
                self._joined(X), ends_of(self.classes_)
            )
            return float(np.average(hit.all(axis=1), weights=sample_weight))
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
        labels : array of shape (n_rows,), or (n_rows, n_outputs) of several targets
            Of targets of text and of numbers, objects.
        """
        return self._answer(self._joined(X))

    @explained
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class.

        A tree predicts its fraction of the weight in the node where a row stops, a forest the mean
        over its trees, boosting the mean confidence of its members.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_classes)
            Of several targets a list of them.
        """
        joined = self._joined(X)
        return by_target(joined, ends_of(self.classes_)) if self._has_targets else joined

    def _joined(self, X: Any) -> Floats:
        """Probabilities of the classes, those of one target after the other."""
        raise NotImplementedError

    @property
    def _has_targets(self) -> bool:
        return isinstance(getattr(self, "classes_", None), list)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
        return tags

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        columns = target_columns(y) if self._takes_targets else None
        if columns is not None:
            return self._check_targets(columns, n_rows)
        self.classes_, codes = check_labels(self, y, n_rows)
        if self.classes is not None:
            self.classes_, codes = declare_classes(self, y, self.classes_, codes)
        self.n_classes_ = self.classes_.size
        self.costs_ = check_costs(self, self.classes_)
        return codes

    def _check_targets(self, columns: list[Any], n_rows: int) -> NDArray[Any]:
        """Class codes of several targets, of shape (n_rows, n_outputs); classes are learned."""
        forbid_costs_of_targets(self, len(columns))
        self.classes_, codes = check_target_labels(self, columns, n_rows)
        self.n_classes_ = [labels.size for labels in self.classes_]
        self.costs_ = None
        return codes

    def _combine_weights(self, weight: Weight, codes: NDArray[Any]) -> Weight:
        """Sample weights times class weights, and what errors of the classes cost."""
        weight = self._times_class_weights(weight, codes)
        if self.costs_ is None:
            return weight
        check_weight_range(weight)
        return cost_weights(self.costs_, weight, codes)

    def _times_class_weights(self, weight: Weight, codes: NDArray[Any]) -> Weight:
        if self.class_weight is None:
            return weight
        by_class = self._class_weights(codes)
        if not (np.isfinite(by_class) & (by_class >= 0.0)).all():
            raise InputError(
                f"The 'class_weight' parameter of {type(self).__name__} must give finite, "
                f"non-negative weights. Got {self.class_weight!r} instead."
            )
        return by_class if weight is None else weight * by_class

    def _class_weights(self, codes: NDArray[Any]) -> Floats:
        """Weight of each row by its class; of several targets, the product of their weights."""
        given = self.class_weight
        if codes.ndim == 1:
            if isinstance(given, list):
                raise InputError(
                    f"The 'class_weight' parameter of {type(self).__name__} must be a dict where y "
                    "has one target; got a list."
                )
            return _weights_of_classes(given, self.classes_, codes)
        k = codes.shape[1]
        if isinstance(given, dict):
            raise InputError(
                "For multi-output, class_weight should be a list of dicts, or the string "
                "'balanced'."
            )
        if isinstance(given, list) and len(given) != k:
            raise InputError(
                "For multi-output, number of elements in class_weight should match number of "
                f"outputs. Got {len(given)} element(s) while having {k} outputs."
            )
        each = given if isinstance(given, list) else [given] * k
        weights = map(_weights_of_classes, each, self.classes_, codes.T)
        found: Floats = np.prod(list(weights), axis=0)
        return found

    def _loss_weights(self, weight: Floats, codes: NDArray) -> Floats:
        """Combine weights as `_combine_weights`, also for labels not seen in `fit`, of code -1.

        They keep their weights. Where no error of the others costs, these have weight 0.
        """
        seen = np.flatnonzero(codes >= 0 if codes.ndim == 1 else (codes >= 0).all(axis=1))
        if seen.size == 0:
            return weight
        codes, found = codes[seen], weight.copy()
        of_seen = self._times_class_weights(weight[seen], codes)
        if self.costs_ is not None:
            costly = (of_seen * class_costs(self.costs_)[codes]).any()
            none = np.zeros(seen.size)
            of_seen = cost_weights(self.costs_, of_seen, codes) if costly else none
        found[seen] = of_seen
        return found

    def _answer(self, shares: Floats) -> NDArray[Any]:
        """Labels of the highest probability, or of the minimum expected cost."""
        if self._has_targets:
            return labels_of_codes(self.classes_, most_probable(shares, ends_of(self.classes_)))
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
            return self._answer(self._joined(X))
        if self._has_targets:  # labels of nodes
            return self._take(self._answer(self.tree_.predictions), X)
        return self._take(self.classes_[self.tree_.predictions.argmax(axis=1)], X)

    def _joined(self, X: Any) -> Floats:
        found: Floats = self._descend(prediction.class_distributions, X)
        return found

    @property
    def _has_fractions(self) -> bool:
        """Return whether rows may go down several branches at once."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        return tree.soft_lower is not None or bool((tree.missing_child == MISSING_TO_ALL).any())


def _weights_of_classes(
    given: dict[Any, float] | str | None, classes: NDArray[Any], codes: NDArray[Any]
) -> Floats:
    """Weight of each row by its class, of one target."""
    if isinstance(given, str):  # balanced
        found: Floats = compute_sample_weight(given, classes[codes])
    else:  # of every class, even if these rows lack it
        found = compute_sample_weight(given, classes)[codes]
    return found


DECLARED = "declared"


def declare_classes(
    estimator: Any, y: Any, present: NDArray[Any], codes: NDArray[np.integer]
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return the declared classes, ascending, and the code of each row's label among them.

    The parameter `classes` is an array-like of labels, or "declared" by the type of y, the user's.
    `present` are the classes that y has, ascending, and `codes` of the rows are indices into them.
    ValueError where `classes` has a label twice, y has others, or its type declares none.
    """
    name = type(estimator).__name__
    if isinstance(estimator.classes, str):
        declared = _of_type(y)
        if declared is None:
            raise InputError(
                f"{name}(classes='{DECLARED}') takes the classes that the type of y declares, "
                "and that declares none. Pass y as a pandas Categorical, a polars Enum or a "
                "pyarrow dictionary, or list the classes."
            )
    else:
        declared = _as_labels(estimator.classes)
    classes = _ascending(name, declared, present)
    place = np.searchsorted(classes, present).clip(max=classes.size - 1)
    unknown = present[classes[place] != present]
    if unknown.size:
        raise InputError(
            f"y contains labels that the 'classes' parameter of {name} does not list: "
            f"{unknown[:5].tolist()}."
        )
    return classes, place.astype(code_dtype(classes.size))[codes]


def _of_type(y: Any) -> NDArray[Any] | None:
    """The categories that the type of y declares: of pandas, polars or pyarrow; None without."""
    dictionary = getattr(y, "unify_dictionaries", None)  # of chunks
    if dictionary is not None and hasattr(y.type, "value_type"):
        y = dictionary().combine_chunks()
    found = getattr(y, "dictionary", None)
    if found is None:
        kind = getattr(y, "dtype", None)
        found = getattr(kind, "categories", None)
    return None if found is None else _as_labels(found)


def _as_labels(classes: Any) -> NDArray[Any]:
    labels = np.asarray(classes)
    if labels.dtype.kind in "US" and any(not isinstance(c, str) for c in classes):
        return np.array(list(classes), dtype=object)  # numbers next to text stay numbers
    return labels


def _ascending(name: str, declared: NDArray[Any], present: NDArray[Any]) -> NDArray[Any]:
    """Distinct labels, ascending, as the type of y's labels if it can represent them."""
    problem = f"The 'classes' parameter of {name} must list different labels"
    if declared.ndim != 1 or declared.size == 0 or any(map(is_missing, declared.tolist())):
        raise InputError(f"{problem}, none missing. Got {declared.tolist()!r} instead.")
    if (declared.dtype.kind in "biuf") != (present.dtype.kind in "biuf"):
        kind_of_y = "numbers" if present.dtype.kind in "biuf" else "text"
        raise InputError(
            f"{problem} of the kind of y, which holds {kind_of_y}. "
            f"Got {declared.tolist()!r} instead."
        )
    try:
        classes = np.unique(declared)
    except TypeError as error:
        raise InputError(f"{problem} of one kind. Got {declared.tolist()!r} instead.") from error
    if classes.size < declared.size:
        raise InputError(f"{problem}. Got {declared.tolist()!r} instead.")
    kind = present.dtype
    if kind.kind == "U":
        return classes.astype(np.str_)
    converted = classes.astype(kind)
    return converted if np.array_equal(converted, classes) else classes
