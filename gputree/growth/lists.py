"""The level loop over attribute lists: one grower of multiway trees for every device.

while the frontier has nodes:
    score -> choose a test for each node -> assign entries to its parts -> descend

Rules choose the column of a split: ID3 (Quinlan 1986) takes the highest gain; C4.5 (Quinlan 1993,
2.2; 1996) the highest gain ratio among the columns whose gain is at least average, or by option the
highest gain. Ties go to the first column.

Nodes are recorded in the order in which they are made (`Branching`), and numbered afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.interactions import Interactions
from gputree.backends.lists import CandidateTests, Level, ListBackend, ListTask, TestParts, Tests
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.base.progress import Progress
from gputree.criteria.entropy import GAIN_BITS, TOLERANCE, Information, logarithms
from gputree.tree.branches import concatenated_ranges

# Gains below the average by no more than this still pass.
AVERAGE_SLACK = 1e-3

# The minimum gain by description length, as in C5.0: a multiple of log2 of the number of
# candidate columns.
BITS_SHARE = 0.9


class Compared(NamedTuple):
    """Columns of nodes as a rule compares them; arrays of shape (d, m)."""

    gain: Floats  # in bits, corrected
    ratio: Floats  # to the split information; 0 without any
    worth: Floats  # the highest is chosen; 0 where the rule excludes a column


class C45Rule(NamedTuple):
    """C4.5's rule, with the options of C5.0."""

    numeric: Bools  # (d,) columns that are cut at a threshold
    averaged: Bools  # (d,) of gains that make the average: numeric, or few categories
    average_gain_rule: bool
    mdl_correction: bool
    min_gain: float  # of a split, in bits, after the correction
    by_gain: bool = False  # True: columns are compared by the gain instead of its ratio
    averaged_only: bool = False  # True: the other columns are excluded
    bits_share: float = 0.0  # of description length in the minimum gain; the rest is the average
    # Maximum number of leaves per unit of weight; 0 for no limit. A split on categories has at
    # most one branch more than its node may have leaves.
    leaves_per_weight: float = 0.0

    def choose(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Int32s:
        """Column that splits each node of `total` units of weight; -1 for none."""
        return _first_greatest(self.compare(candidates, total, task).worth)

    def compare(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Compared:
        """Compare the columns of each node of `total` units of weight."""
        information, weight = task.information, total * task.limits.unit
        gain = gains(candidates.gain, total, information)
        if self.mdl_correction:
            cuts = candidates.tries[self.numeric]  # bits identify one of them (Quinlan 1996)
            gain[self.numeric] -= logarithms(cuts.ravel()).reshape(cuts.shape) / weight
        valid = candidates.gain >= 0
        valid &= (gain >= TOLERANCE) | ~self.numeric[:, None]
        valid &= gain >= self.min_gain - TOLERANCE
        if self.averaged_only:
            valid &= self.averaged[:, None]
        if self.leaves_per_weight:
            valid &= candidates.parts <= np.rint(self.leaves_per_weight * weight) + 1
        split = candidates.split / information.scale
        ratio = np.zeros_like(gain)
        divisor = split / (total * information.unit)
        np.divide(gain, divisor, out=ratio, where=split > TOLERANCE)
        worth = np.where(valid & (split > TOLERANCE), gain if self.by_gain else ratio, 0.0)
        if self.average_gain_rule:
            worth[gain < self._least_gain(gain, valid, weight)] = 0.0
        return Compared(gain, ratio, worth)

    def _least_gain(self, gain: Floats, valid: Bools, weight: NDArray[np.floating]) -> Floats:
        """Minimum gain of each node's split, from the valid columns."""
        counted = valid & self.averaged[:, None]
        number = counted.sum(axis=0)
        total = np.zeros(gain.shape[1])
        for f in range(gain.shape[0]):  # in the order of columns, for any shape
            total += np.where(counted[f], gain[f], 0.0)
        threshold = total / np.maximum(number, 1) - AVERAGE_SLACK
        if self.bits_share:
            bits = BITS_SHARE * logarithms(number) / weight
            threshold = (1.0 - self.bits_share) * threshold + self.bits_share * bits
        return np.where(number > 0, threshold, np.inf)


class InformationGain(NamedTuple):
    """ID3's rule: the highest gain, if it is at least `min_gain` bits."""

    min_gain: float

    def choose(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Int32s:
        """Column that splits each node of `total` units of weight; -1 for none."""
        feature = candidates.gain.argmax(axis=0).astype(np.int32)
        best = candidates.gain[feature, np.arange(feature.size)]
        enough = gains(best, total, task.information) >= self.min_gain - TOLERANCE
        return np.where((best >= 0) & enough, feature, -1).astype(np.int32)

    def compare(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Compared:
        """Compare the columns of each node of `total` units of weight."""
        gain = gains(candidates.gain, total, task.information)
        return Compared(gain, gain, np.where(gain >= self.min_gain - TOLERANCE, gain, 0.0))


def gains(gain: Int64s, total: Int64s, information: Information) -> Floats:
    """Convert total gains in steps to gains in bits."""
    return gain * 2.0**-GAIN_BITS / (total * information.unit)


def _first_greatest(worth: Floats) -> Int32s:
    """First column of the highest positive worth, in each node; nearly equal ones are equal."""
    best, feature = np.zeros(worth.shape[1]), np.full(worth.shape[1], -1, np.int32)
    for f in range(worth.shape[0]):
        better = worth[f] - best > TOLERANCE
        best[better] = worth[f, better]
        feature[better] = f
    return feature


class SplitRule(Protocol):
    """Rule that chooses the column of a split."""

    def choose(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Int32s:
        """Column that splits each node of `total` units of weight; -1 for none."""

    def compare(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Compared:
        """Compare the columns of each node of `total` units of weight."""


class GrowthLimits(NamedTuple):
    """Limits on the nodes that are split."""

    max_depth: int
    min_rows: int  # entries
    min_weight: float  # in units
    slack: float  # weights that differ by no more than this are equal


# Number of entries that take as much memory as the candidates of a node.
NODE_ENTRIES = 12


class _Open(NamedTuple):
    """A level and the numbers and depth of its nodes."""

    level: Level
    node: Int64s
    depth: int
    sets: Int64s  # of columns that may split each node; all 0 without `Interactions`


class ListGrower:
    """Grows one tree; `distinct` are the distinct values of the numeric columns.

    At most about `most_entries` are processed at once; the tree does not depend on it.
    """

    def __init__(
        self,
        task: ListTask,
        rule: SplitRule,
        limits: GrowthLimits,
        distinct: list[NDArray],
        most_entries: int,
        interactions: Interactions | None = None,
    ) -> None:
        self.task, self.rule, self.limits = task, rule, limits
        self.distinct, self.interactions = distinct, interactions
        self.most_entries = most_entries

    def grow(self, backend: ListBackend, progress: Progress) -> Branching:
        """Grow the tree over all rows of the backend's table.

        Levels are processed as a whole while their entries fit the limit, else in groups of nodes,
        each grown to its leaves before the next.
        """
        level = backend.root()
        nodes = Branching(level.rows, level.weights)
        is_open = self._can_open(nodes.rows[0], level.weights, 0)
        sets = np.array([0 if self.interactions is None else self.interactions.root])
        waiting = [iter([_Open(level, np.array([0]), 0, sets)] if is_open[0] else [])]
        del level
        while waiting:
            opened = next(waiting[-1], None)
            if opened is None:
                waiting.pop()
            else:
                progress.level(opened.depth, opened.node.size, opened.level.rows, nodes.n_nodes)
                waiting.append(self._expand(*opened, nodes))
        return nodes

    def _expand(
        self, level: Level, node: Int64s, depth: int, sets: Int64s, nodes: Branching
    ) -> Iterator[_Open]:
        """Split the nodes of a level; yields the groups of children that are split next."""
        candidates = level.score()
        if self.interactions is not None:  # other columns have no test
            d = candidates.gain.shape[0]
            candidates.gain[~self.interactions.mask(sets, d).T] = -1
        total = level.weights.sum(axis=1)
        tests = tests_on(self.rule.choose(candidates, total, self.task), candidates)
        if tests.node.size == 0:
            level.close()
            return
        parts = level.assign(tests)
        child = nodes.add(self.expansion(tests, parts, node, total, candidates))
        below = sets[tests.node]
        if self.interactions is not None:
            below = self.interactions.children(below, tests.feature)
        below = np.repeat(below, np.diff(tests.part))
        opened = np.flatnonzero(self._can_open(parts.rows, parts.weights, depth + 1))
        sizes = parts.rows[opened] + NODE_ENTRIES
        most = self.most_entries
        if sizes.sum() > most:  # half of this level, which waits: levels that wait add up to two
            most = level.rows // 2
        groups = _groups(opened, sizes, most)
        groups.sort(key=lambda group: int(parts.rows[group].sum()))  # the largest waits for none
        for group in groups[:-1]:
            yield _Open(level.descend(group), child[group], depth + 1, below[group])
        last = [level.descend(group) for group in groups[-1:]]
        level.close()  # its memory is needed below
        for descended in last:
            yield _Open(descended, child[groups[-1]], depth + 1, below[groups[-1]])

    def _can_open(self, rows: Int64s, weights: Int64s, depth: int) -> Bools:
        """Return True for nodes that may be split by depth, size and classes."""
        limits = self.limits
        total = weights.sum(axis=1)
        mixed = total - weights.max(axis=1) > limits.slack
        large = (rows >= limits.min_rows) & (total >= limits.min_weight - limits.slack)
        return mixed & large & (depth < limits.max_depth)

    def expansion(
        self,
        tests: Tests,
        parts: TestParts,
        node: Int64s,
        total: Int64s,
        candidates: CandidateTests,
    ) -> Expansion:
        """Return the splits of nodes and their children, from the tests that were chosen."""
        pairs = (tests.feature, tests.node)
        gain = gains(candidates.gain[pairs], total[tests.node], self.task.information)
        low = np.full(tests.node.size, np.nan)
        high = low.copy()
        cut, after = candidates.cut[pairs], candidates.after[pairs]
        for f in np.unique(tests.feature[~self.task.nominal[tests.feature]]):
            tested = tests.feature == f
            low[tested] = self.distinct[f][cut[tested]]
            high[tested] = self.distinct[f][after[tested]]
        return Expansion(node[tests.node], tests.feature, gain, low, high, tests.part, *parts)


def tests_on(chosen: Int32s, candidates: CandidateTests) -> Tests:
    """Make the tests of the nodes that have one, on the columns chosen."""
    node = np.flatnonzero(chosen >= 0)
    feature = chosen[node]
    parts = candidates.parts[feature, node]
    return Tests(
        node=node,
        feature=feature,
        cut=candidates.cut[feature, node],
        part=np.concatenate([[0], np.cumsum(parts, dtype=np.int64)]),
    )


def _groups(parts: Int64s, sizes: Int64s, most: int) -> list[Int64s]:
    """Divide parts into runs of at most `most` in size, or of one part."""
    if parts.size == 0:
        return []
    ends = np.cumsum(sizes)
    groups, start = [], 0
    while start < parts.size:
        before = int(ends[start] - sizes[start])
        stop = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        groups.append(parts[start:stop])
        start = stop
    return groups


class Expansion(NamedTuple):
    """Splits of m nodes, and the P children with entries that result."""

    node: Int64s  # (m,) numbers of the nodes
    feature: Int32s
    gain: Floats
    low: Floats  # values on both sides of a numeric cut; NaN for other splits
    high: Floats
    part: Int64s  # (m + 1,) children of split j are part[j] .. part[j + 1]
    code: NDArray[np.uint32]  # (P,) category of each child
    rows: Int64s  # (P,)
    weights: Int64s  # (P, K)

    @classmethod
    def none(cls, n_classes: int) -> Expansion:
        none, reals, weights = np.empty(0, np.int64), np.empty(0), np.empty((0, n_classes), int)
        feature, code = none.astype(np.int32), none.astype(np.uint32)
        return cls(none, feature, reals, reals, reals, np.array([0]), code, none, weights)


class Branching:
    """The expansions of a tree; the root is node 0, children are numbered in the order of `add`."""

    def __init__(self, rows: int, weights: Int64s) -> None:
        self.rows = [np.array([rows])]
        self.weights = [weights]
        self.expansions = [Expansion.none(weights.shape[1])]
        self.n_nodes = 1

    def add(self, expansion: Expansion) -> Int64s:
        """Record splits; returns the numbers of the children."""
        self.expansions.append(expansion)
        self.rows.append(expansion.rows)
        self.weights.append(expansion.weights)
        first = self.n_nodes
        self.n_nodes += expansion.code.size
        return np.arange(first, self.n_nodes)

    def join(self) -> Expansion:
        """Join all expansions."""
        fields = [np.concatenate(field) for field in zip(*self.expansions, strict=True)]
        joined = Expansion(*fields)
        sizes = [np.diff(e.part) for e in self.expansions]
        return joined._replace(part=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]))


class TreeShape(NamedTuple):
    """A breadth-first multiway tree of N nodes."""

    source: Int64s  # number of each node in growth, -1 for children without entries
    split: Int64s  # its split in the joined expansions, -1 at leaves
    parent: Int64s
    depth: Int64s
    first_child: Int64s
    n_children: Int64s


def breadth_first(
    splits: Expansion, n_nodes: int, n_children: Int64s, ordinal: Int64s
) -> TreeShape:
    """Number nodes breadth-first, children without entries among them.

    `n_nodes` is the number of nodes with entries, `n_children` (m,) of the children of each split;
    `ordinal` (P,) is the place of each part among its siblings.
    """
    split_of = np.full(n_nodes + 1, -1)  # the last one is for nodes without entries
    split_of[splits.node] = np.arange(splits.node.size)
    levels, parents = [np.array([0])], [np.array([-1])]
    seen = 0
    while levels[-1].size:
        split = split_of[levels[-1]]
        inner = np.flatnonzero(split >= 0)
        split = split[inner]
        counts = n_children[split]
        below = np.full(int(counts.sum()), -1)
        sizes = splits.part[split + 1] - splits.part[split]
        part = concatenated_ranges(splits.part[split], sizes)
        below[np.repeat(np.cumsum(counts) - counts, sizes) + ordinal[part]] = part + 1
        parents.append(np.repeat(inner + seen, counts))
        seen += levels[-1].size
        levels.append(below)
    source = np.concatenate(levels)
    split = split_of[source]
    counts = np.append(n_children, 0)[split]
    first = 1 + np.cumsum(counts) - counts
    return TreeShape(
        source=source,
        split=split,
        parent=np.concatenate(parents),
        depth=np.repeat(np.arange(len(levels)), [level.size for level in levels]),
        first_child=np.where(counts > 0, first, -1),
        n_children=counts,
    )
