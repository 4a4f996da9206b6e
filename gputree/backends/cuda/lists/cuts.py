"""The best cut or subset of every column in every node, by a CART criterion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cart_lists import CartTask, Cuts
from gputree.backends.cpu.lists.runs import MOST_CELLS
from gputree.backends.cpu.lists.subsets import MOST_MOVED
from gputree.backends.cuda.finish import batches
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import LANES, Lists, flags, offsets

# Blocks that take turns, each with a vector of statistics. Not measured on a device yet.
MOST_BLOCKS = 1 << 14

# Statistics of categories that are held at once, at most, where nodes have so few.
BATCH_CELLS = MOST_CELLS


class Rows(NamedTuple):
    """Row statistics of entries, by node; see `gputree.backends.base.Task`."""

    target: Any  # int32 class, or int64 weight x target
    weight: Any  # int64 or None
    square: Any
    square_rest: Any


class Table(NamedTuple):
    """What all levels of one table share."""

    kernels: Kernels
    task: CartTask
    nominal: Any  # (d,) uint8

    @property
    def criterion(self) -> tuple[int, float, float]:
        """Parameters of the criterion, as the kernels take them."""
        criterion = self.task.task.criterion
        scale = getattr(criterion, "square_unit", getattr(criterion, "scale", 0.0))
        return self.task.task.n_classes, float(criterion.unit), float(scale)

    @property
    def search(self) -> tuple[int, float, int, int, int, int]:
        """What decides between searches, as the kernels take it."""
        many, rows, exhaustive, limited = self.task.search
        return many, float(rows), exhaustive, limited, MOST_MOVED, MOST_CELLS


class Level(NamedTuple):
    """Entries and lists of open nodes, on the device, with the nodes' statistics."""

    rows: Rows
    lists: Lists
    begin: Any  # (m,) int64
    end: Any
    sums: Any  # (m, S) int64


class Pairs(NamedTuple):
    """Nominal columns in nodes whose categories are looked at, on the host."""

    node: Int64s
    feature: Int64s
    categories: Int64s  # how many


def score(table: Table, level: Level, asked: NDArray[np.bool_], sums: Int64s) -> Cuts:
    """See `gputree.backends.cart_lists.CartLevel.score`; `sums` are the level's, on the host."""
    xp, limits = cupy(), table.task.task.limits
    d, m = asked.shape
    width, blocks = sums.shape[1], min(d * m, MOST_BLOCKS)
    out = xp.empty((7, d, m), dtype=np.int64)
    bounds = limits.min_samples_leaf, limits.min_weight_leaf
    table.kernels(
        "lists/cuts", "score_cuts", (blocks,), *table.criterion, *bounds, table.nominal, d, m,
        level.lists.item.shape[1], *level.lists, *level.rows[:2], level.begin, level.end,
        level.sums, width, flags(asked), xp.empty(blocks * width, dtype=np.int64), out,
        threads=LANES,
    )  # fmt: skip
    fields = out.get()
    feature, node = np.nonzero(fields[5])
    if feature.size:
        pairs = Pairs(node, feature, fields[5, feature, node])
        for _, arguments in runs_of(table, pairs, level, sums):
            table.kernels(
                "lists/subsets", "score_subsets", (arguments[0].size,), *table.criterion,
                *bounds, *table.search, *arguments, d, m, out, threads=LANES,
            )  # fmt: skip
        fields = out.get()
    value, missing_left, order, place, after, categories, constant = fields
    return Cuts(
        value.view(np.float64), missing_left.astype(np.bool_), order.astype(np.int32), place,
        after.astype(np.uint32), categories.astype(np.int32), constant.astype(np.bool_),
    )  # fmt: skip


def runs_of(
    table: Table, pairs: Pairs, level: Level, sums: Int64s
) -> Iterator[tuple[slice, tuple[Any, ...]]]:
    """Batches of pairs, with room for their runs, as the kernels of subsets take them."""
    xp, width = cupy(), sums.shape[1]
    held = _held(table.task, pairs, sums) * width
    bounds = batches(held, BATCH_CELLS)
    for first, last in zip(bounds, bounds[1:], strict=False):
        part = slice(first, last)
        count = pairs.categories[part]
        run_at, cell_at = offsets(count + 2), offsets(held[part])
        sort_at = offsets(_powers_of_two(count))
        room = (run_at, np.int64), (sort_at, np.float64), (sort_at, np.int32), (cell_at, np.int64)
        yield part, (
            to_device(pairs.node[part]), to_device(pairs.feature[part]), to_device(count),
            to_device(run_at[:-1]), to_device(sort_at[:-1]), to_device(cell_at[:-1]),
            level.lists.item.shape[1], *level.lists, *level.rows[:2], level.begin, level.end,
            level.sums, width, *(xp.empty(int(at[-1]), dtype=dtype) for at, dtype in room),
        )  # fmt: skip


def _held(task: CartTask, pairs: Pairs, sums: Int64s) -> Int64s:
    """Vectors of statistics each pair needs: of its categories, where they may be held."""
    channels = (sums[pairs.node] > 0).sum(axis=1) if task.task.n_classes else 2
    held = (channels <= 3) | (pairs.categories * channels <= MOST_CELLS)
    held |= pairs.categories <= task.search.most_exhaustive
    return np.where(held, pairs.categories + 2, 2)


def _powers_of_two(count: Int64s) -> Int64s:
    """The least powers of two that are at least `count` > 0."""
    return np.int64(1) << np.ceil(np.log2(count)).astype(np.int64)
