"""From nodes in the order they were made to a `Tree`, numbered breadth-first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits, Subtrees
from gputree.backends.rules import missing_goes_left
from gputree.dtypes import NO_CHILD, NO_FEATURE, NO_THRESHOLD, NODE


class Nodes(NamedTuple):
    """Nodes of a grown binary tree; ``first_child`` is -1 at leaves, else the first of a pair.

    Missing values go as learned; where training saw none, to the child with more rows.
    """

    first_child: Int64s
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    gain: NDArray[np.float64]
    begin: Int64s
    end: Int64s


class NodeTable:
    """Nodes of the levels grown one by one; the root is node 0."""

    def __init__(self, n_rows: int) -> None:
        self._levels: list[Nodes] = []
        self.n_nodes = 0
        self._add(np.array([0]), np.array([n_rows]))

    def _add(self, begin: Int64s, end: Int64s) -> Int64s:
        m = begin.size
        self._levels.append(
            Nodes(
                first_child=np.full(m, NO_CHILD),
                feature=np.full(m, -1, np.int32),
                threshold=np.zeros(m),
                missing_left=np.zeros(m, np.bool_),
                gain=np.zeros(m),
                begin=begin,
                end=end,
            )
        )
        self.n_nodes += m
        return np.arange(self.n_nodes - m, self.n_nodes)

    def add_children(
        self, nodes: Int64s, splits: Splits, threshold: NDArray, middle: Int64s
    ) -> Int64s:
        """Record the splits of `nodes`, all of the last level; returns the children's numbers."""
        level = self._levels[-1]
        own = nodes - (self.n_nodes - level.begin.size)
        level.feature[own] = splits.feature
        level.threshold[own] = threshold
        level.missing_left[own] = missing_goes_left(
            splits.seen_missing,
            splits.missing_left,
            middle - level.begin[own],
            level.end[own] - middle,
        )
        level.gain[own] = splits.gain
        begin = np.stack([level.begin[own], middle], axis=1).ravel()
        end = np.stack([middle, level.end[own]], axis=1).ravel()
        level.first_child[own] = self.n_nodes + 2 * np.arange(nodes.size)
        return self._add(begin, end)

    def join(self, roots: Int64s, subtrees: Subtrees | None) -> Nodes:
        """All nodes, with each of `roots` replaced by its finished subtree."""
        if subtrees is not None and self.n_nodes == 1:  # all was finished from the root on
            return Nodes._make(subtrees[1:])
        top = Nodes._make(np.concatenate(field) for field in zip(*self._levels, strict=True))
        if subtrees is None:
            return top
        shift = self.n_nodes
        child = subtrees.first_child
        below = Nodes(np.where(child < 0, NO_CHILD, child + shift), *subtrees[2:])
        return Nodes._make(
            _join(a, b, roots, subtrees.root) for a, b in zip(top, below, strict=True)
        )


def _join(top: Any, below: Any, roots: Int64s, subtree_roots: Int64s) -> NDArray[Any]:
    """One field of all nodes; those at `roots` take the values of the subtrees' roots."""
    top[roots] = below[subtree_roots]
    return np.concatenate([top, below])


def breadth_first(nodes: Nodes) -> tuple[Int64s, NDArray[np.int32], NDArray[np.int32]]:
    """Nodes reachable from the root, breadth-first, with their parents' places and depths."""
    order = [np.array([0])]
    parent = [np.array([NO_CHILD])]
    seen = 0
    while order[-1].size:
        first = nodes.first_child[order[-1]]
        inner = (first >= 0).nonzero()[0]
        pairs = first[inner].repeat(2)
        pairs[1::2] += 1
        order.append(pairs)
        parent.append((inner + seen).repeat(2))
        seen += first.size
    depth = np.repeat(np.arange(len(order)), [level.size for level in order])
    return np.concatenate(order), np.concatenate(parent).astype(NODE), depth.astype(NODE)


def renumber(nodes: Nodes) -> tuple[Nodes, NDArray[np.int32], NDArray[np.int32]]:
    """`nodes` breadth-first, with parents and depths; sentinels as a `Tree` has them."""
    order, parent, depth = breadth_first(nodes)
    place = np.full(nodes.first_child.size + 1, NO_CHILD)
    place[order] = np.arange(order.size)
    taken = Nodes._make(field[order] for field in nodes)
    leaf = taken.first_child < 0
    taken = taken._replace(
        first_child=place[taken.first_child],
        feature=np.where(leaf, NO_FEATURE, taken.feature).astype(np.int32),
        threshold=np.where(leaf, NO_THRESHOLD, taken.threshold),
    )
    return taken, parent, depth


def over_leaves(nodes: Nodes, leaf_sums: Int64s) -> Int64s:
    """Sums (N, S) of every node over the leaves below it, whose entries are a span of its own.

    `leaf_sums`, of shape (leaves, S), are in the order of the nodes' numbers.
    """
    is_leaf = nodes.first_child < 0
    begin = nodes.begin[is_leaf]
    order = begin.argsort(kind="stable")  # levels are sorted runs
    before = np.zeros((begin.size + 1, leaf_sums.shape[1]), np.int64)
    np.cumsum(leaf_sums[order], axis=0, out=before[1:])
    begin = begin[order]
    sums = np.empty((is_leaf.size, leaf_sums.shape[1]), np.int64)
    sums[is_leaf] = leaf_sums
    first, last = (begin.searchsorted(at[~is_leaf]) for at in (nodes.begin, nodes.end))
    sums[~is_leaf] = before[last] - before[first]
    return sums
