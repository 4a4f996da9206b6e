"""Rows of a sparse table that descend trees without the rest of the table becoming dense.

Most rows follow few splits that send them off the path of a row of zeros. Nodes are numbered in
preorder, the child of 0 first, so that the path of zeros from node v on is v, v + 1, ..., up to the
leaf ``last[v]``:

              0                  last  | 3 | 3 | 3 | 3 | 4 | 5 |
           1     5
         2   4                   A row whose value sends it to 4 at node 1, and nowhere else off the
       3   .                     path, goes from 0 to 1, then to 4.

The splits of the columns that a row stores are marked where its values leave the path, in a bit a
node: the row goes to the first mark of its path, from there to that split's other child, and so on
until a path has none. No split of a column where the row has 0 is visited.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from gputree.arithmetic.bits import WORD, lowest_bit
from gputree.base.dtypes import NODE, Bools, Int32s, Int64s, Values, writable
from gputree.columns import cells
from gputree.columns.specification import as_floats
from gputree.compilation import kernel

# Bytes of rows that are dense at a time, in each thread.
DENSE_BYTES = 1 << 22
FEWEST_ROWS = 8  # that are dense at a time, since so many descend together


def is_sparse(X: Any) -> bool:
    """Return True for a sparse matrix or array of SciPy's with rows and columns of numbers."""
    return issparse(X) and X.ndim == 2 and 0 not in X.shape and X.dtype.kind in "biuf"


class SparseRows:
    """A table of n rows and d columns by the values that it stores; all others are 0.

    A slice of it is dense, and valid until the same thread takes another one: blocks of rows are
    written to one buffer, of which only what a block has set is cleared. So time and memory are
    those of the stored values.

    Parameters
    ----------
    values : float32 or float64 array
        The stored values, row by row; NaN where missing.
    column : int array
        Their columns, none twice in a row.
    first : int array of shape (n + 1,)
        Places where rows begin, and where the last one ends.
    n_columns : int
    """

    def __init__(self, values: Values, column: NDArray[Any], first: Int64s, n_columns: int) -> None:
        self.values, self.column, self.first = map(writable, (values, column, first))
        self.shape, self.dtype = (first.size - 1, n_columns), values.dtype
        self._buffers = local()

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """The rows of an `is_sparse` table; cells that are stored repeatedly are sums, in order."""
        if X.format in ("csr", "csc") and X.has_canonical_format:
            X = X.tocsr()
            return cls(as_floats(X.data, "C"), X.indices, X.indptr, X.shape[1])
        X = X.tocoo(copy=False)
        order = np.lexsort((X.col, X.row))
        row, column = X.row[order], X.col[order]
        new = np.ones(order.size, np.bool_)
        new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        values = np.zeros(np.count_nonzero(new), X.dtype)
        with np.errstate(invalid="ignore"):  # one by one, as SciPy's `toarray`
            np.add.at(values, np.cumsum(new) - 1, X.data[order])
        first = np.searchsorted(row[new], np.arange(X.shape[0] + 1))
        return cls(as_floats(values, "C"), column[new], first, X.shape[1])

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseRows, (self.values, self.column, self.first, self.shape[1])

    @cached_property
    def dense(self) -> Values:
        """The table as an array, made once; MemoryError if it would clearly exceed the memory."""
        found: Values = cells.dense(self._matrix)
        return found

    @property
    def _matrix(self) -> csr_array:
        return csr_array((self.values, self.column, self.first), self.shape)

    def take(self, rows: NDArray[Any]) -> SparseRows:
        """Select rows by their places, or by a mask."""
        taken = self._matrix[rows]
        return SparseRows(taken.data, taken.indices, taken.indptr, self.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def block_rows(self) -> int:
        """Number of rows to take at a time."""
        return max(DENSE_BYTES // (self.shape[1] * self.dtype.itemsize), FEWEST_ROWS)

    def __getitem__(self, rows: slice) -> Values:
        begin, end, _ = rows.indices(len(self))
        n, d = max(end - begin, 0), self.shape[1]
        buffer, cells = getattr(self._buffers, "last", (np.zeros((0, d), self.dtype), slice(0)))
        buffer.ravel()[cells] = 0
        if len(buffer) < n:
            buffer = np.zeros((n, d), self.dtype)
        stored = slice(self.first[begin], self.first[begin + n])
        counts = np.diff(self.first[begin : begin + n + 1])
        cells = np.repeat(np.arange(0, n * d, d), counts) + self.column[stored]
        buffer.ravel()[cells] = self.values[stored]
        self._buffers.last = buffer, cells
        return buffer[:n]

    def blocks(self) -> Iterator[Values]:
        """Yield copies of all rows, at least one block."""
        for begin in range(0, max(len(self), 1), self.block_rows):
            yield self[begin : begin + self.block_rows].copy()

    def inspect(self, begin: int, end: int, missing: Bools, infinite: Bools) -> None:
        """Mark columns (d,) with missing, and with infinite values in rows ``begin .. end``."""
        stored = slice(self.first[begin], self.first[end])
        values, column = self.values[stored], self.column[stored]
        if not np.isfinite(values).all():
            missing[column[np.isnan(values)]] = True
            infinite[column[np.isinf(values)]] = True


# Splits of a row's columns that take as long as a level of the descent in dense rows.
SPLITS_PER_LEVEL = 4


class ZeroPaths(NamedTuple):
    """Trees of N nodes in all, numbered one after another, of which S are split by thresholds."""

    root: Int64s  # (T + 1,) first node of each tree, and the end
    packed: Int32s  # (N,) number of a node among the packed ones of its tree
    last: Int32s  # (N,) leaf of a row of zeros that is in a node
    first: Int64s  # (d + 1,) places of the splits of a column
    node: Int32s  # (S,)
    threshold: NDArray  # (S,)
    zero_above: Bools  # (S,) 0 is above the threshold
    other: Int32s  # (S,) the child where 0 does not go
    missing: Int32s  # (S,) where missing values go, or the node itself, where they stay

    @classmethod
    def of(cls, nodes: NDArray, ends: Int64s, n_columns: int) -> ZeroPaths:
        """Number the packed nodes of trees without categories; tree t begins at ``ends[t]``."""
        number, last = np.zeros((2, nodes.size), np.int32)
        packed = np.empty(nodes.size, np.int32)
        number_nodes(nodes, ends, number, packed, last)
        tree = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        is_split = (nodes["child"] + ends[tree] != np.arange(nodes.size)) & (number >= 0)
        splits = np.flatnonzero(is_split)
        splits = splits[np.argsort(nodes["feature"][splits], kind="stable")]
        first = np.searchsorted(nodes["feature"][splits], np.arange(n_columns + 1))
        shift, node = ends[tree[splits]], nodes[splits]
        above = node["threshold"] < 0
        return cls(
            ends, packed, last, first, number[splits], node["threshold"].copy(), above,
            number[shift + node["child"] + ~above], number[shift + node["missing"]],
        )  # fmt: skip

    def is_better(self, rows: SparseRows) -> bool:
        """Estimate if rows descend faster than dense ones do; True where those are large, too."""
        if FEWEST_ROWS * rows.shape[1] * rows.dtype.itemsize > DENSE_BYTES:
            return True
        splits = int(np.diff(self.first)[rows.column].sum())
        trees = self.root.size - 1
        levels = len(rows) * trees * np.log2(max(self.last.size / trees, 2))
        return splits <= SPLITS_PER_LEVEL * levels

    def descend(self, rows: SparseRows, begin: int, end: int) -> Int32s:
        """Packed nodes that rows ``begin .. end`` reach, of shape (trees, rows)."""
        stop = np.empty((self.root.size - 1, end - begin), NODE)
        follow_zeros(self, rows.values, rows.column, rows.first[begin : end + 1], stop)
        return stop


@kernel
def number_nodes(
    nodes: NDArray, ends: Int64s, number: Int32s, packed: Int32s, last: Int32s
) -> None:
    """Number the nodes of trees in preorder; nodes that no row reaches get -1.

    A child comes after its parent. `number` contains zeros at first.
    """
    for t in range(ends.size - 1):
        begin, size = ends[t], ends[t + 1] - ends[t]
        below = np.ones(size, np.int32)  # nodes of the subtree
        for i in range(size - 1, -1, -1):
            child = nodes[begin + i].child
            if child != i:
                below[i] += below[child] + below[child + 1]
            number[begin + i] = -1
        number[begin] = begin
        # Nodes up to i have their numbers, and their children.
        for i in range(size):
            found = number[begin + i]
            if found < 0:
                continue
            packed[found] = i
            child = nodes[begin + i].child
            if child != i:
                above = int(nodes[begin + i].threshold < 0)
                number[begin + child + above] = found + 1
                number[begin + child + 1 - above] = found + 1 + below[child + above]
        for found in range(begin + below[0] - 1, begin - 1, -1):
            i = packed[found]
            last[found] = found if nodes[begin + i].child == i else last[found + 1]


@kernel
def follow_zeros(
    paths: ZeroPaths, values: NDArray, column: NDArray, first: Int64s, stop: Int32s
) -> None:
    """Write the packed node that each row reaches in each tree to `stop` (trees, rows)."""
    marks = np.zeros(paths.last.size // WORD + 1, np.uint64)
    goal, marked = np.empty(paths.last.size, np.int32), np.empty(paths.node.size, np.int32)
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(WORD - 1)
    for r in range(stop.shape[1]):
        n_marked = 0
        for e in range(first[r], first[r + 1]):
            x, f = values[e], np.int64(column[e])
            for s in range(paths.first[f], paths.first[f + 1]):
                node, to = np.uint64(paths.node[s]), np.int64(paths.other[s])
                if x != x:
                    to = np.int64(paths.missing[s])
                elif (x > paths.threshold[s]) == paths.zero_above[s]:
                    continue
                marks[node >> six] |= one << (node & low)
                goal[node] = to
                marked[n_marked] = node
                n_marked += 1
        for t in range(stop.shape[0]):
            v = np.int64(paths.root[t])
            while True:
                # The row is in node v, and leaves its path at the first mark from there on.
                end = np.int64(paths.last[v])
                w = v // WORD
                word = marks[w] & (~np.uint64(0) << np.uint64(v % WORD))
                while word == 0 and w < end // WORD:
                    w += 1
                    word = marks[w]
                u = end if word == 0 else w * WORD + np.int64(lowest_bit(word))
                if u >= end:
                    v = end
                    break
                v, to = u, np.int64(goal[u])
                if to == u:  # a missing value that stays
                    break
                v = to
            stop[t, r] = paths.packed[v]
        for i in range(n_marked):
            marks[np.uint64(marked[i]) >> six] = 0
