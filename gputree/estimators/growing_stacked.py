"""Trees of a forest that a device grows together: roots of one growth, level by level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gputree.backends import new_stacked_backend
from gputree.backends.base import Rows
from gputree.estimators.growing import (
    Options,
    TreeUnits,
    alike,
    coded_again,
    grow_together,
    stacked_entries,
    tree_units,
)
from gputree.inputs.tables import Table
from gputree.tree import Tree


def grow_stacked_trees(
    table: Table, target: NDArray, drawn: Iterable[NDArray | None], options: list[Options]
) -> list[Tree]:
    """Grow trees on a device together; each is as `grow_tree` grows it.

    `drawn` are the weights of the rows for each tree. The `options` differ in keys and in warnings.
    """
    first = options[0]._replace(max_bins=table.max_bins or options[0].max_bins)
    device_table = table.on(first.device, first.n_threads)
    again = coded_again(device_table)
    pairs = zip(drawn, options, strict=True)
    given = [_of_entries(tree_units(table, target, weight, of_one)) for weight, of_one in pairs]
    trees: dict[int, Tree] = {}
    for numbers, units in alike(given):
        sizes, entries = stacked_entries(units)
        fields = zip(*(of_tree.task.rows for of_tree in units), strict=True)
        rows = Rows._make(None if of[0] is None else np.concatenate(of) for of in fields)
        task = replace(units[0].task, rows=rows)
        backend = new_stacked_backend(device_table, task, first.n_threads, entries, sizes.size)
        roots = sizes, np.array([options[t].key for t in numbers], np.uint64)
        fixed = [(of_tree.weights, of_tree.targets) for of_tree in units]
        grown = grow_together(backend, roots, task.limits, again, fixed, first, table.columns)
        trees.update(zip(numbers, grown, strict=True))
    return [trees[t] for t in range(len(given))]


def _of_entries(units: TreeUnits) -> TreeUnits:
    """Units of a tree with statistics of its entries in the task, and no others."""
    none, targets = np.empty(0, np.int64), units.targets
    if targets is not None:
        targets = targets._replace(target=none, square=none, square_rest=none)
    task = replace(units.task, rows=units.task.rows.take(units.entries))
    weights = units.weights._replace(weight=None)
    return TreeUnits(units.entries, weights, targets, task)
