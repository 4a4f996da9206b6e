"""Targets of scores: their statistics in each branch, and the tree of one best cut."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.arithmetic.fixed_point import Targets, fix_targets, fix_weights
from gputree.backends.arrays import to_host
from gputree.base.dtypes import Floats, Int64s
from gputree.estimators.growing import Options, grow_tree
from gputree.estimators.resolution import warn_if_coarse
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
    weight: Floats | None

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
    weight: Floats | None
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
    table: Table, target: NDArray, weight: Floats | None, rows: Codes | None, options: Options
) -> Tree:
    if rows is not None:
        table, target = table.take(rows), target[rows]
        weight = None if weight is None else weight[rows]
    return grow_tree(table, target, weight, options).tree
