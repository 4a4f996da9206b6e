"""Rows of a sparse table that descend trees without the rest of the table becoming dense.

Nodes are numbered in preorder, the child of 0 first, so that the path of zeros from node v on is v,
v + 1, ..., up to a leaf:

              0
          1       5
        2   4         A row whose value sends it to 4 at node 1, and nowhere else off the path, goes
      3               from 0 to 1, then to 4.

A row has a bit for each column, of 64 columns a word, which is set where it stores a value:

    column            0 ... 63 | 64 ... 127 | ...
    is stored         00100010 | 00000000   | ...     the value of column 6 is the second of the row
    place of first    0        | -          | ...     place of its first value, by which others are

Leaves test a column behind the last one, which all rows store: a row goes on node by node up to
the first whose column it stores. The nodes are known before the bits are, so that loads overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from gputree.arithmetic.bits import WORD, Words, count_bits
from gputree.base.dtypes import NODE, Bools, Int32s, Int64s, Values, record, writable
from gputree.columns import cells
from gputree.columns.specification import as_floats
from gputree.compilation import kernel

# Bytes of rows that are dense at a time, in each thread.
DENSE_BYTES = 1 << 22
# Bytes of the bits of rows that descend tree by tree, and their maximum number.
BIT_BYTES = 1 << 22
SPARSE_ROWS = 1 << 12
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
        cells.check_stored(X)
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

    @property
    def sparse_rows(self) -> int:
        """Number of rows whose bits to take at a time."""
        return min(BIT_BYTES // (16 * (self.shape[1] // WORD + 1)) + 1, SPARSE_ROWS)

    def stored(self, begin: int, end: int) -> Words:
        """Bits of rows ``begin .. end`` and of a column behind the last, and places of values.

        The shape is (2, rows, words); there may be more rows. They are valid until the same thread
        takes others: only what one block has set is cleared.
        """
        bits, known = getattr(self._buffers, "bits", (np.zeros((2, 0, 0), np.uint64), None))
        if known is not None:
            rows = np.repeat(np.arange(known.size - 1), np.diff(known))
            bits[0, rows, self.column[known[0] : known[-1]] >> 6] = bits[0, :, -1] = 0
        if bits.shape[1] < end - begin:
            bits = np.zeros((2, end - begin, self.shape[1] // WORD + 1), np.uint64)
        known = self.first[begin : end + 1]
        self._buffers.bits = bits, known  # before an interrupt leaves some of them set
        set_bits(self.column, known, self.shape[1], bits)
        return bits

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


class ZeroPaths(NamedTuple):
    """Trees of N nodes in all that split by thresholds, numbered one after another in preorder."""

    root: Int64s  # (T + 1,) first node of each tree, and the end
    feature: NDArray[np.uint32]  # (N,) behind the last column at leaves
    node: NDArray  # (N,) records of `threshold`, `other`, the child where 0 does not go, `missing`,
    # where missing values go or stay, and `packed`, the number among the packed nodes of its tree

    @classmethod
    def of(cls, nodes: NDArray, ends: Int64s, n_columns: int) -> ZeroPaths:
        """Number the packed nodes of trees without categories; tree t begins at ``ends[t]``."""
        number, packed = np.zeros((2, nodes.size), np.int32)
        number_nodes(nodes, ends, number, packed)
        tree = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        shift = ends[tree]  # nodes of a tree have places in it, before and after
        ordered = nodes[shift + packed]
        is_split = ordered["child"] != packed
        feature = np.where(is_split, ordered["feature"], n_columns).astype(np.uint32)
        threshold = ordered["threshold"]
        whole = [(name, np.int32) for name in ("other", "missing", "packed")]
        node = np.empty(nodes.size, record([("threshold", threshold.dtype), *whole]))
        node["threshold"], node["packed"] = threshold, packed
        node["other"] = number[shift + ordered["child"] + (is_split & (threshold >= 0))]
        node["missing"] = number[shift + ordered["missing"]]
        return cls(ends, feature, node)

    def descend(self, rows: SparseRows, begin: int, end: int) -> Int32s:
        """Packed nodes that rows ``begin .. end`` reach, of shape (trees, rows)."""
        stop = np.empty((self.root.size - 1, end - begin), NODE)
        values = rows.values[rows.first[begin] : rows.first[end]]
        follow_zeros(self, values, rows.stored(begin, end), rows.shape[1], stop)
        return stop


@kernel
def set_bits(column: NDArray, first: Int64s, behind: int, bits: Words) -> None:
    """Set the bits of columns that rows store, and of the column `behind` all.

    Those of row i are at ``first[i] .. first[i + 1]``.
    """
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(WORD - 1)
    last = np.uint64(behind)
    for i in range(first.size - 1):
        for e in range(first[i], first[i + 1]):
            f = np.uint64(column[e])
            if bits[0, i, f >> six] == 0:
                bits[1, i, f >> six] = e - first[0]
            bits[0, i, f >> six] |= one << (f & low)
        bits[0, i, last >> six] |= one << (last & low)


@kernel
def number_nodes(nodes: NDArray, ends: Int64s, number: Int32s, packed: Int32s) -> None:
    """Number the nodes of each tree in preorder; nodes that no row reaches get -1.

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
        number[begin] = 0
        # Nodes up to i have their numbers, and their children.
        for i in range(size):
            found = number[begin + i]
            if found < 0:
                continue
            packed[begin + found] = i
            child = nodes[begin + i].child
            if child != i:
                above = int(nodes[begin + i].threshold < 0)
                number[begin + child + above] = found + 1
                number[begin + child + 1 - above] = found + 1 + below[child + above]


@kernel
def follow_zeros(paths: ZeroPaths, values: NDArray, bits: Words, behind: int, stop: Int32s) -> None:
    """Write the packed node that each row reaches in each tree to `stop` (trees, rows)."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(WORD - 1)
    for t in range(stop.shape[0]):
        part = slice(paths.root[t], paths.root[t + 1])
        feature, nodes = paths.feature[part], paths.node[part]
        for r in range(stop.shape[1]):
            row, v = bits[0, r], np.uintp(0)
            while True:
                # The row is in node v.
                f = np.uint64(feature[v])
                word, bit = row[f >> six], one << (f & low)
                if word & bit == 0:
                    v += np.uintp(1)
                    continue
                if f == np.uint64(behind):
                    break
                x = values[np.int64(bits[1, r, f >> six]) + count_bits(word & (bit - one))]
                node = nodes[v]
                if x != x:
                    if np.uintp(node.missing) == v:  # it stays
                        break
                    v = np.uintp(node.missing)
                elif (x > node.threshold) == (node.threshold < 0):
                    v += np.uintp(1)
                else:
                    v = np.uintp(node.other)
            stop[t, r] = nodes[v].packed
