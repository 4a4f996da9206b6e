"""Exact cuts of all nodes of a level at once: only counts of cells leave the parts.

Rounds are few and passes over rows many, so that nodes, columns and bins share them: each round
counts the living intervals of all nodes into cells, raises the nodes' bars by the boundaries, and
keeps the cells that may still hold a better cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s
from gputree.backends.cpu.backend import CpuBackend, Scores
from gputree.backends.cpu.draw import drawn_columns
from gputree.backends.cpu.refine import bars_of, best_boundary_of
from gputree.backends.partitioned.reduction import Reducer, Sum
from gputree.backends.workers import tuning
from gputree.backends.workers.cells import fill_keys, living_cells, score_cells
from gputree.backends.workers.counters import Counter, Question
from gputree.backends.workers.shards import ShardedHistograms

Keys = NDArray[np.uint64]
Cut = tuple[float, int, bool, int, bool, float]


class BinKeys(NamedTuple):
    """The keys of values that the bins of d columns hold, and the bits that keys leave out."""

    low: Keys  # (d, 256)
    high: Keys  # (d, 256), that included
    shift: int


class Intervals(NamedTuple):
    """k ranges of keys in which a better cut may lie, by node, then column, then key."""

    node: Int64s
    column: Int64s
    bin: Int64s
    low: Keys
    high: Keys  # included
    rows: Int64s
    left: Int64s  # (k, channels) statistics before it, missing values right
    missing: Int64s  # (k, channels) of missing values

    def take(self, places: NDArray | slice) -> Intervals:
        """Some of them."""
        fields: list[Any] = [field[places] for field in self]
        return Intervals(*fields)


class Cuts(NamedTuple):
    """The best cut of each of m nodes so far, a field an array; see `cpu.cut.precedes`."""

    score: NDArray[np.float64]
    feature: Int64s
    missing_left: NDArray[np.bool_]
    bin: Int64s
    at_end: NDArray[np.bool_]
    threshold: NDArray[np.float64]

    @classmethod
    def none(cls, m: int) -> Cuts:
        """No cut yet."""
        whole, flag = np.zeros(m, np.int64), np.zeros(m, np.bool_)
        return cls(np.full(m, -np.inf), whole, flag, whole.copy(), flag.copy(), np.zeros(m))

    def of(self, j: int) -> Cut:
        """That of node j."""
        return tuple(field[j].item() for field in self)

    def put(self, j: int, cut: Cut) -> None:
        for field, value in zip(self, cut, strict=True):
            field[j] = value


class CutSearch:
    """Chooses the cuts of m nodes.

    Parameters
    ----------
    head : CpuBackend
        Over a coded table without rows: what all parts share.
    keys : BinKeys
    reducer : Reducer
    histograms : ShardedHistograms
    slots : int64 array of shape (m,)
    scores : Scores
    ranges : int64 arrays of shape (m, parts)
        First and last entries in each part.
    bounds : Bounds or None
    round_bytes : int
        Counts of one round, at most, unless one interval alone has more.
    """

    def __init__(
        self,
        head: CpuBackend,
        keys: BinKeys,
        reducer: Reducer,
        histograms: ShardedHistograms,
        slots: Int64s,
        scores: Scores,
        ranges: tuple[NDArray, NDArray],
        bounds: Bounds | None,
        round_bytes: int,
    ) -> None:
        self.round_bytes = round_bytes
        self.head, self.keys, self.reducer = head, keys, reducer
        self.histograms, self.slots, self.scores = histograms, slots, scores
        self.ranges, self.bounds = ranges, bounds
        self.weighted = head.task.weight is not None
        self.cuts = Cuts.none(slots.size)
        self.counted_pairs = 0

    def choose(self, open_: NDArray[np.bool_], node_keys: NDArray[np.uint64]) -> Cuts:
        """Best cuts of the open nodes: over all columns, or over those drawn for each.

        As `gputree.backends.cpu.refine.choose_cut`.
        """
        most = self.head.task.limits.max_features
        d = self.scores.best.shape[1]
        orders = {int(j): drawn_columns(most, node_keys[j], d) for j in np.flatnonzero(open_)}
        done = 0
        while done < d and orders:
            upto = min(max(most, done + 1), d)
            columns = {j: order[done:upto] for j, order in orders.items()}
            self._compare_boundaries(columns)
            if self.head.task.exact:
                self._refine(self._living_bins(columns))
            done = upto
            orders = {j: order for j, order in orders.items() if self.cuts.score[j] == -np.inf}
        return self.cuts

    def _compare_boundaries(self, columns: dict[int, Int64s]) -> None:
        own = self.scores
        for j, chosen in columns.items():
            cut = self.cuts.of(j)
            found = best_boundary_of(chosen, own.best[j], own.bin[j], own.missing_left[j], cut)
            self.cuts.put(j, found)

    def _living_bins(self, columns: dict[int, Int64s]) -> Intervals:
        """The bins of some columns of each node that may hold a better cut than its own."""
        best, bars = self.cuts.score, np.empty(self.slots.size)
        bars_of(self.head.task.criterion, best, self.scores.total, bars)
        reaching = {j: f[self.scores.bound[j, f] >= bars[j]] for j, f in columns.items()}
        found = self.histograms.living(self.slots, self.scores.total, best, reaching)
        low, high = (keys[found.column, found.bin] for keys in self.keys[:2])
        return Intervals(*found[:3], low, high, *found[3:])

    def _refine(self, intervals: Intervals) -> None:
        """Let the cuts be the best inside some intervals, too."""
        while intervals.node.size:
            self.counted_pairs += int(intervals.rows.sum())
            bits = self._bits(intervals.rows)
            shift, cells = _cells(intervals, bits)
            living = [
                self._look_into(intervals.take(own), shift[own], cells[own])
                for own in self._groups(cells)
            ]
            intervals = Intervals(*(np.concatenate(f) for f in zip(*living, strict=True)))

    @property
    def _cell_bytes(self) -> int:
        return 8 * (self.head.task.channels + 2)

    def _bits(self, rows: Int64s) -> Int64s:
        """Cells to each interval, as powers of two, few enough that all may have room."""
        own = tuning.TUNING
        bits = np.log2(np.maximum(rows / own.cell_rows, 1)).astype(np.int64)
        bits = bits.clip(own.least_bits, own.most_bits)
        while (bits > own.least_bits).any() and (
            1 << bits
        ).sum() * self._cell_bytes > self.round_bytes:
            bits = np.maximum(bits - 1, own.least_bits)
        return bits

    def _groups(self, cells: Int64s) -> Iterator[slice]:
        """Intervals that are counted together."""
        group = np.cumsum(cells) * self._cell_bytes // self.round_bytes
        ends = np.append(np.flatnonzero(np.diff(group)) + 1, cells.size)
        begin = 0
        for end in ends.tolist():
            yield slice(begin, end)
            begin = end

    def _look_into(self, own: Intervals, shift: Keys, cells: Int64s) -> Intervals:
        """Count intervals into cells: the living ones."""
        task = self.head.task
        first = np.append(0, np.cumsum(cells))
        counts = Sum(np.zeros(int(first[-1]) * task.channels, np.int64))
        least = Sum(np.full(int(first[-1]), np.inf), "minimum")
        greatest = Sum(np.full(int(first[-1]), -np.inf), "maximum")
        nodes, question = self._question(own, shift, first)
        self.reducer.map_reduce(
            count_intervals, [counts, least, greatest], self.ranges[0][nodes],
            self.ranges[1][nodes], question,
        )  # fmt: skip
        shared = (
            task.criterion, task.limits, self.weighted, self.bounds, self.scores.total, own.node,
            own.column, own.left, own.missing,
        )  # fmt: skip
        counted = (first, counts.array, least.array, greatest.array)
        score_cells(*shared, own.bin, *counted, *self.cuts)
        rows = np.zeros(int(first[-1]), np.int64)
        left = np.empty((rows.size, task.channels), np.int64)
        living_cells(*shared, *counted, self.cuts.score, rows, left)
        alive = np.flatnonzero(rows)
        owner = np.searchsorted(first, alive, side="right") - 1
        return Intervals(
            own.node[owner], own.column[owner], own.bin[owner],
            keys_of(least.array[alive], self.keys.shift),
            keys_of(greatest.array[alive], self.keys.shift), rows[alive], left[alive],
            own.missing[owner],
        )  # fmt: skip

    def _question(self, own: Intervals, shift: Keys, first: Int64s) -> tuple[Int64s, Question]:
        """The nodes that are asked about, and what is asked."""
        pair = np.flatnonzero(
            (np.diff(own.node, prepend=-1) != 0) | (np.diff(own.column, prepend=-1) != 0)
        )
        nodes = np.unique(own.node)
        node_pairs = np.append(np.searchsorted(own.node[pair], nodes), pair.size)
        question = Question(
            self.keys.shift, node_pairs, own.column[pair], np.append(pair, own.node.size), own.low,
            own.high, shift, first,
        )  # fmt: skip
        return nodes, question


def keys_of(values: NDArray, shift: int) -> Keys:
    """The keys of some values, in their shape."""
    keys = np.empty(values.shape, np.uint64)
    fill_keys(values.ravel(), shift, keys.reshape(-1))
    return keys


def _cells(own: Intervals, bits: Int64s) -> tuple[Keys, Int64s]:
    """How far keys are shifted in each interval, and how many cells that makes."""
    span = own.high - own.low
    length = np.frexp(span.astype(np.float64))[1]  # or one more, where it is rounded up
    shift = np.maximum(length - bits, 0).astype(np.uint64)
    return shift, (span >> shift).astype(np.int64) + 1


def count_intervals(
    part: Counter, sums: list[NDArray], first: Int64s, last: Int64s, own: Question
) -> None:
    """Add the rows of nodes to the cells of their living intervals."""
    part.count_intervals(first, last, own, sums)
