"""Entries are assigned to the halves of splits, summed up and moved there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cart_lists import CutTests, Halves
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, to_device
from gputree.backends.cuda.lists import partition
from gputree.backends.cuda.lists.cuts import Level, Pairs, Rows, Table, runs_of
from gputree.backends.cuda.lists.launch import LANES


class Sums(NamedTuple):
    """Rows, statistics and whether targets differ, of every node, on the host."""

    rows: Int64s
    sums: Int64s
    mixed: Any


class Assigned(NamedTuple):
    """Splits and the halves of their entries."""

    node: Int64s  # places of the nodes in their level
    sums: Sums
    child: Any  # (E,) uint8
    begin: Int64s
    end: Int64s
    chunks: Chunks


def assign(
    table: Table, level: Level, begin: Int64s, end: Int64s, sums: Int64s, tests: CutTests
) -> tuple[Assigned, Halves]:
    """See `gputree.backends.cart_lists.CartLevel.assign`; places and `sums` of the level."""
    xp = cupy()
    m, categories = tests.node.size, int(tests.category[-1])
    marks = xp.zeros((3, max(categories, 1)), dtype=np.int64)
    _mark(table, level, sums, tests, marks)
    begin, end = begin[tests.node], end[tests.node]
    chunks = Chunks.of(begin, end, partition.CHUNK_PLACES)
    child = xp.empty(level.rows.target.size, dtype=np.uint8)
    seen_missing = xp.zeros(m, dtype=np.int32)
    last, _, is_left = marks
    table.kernels(
        "lists/halves", "assign_halves", (chunks.number,), chunks.owner, chunks.first,
        chunks.last, table.nominal, level.lists.item.shape[1], *level.lists,
        to_device(tests.feature, np.int32), to_device(tests.missing_left, np.int64),
        to_device(tests.place, np.int64), to_device(tests.category, np.int64), last, is_left,
        child, seen_missing,
    )  # fmt: skip
    found = sum_up(table, level.rows, chunks, child, m)
    _, code, is_left = marks.get()[:, :categories]
    halves = Halves(
        *found, seen_missing.get() > 0, code.astype(np.uint32), is_left.astype(np.bool_)
    )
    return Assigned(tests.node, found, child, begin, end, chunks), halves


def _mark(table: Table, level: Level, sums: Int64s, tests: CutTests, marks: Any) -> None:
    """End, code and side of every category of the splits of nominal columns."""
    count = np.diff(tests.category)
    chosen = np.flatnonzero(count)
    if chosen.size == 0:
        return
    node, feature = tests.node[chosen], tests.feature[chosen].astype(np.int64)
    pairs = Pairs(node, feature, count[chosen])
    for part, arguments in runs_of(table, pairs, level, sums):
        own = chosen[part]
        table.kernels(
            "lists/subsets", "mark_subsets", (own.size,), *table.criterion, *table.search,
            *arguments,
            to_device(tests.order[own], np.int64), to_device(tests.place[own], np.int64),
            to_device(tests.category[own], np.int64), *marks, threads=LANES,
        )  # fmt: skip


def sum_up(table: Table, rows: Rows, chunks: Chunks, child: Any, m: int) -> Sums:
    """Statistics of both halves of m ranges of entries."""
    xp, task = cupy(), table.task.task
    width = task.statistics
    number = xp.zeros(2 * m, dtype=np.int64)
    sums = xp.zeros((2 * m, width), dtype=np.int64)
    low, high = xp.empty(2 * m, dtype=np.int64), xp.empty(2 * m, dtype=np.int64)
    low.fill(np.iinfo(np.int64).min)
    high.fill(np.iinfo(np.int64).max)
    table.kernels(
        "lists/halves", "sum_halves", (chunks.number,), int(task.limits.rounded), chunks.owner,
        chunks.first, chunks.last, *rows, child, width, number, sums, low, high,
    )  # fmt: skip
    found = sums.get()
    mixed = (found > 0).sum(axis=1) > 1 if task.n_classes else low.get() > high.get()
    return Sums(number.get(), found, mixed)


def move_entries(
    table: Table, rows: Rows, assigned: Assigned, children: Int64s
) -> tuple[partition.Routes, Rows]:
    """Where the entries of a level go, and those of the next, which consists of `children`."""
    xp, chunks, m = cupy(), assigned.chunks, assigned.node.size
    sizes = assigned.sums.rows[children]
    size = int(sizes.sum())
    new = Rows(*(None if a is None else xp.empty(size, dtype=a.dtype) for a in rows))
    routes = partition.Routes(
        partition.Opened.of(children, sizes, 2 * np.arange(m + 1)),
        xp.empty(rows.target.size, dtype=np.int64),
        xp.empty(1, dtype=np.int32),  # no entry goes to several parts
    )
    table.kernels(
        "lists/halves", "move_halves", (chunks.number,), chunks.owner, chunks.first, chunks.last,
        assigned.child, routes.opened.begin, xp.zeros(2 * m, dtype=np.int64), *rows,
        routes.route, *new,
    )  # fmt: skip
    return routes, new
