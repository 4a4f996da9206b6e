"""The seam between the grower and the devices.

A backend owns arrays on its device and a handful of primitives on them; which nodes to
open, when to stop and how nodes are numbered is decided above, once for all backends.
What crosses the seam per node are small NumPy arrays on the host.

Nodes are ranges ``begin .. end`` of the entries, a permutation of the rows that
`partition` and `finish` keep in stable order. Every primitive is exact or works in
integers, so its result depends neither on the device nor on the order of work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.criteria import Criterion

Int64s = NDArray[np.int64]


class Limits(NamedTuple):
    """Limits on splits that the device tests. Weights are in units of the row statistics."""

    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int
    min_decrease: float  # least gain x node weight
    max_features: int
    rounded: bool  # weight x target had to be rounded to units


@dataclass(frozen=True)
class Task:
    """What is to be grown: criterion, limits and row statistics.

    Attributes
    ----------
    criterion : Criterion
        Its type selects the formulas, see `gputree.criteria`.
    limits : Limits
    target : integer array of shape (n,)
        Class index, or weight x target in fixed point.
    weight : int64 array of shape (n,), or None
        Fixed-point weights; None where every weight is one unit.
    square : int64 array of shape (n,), or None
        Weight x squared target in fixed point; regression only.
    square_rest : int64 array of shape (n,), or None
        What `square` cuts off, in 2**-30 of its unit.
    exact : bool
        Whether cuts inside bins are looked for.
    max_device_memory : int or None
        Bytes that a device other than the CPU may use; None for a share of what is free.
    """

    criterion: Criterion
    limits: Limits
    target: NDArray[Any]
    weight: Int64s | None
    square: Int64s | None
    square_rest: Int64s | None
    exact: bool
    max_device_memory: int | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return 0 if self.square is not None else self.criterion.n_classes  # type: ignore[union-attr]

    @property
    def statistics(self) -> int:
        """Statistics of a node: class weights, or weight, sum, square and rest of the square."""
        return self.n_classes or 4

    @property
    def channels(self) -> int:
        """Channels of a histogram cell; see `gputree.criteria`."""
        return (self.n_classes or 3) + (self.weight is not None)


class Splits(NamedTuple):
    """The chosen split of each of m nodes; ``feature`` is -1 where there is none.

    A cut lies after bin ``cut_bin``, or inside it where ``inside``; then ``threshold``
    decides. ``next_bin`` is the next bin with rows of the node, -1 where none follows.
    """

    feature: NDArray[np.int32]
    weight: Int64s  # of the node, in units
    gain: NDArray[np.float64]
    cut_bin: NDArray[np.int32]
    next_bin: NDArray[np.int32]
    inside: NDArray[np.bool_]
    missing_left: NDArray[np.bool_]
    seen_missing: NDArray[np.bool_]  # the node has missing values in the column
    threshold: NDArray[np.float64]

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
        )

    def take(self, nodes: NDArray[Any]) -> Splits:
        """The splits of some nodes."""
        return Splits(*(field[nodes] for field in self))


class Subtrees(NamedTuple):
    """Nodes of finished subtrees: each root first, children in pairs, -1 for no child."""

    root: Int64s
    first_child: Int64s
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    gain: NDArray[np.float64]
    begin: Int64s
    end: Int64s


class Backend(Protocol):
    """The primitives of one device, for one table."""

    name: str
    channels: int  # of a histogram cell

    def __init__(self, values: Any, missing: NDArray[np.bool_], task: Task, n_threads: int) -> None:
        """Take a table (n, d), float32 or float64 with NaN where missing, and its task."""

    def encode(self, max_bins: int) -> None:
        """Code every column into at most `max_bins` bins, missing values included."""

    @property
    def histogram_cells(self) -> int:
        """Bins of all columns together. Needs `encode`."""

    @property
    def histogram_bytes(self) -> int:
        """Bytes of one node's histogram. Needs `encode`."""

    @property
    def most_histogram_bytes(self) -> int:
        """Budget of the histograms of one level, in bytes."""

    def new_histograms(self, m: int) -> Any:
        """Zeroed histograms of m nodes, shape (m, histogram_cells x channels)."""

    def histogram(self, begin: Int64s, end: Int64s, out: Any, slots: Int64s) -> None:
        """Add the histogram of node j to ``out[slots[j]]``, which is zero."""

    def subtract(
        self, whole: Any, whole_slots: Int64s, out: Any, part_slots: Int64s, slots: Int64s
    ) -> None:
        """``out[slots] = whole[whole_slots] - out[part_slots]``: the larger siblings.

        A part may lie in the place of its result.
        """

    def score(self, histograms: Any, slots: Int64s) -> Any:
        """Best boundary and greatest bound of every column of every node, on the device."""

    def refine(
        self,
        begin: Int64s,
        end: Int64s,
        histograms: Any,
        slots: Int64s,
        scores: Any,
        keys: NDArray[np.uint64],
    ) -> Splits:
        """Choose the split of each node, looking into bins where the task is exact."""

    def partition(
        self, begin: Int64s, end: Int64s, splits: Splits
    ) -> tuple[Int64s, NDArray[np.float64]]:
        """Partition the entries of nodes that all split, stably.

        Returns the first entry of each second child, and each split's threshold.
        """

    def finish(
        self, begin: Int64s, end: Int64s, depth: Int64s, keys: NDArray[np.uint64]
    ) -> Subtrees:
        """Grow the subtrees of nodes whole; their entries end in leaf order."""

    def node_statistics(self, begin: Int64s, end: Int64s) -> Int64s:
        """Row statistics, shape (m, statistics), of m nodes."""

    def report(self) -> dict[str, int]:
        """Work done: ``scanned_pairs``, ``refined_pairs``, in (row, column) pairs."""
