"""Boosting of C4.5 trees, in the manner of C5.0.

Members vote, each learned from rows weighted by earlier members' errors: trees, or rules of
`gputree.rules.boosting`.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends.devices import to_host
from gputree.base.dtypes import Bools, Floats, Weight
from gputree.base.progress import new_bar
from gputree.base.threads import n_threads
from gputree.errors import warn
from gputree.estimators.arguments import C45_REFUSES, MULTIWAY_LACKS, explained, within
from gputree.estimators.base import with_weight
from gputree.estimators.c45 import C45Classifier, forbid_binary_splits_on_cuda
from gputree.estimators.classification import TableClassifier
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.column_warnings import warn_of_winners
from gputree.estimators.documentation import BOOSTED, OF_MULTIWAY_TREES, document
from gputree.estimators.parameters import BoostedParameters, keyword_constructor
from gputree.estimators.reporting import Reporting
from gputree.estimators.winnowing import (
    as_grown,
    coded_grower,
    first_weights,
    next_weights,
    outcome_of,
    winnow,
    with_columns,
)
from gputree.evaluation import Lines, rows_of
from gputree.inputs.tables import Table
from gputree.inputs.validation import check_weight_range, check_weights
from gputree.prediction.sparse import SparseRows
from gputree.pruning import Pruner
from gputree.tree import Tree

# Boosting ends with a member whose weighted errors are less than this fraction of a row, as in
# C5.0.
FEW_ERRORS = 0.1

# A member that errs for this fraction of the weight, or for more, is not kept.
MOST_ERRORS = 0.5

# Reasons to end boosting early, as C5.0 prints them.
ACCURATE = "last classifier is very accurate"
INACCURATE = "last classifier is very inaccurate"
CALLED_OFF = "a callback has ended the fit"

_log = logging.getLogger("gputree")


class Boosted(BoostedParameters, Reporting, TableClassifier):
    """Trials and votes; subclasses say what a member is."""

    _part = "trial"
    estimators_: list[Any]
    estimator_errors_: Floats
    estimator_weights_: Floats
    stop_reason_: str | None
    winnowed_: Bools

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        forbid_binary_splits_on_cuda(self)
        table = self._learn_table(X)
        target = self._check_target(to_host(y), table.shape[0])
        weight = self._combine_weights(check_weights(to_host(sample_weight), target), target)
        check_weight_range(weight)
        identifiers = self._warn_of_identifiers(table, weight)
        grower = coded_grower(self, C45Classifier, table.shape[0])
        table, target, weight = with_weight(table, target, weight)
        kept = np.ones(self.n_features_in_, np.bool_)
        if self.winnow:
            kept = winnow(grower, table, target, weight, self.random_state)
        columns = np.flatnonzero(kept)
        if self.winnow:
            table = with_columns(table, columns)
            grower.interaction_cst = within(self, kept.size, columns)
        grower.columns_, grower.n_features_in_ = table.columns, table.shape[1]
        self.winnowed_ = ~kept
        table = _coded(table, n_threads(self.n_jobs))
        members: list[Any] = []
        errors: list[float] = []

        def finished() -> dict[str, Any]:
            return {
                "estimators_": [self._finished(member, columns) for member in members],
                "estimator_errors_": np.array(errors),
                "estimator_weights_": np.ones(len(errors)),
            }

        bar = new_bar(self.n_trials, bool(self.verbose), desc="trials", unit="trial")
        with nullcontext() if bar is None else bar:
            end = self._begin_part()
            for member, error in self._boost(grower, table, target, weight):
                members.append(member)
                errors.append(error)
                if bar is not None:
                    bar.update()
                if end(finished):
                    self.stop_reason_ = CALLED_OFF
                    break
                if len(errors) < self.n_trials:
                    end = self._begin_part()
        self.__dict__.update(finished())
        self._tell_end()
        warn_of_winners(identifiers, self._tree_of(self.estimators_[0]), type(self).__name__)
        return self

    def _boost(
        self, grower: C45Classifier, table: Table, target: NDArray, weight: NDArray | None
    ) -> Iterator[tuple[Any, float]]:
        """Member after member and its error, until one errs too little or too much."""
        self.stop_reason_ = None
        weights, coded = first_weights(weight, target.size), CodedTable.of(table)
        for trial in range(self.n_trials):
            tree = copy(grower)
            tree._grow_and_prune(table, target, weight, (coded, target, weight))
            member = self._member_of(tree, coded, target, weight)
            is_wrong = member.predict(coded) != target
            outcome = outcome_of(weights, is_wrong)
            if outcome.wrong * weights.unit < FEW_ERRORS:
                self.stop_reason_ = ACCURATE
            elif outcome.error >= MOST_ERRORS:
                self.stop_reason_ = INACCURATE
            if trial == 0 or self.stop_reason_ != INACCURATE:
                yield member, outcome.error
            if self.stop_reason_ is not None:
                return
            weights = next_weights(weights, is_wrong, outcome)
            weight = weights.values
            if trial == 0:
                grower._leaves_per_weight = self._leaf_ratio(tree.tree_)

    def _leaf_ratio(self, first: Tree) -> float:
        """Maximum number of leaves per unit of weight, after the first tree; 0 for no limit."""
        return 0.0

    def _tell_end(self) -> None:
        """Log why boosting ended early; warn if errors leave only the first member."""
        found = len(self.estimators_)
        if found == self.n_trials:
            self.stop_reason_ = None
            return
        message = (
            f"{type(self).__name__}: boosting reduced to {found} of {self.n_trials} trials, since "
            f"{self.stop_reason_}."
        )
        _log.info(message)
        if found == 1 and self.stop_reason_ == INACCURATE:
            warn(message)

    def _adopt(self, tree: C45Classifier) -> C45Classifier:
        """Change a tree that was grown on class codes to predict labels."""
        for name in ("classes_", "costs_", "classes", "misclassification_costs"):
            setattr(tree, name, getattr(self, name))
        tree.__dict__.pop("_leaves_per_weight", None)  # was for growth
        return tree

    def _most_parts(self) -> int:
        return int(self.n_trials)

    _members: ClassVar[str]  # what people call several

    def _member_of(
        self, tree: C45Classifier, table: CodedTable, target: NDArray, weight: NDArray | None
    ) -> Any:
        """Member that votes, made from a tree of class codes and the rows that it was grown on."""
        raise NotImplementedError

    def _finished(self, member: Any, columns: NDArray[np.intp]) -> Any:
        """Member learned from the columns `columns`, renumbered to all columns, and with labels."""
        raise NotImplementedError

    def _tree_of(self, member: Any) -> Tree:
        raise NotImplementedError

    def _confidences(self, member: Any, values: NDArray | SparseRows) -> Floats:
        """Votes of a member, shape (n_rows, n_classes); each row adds up to 1."""
        raise NotImplementedError

    def _size_of(self, member: Any) -> tuple[str, int]:
        """Unit of the size of a member, and the number of units."""
        raise NotImplementedError

    def _joined(self, X: Any) -> Floats:
        (last,) = deque(self.staged_predict_proba(X), maxlen=1)  # only the last is kept
        return last

    @explained
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predictions of the first member, of the first two, and so on.

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
    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Predict probabilities by the first member, the first two, and so on.

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
        for member, weight in zip(self.estimators_, self.estimator_weights_, strict=True):
            found = [self._confidences(member, part) for part in parts]
            votes += weight * (found[0] if len(found) == 1 else np.concatenate(found))
            whole += weight
            yield votes / whole

    def _report_size(self) -> dict[str, int]:
        sizes = [self._size_of(member) for member in self.estimators_]
        (part,) = {part for part, _ in sizes}
        return {self._members: len(sizes), part: sum(count for _, count in sizes)}

    def _report_tables(self, X: Any, y: NDArray[Any], weight: Weight) -> dict[str, Lines]:
        if not isinstance(X, CodedTable):  # read once for all members
            X = CodedTable.of(Table(self._values(X), self.columns_))
        total = y.size if weight is None else float(weight.sum())
        lines: Lines = []
        for place, member in enumerate(self.estimators_, 1):
            wrong = member.predict(X) != y
            errors = float(wrong.sum() if weight is None else weight[wrong].sum())
            counted = {"errors": rows_of(weight, errors), "error_rate": errors / total}
            lines.append({"trial": str(place), **dict([self._size_of(member)]), **counted})
        return {"each_trial": lines}


def _coded(table: Table, threads: int) -> Table:
    """Copy the rows of a table to one that keeps its columns coded."""
    whole = table.compact()
    coded = Table(whole.stored, whole.columns, whole.names, whole.device)
    coded.keep_lists(threads)
    return coded


@document(OF_MULTIWAY_TREES, BOOSTED)
@keyword_constructor
class BoostedC45Classifier(Boosted):
    """C4.5 trees, each grown on rows weighted by the errors of the one before.

    Rows that a tree misclassifies get a larger weight in the next one. Each tree votes for every
    class with its confidence: the class's fraction of the weight in the leaf after adding one row,
    divided evenly among the classes. The class with the highest total confidence is predicted; ties
    go to the first.

    Parameters
    ----------
    n_trials : int, default=10
        Maximum number of trees.
    min_samples_leaf : float, default=2
        Minimum weight (number of rows without weights) of two of a split's branches.
    criterion : "gain_ratio" or "gain", default="gain_ratio"
        As for `C45Classifier`.
    max_leaf_ratio : float or None, default=1.1
        Approximate maximum number of leaves of the trees after the first, as a multiple of the
        number of leaves of the first; None for no limit. A node of weight w is split only if
        ``round(r * w)`` is at least 2, and a split on categories has at most
        ``round(r * w) + 1`` branches, where r is this parameter times the number of leaves of the
        first tree, after pruning, divided by its weight. This is C5.0's rule.
    average_gain_rule, mdl_correction, threshold_placement, binary_splits, collapse
        As for `C45Classifier`.
    mdl_gain_threshold, exclude_high_cardinality : bool, default=True
        As for `C45Classifier`, where they are off.
    pruning : Pruner, str or None, default="pessimistic"
        How each tree is pruned.
    winnow : bool, default=False
        Select columns by winnowing before the first trial; see `C45Classifier`.
    soft_thresholds : bool, default=False
        Numbers near a threshold go to both children in prediction; see `C45Classifier`.
    {parameters}

    Attributes
    ----------
    estimators_ : list of C45Classifier
        The trees, in the order in which they were grown.
    {attributes}

    Notes
    -----
    In the next trial the total weight of the misclassified rows is the mean of their present weight
    and of half of the total weight. The gain is divided among these rows in proportion to their
    first weights, and taken from the others in proportion to their present weights; the total is
    unchanged. This is C5.0's rule as Kuhn and Johnson describe it. Trees are grown by the rules of
    J48 and those of C5.0 that `exclude_high_cardinality`, `max_leaf_ratio` and
    `mdl_gain_threshold` set; no rows are dropped.

    Boosting ends early after a tree whose weighted errors are less than a tenth of a row, and
    before one whose weighted errors are half of the total or more, unless it is the first.
    ``stop_reason_`` and a record of the logger "gputree" (INFO) have the reason; a warning is
    issued if errors of half of the total leave only the first tree.

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
    _refuses = C45_REFUSES

    max_leaf_ratio: float | None = 1.1
    pruning: Pruner | str | None = "pessimistic"
    mdl_gain_threshold: bool = True
    soft_thresholds: bool = False

    _members = "trees"

    def _member_of(
        self, tree: C45Classifier, table: CodedTable, target: NDArray, weight: NDArray | None
    ) -> C45Classifier:
        return tree

    def _leaf_ratio(self, first: Tree) -> float:
        if self.max_leaf_ratio is None:
            return 0.0
        leaves = np.count_nonzero(first.is_leaf & (first.weight > 0.0))
        return float(self.max_leaf_ratio * leaves / first.weight[0])

    def _finished(self, member: C45Classifier, columns: NDArray[np.intp]) -> C45Classifier:
        return self._adopt(as_grown(member, self, columns))

    def _tree_of(self, member: C45Classifier) -> Tree:
        return member.tree_

    def _confidences(self, member: C45Classifier, values: NDArray | SparseRows) -> Floats:
        found: Floats = member._descend_part(confidences, values)
        return found

    def _size_of(self, member: C45Classifier) -> tuple[str, int]:
        return "leaves", member.get_n_leaves()

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the trees' importances, by their weights, shape (n_features,)."""
        check_is_fitted(self, "estimators_")
        each = [tree.feature_importances_ for tree in self.estimators_]
        mean: Floats = np.average(each, axis=0, weights=self.estimator_weights_)
        return mean / mean.sum() if mean.any() else mean


def confidences(tree: Tree, values: NDArray, **how: Any) -> Floats:
    """Confidence of a tree in each class, for each row; shape (n_rows, n_classes)."""
    weight = tree.statistics.sum(axis=1, keepdims=True)
    share = (tree.statistics + 1.0 / tree.n_classes) / (weight + 1.0)
    return prediction.class_distributions(
        tree, values, answers=share[tree.nearest_with_weight()], **how
    )
