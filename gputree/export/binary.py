r"""A tree of any kind as a binary tree of two tests, for formats that know no others.

    number    x <= threshold goes left, other numbers right, missing values as the node says
    set       categories of a set go left; all others, unknown and missing ones go right

A split into several branches becomes a chain of sets, and a value that stops at a node goes to
a separate leaf that predicts as the node does:

    a | b, c | d | (unknown: the node predicts)        {a}?  yes: 1
    1    2     3                                       \ {b, c}?  yes: 2
                                                          \ {d}?  yes: 3
                                                             \ as the node
"""

import sys
from typing import NamedTuple

import numpy as np

from gputree.base.dtypes import MISSING_STOPS, THRESHOLD_SPLIT, Bools, Floats, Int32s, Int64s
from gputree.export.model import Model, Split
from gputree.tree import Tree

GREATEST = sys.float_info.max  # every finite number is at most this: distinguishes missing ones


class Binary(NamedTuple):
    """Nodes in preorder, the left child of node t being t + 1; arrays of shape (M,)."""

    source: Int64s  # the node of the tree it was made from
    feature: Int64s  # -1 at leaves
    threshold: Floats  # NaN where a set decides, and at leaves
    missing_left: Bools
    codes: list[Int32s]  # the categories that go left; empty where a number decides
    right: Int64s  # -1 at leaves

    @property
    def is_leaf(self) -> Bools:
        return self.right < 0

    @property
    def left(self) -> Int64s:
        """The left children; -1 at leaves."""
        return np.where(self.is_leaf, -1, np.arange(self.right.size) + 1)


class _End(NamedTuple):
    """End of a branch: a node, or a leaf that predicts as a node that splits does."""

    node: int
    predicts: bool


class _Test(NamedTuple):
    """One test of a chain; None stands for the next one."""

    threshold: float
    missing_left: bool
    codes: Int32s
    left: _End | None
    right: _End | None


NO_CODES = np.empty(0, np.int32)


class _Nodes:
    """Nodes as lists, in any order: first the nodes of a tree, then nodes that chains add."""

    def __init__(self, tree: Tree) -> None:
        numeric = tree.split_kind == THRESHOLD_SPLIT
        self.source = list(range(tree.n_nodes))
        self.threshold = np.where(numeric, tree.threshold, np.nan).tolist()
        self.missing_left = (numeric & (tree.missing_child == 0)).tolist()
        self.codes = [NO_CODES] * tree.n_nodes
        self.left = tree.first_child.tolist()
        self.right = np.where(tree.is_leaf, -1, tree.first_child + 1).tolist()

    def chain(self, node: int, tests: list[_Test]) -> None:
        """Put a chain of tests in the place of a node."""
        places = [node, *(self._new(node) for _ in tests[1:])]
        for place, test, behind in zip(places, tests, [*places[1:], -1], strict=True):
            self.threshold[place], self.missing_left[place] = test.threshold, test.missing_left
            self.codes[place] = test.codes
            self.left[place] = behind if test.left is None else self._place(test.left)
            self.right[place] = behind if test.right is None else self._place(test.right)

    def _place(self, end: _End) -> int:
        return self._new(end.node) if end.predicts else end.node

    def _new(self, node: int) -> int:
        """One more, a leaf that predicts as a node does."""
        self.source.append(node)
        self.threshold.append(np.nan)
        self.missing_left.append(False)
        self.codes.append(NO_CODES)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.source) - 1

    def preorder(self) -> tuple[list[int], list[int]]:
        """Nodes in preorder, those with two parents twice, and places of their right children."""
        order: list[int] = []
        right: list[int] = []
        rest = [(0, -1)]  # nodes, and the places whose right children they are; -1 for left ones
        while rest:
            node, above = rest.pop()
            if above >= 0:
                right[above] = len(order)
            if self.right[node] >= 0:
                rest += ((self.right[node], len(order)), (self.left[node], -1))
            order.append(node)
            right.append(-1)
        return order, right


def as_binary(model: Model) -> Binary:
    """The binary form of a model in which every row has one path (`single_paths`)."""
    tree = model.tree
    nodes = _Nodes(tree)
    numeric = (tree.split_kind == THRESHOLD_SPLIT) & np.isfinite(tree.threshold)
    is_test = numeric & (tree.missing_child >= 0)  # as it is
    for node in np.flatnonzero(~tree.is_leaf & ~is_test).tolist():
        nodes.chain(node, _tests(model.split(node)))
    order, right = nodes.preorder()
    source = np.array(nodes.source)[order]
    return Binary(
        source=source,
        feature=np.where(np.array(right) < 0, -1, tree.feature[source]),
        threshold=np.array(nodes.threshold)[order],
        missing_left=np.array(nodes.missing_left)[order],
        codes=[nodes.codes[node] for node in order],
        right=np.array(right, np.int64),
    )


def _tests(split: Split) -> list[_Test]:
    missing, unseen = _end(split, split.missing), _end(split, split.unseen)
    ends = [_End(child, False) for child in split.children]
    if split.threshold is None:
        parts = zip(ends, split.codes, strict=True)
        sets = [
            _Test(np.nan, False, codes, end, None)
            for end, codes in parts
            if end != unseen and codes.size
        ]
        if not sets:  # formats know no empty sets
            return [_Test(GREATEST, False, NO_CODES, unseen, missing)]
        sets[-1] = sets[-1]._replace(right=unseen)
        return sets if missing == unseen else [_present(missing), *sets]
    first, second = ends
    if np.isposinf(split.threshold):
        return [_Test(GREATEST, missing == first, NO_CODES, first, missing)]
    test = _Test(split.threshold, missing == first, NO_CODES, first, second)
    return [test] if missing in ends else [_present(missing), test]


def _present(missing: _End) -> _Test:
    """Values that are there go on, on the left."""
    return _Test(GREATEST, False, NO_CODES, None, missing)


def _end(split: Split, ordinal: int) -> _End:
    if ordinal == MISSING_STOPS:
        return _End(split.node, True)
    return _End(split.children[ordinal], False)
