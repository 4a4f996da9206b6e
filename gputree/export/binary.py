r"""A tree of any kind as a binary tree of two tests, for formats that know no others.

    number    x <= threshold goes left, other numbers right, missing values as the node says
    set       categories of a set go left; all others, unknown and missing ones go right

A split into several branches becomes a chain of sets, and a value that stops at a node goes to
a separate leaf that predicts as the node does:

    a | b, c | d | (unknown: the node predicts)        {a}?  yes: 1
    1    2     3                                       \ {b, c}?  yes: 2
                                                          \ {d}?  yes: 3
                                                             \ the node's answer
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import MISSING_STOPS
from gputree.export.model import Model, Split

GREATEST = sys.float_info.max  # every finite number is at most this: distinguishes missing ones


class Binary(NamedTuple):
    """Nodes in preorder, the left child of node t being t + 1; arrays of shape (M,).

    Attributes
    ----------
    source : int array
        The node of the tree it was made from.
    feature : int array
        -1 at leaves.
    threshold : float64 array
        NaN where a set decides, and at leaves.
    missing_left : bool array
    codes : list of int arrays
        The categories that go left; empty where a number decides.
    right : int array
        -1 at leaves.
    """

    source: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    codes: list[NDArray[np.int32]]
    right: NDArray[np.int64]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.right < 0

    @property
    def left(self) -> NDArray[np.int64]:
        """The left children; -1 at leaves."""
        return np.where(self.is_leaf, -1, np.arange(self.right.size) + 1)


class _End(NamedTuple):
    """Where a value goes on: a node, or a leaf that predicts as a node that splits does."""

    node: int
    answers: bool


class _Test(NamedTuple):
    """One test of a chain; None stands for the next one."""

    threshold: float
    missing_left: bool
    codes: NDArray[np.int32]
    left: _End | None
    right: _End | None


class _Open(NamedTuple):
    """What is still to be made: an end, or the rest of the chain of its node."""

    end: _End
    chain: list[_Test]
    above: int  # the test whose right side it is; -1 for a left side


_NO_CODES = np.empty(0, np.int32)


def as_binary(model: Model) -> Binary:
    """The binary form of a model in which every row has one path (`single_paths`)."""
    made: list[tuple[int, _Test | None]] = []
    right: list[int] = []
    stack = [_Open(_End(0, False), [], -1)]
    while stack:
        end, chain, above = stack.pop()
        if above >= 0:
            right[above] = len(made)
        if not chain and not end.answers and not model.tree.is_leaf[end.node]:
            chain = _tests(model.split(end.node))
        made.append((end.node, chain[0] if chain else None))
        right.append(-1)
        if chain:
            itself, rest = end, chain[1:]
            for side, place in ((chain[0].right, len(made) - 1), (chain[0].left, -1)):
                stack.append(_Open(itself, rest, place) if side is None else _Open(side, [], place))
    source = np.array([node for node, _ in made], np.int64)
    tests = [test for _, test in made]
    return Binary(
        source=source,
        feature=np.where([test is None for test in tests], -1, model.tree.feature[source]),
        threshold=np.array([np.nan if test is None else test.threshold for test in tests]),
        missing_left=np.array([test is not None and test.missing_left for test in tests]),
        codes=[_NO_CODES if test is None else test.codes for test in tests],
        right=np.array(right, np.int64),
    )


def _tests(split: Split) -> list[_Test]:
    """The chain of tests of one split."""
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
            return [_Test(GREATEST, False, _NO_CODES, unseen, missing)]
        sets[-1] = sets[-1]._replace(right=unseen)
        return sets if missing == unseen else [_present(missing), *sets]
    first, second = ends
    if np.isposinf(split.threshold):
        return [_Test(GREATEST, missing == first, _NO_CODES, first, missing)]
    test = _Test(split.threshold, missing == first, _NO_CODES, first, second)
    return [test] if missing in ends else [_present(missing), test]


def _present(missing: _End) -> _Test:
    """Values that are there go on, on the left."""
    return _Test(GREATEST, False, _NO_CODES, None, missing)


def _end(split: Split, ordinal: int) -> _End:
    if ordinal == MISSING_STOPS:
        return _End(split.node, True)
    return _End(split.children[ordinal], False)
