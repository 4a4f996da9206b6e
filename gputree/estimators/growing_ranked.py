"""From validated arrays to a `Tree` over ranked lists: quantiles, and several targets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights, fix_weights
from gputree.backends import new_ranked_grower
from gputree.backends.base import Limits
from gputree.backends.binning import midpoints
from gputree.backends.lists import NodeRows, RankedNodes
from gputree.base.dtypes import Floats, Int64s
from gputree.base.memory import require_memory
from gputree.base.progress import Progress
from gputree.compilation import kernel
from gputree.criteria.multi_output import class_criterion, fix_several
from gputree.criteria.named import RANKED, class_impurity, target_impurity
from gputree.criteria.pinball import RankedTargets, fix_ranked
from gputree.errors import InputError
from gputree.estimators.column_warnings import warn_if_coarse
from gputree.estimators.growing import (
    BinaryShape,
    Grown,
    Options,
    Statistics,
    check_statistics,
    close_tree,
    cuts_not_drawn,
    new_limits,
    over_stored,
    tree_of_statistics,
)
from gputree.estimators.growing_categories import add_category_tests
from gputree.growth.assembly import GrownNodes, breadth_first, over_leaves, renumber
from gputree.inputs.tables import Table

# Values of parameters that criteria over ranked lists do not take: the reason, and what to write.
_REFUSED = {
    ("device", "cuda"): "its cuts are found on the CPU, row by row. Write device='cpu'.",
    ("splitter", "binned"): "columns are not binned. Write splitter='exact'.",
    ("categorical_split", "exhaustive"): "categories are ordered by what they predict. Write "
    "categorical_split='ordered'.",
    ("categorical_split", "one_vs_rest"): "categories are ordered by what they predict. Write "
    "categorical_split='ordered'.",
}
# Of a row's target, at most: in fixed point, sorted, with its weight, and places in two orders.
BYTES_OF_TARGET = 48
_ON_CPU = "trees of several targets are grown on the CPU"
_NOT_IN_MEMORY = "it is grown from a table in memory, on the CPU: not in batches or in partitions."


def is_ranked(estimator: Any) -> bool:
    """Return True if an estimator grows over ranked lists; raise for what these do not take."""
    criterion = estimator.criterion
    if criterion != "quantile" and getattr(estimator, "quantile", 0.5) != 0.5:
        raise InputError(
            f"The 'quantile' parameter of {type(estimator).__name__} is that of "
            f"criterion='quantile'; got quantile={estimator.quantile!r} and "
            f"criterion={criterion!r}."
        )
    if criterion not in RANKED:
        return False
    for (name, value), reason in _REFUSED.items():
        given = getattr(estimator, name, None)
        if isinstance(given, str) and given.partition(":")[0] == value:  # as "cuda:1"
            raise _refused(estimator, f"{name}={given!r}", reason)
    reasons = {
        "monotonic_cst": "its leaves predict quantiles, whose order is not that of means",
        "forced_splits": "its search of cuts has no such limits",
    }
    for name, reason in reasons.items():
        if getattr(estimator, name, None) is not None:
            raise _refused(estimator, name, f"{reason}. Leave {name} out.")
    return True


def _refused(estimator: Any, what: str, reason: str) -> InputError:
    kind, criterion = type(estimator).__name__, estimator.criterion
    return InputError(f"{kind} does not take {what} with criterion={criterion!r}: {reason}")


def forbid_ranked(criterion: str) -> None:
    """Raise where a tree is grown over shards, for criteria over ranked lists."""
    if criterion in RANKED:
        raise InputError(f"criterion={criterion!r} is not supported here: {_NOT_IN_MEMORY}")


def grow_ranked(
    table: Table, target: NDArray, sample_weight: NDArray | None, options: Options
) -> Grown:
    """Grow a CART tree over ranked lists, as `gputree.estimators.growing.grow_tree` does.

    `target` has the shape (n,), or (n, k) of several targets.
    """
    if table.sharding is not None or table.device not in (None, "cpu"):
        forbid_ranked(options.criterion)
    values: Any = table.on("cpu", options.n_threads)
    target, sample_weight = over_stored(table.rows, len(table.source), target, sample_weight)
    target = target.reshape(len(target), -1)
    n, k = target.shape
    require_targets(n, k, BYTES_OF_TARGET)
    kept = np.arange(n) if sample_weight is None else np.flatnonzero(sample_weight)
    by_first = kept[np.argsort(target[kept, 0], kind="stable")].astype(np.int32)
    weights = fix_weights(None if sample_weight is None else sample_weight[by_first], by_first.size)
    fixed = fix_ranked(target[by_first].T, weights, options.quantile)
    order = np.argsort(target[by_first].T, axis=1, kind="stable").astype(np.int32)
    ordered = np.take_along_axis(fixed.target, order, axis=1)
    weight = fixed.weights.weight
    weight = None if weight is None else weight[order]
    rows = NodeRows(by_first.copy(), ordered, weight, order if k > 1 else None)
    limits = new_limits(fixed.weights, options, rounded=False)
    grown = grow_lists(values, fixed.criterion, limits, rows, options)
    unit = weights.weight, weights.unit * weights.scale
    found = _statistics(
        grown.ranked, fixed, target, _weights_of(grown.ranked, rows, by_first, *unit)
    )
    return tree_of_lists(table, grown, found, options)


def require_targets(n: int, k: int, bytes_of_target: int) -> None:
    """Raise MemoryError if `bytes_of_target` for each of k targets of n rows do not fit."""
    purpose = f"Growing a tree of {n:,} rows by {k:,} targets"
    require_memory(float(n) * k * bytes_of_target, purpose, "Use fewer rows or targets.")


class GrownLists(NamedTuple):
    """Nodes numbered breadth-first, and the growth over ranked lists that they are of."""

    grower: Any
    nodes: GrownNodes
    shape: BinaryShape
    ranked: RankedNodes


def grow_lists(
    values: Any, criterion: Any, limits: Limits, rows: NodeRows, options: Options
) -> GrownLists:
    """Grow over ranked lists of a table on the CPU; `rows` become those of the leaves, in order."""
    n, shared = rows.row.size, (options.n_threads, options.interactions, options.draws_cuts)
    grower: Any = new_ranked_grower(values, criterion, limits, rows, *shared)
    with Progress(n, enabled=options.verbose) as progress:
        grown = grower.grow(options.key)
        progress.level(0, 0, n, grown.begin.size)
    thresholds = grown.threshold if options.draws_cuts else _thresholds(grown, values.values)
    nodes, parent, depth = renumber(_grown_nodes(grown, thresholds))
    by_level = breadth_first(grown.first_child)[0]
    grown = RankedNodes._make(field[by_level] for field in grown)
    grown = grown._replace(first_child=nodes.first_child)
    shape = BinaryShape(parent, depth, nodes.end - nodes.begin, grown.weight[:, None])
    return GrownLists(grower, nodes, shape, grown)


def tree_of_lists(table: Table, grown: GrownLists, found: Statistics, options: Options) -> Grown:
    """The tree of nodes that were grown over ranked lists, of some statistics."""
    tree = tree_of_statistics(grown.nodes, grown.shape, found, options, table.shape[1])
    if table.columns.nominal.any():
        tree = add_category_tests(tree, grown.nodes, grown.grower, table.columns)
    report = {"refined_pairs": 0, "scanned_pairs": 0}
    return Grown(close_tree(tree, grown.shape, options), report)


def sum_of_nodes(grown: RankedNodes, values: Int64s) -> Int64s:
    """Sums in all nodes of the values of rows, which are in the order of the leaves."""
    sums = np.concatenate([[0], np.cumsum(values)])
    found: Int64s = sums[grown.end] - sums[grown.begin]
    return found


def _grown_nodes(grown: RankedNodes, threshold: Floats) -> GrownNodes:
    """Nodes with their thresholds."""
    feature = np.where(grown.first_child < 0, -1, grown.feature)
    return GrownNodes(
        grown.first_child, feature, threshold, grown.missing_left, grown.gain, grown.begin,
        grown.end,
    )  # fmt: skip


def _thresholds(grown: RankedNodes, values: NDArray) -> Floats:
    """Thresholds between the values next to a cut; infinity before missing values."""
    split = np.flatnonzero(grown.first_child >= 0)
    low, high = grown.cut[split].T
    threshold = np.zeros(grown.first_child.size)
    of_rows = [values[row, grown.feature[split]].astype(np.float64) for row in (low, high)]
    threshold[split] = np.where(low == high, np.inf, midpoints(*of_rows))
    return threshold


def _weights_of(
    grown: RankedNodes, rows: NodeRows, order: NDArray, weight: NDArray | None, unit: float
) -> Floats:
    """Weights of nodes, from those of rows before they were rounded for growth.

    `weight` is of the rows in `order`; `rows` are those of the leaves, one leaf after another.
    """
    units = grown.end - grown.begin
    if weight is not None:
        of_row = np.zeros(int(order.max()) + 1, np.int64)
        of_row[order] = weight
        units = sum_of_nodes(grown, of_row[rows.row])
    return np.multiply(units, unit, dtype=np.float64)


def _statistics(
    grown: RankedNodes, fixed: RankedTargets, target: NDArray, weight: Floats
) -> Statistics:
    """Quantiles of the targets themselves, weights and mean losses of nodes."""
    low, high = (target[grown.quantile[..., side], np.arange(target.shape[1])] for side in range(2))
    quantile: Floats = np.where(low == high, low, 0.5 * low + 0.5 * high)
    return Statistics(quantile, weight, grown.loss * fixed.criterion.unit / grown.weight)


def forbid_with_targets(options: Options) -> None:
    """Raise for what trees of several targets do not take."""
    refused = (
        (options.device != "cpu", f"device={options.device!r}", f"{_ON_CPU}. Write device='cpu'."),
        (
            not options.exact,
            "splitter='binned'",
            "columns are not binned. Write splitter='exact'.",
        ),
        (
            options.categorical_split in ("exhaustive", "one_vs_rest"),
            f"categorical_split={options.categorical_split!r}",
            "categories are ordered by their means. Write categorical_split='ordered'.",
        ),
        (
            options.signs is not None,
            "monotonic_cst",
            "its constraints are on one prediction. Leave it out.",
        ),
    )
    for is_given, what, reason in refused:
        if is_given:
            raise InputError(f"Several targets are not supported with {what}: {reason}")


def grow_targets(
    table: Table, target: NDArray[Any], sample_weight: NDArray | None, options: Options
) -> Grown:
    """Grow a CART tree of k targets, as `gputree.estimators.growing.grow_tree` does, on the CPU.

    `target` is float64 (n, k), or has codes of ``options.target_classes`` classes each. Of a table
    in batches, one column after the other is read.
    """
    forbid_with_targets(options)
    if options.draws_cuts and table.sharding is not None:
        raise cuts_not_drawn()
    values: Any = table.on("cpu", options.n_threads)
    values = getattr(values, "whole", values)  # of a table in shards
    target, sample_weight = over_stored(table.rows, len(table.source), target, sample_weight)
    n = len(target)
    kept = np.arange(n) if sample_weight is None else np.flatnonzero(sample_weight)
    # with deviations: as codes and sums, or in fixed point, of which one part is partitioned
    require_targets(kept.size, target.shape[1], 4 + 8 if options.target_classes else 5 * 8)
    if sample_weight is not None and kept.size < n:
        target, sample_weight = target[kept], sample_weight[kept]
    weights = fix_weights(sample_weight, kept.size)
    classes, targets = options.target_classes, None
    criterion: Any
    if classes:
        criterion = class_criterion(options.criterion, classes, weights)
        arranged = np.add(target, criterion.offset[:-1], dtype=np.int32, order="C")
    else:
        criterion, targets = fix_several(options.criterion, target, weights)
        arranged = np.stack([found.target for found in targets], axis=1)
    if options.warns:
        warn_if_coarse(sample_weight, weights)
        for j, of_column in enumerate(targets or ()):
            subject = f"Targets of column {j}"
            warn_if_coarse(None, weights, target[:, j], of_column, subject=subject)
    weight = None if weights.weight is None else weights.weight.copy()
    rows = NodeRows(kept.astype(np.int32), arranged, weight)
    limits = new_limits(weights, options, rounded=targets is not None and targets[0].rounded)
    grown = grow_lists(values, criterion, limits, rows, options)
    check_statistics(grown.ranked.begin.size, sum(classes) or len(criterion.scale))
    if targets is None:
        found = _class_statistics(grown.ranked, rows, criterion.offset, weights, options.criterion)
    else:
        found = _target_statistics(
            grown.ranked, rows.row, kept, weights, targets, options.criterion
        )
    return tree_of_lists(table, grown, found, options._replace(n_classes=sum(classes)))


def _class_statistics(
    grown: RankedNodes, rows: NodeRows, offset: NDArray, weights: Weights, criterion: str
) -> Statistics:
    """Class weights of all targets, weights and impurities of nodes."""
    leaf = np.flatnonzero(grown.first_child < 0)
    sums = np.zeros((leaf.size, offset[-1]), np.int64)
    weight = np.ones(rows.row.size, np.int64) if rows.weight is None else rows.weight
    _add_classes(grown.begin[leaf], grown.end[leaf], rows.target, weight, sums)
    sums = over_leaves(grown.first_child, sums)
    parts = [sums[:, a:b] for a, b in zip(offset, offset[1:], strict=False)]
    impurity = np.zeros(len(sums))
    for part in parts:
        impurity += class_impurity(criterion, part)
    unit = weights.unit * weights.scale
    of_classes, whole = (
        np.multiply(units, unit, dtype=np.float64) for units in (sums, grown.weight)
    )
    return Statistics(of_classes, whole, impurity / len(parts))


@kernel
def _add_classes(
    begin: NDArray, end: NDArray, target: NDArray, weight: NDArray, sums: NDArray
) -> None:
    for leaf in range(begin.size):
        for i in range(begin[leaf], end[leaf]):
            for j in range(target.shape[1]):
                sums[leaf, target[i, j]] += weight[i]


def _target_statistics(
    grown: RankedNodes,
    row: NDArray,
    kept: NDArray,
    weights: Weights,
    targets: list[Targets],
    criterion: str,
) -> Statistics:
    """Means, weights and mean impurities of nodes; `row` are those of the leaves, of all `kept`."""
    k, whole, leaf = len(targets), grown.weight, np.flatnonzero(grown.first_child < 0)
    order = np.argsort(grown.begin[leaf])
    leaf_of = np.empty(kept[-1] + 1, np.int32)
    leaf_of[row] = np.repeat(order, (grown.end - grown.begin)[leaf[order]])
    of_kept = leaf_of[kept]
    means, impurity = np.empty((whole.size, k)), np.zeros(whole.size)
    for j, found in enumerate(targets):
        of_leaves = np.zeros((leaf.size, 3), np.int64)
        _add_targets(of_kept, *found[:3], of_leaves)
        sums = over_leaves(grown.first_child, of_leaves)
        means[:, j] = found.centre + sums[:, 0] * found.unit / whole
        impurity += target_impurity(criterion, np.column_stack([whole, sums]), found)
    unit = weights.unit * weights.scale
    return Statistics(means, np.multiply(whole, unit, dtype=np.float64), impurity / k)


@kernel
def _add_targets(
    leaf: NDArray, target: NDArray, square: NDArray, rest: NDArray, sums: NDArray
) -> None:
    """Add up a target of the rows of leaves, its square and the rest of that."""
    for i in range(leaf.size):
        sums[leaf[i], 0] += target[i]
        sums[leaf[i], 1] += square[i]
        sums[leaf[i], 2] += rest[i]
