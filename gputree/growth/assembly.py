"""Conversion of nodes in the order in which they were made to a `Tree`, numbered breadth-first.

Growth does not record the categories that splits send left and right. They are found from the rows
of the nodes: once a tree is grown, a category goes to the child that has rows of it.
If the parent of a split tests the same column, only the smaller child is read: a chain of tests
that separate single categories from the rest costs n log n rows, not n^2.

`graft` exchanges a part of a tree without growing the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import REST_BITS
from gputree.backends.base import Backend, Splits, Subtrees
from gputree.backends.binning import missing_goes_left
from gputree.base.dtypes import (
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    Bools,
    Floats,
    Int32s,
    Int64s,
)
from gputree.compilation import inner, kernel
from gputree.criteria import target_impurity
from gputree.tree.branches import BranchLists, Subsets, add_to_parents, concatenated_ranges
from gputree.tree.statistics import SLACK
from gputree.tree.tree import Tree


class GrownNodes(NamedTuple):
    """Nodes of a grown binary tree; ``first_child`` is -1 at leaves, else the first of a pair.

    Missing values go as learned; where training saw none, to the child with more rows.
    """

    first_child: Int64s
    feature: Int32s
    threshold: Floats
    missing_left: Bools
    gain: Floats
    begin: Int64s
    end: Int64s


class WholeTrees(NamedTuple):
    """T trees, each numbered breadth-first, one after another: N nodes, S of them splits, L leaves.

    One tree is such a sequence, too. Means and impurities are those of targets; else N is 0 there.
    """

    is_split: Bools  # (N,)
    feature: Int32s  # (S,)
    threshold: Floats  # (S,)
    missing_child: NDArray[np.int8]  # (S,)
    gain: Floats  # (S,)
    n_rows: Int64s  # (L,)
    weight: Int64s  # (L, K) of classes; (L, 1) without any
    mean: Floats  # (N, 1)
    impurity: Floats  # (N,)
    highest: Int64s  # (T, 2) highest number of rows and weight of a tree's leaves

    @classmethod
    def empty(cls, sizes: Int64s, n_classes: int) -> WholeTrees:
        """Trees of `sizes` nodes for `number_whole` to fill; of regression if `n_classes` is 0."""
        nodes, splits = int(sizes.sum()), int((sizes // 2).sum())
        means = 0 if n_classes else nodes
        return cls(
            np.empty(nodes, np.bool_),
            np.empty(splits, np.int32),
            np.empty(splits),
            np.empty(splits, np.int8),
            np.empty(splits),
            np.empty(nodes - splits, np.int64),
            np.zeros((nodes - splits, max(n_classes, 1)), np.int64),
            np.empty((means, 1)),
            np.empty(means),
            np.empty((sizes.size, 2), np.int64),
        )

    def each(self, sizes: Int64s) -> Iterator[WholeTrees]:
        """The trees, of `sizes` nodes, one by one; their arrays are parts of these."""
        nodes, splits = ([0, *np.cumsum(of).tolist()] for of in (sizes, sizes // 2))
        for j in range(sizes.size):
            node, split = slice(*nodes[j : j + 2]), slice(*splits[j : j + 2])
            leaf = slice(node.start - split.start, node.stop - split.stop)
            ends = node, split, split, split, split, leaf, leaf, node, node, slice(j, j + 1)
            fields: Iterator[tuple[Any, slice]] = zip(self, ends, strict=True)
            yield WholeTrees._make(field[part] for field, part in fields)


class TargetUnits(NamedTuple):
    """Units that targets of T trees are summed up in; see `gputree.arithmetic.fixed_point`."""

    centre: Floats  # (T,); of classes empty
    unit: float
    square_unit: float


class NodeTable:
    """Nodes of the levels that are grown one by one; first the roots of trees of `sizes` rows."""

    def __init__(self, sizes: Int64s) -> None:
        self._levels: list[GrownNodes] = []
        self.n_nodes = 0
        end = np.cumsum(sizes)
        self._roots = self._add(end - sizes, end)

    def _add(self, begin: Int64s, end: Int64s) -> Int64s:
        m = begin.size
        self._levels.append(
            GrownNodes(
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
        places = nodes - (self.n_nodes - level.begin.size)
        level.feature[places] = splits.feature
        level.threshold[places] = threshold
        level.missing_left[places] = missing_goes_left(
            splits.seen_missing,
            splits.missing_left,
            middle - level.begin[places],
            level.end[places] - middle,
        )
        level.gain[places] = splits.gain
        begin = np.stack([level.begin[places], middle], axis=1).ravel()
        end = np.stack([middle, level.end[places]], axis=1).ravel()
        level.first_child[places] = self.n_nodes + 2 * np.arange(nodes.size)
        return self._add(begin, end)

    def join(self, nodes: Int64s, subtrees: Subtrees | None) -> tuple[GrownNodes, Int64s]:
        """Join all nodes, with each of `nodes` replaced by its finished subtree; and the roots."""
        if subtrees is not None and nodes.size == self.n_nodes:  # built from the roots on
            return GrownNodes._make(subtrees[1:]), subtrees.root
        top = GrownNodes._make(np.concatenate(field) for field in zip(*self._levels, strict=True))
        if subtrees is None:
            return top, self._roots
        shift = self.n_nodes
        child = subtrees.first_child
        below = GrownNodes(np.where(child < 0, NO_CHILD, child + shift), *subtrees[2:])
        joined = GrownNodes._make(
            _join(a, b, nodes, subtrees.root) for a, b in zip(top, below, strict=True)
        )
        return joined, self._roots


def _join(top: Any, below: Any, nodes: Int64s, subtree_roots: Int64s) -> NDArray[Any]:
    """Join one field of all nodes; some `nodes` take the values of the subtrees' roots."""
    top[nodes] = below[subtree_roots]
    return np.concatenate([top, below])


def breadth_first(first_child: NDArray[Any], root: int = 0) -> tuple[Int64s, Int32s]:
    """Nodes reachable from a root, breadth-first, and their depths."""
    order, depth = np.empty(first_child.size, np.int64), np.zeros(first_child.size, NODE)
    size = walk_levels(first_child.astype(np.int64, copy=False), root, order, depth)
    return order[:size], depth[:size]


@kernel
def walk_levels(first_child: Int64s, root: int, order: Int64s, depth: Int32s) -> int:
    """Write the nodes reachable from `root`, breadth-first, and their depths; return how many."""
    order[0] = root
    size = 1
    place = 0
    # The first `size` nodes are known, of these the children of the first `place`.
    while place < size:
        child = first_child[order[place]]
        if child >= 0:
            for side in range(2):
                order[size] = child + side
                depth[size] = depth[place] + 1
                size += 1
        place += 1
    return size


def renumber(nodes: GrownNodes, root: int = 0) -> tuple[GrownNodes, Int32s, Int32s]:
    """Renumber a tree breadth-first: nodes, parents and depths, with the sentinels of a `Tree`.

    Breadth-first, the k-th node that is split has the children 2 k + 1 and 2 k + 2.
    """
    order, depth = breadth_first(nodes.first_child, root)
    taken = GrownNodes._make(field[order] for field in nodes)
    is_leaf = taken.first_child < 0
    inner = np.flatnonzero(~is_leaf)
    taken.first_child[inner] = 2 * np.arange(inner.size) + 1
    taken.feature[is_leaf] = NO_FEATURE
    taken.threshold[is_leaf] = NO_THRESHOLD
    parent = np.full(order.size, NO_CHILD, NODE)
    parent[1:] = inner.repeat(2)
    return taken, parent, depth


@kernel
def number_whole(
    grown: Subtrees,
    sizes: Int64s,
    first_row: Int64s,
    rows: Any,
    entries: NDArray,
    criterion: Any,
    units: TargetUnits,
    out: WholeTrees,
) -> None:
    """Fill the trees of all roots, of `sizes` nodes.

    `rows` are as in `gputree.backends.cpu`, with empty arrays for None; row 0 of a tree has the
    place ``first_row[j]`` among weights, and among targets that are no classes.
    """
    regression, weighted = rows.square.size > 0, rows.weight.size > 0
    most = sizes.max()
    order = np.empty(most, np.int64)
    sums = np.empty((most if regression else 0, 4), np.int64)
    first = splits = leaves = 0
    # The trees before j are the nodes before `first`: `splits` that are split, and `leaves`.
    for j in range(sizes.size):
        order[0] = grown.root[j]
        size, place = 1, np.uintp(first_row[j])
        first_split = splits
        highest_rows = highest_weight = np.int64(0)
        # Of the tree's nodes, the first `size` are in `order`, and those before i are written.
        for i in range(sizes[j]):
            node = order[i]
            child = grown.first_child[node]
            out.is_split[first + i] = child >= 0
            if child >= 0:
                order[size], order[size + 1] = child, child + 1
                size += 2
                out.feature[splits] = grown.feature[node]
                out.threshold[splits] = grown.threshold[node]
                out.missing_child[splits] = 0 if grown.missing_left[node] else 1
                out.gain[splits] = grown.gain[node]
                splits += 1
                continue
            begin, end = grown.begin[node], grown.end[node]
            out.n_rows[leaves] = end - begin
            highest_rows = max(highest_rows, end - begin)
            if regression:
                whole = total = square = rest = np.int64(0)
                for e in range(begin, end):
                    row = place + np.uintp(entries[e])
                    whole += rows.weight[row] if weighted else 1
                    total += rows.target[row]
                    square += rows.square[row]
                    rest += rows.square_rest[row]
                sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = whole, total, square, rest
                out.weight[leaves, 0] = whole
                highest_weight = max(highest_weight, whole)
            else:
                for e in range(begin, end):
                    row = np.uintp(entries[e])
                    k = np.uintp(rows.target[row])
                    out.weight[leaves, k] += rows.weight[place + row] if weighted else 1
                    highest_weight = max(highest_weight, out.weight[leaves, k])
            leaves += 1
        out.highest[j, 0] = highest_rows
        out.highest[j, 1] = highest_weight
        if regression:
            # The children of nodes behind i, which come behind them, are the nodes from `size` on.
            for i in range(sizes[j] - 1, -1, -1):
                if out.is_split[first + i]:
                    size -= 2
                    for c in range(4):
                        sums[i, c] = sums[size, c] + sums[size + 1, c]
                put_statistics(sums, i, criterion, units, units.centre[j], first + i, out)
            bound_whole_gains(first, first + sizes[j], first_split, out)
        first += sizes[j]


@inner
def put_statistics(
    sums: Int64s,
    i: int,
    criterion: Any,
    units: TargetUnits,
    centre: float,
    node: int,
    out: WholeTrees,
) -> None:
    """Write the mean and the impurity of a node, from its sums, in the operations of a `Tree`."""
    weight, total = sums[i, 0], sums[i, 1]
    squares = np.float64(sums[i, 2]) + np.float64(sums[i, 3]) * 2.0**-REST_BITS
    out.mean[node, 0] = centre + np.float64(total) * units.unit / np.float64(weight)
    out.impurity[node] = target_impurity(criterion, weight, total, squares, units)


@inner
def bound_whole_gains(first: int, end: int, split: int, out: WholeTrees) -> None:
    """Bound the gains of a tree's nodes as `bound_gains` does; they begin at `split`."""
    whole = out.impurity[first]
    for node in range(first, end):
        if out.is_split[node]:
            impurity, gain = out.impurity[node], out.gain[split]
            slack = 0.5 * SLACK * (whole + impurity)
            if gain < -slack:
                out.gain[split] = 0.0
            elif gain > impurity + slack:
                out.gain[split] = impurity
            split += 1


def over_leaves(first_child: NDArray[Any], leaf_sums: NDArray[Any]) -> NDArray[Any]:
    """Sums (N, S) of every node, numbered as by `renumber`, over the leaves below it.

    `leaf_sums`, of shape (leaves, S), are in the order of the nodes' numbers.
    """
    sums = np.zeros((first_child.size, leaf_sums.shape[1]), leaf_sums.dtype)
    sums[first_child < 0] = leaf_sums
    parent = np.full(first_child.size, NO_CHILD, NODE)
    parent[1:] = np.flatnonzero(first_child >= 0).repeat(2)
    add_to_parents(parent, sums)
    return sums


def list_subsets(backend: Backend, nodes: GrownNodes, parent: Int32s, subset: Int64s) -> Subsets:
    """List the subsets of a tree, numbered by `subset` (N,); -1 where a node tests none.

    `nodes` are breadth-first, and the backend's entries in the order after growth.
    """
    tested = np.flatnonzero(subset >= 0)
    first, above = nodes.first_child[tested], parent[tested]
    chained = (above >= 0) & (subset[above] >= 0) & (nodes.feature[above] == nodes.feature[tested])
    sizes = nodes.end - nodes.begin
    left_listed = ~chained | (sizes[first] <= sizes[first + 1])
    right_listed = ~chained | ~left_listed
    split = np.concatenate([np.flatnonzero(left_listed), np.flatnonzero(right_listed)])
    n_left = int(left_listed.sum())
    child = first[split]
    child[n_left:] += 1
    counts, code = backend.categories(
        nodes.begin[child], nodes.end[child], nodes.feature[tested[split]]
    )
    owner = np.repeat(split, counts)
    is_left = np.repeat(np.arange(split.size) < n_left, counts)
    order = np.lexsort((code, owner))
    begin = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=tested.size))])
    return Subsets(begin, code[order], is_left[order])


class Grafted(NamedTuple):
    """A tree after one of its subtrees was replaced.

    `origin`, of shape (N,), has the number that each node had before; -1 for those of the new
    subtree, whose root keeps the number of the node that it replaces.
    """

    tree: Tree
    origin: Int64s


def graft(tree: Tree, node: int, subtree: Tree) -> Grafted:
    """Replace the subtree whose root is `node`; both trees have the same columns and classes.

    Bounds on predictions, which depend on nodes above, and soft thresholds are not supported.
    """
    n = tree.n_nodes
    per_node = {
        field.name: np.concatenate([one, getattr(subtree, field.name)])
        for field in fields(tree)
        if isinstance(one := getattr(tree, field.name), np.ndarray)
    }
    for name, values in per_node.items():
        if not name.startswith("branch_"):  # the categories that lead to `node` stay
            values[node] = values[n]
    lists = BranchLists(*(per_node.pop(name) for name in BranchLists._fields))
    for places in (lists.branch_begin, lists.branch_end):
        places[n:] += tree.branch_code.size
    child = per_node["first_child"]
    child[n:] = np.where(child[n:] < 0, NO_CHILD, child[n:] + n)
    child[node] = child[n]
    order, parent, depth = _breadth_first(child, per_node["n_children"])
    taken: dict[str, Any] = {name: values[order] for name, values in per_node.items()}
    counts = taken["n_children"].astype(np.int64)
    first = 1 + np.cumsum(counts) - counts
    taken |= {
        "first_child": np.where(counts > 0, first, NO_CHILD).astype(NODE),
        "parent": parent.astype(NODE),
        "depth": depth.astype(NODE),
    }
    made = replace(tree, **taken, **lists.take(order)._asdict())
    return Grafted(made, np.where(order < n, order, NO_CHILD))


def _breadth_first(child: Int64s, counts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Nodes that the root leads to, level by level; their parents' new numbers, and depths."""
    levels, parents = [np.array([0])], [np.array([NO_CHILD])]
    seen = 0
    while levels[-1].size:
        above = levels[-1]
        size = counts[above].astype(np.int64)
        parents.append(np.repeat(np.arange(seen, seen + above.size), size))
        levels.append(concatenated_ranges(child[above].astype(np.int64), size))
        seen += above.size
    depth = np.repeat(np.arange(len(levels)), [level.size for level in levels])
    return np.concatenate(levels), np.concatenate(parents), depth
