"""Winnowing: columns that do not help are left out before growth, as C5.0 does it.

One tree is grown on half of the rows, drawn at random. Columns that it does not test are left out,
and so are those without which it errs less on the other half. A second tree is grown on the first
half without them; where that errs more on the other half than the first did, all columns stay.
(Kuhn and Johnson, Applied Predictive Modeling, 2013, section 14.6.) "Without a column" means here
that its values are missing, which C4.5 trees can predict.

Weights of rows from one trial of boosting to the next are in units: sums have no order.
"""

from copy import copy
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.devices import to_host
from gputree.base.dtypes import Bools, Floats, Int64s, Weight
from gputree.columns import Columns
from gputree.estimators.arguments import within
from gputree.estimators.base import count_rows, take_weights
from gputree.estimators.coded_table import CodedTable
from gputree.inputs.tables import Table
from gputree.tree import Tree

# Bits of the total weight: two less than in growth, which then takes the units over exactly.
TOTAL_BITS = 48


class RowWeights(NamedTuple):
    """Weights of n rows: ``units x unit``; `base` are the units of the first trial."""

    units: Int64s
    base: Int64s
    unit: float

    @property
    def values(self) -> Floats:
        return np.multiply(self.units, self.unit, dtype=np.float64)


def first_weights(weight: Weight, n: int) -> RowWeights:
    """Weights of the first trial, from sample weights, positive, or None."""
    fixed = fix_weights(weight, n, fractions=True)
    assert fixed.weight is not None
    shift = max(fixed.total.bit_length() - TOTAL_BITS, 0)
    units = np.maximum(fixed.weight >> shift, 1)
    return RowWeights(units, units, fixed.unit * fixed.scale * 2.0**shift)


class TrialOutcome(NamedTuple):
    """Units of the rows that a trial's tree classifies correctly, and wrongly."""

    right: int
    wrong: int

    @property
    def error(self) -> float:
        """Weighted fraction of errors."""
        return self.wrong / (self.right + self.wrong)


def outcome_of(weights: RowWeights, is_wrong: Bools) -> TrialOutcome:
    """Weight of the rows that a tree predicts correctly, and of the other rows."""
    wrong = int(weights.units[is_wrong].sum())
    return TrialOutcome(int(weights.units.sum()) - wrong, wrong)


def next_weights(weights: RowWeights, is_wrong: Bools, outcome: TrialOutcome) -> RowWeights:
    """The weights of the next trial, by C5.0's rule.

    Rows that were wrong come half way to half of the total weight: what they gain is shared by
    them as their first weights are, and taken from the others in proportion (Kuhn and Johnson,
    Applied Predictive Modeling, 2013, section 14.6).
    """
    right, wrong = outcome
    moved = (right - wrong) / 4
    kept = np.rint(weights.units * ((right - moved) / right))
    gained = np.rint(weights.base * (moved / int(weights.base[is_wrong].sum())))
    units = np.where(is_wrong, weights.units + gained, kept)
    return weights._replace(units=np.maximum(units, 1.0).astype(np.int64))


def coded_grower(estimator: Any, kind: type, n: int) -> Any:
    """A tree of `kind` with the parameters of an estimator, for class codes of n weighted rows."""
    given = estimator.get_params(deep=False)
    params = {name: given[name] for name in signature(kind).parameters if name in given}
    min_rows = max(count_rows(estimator.min_samples_split, n), 2)  # shares are of all rows
    params |= {"class_weight": None, "misclassification_costs": None}  # the weights have them
    params |= {"min_samples_split": min_rows, "verbose": 0, "winnow": False}
    if estimator.classes is not None:  # its classes are codes
        params["classes"] = np.arange(estimator.n_classes_)
    grower = kind(**params)
    for name in ("columns_", "n_features_in_", "feature_names_in_", "n_classes_"):
        if hasattr(estimator, name):
            setattr(grower, name, getattr(estimator, name))
    grower.classes_ = np.arange(estimator.n_classes_)
    grower.n_outputs_ = 1
    return grower


def winnow(grower: Any, table: Table, target: NDArray, weight: Weight, random_state: Any) -> Bools:
    """Mark the columns to grow on, shape (n_features,).

    `grower` is not fitted, as `coded_grower` makes it, and weights are positive, or None. The half
    that a tree is grown on is drawn by position: rows in another order may winnow otherwise.
    """
    n, d = table.shape
    every = np.ones(d, np.bool_)
    if n < 2:
        return every
    order = check_random_state(random_state).permutation(n)
    first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    judge = _Judge(table.take(second), target[second], take_weights(weight, second))
    half = table.take(first), target[first], take_weights(weight, first)
    tree = grow_on(grower, every, *half)
    errors = judge.errors(tree)
    kept = np.zeros(d, np.bool_)
    for f in np.unique(tree.tree_.feature[~tree.tree_.is_leaf]):
        kept[f] = judge.errors(tree, without=f) >= errors
    if not kept.any():
        return every
    return kept if judge.errors(grow_on(grower, kept, *half)) <= errors else every


class _Judge:
    """Counts errors on rows that no tree was grown on, in units of weight."""

    def __init__(self, table: Table, target: NDArray, weight: Weight) -> None:
        self.values = np.array(to_host(table.values), order="C")
        self.target = target
        self.units = first_weights(weight, target.size).units

    def errors(self, tree: Any, without: int | None = None) -> int:
        """Weight of the rows that a tree classifies wrongly, where it may miss a column."""
        values = self.values
        if without is not None:
            values = values.copy()
            values[:, without] = np.nan
        found = tree.predict(CodedTable.of(Table(values, tree.columns_)))
        return int(self.units[found != self.target].sum())


def grow_on(grower: Any, kept: Bools, table: Table, target: NDArray, weight: Weight) -> Any:
    """A copy of `grower`, fitted on some of the columns; its trees number all of them."""
    columns, tree = np.flatnonzero(kept), copy(grower)
    if columns.size < kept.size:
        table = with_columns(table, columns)
        tree.columns_, tree.n_features_in_ = table.columns, columns.size
        tree.interaction_cst = within(grower, kept.size, columns)
    tree._grow_and_prune(table, target, weight, (CodedTable.of(table), target, weight))
    return as_grown(tree, grower, columns)


def with_columns(table: Table, kept: NDArray[np.intp]) -> Table:
    """Copy a table with some of its columns."""
    nominal, categories = table.columns.nominal, table.columns.categories
    columns = Columns(nominal[kept], tuple(categories[f] for f in kept))
    values = np.ascontiguousarray(to_host(table.values)[:, kept])
    return Table(values, columns, device=table.device)


def as_grown(tree: Any, grower: Any, columns: NDArray[np.intp]) -> Any:
    """A copy of the fitted `tree` of the columns `columns`, renumbered to all of `grower`."""
    tree = copy(tree)
    for name in ("tree_", "unpruned_tree_"):
        setattr(tree, name, _numbered(getattr(tree, name), columns, grower.n_features_in_))
    tree.columns_, tree.n_features_in_ = grower.columns_, grower.n_features_in_
    tree.interaction_cst = grower.interaction_cst
    tree.winnowed_ = ~np.isin(np.arange(grower.n_features_in_), columns)
    return tree


def _numbered(tree: Tree, columns: NDArray[np.intp], n_features: int) -> Tree:
    """Renumber a tree of the columns `columns` to `n_features` columns."""
    feature = np.where(tree.is_leaf, tree.feature, columns[np.maximum(tree.feature, 0)])
    return replace(tree, feature=feature.astype(tree.feature.dtype), n_features=n_features)
