"""What a tree's splits do with the values of one table: whether a row can stay anywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel
from gputree.dtypes import BRANCH_SPLIT
from gputree.tree import Tree


class Certain(NamedTuple):
    """Splits that send every row of a table on; leaves are among them.

    Attributes
    ----------
    whole : bool array of shape (N,)
        No row can stay.
    direct : bool array of shape (N,)
        No value is missing, and a category's code is the place of its child.
    """

    whole: NDArray[np.bool_]
    direct: NDArray[np.bool_]


def certain_splits(tree: Tree, X: NDArray[np.floating]) -> Certain:
    """Which splits of `tree` know what to do with every value in X, of shape (n, d)."""
    feature = np.where(tree.is_leaf, 0, tree.feature)
    ends = _column_ends(X)
    least, greatest, missing = ends.least[feature], ends.greatest[feature], ends.missing[feature]
    spans = tree.branch_spans
    last = spans.greatest(tree.tests_categories, tree.branch_code)
    listed = (spans.stop - spans.start == last + 1) & (least >= 0) & (greatest <= last) & ~missing
    numeric = ~missing | (tree.missing_child >= 0)
    each = (tree.split_kind == BRANCH_SPLIT) & listed & (tree.n_children == last + 1)
    return Certain(
        tree.is_leaf | np.where(tree.tests_categories, listed, numeric),
        tree.is_leaf | np.where(tree.tests_categories, each & _in_order(tree), ~missing),
    )


def _in_order(tree: Tree) -> NDArray[np.bool_]:
    """Nodes whose children have one category each, that of their place."""
    parent, child = tree.parent[1:], np.arange(1, tree.n_nodes)
    begin, end = tree.branch_begin[1:], tree.branch_end[1:]
    own = np.append(tree.branch_code, -1)[begin] == child - tree.first_child[parent]
    others = parent[(end - begin != 1) | ~own]
    return np.bincount(others, minlength=tree.n_nodes) == 0


class _Ends(NamedTuple):
    """The least and the greatest value of each column, and whether one is missing."""

    least: NDArray[np.floating]
    greatest: NDArray[np.floating]
    missing: NDArray[np.bool_]


def _column_ends(X: NDArray[np.floating]) -> _Ends:
    d = X.shape[1]
    ends = _Ends(np.full(d, np.inf, X.dtype), np.full(d, -np.inf, X.dtype), np.zeros(d, np.bool_))
    by_columns = X.flags.f_contiguous
    values = X.T if by_columns else np.ascontiguousarray(X)
    _find_ends(values, by_columns, ends)
    return ends


@kernel
def _find_ends(values: NDArray[np.floating], by_columns: bool, ends: _Ends) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            x, f = values[i, j], i if by_columns else j
            ends.least[f] = x if x < ends.least[f] else ends.least[f]
            ends.greatest[f] = x if x > ends.greatest[f] else ends.greatest[f]
            ends.missing[f] |= x != x
