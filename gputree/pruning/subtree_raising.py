r"""Error-based pruning with subtree raising (Quinlan 1993, section 4.2).

Bottom-up, each inner node has three futures, by the upper limit of their errors:

    stay as it is           become a leaf           give way to its largest branch

          t                       t                        b
        / | \                                            / \
       a  b  c                                           .   .
         / \
        .   .

The rows of a and c then go down b's tests, and what they meet there is pruned
again. Rows, or parts of rows with missing values, are passed down with the walk,
so that only those on the way from the root to the current node are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import (
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_BRANCH,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    THRESHOLD_SPLIT,
)
from gputree.pruning.base import TrainingRows
from gputree.pruning.bottom_up import sum_over_children
from gputree.pruning.penalized_loss import training_loss
from gputree.tree import Tree

# Branches whose weights agree to this many digits tie, and the last is the largest:
# sums of shares of rows carry rounding errors.
TIE_DIGITS = 6

# Upper limit of the errors of leaves, from their class weights of shape (n, K).
ErrorLimit = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass
class _Entries:
    """Rows in a node, and the share of each that is there."""

    row: NDArray[np.intp]
    weight: NDArray[np.float64]

    def join(self, whole: NDArray[np.intp], parts: NDArray[np.intp], share: float) -> _Entries:
        """The entries `whole`, and a share of the entries `parts`."""
        if share == 0:
            parts = parts[:0]
        row = np.concatenate([self.row[whole], self.row[parts]])
        return _Entries(row, np.concatenate([self.weight[whole], self.weight[parts] * share]))


def prune_and_raise(tree: Tree, data: TrainingRows, limit: ErrorLimit, slack: float) -> Tree:
    """Replace subtrees by leaves, or by their largest branch.

    Parameters
    ----------
    tree : Tree
        Classification tree.
    data : TrainingRows
        The rows it was grown on.
    limit : callable
        Upper limit of the errors of leaves with given class weights.
    slack : float
        Errors that a replacement may cost.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        If the rows weigh more or less than those the tree was grown on.
    """
    if not np.isclose(data.weight.sum(), tree.weight[0]):
        raise ValueError(
            "Subtree raising needs the rows that the tree was grown on, with their weights. "
            f"The tree has a weight of {tree.weight[0]:g}; got rows of {data.weight.sum():g}."
        )
    walk = _Walk(tree, data, limit, slack)
    walk.run()
    return walk.rebuild()


class _Walk:
    """A tree whose nodes can give way to one of their children."""

    def __init__(self, tree: Tree, data: TrainingRows, limit: ErrorLimit, slack: float) -> None:
        self.tree, self.data, self.limit, self.slack = tree, data, limit, slack
        self.split_of = np.arange(tree.n_nodes)  # the node whose split each carries
        self.first_child = tree.first_child.copy()
        self.n_children = tree.n_children.copy()
        self.statistics = tree.statistics.copy()
        self.weight, self.n_rows = tree.weight.copy(), tree.n_rows.copy()
        self.as_leaf = limit(tree.statistics)
        self.estimate = self.as_leaf.copy()  # of each subtree as it stands
        self.refilled = np.zeros(tree.n_nodes, dtype=bool)

    # ------------------------------------------------------------- walk
    def run(self) -> None:
        """Visit every node after its children; again, after a branch was raised."""
        everything = _Entries(np.arange(len(self.data.target)), self.data.weight)
        stack = [(0, everything, False, False)]
        while stack:
            node, entries, moved, below_done = stack.pop()
            if below_done:
                if self._decide(node, entries):
                    stack.append((node, entries, True, False))
                continue
            if moved:
                self._fill(node, entries)
            self.estimate[node] = self.as_leaf[node]
            if self.n_children[node] > 0:
                stack.append((node, entries, moved, True))
                parts = self._distribute(node, entries)
                children = self._children(node)
                stack += [(c, part, moved, False) for c, part in zip(children, parts, strict=True)]

    def _decide(self, node: int, entries: _Entries) -> bool:
        """Settle the future of `node`; whether its largest branch was raised."""
        children = self._children(node)
        subtree = self.estimate[children].sum()
        largest = max(children, key=lambda child: (self.weight[child].round(TIE_DIGITS), child))
        branch = self._estimate_branch(node, largest, entries)
        if self.as_leaf[node] <= min(subtree, branch) + self.slack:
            self.n_children[node] = 0
            return False
        if branch <= subtree + self.slack:
            for array in (self.split_of, self.first_child, self.n_children):
                array[node] = array[largest]
            return True
        self.estimate[node] = subtree
        return False

    def _estimate_branch(self, node: int, branch: int, entries: _Entries) -> float:
        """Errors if all entries of `node` went down `branch`."""
        if self.n_children[branch] == 0:
            return float(self.as_leaf[node])
        leaves = [self._class_weights(part) for part in self._descend(branch, entries)]
        return float(self.limit(np.reshape(leaves, (-1, self.tree.n_classes))).sum())

    def _descend(self, node: int, entries: _Entries) -> Iterator[_Entries]:
        """What of `entries` ends in each leaf below `node` that gets any."""
        stack = [(node, entries)]
        while stack:
            node, entries = stack.pop()
            if self.n_children[node] == 0:
                yield entries
            elif entries.row.size:
                stack += zip(self._children(node), self._distribute(node, entries), strict=True)

    def _fill(self, node: int, entries: _Entries) -> None:
        """Count the entries that have come to `node`."""
        self.refilled[node] = True
        self.statistics[node] = self._class_weights(entries)
        self.weight[node] = entries.weight.sum()
        self.n_rows[node] = entries.row.size
        self.as_leaf[node] = self.limit(self.statistics[node : node + 1])[0]

    def _class_weights(self, entries: _Entries) -> NDArray[np.float64]:
        target = self.data.target[entries.row]
        counts = np.bincount(target, entries.weight, minlength=self.tree.n_classes)
        return np.asarray(counts, dtype=np.float64)

    def _children(self, node: int) -> range:
        first = int(self.first_child[node])
        return range(first, first + int(self.n_children[node]))

    # ---------------------------------------------------------- routing
    def _distribute(self, node: int, entries: _Entries) -> list[_Entries]:
        """Entries of `node` to its children; with a missing value to all, in shares."""
        branch = self._branch(int(self.split_of[node]), entries.row)
        n_children = int(self.n_children[node])
        order = np.argsort(branch, kind="stable")
        bounds = np.searchsorted(branch[order], np.arange(n_children + 1))
        parts = [order[begin:end] for begin, end in pairwise(bounds)]
        shares = np.array([entries.weight[part].sum() for part in parts])
        known = shares.sum()
        shares = shares / known if known > 0 else np.full(n_children, 1 / n_children)
        spread = np.flatnonzero(branch == MISSING_TO_ALL)
        return [entries.join(p, spread, s) for p, s in zip(parts, shares, strict=True)]

    def _branch(self, split: int, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Ordinal of the child each row goes to, or what missing values do."""
        tree = self.tree
        x = self.data.X[rows, tree.feature[split]]
        missing = np.isnan(x)
        if tree.split_kind[split] == THRESHOLD_SPLIT:
            branch = (x > tree.threshold[split]).astype(np.intp)
        else:
            table = tree.branches(split)
            code = np.where(missing, 0, x).astype(np.intp)
            seen = (code >= 0) & (code < table.size)
            branch = np.where(seen, table[np.where(seen, code, 0)], NO_BRANCH).astype(np.intp)
            missing |= branch == NO_BRANCH
        branch[missing] = tree.missing_child[split]
        return branch

    # ---------------------------------------------------------- rebuild
    def rebuild(self) -> Tree:
        """What is left, numbered breadth-first."""
        levels, parents = [np.array([0])], [np.array([NO_CHILD])]
        n_before = 0
        while levels[-1].size:
            count = self.n_children[levels[-1]]
            ordinal = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            parents.append(np.repeat(n_before + np.arange(count.size), count))
            n_before += count.size
            levels.append(np.repeat(self.first_child[levels[-1]], count) + ordinal)
        nodes, parent = np.concatenate(levels), np.concatenate(parents)
        depth = np.repeat(np.arange(len(levels)), [level.size for level in levels])
        return self._renumbered(nodes, parent.astype(NODE), depth.astype(NODE))

    def _renumbered(self, nodes: NDArray, parent: NDArray, depth: NDArray) -> Tree:
        """The tree of `nodes`, each with the split it carries now."""
        old, split, count = self.tree, self.split_of[nodes], self.n_children[nodes]
        leaf = count == 0
        sizes = np.where(leaf, 0, np.diff(old.branch_offset)[split])
        tables = [old.branches(s) for s in split[sizes > 0]]

        def carried(values: NDArray, at_leaf: float) -> NDArray:
            return np.where(leaf, np.array(at_leaf, values.dtype), values[split])

        first = np.where(leaf, NO_CHILD, 1 + np.cumsum(count) - count)
        tree = replace(
            old,
            first_child=first.astype(NODE),
            n_children=count,
            parent=parent,
            depth=depth,
            split_kind=carried(old.split_kind, LEAF),
            feature=carried(old.feature, NO_FEATURE),
            threshold=carried(old.threshold, NO_THRESHOLD),
            missing_child=carried(old.missing_child, MISSING_STOPS),
            weight=self.weight[nodes],
            n_rows=self.n_rows[nodes],
            statistics=self.statistics[nodes],
            impurity=old.impurity[nodes],
            gain=carried(old.gain, 0.0),
            branch_offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            branch_child=np.concatenate(tables) if tables else np.empty(0, dtype=NODE),
        )
        return _measure(tree, self.refilled[nodes])


def _measure(tree: Tree, refilled: NDArray[np.bool_]) -> Tree:
    """`tree` with the impurity and the gain of refilled nodes computed anew."""
    impurity = np.where(refilled, _impurity(tree), tree.impurity)
    children = sum_over_children(tree, tree.weight * impurity)
    gain = impurity - children / np.where(tree.weight > 0, tree.weight, 1.0)
    renewed = refilled & ~tree.is_leaf
    return replace(tree, impurity=impurity, gain=np.where(renewed, gain, tree.gain))


def _impurity(tree: Tree) -> NDArray[np.float64]:
    """Impurity of each node by its class weights; 0 where it is empty."""
    weight = np.where(tree.weight > 0, tree.weight, 1.0)
    if tree.criterion == "gini":
        squares = ((tree.statistics / weight[:, None]) ** 2).sum(axis=1)
        return np.where(tree.weight > 0, 1 - squares, 0.0)
    return training_loss(tree) / weight
