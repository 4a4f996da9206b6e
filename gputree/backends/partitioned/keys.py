"""Kernels over values of one bin, told apart by their bits: counted, gathered, scanned."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.cut import new_cut, precedes
from gputree.backends.cpu.finer import new_work, scan_sorted
from gputree.backends.cpu.jit import inner, kernel, pick
from gputree.backends.cpu.monotonic import at_column
from gputree.backends.cpu.score import add_cell, admissible, bar_of, is_alive, row_count
from gputree.backends.cpu.sort import sort_pairs
from gputree.backends.rules import midpoint
from gputree.compilation import jitable
from gputree.criteria import add_row, begin, score


@jitable
def key_of(x):
    """A whole number that rises with x: the bits of a float64, negative ones inverted."""
    bits = np.float64(np.float64(x) + 0.0).view(np.int64)  # -0.0 and 0.0 are one value
    flipped = bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(flipped).view(np.uint64) ^ np.uint64(0x8000000000000000)


@kernel
def count_keys(
    criterion, table, rows, entries, first, last, f, b, low, high, key, shift, weighted, channels,
    counts, least, greatest,
):  # fmt: skip
    """Add the rows of bin b of column f with values ``low .. high`` to the cells of their keys."""
    for i in range(first, last):
        row = entries[i]
        if table.codes[row, f] != b:
            continue
        x = np.float64(table.values[row, f])
        if not low <= x <= high:
            continue
        c = np.int64((key_of(x) - key) >> shift)
        add_row(
            criterion, counts, c * channels, rows.target[row], pick(rows.weight, row, 1),
            pick(rows.square, row, 0),
        )  # fmt: skip
        if weighted:
            counts[c * channels + channels - 1] += 1
        least[c] = min(least[c], x)
        greatest[c] = max(greatest[c], x)


@inner
def cut_between(
    criterion, limits, weighted, counts, least, greatest, first, last, left, total, f, missing_left,
    b, cut,
):  # fmt: skip
    """The better of `cut` and the best between filled cells ``first .. last``; `left` is used."""
    channels = total.size
    before = -1
    for c in range(first, last):
        if least[c] > greatest[c]:  # no rows
            continue
        if before >= 0 and admissible(criterion, limits, weighted, left, total):
            value = score(criterion, begin(criterion, left, total), left, total)
            threshold = midpoint(greatest[before], least[c])
            found = new_cut(value, f, missing_left, b, False, threshold)
            cut = found if precedes(found, cut) else cut
        add_cell(left, counts, c * channels)
        before = c
    return cut


@inner
def mark_cells(
    criterion, limits, weighted, counts, least, greatest, first, last, left, total, bar, rows
):
    """Let ``rows[c]`` be the rows of cells that may hold a better cut; `left` is used."""
    channels = total.size
    for c in range(first, last):
        n = row_count(criterion, counts, c * channels, channels, weighted)
        if least[c] < greatest[c] and is_alive(
            criterion, limits, weighted, left, counts, c * channels, n, total, bar
        ):
            rows[c] = n
        add_cell(left, counts, c * channels)


@kernel
def sift_cells(
    criterion, limits, weighted, counts, least, greatest, before, total, f, missing_left, b, cut,
    living,
):  # fmt: skip
    """The better of `cut` and the best between two filled cells; marks the `living` ones."""
    own = at_column(limits.monotonic, limits, 0)
    cut = cut_between(
        criterion, own, weighted, counts, least, greatest, 0, living.size, before.copy(), total, f,
        missing_left, b, cut,
    )  # fmt: skip
    bar = bar_of(criterion, cut[0], total)
    mark_cells(
        criterion, own, weighted, counts, least, greatest, 0, living.size, before.copy(), total,
        bar, living,
    )  # fmt: skip
    return cut


@kernel
def gather_between(
    table, rows, entries, first, last, f, b, low, high, used, values, targets, weights
):
    """Append the rows of bin b of column f with values ``low .. high``; how many there are."""
    for i in range(first, last):
        row = entries[i]
        if table.codes[row, f] != b:
            continue
        x = np.float64(table.values[row, f])
        if low <= x <= high:
            values[used] = table.values[row, f]
            targets[used] = rows.target[row]
            if weights is not None:
                weights[used] = pick(rows.weight, row, 1)
            used += 1
    return used


@kernel
def scan_interval(criterion, rows, limits, weighted, values, left, total, f, missing_left, b, cut):
    """The better of `cut` and the best cut between `values`, in any order, of `rows`."""
    own = at_column(limits.monotonic, limits, 0)
    items = np.arange(values.size)
    work = new_work(total.size)
    sort_pairs(values, items, 0, values.size, work.sorter)
    none = new_cut(-np.inf, f, missing_left, b, False, 0.0)
    found = scan_sorted(
        criterion, rows, own, weighted, values, items, 0, values.size, left, total, f,
        missing_left, b, work.scanned, none,
    )  # fmt: skip
    return found if found[0] > -np.inf and precedes(found, cut) else cut
