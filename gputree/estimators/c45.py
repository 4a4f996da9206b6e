"""C4.5: Quinlan, C4.5: Programs for Machine Learning (1993), with the changes of 1996.

Where Release 8 of the program and J48 of Weka differ, J48 is followed; the parameters
that bring Release 8's ways back say so.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.arrays import to_host
from gputree.errors import InputError
from gputree.estimators.arguments import C45_REFUSES, MULTIWAY_LACKS
from gputree.estimators.base import Given, with_weight
from gputree.estimators.column_warnings import have_few_categories
from gputree.estimators.documentation import MULTIWAY_TREE, OF_MULTIWAY_TREES, document
from gputree.estimators.growing_lists import ListOptions
from gputree.estimators.multiway import MultiwayTree
from gputree.estimators.parameters import C45Parameters, keyword_constructor
from gputree.estimators.winnowing import coded_grower, grow_on, winnow
from gputree.growth.lists import C45Rule
from gputree.inputs.tables import Table
from gputree.prediction.soft_thresholds import soften
from gputree.pruning import Pruner, collapse_splits
from gputree.tree import Tree

# As in Release 8 and J48: either side of a numeric cut holds a tenth of the known rows of an
# average class, but at most 25 rows are required.
CUT_SHARE = 0.1
MOST_CUT_WEIGHT = 25.0

# Rows per class up to which the minimum gain is the average gain, and from which it is the
# description length, as in C5.0.
AVERAGE_ROWS, BITS_ROWS = 500, 1000


@document(OF_MULTIWAY_TREES, MULTIWAY_TREE)
@keyword_constructor
class C45Classifier(MultiwayTree, C45Parameters):
    """C4.5, as J48 grows and prunes it.

    Splits on categories are multiway, splits on numbers binary. The column with the highest gain
    ratio is split, among those of at least average gain; with ``criterion="gain"`` that with the
    highest gain. A row whose value
    is missing goes to all children, with fractional weights in proportion to the weights of the
    known rows, in growth and in prediction. The grown tree is pruned by the
    pessimistic estimate of its errors.

    Parameters
    ----------
    min_samples_leaf : float, default=2
        Minimum weight (number of rows without weights) of two of a split's branches. Numeric cuts
        also need a minimum number of rows with known values, see Notes.
    criterion : "gain_ratio" or "gain", default="gain_ratio"
        Columns are compared by the gain ratio, or by the information gain; C4.5's ``-g``. The cut
        of a number is that of the highest gain in either case. Zhou's trees (Machine Learning,
        section 4.4) are those of ``criterion="gain", mdl_correction=False, min_samples_leaf=1,
        collapse=False, pruning=None``.
    average_gain_rule : bool, default=True
        Columns whose gain is below the average of all are left out. Has no effect with
        ``criterion="gain"``.
    mdl_gain_threshold : bool, default=False
        The minimum gain of a split, as in C5.0: up to 500 rows per class (the mean over classes) it
        is the average gain; from 1,000 rows it is 0.9 times log2 of the number of candidate
        columns, divided by the weight of the node; in between it is interpolated linearly. Has no
        effect with ``average_gain_rule=False`` or ``criterion="gain"``.
    exclude_high_cardinality : bool, default=False
        Exclude columns with at least 3 categories per 10 rows, with a warning, unless all columns
        are such, as in C5.0. C4.5 and J48 only leave them out of the average gain.
    mdl_correction : bool, default=True
        The gain of a numeric split is reduced by the description length of the threshold
        (Quinlan, Improved use of continuous attributes in C4.5, 1996).
    threshold_placement : "midpoint" or "data", default="midpoint"
        Thresholds are midpoints between two values of the node or, as in C4.5 and J48, the largest
        value of the whole table up to the midpoint. Training rows go to the same children.
    binary_splits : bool, default=False
        Splits on categories are one-vs-rest, where the rest includes unseen categories: that of the
        highest gain ratio (with ``criterion="gain"`` of the highest gain), ties to the first.
        J48's ``-B``. Grown on the CPU.
    collapse : bool, default=True
        Splits that classify no more training rows correctly than a leaf are collapsed, before
        any pruning.
    laplace : bool, default=False
        Laplace smoothing: each class of a node gets an additional weight of 1 in prediction, as
        with J48's ``-A``. No class has probability 0. A leaf without rows predicts as its nearest
        ancestor with rows in any case. Growth and pruning are not affected.
    soft_thresholds : bool, default=False
        In prediction, a number near a threshold goes down both branches, with fractional weights
        that change linearly between a lower and an upper bound, with halves at the threshold;
        C4.5's ``-p``. A bound is where the errors of the rows of ``fit`` in the node (including
        rows held out for pruning), with the threshold there, would exceed their errors by one
        standard deviation (Quinlan 1993, chapter 8). Bounds are computed after pruning, and stored
        in ``tree_.soft_lower`` and ``tree_.soft_upper``. Model files and JSON support them, other
        formats raise an error; text and pictures show the threshold only. ``prune`` of a fitted
        tree removes them. With costs of more than two classes, the errors are those of predicting
        the class of the largest weight.
    pruning : Pruner, str or None, default="pessimistic"
        A method of `gputree.pruning`, or its short name. "pessimistic" is that of C4.5, with
        confidence 0.25 and subtree raising.
    winnow : bool, default=False
        Select columns before growth, as in C5.0. Left out are the columns that a tree on a random
        half of the rows (`random_state`) does not test, and those without which its error on the
        other half is lower; unless a tree without all of them has a higher error there. The halves
        are drawn by position: another order of rows may select other columns.
    {parameters}

    Attributes
    ----------
    {attributes}
    winnowed_ : bool array of shape (n_features_in_,)
        Which columns `winnow` has left out.

    Notes
    -----
    Either side of a numeric cut has at least `min_samples_leaf` or, if that is more, a tenth of the
    known weight divided by the number of classes, limited to 25. As in J48, a numeric column is cut
    in a node only if at least twice as many of its rows have a known value; these rows are
    counted, whatever their weights. Weights are fixed-point, with at
    least 2**-50 of the total weight as the unit: smaller fractional weights are dropped.

    J48 (Weka) is followed where it differs from Release 8: numbers are doubles, subtrees are
    collapsed in a separate pass, and pruning takes the exact quantile of the normal
    distribution (``Pessimistic(quantile="release8")`` interpolates as Release 8 does). Unlike
    both, gputree also cuts between values nearer than 1e-5.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> X, y = load_golf(return_X_y=True)
    >>> C45Classifier().fit(X, y).get_n_leaves()
    5
    """

    _lacks = MULTIWAY_LACKS
    _refuses = C45_REFUSES

    # Leaves per unit of weight that boosting allows a tree; 0 for no limit.
    _leaves_per_weight = 0.0

    pruning: Pruner | str | None = "pessimistic"
    mdl_gain_threshold: bool = False
    laplace: bool = False
    soft_thresholds: bool = False

    def _grow_and_prune(self, table: Table, target: NDArray, weight: Any, given: Given) -> None:
        self.winnowed_ = np.zeros(self.n_features_in_, np.bool_)
        if not self.winnow:
            super()._grow_and_prune(table, target, weight, given)
            return self._soften(table, target, weight)
        grower = coded_grower(self, C45Classifier, table.shape[0])
        table, target, weight = with_weight(table, target, weight)
        kept = winnow(grower, table, target, weight, self.random_state)
        tree = grow_on(grower, kept, table, target, weight)
        self.tree_, self.unpruned_tree_, self.winnowed_ = tree.tree_, tree.unpruned_tree_, ~kept
        self.growth_report_ = tree.growth_report_

    def _grow_tree(
        self, table: Table, target: NDArray, weight: NDArray[np.float64] | None, n: int
    ) -> Tree:
        tree = super()._grow_tree(table, target, weight, n)
        tree = collapse_splits(tree) if self.collapse else tree
        return replace(tree, smoothing=1.0) if self.laplace else tree

    def _soften(self, table: Table, target: NDArray, weight: NDArray[np.float64] | None) -> None:
        if self.soft_thresholds:
            values = np.ascontiguousarray(to_host(table.values))
            self.tree_ = soften(self.tree_, values, target, weight)

    def _device(self) -> str:
        forbid_binary_splits_on_cuda(self)
        return "cpu" if self.binary_splits else super()._device()

    def _options(self, n: int, n_weighted: int) -> ListOptions:
        return ListOptions(
            rule=C45Rule(
                numeric=~self.columns_.nominal,
                averaged=have_few_categories(self.columns_, n_weighted),
                average_gain_rule=self.average_gain_rule and self.criterion == "gain_ratio",
                mdl_correction=self.mdl_correction,
                min_gain=float(self.min_gain),
                by_gain=self.criterion == "gain",
                averaged_only=self.exclude_high_cardinality,
                bits_share=self._bits_share(n_weighted),
                leaves_per_weight=self._leaves_per_weight,
            ),
            missing_is_category=False,
            every_category=not self.binary_splits,
            one_against_rest=self.binary_splits,
            by_gain=self.criterion == "gain",
            min_branch_weight=float(self.min_samples_leaf),
            cut_share=CUT_SHARE / self.n_classes_,
            max_cut_weight=MOST_CUT_WEIGHT,
            leaves_per_weight=self._leaves_per_weight,
            actual_values=self.threshold_placement == "data",
            **self._shared_options(n),
        )

    def _bits_share(self, n_weighted: int) -> float:
        """Fraction of the description length in the minimum gain; the rest is the average gain."""
        if not self.mdl_gain_threshold:
            return 0.0
        rows = n_weighted // self.n_classes_
        return min(max((rows - AVERAGE_ROWS) / (BITS_ROWS - AVERAGE_ROWS), 0.0), 1.0)


def forbid_binary_splits_on_cuda(estimator: Any) -> None:
    """Raise ValueError where binary splits are to be grown on a CUDA device."""
    if estimator.binary_splits and estimator.device not in ("auto", "cpu"):
        raise InputError(
            f"{type(estimator).__name__} with binary_splits=True grows on the CPU alone: pass "
            f"device='cpu' or 'auto'. Got device={estimator.device!r}."
        )
