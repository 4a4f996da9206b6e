"""Subsets of columns of more categories than bins, from statistics by category.

What leaves a part has the size of the column's categories, whatever its rows. Where statistics
are, the categories of a node are the bins of a table of one column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.backend import CpuBackend, Scores
from gputree.backends.cpu.categories import (
    Scratch,
    list_left,
    many_categories,
    new_scratch,
    score_subsets,
)
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.runs import new_runs
from gputree.backends.workers.counters import Counter


def count_column(part: Counter, sums: list[NDArray], first: Int64s, last: Int64s, f: int) -> None:
    """Add the rows of node j to ``sums[0][j]``: by category of column f, then missing ones."""
    part.count_categories(first, last, f, sums[0])


def score_counted(head: CpuBackend, f: int, counts: NDArray, scores: Scores, j: int) -> None:
    """Let the scores of node j have the best subset of column f."""
    own = _present(counts)
    if own.size == 0:
        return
    task, zero = head.task, np.zeros(1, np.int64)
    one: list[Any] = [field[j : j + 1, f : f + 1].copy() for field in scores[1:]]
    best, place, missing_left, _, order = one
    table, cells = _table(head, counts, own)
    score_subsets(
        task.criterion, table, many_categories(table, 1), head.rows, head.entries, zero, zero,
        task.limits._replace(monotonic=None), _scratch(head, own.size), cells, zero, zero, zero, 0,
        1, scores.total[j : j + 1], best, place, order, missing_left,
    )  # fmt: skip
    for whole, part in zip(scores[1:], one, strict=True):
        whole[j, f] = part[0, 0]


def list_counted(
    head: CpuBackend, f: int, counts: NDArray, scores: Scores, j: int
) -> NDArray[np.uint32]:
    """The categories of column f that go left in node j."""
    own = _present(counts)
    zero, found = np.zeros(1, np.int64), np.empty(1, np.int64)
    codes = np.empty(own.size, np.uint32)
    place, order = (scores[k][j : j + 1, f : f + 1].copy() for k in (2, 5))
    table, cells = _table(head, counts, own)
    list_left(
        head.task.criterion, table, many_categories(table, 1), head.rows, head.entries, zero, zero,
        _scratch(head, own.size), cells, zero, zero, zero, 0, 1, scores.total[j : j + 1], place,
        order, found, codes,
    )  # fmt: skip
    return own[codes[: found[0]]].astype(np.uint32)


def _present(counts: NDArray) -> Int64s:
    """Categories that a node has rows of, ascending."""
    return np.flatnonzero(counts[:-1].any(axis=1))


def _table(head: CpuBackend, counts: NDArray, own: Int64s) -> tuple[Table, NDArray]:
    """Some categories of a column as the bins of a table, and the histogram of a node."""
    bins = own.size + 1  # with that of missing values
    table = head.table._replace(
        offset=np.array([0, bins]),
        missing=np.ones(1, np.bool_),
        single=np.ones(bins, np.bool_),
        by_code=np.ones(1, np.bool_),
        categories=np.array([own.size]),
    )
    cells = counts[np.append(own, -1)].reshape(1, -1)
    return table, cells.astype(head.new_histograms(0).dtype)


def _scratch(head: CpuBackend, count: int) -> Scratch:
    """Scratch that holds the sums of so many categories."""
    scratch = new_scratch(head.table, head.task, 1, sorted_=False)
    assert scratch is not None
    room = count + 2
    return scratch._replace(runs=new_runs(room, room * max(head.task.n_classes, 3)))
