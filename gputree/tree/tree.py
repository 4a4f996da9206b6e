r"""A decision tree as a struct of arrays.

Nodes are numbered breadth-first and the children of a node are contiguous:

    node            0
                  / | \        first_child[0] = 1, n_children[0] = 3
                 1  2  3
                   / \          first_child[2] = 4, n_children[2] = 2
                  4   5

Binary and multiway trees share the shape. Everything the host does with a
tree (pruning, prediction, export, model files) works on these arrays alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    CATEGORY,
    LEAF,
    MISSING_STOPS,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    Bools,
    Floats,
    Int32s,
    Int64s,
)
from gputree.tree.arrays import TreeArrays
from gputree.tree.branches import Branches, BranchLists

T = TypeVar("T")

# Arrays that determine the path of a row.
PATHS = (
    "first_child", "n_children", "parent", "depth", "split_kind", "feature", "threshold",
    "missing_child", "branch_begin", "branch_end", "branch_code",
)  # fmt: skip


@dataclass(frozen=True)
class Tree(TreeArrays):
    """A fitted tree of N nodes.

    Attributes
    ----------
    task : "classification" or "regression"
    criterion : str
        Name of the impurity, as of the parameter `criterion`; entropy is in bits.
    n_features : int
        Number of columns the tree was grown on.
    first_child, n_children : int32 arrays of shape (N,)
        The children of node t are ``first_child[t] .. first_child[t] +
        n_children[t]`` (the end is not one of them); a leaf has -1 and 0.
    parent, depth : int32 arrays of shape (N,)
        The root has parent -1 and depth 0.
    split_kind : uint8 array of shape (N,)
        LEAF, THRESHOLD_SPLIT, BRANCH_SPLIT or SUBSET_SPLIT of `gputree.base.dtypes`.
    feature : int32 array of shape (N,)
        Column tested; -2 at leaves.
    threshold : float64 array of shape (N,)
        ``x <= threshold`` goes to the first child; -2.0 where the split is not
        numeric. Infinity sends every known value left and missing ones right.
    missing_child : int32 array of shape (N,)
        Ordinal of the child that takes missing values (NaN), MISSING_TO_ALL or MISSING_STOPS.
        Categories without a branch, which the node has no rows of, go with the missing values,
        except where a category-per-branch split has a child for those: they stop.
    weight : float64 array of shape (N,)
        Sum of sample weights in the node.
    n_rows : int64 array of shape (N,)
        Number of training rows in the node.
    statistics : float64 array of shape (N, K)
        Class weights of the node (classification; K classes), or its mean
        target (regression; K = 1): its median or quantile by criteria of these. Of several
        targets, those of each, one target after the other: see `target_ends`.
    impurity : float64 array of shape (N,)
        Impurity of the node by `criterion`; of several targets the mean of theirs.
    gain : float64 array of shape (N,)
        Decrease of impurity by the node's split, per unit of the node's weight; 0 at leaves.
    lower, upper : float64 arrays of shape (N,), or None
        Bounds on the probability of the second class, or on the mean target, that a node predicts;
        None without monotonic constraints. `statistics` may be outside.
    smoothing : float
        Weight that every class has in what a node predicts, beyond that of the node's rows
        (classification): 0, or 1 for Laplace's estimate. Not together with bounds.
    soft_lower, soft_upper : float64 arrays of shape (N,), or None
        If a number is between these two, both children of a threshold split predict, with
        fractional weights (see `gputree.prediction.answers`); other nodes have their `threshold` in
        both.
    target_classes : tuple of int
        Number of classes of each target, where there are several (classification); else empty.
    branch_begin, branch_end : int64 arrays of shape (N,)
        To node t lead from its parent the categories ``branch_code[branch_begin[t] :
        branch_end[t]]``, in no order; none where the parent tests none. Nodes share
        lists (see `gputree.tree.branches`): read them by `branches` and `categories`.
    branch_code : int32 array
        Codes of categories.

    Notes
    -----
    ``tree.branches(t)`` gives a node's categories and the ordinals of their children,
    ``tree.categories(t)`` the categories that lead to a node. Both take time by the
    number of categories that the node has rows of, not by those of the column::

        code, child = tree.branches(t)  # ascending codes; other categories have no branch
        codes = tree.categories(tree.first_child[t] + 1)  # those that go to the second child
    """

    def derive(self, make: Callable[..., T], *args: Any) -> T:
        """Return ``make(self, *args)``, computed once and kept with the tree, but not in pickles.

        For results that depend on the paths of rows alone. They are computed again after the arrays
        of these were modified in place.
        """
        checksum = 0
        for name in PATHS:
            checksum = crc32(np.ascontiguousarray(getattr(self, name)).data, checksum)
        derived = vars(self).setdefault("_derived", {})
        before, found = derived.get((make, args), (None, None))
        if before != checksum:
            found = make(self, *args)
            derived[make, args] = checksum, found
        made: T = found
        return made

    def children(self, node: int) -> range:
        """Indices of the children of `node`; empty for a leaf."""
        first = int(self.first_child[node])
        return range(first, first + int(self.n_children[node]))

    def branches(self, node: int) -> Branches:
        """The categories that `node` has branches for, ascending, and where they lead.

        Parameters
        ----------
        node : int

        Returns
        -------
        code : int32 array of shape (C,)
            Empty where the node does not test categories.
        child : int32 array of shape (C,)
            Ordinals of children.
        """
        below = self.children(node)
        code = [self.branch_code[self.branch_begin[t] : self.branch_end[t]] for t in below]
        child = np.repeat(np.arange(len(below), dtype=NODE), [part.size for part in code])
        codes = np.concatenate([np.empty(0, CATEGORY), *code])
        order = np.argsort(codes)
        return Branches(codes[order], child[order])

    def categories(self, node: int) -> Int32s:
        """The categories that lead from the parent of `node` to it.

        Parameters
        ----------
        node : int

        Returns
        -------
        code : int32 array of shape (C,)
            Ascending; empty at the root, below a node that does not test categories, and
            where only missing values lead.
        """
        return np.sort(self.branch_code[self.branch_begin[node] : self.branch_end[node]])

    def nearest_with_weight(self) -> NDArray[np.intp]:
        """Each node, or where it has no weight, its nearest ancestor that has."""
        itself = np.arange(self.n_nodes)
        nearest = np.where((self.weight == 0) & (self.parent >= 0), self.parent, itself)
        further = nearest[nearest]
        while (further != nearest).any():  # twice as far each time
            nearest, further = further, further[further]
        return nearest

    def sum_over_children(self, values: Floats) -> Floats:
        """Sum of `values` over the children of each node; 0 at leaves."""
        total = np.zeros(self.n_nodes)
        inner = ~self.is_leaf
        if inner.any():
            # Breadth-first, nodes 1, 2, ... are the children of the inner nodes in turn.
            total[inner] = np.add.reduceat(values[1:], self.first_child[inner] - 1)
        return total

    def over_ancestors(
        self, combine: Callable[[NDArray, NDArray], NDArray], values: NDArray, of_none: object
    ) -> NDArray:
        """Combine the values of each node's ancestors, itself left out.

        Parameters
        ----------
        combine : callable
            Largest, smallest, any or all of two arrays: an ancestor may be counted twice.
        values : array of shape (N,)
        of_none : object
            Value of the root, which has no ancestors: the neutral element of `combine`.

        Returns
        -------
        array of shape (N,)
        """
        up = self.parent.copy()
        up[0] = 0
        combined = values[up]
        combined[0] = of_none
        while up.any():  # ancestors up to twice as far each time
            combined = combine(combined, combined[up])
            up = up[up]
        return combined

    def collapse(self, nodes: Bools) -> Tree:
        """The tree with every node marked in `nodes` made a leaf.

        Parameters
        ----------
        nodes : bool array of shape (N,)

        Returns
        -------
        Tree
            A new tree, renumbered breadth-first; statistics are unchanged.
        """
        nodes = np.asarray(nodes, dtype=bool)
        keep = ~self.over_ancestors(np.logical_or, nodes, False)
        return self._take(keep, nodes | self.is_leaf)

    def _take(self, keep: Bools, leaf: Bools) -> Tree:
        """The kept nodes in their order; those marked `leaf` lose their split."""
        kept = np.flatnonzero(keep)
        new_index = np.full(self.n_nodes + 1, NO_CHILD, dtype=NODE)  # [-1] stays -1
        new_index[kept] = np.arange(kept.size, dtype=NODE)
        leaf = leaf[kept]
        return self._carried(
            kept,
            leaf,
            first_child=np.where(leaf, NO_CHILD, new_index[self.first_child[kept]]).astype(NODE),
            n_children=np.where(leaf, np.int32(0), self.n_children[kept]),
            parent=new_index[self.parent[kept]],
            depth=self.depth[kept],
            weight=self.weight[kept],
            n_rows=self.n_rows[kept],
            statistics=self.statistics[kept],
            **self.branch_lists.take(kept)._asdict(),
        )

    def _carried(self, nodes: NDArray[Any], leaf: Bools, **others: Any) -> Tree:
        """A tree with the splits of some nodes, which leaves lose; with all `others` as given."""

        def cut(values: NDArray, at_leaf: float) -> NDArray:
            return np.where(leaf, np.array(at_leaf, values.dtype), values[nodes])

        return replace(
            self,
            split_kind=cut(self.split_kind, LEAF),
            feature=cut(self.feature, NO_FEATURE),
            threshold=cut(self.threshold, NO_THRESHOLD),
            missing_child=cut(self.missing_child, MISSING_STOPS),
            impurity=self.impurity[nodes],
            gain=cut(self.gain, 0.0),
            **self.bounds_of(nodes),
            **self.soft_bounds_of(cut),
            **others,
        )

    def bounds_of(self, nodes: NDArray[Any]) -> dict[str, Any]:
        """Fields of the bounds on the predictions of nodes."""
        if self.lower is None or self.upper is None:
            return {"lower": None, "upper": None}
        return {"lower": self.lower[nodes], "upper": self.upper[nodes]}

    def soft_bounds_of(self, taken: Callable[[NDArray, float], NDArray]) -> dict[str, Any]:
        """Fields of the bounds of soft thresholds, each array passed through `taken`."""
        if self.soft_lower is None or self.soft_upper is None:
            return {"soft_lower": None, "soft_upper": None}
        bounds = {"soft_lower": self.soft_lower, "soft_upper": self.soft_upper}
        return {name: taken(values, NO_THRESHOLD) for name, values in bounds.items()}

    def within(self, lower: Floats, upper: Floats) -> Tree:
        """The tree with its predictions clipped to bounds, arrays of shape (N,)."""
        return replace(self, lower=lower, upper=upper)

    @property
    def node_count(self) -> int:
        return self.n_nodes

    @property
    def children_left(self) -> Int32s:
        """First child of each node, -1 at leaves. Binary trees only."""
        self._require_binary("children_left")
        return self.first_child

    @property
    def children_right(self) -> Int32s:
        """Second child of each node, -1 at leaves. Binary trees only."""
        self._require_binary("children_right")
        return np.where(self.is_leaf, NO_CHILD, self.first_child + 1).astype(NODE)

    @property
    def n_node_samples(self) -> Int64s:
        return self.n_rows

    @property
    def weighted_n_node_samples(self) -> Floats:
        return self.weight

    @property
    def value(self) -> Floats:
        """Class fractions (classification), shape (N, n_outputs, K), or mean targets, K = 1.

        `predictions` by target; of several with different numbers of classes, K is the largest, and
        zeros follow the fractions of fewer.
        """
        found, ends = self.predictions, self.target_ends
        if self.n_outputs == 1:
            return found[:, None]
        value = np.zeros((self.n_nodes, self.n_outputs, max(np.diff(ends))))
        for j, (begin, end) in enumerate(pairwise(ends)):
            value[:, j, : end - begin] = found[:, begin:end]
        return value

    @property
    def predictions(self) -> Floats:
        """Class fractions (classification) or mean targets, one target after the other: (N, K).

        Fractions are smoothed by `smoothing`. A node without weight has those of its nearest
        ancestor with weight. They are held within `lower` and `upper`.
        """
        empty = self.weight == 0
        value = self.statistics
        if self.task == "classification" and self.smoothing:
            whole = self.weight + self.smoothing * self.n_classes
            value = (value + self.smoothing) / whole[:, None]
        elif self.task == "classification":
            value = value / np.where(empty, 1.0, self.weight)[:, None]
        if empty.any():
            value = value[self.nearest_with_weight()]
        if self.lower is not None and self.upper is not None:
            value = np.clip(value[:, -1:], self.lower[:, None], self.upper[:, None])
            if self.task == "classification":
                value = np.concatenate([1.0 - value, value], axis=1)
        return value

    def of_target(self, target: int) -> Tree:
        """The tree as it predicts one of its targets; impurities and gains stay those of all.

        Parameters
        ----------
        target : int

        Returns
        -------
        Tree
            Of one target.
        """
        columns = slice(*self.target_ends[target : target + 2])
        statistics = np.ascontiguousarray(self.statistics[:, columns])
        return replace(self, statistics=statistics, target_classes=())

    @property
    def answers(self) -> Floats:
        """Values that label nodes, shape (N, K): the largest of classes, or the mean target.

        Equal to `predictions`, but class weights, not divided, in trees without bounds.
        """
        if self.lower is not None:
            return self.predictions
        empty = (self.weight == 0).any()
        return self.statistics[self.nearest_with_weight()] if empty else self.statistics

    @property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        """1 where missing values go to the first child. Binary trees only."""
        self._require_binary("missing_go_to_left")
        return (self.missing_child == 0).astype(np.uint8)

    def _require_binary(self, name: str) -> None:
        if not self.is_binary:
            raise AttributeError(
                f"{name} is defined for binary trees only; this tree has nodes with up to "
                f"{int(self.n_children.max())} children. Use first_child and n_children."
            )

    def equals(self, other: Tree) -> bool:
        """Compare every field bit for bit; lists of categories by the nodes that they lead to."""
        names = [f.name for f in fields(self) if f.name not in BranchLists._fields]
        if not all(_same(getattr(self, name), getattr(other, name)) for name in names):
            return False
        spans = self.branch_spans, other.branch_spans
        return self.branch_lists.equals(other.branch_lists, *spans)


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b
