"""From validated arrays to the `Tree` of ID3 or C4.5: attribute lists, growth, numbering."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Weights, about_one, fix_weights
from gputree.backends import get_list_backend
from gputree.backends.binning import midpoints
from gputree.backends.devices import CodedColumns
from gputree.backends.interactions import Interactions
from gputree.backends.lists import BranchLimits, ListBackend, ListTask
from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_CODE,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    SUBSET_SPLIT,
    THRESHOLD_SPLIT,
    Bools,
    Floats,
    Int64s,
    Weight,
)
from gputree.base.memory import require_memory
from gputree.base.progress import Progress
from gputree.criteria import node_entropies
from gputree.criteria.entropy import new_information
from gputree.estimators.column_warnings import warn_if_coarse
from gputree.estimators.growing import UNLIMITED_DEPTH, check_statistics
from gputree.growth.lists import (
    Branching,
    Expansion,
    GrowthLimits,
    ListGrower,
    SplitRule,
    TreeShape,
    breadth_first,
)
from gputree.tree import Tree
from gputree.tree.branches import BranchLists, places_of
from gputree.tree.statistics import bounded_gains

# Weights, counts and sums nearer than this are equal, where rows have weights of about 1.
WEIGHT_SLACK = 1e-6

# Bytes of a category in a list while lists are made.
LIST_BYTES = 64

# Bytes of the lists of one level, at least; beyond it the table's own size sets the budget.
LEAST_LIST_BYTES = 1 << 28


class ListOptions(NamedTuple):
    """Parameters of growth over attribute lists, resolved for one table."""

    n_classes: int
    nominal: Bools
    n_categories: Int64s
    rule: SplitRule
    missing_is_category: bool  # one more branch (ID3), not fractions of rows in every one (C4.5)
    every_category: bool  # a split has a branch for every category of its column, also without rows
    one_against_rest: bool  # a split has two branches: one category, and all others of its column
    by_gain: bool  # that category is chosen by the gain, not by the gain ratio
    min_branch_weight: float  # of a branch that counts; nodes of less than twice as much are leaves
    cut_share: float  # see `gputree.backends.lists.BranchLimits`
    max_cut_weight: float
    leaves_per_weight: float  # maximum of a node, times its weight, rounded; 0 for no limit
    actual_values: bool  # thresholds are values of the table, not midpoints
    max_depth: int | None
    min_samples_split: int
    device: str  # "cpu" or "cuda"
    max_device_memory: int | None
    n_threads: int
    verbose: bool
    interactions: Interactions | None


def grow_lists(
    columns: CodedColumns,
    target: NDArray,
    sample_weight: Weight,
    options: ListOptions,
) -> Tree:
    """Grow a multiway tree by information gain.

    Growth uses the codes of `columns` up. `sample_weight` is positive, of shape (n,), or None.
    """
    growth = ListGrowth.over(columns, target, sample_weight, options)
    warn_if_coarse(sample_weight, growth.weights)
    backend = get_list_backend(options.device)(columns[0], growth.task, options.n_threads)
    return growth.grow(backend)


class ListGrowth(NamedTuple):
    """Growth over the rows of one table, from the root or from a node's level."""

    task: ListTask
    weights: Weights
    distinct: list[NDArray]  # values of the numeric columns
    options: ListOptions

    @classmethod
    def over(
        cls,
        columns: CodedColumns,
        target: NDArray,
        sample_weight: Weight,
        options: ListOptions,
    ) -> ListGrowth:
        """Prepare growth over all rows of a table."""
        codes, distinct = columns
        has_missing = bool((codes.code[:, -1] == MISSING_CODE).any())
        fractions = has_missing and not options.missing_is_category
        weights = about_one(
            fix_weights(sample_weight, target.size, fractions=fractions), target.size
        )
        return cls(_task(target, weights, options), weights, distinct, options)

    def grow(self, backend: ListBackend) -> Tree:
        """Grow the tree of all entries of the backend's root."""
        with Progress(self.task.target.size, enabled=self.options.verbose) as progress:
            nodes = self.grower(backend.most_entries).grow(backend, progress)
        return self.tree_of(nodes)

    def grower(self, most_entries: int) -> ListGrower:
        """Return the level loop over at most `most_entries` at once."""
        most = _most_entries(self.task.nominal.size, self.task.target.size, most_entries)
        limits = _limits(self.weights, self.options)
        options = self.options
        given = limits, self.distinct, most, options.interactions
        return ListGrower(self.task, options.rule, *given)

    def tree_of(self, nodes: Branching) -> Tree:
        """Return the tree of nodes that were grown."""
        return _to_tree(nodes, self.distinct, self.weights, self.options)


def _task(target: NDArray, weights: Weights, options: ListOptions) -> ListTask:
    weight = weights.unit * weights.scale  # of one unit
    return ListTask(
        information=new_information(weights.total, weights.unit),
        n_classes=options.n_classes,
        target=target,
        weight=weights.weight,
        nominal=options.nominal,
        missing_is_category=options.missing_is_category,
        limits=BranchLimits(
            least=options.min_branch_weight / weight,
            cut_share=options.cut_share,
            most=options.max_cut_weight / weight,
            slack=WEIGHT_SLACK / weights.unit,
            unit=weight,
        ),
        one_against_rest=options.one_against_rest,
        by_gain=options.by_gain,
        max_device_memory=options.max_device_memory,
    )


def _limits(weights: Weights, options: ListOptions) -> GrowthLimits:
    weight, min_branches = weights.unit * weights.scale, 2 * options.min_branch_weight
    if options.leaves_per_weight:  # two leaves, rounded
        min_branches = max(min_branches, 1.5 / options.leaves_per_weight)
    return GrowthLimits(
        max_depth=UNLIMITED_DEPTH if options.max_depth is None else options.max_depth,
        min_rows=options.min_samples_split,
        min_weight=min_branches / weight,
        slack=WEIGHT_SLACK / weights.unit,
    )


def _most_entries(d: int, n: int, most: int) -> int:
    """Entries of one level: twice the table's, or what a small table can afford.

    Not more than `most`, which fits the device.
    """
    entry_bytes = 8 * d + 16
    entries = max(2 * n, LEAST_LIST_BYTES // entry_bytes)
    return min(entries, most)  # lists number entries as tables do rows


def _to_tree(
    nodes: Branching, distinct: list[NDArray], weights: Weights, options: ListOptions
) -> Tree:
    """Number the nodes breadth-first and give them their splits and statistics."""
    splits = nodes.join()
    is_nominal = options.nominal[splits.feature]
    part_split = np.repeat(np.arange(splits.node.size), np.diff(splits.part))
    local = np.arange(part_split.size) - splits.part[part_split]
    by_code = is_nominal[part_split] & options.every_category
    ordinal = np.where(by_code, splits.code.astype(np.int64), local)
    n_children = np.diff(splits.part)
    if options.every_category:
        n_children = np.where(is_nominal, options.n_categories[splits.feature], n_children)
    check_statistics(1 + int(n_children.sum()), options.n_classes)
    shape = breadth_first(splits, nodes.n_nodes, n_children, ordinal)
    sums = np.concatenate([*nodes.weights, np.zeros((1, options.n_classes), np.int64)])
    rows = np.concatenate([*nodes.rows, [0]])
    by_category = SUBSET_SPLIT if options.one_against_rest else BRANCH_SPLIT
    kind = np.where(is_nominal, by_category, THRESHOLD_SPLIT)
    threshold = _thresholds(splits, distinct, options)
    missing_child = _missing_children(splits, local, options)
    impurity = np.zeros(sums.shape[0])
    filled = np.flatnonzero(sums.any(axis=1))  # nodes without weight have none
    impurity[filled] = node_entropies(sums[filled])
    tree = Tree(
        task="classification",
        criterion="entropy",
        n_features=options.nominal.size,
        first_child=shape.first_child.astype(NODE),
        n_children=shape.n_children.astype(NODE),
        parent=shape.parent.astype(NODE),
        depth=shape.depth.astype(NODE),
        split_kind=_per_node(shape, kind, LEAF).astype(np.uint8),
        feature=_per_node(shape, splits.feature, NO_FEATURE).astype(np.int32),
        threshold=_per_node(shape, threshold, NO_THRESHOLD),
        missing_child=_per_node(shape, missing_child, MISSING_STOPS).astype(NODE),
        weight=sums[shape.source].sum(axis=1) * (weights.unit * weights.scale),
        n_rows=rows[shape.source],
        statistics=sums[shape.source] * (weights.unit * weights.scale),
        impurity=impurity[shape.source],
        gain=_per_node(shape, splits.gain, 0.0),
        **_branch_lists(splits, shape, part_split, ordinal, options)._asdict(),
    )
    return bounded_gains(tree)


def _per_node(shape: TreeShape, per_split: NDArray, at_leaf: float) -> NDArray:
    """Scatter one number per split to its node; `at_leaf` elsewhere."""
    return np.append(per_split, np.array([at_leaf], per_split.dtype))[shape.split]


def _thresholds(splits: Expansion, distinct: list[NDArray], options: ListOptions) -> Floats:
    """Thresholds of the numeric splits: midway, or the largest value of the table up to there."""
    threshold = midpoints(splits.low, splits.high)
    numeric = ~options.nominal[splits.feature]
    if options.actual_values:
        for f in np.unique(splits.feature[numeric]):
            tests = splits.feature == f
            place = np.searchsorted(distinct[f], threshold[tests], side="right") - 1
            threshold[tests] = distinct[f][place] + 0.0  # of two zeros the positive one
    return np.where(numeric, threshold, NO_THRESHOLD)


def _missing_children(splits: Expansion, local: Int64s, options: ListOptions) -> Int64s:
    """Child to which each split sends missing values."""
    if not options.missing_is_category:
        return np.full(splits.node.size, MISSING_TO_ALL)
    last = splits.part[1:] - 1
    has_missing = splits.code[last] == MISSING_CODE
    return np.where(has_missing, local[last], MISSING_STOPS)


def _branch_lists(
    splits: Expansion,
    shape: TreeShape,
    part_split: Int64s,
    ordinal: Int64s,
    options: ListOptions,
) -> BranchLists:
    """The category that leads to each child of a split by categories."""
    is_nominal, n_nodes = options.nominal[splits.feature], shape.split.size
    if options.one_against_rest:
        return _pairs_against_rest(splits, shape, is_nominal, options)
    if options.every_category:
        parent = shape.parent[1:]
        child = 1 + np.flatnonzero(is_nominal[shape.split[parent]])
        code = child - shape.first_child[shape.parent[child]]
        return BranchLists.of_pairs(n_nodes, child, code)
    first_child = np.empty(splits.node.size, np.int64)
    inner = shape.split >= 0
    first_child[shape.split[inner]] = shape.first_child[inner]
    listed = is_nominal[part_split] & (splits.code != MISSING_CODE)
    child = (first_child[part_split] + ordinal)[listed]
    return BranchLists.of_pairs(n_nodes, child, splits.code[listed])


def _pairs_against_rest(
    splits: Expansion, shape: TreeShape, is_nominal: Bools, options: ListOptions
) -> BranchLists:
    """One category leads to the first child, all others of the column to the second.

    Those that the node has no rows of as well, as in J48; and those that a node above has split
    off, for raising may take that away.
    """
    node = np.flatnonzero(np.append(is_nominal, False)[shape.split])
    split = shape.split[node]
    alone = splits.code[splits.part[split]].astype(np.int64)
    sizes = options.n_categories[splits.feature[split]]
    require_memory(
        LIST_BYTES * int(sizes.sum()),
        f"Listing the categories of {node.size:,} splits of one against the rest",
        "Leave out columns of many categories, or limit the depth.",
    )
    owner, code = places_of(np.zeros_like(sizes), sizes)
    child = shape.first_child[node][owner] + (code != alone[owner])
    return BranchLists.of_pairs(shape.split.size, child, code)
