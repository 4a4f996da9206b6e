"""The categories of a node as runs of the sorted list of a column, and their order.

    codes      | 0 0 0 | 2 2 | 3 3 3 3 | ? ? |     a run each; missing values behind them
    cells      |  sum  | sum |   sum   | sum |     statistics of their rows

Runs are ordered by the share of a class, or by their mean target; equal ones by their rows and
statistics. Codes, which stand for names, decide only between runs that are equal in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import inner, pick
from gputree.criteria import add_row, left_weight

# Statistics of all categories of a node, at most, that are held at once (128 MB). Beyond,
# with more than two classes, single categories are tried, counted row by row.
MOST_CELLS = 1 << 24


class Runs(NamedTuple):
    """Room for the runs of a node; the one after the known ones holds the missing values."""

    begin: NDArray[np.int64]  # (room + 1,) first place of each run
    cells: NDArray[np.int64]  # (room x channels,) statistics of each run
    share: NDArray[np.float64]  # (room,)
    order: NDArray[np.int64]  # (room,) runs in order of their shares
    spare: NDArray[np.int64]  # (room,) scratch of sorting
    is_left: NDArray[np.bool_]  # (room,)


class Listed(NamedTuple):
    """The list of one column, and the statistics of its entries."""

    item: NDArray[np.int32]
    code: NDArray[np.uint32]
    target: NDArray[np.integer]
    weight: NDArray[np.int64] | None
    class_of: NDArray[np.int32] | None  # number of a class among those present


@inner
def new_runs(room, cells):
    """Room for so many runs, one of missing values included, and for their statistics."""
    return Runs(
        np.empty(room + 1, np.int64),
        np.empty(cells, np.int64),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.bool_),
    )


@inner
def count_runs(code, first, last):
    """Number of distinct codes in the sorted places ``first .. last``."""
    count = 0
    for i in range(first, last):
        count += i == first or code[i] != code[i - 1]
    return count


@inner
def find_runs(code, first, known, last, runs):
    """Set the beginnings of the runs; the one of missing values follows, then the end."""
    count = 0
    for i in range(first, known):
        if i == first or code[i] != code[i - 1]:
            runs.begin[count] = i
            count += 1
    runs.begin[count] = known
    runs.begin[count + 1] = last


@inner
def holds_cells(channels, count):
    """Whether the statistics of all runs are held; they are by far the most memory."""
    return channels <= 3 or count * channels <= MOST_CELLS


@inner
def room_for(runs, channels, count):
    """`runs`, or a larger one where `count` runs and their statistics do not fit."""
    cells = (count + 1) * channels if holds_cells(channels, count) else 2 * channels
    if count + 1 <= runs.share.size and cells <= runs.cells.size:
        return runs
    return new_runs(max(2 * count + 2, runs.share.size), max(2 * cells, runs.cells.size))


@inner
def sum_runs(criterion, listed, runs, count, channels):
    """Sum up `count` runs and the missing values behind them."""
    for c in range((count + 1) * channels):
        runs.cells[c] = 0
    for r in range(count + 1):
        for i in range(runs.begin[r], runs.begin[r + 1]):
            e = listed.item[i]
            t = listed.target[e]
            add_row(
                criterion, runs.cells, r * channels, np.int64(pick(listed.class_of, t, t)),
                np.int64(pick(listed.weight, e, 1)), 0,
            )  # fmt: skip


@inner
def sort_runs(criterion, runs, count, channels, k):
    """Order the runs by their share of statistic k: a merge sort; see `is_before`."""
    for r in range(count):
        weight = left_weight(criterion, runs.cells, r * channels)
        runs.share[r] = np.float64(runs.cells[r * channels + k]) / np.float64(weight)
        runs.order[r] = r
    width = 1
    while width < count:
        for begin_ in range(0, count, 2 * width):
            merge_runs(
                runs, channels, begin_, min(begin_ + width, count), min(begin_ + 2 * width, count)
            )
        runs.order[:count] = runs.spare[:count]
        width *= 2


@inner
def is_less(runs, channels, a, b):
    """Whether run a has fewer rows than run b, or as many and lower statistics."""
    rows_a = runs.begin[a + 1] - runs.begin[a]
    rows_b = runs.begin[b + 1] - runs.begin[b]
    if rows_a != rows_b:
        return rows_a < rows_b
    return is_lower(runs.cells, channels, a * channels, b * channels)


@inner
def is_lower(cells, channels, a, b):
    """Whether the statistics at ``cells[a]`` come before those at ``cells[b]``."""
    for c in range(channels):
        if cells[a + c] != cells[b + c]:
            return cells[a + c] < cells[b + c]
    return False


@inner
def is_before(runs, channels, a, b):
    """Whether run a comes before run b by share; of equal shares, the lesser run."""
    if runs.share[a] != runs.share[b]:
        return runs.share[a] < runs.share[b]
    return is_less(runs, channels, a, b)


@inner
def merge_runs(runs, channels, first, middle, last):
    """Merge the ordered runs ``first .. middle`` and ``middle .. last`` into `spare`."""
    a, b = first, middle
    for to in range(first, last):
        take_first = b == last
        if a < middle and not take_first:
            take_first = not is_before(runs, channels, runs.order[b], runs.order[a])
        if take_first:
            runs.spare[to] = runs.order[a]
            a += 1
        else:
            runs.spare[to] = runs.order[b]
            b += 1


@inner
def move_run(listed, runs, held, r, sign, left):
    """Move a run to the left (sign 1) or back (-1); returns the rows that this adds there."""
    if held:
        for c in range(left.size):
            left[c] += sign * runs.cells[r * left.size + c]
    else:
        for i in range(runs.begin[r], runs.begin[r + 1]):
            e = listed.item[i]
            t = listed.target[e]
            left[pick(listed.class_of, t, t)] += sign * np.int64(pick(listed.weight, e, 1))
    return sign * (runs.begin[r + 1] - runs.begin[r])
