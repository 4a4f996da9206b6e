"""Descent of the rows of any table through the trees of an estimator; sparse ones stay sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import Inspection, forbid_infinity, to_host
from gputree.base.dtypes import Values
from gputree.base.threads import n_threads
from gputree.columns import Columns
from gputree.columns.cells import check_stored
from gputree.estimators.coded_table import CodedTable, known_table
from gputree.inputs.tables import BLOCK_BYTES, read_table
from gputree.inputs.validation import check_table, compare_columns
from gputree.prediction.sparse import SparseRows, is_sparse


def sparse_parts(
    X: Any, caller: str, check_features: Callable[[Any], object], columns: Columns
) -> Iterator[Values | SparseRows]:
    """Yield the rows of an `is_sparse` table to predict, with the numbers of `read_table`.

    All at once where all columns are numbers; with categories dense, in blocks.
    """
    check_features(X)
    if not any(words is not None for words in columns.categories):
        yield SparseRows.of(X)
        return
    check_stored(X)
    rows, height = X.tocsr(), max(BLOCK_BYTES // (X.shape[1] * X.dtype.itemsize), 1)
    for begin in range(0, X.shape[0], height):
        block = rows[begin : begin + height].toarray()
        yield read_table(block, caller=caller, check_features=len, columns=columns).stored


class Descending:
    """Mixin of estimators whose rows descend a fitted tree, or trees."""

    columns_: Columns
    n_jobs: int | None

    def _values(self, X: Any) -> NDArray:
        """`X` as the matrix that the tree tests, columns as at fit."""
        if isinstance(X, CodedTable):
            return to_host(known_table(self, X._table).values)
        return check_table(self, X, reset=False).stored

    def _parts(self, X: Any) -> Iterator[NDArray | SparseRows]:
        """Read `X` as `_values`; coded tables in blocks, sparse ones without a dense copy."""
        if isinstance(X, CodedTable):
            yield from known_table(self, X._table).blocks()
        elif is_sparse(X):
            caller = type(self).__name__
            yield from sparse_parts(X, caller, lambda X: compare_columns(self, X), self.columns_)
        else:
            yield self._values(X)

    def _descended(self, dtype: np.dtype[Any]) -> Any:
        """The tree, or the packed trees, that rows of `dtype` descend."""
        raise NotImplementedError

    def _descend(self, descent: Callable[..., Any], X: Any) -> Any:
        """Apply `descent`, of `gputree.prediction` or its forests, to the rows of `X`."""
        check_is_fitted(self)
        parts = [self._descend_part(descent, part) for part in self._parts(X)]
        if len(parts) == 1:
            return parts[0]
        return vstack(parts, "csr") if issparse(parts[0]) else np.concatenate(parts)

    def _descend_part(self, descent: Callable[..., Any], values: NDArray | SparseRows) -> Any:
        columns, threads = Inspection(values), n_threads(self.n_jobs)
        trees = self._descended(values.dtype)
        found = descent(trees, values, n_threads=threads, before=columns.inspect)
        forbid_infinity(columns.infinite, values.dtype)
        return found
