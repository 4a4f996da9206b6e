"""Trees of a forest that are grown together: in one call of the CPU, or by a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights
from gputree.backends import new_backend, new_stacked_backend
from gputree.backends.base import Rows, Subtrees, Task
from gputree.base.dtypes import Int64s
from gputree.estimators.growing import (
    Options,
    Statistics,
    check_statistics,
    coded_again,
    grow_together,
    new_plan,
    new_task,
    over_stored,
    target_statistics,
    units_of,
)
from gputree.growth.assembly import WholeTrees, number_whole
from gputree.growth.grower import is_small_root
from gputree.inputs.tables import Table
from gputree.tree import Tree
from gputree.tree.statistics import bound_gains


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
    table: Table, target: NDArray, drawn: list[NDArray | None], options: Options, keys: list[int]
) -> list[WholeTrees] | None:
    """Grow trees on the CPU, each from its root on as a small node, in one call where units agree.

    `drawn` are the weights of the rows for each tree, and `keys` what its draws are hashed with.
    Columns are numeric. Trees without classes have `Statistics` in place of their sums. None where
    trees need levels, or weights are other than counts.
    """
    device_table = table.on(options.device, options.n_threads)
    options = options._replace(max_bins=table.max_bins or options.max_bins)
    categories = device_table.categories
    given = [tree_units(table, categories, target, weight, options) for weight in drawn]
    if any(of_tree.weights.unit * of_tree.weights.scale != 1.0 for of_tree in given):
        return None
    trees: dict[int, WholeTrees] = {}
    for numbers, units in group_alike(given):
        sizes, entries = stacked_entries(units)
        task = units[0].task
        backend: Any = new_backend(device_table, task, options.n_threads, entries)
        shape = int(sizes.max()), table.shape[1]
        plan = new_plan(options, 0, backend.most_histogram_bytes)
        if not is_small_root(backend, shape, task.limits, plan):
            return None
        group_keys = np.array([keys[t] for t in numbers], np.uint64)
        found = backend.grow_whole(sizes, group_keys, [of_tree.task for of_tree in units])
        if found is None:
            return None
        grown, first_row = found
        numbered = _number(grown, first_row, backend, units, options)
        trees.update(zip(numbers, numbered, strict=True))
    return [trees[t] for t in range(len(drawn))]


def _number(
    grown: Subtrees, first_row: NDArray, backend: Any, units: list[TreeUnits], options: Options
) -> Iterator[WholeTrees]:
    """Number trees that were grown together; see `grow_whole_trees`."""
    sizes = grown.sizes
    check_statistics(int(sizes.max()), options.n_classes)
    whole = WholeTrees.empty(sizes, options.n_classes)
    none = np.empty(0, np.int64)
    rows = backend.rows._make(none if field is None else field for field in backend.rows)
    number_whole(grown, sizes, first_row, rows, backend.entries, whole)
    nodes, splits = (np.append(0, np.cumsum(of)) for of in (sizes, sizes // 2))
    leaves = nodes - splits
    ends: list[Any] = [nodes, splits, splits, splits, splits, leaves, leaves]
    targets, found = units[0].targets, None
    if targets is not None:
        centres = [of_tree.targets.centre for of_tree in units if of_tree.targets is not None]
        targets = targets._replace(centre=np.repeat(centres, sizes))  # type: ignore[arg-type]
        found = target_statistics(whole.sums, units[0].weights, targets, options.criterion)
        roots = np.repeat(found.impurity[nodes[:-1]], sizes // 2)
        bounds = found.impurity[whole.is_split], roots, whole.missing_left
        whole = whole._replace(gain=bound_gains(whole.gain, *bounds))
    for j in range(sizes.size):
        of_nodes = slice(nodes[j], nodes[j + 1])
        fields = [field[end[j] : end[j + 1]] for field, end in zip(whole, ends, strict=True)]
        if found is not None:
            fields[-1] = Statistics._make(field[of_nodes] for field in found)
        yield WholeTrees._make(fields)


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
