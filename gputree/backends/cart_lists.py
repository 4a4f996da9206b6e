"""The seam between the grower of CART trees with categories and the devices.

Attribute lists as in `gputree.backends.lists`, but every row stays whole: a split sends an
entry to the first or the second half of its node, missing values the way that is learned.

    list of a numeric column    | 1 1 4 | 5 7 ? |       a cut between two codes
    list of a nominal column    | 0 0 2 2 | 1 3 ? |     a subset of the categories

The cut of a numeric column is the one that histograms and refinement find
(`gputree.backends.cpu.refine.precedes` says which of equals), scored from the same sums.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.lists import ColumnCodes


class SubsetSearch(NamedTuple):
    """Which subsets of a column's categories are tried.

    With two classes or a regression target, the best subset is a head of the categories
    ordered by the share of one class or by the mean target (Breiman et al. 1984, section
    4.2.2; Fisher 1958). For more classes the best head over the orders by the share of each
    class is taken, beyond what is tried exhaustively.

    Attributes
    ----------
    many_categories : int
    rows_per_category : float
        Of more than `many_categories` present in a node, one is split off the others, if
        they have fewer known rows than this on average.
    most_exhaustive : int
        Categories present in a node up to which every subset is tried, where the node has
        more than two classes.
    most_limited : int
        Categories present in a node up to which every subset is tried where the least rows
        or weight of children keep a head out that is better than those they admit. Of more,
        the heads with one category moved to the other side are tried.
    """

    many_categories: int
    rows_per_category: float
    most_exhaustive: int
    most_limited: int


class CartTask(NamedTuple):
    """What is to be grown.

    Attributes
    ----------
    task : Task
        Criterion, limits and row statistics, as without categories.
    nominal : bool array of shape (d,)
    search : SubsetSearch
    """

    task: Task
    nominal: NDArray[np.bool_]
    search: SubsetSearch


class Cuts(NamedTuple):
    """The best split of every column in each of m nodes; all arrays have shape (d, m).

    Attributes
    ----------
    score : float64
        See `gputree.criteria`; -inf where there is none.
    missing_left : bool
        Missing values go to the first child.
    order : int32
        Statistic by whose share the categories are ordered: a class among those present in
        the node, or the sum of the targets.
    place : int64
        Numeric columns: the last code on the left. Nominal ones: which of the ordered
        categories go left; see `gputree.backends.cpu.lists.subsets`.
    after : uint32
        Numeric columns: the first code on the right, MISSING_CODE where none is known.
    categories : int32
        Categories present; 0 in numeric columns.
    constant : bool
        One value, or missing throughout: it stays so below.
    """

    score: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    order: NDArray[np.int32]
    place: Int64s
    after: NDArray[np.uint32]
    categories: NDArray[np.int32]
    constant: NDArray[np.bool_]

    @classmethod
    def empty(cls, d: int, m: int) -> Cuts:
        """Room for the cuts of d columns in m nodes; none found."""
        return cls(
            score=np.full((d, m), -np.inf),
            missing_left=np.zeros((d, m), np.bool_),
            order=np.zeros((d, m), np.int32),
            place=np.zeros((d, m), np.int64),
            after=np.zeros((d, m), np.uint32),
            categories=np.zeros((d, m), np.int32),
            constant=np.zeros((d, m), np.bool_),
        )

    def merge(self, own: NDArray[np.bool_], others: Cuts) -> Cuts:
        """These cuts where `own` (d, m), else those of `others`."""
        fields = zip(self, others, strict=True)
        return Cuts._make(np.where(own, np.asarray(a), np.asarray(b)) for a, b in fields)


class CutTests(NamedTuple):
    """The chosen splits of m nodes.

    Attributes
    ----------
    node : int64, place of the node in its level
    feature : int32
    missing_left, order, place : as in `Cuts`
    category : int64 array of shape (m + 1,)
        The categories of split j are listed at ``category[j] .. category[j + 1]``.
    """

    node: Int64s
    feature: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    order: NDArray[np.int32]
    place: Int64s
    category: Int64s


class Halves(NamedTuple):
    """What the splits of m nodes make: children 2j and 2j + 1 of split j.

    Attributes
    ----------
    rows : int64 array of shape (2m,)
    sums : int64 array of shape (2m, S)
        Row statistics, see `Task.statistics`.
    mixed : bool array of shape (2m,)
        Targets differ.
    seen_missing : bool array of shape (m,)
        The node had missing values in the column.
    code : uint32 array of shape (C,)
        Categories present, split by split, ascending.
    is_left : bool array of shape (C,)
    """

    rows: Int64s
    sums: Int64s
    mixed: NDArray[np.bool_]
    seen_missing: NDArray[np.bool_]
    code: NDArray[np.uint32]
    is_left: NDArray[np.bool_]


class CartLevel(Protocol):
    """The open nodes of a level with their entries and lists, on a device.

    Attributes
    ----------
    rows : int64 array of shape (m,), on the host
    sums : int64 array of shape (m, S), on the host
    mixed : bool array of shape (m,), on the host
    """

    rows: Int64s
    sums: Int64s
    mixed: NDArray[np.bool_]

    def score(self, asked: NDArray[np.bool_]) -> Cuts:
        """The best split of the columns `asked` (d, m). Constant ones rest from here on."""

    def assign(self, tests: CutTests) -> Halves:
        """Assign entries to the halves of the chosen splits, and sum these up."""

    def descend(self, children: Int64s) -> CartLevel:
        """The level below, of some `children` (ascending) of the last `assign`.

        This level is not asked again.
        """


class CartBackend(Protocol):
    """Attribute lists of one table on one device, for CART."""

    name: str

    def __init__(self, codes: ColumnCodes, task: CartTask, n_threads: int) -> None: ...

    def root(self) -> CartLevel:
        """The root's level: all rows, sorted by every column. The codes are used up."""
