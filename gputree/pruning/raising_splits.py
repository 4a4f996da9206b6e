"""What a tree's splits do with the values of one table: whether every value goes one way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import kernel, lent
from gputree.threads import even_spans, run

# Cells that are not worth a thread of their own.
FEW_CELLS = 1 << 16


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
    parts = [X[a:b] for a, b in even_spans(n, d, n_threads, FEW_CELLS)]
    found = _joined(run(n_threads, _ends_by_rows, [(part,) for part in parts]), np.stack)
    return Ends(
        found.least.min(axis=0), found.greatest.max(axis=0), np.logical_or.reduce(found.missing)
    )


def _joined(parts: list[Ends], join: Any) -> Ends:
    return Ends(*(join(arrays) for arrays in zip(*parts, strict=True)))


def _ends_by_columns(X: NDArray[np.floating]) -> Ends:
    least = X.min(axis=0)  # NaN where one is
    return Ends(least, X.max(axis=0), np.isnan(least))


def _ends_by_rows(X: NDArray[np.floating]) -> Ends:
    d = X.shape[1]
    ends = Ends(np.full(d, np.inf, X.dtype), np.full(d, -np.inf, X.dtype), np.zeros(d, np.bool_))
    _find_ends(X, ends)
    return ends


@kernel
def _find_ends(values: NDArray[np.floating], ends: Ends) -> None:
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            x = values[i, f]
            ends.least[f] = x if x < ends.least[f] else ends.least[f]
            ends.greatest[f] = x if x > ends.greatest[f] else ends.greatest[f]
            ends.missing[f] |= x != x


@lent
def sends_plainly(
    nodes: NDArray, at: int, target: NDArray[np.int32] | None, first_child: int, n_children: int,
    ends: Ends,
) -> bool:  # fmt: skip
    """Whether a split, as `follow` takes it, sends every value to one child, in the plain way.

    No value is missing, and a category's code is the place of its child. The node is ``nodes[at]``:
    numba takes records with more fields for those with fewer, and warns.
    """
    node = nodes[at]
    if ends.missing[node.feature]:
        return False
    if target is None or node.n_codes == 0:  # the first is known when this is compiled
        return True
    if node.n_codes != n_children or ends.least[node.feature] < 0:
        return False
    for code in range(n_children):
        if target[node.table + code] != first_child + code:
            return False
    return ends.greatest[node.feature] < n_children
