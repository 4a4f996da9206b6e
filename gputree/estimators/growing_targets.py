"""From validated arrays to a `Tree` of several targets: fixed point, ranked lists, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights, fix_weights
from gputree.backends.lists import NodeRows, RankedNodes
from gputree.compilation import kernel
from gputree.criteria.multi_output import class_criterion, fix_several
from gputree.criteria.named import class_impurity, target_impurity
from gputree.errors import InputError
from gputree.estimators.column_warnings import warn_if_coarse
from gputree.estimators.growing import (
    Grown,
    Options,
    Statistics,
    check_statistics,
    cuts_not_drawn,
    new_limits,
    over_stored,
)
from gputree.estimators.growing_ranked import grow_lists, require_targets, tree_of_lists
from gputree.growth.assembly import over_leaves
from gputree.inputs.tables import Table

_ON_CPU = "trees of several targets are grown on the CPU"


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
