"""Subtrees of one node over the training rows that reach it: grown again, split, compared.

What a node's subtree is made from is the same as in `grow_tree`: weights and targets in the units
of the whole table, its codes, the key of the node's path. So the subtree that is grown from the
rows of a node is, bit for bit, the one that growth of the whole tree has there.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import child_key
from gputree.backends import new_backend
from gputree.backends.base import Splits
from gputree.backends.binning import missing_goes_left
from gputree.backends.interactions import Interactions, interactions_of
from gputree.base.dtypes import NO_CHILD, NO_FEATURE, NO_THRESHOLD, Bools, Int64s, Weight
from gputree.base.sklearn import InvalidParameterError
from gputree.base.texts import hint
from gputree.base.threads import SPANS_PER_THREAD
from gputree.criteria import decrease
from gputree.errors import InputError
from gputree.estimators.arguments import interactions, names_of, place_of
from gputree.estimators.growing import (
    BinaryShape,
    Options,
    grow_on,
    new_task,
    numbered_tree,
    units_of,
)
from gputree.estimators.growing_categories import as_tests
from gputree.estimators.growing_ranked import is_ranked
from gputree.growth.assembly import GrownNodes
from gputree.inputs.tables import Table
from gputree.prediction import stopping_shares
from gputree.tree import Tree
from gputree.tree.branches import BranchLists, add_up
from gputree.tree.statistics import bounded_gains

ONE_SIDE = "All rows of the node would go to one side."  # of a split that is no split

# Values of a column that decide where a forced split sends its rows.
Codes = NDArray[np.integer]


class Candidate(NamedTuple):
    """The best split of one column at a node, as a tree of the node and its children."""

    stump: Tree
    gain_ratio: float | None = None  # by which C4.5 compares columns
    is_admitted: bool = True  # False where a rule of C4.5 excludes the column


def ancestors(tree: Tree, node: int) -> list[int]:
    """Nodes above a node, the root first."""
    above: list[int] = []
    while (node := int(tree.parent[node])) >= 0:
        above.append(node)
    return above[::-1]


def rows_of(tree: Tree, node: int, values: NDArray, n_threads: int) -> Int64s:
    """Rows of a table that reach a node, or part of which do, ascending."""
    if node == 0:
        return np.arange(values.shape[0])
    is_above = np.zeros(tree.n_nodes, np.bool_)
    above = ancestors(tree, node)
    is_above[above] = True
    kept = np.sort(np.concatenate([[0], *(list(tree.children(a)) for a in above)]))
    path = tree.collapse(~is_above)  # of the nodes `kept`
    stops = stopping_shares(path, values, n_threads)
    row = np.repeat(np.arange(values.shape[0]), np.diff(stops.indptr))
    rows: Int64s = row[stops.indices == np.searchsorted(kept, node)]
    return rows


# Parameters that all of a tree shares: how its table is read, the unit of its impurities, and what
# follows growth.
_OF_WHOLE_TREES = {
    "binary_splits", "categorical_features", "ccp_alpha", "class_weight", "classes", "criterion",
    "forced_splits", "interaction_cst", "laplace", "misclassification_costs", "monotonic_cst",
    "ordered_categories", "pruning", "quantile", "soft_thresholds", "winnow",
}  # fmt: skip


def limited(estimator: Any, limits: dict[str, Any]) -> Any:
    """Return an estimator with limits in place of its parameters, which are validated."""
    known = estimator.get_params(deep=False).keys() - _OF_WHOLE_TREES
    for name in limits.keys() - known:
        if name in _OF_WHOLE_TREES:
            raise InputError(f"{name!r} is of the whole tree, and no limit of one subtree.")
        kind = type(estimator).__name__
        raise InputError(f"{kind} has no limit {name!r}.{hint(name, known)}")
    changed = copy(estimator).set_params(**limits)
    try:
        changed._validate_params()
    except InvalidParameterError as error:  # as other edits that do not apply
        raise InputError(str(error)) from error
    return changed


def divided(limits: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Divide the limits of growth into parameters and the columns that are excluded."""
    exclude = limits.get("exclude", [])
    if not isinstance(exclude, list):
        raise InputError(f"'exclude' lists columns by name or index, got {exclude!r}.")
    return {name: value for name, value in limits.items() if name != "exclude"}, exclude


def levels_left(max_depth: int | None, depth: int) -> int | None:
    """Return the levels below a node that the depth limit of its tree admits; None for all."""
    if max_depth is None:
        return None
    if max_depth <= depth:
        raise InputError(
            f"A node at depth {depth} is not grown with max_depth={max_depth}, which counts from "
            "the root: pass a larger 'max_depth'."
        )
    return max_depth - depth


class Subtrees:
    """Base of `CartSubtrees` and of `ListSubtrees`: the training rows of one tree."""

    n_threads: int

    def __init__(self, estimator: Any, table: Table, target: NDArray) -> None:
        self.estimator, self.table, self.target = estimator, table, target
        self.values = np.ascontiguousarray(table.stored)
        self._last: tuple[Tree, int, Int64s] | None = None

    def rows(self, tree: Tree, node: int) -> Int64s:
        """Rows of the table that reach a node, or part of which do; those found last are kept."""
        if self._last is None or self._last[0] is not tree or self._last[1] != node:
            self._last = tree, node, rows_of(tree, node, self.values, self.n_threads)
        return self._last[2]

    def interactions(
        self, tree: Tree, node: int, exclude: Sequence[Any] = ()
    ) -> Interactions | None:
        """The sets of columns that may split a node and those below it; None if all columns may."""
        d = self.table.shape[1]
        found = interactions(self.estimator, d)
        if found is None and not exclude:
            return None
        if found is None:
            found = interactions_of((frozenset(range(d)),))
        below = np.array([found.root])
        for above in ancestors(tree, node):
            below = found.children(below, tree.feature[[above]])
        found = found._replace(root=int(below[0]))
        return found.without([place_of(names_of(self.estimator), name) for name in exclude])

    def allowed(self, tree: Tree, node: int) -> Bools | None:
        """Mark the columns (d,) that may split a node; None without constraints."""
        found = self.interactions(tree, node)
        if found is None:
            return None
        mask: Bools = found.mask(np.array([found.root]), self.table.shape[1])[0]
        return mask


class Cut(NamedTuple):
    """A cut of a node whose entries are in the order of its sides."""

    feature: int
    threshold: float  # not used where the column is nominal
    middle: int  # entries of the first child
    seen_missing: bool
    missing_left: bool
    gain: float


# Splits of a node that are summed up at a time: those after them may not be needed.
GROUP = 16


def _cuts(backend: Any, splits: Splits) -> Iterator[tuple[Cut, Int64s]]:
    """Yield the cut of the node of all entries by each split, with the sums of its sides.

    Where the threshold is not known yet, or categories are sent, the entries are partitioned.
    """
    n = backend.entries.size
    entries, total = backend.entries.copy(), _sums(backend, 0, n)
    inside = np.flatnonzero(splits.inside)
    read = dict(zip(inside.tolist(), backend.left_statistics(splits.take(inside)), strict=True))
    for i in range(splits.feature.size):
        threshold = float(splits.threshold[i])
        if i in read:
            middle, left = read[i]
            sides = np.stack([left, total - left])
        else:
            np.copyto(backend.entries, entries)
            split = splits.take(np.array([i]))
            middles, thresholds = backend.partition(np.array([0]), np.array([n]), split)
            middle, threshold = int(middles[0]), float(thresholds[0])
            sides = _sums_of_sides(backend, middle, total)
        missing = bool(splits.seen_missing[i]), bool(splits.missing_left[i])
        place = int(splits.feature[i]), threshold, middle
        yield Cut(*place, *missing, float(splits.gain[i])), sides


def _sums(backend: Any, begin: int, end: int) -> Int64s:
    """Statistics of a range of a backend's entries, summed by its threads in parts."""
    bounds = np.linspace(begin, end, SPANS_PER_THREAD * backend.n_threads + 1).astype(np.int64)
    sums: Int64s = backend.node_statistics(bounds[:-1], bounds[1:]).sum(axis=0)
    return sums


def _sums_of_sides(backend: Any, middle: int, total: Int64s) -> Int64s:
    """Statistics of the entries before `middle` and of the others: the smaller side is read."""
    n = backend.entries.size
    is_left = 2 * middle <= n
    read = _sums(backend, 0, middle) if is_left else _sums(backend, middle, n)
    return np.stack([read, total - read] if is_left else [total - read, read])


class CartSubtrees(Subtrees):
    """Subtrees of trees of CART."""

    def __init__(self, estimator: Any, table: Table, target: NDArray, weight: Weight) -> None:
        if estimator.monotonic_cst is not None:
            raise InputError(
                "A tree with monotonic constraints is not edited: the bounds of a node depend on "
                "the splits above it. Leave monotonic_cst out."
            )
        if is_ranked(estimator):
            raise InputError(
                f"A tree of criterion={estimator.criterion!r} is not edited: its splits are not "
                "compared by sums. Edit one of criterion='squared_error'."
            )
        super().__init__(estimator, table, target)
        options = self.options({})
        self.n_threads = options.n_threads
        _, self.weights, self.targets = units_of(target, weight, options)
        device_table: Any = table.on("cpu", options.n_threads)
        self._device_table = device_table
        # kept, since the table itself refers to them weakly
        self._fine_codes = device_table.fine_codes(options.max_bins)

    def options(self, limits: dict[str, Any]) -> Options:
        """Options of growth with the limits in place of the estimator's parameters."""
        n, d = self.table.shape
        options: Options = limited(self.estimator, limits)._options(n, d, "cpu")
        return options._replace(warns=False, verbose=False)

    def _backend(self, rows: Int64s, options: Options) -> Any:
        categories = self._device_table.categories
        task = new_task(self.target, self.weights, self.targets, categories, options)
        return new_backend(self._device_table, task, options.n_threads, rows)

    def _key(self, tree: Tree, node: int, key: int) -> np.uint64:
        """Key of a node, from which its draws are made."""
        path = [*ancestors(tree, node), node]
        found = np.array([key], np.uint64)  # scalars would warn of their overflow
        for above, below in zip(path, path[1:], strict=False):
            found = child_key(found, np.array([below - tree.first_child[above]]))
        return found[0]

    def grow(self, tree: Tree, node: int, limits: dict[str, Any]) -> Tree:
        """Grow the subtree of a node; depth and leaves are limited as of the whole tree."""
        limits, exclude = divided(limits)
        options = self.options(limits)
        depth_left = levels_left(options.max_depth, int(tree.depth[node]))
        options = options._replace(max_depth=depth_left)
        if options.max_leaf_nodes is not None:
            below = add_up(tree.parent, tree.is_leaf.astype(np.int64))
            others = int(below[0] - below[node])
            if options.max_leaf_nodes - others < 2:
                raise InputError(
                    f"The tree has {others} leaves elsewhere, and max_leaf_nodes="
                    f"{options.max_leaf_nodes} admits no more: pass a larger 'max_leaf_nodes'."
                )
            options = options._replace(max_leaf_nodes=options.max_leaf_nodes - others)
        rows = self.rows(tree, node)
        key, sets = self._key(tree, node, options.key), self.interactions(tree, node, exclude)
        options = options._replace(key=int(key), interactions=sets)
        backend = self._backend(rows, options)
        shape = rows.size, self.table.shape[1]
        units = self.weights, self.targets
        grown = grow_on(backend, shape, backend.task.limits, 0, *units, options, self.table.columns)
        return grown.tree

    def candidates(self, tree: Tree, node: int, column: int | None = None) -> Iterator[Candidate]:
        """Yield the best split of each column, or of one, that which growth chooses first."""
        d = self.table.shape[1]
        options = self.options({})._replace(
            draws_cuts=False, min_impurity_decrease=0.0, max_features=d, interactions=None
        )
        rows = self.rows(tree, node)
        backend = self._backend(rows, options)
        backend.encode(options.max_bins)
        searched = np.arange(-1, d) if column is None else np.array([column])
        allowed = self.allowed(tree, node)
        splits = backend.splits_by_column(self._key(tree, node, options.key), searched, allowed)
        found = np.flatnonzero((splits.feature >= 0) & (searched >= 0))
        order = found[np.argsort(-splits.gain[found], kind="stable")]
        first = int(splits.feature[0])
        order = order[np.argsort(splits.feature[order] != first, kind="stable")]
        for begin in range(0, order.size, GROUP):
            for cut, sides in _cuts(backend, splits.take(order[begin : begin + GROUP])):
                yield Candidate(self._stump(cut, sides, backend, options))

    def split(
        self, tree: Tree, node: int, feature: int, threshold: float | None, codes: Codes | None
    ) -> Tree:
        """Split a node at a threshold, or by the categories that go to its first child."""
        rows = self.rows(tree, node)
        column = self.values[rows, feature]
        is_missing = np.isnan(column)
        # as rows descend: NumPy would round the threshold to the type of a float32 column
        known = column.astype(np.float64, copy=False)
        is_left = known <= threshold if codes is None else np.isin(column, codes)
        options = self.options({})
        made = []
        for missing_left in (False, True) if is_missing.any() else (False,):
            side = is_left | (is_missing & missing_left)
            if side.all() or not side.any():
                continue
            made.append(self._forced(rows, side, feature, threshold, is_missing, options))
        if not made:
            raise InputError(ONE_SIDE)
        least_weight = options.min_weight_fraction_leaf * float(tree.weight[0])

        def preference(stump: Tree) -> tuple[bool, float]:
            """Put what growth admits first, then the gain; of equals the first is taken."""
            is_admitted = stump.n_rows.min() >= options.min_samples_leaf
            is_admitted &= stump.weight.min() >= least_weight
            if options.criterion == "poisson":  # no side without events
                is_admitted &= stump.statistics.min() > 0.0
            return bool(is_admitted), float(stump.gain[0])

        return max(made, key=preference)

    def _forced(
        self,
        rows: Int64s,
        is_left: Bools,
        feature: int,
        threshold: float | None,
        is_missing: Bools,
        options: Options,
    ) -> Tree:
        """Stump of a node whose rows are sent to given sides."""
        middle, n = int(np.count_nonzero(is_left)), rows.size
        backend = self._backend(np.concatenate([rows[is_left], rows[~is_left]]), options)
        total = _sums(backend, 0, n)
        sides = _sums_of_sides(backend, middle, total)
        gain = float(decrease(backend.task.criterion, sides[0], total))
        missing = bool(is_missing.any()), bool((is_missing & is_left).any())
        cut = Cut(feature, 0.0 if threshold is None else threshold, middle, *missing, gain)
        return self._stump(cut, sides, backend, options)

    def _stump(self, cut: Cut, sides: Int64s, backend: Any, options: Options) -> Tree:
        """Make the tree of a split node, whose children are leaves with the sums of `sides`."""
        n, middle = backend.entries.size, cut.middle
        begin, end = np.array([0, 0, middle]), np.array([n, middle, n])
        missing = cut.seen_missing, cut.missing_left
        nodes = GrownNodes(
            first_child=np.array([1, NO_CHILD, NO_CHILD]),
            feature=np.array([cut.feature, NO_FEATURE, NO_FEATURE], np.int32),
            threshold=np.array([cut.threshold, NO_THRESHOLD, NO_THRESHOLD]),
            missing_left=np.array([missing_goes_left(*missing, middle, n - middle), False, False]),
            gain=np.array([cut.gain, 0.0, 0.0]),
            begin=begin,
            end=end,
        )
        shape = BinaryShape(
            parent=np.array([NO_CHILD, 0, 0], np.int32),
            depth=np.array([0, 1, 1], np.int32),
            rows=end - begin,
            sums=np.concatenate([sides.sum(axis=0, keepdims=True), sides]),
        )
        d = self.table.shape[1]
        tree = numbered_tree(nodes, shape, self.weights, self.targets, options, d)
        if self.table.columns.nominal[cut.feature]:
            column = nodes.feature[[0, 0]]
            counts, codes = backend.categories(begin[1:], end[1:], column)
            lists = BranchLists.of_pairs(3, np.repeat([1, 2], counts), codes)
            tree = as_tests(tree, np.array([0]), lists)
        return bounded_gains(tree)
