"""Boosting of C4.5 trees, in the manner of C5.0."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree._sklearn import Interval, fit_context
from gputree.backends.arrays import to_host
from gputree.estimators.arguments import MULTIWAY_LACKS, explained
from gputree.estimators.boosting_weights import (
    first_weights,
    next_weights,
    outcome_of,
)
from gputree.estimators.c45 import C45Classifier, forbid_binary_splits_on_cuda
from gputree.estimators.classification import TableClassifier
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.documentation import MULTIWAY_PARAMETERS, document
from gputree.estimators.held import Held, View
from gputree.estimators.identifiers import warn_of_winners
from gputree.estimators.table_estimator import n_threads
from gputree.estimators.winnowing import (
    as_grown,
    coded_grower,
    column_view,
    winnow,
    with_weight,
)
from gputree.growth.progress import new_bar
from gputree.pruning import Pruner
from gputree.tree import Tree
from gputree.validation import check_weight_range, check_weights

# Boosting ends with a tree whose errors weigh less than this share of a row, as in C5.0.
FEW_ERRORS = 0.1

# A tree that errs for this share of the weight, or for more, is not kept.
MOST_ERRORS = 0.5

BOOSTED_ATTRIBUTES = """classes_ : array of shape (`n_classes_`,)
        Class labels, ascending.
    n_classes_ : int
    costs_ : float64 array of shape (n_classes_, n_classes_), or None
        `misclassification_costs` as shares of the greatest; None where all errors cost the same.
    estimators_ : list of C45Classifier
        The trees, in the order in which they were grown.
    estimator_errors_ : float64 array of shape (n_trees,)
        Weighted share of each tree's errors on the rows that it was grown on.
    estimator_weights_ : float64 array of shape (n_trees,)
        Weight of each tree's votes: 1, as in C5.0.
    winnowed_ : bool array of shape (n_features_in_,)
        Which columns `winnow` has left out.
    columns_ : Columns
        What each column holds; the categories of those that have any.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (`n_features_in_`,)
        Their names, where X has string names."""


@document(MULTIWAY_PARAMETERS, BOOSTED_ATTRIBUTES)
class BoostedC45Classifier(TableClassifier):
    """C4.5 trees, each grown on rows weighted by the errors of the one before.

    Rows that a tree classifies wrongly weigh more in the next one. Each tree votes for every
    class with its confidence: the class's share of the weight in the leaf, as if one more row
    lay there, divided evenly among the classes. The class with most confidence wins; of
    equals, the first.

    Parameters
    ----------
    n_trials : int, default=10
        Trees to grow, at most.
    min_samples_leaf : float, default=2
        Least weight (rows, where no weights are given) of two of a split's branches.
    average_gain_rule, mdl_correction, threshold_placement, binary_splits, collapse
        As for `C45Classifier`.
    pruning : Pruner, str or None, default="pessimistic"
        How each tree is pruned.
    winnow : bool, default=False
        Columns that do not help are left out before the first trial; see `C45Classifier`.
    soft_thresholds : bool, default=False
        Numbers near a threshold go both ways in prediction; see `C45Classifier`.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    The weights of the next trial bring the rows that were wrong half way from the weight that
    they have to half of the total: what these rows gain, they share in proportion to their first
    weights, and the others lose it in proportion to those that they have. The total stays. That
    is C5.0's rule as Kuhn and Johnson describe it; its trees have J48's rules here, not C5.0's,
    and no row is dropped as hopeless.

    Boosting ends early after a tree whose errors weigh less than a tenth of a row, and before one
    whose errors weigh half of the total or more, unless it is the first.

    Weights are fixed-point integers, so that the trees depend neither on the order of rows nor
    on the number of threads. The table is coded once for all trees.

    References
    ----------
    J. R. Quinlan. Bagging, boosting, and C4.5. AAAI 1996, 725-730.

    M. Kuhn, K. Johnson. Applied Predictive Modeling. Springer, 2013. Section 14.6.

    Examples
    --------
    >>> from gputree import BoostedC45Classifier
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> boosted = BoostedC45Classifier(n_trials=5).fit(X, y)
    >>> len(boosted.estimators_)
    5
    """

    _lacks = MULTIWAY_LACKS

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **C45Classifier._parameter_constraints,
        "n_trials": [Interval(Integral, 1, None, closed="left")],
    }
    del _parameter_constraints["laplace"]  # votes have an estimate of their own

    @explained
    def __init__(
        self,
        *,
        n_trials: int = 10,
        min_samples_leaf: float = 2,
        average_gain_rule: bool = True,
        mdl_correction: bool = True,
        threshold_placement: Literal["midpoint", "data"] = "midpoint",
        binary_splits: bool = False,
        collapse: bool = True,
        pruning: Pruner | str | None = "pessimistic",
        winnow: bool = False,
        soft_thresholds: bool = False,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_gain: float = 0.0,
        categorical_features: Any = "auto",
        class_weight: dict[Any, float] | str | None = None,
        classes: ArrayLike | str | None = None,
        misclassification_costs: ArrayLike | dict[tuple[Any, Any], float] | None = None,
        random_state: Any = None,
        device: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_trials = n_trials
        self.min_samples_leaf = min_samples_leaf
        self.average_gain_rule = average_gain_rule
        self.mdl_correction = mdl_correction
        self.threshold_placement = threshold_placement
        self.binary_splits = binary_splits
        self.collapse = collapse
        self.pruning = pruning
        self.winnow = winnow
        self.soft_thresholds = soft_thresholds
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_gain = min_gain
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.classes = classes
        self.misclassification_costs = misclassification_costs
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    @explained
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow and prune the trees.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Categories or numbers; None, NaN or NA where missing.
        y : array-like of shape (n_rows,)
            Class labels: integers, strings or booleans.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weights of the first trial; rows of weight zero take no part.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    # ----------------------------------------------------------- trials
    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        forbid_binary_splits_on_cuda(self)
        view = self._view(X)
        target = self._check_target(to_host(y), view.shape[0])
        weight = self._combine_weights(check_weights(to_host(sample_weight), target), target)
        check_weight_range(weight)
        identifiers = self._warn_of_identifiers(view)
        grower = coded_grower(self, C45Classifier, view.shape[0])
        view, target, weight = with_weight(view, target, weight)
        kept = np.ones(self.n_features_in_, np.bool_)
        if self.winnow:
            kept = winnow(grower, view, target, weight, self.random_state)
            view = column_view(view, np.flatnonzero(kept))
        grower.columns_, grower.n_features_in_ = view.held.columns, view.shape[1]
        self.winnowed_ = ~kept
        view = _coded(view, n_threads(self.n_jobs))
        self.estimators_, errors = [], []
        bar = new_bar(self.n_trials, bool(self.verbose), desc="trials", unit="tree")
        with nullcontext() if bar is None else bar:
            for tree, error in self._boost(grower, view, target, weight):
                self.estimators_.append(tree)
                errors.append(error)
                if bar is not None:
                    bar.update()
        self.estimator_errors_ = np.array(errors)
        self.estimator_weights_ = np.ones(len(errors))
        for tree in self.estimators_:
            as_grown(tree, self, np.flatnonzero(kept))
            self._adopt(tree)
        warn_of_winners(identifiers, self.estimators_[0].tree_, type(self).__name__)
        return self

    def _boost(
        self, grower: C45Classifier, view: View, target: NDArray, weight: NDArray | None
    ) -> Iterator[tuple[C45Classifier, float]]:
        """Tree after tree and its error, until one errs too little or too much."""
        weights, table = first_weights(weight, target.size), CodedTable.of(view)
        for trial in range(self.n_trials):
            tree = copy(grower)
            tree._grow_and_prune(view, target, weight, (table, target, weight))
            is_wrong = tree.predict(table) != target
            outcome = outcome_of(weights, is_wrong)
            if trial > 0 and outcome.error >= MOST_ERRORS:
                return
            yield tree, outcome.error
            few = outcome.wrong * weights.unit < FEW_ERRORS
            if few or outcome.error >= MOST_ERRORS:
                return
            weights = next_weights(weights, is_wrong, outcome)
            weight = weights.values

    def _adopt(self, tree: C45Classifier) -> None:
        """Let a tree that was grown on class codes answer with labels."""
        for name in ("classes_", "costs_", "classes", "misclassification_costs"):
            setattr(tree, name, getattr(self, name))

    # ------------------------------------------------------------ votes
    @explained
    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the class with the most confidence; of equals, the first.

        With `misclassification_costs`, of the class of the least expected cost.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        return self._answer(self.predict_proba(X))

    @explained
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Mean confidence of the trees in each class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_classes)
        """
        (last,) = deque(self.staged_predict_proba(X), maxlen=1)  # none is kept beside it
        return last

    @explained
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """What the first tree answers, the first two, and so on.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Yields
        ------
        labels : array of shape (n_rows,)
        """
        for votes in self.staged_predict_proba(X):
            yield self._answer(votes)

    @explained
    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """As `predict_proba`, of the first tree, the first two, and so on.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Yields
        ------
        probabilities : float64 array of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "estimators_")
        parts = list(self._parts(X))
        votes = np.zeros((sum(map(len, parts)), self.n_classes_))
        whole = 0.0
        for tree, weight in zip(self.estimators_, self.estimator_weights_, strict=True):
            found = [tree._descend_part(confidences, part) for part in parts]
            votes += weight * (found[0] if len(found) == 1 else np.concatenate(found))
            whole += weight
            yield votes / whole

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the trees' importances, by their weights, shape (n_features,)."""
        check_is_fitted(self, "estimators_")
        each = [tree.feature_importances_ for tree in self.estimators_]
        mean: NDArray[np.float64] = np.average(each, axis=0, weights=self.estimator_weights_)
        return mean / mean.sum() if mean.any() else mean


def confidences(tree: Tree, values: NDArray, **how: Any) -> NDArray[np.float64]:
    """Confidence of a tree in each class, for each row; shape (n_rows, n_classes)."""
    weight = tree.statistics.sum(axis=1, keepdims=True)
    own = (tree.statistics + 1.0 / tree.n_classes) / (weight + 1.0)
    return prediction.class_distributions(
        tree, values, answers=own[tree.nearest_with_weight()], **how
    )


def _coded(view: View, threads: int) -> View:
    """The view as all of a table whose columns are coded, and kept so while it is held."""
    whole = view.alone().held
    held = Held(whole.columns, whole.values, whole.names, whole.device)
    held.keep_lists(threads)
    return View(held)
