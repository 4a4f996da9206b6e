"""Finer histograms: living bins of large nodes are counted again into cells, and sieved again.

    a bin          |                       xx            |     x: the rows of living cells
    its cells      |    |    |    |    |    |    |    |  |     equal widths, or nearly

A cell of a value never falls as the value grows, so that the boundary of two cells is a
real cut, whose score raises the bar, and the bound of a cell holds as that of a bin does.
A boundary worth choosing keeps the filled cells on both its sides alive: it is found again,
with its threshold, among their sorted rows. So which cells there are never changes a cut.

Two sources are counted: the pairs gathered for one bin (`sift`), where few bins are alive;
and all rows of a node, column by column (`count_cells`), where many are. The latter counts
add up, and those of a larger sibling are those of the parent less the smaller one's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cut import new_cut, precedes, scan_bin
from gputree.backends.cpu.encode import grid_cell
from gputree.backends.cpu.jit import inner, lent, pick
from gputree.backends.cpu.score import add_cell, admissible, bar_of, is_alive, row_count
from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.compilation import is_none, overload
from gputree.criteria import add_row, begin, bound, score

# Pairs gathered at once, per row of the node, before the last column of a group: bounds
# the memory of a refinement.
GATHER_SHARE = 2

# Cells that are sieved together before they are looked at one by one. Measured on noise,
# 1,000,000 rows x 14, cells of 128 rows: 15 ms a node without, 7 ms with.
RUN_CELLS = 8

# Cells that a gathered bin is cut into, at most: their counters stay in a cache.
MOST_SIFTED_CELLS = 1 << 12


class Cells(NamedTuple):
    """How the bins of a table are cut into cells: ``size`` to a bin, equally wide.

    Bins end where the table's edges are: the cells are the same for all nodes.
    """

    size: int
    first: NDArray[np.int64]  # (d + 1,) first cell of each column; lossless ones have none
    low: NDArray  # (d, 256) half of where a bin begins
    scale: NDArray  # (d, 256) cells per half unit
    half: np.floating  # 0.5 and the last cell, in the dtype of the values
    top: np.floating
    narrow: np.floating  # half the width of the narrowest bin that can be cut


class Finer(NamedTuple):
    """What a large node, or several, are refined with; small nodes have None in its place."""

    cells: Cells
    counted: NDArray[np.bool_]  # (d,) columns that are counted into cells
    counts: NDArray  # (cells x channels,), where counted
    at_once: NDArray[np.bool_]  # (m,) nodes of the level in which no column goes alone first
    sift_rows: int  # bins of so many rows are sifted before they are sorted
    cell_rows: int  # rows that a cell of a sifted bin holds on average


# ------------------------------------------------- the cells of one bin
@lent
def add_run(counts, at, size, total):
    """Let `total` be the statistics of `size` cells from ``counts[at]`` on."""
    for k in range(total.size):
        total[k] = 0
    for c in range(size):
        add_cell(total, counts, at + c * total.size)


@lent
def best_boundary(criterion, limits, weighted, counts, at, size, rows, left, total, run, best):
    """The better of the score `best` and those of boundaries between filled cells of a bin.

    Its `rows` rows are in the cells from ``counts[at]`` on; `left` and `run` are used up.
    """
    channels = left.size
    end = at + size * channels
    while at < end:
        length = min(RUN_CELLS * channels, end - at)
        add_run(counts, at, length // channels, run)
        n = row_count(criterion, run, 0, channels, weighted)
        if n == 0 or bound(criterion, left, run, 0, total) < bar_of(criterion, best, total):
            add_cell(left, run, 0)
            rows -= n
            at += length
            continue
        for _ in range(length // channels):
            n = row_count(criterion, counts, at, channels, weighted)
            if n > 0:
                add_cell(left, counts, at)
                rows -= n
                if rows == 0:
                    return best
                if admissible(criterion, limits, weighted, left, total):
                    best = max(best, score(criterion, begin(criterion, left, total), left, total))
            at += channels
    return best


@lent
def mark_cells(
    criterion, limits, weighted, counts, at, size, rows, left, total, run, bar, place, place_at
):
    """Let ``place[place_at + cell]`` be 0 where a cell may hold the best cut, or end at it.

    The cells are those of `best_boundary`; `left` and `run` are used up.
    """
    channels = left.size
    after = False  # the boundary before this cell reaches the bar
    end = place_at + size
    while place_at < end:
        length = min(RUN_CELLS, end - place_at)
        add_run(counts, at, length, run)
        n = row_count(criterion, run, 0, channels, weighted)
        if n == 0 or (not after and bound(criterion, left, run, 0, total) < bar):
            add_cell(left, run, 0)
            rows -= n
            at += length * channels
            place_at += length
            continue
        for c in range(place_at, place_at + length):
            n = row_count(criterion, counts, at, channels, weighted)
            if n > 0:
                if after or is_alive(criterion, limits, weighted, left, counts, at, n, total, bar):
                    place[c] = 0
                add_cell(left, counts, at)
                rows -= n
                if rows == 0:
                    return
                after = (
                    admissible(criterion, limits, weighted, left, total)
                    and score(criterion, begin(criterion, left, total), left, total) >= bar
                )
                if after:
                    place[c] = 0
            at += channels
        place_at += length


@lent
def place_cells(criterion, weighted, counts, at, size, channels, place, place_at, used):
    """Reserve places from `used` on for the rows of marked cells; returns the places used."""
    for c in range(place_at, place_at + size):
        if place[c] >= 0:
            place[c] = used
            used += row_count(criterion, counts, at, channels, weighted)
        at += channels
    return used


@lent
def scan_cells(
    criterion, rows, limits, weighted, counts, at, size, left, total, place, place_at, values,
    items, is_sorted, f, missing_left, b, work, cut,
):  # fmt: skip
    """The better of `cut` and the best cut inside runs of living, gathered cells of bin b.

    ``place[place_at + cell]`` is behind the cell's last row now; `left` is used up.
    """
    channels = left.size
    start = end = np.int64(-1)
    for c in range(place_at, place_at + size):
        n = row_count(criterion, counts, at, channels, weighted)
        if n > 0:
            if place[c] >= 0:
                if start < 0:
                    start = place[c] - n
                    for k in range(channels):
                        work.run[k] = left[k]
                end = place[c]
                if not is_sorted:
                    sort_pairs(values, items, end - n, end, work.sorter)
            elif start >= 0:
                cut = scan_sorted(
                    criterion, rows, limits, weighted, values, items, start, end, work.run, total,
                    f, missing_left, b, work.scanned, cut,
                )  # fmt: skip
                start = np.int64(-1)
            add_cell(left, counts, at)
        at += channels
    if start >= 0:
        cut = scan_sorted(
            criterion, rows, limits, weighted, values, items, start, end, work.run, total, f,
            missing_left, b, work.scanned, cut,
        )  # fmt: skip
    return cut


# ------------------------------------------------- one bin, from its gathered pairs
@lent
def scan_sorted(
    criterion, rows, limits, weighted, values, items, first, last, left, total, f, missing_left,
    place, scanned, cut,
):  # fmt: skip
    """The better of `cut` and the best cut between sorted pairs, inside bin `place` of column f.

    `left` holds the statistics before the pairs, and is kept; `scanned` is scratch.
    """
    channels = left.size
    for c in range(channels):
        scanned[c] = left[c]
    value, threshold = scan_bin(
        criterion, rows.target, rows.weight, limits,
        row_count(criterion, left, 0, channels, weighted),
        row_count(criterion, total, 0, channels, weighted), values, items, first, last, scanned,
        total,
    )  # fmt: skip
    found = new_cut(value, f, missing_left, place, False, threshold)
    return found if value > -np.inf and precedes(found, cut) else cut


class Work(NamedTuple):
    """Scratch of a scan."""

    sorter: Sorter
    scanned: NDArray[np.int64]  # statistics left of the cut, left of a bin, of a run of cells
    inside: NDArray[np.int64]
    run: NDArray[np.int64]


@inner
def new_work(channels):
    """Scratch for statistics of so many channels."""
    return Work(
        new_sorter(),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
    )


def scan_pairs(
    finer, criterion, rows, limits, weighted, values, items, start, end, left, total, f,
    missing_left, b, work, report, cut,
):  # fmt: skip
    """The better of `cut` and the best cut between the gathered pairs ``start .. end`` of bin b.

    `left` holds the statistics before the bin, and is kept. `report` counts what is sorted.
    """
    scan = _sort_and_scan if finer is None else _sift_and_scan
    return scan(
        finer, criterion, rows, limits, weighted, values, items, start, end, left, total, f,
        missing_left, b, work, report, cut,
    )  # fmt: skip


@overload(scan_pairs)
def _scan_pairs(
    finer, criterion, rows, limits, weighted, values, items, start, end, left, total, f,
    missing_left, b, work, report, cut,
):  # fmt: skip
    return _sort_and_scan if is_none(finer) else _sift_and_scan


def _sort_and_scan(
    finer, criterion, rows, limits, weighted, values, items, start, end, left, total, f,
    missing_left, b, work, report, cut,
):  # fmt: skip
    if not missing_left:  # else they are sorted already
        report[0] += end - start
        sort_pairs(values, items, start, end, work.sorter)
    return scan_sorted(
        criterion, rows, limits, weighted, values, items, start, end, left, total, f,
        missing_left, b, work.scanned, cut,
    )  # fmt: skip


def _sift_and_scan(
    finer, criterion, rows, limits, weighted, values, items, start, end, left, total, f,
    missing_left, b, work, report, cut,
):  # fmt: skip
    if end - start >= finer.sift_rows:
        low, high = value_range(values, start, end)
        if low == high:
            return cut
        half = finer.cells.half
        if high * half - low * half > finer.cells.narrow:
            return sift(
                finer, criterion, rows, limits, weighted, values, items, start, end, low * half,
                high * half, left, total, f, missing_left, b, work, report, cut,
            )  # fmt: skip
    report[0] += end - start
    sort_pairs(values, items, start, end, work.sorter)
    return scan_sorted(
        criterion, rows, limits, weighted, values, items, start, end, left, total, f,
        missing_left, b, work.scanned, cut,
    )  # fmt: skip


@lent
def next_column(bounds, pending, n_pending, bar):
    """Place in `pending` of the column with the greatest bound that reaches `bar`, or -1."""
    at = -1
    for i in range(n_pending):
        if bounds[pending[i]] >= bar and (at < 0 or bounds[pending[i]] > bounds[pending[at]]):
            at = i
    return at


@lent
def keep_left(left, copy):
    """Copy the statistics `left`."""
    for k in range(left.size):
        copy[k] = left[k]


@lent
def value_range(values, start, end):
    """The least and the greatest of some values."""
    low = high = values[start]
    for i in range(start, end):
        low = min(low, values[i])
        high = max(high, values[i])
    return low, high


@inner
def sift(
    finer, criterion, rows, limits, weighted, values, items, start, end, low, high, left, total, f,
    missing_left, b, work, report, cut,
):  # fmt: skip
    """As `scan_pairs`, of which only those of living cells are sorted.

    Half the values are between `low` and `high`.
    """
    channels = left.size
    half = finer.cells.half
    size = 2
    while size < MOST_SIFTED_CELLS and size * finer.cell_rows < end - start:
        size *= 2
    top = values.dtype.type(size - 1)
    scale = values.dtype.type(size) / (high - low)
    counts = np.zeros(size * channels, np.int64)
    for i in range(start, end):
        row = items[i]
        at = np.int64(grid_cell(values[i], low, scale, half, top)) * channels
        add_row(
            criterion, counts, at, rows.target[row], pick(rows.weight, row, 1),
            pick(rows.square, row, 0),
        )  # fmt: skip
        if weighted:
            counts[at + channels - 1] += 1
    keep_left(left, work.inside)
    best = best_boundary(
        criterion,
        limits,
        weighted,
        counts,
        0,
        size,
        end - start,
        work.inside,
        total,
        work.run,
        cut[0],
    )
    keep_left(left, work.inside)
    place = np.full(size, -1, np.int64)
    mark_cells(
        criterion, limits, weighted, counts, 0, size, end - start, work.inside, total, work.run,
        bar_of(criterion, best, total), place, 0,
    )  # fmt: skip
    used = place_cells(criterion, weighted, counts, 0, size, channels, place, 0, np.int64(0))
    if used == 0:
        return cut
    report[0] += used
    sifted = np.empty(used, values.dtype)
    sifted_items = np.empty(used, items.dtype)
    for i in range(start, end):
        c = grid_cell(values[i], low, scale, half, top)
        at = place[c]
        if at >= 0:
            sifted[at] = values[i]
            sifted_items[at] = items[i]
            place[c] = at + 1
    keep_left(left, work.inside)
    return scan_cells(
        criterion, rows, limits, weighted, counts, 0, size, work.inside, total, place, 0, sifted,
        sifted_items, False, f, missing_left, b, work, cut,
    )  # fmt: skip
