"""Plain splits on a table: those that send every value to one child by its number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.dtypes import NO_BRANCH, Bools, Values
from gputree.threads import even_spans, run
from gputree.tree import Tree

FEW_CELLS = 1 << 16  # cells that are not worth another thread

# Cells of contiguous rows in one call of NumPy's minimum, so that its loops are long; and in one
# block, which is still in the cache when the maximum is taken.
WIDE_ROW = 1 << 11
BLOCK_CELLS = 1 << 18


class Ends(NamedTuple):
    """Minimum and maximum value of each column, where none is missing."""

    lowest: Values
    highest: Values
    missing: Bools


def column_ends(X: Values, n_threads: int) -> Ends:
    """Minimum and maximum of the columns of X, of shape (n, d)."""
    n, d = X.shape
    if X.flags.f_contiguous:
        parts = [X[:, a:b] for a, b in even_spans(d, n, n_threads, FEW_CELLS)]
        return _joined(run(n_threads, _ends_by_columns, [(part,) for part in parts]), np.hstack)
    X = np.ascontiguousarray(X)
    height = max(BLOCK_CELLS // (d * _side_by_side(d)), 1) * _side_by_side(d)
    parts = [X[a : a + height] for a in range(0, n, height)]
    found = _joined(run(n_threads, _ends_by_rows, [(part,) for part in parts]), np.stack)
    lowest = found.lowest.min(axis=0)
    return Ends(lowest, found.highest.max(axis=0), np.isnan(lowest))


def _side_by_side(d: int) -> int:
    """Contiguous rows of d values that make one row for NumPy."""
    return max(WIDE_ROW // d, 1)


def _joined(parts: list[Ends], join: Any) -> Ends:
    return Ends(*(join(arrays) for arrays in zip(*parts, strict=True)))


def _ends_by_columns(X: Values) -> Ends:
    lowest = X.min(axis=0)  # NaN where one is
    return Ends(lowest, X.max(axis=0), np.isnan(lowest))


def _ends_by_rows(X: Values) -> Ends:
    """Like `_ends_by_columns` where rows are contiguous: loops over few columns would be short."""
    n, d = X.shape
    whole = n - n % _side_by_side(d)
    rows, others = X[:whole].reshape(-1, _side_by_side(d) * d), X[whole:]
    lowest = rows.min(axis=0, initial=np.inf).reshape(-1, d).min(axis=0)
    highest = rows.max(axis=0, initial=-np.inf).reshape(-1, d).max(axis=0)
    if whole < n:
        lowest = np.minimum(lowest, others.min(axis=0))
        highest = np.maximum(highest, others.max(axis=0))
    return Ends(lowest, highest, np.isnan(lowest))


def find_plain(tree: Tree, ends: Ends) -> Bools:
    """Mark nodes that send every value to one child, category c to child c.

    No value is missing there, and each child has one category. Leaves are plain.
    """
    plain = tree.is_leaf | ~ends.missing.take(tree.feature, mode="clip")  # leaves have none
    by_code = np.flatnonzero(tree.tests_categories)
    if by_code.size == 0:
        return plain
    feature = tree.feature[by_code]
    within = (ends.lowest[feature] >= 0) & (ends.highest[feature] < tree.n_children[by_code])
    plain[by_code] &= within
    child = 1 + np.flatnonzero(tree.tests_categories[tree.parent[1:]])
    parent, begin = tree.parent[child], tree.branch_begin[child]
    same = np.append(tree.branch_code, NO_BRANCH)[begin] == child - tree.first_child[parent]
    plain[parent[~same | (tree.branch_end[child] != begin + 1)]] = False
    return plain
