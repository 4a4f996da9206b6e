"""Quantile regression forests (Meinshausen 2006): targets weighted by the leaves that rows share.

    target      ascending      y0 y1 y2 y3 y4 ...
    of a row    each tree adds weight / (weight of the leaf) to the targets of its leaf
    quantile    the target at which the cumulative sum reaches the level
    ..........  found in cells of 2**k targets, then in smaller cells within one of them

So targets are sorted once, and for a row only the members of its leaves are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NO_LEAF, NO_TARGET, NODE, ROW, Bools, Floats, Int32s, Int64s, Weight
from gputree.base.threads import run
from gputree.compilation import borrowing, kernel
from gputree.prediction.answers import Before, run_blocks
from gputree.prediction.forest import JoinedTrees, PackedForest, descend, leaves
from gputree.prediction.sparse import SparseRows

# A level is reached if less than this fraction of it is missing: weights are rounded quotients, and
# eight of ten rows of a leaf should reach 0.8.
ROUNDING = 1e-10


BITS = 9  # 2**BITS cells: up to 2**18 targets are found in two steps
LEAST = 1e-300  # a level of 0 is reached by the lowest target with a weight


class Groups(NamedTuple):
    """Targets grouped by the leaves that they are in."""

    target: Floats  # (n,) ascending
    weight: Floats  # (n,), or empty where all are equal
    first: Int64s  # (T,) offset of the nodes of each tree in `begin`
    begin: Int32s  # offset of the members of each node, and behind the last node of a tree the end
    members: Int32s  # (T * n,) places of targets, tree by tree, node by node, ascending


class LeafTargets:
    """One of the training targets of a forest of T trees, with their leaf in each tree.

    `target` and `weight` (n,) are of the rows that have weight, by ascending targets, `row` (n,)
    their places in the training table, and `leaf` (T, n) indices of nodes.
    """

    def __init__(self, target: Floats, weight: Floats, row: Int32s, leaf: Int32s) -> None:
        self.target, self.weight, self.row, self.leaf = target, weight, row, leaf
        self._packed: tuple[Sequence[JoinedTrees], Groups] | None = None

    @classmethod
    def of(
        cls,
        trees: PackedForest,
        values: NDArray | SparseRows,
        target: Floats,
        weight: Weight,
        n_threads: int,
    ) -> list[LeafTargets]:
        """Collect each target of all rows that have weight, in the bag or not.

        `target` has the shape (n,), or (n, n_outputs).
        """
        columns = target.reshape(len(target), -1).T
        weight = np.ones(len(target)) if weight is None else weight
        orders = [np.argsort(column, kind="stable") for column in columns]
        rows = np.stack([order[weight[order] > 0.0] for order in orders]).astype(ROW)
        leaf = np.empty((len(rows), len(trees), rows.shape[1]), NODE)
        for t in range(len(trees)):
            leaf[:, t] = leaves(trees.alone(t), values, n_threads)[rows, 0]
        found = zip(columns, rows, leaf, strict=True)
        return [cls(column[row], weight[row], row, of_row) for column, row, of_row in found]

    def of_trees(self, places: NDArray[np.integer]) -> LeafTargets:
        """Select trees."""
        return LeafTargets(self.target, self.weight, self.row, self.leaf[places])

    def joined(self, other: LeafTargets) -> LeafTargets:
        """Append the leaves of the trees of another forest of the same rows."""
        leaf = np.concatenate([self.leaf, other.leaf])
        return LeafTargets(self.target, self.weight, self.row, leaf)

    def is_of_rows_of(self, other: LeafTargets) -> bool:
        """Return whether the targets belong to the same rows."""
        pairs = [(getattr(self, k), getattr(other, k)) for k in ("target", "weight", "row")]
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_packed": None}

    def quantiles(
        self,
        trees: PackedForest,
        values: NDArray | SparseRows,
        n_threads: int = 1,
        before: Before = None,
        *,
        levels: Floats,
    ) -> Floats:
        """Quantiles of ascending `levels` for each row, of shape (n_rows, levels)."""
        groups = self._grouped(trees, n_threads)

        def block(begin: int, end: int) -> Floats:
            reached = descend(trees, values, begin, end)
            return find_quantiles(groups, reached, np.full(end - begin, NO_TARGET), levels)

        rows = values.sparse_rows if isinstance(values, SparseRows) else None
        found = run_blocks(values, n_threads, before, block, find_quantiles, rows, len(trees))
        return np.concatenate([np.empty((0, levels.size)), *found])

    def out_of_bag(
        self,
        trees: Sequence[JoinedTrees],
        drawn: Sequence[Bools],
        n_threads: int,
        levels: Floats,
    ) -> Floats:
        """Quantiles of training rows, by trees that have not drawn them and without their targets.

        `drawn` has the rows of each tree, masks of the table; NaN where all trees have drawn a row,
        or it has no weight.
        """
        groups = self._grouped(trees, n_threads)
        reached = np.stack([_placed(*placed) for placed in zip(trees, self.leaf, strict=True)])
        for leaf, mask in zip(reached, drawn, strict=True):
            leaf[mask[self.row]] = NO_LEAF
        places = np.arange(self.row.size)

        def block(begin: int, end: int) -> Floats:
            leaves = np.ascontiguousarray(reached[:, begin:end])
            return find_quantiles(groups, leaves, places[begin:end], levels)

        found = run_blocks(places, n_threads, None, block, find_quantiles)
        out = np.full((drawn[0].size, levels.size), np.nan)
        out[self.row] = np.concatenate(found)
        return out

    def _grouped(self, trees: Sequence[JoinedTrees], n_threads: int) -> Groups:
        """Group the targets by the nodes of packed trees; cached for the next rows."""
        if self._packed is None or self._packed[0] is not trees:
            found = run(n_threads, _group, list(zip(trees, self.leaf, strict=True)))
            first = np.cumsum([0, *(begin.size for begin, _ in found[:-1])])
            begin = np.concatenate([begin for begin, _ in found])
            members = np.concatenate([members for _, members in found])
            weight = self.weight[:0] if (self.weight == self.weight[0]).all() else self.weight
            self._packed = trees, Groups(self.target, weight, first, begin, members)
        return self._packed[1]


def quantiles_of_targets(
    found: Sequence[LeafTargets], trees: PackedForest, values: NDArray, **how: Any
) -> Floats:
    """Quantiles of each of several targets, of shape (n_rows, n_outputs, levels)."""
    return np.stack([of.quantiles(trees, values, **how) for of in found], axis=1)


def _placed(tree: JoinedTrees, leaf: Int32s) -> Int32s:
    """Nodes of a tree, numbered in its packed order."""
    return tree.place[leaf].astype(NODE)


def _group(tree: JoinedTrees, leaf: Int32s) -> tuple[Int32s, Int32s]:
    """Offsets of the members of each node, and the members."""
    place = _placed(tree, leaf)
    ends = np.zeros(tree.nodes.nodes.size + 1, ROW)
    np.cumsum(np.bincount(place, minlength=ends.size - 1), out=ends[1:])
    members = np.empty(leaf.size, ROW)
    put_in_order(place, ends[:-1].copy(), members)
    return ends, members


@kernel
def put_in_order(node: Int32s, place: Int32s, members: Int32s) -> None:
    """Write places ``0 .. n`` node by node; the places of a node begin at ``place[node]``."""
    for i in range(node.size):
        members[place[node[i]]] = i
        place[node[i]] += 1


@kernel
def find_quantiles(groups: Groups, reached: Int32s, excluded: Int64s, levels: Floats) -> Floats:
    """Quantiles of rows that reach the given nodes, (T, n): of shape (n, levels).

    ``excluded`` (n,) is the target that each row excludes, or NO_TARGET. A tree without a target
    in the row's leaf is ignored; NaN where all are.
    """
    top = 0
    while groups.target.size >> (top + BITS) > 0:
        top += 1
    cells, finer = np.empty(1 << BITS), np.empty(1 << BITS)
    begin, end = np.empty(groups.first.size, np.int64), np.empty(groups.first.size, np.int64)
    share = np.empty(groups.first.size)
    out = np.full((excluded.size, levels.size), np.nan)
    for r in range(excluded.size):
        trees = 0
        for t in range(groups.first.size):
            if reached[t, r] != NO_LEAF:
                trees += open_leaf(groups, t, reached[t, r], excluded[r], begin, end, share, trees)
        if trees == 0:
            continue
        cells[:] = 0.0
        for m in range(trees):
            add_range(groups, begin[m], end[m], share[m], excluded[r], 0, top, cells)
        for c in range(1, cells.size):
            cells[c] += cells[c - 1]
        c = 0
        for k in range(levels.size):
            goal = max(levels[k] * trees * (1.0 - ROUNDING), LEAST)
            while cells[c] < goal and c < cells.size - 1:
                c += 1
            first, below, shift = c << top, cells[c - 1] if c > 0 else 0.0, top
            while shift > 0:
                width, shift = 1 << shift, max(shift - BITS, 0)
                finer[: width >> shift] = 0.0
                for m in range(trees):
                    low = first_from(groups.members, begin[m], end[m], first)
                    high = first_from(groups.members, low, end[m], first + width)
                    add_range(groups, low, high, share[m], excluded[r], first, shift, finer)
                found = 0
                for f in range(width >> shift):
                    if finer[f] > 0.0:
                        below += finer[found] if f > found else 0.0
                        found = f
                        if below + finer[f] >= goal:
                            break
                first += found << shift
            out[r, k] = groups.target[min(first, groups.target.size - 1)]
    return out


@borrowing
def open_leaf(
    groups: Groups,
    t: int,
    stop: int,
    excluded: int,
    begin: Int64s,
    end: Int64s,
    share: Floats,
    m: int,
) -> int:
    """Write the range of the members of a leaf, and the addend of weight 1; 0 if it has none."""
    node = np.uintp(groups.first[t] + stop)
    before = t * groups.target.size
    low = before + np.int64(groups.begin[node])
    high = before + np.int64(groups.begin[node + np.uintp(1)])
    whole = float(high - low - (excluded != NO_TARGET))  # an excluded row is in the leaf
    if groups.weight.size > 0:
        whole = 0.0
        for j in range(low, high):
            if groups.members[np.uintp(j)] != excluded:
                whole += groups.weight[np.uintp(groups.members[np.uintp(j)])]
    if whole <= 0.0:
        return 0
    begin[m], end[m], share[m] = low, high, 1.0 / whole
    return 1


@borrowing
def add_range(
    groups: Groups,
    begin: int,
    end: int,
    share: float,
    excluded: int,
    first: int,
    shift: int,
    cells: Floats,
) -> None:
    """Add the weights of members ``begin .. end`` to cells of 2**shift places from `first` on."""
    for j in range(begin, end):
        i = np.int64(groups.members[np.uintp(j)])
        if i != excluded:
            weight = share if groups.weight.size == 0 else share * groups.weight[np.uintp(i)]
            cells[np.uintp((i - first) >> shift)] += weight


@borrowing
def first_from(members: Int32s, begin: int, end: int, lowest: int) -> int:
    """The first of ascending members ``begin .. end`` that is `lowest` or more."""
    while begin < end:
        middle = (begin + end) >> 1
        if members[np.uintp(middle)] < lowest:
            begin = middle + 1
        else:
            end = middle
    return begin
