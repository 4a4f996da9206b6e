"""From validated arrays to a `Tree`: fixed point, backend, growth, numbering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights, fix_counts, fix_weights
from gputree.backends import new_backend
from gputree.backends.base import (
    Backend,
    DeviceTable,
    Limits,
    Monotonic,
    Rows,
    Task,
)
from gputree.backends.binning import MAX_BINS
from gputree.backends.interactions import Interactions
from gputree.base.dtypes import (
    LEAF,
    MISSING_STOPS,
    NODE,
    THRESHOLD_SPLIT,
    Floats,
    Int32s,
    Int64s,
    Weight,
)
from gputree.base.progress import Progress
from gputree.columns import Columns
from gputree.criteria.named import class_impurity, fix, new_criterion, target_impurity
from gputree.errors import InputError
from gputree.estimators.column_warnings import warn_if_coarse
from gputree.estimators.growing_categories import CategoricalSplit, add_category_tests, search_of
from gputree.growth.assembly import GrownNodes, over_leaves, renumber
from gputree.growth.frontier import best_first_leaves, bound_answers
from gputree.growth.grower import GrowthPlan, grow_roots
from gputree.inputs.tables import Table
from gputree.tree import Tree
from gputree.tree.statistics import bounded_gains

# Depths are 32-bit; no tree of fewer rows than that is deeper.
UNLIMITED_DEPTH = np.iinfo(np.int32).max

# Class weights of all nodes while they are summed up, at most.
MOST_STATISTICS_BYTES = 1 << 34


class Options(NamedTuple):
    """Parameters of growth, resolved for one table."""

    criterion: str
    n_classes: int  # 0 for regression
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_features: int
    max_leaf_nodes: int | None
    exact: bool
    max_bins: int
    device: str  # "cpu" or "cuda"
    max_device_memory: int | None
    n_threads: int
    key: int
    verbose: bool
    categorical_split: CategoricalSplit = "auto"
    warns: bool = True  # where fixed point is too coarse for most rows
    draws_cuts: bool = False
    random_ties: bool = False
    signs: NDArray[np.int8] | None = None  # of columns with monotonic predictions
    interactions: Interactions | None = None
    quantile: float | None = None  # of the criterion "quantile"
    target_classes: tuple[int, ...] = ()  # of each of several targets


class Grown(NamedTuple):
    """A tree, and how much work its exact cuts took."""

    tree: Tree
    report: dict[str, int]


def grow_tree(
    table: Table,
    target: NDArray,
    sample_weight: Weight,
    options: Options,
) -> Grown:
    """Grow a CART tree on class codes, or float64 targets, of shape (n,).

    Weights are float64 or integers; rows of weight zero take no part.
    """
    device_table = table.on(options.device, options.n_threads)
    target, sample_weight = over_stored(table.rows, len(table.source), target, sample_weight)
    entries, weights, targets = units_of(target, sample_weight, options)
    if options.draws_cuts and (options.device != "cpu" or table.sharding is not None):
        raise cuts_not_drawn()
    task = new_task(target, weights, targets, device_table.categories, options)
    backend = new_backend(device_table, task, options.n_threads, entries)
    options = options._replace(max_bins=table.max_bins or options.max_bins)
    again = coded_again(device_table)
    shape = (len(target) if entries is None else entries.size), table.shape[1]
    return grow_on(backend, shape, task.limits, again, weights, targets, options, table.columns)


def over_stored(
    rows: Int64s | None, n: int, target: NDArray, weight: NDArray | None
) -> tuple[NDArray, NDArray | None]:
    """Scatter targets and weights of `rows` of a table to all its n rows; others get weight 0."""
    if rows is None:
        return target, weight
    targets = np.zeros((n, *target.shape[1:]), target.dtype)
    weights = np.zeros(n, np.int8 if weight is None else weight.dtype)
    targets[rows], weights[rows] = target, 1 if weight is None else weight
    return targets, weights


def units_of(
    target: NDArray, sample_weight: NDArray | None, options: Options
) -> tuple[Int64s | None, Weights, Targets | None]:
    """Rows with weight, None for all; and weights and targets in fixed point, of all rows."""
    entries = None
    if sample_weight is not None and sample_weight.dtype.kind != "f":
        entries, weights = fix_counts(sample_weight)
    else:
        if sample_weight is not None and not sample_weight.all():
            entries = np.flatnonzero(sample_weight)
        weights = fix_weights(sample_weight, len(target) if entries is None else entries.size)
    if options.n_classes:
        targets = None
    elif entries is None:
        targets = fix(options.criterion, target, weights)
    else:  # targets of the other rows, which nothing reads, may be out of the range
        ends = float(target[entries].min()), float(target[entries].max())
        targets = fix(options.criterion, target.clip(*ends), weights, ends)
    if options.warns:
        warn_if_coarse(sample_weight, weights, target, targets, entries)
    return entries, weights, targets


def cuts_not_drawn() -> InputError:
    """The error where cuts cannot be drawn."""
    return InputError(
        "Cuts are drawn on the CPU, in tables in memory: splitter='random' and extremely "
        "randomized trees take neither device='cuda' nor a table in batches or in partitions."
    )


def grow_on(
    backend: Backend,
    shape: tuple[int, int],
    limits: Limits,
    again: int,
    weights: Weights,
    targets: Targets | None,
    options: Options,
    columns: Columns,
) -> Grown:
    """Grow a CART tree on a backend, over (entries, columns).

    Of `weights` and `targets`, units count; `again` is `GrowthPlan.coded_again`.
    """
    roots = np.array([shape[0]]), np.array([options.key], np.uint64)
    units = [(weights, targets)]
    (tree,) = grow_together(backend, roots, limits, again, units, options, columns)
    return Grown(tree, backend.report())


def grow_together(
    backend: Backend,
    roots: tuple[Int64s, NDArray[np.uint64]],
    limits: Limits,
    again: int,
    units: Iterable[tuple[Weights, Targets | None]],
    options: Options,
    columns: Columns,
) -> list[Tree]:
    """Grow CART trees of so many entries, one after another, with these keys and units.

    `again` is `GrowthPlan.coded_again`.
    """
    n_features = columns.nominal.size
    plan = new_plan(options, again, backend.most_histogram_bytes)
    with Progress(int(roots[0].sum()), enabled=options.verbose) as progress:
        grown, first = grow_roots(backend, *roots, n_features, limits, plan, progress)
    check_statistics(grown.first_child.size // first.size, options.n_classes)
    numbered = [renumber(grown, root) for root in first.tolist()]
    del grown
    leaves = [nodes.first_child < 0 for nodes, *_ in numbered]
    begin, end = (
        np.concatenate([field[leaf] for field, leaf in zip(of_trees, leaves, strict=True)])
        for of_trees in zip(*((nodes.begin, nodes.end) for nodes, *_ in numbered), strict=True)
    )
    ends = np.cumsum([np.count_nonzero(leaf) for leaf in leaves])
    of_leaves = np.split(backend.node_statistics(begin, end), ends[:-1])
    trees = []
    for (nodes, parent, depth), leaf_sums, fixed in zip(numbered, of_leaves, units, strict=True):
        sums = over_leaves(nodes.first_child, leaf_sums)
        shape = BinaryShape(parent, depth, nodes.end - nodes.begin, sums)
        tree = numbered_tree(nodes, shape, *fixed, options, n_features)
        if columns.nominal.any():
            tree = add_category_tests(tree, nodes, backend, columns)
        if options.signs is not None:
            tree = bound_answers(tree, options.signs)
        trees.append(close_tree(tree, shape, options))
    return trees


def coded_again(table: DeviceTable) -> int:
    """See `GrowthPlan`."""
    return int(np.count_nonzero(table.categories + table.missing > MAX_BINS))


def new_plan(options: Options, coded_again: int, histogram_bytes: int) -> GrowthPlan:
    """Plan of growth on a backend with so many bytes for histograms."""
    return GrowthPlan(
        max_bins=options.max_bins,
        exact=options.exact,
        max_leaf_nodes=options.max_leaf_nodes,
        histogram_bytes=histogram_bytes,
        finish_rows=None,
        coded_again=coded_again,
        interactions=options.interactions,
    )


def new_task(
    target: NDArray,
    weights: Weights,
    targets: Targets | None,
    categories: Int64s,
    options: Options,
) -> Task:
    """The task of growing on fixed-point weights, and targets for regression.

    `categories` are those of each column in growth.
    """
    criterion = new_criterion(options.criterion, options.n_classes, weights, targets)
    rows = Rows(target, weights.weight, None, None)
    if targets is not None:
        rows = Rows(targets.target, weights.weight, targets.square, targets.square_rest)
    return Task(
        criterion,
        new_limits(weights, options, rounded=targets is not None and targets.rounded),
        rows,
        exact=options.exact,
        max_device_memory=options.max_device_memory,
        search=search_of(options.categorical_split) if categories.any() else None,
        interactions=options.interactions,
        draws_cuts=options.draws_cuts,
    )


def new_limits(weights: Weights, options: Options, *, rounded: bool) -> Limits:
    """The limits of growth on fixed-point weights, of which those of rows may be `rounded`."""
    least = -np.inf  # by default rounding must not refuse a split that gains nothing
    if options.min_impurity_decrease != 0.0:  # with scikit-learn's slack
        least = (options.min_impurity_decrease - float(np.finfo(np.float64).eps)) * weights.total
    return Limits(
        max_depth=UNLIMITED_DEPTH if options.max_depth is None else options.max_depth,
        min_samples_split=options.min_samples_split,
        min_samples_leaf=options.min_samples_leaf,
        min_weight_leaf=int(np.ceil(options.min_weight_fraction_leaf * weights.total)),
        min_decrease=least,
        max_features=options.max_features,
        rounded=rounded,
        random_ties=options.random_ties,
        monotonic=None if options.signs is None else Monotonic(options.signs),
    )


def check_statistics(n_nodes: int, n_classes: int) -> None:
    """Refuse a tree whose class weights alone would exhaust the memory."""
    if n_nodes > np.iinfo(NODE).max:
        raise InputError(f"The tree has {n_nodes:,} nodes; at most 2**31 - 1 fit.")
    needed = 2 * n_nodes * max(n_classes, 1) * 8  # integers and floats
    if needed > MOST_STATISTICS_BYTES:
        raise InputError(
            f"The class weights of {n_nodes:,} nodes x {n_classes:,} classes need "
            f"{needed / 2**30:.0f} GiB. Limit the tree with max_depth or min_samples_leaf, leave "
            "out columns with very many categories, or use a regressor if y is a quantity."
        )


class BinaryShape(NamedTuple):
    """Nodes numbered breadth-first: parents, depths, rows, and row statistics (N, S)."""

    parent: Int32s
    depth: Int32s
    rows: Int64s
    sums: Int64s


class Statistics(NamedTuple):
    """Class weights or targets of N nodes, shape (N, K), weights and impurities."""

    statistics: Floats
    weight: Floats
    impurity: Floats


def numbered_tree(
    nodes: GrownNodes,
    shape: BinaryShape,
    weights: Weights,
    targets: Targets | None,
    options: Options,
    n_features: int,
) -> Tree:
    """The tree of nodes numbered breadth-first; all splits are thresholds."""
    if targets is None:
        found = _class_statistics(shape.sums, weights, options.criterion)
    else:
        found = target_statistics(shape.sums, weights, targets, options.criterion)
    return tree_of_statistics(nodes, shape, found, options, n_features)


def tree_of_statistics(
    nodes: GrownNodes, shape: BinaryShape, found: Statistics, options: Options, n_features: int
) -> Tree:
    """The tree of nodes numbered breadth-first, of some statistics; all splits are thresholds."""
    leaf = nodes.first_child < 0
    missing_child = np.where(leaf, MISSING_STOPS, np.where(nodes.missing_left, 0, 1))
    return Tree(
        task="classification" if options.n_classes else "regression",
        criterion=options.criterion,
        n_features=n_features,
        first_child=nodes.first_child.astype(NODE),
        n_children=np.where(leaf, 0, 2).astype(NODE),
        parent=shape.parent,
        depth=shape.depth,
        split_kind=np.where(leaf, LEAF, THRESHOLD_SPLIT).astype(np.uint8),
        feature=nodes.feature,
        threshold=nodes.threshold,
        missing_child=missing_child.astype(NODE),
        weight=found.weight,
        n_rows=shape.rows,
        statistics=found.statistics,
        impurity=found.impurity,
        gain=nodes.gain,
        target_classes=options.target_classes,
    )


def close_tree(tree: Tree, shape: BinaryShape, options: Options) -> Tree:
    """The tree with only the leaves that best-first growth would have."""
    if options.max_leaf_nodes is None:
        return bounded_gains(tree)
    sums = shape.sums  # units, as growth compared them
    is_whole = options.n_classes and not options.target_classes
    units = sums.sum(axis=1) if is_whole else sums[:, 0]
    closed = best_first_leaves(tree.first_child, tree.gain * units, options.max_leaf_nodes)
    return bounded_gains(tree.collapse(closed))


def _class_statistics(sums: Int64s, weights: Weights, criterion: str) -> Statistics:
    """Class weights, weight and impurity of every node."""
    unit = weights.unit * weights.scale
    whole = sums.sum(axis=1)
    impurity = class_impurity(criterion, sums)
    return Statistics(np.multiply(sums, unit, dtype=np.float64), whole * unit, impurity)


def target_statistics(
    sums: Int64s, weights: Weights, targets: Targets, criterion: str
) -> Statistics:
    """Mean, weight and impurity of every node."""
    weight, total = sums[:, 0], sums[:, 1]
    mean: Floats = targets.centre + total * targets.unit / weight
    whole = np.multiply(weight, weights.unit * weights.scale, dtype=np.float64)
    return Statistics(mean[:, None], whole, target_impurity(criterion, sums, targets))
