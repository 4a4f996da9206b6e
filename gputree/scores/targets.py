"""Targets of scores: their statistics in each branch, and the tree of one best cut.

A column has a branch for each category, or for each range between cuts of numbers:

kind of column              numeric=         branches
categories                                   one a category
numbers                     "threshold"      x <= t and x > t, for the t of the highest gain
                            "mdl"            the ranges between the cuts that pay for themselves
                            "distinct"       one a value
rows without a value                         one more, in every case
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.arithmetic.fixed_point import Targets, fix_targets, fix_weights
from gputree.backends.devices import missing_columns, resolve_device, take_column, to_host
from gputree.base.dtypes import Bools, Floats, Int64s, Values, Weight
from gputree.base.threads import n_threads, run
from gputree.columns import Columns
from gputree.discretization.cut_points import MdlRule, cut_values, new_mdl_task
from gputree.errors import InputError
from gputree.estimators.coded_table import read_whole
from gputree.estimators.column_warnings import warn_if_coarse
from gputree.estimators.growing import Options, grow_tree
from gputree.inputs.labels import Codes, check_labels, check_targets, check_weights
from gputree.inputs.tables import Table
from gputree.scores.measures import BranchMeans, Contingency
from gputree.tree import Tree

# Minimum size of the table of all pairs of a branch and a label that is counted as a whole; for
# larger ones four pairs per row, else only pairs that occur are counted.
FEW_PAIRS = 1 << 16


class Labels(NamedTuple):
    """Codes of labels; weights are integers of a unit, None where all are equal."""

    given: int  # number of rows it was given for
    rows: Codes | None  # rows of positive weight; None for all
    criterion: str
    code: NDArray[np.integer]
    n_labels: int
    weight: Weight

    @property
    def size(self) -> int:
        return self.code.size

    def by_branch(self, branch: Codes) -> Contingency:
        """Weights of labels in each branch."""
        pair = branch * self.n_labels + self.code
        n_pairs = (int(branch.max()) + 1) * self.n_labels
        if n_pairs <= max(FEW_PAIRS, 4 * pair.size):
            found = np.arange(n_pairs)
        else:
            found, pair = np.unique(pair, return_inverse=True)
        weight = np.bincount(pair, self.weight, found.size).astype(np.float64)
        found, weight = found[weight > 0.0], weight[weight > 0.0]
        return Contingency(found // self.n_labels, found % self.n_labels, weight)

    def of_cut(self, tree: Tree, missing: Codes | None) -> Contingency:
        """Weights of labels in the two leaves of a tree, and in the rows without a value."""
        parts = tree.statistics[1:] if tree.n_nodes > 1 else tree.statistics
        if missing is not None and missing.size:
            weight = None if self.weight is None else self.weight[missing]
            of_missing = np.bincount(
                self.code[missing], weight, parts.shape[1]
            )  # of 2 classes or more
            parts = np.concatenate([parts, of_missing[None]])
        branch, label = np.nonzero(parts)
        return Contingency(branch, label, parts[branch, label])

    def grow(self, table: Table, rows: Codes | None, device: str, n_threads: int) -> Tree:
        """Grow the tree of one cut of a table of one column; on `rows`, or on all."""
        options = _options(self.criterion, max(self.n_labels, 2), device, n_threads)
        return _grow(table, self.code, self.weight, rows, options)


class Numbers(NamedTuple):
    """Regression targets, as floats and in fixed point."""

    given: int
    rows: Codes | None
    y: Floats
    weight: Weight
    fixed: Targets
    units: Int64s | None  # weights in units

    @property
    def size(self) -> int:
        return self.y.size

    def by_branch(self, branch: Codes) -> BranchMeans:
        n_branches = int(branch.max()) + 1
        total = np.zeros(n_branches, np.int64)
        np.add.at(total, branch, self.fixed.target)
        units = np.bincount(branch, self.units, n_branches).astype(np.float64)
        filled = units > 0.0
        return BranchMeans(units[filled], total[filled] * self.fixed.unit / units[filled])

    def of_cut(self, tree: Tree, missing: Codes | None) -> BranchMeans:
        leaves = slice(1, None) if tree.n_nodes > 1 else slice(None)
        weight, mean = tree.weight[leaves], tree.statistics[leaves, 0] - self.fixed.centre
        if missing is not None and missing.size:
            of_missing = 1.0 if self.weight is None else self.weight[missing]
            of_missing = float(np.sum(np.broadcast_to(of_missing, missing.size)))
            units = missing.size if self.units is None else int(self.units[missing].sum())
            total = int(self.fixed.target[missing].sum())
            weight = np.append(weight, of_missing)
            mean = np.append(mean, total * self.fixed.unit / units)
        return BranchMeans(weight, mean)

    def grow(self, table: Table, rows: Codes | None, device: str, n_threads: int) -> Tree:
        options = _options("squared_error", 0, device, n_threads)
        return _grow(table, self.y, self.weight, rows, options)


Target = Labels | Numbers


def new_labels(y: ArrayLike, sample_weight: ArrayLike | None, criterion: str) -> Labels:
    """Return labels of the rows of positive weight."""
    code, weight = check_labels(to_host(y), to_host(sample_weight))
    rows, fixed = _fix(weight)
    n_labels = int(code.max()) + 1
    small: NDArray[Any] = code.astype(
        np.uint8 if n_labels <= 256 else np.int32
    )  # as estimators have them
    taken = small if rows is None else small[rows]
    return Labels(code.size, rows, criterion, taken, n_labels, fixed)


def new_numbers(y: ArrayLike, sample_weight: ArrayLike | None) -> Numbers:
    """Return regression targets of the rows of positive weight."""
    target = check_targets(to_host(y))
    rows, fixed = _fix(check_weights(to_host(sample_weight), target))
    taken = target if rows is None else target[rows]
    weights = fix_weights(fixed, taken.size)
    targets = fix_targets(taken, weights)
    warn_if_coarse(fixed, weights, taken, targets)
    return Numbers(target.size, rows, taken, fixed, targets, weights.weight)


def _fix(weight: Floats) -> tuple[Codes | None, Floats | None]:
    """Rows of positive weight, None for all; weights as integers of a unit, None where equal."""
    rows = None if weight.all() else np.flatnonzero(weight)
    weight = weight if rows is None else weight[rows]
    fixed = fix_weights(weight, weight.size)
    warn_if_coarse(weight, fixed)
    if fixed.weight is None:
        return rows, None
    return rows, np.multiply(fixed.weight, fixed.unit, dtype=np.float64)


def _options(criterion: str, n_classes: int, device: str, n_threads: int) -> Options:
    return Options(
        criterion=criterion,
        n_classes=n_classes,
        max_depth=1,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        min_impurity_decrease=0.0,
        max_features=1,
        max_leaf_nodes=None,
        exact=True,
        max_bins=256,
        device=device,
        max_device_memory=None,
        n_threads=n_threads,
        key=0,
        verbose=False,
        warns=False,  # once for the target, not again for every column
    )


def _grow(
    table: Table, target: NDArray, weight: Weight, rows: Codes | None, options: Options
) -> Tree:
    if rows is not None:
        table, target = table.take(rows), target[rows]
        weight = None if weight is None else weight[rows]
    return grow_tree(table, target, weight, options).tree


Numeric = Literal["threshold", "mdl", "distinct"]


class Branched(NamedTuple):
    """A column's branches: statistics of the target, cuts, and number of missing values."""

    parts: Any
    cuts: Floats  # none for categories
    missing: int  # rows


class ScoredTable(NamedTuple):
    """The rows that are scored, and the device and threads for that."""

    rows: Table
    missing: Bools  # (d,): columns that may have missing values
    device: str
    n_threads: int

    @property
    def nominal(self) -> Bools:
        return self.rows.columns.nominal

    def of(self, target: Target) -> ScoredTable:
        """Return the rows that `target` has."""
        n = self.rows.shape[0]
        if target.given != n:
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: [{n}, {target.given}]"
            )
        taken = target.rows
        return self if taken is None else self._replace(rows=self.rows.take(taken))


def read_table(
    caller: str, X: Any, categorical_features: Any, device: str, n_jobs: int | None
) -> ScoredTable:
    """Read a table as the estimators do; `caller` is named in errors."""
    threads = n_threads(n_jobs)
    rows = read_whole(caller, X, categorical_features, device)
    missing = missing_columns(rows.stored, threads)
    return ScoredTable(rows, missing, rows.device or resolve_device(device), threads)


def scores_of(
    table: ScoredTable, target: Target, numeric: Numeric, score: Callable[[Any], float]
) -> Floats:
    """Apply `score` to the statistics of the target in the branches of each column."""
    return np.array([score(column.parts) for column in branch_columns(table, target, numeric)])


def branch_columns(table: ScoredTable, target: Target, numeric: Numeric) -> list[Branched]:
    """Return the branches of every column, over the rows that the target has."""
    table, d = table.of(target), table.rows.shape[1]
    side_by_side = table.device == "cpu" and d >= table.n_threads
    columns = [(table._replace(n_threads=1) if side_by_side else table, f) for f in range(d)]
    return run(
        table.n_threads if side_by_side else 1,
        lambda column, f: _branch(column, f, target, numeric),
        columns,
    )


def _branch(table: ScoredTable, f: int, target: Target, numeric: Numeric) -> Branched:
    none = np.empty(0)
    if table.nominal[f]:
        code, missing = _last_if_missing(table.rows.column(f))
        return Branched(target.by_branch(code), none, missing)
    if numeric == "threshold":
        return _by_threshold(table, f, target)
    column = table.rows.column(f)
    if numeric == "distinct":
        codes = np.unique(column, return_inverse=True)[1]
        return Branched(target.by_branch(codes), none, int(np.isnan(column).sum()))
    assert isinstance(target, Labels)
    rule = MdlRule(by_kononenko=False, counts_cuts=False)
    task = new_mdl_task(target.code, target.weight, target.n_labels, rule)
    cuts = cut_values(column, task)
    ranges = np.searchsorted(cuts, column).astype(np.float64)
    ranges[np.isnan(column)] = np.nan
    code, missing = _last_if_missing(ranges)
    return Branched(target.by_branch(code), cuts, missing)


def _last_if_missing(code: Values) -> tuple[Codes, int]:
    """Codes as integers, missing values behind all others, and the number of those."""
    is_missing = np.isnan(code)
    missing = int(np.count_nonzero(is_missing))
    if missing == 0:
        return code.astype(np.int64), 0
    last = np.nanmax(code) + 1 if missing < code.size else 0
    return np.where(is_missing, last, code).astype(np.int64), missing


def _by_threshold(table: ScoredTable, f: int, target: Target) -> Branched:
    """The best cut of a column: the split of a tree of two leaves grown on that column only."""
    rows = table.rows
    alone = Table(take_column(rows.stored, f), Columns.numeric(1), device=rows.device)
    present = without = None
    if table.missing[f]:
        missing = np.isnan(rows.column(f))
        present, without = np.flatnonzero(~missing), np.flatnonzero(missing)
        if present.size == 0:
            whole = target.by_branch(np.zeros(target.size, np.int64))
            return Branched(whole, np.empty(0), without.size)
    alone.rows = rows.rows
    tree = target.grow(alone, present, table.device, table.n_threads)
    cut = tree.threshold[:1] if tree.n_nodes > 1 else np.empty(0)
    return Branched(target.of_cut(tree, without), cut, 0 if without is None else without.size)
