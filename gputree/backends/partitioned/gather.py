"""Kernels over one part: what leaves it is summed, or few rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.gather import no_lead
from gputree.backends.cpu.jit import PREFETCH_ROWS, kernel, pick, prefetch
from gputree.backends.cpu.refine import mark_alive, narrow, refine_columns
from gputree.backends.cpu.score import bar_of, row_count


class Gathered(NamedTuple):
    """Rows of living bins of one column in a node, part after part, each with its statistics."""

    code: NDArray  # (k, 1) uint8
    value: NDArray  # (k, 1)
    target: NDArray  # (k,)
    weight: NDArray | None  # (k,) int64
    square: NDArray | None  # (k,) int64


@kernel
def target_interval(rows, entries, first, last, rounded):
    """Where the target of all entries ``first .. last`` may lie; empty where they differ."""
    interval = (-np.inf, np.inf)
    for i in range(first, last):
        row = entries[i]
        interval = narrow(interval, rows.target[row], pick(rows.weight, row, 1), rounded)
        if interval[0] > interval[1]:
            break
    return interval


@kernel
def count_living(criterion, table, limits, weighted, cells, total, best, columns, counts):
    """Rows of the bins of `columns` that may hold a better cut than `best`, 0 of others.

    They are put to ``counts[offset + bin]``; returns what a bound must reach.
    """
    channels = total.size
    left = np.empty_like(total)
    position = np.empty(table.offset[-1], np.int64)
    bar = bar_of(criterion, best, total)
    for f in columns:
        mark_alive(criterion, table, limits, weighted, cells, f, total, bar, left, position, 0)
        for b in range(table.offset[f], table.offset[f + 1]):
            counts[b] = 0
            if position[b] >= 0:
                counts[b] = row_count(criterion, cells, b * channels, channels, weighted)
    return bar


@kernel
def gather_living(
    table, rows, entries, first, last, columns, alive, begins, places, codes, values, targets,
    weights, squares,
):  # fmt: skip
    """Append the rows of living bins of ``columns[c]`` to places ``begins[c] + places[c]``.

    ``alive[offset + bin]`` tells which these are.
    """
    weighted = rows.weight is not None
    regression = rows.square is not None
    offset = table.offset
    for i in range(first, last):
        prefetch(table.codes, entries[min(i + PREFETCH_ROWS, last - 1)], 0)
        row = entries[i]
        for c in range(columns.size):
            f = columns[c]
            code = table.codes[row, f]
            if not alive[offset[f] + code]:
                continue
            at = begins[c] + places[c]
            places[c] += 1
            codes[at, 0] = code
            values[at, 0] = table.values[row, f]
            targets[at] = rows.target[row]
            if weighted:
                weights[at] = pick(rows.weight, row, 1)
            if regression:
                squares[at] = pick(rows.square, row, 0)


@kernel
def refine_column(
    finer, criterion, table, rows, entries, limits, weighted, cells, total, bound, cut, report
):
    """The better of `cut` and the best cut inside the bins of a table of one column."""
    position = np.empty(table.offset[-1], np.int64)
    pending = np.zeros(1, np.int64)
    return refine_columns(
        finer, criterion, table, rows, entries, 0, entries.size, limits, weighted, cells, total,
        bound, pending, 1, 1, cut, position, 0, no_lead(), report,
    )  # fmt: skip
