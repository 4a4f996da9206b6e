"""Sparse tables whose rows descend trees without becoming dense at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from gputree.base.dtypes import Values
from gputree.columns import Columns
from gputree.columns.specification import as_floats
from gputree.inputs.tables import BLOCK_BYTES, read_table
from gputree.prediction.sparse import SparseRows


def is_sparse(X: Any) -> bool:
    """Return True for a sparse matrix or array of SciPy's with rows and columns."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(X) and X.ndim == 2 and 0 not in X.shape


def sparse_parts(
    X: Any, caller: str, check_features: Callable[[Any], object], columns: Columns
) -> Iterator[Values | SparseRows]:
    """Yield the rows of an `is_sparse` table to predict, with the numbers of `read_table`.

    All at once where all columns are numbers; with categories dense, in blocks.
    """
    check_features(X)
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    coded = any(words is not None for words in columns.categories)
    if not coded and rows.dtype.kind in "biuf":
        yield SparseRows(as_floats(rows.data, "C"), rows.indices, rows.indptr, X.shape[1])
        return
    height = max(BLOCK_BYTES // (X.shape[1] * rows.dtype.itemsize), 1)
    for begin in range(0, X.shape[0], height):
        block = rows[begin : begin + height].toarray()
        yield read_table(block, caller=caller, check_features=len, columns=columns).stored
