"""Sub-bins: candidate bins of large nodes are counted again, more finely, and pruned once more.

    a bin          |                       xx            |     x: the rows of candidate sub-bins
    its sub-bins   |    |    |    |    |    |    |    |  |     equal widths, or nearly

The sub-bin of a value never falls as the value grows, so that the boundary of two sub-bins is a
real cut, and the bound of a sub-bin holds as that of a bin does. A boundary worth choosing keeps
the filled sub-bins on both its sides candidates: it is found, with its threshold, among their
sorted rows. So which sub-bins there are never changes a cut.

Two sources are counted: the pairs gathered for one bin (`subdivide`), where few bins are
candidates; and all rows of a node, column by column (`gputree.backends.cpu.cell_counts`), where
many are. The latter counts add up, and those of a larger sibling are those of the parent less the
smaller one's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import count_row, new_cut, precedes, row_count, scan_bin
from gputree.backends.cpu.encode import grid_cell
from gputree.backends.cpu.jit import borrowing, inner
from gputree.backends.cpu.layout import Pairs
from gputree.backends.cpu.score import add_cell, admissible, is_candidate, needed_bound
from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.criteria import begin, bound, score

# Sub-bins that are bounded together before they are looked at one by one.
RUN_CELLS = 8

# Sub-bins that a gathered bin is cut into, at most: their counters stay in a cache.
MOST_SUB_BINS = 1 << 12


class Cells(NamedTuple):
    """How the bins of a table are cut into sub-bins: ``size`` to a bin, equally wide.

    Bins end where the table's edges are: the sub-bins are the same for all nodes.
    """

    size: int
    first: NDArray[np.int64]  # (d + 1,) first sub-bin of each column; lossless ones have none
    low: NDArray  # (d, 256) half of where a bin begins
    scale: NDArray  # (d, 256) sub-bins per half unit
    half: np.floating  # 0.5 and the last sub-bin, in the dtype of the values
    top: np.floating
    narrow: np.floating  # half the width of the narrowest bin that can be cut


class Finer(NamedTuple):
    """What a large node, or several, are refined with; small nodes have None in its place."""

    cells: Cells
    counted: NDArray[np.bool_]  # (d,) columns that are counted into sub-bins
    counts: NDArray  # (sub-bins x channels,), where counted
    at_once: NDArray[np.bool_]  # (m,) nodes of the level in which no column goes alone first
    subdivided_rows: int  # bins of so many rows are subdivided before they are sorted
    cell_rows: int  # rows that a sub-bin of a subdivided bin holds on average


class SubBins(NamedTuple):
    """The sub-bins ``first .. first + size`` of one bin."""

    counts: NDArray  # flat, `channels` each
    place: NDArray[np.int64]  # of the first pair of each candidate, -1 of others
    first: int
    size: int


class Spot(NamedTuple):
    """Where a cut lies, but for its threshold."""

    column: int
    missing_left: bool
    bin: int
    rank: np.uint64  # of the column, see `tie_rank`


class Work(NamedTuple):
    """Scratch of a scan: statistics of shape (channels,)."""

    sorter: Sorter
    left: NDArray[np.int64]  # before a bin
    inside: NDArray[np.int64]  # before a sub-bin
    run: NDArray[np.int64]  # of, or before, a run of sub-bins
    scanned: NDArray[np.int64]  # before a pair


@inner
def new_work(channels):
    """Scratch for statistics of so many channels."""
    return Work(
        new_sorter(),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
    )


@borrowing
def keep_left(left, copy):
    """Copy the statistics `left`."""
    for k in range(left.size):
        copy[k] = left[k]


# --------------------------------------- sub-bins of one bin, which `work.left` is before
@borrowing
def cell_of(cells, f, b, x):
    """Sub-bin of a value x in bin b of column f; missing values are in the first of theirs."""
    bin_ = np.uintp(b)
    inside = grid_cell(x, cells.low[f, bin_], cells.scale[f, bin_], cells.half, cells.top)
    return np.uintp(cells.first[f]) + bin_ * np.uintp(cells.size) + np.uintp(inside)


@borrowing
def add_run(counts, at, size, total):
    """Let `total` be the statistics of `size` sub-bins from ``counts[at]`` on."""
    for k in range(total.size):
        total[k] = 0
    for c in range(size):
        add_cell(total, counts, at + c * total.size)


@borrowing
def mark_cells(node, cells, rows, work, needed):
    """Let ``cells.place`` be 0 where a sub-bin may hold the best cut, or end at it.

    They hold `rows` rows; `needed` is what bounds and scores must reach.
    """
    criterion, limits, weighted, total, _ = node
    counts, place, left, run = cells.counts, cells.place, work.inside, work.run
    channels = left.size
    keep_left(work.left, left)
    after = False  # the score of the boundary before this sub-bin reaches it
    c = cells.first
    at = c * channels
    end = c + cells.size
    while c < end:
        length = min(RUN_CELLS, end - c)
        add_run(counts, at, length, run)
        n = row_count(criterion, run, 0, channels, weighted)
        if n == 0 or (not after and bound(criterion, left, run, 0, total) < needed):
            add_cell(left, run, 0)
            rows -= n
            at += length * channels
            c += length
            continue
        for _ in range(length):
            n = row_count(criterion, counts, at, channels, weighted)
            if n > 0:
                if after or is_candidate(
                    criterion, limits, weighted, left, counts, at, n, total, needed
                ):
                    place[c] = 0
                add_cell(left, counts, at)
                rows -= n
                if rows == 0:
                    return
                after = (
                    admissible(criterion, limits, weighted, left, total)
                    and score(criterion, begin(criterion, left, total), left, total) >= needed
                )
                if after:
                    place[c] = 0
            at += channels
            c += 1


@borrowing
def place_cells(node, cells, used):
    """Reserve places from `used` on for the rows of candidates; returns the places used."""
    channels = node.total.size
    for c in range(cells.first, cells.first + cells.size):
        if cells.place[c] >= 0:
            cells.place[c] = used
            used += row_count(node.criterion, cells.counts, c * channels, channels, node.weighted)
    return used


@borrowing
def scan_cells(node, rows, cells, pairs, is_sorted, spot, work, cut):
    """The better of `cut` and the best cut inside runs of candidates, whose pairs are gathered.

    ``cells.place`` is behind the last pair of each now; those of a candidate may be sorted already.
    """
    criterion, weighted = node.criterion, node.weighted
    counts, place, left = cells.counts, cells.place, work.inside
    channels = left.size
    keep_left(work.left, left)
    start = end = np.int64(-1)  # pairs of a run of candidates, which `work.run` is before
    for c in range(cells.first, cells.first + cells.size):
        at = c * channels
        n = row_count(criterion, counts, at, channels, weighted)
        if n > 0:
            if place[c] >= 0:
                if start < 0:
                    start = place[c] - n
                    keep_left(left, work.run)
                end = place[c]
                if not is_sorted:
                    sort_pairs(pairs.values, pairs.items, end - n, end, work.sorter)
            elif start >= 0:
                cut = scan_sorted(node, rows, pairs, start, end, work.run, spot, work, cut)
                start = np.int64(-1)
            add_cell(left, counts, at)
    if start >= 0:
        cut = scan_sorted(node, rows, pairs, start, end, work.run, spot, work, cut)
    return cut


# ------------------------------------------------------------- one bin, from its gathered pairs
@borrowing
def scan_sorted(node, rows, pairs, first, last, left, spot, work, cut):
    """The better of `cut` and the best cut between the sorted pairs ``first .. last``.

    `left` holds the statistics before them, and is kept.
    """
    keep_left(left, work.scanned)
    value, threshold = scan_bin(node, rows, pairs, first, last, work.scanned)
    found = new_cut(value, spot.column, spot.missing_left, spot.bin, False, threshold, spot.rank)
    return found if value > -np.inf and precedes(found, cut) else cut


@borrowing
def scan_pairs(finer, node, rows, pairs, start, end, spot, work, report, cut):
    """The better of `cut` and the best cut between the gathered pairs ``start .. end`` of a bin.

    `work.left` is before the bin. `report` counts what is sorted.
    """
    if finer is None:
        is_sorted = spot.missing_left  # that side is tried last
    else:
        is_sorted = False
        if end - start >= finer.subdivided_rows:
            low, high = value_range(pairs.values, start, end)
            if low == high:
                return cut
            half = finer.cells.half
            if high * half - low * half > finer.cells.narrow:
                ends = low * half, high * half
                return subdivide(
                    finer, node, rows, pairs, start, end, ends, spot, work, report, cut
                )
    if not is_sorted:
        report[0] += end - start
        sort_pairs(pairs.values, pairs.items, start, end, work.sorter)
    return scan_sorted(node, rows, pairs, start, end, work.left, spot, work, cut)


@borrowing
def value_range(values, start, end):
    """The least and the greatest of some values."""
    low = high = values[start]
    for i in range(start, end):
        low = min(low, values[i])
        high = max(high, values[i])
    return low, high


@inner
def subdivide(finer, node, rows, pairs, start, end, ends, spot, work, report, cut):
    """As `scan_pairs`, of which only those of candidate sub-bins are sorted.

    Half the values are between the two `ends`.
    """
    (low, high), (values, items) = ends, pairs
    channels = node.total.size
    size = np.int64(2)
    while size < MOST_SUB_BINS and size * finer.cell_rows < end - start:
        size *= 2
    half = finer.cells.half
    top = values.dtype.type(size - 1)
    scale = values.dtype.type(size) / (high - low)
    counts = np.zeros(size * channels, np.int64)
    for i in range(start, end):
        at = np.int64(grid_cell(values[i], low, scale, half, top)) * channels
        count_row(node.criterion, rows, items[i], counts, at, channels)
    place = np.full(size, -1, np.int64)
    cells = SubBins(counts, place, np.int64(0), size)
    mark_cells(node, cells, end - start, work, needed_bound(node.criterion, cut[0], node.total))
    used = place_cells(node, cells, np.int64(0))
    if used == 0:
        return cut
    report[0] += used
    found = Pairs(np.empty(used, values.dtype), np.empty(used, items.dtype))
    for i in range(start, end):
        c = grid_cell(values[i], low, scale, half, top)
        at = place[c]
        if at >= 0:
            found.values[at] = values[i]
            found.items[at] = items[i]
            place[c] = at + 1
    return scan_cells(node, rows, cells, found, False, spot, work, cut)
