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

    Attributes
    ----------
    least : float
        Weight of a branch that counts.
    cut_share, most : float
        Either side of a numeric cut holds at least this share of the node's known weight:
        `least` where that is more, else `most` where that is less.
    slack : float
        Weights that fall short by no more than this still pass.
    unit : float
        Weight of one unit: a numeric cut needs twice as many known entries as the least
        weight on a side.
    """

    least: float
    cut_share: float
    most: float
    slack: float
    unit: float = 1.0


class ListTask(NamedTuple):
    """What is to be grown by information gain.

    Attributes
    ----------
    information : Information
    n_classes : int
    target : integer array of shape (n,)
        Class codes.
    weight : int64 array of shape (n,), or None
        Fixed-point weights; None where every weight is one unit and stays so.
    nominal : bool array of shape (d,)
    missing_is_category : bool
        Missing values are one more category (ID3), rather than unknown (C4.5).
    limits : BranchLimits
    one_against_rest : bool
        A nominal test parts one category from all others, rather than all of them. The host
        alone grows so.
    max_device_memory : int or None
        Bytes that growth may use of a device's memory; None for a share of what is free.
    """

    information: Information
    n_classes: int
    target: NDArray[Any]
    weight: Int64s | None
    nominal: NDArray[np.bool_]
    missing_is_category: bool
    limits: BranchLimits
    one_against_rest: bool = False
    max_device_memory: int | None = None


class Candidates(NamedTuple):
    """The best test of every column in each of m nodes; all arrays have shape (d, m).

    Attributes
    ----------
    gain : int64
        Total gain in steps of ``2**-GAIN_BITS`` bits x weight; -1 where there is no test.
    split : int64
        Split information, bits x weight in fixed point: branches and unknown weight.
    tries : int64
        Admissible cuts (numeric columns), or branches of sufficient weight (nominal).
    parts : int32
        Branches with entries; 1 where the column is constant: it stays so below.
    cut, after : uint32
        Codes on both sides of a numeric cut; `cut` is the category that a test of one against
        the rest parts from them.
    """

    gain: Int64s
    split: Int64s
    tries: Int64s
    parts: NDArray[np.int32]
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

    Attributes
    ----------
    node : int64, place of the node in its level
    feature : int32
    cut : uint32
        Codes up to here go to the first part (numeric columns), or this category alone (one
        against the rest).
    part : int64 array of shape (m + 1,)
        The parts of test j are ``part[j] .. part[j + 1]``, in the order of their codes.
    """

    node: Int64s
    feature: NDArray[np.int32]
    cut: NDArray[np.uint32]
    part: Int64s


class Parts(NamedTuple):
    """What the tests of m nodes make: P parts, each a child with entries.

    Attributes
    ----------
    code : uint32 array of shape (P,)
        Category of the part (nominal columns); MISSING_CODE for the rest.
    rows : int64 array of shape (P,)
        Entries, fractions included.
    weights : int64 array of shape (P, K)
        Class weights.
    """

    code: NDArray[np.uint32]
    rows: Int64s
    weights: Int64s


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
    """A table coded losslessly, sorted by every column.

    Attributes
    ----------
    order : int32 array of shape (d, n)
        Rows by the code of each column, missing values last.
    code : uint32 array of shape (d, n)
        Their codes.
    """

    order: NDArray[np.int32]
    code: NDArray[np.uint32]
