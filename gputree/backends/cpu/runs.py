"""Category groups of a node, called runs: their rows, their statistics, their order.

    rows       | 0 0 0 | 2 2 | 3 3 3 3 | ? ? |     by category; missing values behind them
    cells      |  sum  | sum |   sum   | sum |     statistics of their rows

Cells are those of a histogram, or sums over the rows where these are sorted. Runs are ordered by
the weight fraction of a class, or by their mean target; equal ones by their rows and statistics.
Codes, which stand for names, decide only between runs that are equal in everything else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import MOST_CELLS
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.compilation import borrowing, jitable, pick, written_out
from gputree.criteria import add_row, left_weight


class Runs(NamedTuple):
    """Scratch for the runs of a node: one per category, then one of missing values."""

    begin: Int64s  # (size + 1,) first of the node's rows, by category, in each run
    code: Int64s  # (size,) category of each run, ascending
    cells: Int64s  # (size x channels,) statistics of each run
    share: Floats  # (size,) weight fraction of a class, or mean target
    order: Int64s  # (size,) runs in the order of `share`
    spare: Int64s  # (size,) scratch of sorting
    is_left: Bools  # (size,)


class Listed(NamedTuple):
    """The rows of a node, sorted by category, where sums per category are not stored."""

    item: Int32s
    target: NDArray[np.integer]
    weight: Int64s | None
    weighted: bool
    class_of: Int32s  # number of a class among those present


class NodeRuns(NamedTuple):
    """Arguments of the search of category subsets in a node."""

    runs: Runs
    number: int  # of known categories
    listed: Listed
    has_sums: bool  # the statistics of runs are in ``runs.cells``; else rows move one by one
    total: Int64s  # (channels,) statistics of the node
    left: Int64s  # of its left side
    missing: Int64s  # of missing values


@written_out
def node_runs(scratch, listed, count, sums_runs, channels):
    """Arguments of the search of subsets of `count` categories; statistics have `channels`."""
    sums = scratch.sums
    total, left, missing = sums[0, :channels], sums[1, :channels], sums[2, :channels]
    return NodeRuns(scratch.runs, count, listed, sums_runs, total, left, missing)


def new_runs(size: int, cells: int) -> Runs:
    """Scratch for `size` runs, the missing values' included, and `cells` statistics."""
    return Runs(
        begin=np.empty(size + 1, np.int64),
        code=np.empty(size, np.int64),
        cells=np.empty(cells, np.int64),
        share=np.empty(size, np.float64),
        order=np.empty(size, np.int64),
        spare=np.empty(size, np.int64),
        is_left=np.empty(size, np.bool_),
    )


@jitable
def holds_cells(channels, count):
    """Return True if the statistics of all runs are stored; they need by far the most memory."""
    return channels <= 3 or count * channels <= MOST_CELLS


def most_cells(channels: int, count: int) -> int:
    """Size of the statistics of up to `count` runs and of missing values."""
    all_cells = (count + 1) * max(channels, 3)
    return min(all_cells, max(MOST_CELLS + channels, 4 * (count + 1)))


@borrowing
def weight_of(listed, item):
    """Weight of a row in units."""
    return np.int64(pick(listed.weight, item, 1)) if listed.weighted else np.int64(1)


@borrowing
def number_present(sums, n_classes, class_of, total):
    """Copy the channels of a node's statistics that matter to `total`; returns their number.

    Classes present are numbered 0, 1, ... in their order; channels of regression (no classes) are
    kept.
    """
    if n_classes == 0:
        total[0] = sums[0]
        total[1] = sums[1]
        total[2] = 0  # squares do not change where a cut is best
        return 3
    present = 0
    for k in range(n_classes):
        class_of[k] = present
        if sums[k] > 0:
            total[present] = sums[k]
            present += 1
    return present


@borrowing
def clear_cells(runs, count, channels):
    """Zero the statistics of `count` runs and of missing values."""
    for c in range((count + 1) * channels):
        runs.cells[c] = 0


@borrowing
def add_to_run(criterion, runs, r, channels, target, weight):
    """Add a row, of a class by its number, to the statistics of run r."""
    add_row(criterion, runs.cells, r * channels, target, weight, 0)


@borrowing
def sort_runs(criterion, runs, count, channels, k):
    """Order the runs by their fraction of statistic k; see `is_before`."""
    for r in range(count):
        weight = left_weight(criterion, runs.cells, r * channels)
        runs.share[r] = np.float64(runs.cells[r * channels + k]) / np.float64(weight)
    order_runs(runs, count, channels)


@borrowing
def order_runs(runs, count, channels):
    """Order the runs by `share`, which is set: a merge sort; equal ones keep their order."""
    for r in range(count):
        runs.order[r] = r
    width = 1
    while width < count:
        for begin_ in range(0, count, 2 * width):
            merge_runs(
                runs, channels, begin_, min(begin_ + width, count), min(begin_ + 2 * width, count)
            )
        for r in range(count):
            runs.order[r] = runs.spare[r]
        width *= 2


@borrowing
def is_less(runs, channels, a, b):
    """Return True if run a has fewer rows than run b, or the same number and lower statistics."""
    rows_a = runs.begin[a + 1] - runs.begin[a]
    rows_b = runs.begin[b + 1] - runs.begin[b]
    if rows_a != rows_b:
        return rows_a < rows_b
    return is_lower(runs.cells, channels, a * channels, b * channels)


@borrowing
def is_lower(cells, channels, a, b):
    """Return True if the statistics at ``cells[a]`` come before those at ``cells[b]``."""
    for c in range(channels):
        if cells[a + c] != cells[b + c]:
            return cells[a + c] < cells[b + c]
    return False


@borrowing
def is_before(runs, channels, a, b):
    """Return True if run a comes before run b: by `share`, then by `is_less`."""
    if runs.share[a] != runs.share[b]:
        return runs.share[a] < runs.share[b]
    return is_less(runs, channels, a, b)


@borrowing
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


@borrowing
def move_run(node, r, sign, left):
    """Move a run to the left (sign 1) or back (-1); returns the rows that this adds there."""
    runs, listed = node.runs, node.listed
    first, last = runs.begin[r], runs.begin[r + 1]
    if node.has_sums:
        for c in range(left.size):
            left[c] += sign * runs.cells[r * left.size + c]
    else:
        for i in range(first, last):
            e = listed.item[i]
            left[listed.class_of[listed.target[e]]] += sign * weight_of(listed, e)
    return sign * (last - first)
