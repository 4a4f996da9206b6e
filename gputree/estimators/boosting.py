"""Boosting of C4.5 trees, in the manner of C5.0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.estimators.arguments import C45_REFUSES, MULTIWAY_LACKS
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.documentation import BOOSTED, OF_MULTIWAY_TREES, document
from gputree.estimators.parameters import keyword_constructor
from gputree.estimators.trials import Boosted
from gputree.estimators.winnowing import as_grown
from gputree.pruning import Pruner
from gputree.tree import Tree


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

    def _confidences(self, member: C45Classifier, values: NDArray) -> NDArray[np.float64]:
        found: NDArray[np.float64] = member._descend_part(confidences, values)
        return found

    def _size_of(self, member: C45Classifier) -> tuple[str, int]:
        return "leaves", member.get_n_leaves()

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
    share = (tree.statistics + 1.0 / tree.n_classes) / (weight + 1.0)
    return prediction.class_distributions(
        tree, values, answers=share[tree.nearest_with_weight()], **how
    )
