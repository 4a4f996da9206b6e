"""Subsets of columns of more categories than bins, from statistics by category.

A shard's report has the size of the column's categories, whatever its rows. To the coordinator, the
categories of a node are the bins of a table of one column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.categories import (
    NodeColumns,
    Scratch,
    list_left,
    many_categories,
    new_scratch,
    score_subsets,
)
from gputree.backends.cpu.layout import EntrySource, Nodes, Scores, Table
from gputree.backends.cpu.runs import new_runs
from gputree.backends.sharded.summary import TableSummary


def score_counted(summary: TableSummary, f: int, counts: NDArray, scores: Scores, j: int) -> None:
    """Set the scores of node j in column f to the scores of the best subset."""
    codes = _present(counts)
    if codes.size == 0:
        return
    found = _of_column(scores, j, f)
    score_subsets(*_search(summary, counts, codes, found))
    for whole, part in zip(scores[1:], found[1:], strict=True):
        whole[j, f] = part[0, 0]


def list_counted(
    summary: TableSummary, f: int, counts: NDArray, scores: Scores, j: int
) -> NDArray[np.uint32]:
    """Categories of column f that go left in node j."""
    categories = _present(counts)
    found, codes = np.empty(1, np.int64), np.empty(categories.size, np.uint32)
    list_left(*_search(summary, counts, categories, _of_column(scores, j, f)), found, codes)
    return categories[codes[: found[0]]].astype(np.uint32)


def _of_column(scores: Scores, j: int, f: int) -> Scores:
    """Copy the scores of column f of node j to a table of one node and column."""
    one: list[Any] = [field[j : j + 1, f : f + 1].copy() for field in scores[1:]]
    return Scores(scores.total[j : j + 1], *one)


def _search(
    summary: TableSummary, counts: NDArray, categories: Int64s, scores: Scores
) -> tuple[Any, ...]:
    """Arguments of the kernels of subsets: one node of a table of one column."""
    host, zero = summary.on_cpu(), np.zeros(1, np.int64)
    table, cells = _table(summary, counts, categories)
    return (
        host.subset_rules,
        EntrySource(table, host.rows, host.entries),
        many_categories(table, 1),
        Nodes(zero, zero, cells, zero),
        scores,
        NodeColumns(zero, zero),
        0,
        1,
        _scratch(summary, categories.size),
    )


def _present(counts: NDArray) -> Int64s:
    """Categories that rows of a node have, ascending."""
    return np.flatnonzero(counts[:-1].any(axis=1))


def _table(summary: TableSummary, counts: NDArray, categories: Int64s) -> tuple[Table, NDArray]:
    """Make a table with some categories of a column as bins, and the histogram of a node."""
    bins = categories.size + 1  # with that of missing values
    table = summary.table._replace(
        offset=np.array([0, bins]),
        missing=np.ones(1, np.bool_),
        single=np.ones(bins, np.bool_),
        by_code=np.ones(1, np.bool_),
        categories=np.array([categories.size]),
    )
    cells = counts[np.append(categories, -1)].reshape(1, -1)
    return table, cells.astype(summary.cell_dtype)


def _scratch(summary: TableSummary, count: int) -> Scratch:
    """Scratch with the sums of `count` categories."""
    scratch = new_scratch(summary.table, summary.task, 1, sorted_=False)
    assert scratch is not None
    size = count + 2
    return scratch._replace(runs=new_runs(size, size * max(summary.task.n_classes, 3)))
