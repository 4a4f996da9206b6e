"""The seam between the grower of multiway trees and the devices: attribute lists.

Every column is a list of (entry, code), sorted by code within each open node (SPRINT:
Shafer, Agrawal and Mehta, 1996):

    entries   | 0  1  2  3  4 | 5  6  7 |      parts of rows: row, target, weight
    column 0  | 3  0  4  1  2 | 6  7  5 |      entries by code; codes beside them,
    codes     | 0  0  1  4  ? | 2  2  9 |      missing ones (?) last

Codes are lossless: the place of a number among the distinct values of its column, or a
category. Splits partition every list stably, so nothing is sorted twice. An *entry* is a
part of a row: C4.5 sends a row whose value is missing down every branch, with a
fraction of its weight. All statistics and scores are integers, hence equal on every
device.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.criteria.information import Information


class BranchLimits(NamedTuple):
    """How much weight branches need; all weights in units, as floats that may be fractions.

    Either side of a numeric cut holds at least `cut_share` of the node's known weight: `least`
    where that is more, else `most` where that is less. It needs twice as many known entries as
    the least weight on a side.
    """

    least: float  # weight of a branch that counts
    cut_share: float
    most: float
    slack: float  # weights that fall short by no more than this still pass
    unit: float = 1.0  # weight of one unit


class ListTask(NamedTuple):
    """What is to be grown by information gain."""

    information: Information
    n_classes: int
    target: NDArray[Any]  # (n,) class codes
    weight: Int64s | None  # (n,) in fixed point; None where every weight is one unit and stays so
    nominal: NDArray[np.bool_]  # (d,)
    missing_is_category: bool  # missing values are one more (ID3), rather than unknown (C4.5)
    limits: BranchLimits
    # A nominal test parts one category from all others, rather than all of them: on the host alone.
    one_against_rest: bool = False
    by_gain: bool = False  # that category by the greatest gain, rather than gain ratio
    max_device_memory: int | None = None  # bytes, on a device; None for a share of what is free


class Candidates(NamedTuple):
    """The best test of every column in each of m nodes; all arrays have shape (d, m)."""

    gain: Int64s  # in all, in steps of ``2**-GAIN_BITS`` bits x weight; -1: there is no test
    split: Int64s  # information, bits x weight in fixed point: branches and unknown weight
    tries: Int64s  # admissible cuts (numeric columns), or branches of sufficient weight (nominal)
    parts: NDArray[np.int32]  # branches with entries; 1: the column is constant, and stays so below
    # Codes on both sides of a numeric cut; `cut` is the category that a test of one against the
    # rest parts from them.
    cut: NDArray[np.uint32]
    after: NDArray[np.uint32]

    @classmethod
    def empty(cls, d: int, m: int) -> Candidates:
        """Room for the candidates of d columns in m nodes; none found, all constant."""
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

    Codes up to `cut` go to the first part (numeric columns), or this category alone (one against
    the rest). The parts of test j are ``part[j] .. part[j + 1]``, in the order of their codes.
    """

    node: Int64s  # place of the node in its level
    feature: NDArray[np.int32]
    cut: NDArray[np.uint32]
    part: Int64s  # (m + 1,)


class Parts(NamedTuple):
    """What the tests of m nodes make: P parts, each a child with entries."""

    code: NDArray[np.uint32]  # category of the part (nominal columns); MISSING_CODE for the rest
    rows: Int64s  # entries, fractions included
    weights: Int64s  # (P, K) of the classes


class Level(Protocol):
    """The open nodes of a level with their entries and lists, on a device."""

    weights: Int64s  # class weights of the nodes, on the host, shape (m, K)

    @property
    def rows(self) -> int:
        """Entries of all nodes."""

    def score(self) -> Candidates:
        """The best test of every column in every node. Constant columns rest from here on."""

    def assign(self, tests: Tests) -> Parts:
        """Assign entries to the parts of the chosen tests, and sum the parts up."""

    def descend(self, parts: Int64s) -> Level:
        """The level below that consists of `parts` (ascending) of the last `assign`."""

    def close(self) -> None:
        """Hand the memory of the lists back: the level is not asked again."""


class ListBackend(Protocol):
    """Attribute lists of one table on one device."""

    name: str
    most_entries: int  # of a level, so that its device has room for it and those that wait

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None: ...

    def root(self) -> Level:
        """The root's level: all rows, sorted by every column. The codes are used up."""


class ColumnCodes(NamedTuple):
    """A table coded losslessly, sorted by every column."""

    order: NDArray[np.int32]  # (d, n) rows by the code of each column, missing values last
    code: NDArray[np.uint32]  # (d, n) their codes
