"""Trees of a forest that are grown together: in one call of the CPU, or by a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights, counted
from gputree.backends import new_backend, new_stacked_backend
from gputree.backends.base import Rows, Task
from gputree.base.dtypes import Int32s, Int64s
from gputree.criteria.named import fix_drawn
from gputree.estimators.growing import (
    Options,
    check_statistics,
    coded_again,
    grow_together,
    new_plan,
    new_task,
    over_stored,
    units_of,
)
from gputree.growth.assembly import TargetUnits, WholeTrees, number_whole
from gputree.growth.grower import is_small_root
from gputree.inputs.tables import Table
from gputree.tree import Tree


class TreeUnits(NamedTuple):
    """Rows that one of many trees is grown on, and their weights and targets in fixed point."""

    entries: Int64s
    weights: Weights
    targets: Targets | None
    task: Task


def tree_units(
    table: Table,
    categories: Int64s,
    target: NDArray,
    weight: NDArray | None,
    options: Options,
) -> TreeUnits:
    """Units of one of many trees, over columns of so many `categories`."""
    labels, of_rows = over_stored(table.rows, len(table.source), target, weight)
    entries, weights, targets = units_of(labels, of_rows, options)
    task = new_task(labels, weights, targets, categories, options)
    entries = np.arange(len(labels)) if entries is None else entries
    return TreeUnits(entries, weights, targets, task)


def group_alike(given: list[TreeUnits]) -> Iterator[tuple[list[int], list[TreeUnits]]]:
    """Numbers of trees that one backend can grow, and their units."""
    groups = defaultdict(list)
    for t, of_tree in enumerate(given):
        task = of_tree.task
        limits = task.limits._replace(monotonic=None)  # which all trees have, and is not hashable
        groups[task.rows.weight is None, task.criterion, limits].append(t)
    for numbers in groups.values():
        yield numbers, [given[t] for t in numbers]


def stacked_entries(units: list[TreeUnits]) -> tuple[Int64s, Int64s]:
    """Numbers of entries of trees, and the entries of all, one tree after another."""
    entries = [of_tree.entries for of_tree in units]
    return np.array([of_one.size for of_one in entries]), np.concatenate(entries)


def grow_whole_trees(
    table: Table,
    target: NDArray,
    drawn: Int32s | None,
    options: Options,
    keys: NDArray[np.uint64],
) -> list[WholeTrees] | None:
    """Grow trees on the CPU, each from its root on as a small node, in one call where units agree.

    `drawn` (T, n) is how often each tree has drawn each row, None for all once, and `keys` (T,)
    what draws at nodes are hashed with. Columns are numeric. None where trees need levels, or
    weights are other than counts.
    """
    device_table = table.on(options.device, options.n_threads)
    options = options._replace(max_bins=table.max_bins or options.max_bins)
    if drawn is None:
        drawn = np.ones((keys.size, len(target)), np.int8)
    if table.rows is not None:
        of_rows, drawn = drawn, np.zeros((keys.size, len(table.source)), drawn.dtype)
        drawn[:, table.rows] = of_rows
        target, _ = over_stored(table.rows, len(table.source), target, None)
    entries, weight, found = counted(drawn)
    sizes, totals, highest, n_highest, common = found.T
    alike = n_highest == sizes  # all rows drawn have one weight
    if (np.where(alike, highest, common & -common) != 1).any():
        return None
    classes = options.n_classes > 0
    targets = None if classes else fix_drawn(options.criterion, target, weight, totals)
    given = DrawnTrees(keys, sizes, entries, weight, targets)
    groups = defaultdict(list)
    for t, units in enumerate(zip(alike.tolist(), totals.tolist(), given.units, strict=True)):
        groups[units].append(t)
    trees: dict[int, WholeTrees] = {}
    for (of_one, total, _), numbers in groups.items():
        some = given if len(groups) == 1 else given.take(numbers)
        weights = Weights(None if of_one else some.weight.ravel(), 1.0, 1.0, total)
        grown = _grow_alike(table.shape[1], device_table, target, some, weights, options)
        if grown is None:
            return None
        trees.update(zip(numbers, grown, strict=True))
    return [trees[t] for t in range(keys.size)]


class DrawnTrees(NamedTuple):
    """Rows that T trees have drawn of n, and weights and targets in units."""

    keys: NDArray[np.uint64]  # (T,)
    sizes: Int64s  # (T,) numbers of entries
    entries: NDArray[np.int32]  # of all trees, one after another
    weight: Int64s  # (T, n)
    targets: Any  # of `fix_drawn`; None for classes

    @property
    def units(self) -> list[Any]:
        """Units of the targets of each tree, and their reach."""
        if self.targets is None:
            return [None] * self.sizes.size
        _, _, _, _, unit, square_unit, _, reach = self.targets
        return list(zip(unit, square_unit, reach, strict=True))

    def take(self, numbers: list[int]) -> DrawnTrees:
        """Return some of the trees."""
        ends, targets = np.cumsum(self.sizes), self.targets
        entries = [self.entries[ends[t] - self.sizes[t] : ends[t]] for t in numbers]
        if targets is not None:
            fields = (field if field is False else field[numbers] for field in targets)
            targets = Targets._make(fields)
        of_rows = np.concatenate(entries), self.weight[numbers], targets
        return DrawnTrees(self.keys[numbers], self.sizes[numbers], *of_rows)


def _grow_alike(
    d: int,
    device_table: Any,
    target: NDArray,
    given: DrawnTrees,
    weights: Weights,
    options: Options,
) -> Iterator[WholeTrees] | None:
    """Grow trees whose weights and targets have the same units; see `grow_whole_trees`."""
    sizes, n = given.sizes, len(target)
    is_shared = weights.weight is None and (given.targets is None or bool((sizes == n).all()))
    targets, units = given.targets, TargetUnits(np.empty(0), 1.0, 1.0)
    if targets is not None:
        some = slice(0, 1 if is_shared else None)  # all trees have the same targets
        fields = [field[some].ravel() for field in targets[:3]]
        unit, square_unit, reach = map(float, given.units[0])
        units = TargetUnits(targets.centre, unit, square_unit)
        targets = Targets._make((*fields, 0.0, unit, square_unit, False, reach))
    task = new_task(target, weights, targets, device_table.categories, options)
    entries: Any = given.entries
    backend: Any = new_backend(device_table, task, options.n_threads, entries)
    plan = new_plan(options, 0, backend.most_histogram_bytes)
    if not is_small_root(backend, (int(sizes.max()), d), task.limits, plan):
        return None
    found = backend.grow_whole(sizes, given.keys, 0 if is_shared else n)
    if found is None:
        return None
    grown, first_row = found
    check_statistics(int(grown.sizes.max()), options.n_classes)
    whole = WholeTrees.empty(grown.sizes, options.n_classes)
    none = np.empty(0, np.int64)
    rows = backend.rows._make(none if field is None else field for field in backend.rows)
    of_entries = first_row, rows, backend.entries
    number_whole(grown, grown.sizes, *of_entries, task.criterion, units, whole)
    return whole.each(grown.sizes)


def grow_stacked_trees(
    table: Table, target: NDArray, drawn: Iterable[NDArray | None], options: list[Options]
) -> list[Tree]:
    """Grow trees on a device together; each is as `grow_tree` grows it.

    `drawn` are the weights of the rows for each tree. The `options` differ in keys and in warnings.
    """
    first = options[0]._replace(max_bins=table.max_bins or options[0].max_bins)
    device_table = table.on(first.device, first.n_threads)
    again = coded_again(device_table)
    given = [
        _of_entries(tree_units(table, device_table.categories, target, weight, of_one))
        for weight, of_one in zip(drawn, options, strict=True)
    ]
    trees: dict[int, Tree] = {}
    for numbers, units in group_alike(given):
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
