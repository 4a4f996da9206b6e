"""Nodes of a multiway tree as they are made, and the `Tree` they become."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s


class Expansion(NamedTuple):
    """Splits of m nodes, and the P children with entries that they make.

    Attributes
    ----------
    node : int64 array of shape (m,), numbers of the nodes
    feature : int32
    gain : float64
    low, high : float64
        Values on both sides of a numeric cut; NaN for other splits.
    part : int64 array of shape (m + 1,)
        Children of split j are ``part[j] .. part[j + 1]``.
    code : uint32 array of shape (P,)
        Category of each child.
    rows : int64 array of shape (P,)
    weights : int64 array of shape (P, K)
    """

    node: Int64s
    feature: NDArray[np.int32]
    gain: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    part: Int64s
    code: NDArray[np.uint32]
    rows: Int64s
    weights: Int64s


class Branching:
    """All expansions of a tree; the root is node 0, children are numbered as they come."""

    def __init__(self, rows: int, weights: Int64s) -> None:
        self.rows = [np.array([rows])]
        self.weights = [weights]
        self.expansions: list[Expansion] = []
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
        """All expansions as one."""
        if not self.expansions:
            return _no_expansion(self.weights[0].shape[1])
        fields = [np.concatenate(field) for field in zip(*self.expansions, strict=True)]
        joined = Expansion(*fields)
        sizes = [np.diff(e.part) for e in self.expansions]
        return joined._replace(part=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]))


def _no_expansion(n_classes: int) -> Expansion:
    return Expansion(
        node=np.empty(0, np.int64),
        feature=np.empty(0, np.int32),
        gain=np.empty(0),
        low=np.empty(0),
        high=np.empty(0),
        part=np.zeros(1, np.int64),
        code=np.empty(0, np.uint32),
        rows=np.empty(0, np.int64),
        weights=np.empty((0, n_classes), np.int64),
    )


class Shape(NamedTuple):
    """A breadth-first multiway tree of N nodes.

    Attributes
    ----------
    source : int64 array of shape (N,)
        Number of each node as it was made, -1 for children without entries.
    split : int64 array of shape (N,)
        Its split in the joined expansions, -1 at leaves.
    parent, depth, first_child, n_children : int64 arrays of shape (N,)
    """

    source: Int64s
    split: Int64s
    parent: Int64s
    depth: Int64s
    first_child: Int64s
    n_children: Int64s


def breadth_first(splits: Expansion, n_nodes: int, n_children: Int64s, ordinal: Int64s) -> Shape:
    """Number nodes breadth-first, children without entries among them.

    Parameters
    ----------
    splits : Expansion
    n_nodes : int
        Nodes with entries.
    n_children : int64 array of shape (m,), children of each split
    ordinal : int64 array of shape (P,), place of each part among its siblings
    """
    split_of = np.full(n_nodes + 1, -1)  # the last one stands for nodes without entries
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
        part = _ranges(splits.part[split], sizes)
        below[np.repeat(np.cumsum(counts) - counts, sizes) + ordinal[part]] = part + 1
        parents.append(np.repeat(inner + seen, counts))
        seen += levels[-1].size
        levels.append(below)
    source = np.concatenate(levels)
    split = split_of[source]
    counts = np.append(n_children, 0)[split]
    first = 1 + np.cumsum(counts) - counts
    return Shape(
        source=source,
        split=split,
        parent=np.concatenate(parents),
        depth=np.repeat(np.arange(len(levels)), [level.size for level in levels]),
        first_child=np.where(counts > 0, first, -1),
        n_children=counts,
    )


def _ranges(begin: Int64s, sizes: Int64s) -> Int64s:
    """``begin[0] .. begin[0] + sizes[0]``, then the next, one behind the other."""
    shift = begin - (np.cumsum(sizes) - sizes)
    return np.repeat(shift, sizes) + np.arange(int(sizes.sum()))
