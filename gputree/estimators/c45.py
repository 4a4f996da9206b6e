"""C4.5: Quinlan, C4.5: Programs for Machine Learning (1993), with the changes of 1996.

Where Release 8 of the program and J48 of Weka differ, J48 is followed; the parameters
that bring Release 8's ways back say so.

Soft thresholds are bounds between which both sides of a cut predict (Quinlan 1993, chapter 8).
A threshold is moved to the values below and above it while the rest of the tree stays. Where
the errors that the node's training rows would make exceed those of the threshold itself by more
than their standard deviation, it has been moved too far: the bound is there, linear between
two values. Errors E among weight N have the deviation ``sqrt((E + 0.5) (N - E + 0.5) / (N + 1))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.devices import to_host
from gputree.base.dtypes import NODE, THRESHOLD_SPLIT, Bools, Floats, Int32s, Int64s, Weight
from gputree.compilation import kernel
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
from gputree.prediction.answers import Descent, portions, spread
from gputree.prediction.descent import pack, step
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
            if self.soft_thresholds:
                values = np.ascontiguousarray(to_host(table.values))
                self.tree_ = soften(self.tree_, values, target, weight)
            return
        grower = coded_grower(self, C45Classifier, table.shape[0])
        table, target, weight = with_weight(table, target, weight)
        kept = winnow(grower, table, target, weight, self.random_state)
        tree = grow_on(grower, kept, table, target, weight)
        self.tree_, self.unpruned_tree_, self.winnowed_ = tree.tree_, tree.unpruned_tree_, ~kept
        self.growth_report_ = tree.growth_report_

    def _grow_tree(self, table: Table, target: NDArray, weight: Weight, n: int) -> Tree:
        tree = super()._grow_tree(table, target, weight, n)
        tree = collapse_splits(tree) if self.collapse else tree
        return replace(tree, smoothing=1.0) if self.laplace else tree

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


class _Arrived(NamedTuple):
    """Parts of rows at nodes of one level: their rows, nodes and weights."""

    row: Int64s
    node: NDArray[Any]
    weight: Floats

    def take(self, entries: NDArray) -> _Arrived:
        return _Arrived(*(field[entries] for field in self))


def soften(tree: Tree, values: NDArray, target: NDArray, weight: Weight) -> Tree:
    """The tree, of classes and pruned, with bounds of its thresholds by the rows it grew on."""
    lower, upper = tree.threshold.copy(), tree.threshold.copy()
    descent = Descent(values, pack(tree, values.dtype), portions(tree), None)
    prediction = np.ascontiguousarray(tree.predictions)
    n = target.size
    arrived = _Arrived(np.arange(n), np.zeros(n, NODE), np.ones(n) if weight is None else weight)
    arrived = arrived.take(arrived.weight > 0.0)
    while (arrived := arrived.take(~tree.is_leaf[arrived.node])).row.size:
        x = values[arrived.row, tree.feature[arrived.node]].astype(np.float64)
        tested = (tree.split_kind[arrived.node] == THRESHOLD_SPLIT) & ~np.isnan(x)
        here = arrived.take(tested)
        first = tree.first_child[here.node]
        wrong = [
            _labels(descent, here.row, first + np.int32(side), prediction) != target[here.row]
            for side in (0, 1)
        ]
        for node, rows in _by_node(here, x[tested], wrong):
            errors = [here.weight[rows] * side[rows] for side in wrong]
            total = float(here.weight[rows].sum())
            place = float(tree.threshold[node])
            lower[node], upper[node] = _bounds(x[tested][rows], errors, total, place)
        arrived = _descend(tree, descent, arrived)
    return replace(tree, soft_lower=lower, soft_upper=upper)


def _by_node(here: _Arrived, x: Floats, wrong: list[Bools]) -> Iterator[tuple[int, Int64s]]:
    """Yield the entries of each node by value; ties are broken independently of row order."""
    order = np.lexsort((*wrong, here.weight, x, here.node))
    nodes, first = np.unique(here.node[order], return_index=True)
    yield from zip(nodes.tolist(), np.split(order, first)[1:], strict=True)


def _bounds(x: Floats, errors: list[Floats], total: float, threshold: float) -> tuple[float, float]:
    """Values to which the threshold may be moved down and up.

    `x` ascends; `errors` are the costs of each entry on the first side and on the second, `total`
    is the weight of the entries.
    """
    last = np.append(np.flatnonzero(x[1:] > x[:-1]), x.size - 1)
    left = np.cumsum(errors[0])
    right = np.cumsum(errors[1])
    value, cost = x[last], (left + (right[-1] - right))[last]  # of a threshold at each value
    below = int(np.searchsorted(value, threshold, side="right"))
    base = float(cost[below - 1] if below else right[-1])
    limit = base + float(np.sqrt((base + 0.5) * max(total - base + 0.5, 0.0) / (total + 1.0)))
    down = _reach(value[:below][::-1], cost[:below][::-1], threshold, base, limit)
    up = _reach(value[below:], cost[below:], threshold, base, limit)
    # a zero is the positive one, in whatever order rows of both came
    return min(down, threshold) + 0.0, max(up, threshold) + 0.0


def _reach(value: Floats, cost: Floats, threshold: float, base: float, limit: float) -> float:
    """Value at which the cost first exceeds the limit on the way along `value`; its end if none."""
    before, spent = threshold, base
    for reached, now in zip(value.tolist(), cost.tolist(), strict=True):
        if now > limit:
            share = (now - limit) / (now - spent)
            return reached * (1.0 - share) + before * share
        before, spent = reached, now
    return before


def _descend(tree: Tree, descent: Descent, arrived: _Arrived) -> _Arrived:
    """The entries one level below; missing values go to every child, by weight."""
    below = _steps(descent, arrived.row, arrived.node)
    moved = below != arrived.node
    parted = arrived.take(~moved & descent.parts.spreads[arrived.node])
    count = tree.n_children[parted.node]
    owner = np.repeat(np.arange(count.size), count)
    child = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
    child = child + tree.first_child[parted.node][owner]
    share = parted.weight[owner] * descent.parts.portion[child]
    counts = share > 0.0
    return _Arrived(
        np.concatenate([arrived.row[moved], parted.row[owner][counts]]),
        np.concatenate([below[moved], child[counts]]),
        np.concatenate([arrived.weight[moved], share[counts]]),
    )


@kernel
def _steps(descent: Descent, row: Int64s, start: Int32s) -> Int32s:
    """The node below each entry's; itself where there is no single one."""
    below = np.empty(row.size, np.int32)
    for i in range(row.size):
        below[i] = step(descent.values, row[i], descent.tree, start[i])
    return below


@kernel
def _labels(descent: Descent, row: Int64s, start: Int32s, prediction: Floats) -> Int64s:
    """The class that the subtree of `start` predicts each row with."""
    n_nodes = descent.tree.nodes.size
    node, share = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    total, label = np.empty(prediction.shape[1]), np.empty(row.size, np.int64)
    for i in range(row.size):
        node[0] = start[i]
        visited = spread(descent, None, row[i], node, share)
        total[:] = 0.0
        for j in range(visited):
            total += share[j] * prediction[node[j]]
        label[i] = np.argmax(total)
    return label
