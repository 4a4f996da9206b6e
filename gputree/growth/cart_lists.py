"""CART over attribute lists: the level loop where columns hold categories.

while nodes are open:
    score -> choose a split for each node -> assign entries to its halves -> descend
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits
from gputree.backends.cart_lists import CartBackend, CartLevel, CartTask, Cuts, CutTests, Halves
from gputree.criteria import decreases
from gputree.dtypes import MISSING_CODE, NO_CHILD
from gputree.growth.assembly import ListNodes
from gputree.growth.frontier import child_keys, draw_orders
from gputree.growth.nesting import Subsets, smaller_sides
from gputree.growth.progress import Progress
from gputree.growth.selection import BestFirst
from gputree.growth.stopping import can_split


class Neighbours(NamedTuple):
    """Values that a code of each numeric column stands for: one, or those of a bin.

    Attributes
    ----------
    least, greatest : lists of d arrays
        Empty for nominal columns.
    """

    least: list[NDArray]
    greatest: list[NDArray]


@dataclass(frozen=True)
class _Open:
    """The nodes of a level.

    Their numbers, the columns tested above (-1 at the root), keys of their paths, and the
    least weighted gain above.
    """

    level: CartLevel
    node: Int64s
    above: NDArray[np.int32]
    key: NDArray[np.uint64]
    path_gain: NDArray[np.float64]


class _Splits(NamedTuple):
    """Splits of m nodes and their 2m children."""

    node: Int64s
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    gain: NDArray[np.float64]
    categories: Int64s  # how many tell each, see `Subsets`; 0 for numeric columns
    code: NDArray[np.uint32]
    is_left: NDArray[np.bool_]
    rows: Int64s
    sums: Int64s


class CartGrower:
    """Grows one tree.

    Parameters
    ----------
    task : CartTask
    neighbours : Neighbours
    max_leaf_nodes : int or None
    key : int
        Seed of the columns drawn at each node.
    """

    def __init__(
        self, task: CartTask, neighbours: Neighbours, max_leaf_nodes: int | None, key: int
    ) -> None:
        self.task = task
        self.neighbours = neighbours
        self.best_first = BestFirst(max_leaf_nodes)
        self.key = key

    def grow(self, backend: CartBackend, progress: Progress) -> tuple[ListNodes, Subsets]:
        """Grow the tree over all rows of the backend's table."""
        level = backend.root()
        made = [_root(level)]
        n_nodes, depth = 1, 0
        here: _Open | None = None
        if level.mixed[0] and can_split(level.rows, 0, self._limits)[0]:
            here = _Open(
                level, np.array([0]), np.array([-1], np.int32),
                np.array([self.key], np.uint64), np.array([np.inf]),
            )  # fmt: skip
        while here is not None:
            progress.level(depth, here.node.size, int(here.level.rows.sum()), n_nodes)
            splits, here = self._expand(here, n_nodes, depth)
            made.append(splits)
            n_nodes += splits.rows.size
            depth += 1
        return _join(made, n_nodes, self.task.nominal)

    @property
    def _limits(self) -> Limits:
        return self.task.task.limits

    def _expand(self, here: _Open, n_nodes: int, depth: int) -> tuple[_Splits, _Open | None]:
        """Split the nodes of a level; returns the splits and the children to be opened."""
        cuts, feature = self._choose(here)
        node = np.arange(feature.size)
        sums = here.level.sums
        gain = decreases(self.task.task.criterion, cuts.score[feature, node], sums)
        weighted = gain * (sums.sum(axis=1) if self.task.task.n_classes else sums[:, 0])
        found = cuts.score[feature, node] > -np.inf
        found &= ~(weighted < self._limits.min_decrease)
        chosen = np.flatnonzero(self.best_first.worth(here.path_gain, found, weighted))
        tests = _tests(chosen, feature[chosen], cuts)
        halves = here.level.assign(tests)
        splits = self._splits(here, tests, gain[chosen], cuts, halves)
        large = can_split(halves.rows, depth + 1, self._limits)
        opened = np.flatnonzero(halves.mixed & large)
        if opened.size == 0:
            return splits, None
        path_gain = np.minimum(here.path_gain, weighted)[chosen]
        return splits, _Open(
            level=here.level.descend(opened),
            node=n_nodes + opened,
            above=tests.feature[opened // 2],
            key=child_keys(here.key[chosen])[opened],
            path_gain=np.repeat(path_gain, 2)[opened],
        )

    def _choose(self, here: _Open) -> tuple[Cuts, NDArray[np.int32]]:
        """The cuts of all columns that were looked at, and the column that splits each node.

        Columns past `max_features` count, in the order drawn, where no other has a cut.
        """
        d, m = self.task.nominal.size, here.node.size
        if self._limits.max_features >= d:
            cuts = here.level.score(np.ones((d, m), np.bool_))
            return cuts, cuts.score.argmax(axis=0).astype(np.int32)
        order = draw_orders(here.key, d)
        asked = np.zeros((d, m), np.bool_)
        np.put_along_axis(asked, order[:, : self._limits.max_features].T, True, axis=0)
        cuts = here.level.score(asked)
        feature = cuts.score.argmax(axis=0)
        none = ~(cuts.score > -np.inf).any(axis=0)
        if none.any():
            more = here.level.score(~asked & none)
            cuts = cuts.merge(asked, more)
            has_cut = np.take_along_axis(cuts.score, order.T, axis=0) > -np.inf
            first = np.take_along_axis(order, has_cut.argmax(axis=0)[:, None], axis=1)[:, 0]
            feature = np.where(none, first, feature)
        return cuts, feature.astype(np.int32)

    def _splits(
        self,
        here: _Open,
        tests: CutTests,
        gain: NDArray[np.float64],
        cuts: Cuts,
        halves: Halves,
    ) -> _Splits:
        larger_left = halves.rows[::2] > halves.rows[1::2]
        owner = np.repeat(np.arange(tests.node.size), np.diff(tests.category))
        told = (here.above[tests.node] != tests.feature)[owner]
        told |= smaller_sides(tests.category, halves.is_left)
        return _Splits(
            node=here.node[tests.node],
            feature=tests.feature,
            threshold=self._thresholds(tests, cuts.after[tests.feature, tests.node]),
            missing_left=np.where(halves.seen_missing, tests.missing_left, larger_left),
            gain=gain,
            categories=np.bincount(owner[told], minlength=tests.node.size),
            code=halves.code[told],
            is_left=halves.is_left[told],
            rows=halves.rows,
            sums=halves.sums,
        )

    def _thresholds(self, tests: CutTests, after: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Midway between the values beside a cut; infinity before missing values."""
        threshold = np.zeros(tests.node.size)
        numeric = ~self.task.nominal[tests.feature]
        for f in np.unique(tests.feature[numeric]):
            own = np.flatnonzero(tests.feature == f)
            known = own[after[own] != MISSING_CODE]
            low = self.neighbours.greatest[f][tests.place[known]].astype(np.float64)
            high = self.neighbours.least[f][after[known]].astype(np.float64)
            middle = 0.5 * low + 0.5 * high
            threshold[own] = np.inf
            threshold[known] = np.where(middle < high, middle, low)
        return threshold


def _tests(node: Int64s, feature: NDArray[np.int32], cuts: Cuts) -> CutTests:
    """The tests of nodes that have one, on the columns chosen."""
    at = (feature, node)
    return CutTests(
        node=node,
        feature=feature,
        missing_left=cuts.missing_left[at],
        order=cuts.order[at],
        place=cuts.place[at],
        category=np.concatenate([[0], np.cumsum(cuts.categories[at], dtype=np.int64)]),
    )


# ------------------------------------------------------------------ assembly
def _root(level: CartLevel) -> _Splits:
    """The root, as the only child of no split."""
    return _Splits(
        node=np.empty(0, np.int64),
        feature=np.empty(0, np.int32),
        threshold=np.empty(0),
        missing_left=np.empty(0, np.bool_),
        gain=np.empty(0),
        categories=np.empty(0, np.int64),
        code=np.empty(0, np.uint32),
        is_left=np.empty(0, np.bool_),
        rows=level.rows,
        sums=level.sums,
    )


def _join(
    made: list[_Splits], n_nodes: int, nominal: NDArray[np.bool_]
) -> tuple[ListNodes, Subsets]:
    """All nodes as arrays; the children of split j are nodes 2j + 1 and 2j + 2."""
    splits = _Splits(*(np.concatenate(field) for field in zip(*made, strict=True)))
    child = 1 + 2 * np.arange(splits.node.size)
    listed = nominal[splits.feature]
    subset = np.where(listed, np.cumsum(listed) - 1, -1)
    nodes = ListNodes(
        first_child=_per_node(splits.node, child, NO_CHILD, n_nodes),
        feature=_per_node(splits.node, splits.feature, -1, n_nodes),
        threshold=_per_node(splits.node, splits.threshold, 0.0, n_nodes),
        missing_left=_per_node(splits.node, splits.missing_left, False, n_nodes),
        gain=_per_node(splits.node, splits.gain, 0.0, n_nodes),
        rows=splits.rows,
        sums=splits.sums,
        subset=_per_node(splits.node, subset, -1, n_nodes),
    )
    begin = np.concatenate([[0], np.cumsum(splits.categories[listed])])
    return nodes, Subsets(begin, splits.code, splits.is_left)


def _per_node(node: Int64s, per_split: NDArray, at_leaf: float, n_nodes: int) -> NDArray:
    """What each split has, at its node; `at_leaf` elsewhere."""
    values = np.full(n_nodes, at_leaf, per_split.dtype)
    values[node] = per_split
    return values
