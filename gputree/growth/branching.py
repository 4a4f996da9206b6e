"""Nodes of a multiway tree in the order in which they are made, and their final numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Floats, Int64s
from gputree.branches import concatenated_ranges


class Expansion(NamedTuple):
    """Splits of m nodes, and the P children with entries that result."""

    node: Int64s  # (m,) numbers of the nodes
    feature: NDArray[np.int32]
    gain: Floats
    low: Floats  # values on both sides of a numeric cut; NaN for other splits
    high: Floats
    part: Int64s  # (m + 1,) children of split j are part[j] .. part[j + 1]
    code: NDArray[np.uint32]  # (P,) category of each child
    rows: Int64s  # (P,)
    weights: Int64s  # (P, K)


class Branching:
    """The expansions of a tree; the root is node 0, children are numbered in the order of `add`."""

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
        """Join all expansions."""
        if not self.expansions:
            return _no_expansion(self.weights[0].shape[1])
        fields = [np.concatenate(field) for field in zip(*self.expansions, strict=True)]
        joined = Expansion(*fields)
        sizes = [np.diff(e.part) for e in self.expansions]
        return joined._replace(part=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]))


def _no_expansion(n_classes: int) -> Expansion:
    none, reals, weights = np.empty(0, np.int64), np.empty(0), np.empty((0, n_classes), np.int64)
    feature, code = none.astype(np.int32), none.astype(np.uint32)
    return Expansion(none, feature, reals, reals, reals, np.zeros(1, np.int64), code, none, weights)


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
