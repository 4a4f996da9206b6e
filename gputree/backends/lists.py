"""Interface between the grower of multiway trees and devices: attribute lists.

Every column is a list of (entry, code), sorted by code within each open node (SPRINT:
Shafer, Agrawal and Mehta, 1996):

    entries   | 0  1  2  3  4 | 5  6  7 |      parts of rows: row, target, weight
    column 0  | 3  0  4  1  2 | 6  7  5 |      entries by code; their codes below,
    codes     | 0  0  1  4  ? | 2  2  9 |      missing ones (?) last

Codes are lossless: the place of a number among the distinct values of its column, or a category.
Splits partition every list stably, so nothing is sorted twice. C4.5 sends a row whose value is
missing down every branch, with a fraction of its weight: an *entry* is a row in a node, with such a
weight. All statistics and scores are integers, hence equal on every device.

Growth over ranked lists, `NodeRows` to `RankedNodes`, is for criteria whose losses are no sums over
rows, so that a histogram does not give them: a list has the rows of a node by one column, and a
sweep through it finds the losses of all cuts. It runs on the CPU, from one row to the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.criteria.entropy import Information


class BranchLimits(NamedTuple):
    """Minimum weights of branches; all in units, as floats that may be fractions.

    Both sides of a numeric cut have at least `cut_share` of the node's known weight: or `least`
    where that is more, or `most` where that is less. The node needs twice as many known entries as
    the minimum weight of a side.
    """

    least: float  # minimum weight of a branch
    cut_share: float
    most: float
    slack: float  # weights that fall short by no more than this still pass
    unit: float = 1.0  # weight of one unit


class ListTask(NamedTuple):
    """Problem to solve by information gain: criterion, limits and statistics of all n rows."""

    information: Information
    n_classes: int
    target: NDArray[Any]  # (n,) class codes
    weight: Int64s | None  # (n,) in fixed point; None where every weight is one unit and stays so
    nominal: Bools  # (d,)
    missing_is_category: bool  # missing values are one more (ID3), rather than unknown (C4.5)
    limits: BranchLimits
    # True: a nominal test separates one category from all others (on the host only); else multiway.
    one_against_rest: bool = False
    by_gain: bool = False  # that category by the highest gain, rather than gain ratio
    max_device_memory: int | None = None  # bytes, on a device; None: a part of the free ones


class CandidateTests(NamedTuple):
    """The best test of every column in each of m nodes; all arrays have shape (d, m)."""

    gain: Int64s  # in total, in steps of ``2**-GAIN_BITS`` bits x weight; -1: there is no test
    split: Int64s  # information, bits x weight in fixed point: branches and unknown weight
    tries: Int64s  # admissible cuts (numeric columns), or branches of sufficient weight (nominal)
    parts: Int32s  # branches with entries; 1: the column is constant, and stays so below
    # Codes on both sides of a numeric cut; for a test of one category against the rest, `cut` is
    # the category.
    cut: NDArray[np.uint32]
    after: NDArray[np.uint32]

    @classmethod
    def empty(cls, d: int, m: int) -> CandidateTests:
        """Allocate candidates of d columns in m nodes: none found, all constant."""
        return cls(
            gain=np.full((d, m), -1),
            split=np.zeros((d, m), np.int64),
            tries=np.zeros((d, m), np.int64),
            parts=np.ones((d, m), np.int32),
            cut=np.zeros((d, m), np.uint32),
            after=np.zeros((d, m), np.uint32),
        )


class Tests(NamedTuple):
    """The chosen test of each of m nodes.

    Codes up to `cut` go to the first part (numeric columns), or only this category (one against the
    rest). The parts of test j are ``part[j] .. part[j + 1]``, in the order of their codes.
    """

    node: Int64s  # place of the node in its level
    feature: Int32s
    cut: NDArray[np.uint32]
    part: Int64s  # (m + 1,)


class TestParts(NamedTuple):
    """The P parts of the tests of m nodes: each is a child with entries."""

    code: NDArray[np.uint32]  # category of the part (nominal columns); MISSING_CODE for the rest
    rows: Int64s  # entries, fractions included
    weights: Int64s  # (P, K) of the classes


class Level(Protocol):
    """The open nodes of a level with their entries and lists, on a device."""

    weights: Int64s  # class weights of the nodes, on the host, shape (m, K)

    @property
    def rows(self) -> int:
        """Entries of all nodes."""

    def score(self) -> CandidateTests:
        """Find the best test of every column in every node; constant ones are skipped below."""

    def assign(self, tests: Tests) -> TestParts:
        """Assign entries to the parts of the chosen tests, and sum the statistics of the parts."""

    def descend(self, parts: Int64s) -> Level:
        """Return the level below that consists of `parts` (ascending) of the last `assign`."""

    def close(self) -> None:
        """Release the memory of the lists: the level is not used again."""


class ListBackend(Protocol):
    """Attribute lists of one table on one device."""

    name: str
    most_entries: int  # of a level, so that it and the levels that wait fit the device

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None: ...

    def root(self) -> Level:
        """Return the root's level: all rows, sorted by every column. The codes are used up."""


class ColumnCodes(NamedTuple):
    """A table coded losslessly, sorted by every column."""

    order: Int32s  # (d, n) rows by the code of each column, missing values last
    code: NDArray[np.uint32]  # (d, n) their codes


class NodeRows(NamedTuple):
    """Rows by node; `weight` is None where every weight is one unit.

    By quantiles, each of k targets has the rows of a node in its order, as do their weights:
    `order` are their places in `row`, and None of one target, whose order `row` has.
    """

    row: Int32s  # of the table
    target: NDArray[Any]  # (k, n) in fixed point, per unit of weight; (n, k) of sums
    weight: Int64s | None  # (k, n); (n,) of sums
    order: Int32s | None = None  # (k, n)


class RankedNodes(NamedTuple):
    """Nodes of a tree, children in pairs; predictions and thresholds as rows that have them."""

    first_child: Int64s  # -1 at leaves
    feature: Int32s
    missing_left: Bools
    gain: Floats
    begin: Int64s
    end: Int64s
    loss: Int64s  # at the quantile
    weight: Int64s
    quantile: Int32s  # (N, k, 2): rows whose mean target the node predicts; none of sums
    cut: Int32s  # (N, 2): rows next to the cut; twice the same before missing values
    threshold: Floats  # of cuts that are drawn
