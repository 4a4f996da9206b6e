"""What a tree's splits do with the values of one table: whether every value goes one way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel
from gputree.dtypes import BRANCH_SPLIT
from gputree.tree import Tree


def direct_splits(tree: Tree, X: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which splits of `tree` send every value in X, of shape (n, d), the plain way; leaves do.

    No value is missing, and a category's code is the place of its child.
    """
    feature = np.where(tree.is_leaf, 0, tree.feature)
    ends = _column_ends(X)
    least, greatest, missing = ends.least[feature], ends.greatest[feature], ends.missing[feature]
    spans = tree.branch_spans
    last = spans.greatest(tree.tests_categories, tree.branch_code)
    listed = (spans.stop - spans.start == last + 1) & (least >= 0) & (greatest <= last)
    each = (tree.split_kind == BRANCH_SPLIT) & listed & (tree.n_children == last + 1)
    by_code = each & _in_order(tree)
    return tree.is_leaf | ~missing & np.where(tree.tests_categories, by_code, True)


def _in_order(tree: Tree) -> NDArray[np.bool_]:
    """Nodes whose children have one category each, that of their place."""
    parent, child = tree.parent[1:], np.arange(1, tree.n_nodes)
    begin, end = tree.branch_begin[1:], tree.branch_end[1:]
    own = np.append(tree.branch_code, -1)[begin] == child - tree.first_child[parent]
    others = parent[(end - begin != 1) | ~own]
    return np.bincount(others, minlength=tree.n_nodes) == 0


class _Ends(NamedTuple):
    """The least and the greatest value of each column, where none is missing."""

    least: NDArray[np.floating]
    greatest: NDArray[np.floating]
    missing: NDArray[np.bool_]


def _column_ends(X: NDArray[np.floating]) -> _Ends:
    if X.flags.f_contiguous:
        least = X.min(axis=0)  # NaN where one is
        return _Ends(least, X.max(axis=0), np.isnan(least))
    d = X.shape[1]
    ends = _Ends(np.full(d, np.inf, X.dtype), np.full(d, -np.inf, X.dtype), np.zeros(d, np.bool_))
    _find_ends(np.ascontiguousarray(X), ends)
    return ends


@kernel
def _find_ends(values: NDArray[np.floating], ends: _Ends) -> None:
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            x = values[i, f]
            ends.least[f] = x if x < ends.least[f] else ends.least[f]
            ends.greatest[f] = x if x > ends.greatest[f] else ends.greatest[f]
            ends.missing[f] |= x != x
