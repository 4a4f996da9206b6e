"""Memory layout of a coded table and its rows, shared by the CPU kernels.

Memory layout of entries and attribute lists, shared by their kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Limits, Rows
from gputree.backends.lists import ListTask
from gputree.base.dtypes import Bools

# Rows of a node that one thread processes at a time.
CHUNK_ROWS = 1 << 16


class Table(NamedTuple):
    """A table of n rows and d columns, with its codes.

    Histograms are ragged: the cells of column f begin at ``offset[f]``, one a bin in
    order of value, and the last is the bin of missing values where ``missing[f]``.

        codes          row-major: one cache line has all columns of a row
        values         row-major too, read only where a code does not decide

    Codes decide in columns of at most 256 distinct values, where every bin holds one,
    and everywhere when cuts are made between bins only; then a cut after bin b lies
    midway between ``highest[f, b]`` and ``lowest`` of the bin that follows.

    Values of nominal columns are the codes of categories. Where there are few, these are the bins;
    a column of many has one bin, and codes never decide there.
    """

    values: Any  # (n, d) float32 or float64, C-contiguous; None in `of_codes`
    codes: NDArray  # (n, d) uint8
    offset: NDArray  # (d + 1,) int64
    missing: NDArray  # (d,) bool: the column has missing values
    single: NDArray  # (offset[d],) bool: the bin holds one distinct value
    by_code: NDArray  # (d,) bool: codes decide every cut; the values are not needed
    highest: NDArray  # (d, 256) float64: maximum value of a bin, where `by_code`
    lowest: NDArray  # (d, 256) float64: minimum value of a bin, where `by_code`
    categories: NDArray  # (d,) int64: categories of a nominal column, 0 of a numeric one

    def of_codes(self) -> Table:
        """The table for kernels that read no values: of the same type for both precisions."""
        return self._replace(values=None)


class Nodes(NamedTuple):
    """m nodes with histograms: ``cells[slots[j]]`` for node j."""

    begin: NDArray  # (m,) int64: its entries are begin[j] .. end[j]
    end: NDArray  # (m,) int64
    cells: NDArray
    slots: NDArray  # (m,) int64


class Scores(NamedTuple):
    """Best boundary or subset of every (node, column), and the highest bound of its bins."""

    total: NDArray  # (m, channels) int64
    best: NDArray  # (m, d) float64
    bin: NDArray  # (m, d) int64; for a subset its place in the order
    missing_left: NDArray  # (m, d) bool
    bound: NDArray  # (m, d) float64
    order: NDArray  # (m, d) int64; for a subset, the order of categories


class SearchRules(NamedTuple):
    """Rules that choose between cuts, for many nodes."""

    criterion: Any
    limits: Limits
    weighted: bool
    exact: bool  # True: cuts inside bins are searched for, too
    means: Any  # `Bounds` of the nodes, or None
    interactions: Any  # `Interactions`, or None


class Node(NamedTuple):
    """Rules that choose between cuts, for one node."""

    criterion: Any
    limits: Limits  # with the bounds of the node, and the sign of the column that is scanned
    weighted: bool
    total: NDArray  # (channels,) int64
    key: Any  # uint64, of random draws


class Pairs(NamedTuple):
    """Values of one column and their rows."""

    values: NDArray
    items: NDArray


class BinEnds(NamedTuple):
    """Fields of `Table` that give thresholds of cuts by code; of the same types for all tables."""

    by_code: NDArray
    highest: NDArray
    lowest: NDArray
    categories: NDArray


class Fine(NamedTuple):
    """Fine codes (bin and sub-bin of a value), column by column: a cache line has many rows."""

    code: NDArray[np.uint16]  # (d, n), of columns `known`
    known: Bools  # (d,)


class Left(NamedTuple):
    """The categories that go left of each of m splits, one split after another."""

    begin: NDArray  # (m + 1,) int64: split j has begin[j] .. begin[j + 1]
    code: NDArray  # uint32, ascending


class EntrySource(NamedTuple):
    """A table, the statistics of its rows, and the entries of nodes."""

    table: Table
    rows: Rows
    entries: NDArray


class Entries(NamedTuple):
    """Entries, ordered by node; `weight` is None where every entry has a weight of one unit."""

    target: NDArray[Any]  # (E,)
    weight: NDArray[Any] | None  # (E,) int64


class Lists(NamedTuple):
    """Attribute lists: entries in the order of their codes in each column, and the codes."""

    item: NDArray[Any]  # (d, E) int32
    code: NDArray[Any]  # (d, E) uint32


class ListRules(NamedTuple):
    """Rules that choose between tests of any node; see `ListTask`."""

    information: Any
    limits: Any
    missing_is_category: bool
    one_against_rest: bool
    by_gain: bool
    nominal: NDArray[Any]  # (d,) bool

    @classmethod
    def of(cls, task: ListTask) -> ListRules:
        """Return the rules of a task."""
        return cls(*(getattr(task, field) for field in cls._fields))


class ListNodes(NamedTuple):
    """m nodes: entries ``begin[j] .. end[j]``, in every list."""

    begin: NDArray[Any]  # (m,) int64
    end: NDArray[Any]  # (m,) int64
    weights: NDArray[Any]  # (m, K) int64, of the classes
    resting: NDArray[Any]  # (d, m) bool: columns known to be constant


class NodeList(NamedTuple):
    """The list of one column in one node: places ``begin .. end``, by code."""

    item: NDArray[Any]
    code: NDArray[Any]
    target: NDArray[Any]
    weight: NDArray[Any] | None
    begin: int
    end: int


class Assigned(NamedTuple):
    """Parts that the entries of a level are assigned to; see `gputree.backends.lists.TestParts`."""

    child: NDArray[Any]  # (E,) int32: part of the test for each entry, -1 where it has none
    part_code: NDArray[Any]  # (P,) uint32
    part_weight: NDArray[Any]  # (P,) int64, sum over the entries of the part
    missing: NDArray[Any]  # (tests,) int64: entries without a part


class OpenedNodes(NamedTuple):
    """Parts that become nodes: test j has ``part[first[j]] .. part[first[j + 1]]``."""

    part: NDArray[Any]  # int64
    first: NDArray[Any]  # (tests + 1,) int64
    begin: NDArray[Any]  # (P,) int64: first entry of each part, -1 where it does not become a node
    spread: NDArray[Any]  # (tests,) int64: first place of its fractions in `Moved.spread`


class Moved(NamedTuple):
    """Places of entries in the next level; see `gputree.backends.cpu.lists.backend`."""

    route: NDArray[Any]  # (E,) int64: part of the test and place, or -2 less a place in `spread`
    spread: NDArray[Any]  # int32 places of fractions, -1 in a part without a fraction
