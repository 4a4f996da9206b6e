"""What a tree's splits do with the values of one table: whether every value goes one way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import NO_BRANCH
from gputree.threads import even_spans, run
from gputree.tree import Tree

# Cells that are not worth a thread of their own.
FEW_CELLS = 1 << 16

# Cells of contiguous rows that NumPy takes side by side, and before it comes back to them for the
# greatest. 328,521 x 9 values take 1.1 ms, for 3.5 in a loop of our own, and 1,000,000 x 28 take 15
# for 31; at 512 side by side 21, all cells at a time 17.
WIDE_ROW = 1 << 11
BLOCK_CELLS = 1 << 18


class Ends(NamedTuple):
    """The least and the greatest value of each column, where none is missing."""

    least: NDArray[np.floating]
    greatest: NDArray[np.floating]
    missing: NDArray[np.bool_]


def column_ends(X: NDArray[np.floating], n_threads: int) -> Ends:
    """The ends of the columns of X, of shape (n, d)."""
    n, d = X.shape
    if X.flags.f_contiguous:
        parts = [X[:, a:b] for a, b in even_spans(d, n, n_threads, FEW_CELLS)]
        return _joined(run(n_threads, _ends_by_columns, [(part,) for part in parts]), np.hstack)
    X = np.ascontiguousarray(X)
    height = max(BLOCK_CELLS // (d * _side_by_side(d)), 1) * _side_by_side(d)
    parts = [X[a : a + height] for a in range(0, n, height)]
    found = _joined(run(n_threads, _ends_by_rows, [(part,) for part in parts]), np.stack)
    least = found.least.min(axis=0)
    return Ends(least, found.greatest.max(axis=0), np.isnan(least))


def _side_by_side(d: int) -> int:
    """Contiguous rows of d values that are taken side by side."""
    return max(WIDE_ROW // d, 1)


def _joined(parts: list[Ends], join: Any) -> Ends:
    return Ends(*(join(arrays) for arrays in zip(*parts, strict=True)))


def _ends_by_columns(X: NDArray[np.floating]) -> Ends:
    least = X.min(axis=0)  # NaN where one is
    return Ends(least, X.max(axis=0), np.isnan(least))


def _ends_by_rows(X: NDArray[np.floating]) -> Ends:
    """The same where rows are contiguous: NumPy's loops over few columns would be short."""
    n, d = X.shape
    whole = n - n % _side_by_side(d)
    rows, others = X[:whole].reshape(-1, _side_by_side(d) * d), X[whole:]
    least = rows.min(axis=0, initial=np.inf).reshape(-1, d).min(axis=0)
    greatest = rows.max(axis=0, initial=-np.inf).reshape(-1, d).max(axis=0)
    if whole < n:
        least = np.minimum(least, others.min(axis=0))
        greatest = np.maximum(greatest, others.max(axis=0))
    return Ends(least, greatest, np.isnan(least))


def find_plain(tree: Tree, ends: Ends) -> NDArray[np.bool_]:
    """Which nodes send every value to one child, and codes to the children of their places.

    No value is missing there, and every code is that of the only category of a child. Leaves are
    plain.
    """
    plain = tree.is_leaf | ~ends.missing.take(tree.feature, mode="clip")  # leaves have none
    by_code = np.flatnonzero(tree.tests_categories)
    if by_code.size == 0:
        return plain
    feature = tree.feature[by_code]
    within = (ends.least[feature] >= 0) & (ends.greatest[feature] < tree.n_children[by_code])
    plain[by_code] &= within
    child = 1 + np.flatnonzero(tree.tests_categories[tree.parent[1:]])
    parent, begin = tree.parent[child], tree.branch_begin[child]
    own = np.append(tree.branch_code, NO_BRANCH)[begin] == child - tree.first_child[parent]
    plain[parent[~own | (tree.branch_end[child] != begin + 1)]] = False
    return plain
