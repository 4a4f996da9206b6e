"""Kernels of `gputree.backends.sharded.search`: intervals counted into cells, or sorted.

    a bin          |                    |xxxxxxxxx|                   |    x: a candidate
    its cells      |   |   |   |   |   |                                   counted in every shard
    boundaries         ^   ^   ^   ^   ^                                   scored by the coordinator

An interval is a range of keys (`gputree.backends.sharded.shard`) inside a bin of a node. It is
divided into cells, sub-bins of which the shards report the sums of the rows and the minimum and
maximum value, so that the boundary of two filled cells is a cut with its threshold. Cells that may
contain a better cut are the intervals of the next round, from their minimum to their maximum. One
value contains no cut, so that rounds end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Uint64s
from gputree.backends.binning import midpoint
from gputree.backends.cpu.cut import count_row, new_cut, precedes, row_count, tie_rank
from gputree.backends.cpu.layout import Node
from gputree.backends.cpu.monotonic import at_column, at_node
from gputree.backends.cpu.refine import (
    better_boundary,
    has_missing,
    in_column,
    mark_bins,
    next_filled,
    put_cut,
)
from gputree.backends.cpu.score import add_cell, admissible, column_bins, is_candidate, needed_bound
from gputree.backends.cpu.sort import new_sorter, sort_pairs
from gputree.backends.cpu.sub_bins import Spot, new_work
from gputree.base.dtypes import Bools, Floats, Int64s
from gputree.compilation import inner, kernel
from gputree.criteria import begin, is_pure, score


class Scoring(NamedTuple):
    """Arguments for scoring the cuts of m nodes."""

    criterion: Any
    limits: Any
    weighted: bool
    means: Bounds | None  # of the nodes, where columns are monotonic
    totals: Int64s  # (m, channels)
    keys: Uint64s  # of random draws in the nodes


class Intervals(NamedTuple):
    """k ranges of keys that may contain a better cut, by node, then column, then key."""

    node: Int64s
    column: Int64s
    bin: Int64s
    low: Uint64s
    high: Uint64s  # included
    rows: Int64s
    left: Int64s  # (k, channels) statistics before it, missing values right
    missing: Int64s  # (k, channels) of missing values

    def take(self, places: NDArray[Any] | slice) -> Intervals:
        fields: list[Any] = [field[places] for field in self]
        return Intervals(*fields)

    @classmethod
    def join(cls, found: list[Intervals]) -> Intervals:
        fields: list[Any] = [np.concatenate(field) for field in zip(*found, strict=True)]
        return cls(*fields)


class Cells(NamedTuple):
    """Sums of the cells of k intervals: interval i has ``first[i] .. first[i + 1]``."""

    first: Int64s  # (k + 1,)
    counts: Int64s  # (cells x channels,)
    lowest: Floats  # (cells,) values, infinity without rows
    highest: Floats


class Cuts(NamedTuple):
    """The best cut of each of m nodes so far, as arrays; see `cpu.cut.precedes`."""

    score: Floats
    feature: Int64s
    missing_left: Bools
    bin: Int64s
    at_end: Bools
    threshold: Floats
    rank: Uint64s  # of the column

    @classmethod
    def none(cls, m: int) -> Cuts:
        """Return the cuts of m nodes, none found yet."""
        whole, flag = np.zeros(m, np.int64), np.zeros(m, np.bool_)
        scores, thresholds, ranks = np.full(m, -np.inf), np.zeros(m), np.zeros(m, np.uint64)
        return cls(scores, whole, flag, whole.copy(), flag.copy(), thresholds, ranks)

    def copy(self) -> Cuts:
        fields: list[Any] = [field.copy() for field in self]
        return Cuts(*fields)


@kernel
def pure_nodes(criterion, totals, out):
    """Mark pure nodes, by their class weights, or sums of targets."""
    for j in range(totals.shape[0]):
        out[j] = is_pure(criterion, totals[j])


@kernel
def compare_boundaries(scoring, nodes, columns, first, scores, cuts):
    """Compare cuts with the best boundary, or subset, of some columns, and keep the better ones.

    Node ``nodes[i]`` has ``columns[first[i] .. first[i + 1]]``.
    """
    for i in range(nodes.size):
        j = nodes[i]
        cut = cut_of(cuts, j)
        for c in range(first[i], first[i + 1]):
            f = columns[c]
            rank = tie_rank(scoring.limits, scoring.keys[j], f)
            cut = better_boundary(
                f, scores.best[j], scores.bin[j], scores.missing_left[j], cut, rank
            )
        put(cuts, j, cut)


@inner
def cut_of(cuts, j):
    """Return the cut of node j."""
    value, f, missing_left = cuts.score[j], cuts.feature[j], cuts.missing_left[j]
    return new_cut(
        value, f, missing_left, cuts.bin[j], cuts.at_end[j], cuts.threshold[j], cuts.rank[j]
    )


@kernel
def merge_cuts(cuts, others):
    """Keep the better of `cuts` and `others`, of the same nodes."""
    for j in range(cuts.score.size):
        found, cut = cut_of(others, j), cut_of(cuts, j)
        put(cuts, j, found if precedes(found, cut) else cut)


@inner
def put(cuts, j, cut):
    """Set the cut of node j."""
    cuts.score[j], cuts.feature[j], cuts.missing_left[j] = cut.score, cut.column, cut.missing_left
    cuts.bin[j], cuts.at_end[j], cuts.threshold[j], cuts.rank[j] = (
        cut.place,
        cut.at_end,
        cut.threshold,
        cut.rank,
    )


@kernel
def record_cuts(scoring, table, nodes, cuts, seen_missing, next_bin, splits):
    """Record the cuts of some nodes as their splits, if their decrease is sufficient."""
    criterion, limits = scoring.criterion, scoring.limits
    for j in nodes:
        cut = cut_of(cuts, j)
        if cut.score > -np.inf:
            f, total = cut.column, scoring.totals[j]
            after = next_bin[j, f] if cut.at_end else -1
            put_cut(criterion, table, limits, total, cut, seen_missing[j, f], after, j, splits)


@kernel
def beside_best(criterion, table, weighted, histograms, slots, scores, bins, next_bin, seen):
    """Find the next bin with rows after the best boundary of every column of nodes, (m, d).

    It is -1 where there is none; `seen` is set where the node has missing values in the column.
    """
    channels = histograms.shape[1] // table.offset[-1]
    for j in range(slots.size):
        cells = histograms[slots[j]]
        for f in range(table.missing.size):
            seen[j, f] = has_missing(criterion, table, weighted, cells, f, channels)
            next_bin[j, f] = -1
            if scores[j, f] > -np.inf and table.categories[f] == 0:
                next_bin[j, f] = next_filled(
                    criterion, table, weighted, cells, f, bins[j, f], channels
                )


@kernel
def candidate_bins(scoring, table, histograms, slots, best, bounds, columns, first, out):
    """List the bins of some columns of nodes that may contain a better cut; returns their number.

    The columns of node i are ``columns[first[i] .. first[i + 1]]``; ``best[i]`` is the score of
    its best cut. `out` are `Candidates` of the size of all bins.
    """
    channels = scoring.totals.shape[1]
    candidate = np.empty(table.offset[-1], np.uint8)
    work, left = new_work(channels), np.empty(channels, np.int64)
    count = 0
    for i in range(slots.size):
        cells, total = histograms[slots[i]], scoring.totals[i]
        node = Node(scoring.criterion, scoring.limits, scoring.weighted, total, np.uint64(0))
        needed = needed_bound(scoring.criterion, best[i], total)
        for f in columns[first[i] : first[i + 1]]:
            if not bounds[i, f] >= needed:  # NaN of columns that may not split the node
                continue
            column_node = in_column(node, f)
            mark_bins(table, column_node, cells, f, needed, True, work, candidate)
            offset, value_bins, missing_at = column_bins(table, f, channels)
            left[:] = 0
            for b in range(value_bins):
                place = (offset + b) * channels
                if candidate[offset + b]:
                    out.node[count], out.column[count], out.bin[count] = i, f, b
                    out.rows[count] = row_count(
                        scoring.criterion, cells, place, channels, scoring.weighted
                    )
                    for c in range(channels):
                        out.left[count, c] = left[c]
                        out.missing[count, c] = 0
                    if missing_at >= 0:
                        add_cell(out.missing[count], cells, missing_at)
                    count += 1
                add_cell(left, cells, place)
    return count


@inner
def start_interval(before, missing, missing_left, left):
    """Set the statistics left of an interval; returns True if the side is to be tried."""
    tried = not missing_left
    for c in range(left.size):
        left[c] = before[c]
        if missing_left:
            left[c] += missing[c]
            tried |= missing[c] != 0
    return tried


@inner
def better_between(scoring, limits, left, total, cut, spot, threshold):
    """The better of `cut` and the one between `left` and the rest, if that is admissible."""
    if not admissible(scoring.criterion, limits, scoring.weighted, left, total):
        return cut
    value = score(scoring.criterion, begin(scoring.criterion, left, total), left, total)
    found = new_cut(value, spot.column, spot.missing_left, spot.bin, False, threshold, spot.rank)
    return found if precedes(found, cut) else cut


@inner
def limits_of(scoring, j, f):
    """Limits of cuts of column f in node j."""
    monotonic = scoring.limits.monotonic
    return at_column(monotonic, at_node(monotonic, scoring.limits, scoring.means, j), f)


@kernel
def score_cells(scoring, intervals, cells, cuts, begin_, end):
    """Compare cuts with those between cells of intervals ``begin_ .. end``; keep the better."""
    left = np.empty(scoring.totals.shape[1], np.int64)
    for i in range(begin_, end):
        j, f = intervals.node[i], intervals.column[i]
        limits, total, cut = limits_of(scoring, j, f), scoring.totals[j], cut_of(cuts, j)
        rank = tie_rank(limits, scoring.keys[j], f)
        for side in range(2):
            if not start_interval(intervals.left[i], intervals.missing[i], side == 1, left):
                continue
            spot = Spot(f, side == 1, intervals.bin[i], rank)
            before = -1
            for c in range(cells.first[i], cells.first[i + 1]):
                if cells.lowest[c] > cells.highest[c]:  # no rows
                    continue
                if before >= 0:
                    threshold = midpoint(cells.highest[before], cells.lowest[c])
                    cut = better_between(scoring, limits, left, total, cut, spot, threshold)
                add_cell(left, cells.counts, c * left.size)
                before = c
        put(cuts, j, cut)


@kernel
def candidate_cells(scoring, intervals, cells, best, rows, lefts, begin_, end):
    """Mark the cells of intervals ``begin_ .. end`` that may contain a better cut by ``rows[c]``.

    ``lefts[c]`` becomes the statistics before the cell where missing values go right.
    """
    criterion, weighted, counts = scoring.criterion, scoring.weighted, cells.counts
    channels = scoring.totals.shape[1]
    left = np.empty(channels, np.int64)
    for i in range(begin_, end):
        j, f = intervals.node[i], intervals.column[i]
        limits, total = limits_of(scoring, j, f), scoring.totals[j]
        needed = needed_bound(scoring.criterion, best[j], total)
        for side in range(2):
            if not start_interval(intervals.left[i], intervals.missing[i], side == 1, left):
                continue
            for c in range(cells.first[i], cells.first[i + 1]):
                offset = c * channels
                if side == 0:
                    for k in range(channels):
                        lefts[c, k] = left[k]
                if cells.lowest[c] < cells.highest[c] and rows[c] == 0:
                    n = row_count(criterion, counts, offset, channels, weighted)
                    if is_candidate(
                        criterion, limits, weighted, left, counts, offset, n, total, needed
                    ):
                        rows[c] = n
                add_cell(left, cells.counts, offset)


@kernel
def place_rows(found, first, next_, values, items):
    """Append rows to their intervals, whose first places are `first` and next ones ``next_``.

    ``items[k]`` becomes the number of the row at place k, relative to `first`.
    """
    for k in range(found.interval.size):
        position = next_[found.interval[k]]
        next_[found.interval[k]] = position + 1
        values[position] = found.value[k]
        items[position] = first + k


@kernel
def scan_intervals(scoring, intervals, rows, first, values, items, cuts, begin_, end):
    """Compare cuts with the best inside intervals ``begin_ .. end``; keep the better.

    Values of interval i are ``values[first[i] .. first[i + 1]]``, in any order; `items` are their
    places among `rows`. Both are sorted.
    """
    channels = scoring.totals.shape[1]
    left, sorter = np.empty(channels, np.int64), new_sorter()
    for i in range(begin_, end):
        j, f = intervals.node[i], intervals.column[i]
        limits, total, cut = limits_of(scoring, j, f), scoring.totals[j], cut_of(cuts, j)
        rank = tie_rank(limits, scoring.keys[j], f)
        sort_pairs(values, items, first[i], first[i + 1], sorter)
        for side in range(2):
            if not start_interval(intervals.left[i], intervals.missing[i], side == 1, left):
                continue
            spot = Spot(f, side == 1, intervals.bin[i], rank)
            for k in range(first[i], first[i + 1] - 1):
                count_row(scoring.criterion, rows, items[k], left, 0, channels)
                if values[k] < values[k + 1]:
                    threshold = midpoint(values[k], values[k + 1])
                    cut = better_between(scoring, limits, left, total, cut, spot, threshold)
        put(cuts, j, cut)
