"""Subtrees of one node of ID3 and C4.5: as `gputree.estimators.subtrees`, over attribute lists.

The entries of a node, with their fractional weights, come down from the root by the tests of the
nodes above it, as they did in growth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends import get_list_backend
from gputree.backends.lists import CandidateTests, Level, Tests
from gputree.base.dtypes import SUBSET_SPLIT, THRESHOLD_SPLIT, Weight
from gputree.criteria import node_entropies
from gputree.errors import InputError
from gputree.estimators.growing_lists import ListGrowth, ListOptions
from gputree.estimators.subtrees import (
    ONE_SIDE,
    Candidate,
    Codes,
    Subtrees,
    ancestors,
    divided,
    levels_left,
    limited,
)
from gputree.growth.lists import Branching, C45Rule, Expansion, tests_on
from gputree.inputs.tables import Table
from gputree.pruning import collapse_splits
from gputree.tree import Tree


@dataclass
class _Entries:
    """A level from which a subtree is grown, in place of a backend's root."""

    level: Level
    most_entries: int
    name: str = "cpu"

    def root(self) -> Level:
        return self.level


class ListSubtrees(Subtrees):
    """Subtrees of trees of ID3 and C4.5."""

    def __init__(self, estimator: Any, table: Table, target: NDArray, weight: Weight) -> None:
        if getattr(estimator, "winnow", False) or getattr(estimator, "soft_thresholds", False):
            raise InputError(
                "A tree with winnowed columns or soft thresholds is not edited: fit with "
                "winnow=False and soft_thresholds=False."
            )
        # another table, as a CodedTable of the user does not keep its lists
        table = Table(table.stored, table.columns, table.names)
        super().__init__(estimator, table, target)
        self.weight, self.n_threads = weight, self._options({}).n_threads
        table.keep_lists(self.n_threads)

    def _options(self, limits: dict[str, Any]) -> ListOptions:
        changed = limited(self.estimator, {**limits, "device": "cpu"})
        n = self.table.shape[0]
        options: ListOptions = changed._options(n, n)
        return options._replace(verbose=False)

    def _growth(
        self, limits: dict[str, Any], below: tuple[Tree, int] | None = None
    ) -> tuple[ListGrowth, Any]:
        """Growth over the table, of the subtree `below` a node, and the columns that it uses up."""
        limits, exclude = divided(limits)
        options = self._options(limits)
        if below is not None:
            tree, node = below
            depth = levels_left(options.max_depth, int(tree.depth[node]))
            sets = self.interactions(tree, node, exclude)
            options = options._replace(max_depth=depth, interactions=sets)
        columns = self.table.lists(self.n_threads)
        return ListGrowth.over(columns, self.target, self.weight, options), columns[0]

    def grow(self, tree: Tree, node: int, limits: dict[str, Any]) -> Tree:
        """Grow the subtree of a node; depth is limited as of the whole tree."""
        growth, codes = self._growth(limits, (tree, node))
        level = self._level(tree, node, growth, codes)
        grown = growth.grow(_Entries(level, 2 * self.target.size))
        return collapse_splits(grown) if getattr(self.estimator, "collapse", False) else grown

    def _level(self, tree: Tree, node: int, growth: ListGrowth, codes: Any) -> Level:
        """Entries of one node, from the root down."""
        backend: Any = get_list_backend("cpu")
        level: Level = backend(codes, growth.task, self.n_threads).root()
        path = [*ancestors(tree, node), node]
        for above, below in zip(path, path[1:], strict=False):
            tests = self._test(tree, above, growth, level)
            parts = level.assign(tests)
            part = below - int(tree.first_child[above])
            if growth.options.every_category and tree.tests_categories[above]:
                part = int(np.append(np.flatnonzero(parts.code == part), -1)[0])
            if part < 0:
                raise InputError("No row reaches the node.")
            level = level.descend(np.array([part]))
        return level

    def _test(self, tree: Tree, node: int, growth: ListGrowth, level: Level) -> Tests:
        """Test of a node that is split, on the entries that it has."""
        feature, kind = int(tree.feature[node]), tree.split_kind[node]
        if kind == THRESHOLD_SPLIT:
            return _one_test(feature, self._cut(growth, feature, float(tree.threshold[node])), 2)
        if kind == SUBSET_SPLIT:
            alone = tree.categories(int(tree.first_child[node]))
            return _one_test(feature, int(alone[0]), 2)
        return _one_test(feature, 0, int(level.score().parts[feature, 0]))

    @staticmethod
    def _cut(growth: ListGrowth, feature: int, threshold: float) -> int:
        """Code of the largest value up to a threshold."""
        return int(np.searchsorted(growth.distinct[feature], threshold, side="right")) - 1

    def candidates(self, tree: Tree, node: int, column: int | None = None) -> Iterator[Candidate]:
        """Yield the best split of each column, or of one, that which growth chooses first."""
        growth, codes = self._growth({})
        level = self._level(tree, node, growth, codes)
        total, rule, task = level.weights.sum(axis=1), growth.options.rule, growth.task
        if np.count_nonzero(level.weights) < 2:  # pure
            return
        found = level.score()
        if (allowed := self.allowed(tree, node)) is not None:
            found.gain[~allowed] = -1
        first = int(rule.choose(found, total, task)[0])
        gain, ratio, worth = rule.compare(found, total, task)
        columns = np.flatnonzero(found.gain[:, 0] >= 0)
        order = columns[np.lexsort((-gain[columns, 0], -worth[columns, 0]))]
        for f in sorted(order.tolist(), key=lambda f: f != first):
            if column not in (None, f):
                continue
            stump = self._stump(growth, level, tests_on(np.array([f], np.int32), found), found)
            gain_ratio = float(ratio[f, 0]) if isinstance(rule, C45Rule) else None
            yield Candidate(stump, gain_ratio, bool(worth[f, 0] > 0))

    def _stump(
        self, growth: ListGrowth, level: Level, tests: Tests, candidates: CandidateTests
    ) -> Tree:
        """Tree of a split node, whose children are leaves."""
        nodes = Branching(level.rows, level.weights)
        parts, total = level.assign(tests), level.weights.sum(axis=1)
        grower = growth.grower(level.rows)
        nodes.add(grower.expansion(tests, parts, np.array([0]), total, candidates))
        return growth.tree_of(nodes)

    def split(
        self, tree: Tree, node: int, feature: int, threshold: float | None, codes: Codes | None
    ) -> Tree:
        """Split a node at a threshold, or one category from the rest where splits are binary."""
        growth, columns = self._growth({})
        level = self._level(tree, node, growth, columns)
        if threshold is not None:
            cut = self._cut(growth, feature, threshold)
            if cut < 0:  # below every value
                raise InputError(ONE_SIDE)
        elif growth.options.one_against_rest and codes is not None and len(codes) == 1:
            cut, threshold = int(codes[0]), np.nan
        else:
            raise InputError(
                f"{type(self.estimator).__name__} has a branch for every category: leave "
                "'categories' out, or pass one category if binary_splits=True."
            )
        tests, found = _one_test(feature, cut, 2), level.score()
        least, after = int(found.cut[feature, 0]), int(found.after[feature, 0])
        is_best = cut == least or (np.isfinite(threshold) and least <= cut < after)
        if found.gain[feature, 0] >= 0 and is_best:
            stump = self._stump(growth, level, tests, found)
        else:
            stump = self._forced(growth, level, tests)
        if np.isfinite(threshold):  # as it was given, not midway between values
            stump.threshold[0] = threshold
        return stump

    @staticmethod
    def _forced(growth: ListGrowth, level: Level, tests: Tests) -> Tree:
        """Tree of a node with a given test, whose gain counts fractions of rows, too."""
        parts = level.assign(tests)
        if (parts.rows == 0).any():
            raise InputError(ONE_SIDE)
        impurity = node_entropies(np.concatenate([level.weights, parts.weights]))
        share = parts.weights.sum(axis=1) / level.weights.sum()
        gain = np.array([max(impurity[0] - float(share @ impurity[1:]), 0.0)])
        nodes, nowhere = Branching(level.rows, level.weights), np.array([np.nan])
        split = Expansion(np.array([0]), tests.feature, gain, nowhere, nowhere, tests.part, *parts)
        nodes.add(split)
        return growth.tree_of(nodes)


def _one_test(feature: int, cut: int, parts: int) -> Tests:
    """Test of the only node of a level."""
    return Tests(
        node=np.array([0]),
        feature=np.array([feature], np.int32),
        cut=np.array([cut], np.uint32),
        part=np.array([0, parts]),
    )
