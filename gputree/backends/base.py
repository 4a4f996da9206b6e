"""Interface between the grower and the backend of a device.

A backend has arrays on its device and a handful of primitives on them. The grower, one for all
backends, decides which nodes are split, when growth stops and how nodes are numbered. Per node,
only small NumPy arrays on the host are exchanged.

Nodes are ranges ``begin .. end`` of the entries, a permutation of the rows that
`partition` and `finish` keep in stable order. Every primitive is exact or works in
integers, so its result depends neither on the device nor on the order of work. Subsets of
categories are searched in the same way, and with the same memory, on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gputree.backends.interactions import Interactions
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.criteria import Criterion

Uint64s = NDArray[np.uint64]


class Monotonic(NamedTuple):
    """Monotonic constraints: signs of the columns and bounds on the mean of a node.

    A mean is the probability of class 1, or the mean target in units of the row statistics, over
    all rows of a side, missing values included. The fields with a default are set by kernels.
    """

    signs: NDArray[np.int8]  # (d,) 1 where it rises with the column, -1 where it falls, else 0
    sign: int = 0  # of the column that is searched
    lower: float = -np.inf  # bounds on the mean of the node that is searched
    upper: float = np.inf


class Bounds(NamedTuple):
    """Constraints of m nodes: bounds on their means, and the sets of columns that may split them.

    Both follow from the cuts above. Means are unbounded without monotonic constraints, and sets are
    0 without `Interactions`.
    """

    lower: Floats
    upper: Floats
    columns: Int64s

    @classmethod
    def of_roots(
        cls, limits: Limits, interactions: Interactions | None, m: int = 1
    ) -> Bounds | None:
        """Return the constraints of m roots; None where there are none."""
        if limits.monotonic is None and interactions is None:
            return None
        root = 0 if interactions is None else interactions.root
        return cls(np.full(m, -np.inf), np.full(m, np.inf), np.full(m, root))

    def take(self, nodes: NDArray[Any] | slice) -> Bounds:
        return Bounds(self.lower[nodes], self.upper[nodes], self.columns[nodes])


class Limits(NamedTuple):
    """Limits on splits that the device tests. Weights are in units of the row statistics."""

    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int
    min_decrease: float  # least gain x node weight
    max_features: int
    rounded: bool  # weight x target had to be rounded to units
    random_ties: bool = False  # of cuts of two columns: else the lowest column wins
    monotonic: Monotonic | None = None


class Rows(NamedTuple):
    """Statistics of rows in fixed point: of all rows of a table, or of some."""

    target: NDArray[Any]  # class index, or weight x target
    weight: Int64s | None  # None where every weight is one unit
    square: Int64s | None  # weight x squared target; regression only
    square_rest: Int64s | None  # rest of `square` below its unit, in 2**-30 of it

    def take(self, rows: NDArray[Any] | slice) -> Rows:
        return Rows._make([None if column is None else column[rows] for column in self])


@dataclass(frozen=True)
class Task:
    """Problem to solve on a table: criterion, limits, and the statistics of all of its n rows."""

    criterion: Criterion  # its type selects the formulas, see `gputree.criteria`
    limits: Limits
    rows: Rows
    exact: bool  # True: cuts inside bins are searched for, too
    max_device_memory: int | None = None  # bytes, on a device; None: a part of the free ones
    search: SubsetSearch | None = None  # of category subsets; None without nominal columns
    interactions: Interactions | None = None
    draws_cuts: bool = False  # extremely randomized trees: on the CPU, of a table in memory

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return 0 if self.rows.square is not None else self.criterion.n_classes

    @property
    def statistics(self) -> int:
        """Statistics of a node: class weights, or weight, sum, square and rest of the square."""
        return self.n_classes or 4

    @property
    def channels(self) -> int:
        """Channels of a histogram cell; see `gputree.criteria`."""
        return (self.n_classes or 3) + (self.rows.weight is not None)


class Larger(NamedTuple):
    """Histograms of larger siblings: ``out[slots] = whole[whole_slots] - out[part_slots]``.

    A part may be stored in the place of its result.
    """

    whole: Any
    whole_slots: Int64s
    part_slots: Int64s
    slots: Int64s


class Chosen(NamedTuple):
    """The fields of `Splits` that kernels use unchanged: all but the lists of categories."""

    feature: Int32s
    weight: Int64s
    gain: Floats
    cut_bin: Int32s
    next_bin: Int32s
    inside: Bools
    missing_left: Bools
    seen_missing: Bools
    threshold: Floats


class Splits(NamedTuple):
    """The chosen split of each of m nodes; ``feature`` is -1 where there is none.

    A cut is after bin ``cut_bin``, or inside it where ``inside``; then ``threshold``
    decides. ``next_bin`` is the next bin with rows of the node, -1 where none follows. Where
    the column is nominal, ``codes`` lists the categories that go left instead.
    """

    feature: Int32s
    weight: Int64s  # of the node, in units
    gain: Floats
    cut_bin: Int32s
    next_bin: Int32s
    inside: Bools
    missing_left: Bools
    seen_missing: Bools  # the node has missing values in the column
    threshold: Floats
    codes: NDArray[np.object_]  # of uint32 arrays, ascending; None where the column is numeric

    @classmethod
    def none(cls, m: int) -> Splits:
        """Splits of m nodes, none found yet."""
        return cls(
            feature=np.full(m, -1, np.int32),
            weight=np.zeros(m, np.int64),
            gain=np.zeros(m),
            cut_bin=np.zeros(m, np.int32),
            next_bin=np.full(m, -1, np.int32),
            inside=np.zeros(m, np.bool_),
            missing_left=np.zeros(m, np.bool_),
            seen_missing=np.zeros(m, np.bool_),
            threshold=np.zeros(m),
            codes=np.full(m, None),
        )

    @property
    def chosen(self) -> Chosen:
        """The arrays of the chosen splits that kernels take."""
        return Chosen(*(getattr(self, field) for field in Chosen._fields))

    def take(self, nodes: NDArray[Any] | slice) -> Splits:
        return Splits._make([field[nodes] for field in self])


class Ahead(NamedTuple):
    """Nodes of a level that a device has split by itself, or found to have no split.

    Entries of split nodes are partitioned; middle and threshold are as of `Backend.partition`.
    """

    begin: Int64s
    splits: Splits
    middle: Int64s
    threshold: Floats


class Subtrees(NamedTuple):
    """Nodes of the subtrees of small nodes: each root first, children in pairs, -1 for no child."""

    root: Int64s
    first_child: Int64s
    feature: Int32s
    threshold: Floats
    missing_left: Bools
    gain: Floats
    begin: Int64s
    end: Int64s

    @classmethod
    def join(cls, groups: Iterable[Subtrees]) -> Subtrees:
        """The subtrees of several groups of nodes, one group after another."""
        groups = list(groups)
        if len(groups) == 1:
            return groups[0]
        moved: list[Subtrees] = []
        used = 0  # nodes of the groups before
        for group in groups:
            child = np.where(group.first_child < 0, -1, group.first_child + used)
            moved.append(group._replace(root=group.root + used, first_child=child))
            used += child.size
        return cls(*(np.concatenate(field) for field in zip(*moved, strict=True)))

    @property
    def sizes(self) -> Int64s:
        """Numbers of nodes; those of a subtree are next to each other."""
        ends = np.append(np.sort(self.root), self.first_child.size)
        sizes: Int64s = ends[np.searchsorted(ends, self.root) + 1] - self.root
        return sizes


class Finishing(NamedTuple):
    """Sizes of small nodes: building their subtrees costs less than histograms."""

    # Rows of an average column that cost as much to finish, over all levels, as a statistic of
    # its histogram costs to count, subtract and score.
    rows_per_statistic: float
    columns: float  # per row, weighted by cost relative to a numeric one of many values
    most_rows: int  # nodes of more rows are never small
    # Entries x columns, per remaining level, up to which every node of a level is small: much of
    # the cost of splitting a level does not depend on its size.
    level_cells: int = 0
    # Statistics of the deepest level, up to which small nodes stay in a level with larger ones: it
    # is split anyway, and building subtrees as well would cost more than it saves.
    whole_statistics: int = 0


class Sharding(NamedTuple):
    """Shards of rows that a table on the host is worked on in."""

    bounds: Int64s  # shard p has the rows ``bounds[p] .. bounds[p + 1]``
    # allocates codes, uint8 of the shape that it is given; None: in memory
    new_codes: Callable[[tuple[int, int]], NDArray[Any]] | None = None


class DeviceTable(Protocol):
    """A table on one device: columns, values, and their codes once a task needs them.

    Many tasks share it, one after another or at once. Codes on the host are pickled with it; codes
    on a device are recomputed.
    """

    name: str
    shape: tuple[int, int]
    missing: Bools  # (d,) columns that hold missing values
    categories: Int64s  # (d,) of nominal columns, whose values are their codes; 0 of numeric ones

    def __init__(self, values: Any, missing: Bools, categories: Int64s | None = None) -> None:
        """Take values (n, d), float32 or float64 with NaN where missing."""

    def prepare(
        self, max_bins: int, n_threads: int, exact: bool = True, max_features: int | None = None
    ) -> None:
        """Code the columns in advance, for tasks that are `exact` or not.

        Tasks whose nodes draw `max_features` of many columns may need no codes.
        """


class Backend(Protocol):
    """The primitives of one device, for one task over some rows of one table."""

    name: str
    channels: int  # of a histogram cell

    def __init__(
        self, table: Any, task: Task, n_threads: int, entries: Int64s | None = None
    ) -> None:
        """Take a `DeviceTable`, a task and the rows to grow on: `entries`, or all.

        Statistics of the task cover every row of the table, not only `entries`.
        """

    def encode(self, max_bins: int) -> None:
        """Code the columns into at most `max_bins` bins, unless the table is coded so."""

    @property
    def uncoded_cells(self) -> int:
        """Rows x columns of the largest table to grow from its values, without codes; 0 for none.

        Tables of fewer than `gputree.growth.frontier.FEWEST_ROWS` rows are grown so in any case.
        """

    @property
    def histogram_cells(self) -> int:
        """Bins of all columns together. Needs `encode`."""

    @property
    def histogram_bytes(self) -> int:
        """Bytes of one node's histogram. Needs `encode`."""

    @property
    def most_histogram_bytes(self) -> int:
        """Memory limit of the histograms of one level, in bytes."""

    @property
    def finishing(self) -> Finishing:
        """Return the sizes up to which a node is small. Needs `encode`."""

    def new_histograms(self, m: int) -> Any:
        """Zeroed histograms of m nodes, shape (m, histogram_cells x channels).

        The width is 0 where histograms are not kept but counted in `refine`; then no scores precede
        it.
        """

    def histogram(
        self, begin: Int64s, end: Int64s, out: Any, slots: Int64s, larger: Larger | None = None
    ) -> None:
        """Add the histogram of node j to ``out[slots[j]]``, which is zero; then subtract.

        Larger siblings are complete once they are scored.
        """

    def score(self, histograms: Any, slots: Int64s, bounds: Bounds | None = None) -> Any:
        """Best boundary and highest bound of every column of every node, on the device.

        `bounds` are the constraints of the nodes; None where the task has none.
        """

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Any,
        slots: Int64s,
        scores: Any,
        keys: Uint64s,
        bounds: Bounds | None = None,
    ) -> Splits:
        """Choose the split of each node, and search its candidate bins where the task is exact.

        `bounds` are those that `scores` were computed with.
        """

    def partition(self, begin: Int64s, end: Int64s, splits: Splits) -> tuple[Int64s, Floats]:
        """Partition the entries of nodes that all split, stably.

        Returns the first entry of each second child, and each split's threshold.
        """

    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: Uint64s, bounds: Bounds | None = None
    ) -> Subtrees:
        """Build the whole subtrees of small nodes; their entries end in leaf order."""

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        """Row statistics, shape (m, statistics), of m nodes."""

    def categories(
        self, begin: Int64s, end: Int64s, feature: Int32s
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        """Categories of a column in each of m nodes: their numbers, and their codes node by node.

        Codes ascend in each node. A column that is numeric in growth is allowed if its values are
        codes.
        """

    def report(self) -> dict[str, int]:
        """Work done: ``scanned_pairs``, ``refined_pairs``, in (row, column) pairs."""


@runtime_checkable
class GrowsAhead(Protocol):
    """An optional primitive of a backend: levels that its device splits by itself."""

    def grow_ahead(
        self, begin: Int64s, end: Int64s, keys: Uint64s, levels: int, fewest: int
    ) -> list[Ahead]:
        """Split nodes, and those below of at least `fewest` rows, for up to `levels` levels.

        Returns levels from the given one on. Any node may be missing: it is put off. Its entries
        are as they were, and nothing below it is returned.
        """


# Maximum number of statistics of categories of a node that are stored at once (128 MB). Beyond,
# with more than two classes, only single categories are tried, counted row by row.
MOST_CELLS = 1 << 24

# Maximum number of runs that are all moved at every prefix; beyond, only at the empty and the
# full prefix, since the number of moves is quadratic. For 256 runs, they take 2 ms on one core.
MOST_MOVED = 256


class SubsetSearch(NamedTuple):
    """Sizes that decide which subsets of a column's categories are tried.

    With two classes or a regression target, the best of all subsets is a prefix of the categories
    ordered by the probability of one class or by the mean target (Breiman et al. 1984, section
    4.2.2; Fisher 1958); the best admissible one may be another where limits exclude that prefix
    (`gputree.backends.cpu.subsets`). For more classes, where not every subset is tried, it is the
    best prefix over the orders by the probability of each class.
    """

    # With more than `many_categories` in a node, a single one is split off the others, if these
    # have fewer known rows on average than `rows_per_category`.
    many_categories: int
    rows_per_category: float
    # Maximum number of categories in a node with which every subset is tried: of more than two
    # classes; and where the minimum rows or weight of children exclude a prefix that is better than
    # the admitted ones. With more, the prefixes with one category moved to the other side are
    # tried.
    most_exhaustive: int
    most_limited: int
