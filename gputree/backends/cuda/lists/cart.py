"""CART over attribute lists on CUDA: kernels in ``cuts.cu``, ``subsets.cu`` and ``halves.cu``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cart_lists import CartTask, Cuts, CutTests, Halves
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.layout import Chunks, to_device
from gputree.backends.cuda.lists import cuts
from gputree.backends.cuda.lists.cuts import Level, Rows, Table
from gputree.backends.cuda.lists.halves import Assigned, Sums, assign, move_entries, sum_up
from gputree.backends.cuda.lists.launch import Lists, flags
from gputree.backends.cuda.lists.partition import CHUNK_PLACES, Moves, move_lists
from gputree.backends.lists import ColumnCodes


class CudaCartLists:
    """`gputree.backends.cart_lists.CartBackend` on a CUDA device."""

    name = "cuda"

    def __init__(self, codes: ColumnCodes, task: CartTask, n_threads: int) -> None:
        self.codes = codes
        self.table = Table(
            kernels=Kernels(task.task.criterion, task.task.weight is not None, 32),
            task=task,
            nominal=flags(task.nominal),
        )

    def root(self) -> CudaCartLevel:
        """All rows in one node; the sorted columns become its lists."""
        task, (d, n) = self.table.task.task, self.codes.order.shape
        rest = (task.weight, task.square, task.square_rest)
        rows = Rows(
            to_device(task.target, np.int32 if task.n_classes else np.int64),
            *(None if column is None else to_device(column, np.int64) for column in rest),
        )
        lists = Lists(to_device(self.codes.order, np.int32), to_device(self.codes.code, np.uint32))
        begin, end = np.array([0]), np.array([n])
        chunks = Chunks.of(begin, end, CHUNK_PLACES)
        sums = sum_up(self.table, rows, chunks, cupy().zeros(n, dtype=np.uint8), 1)
        resting = np.zeros((d, 1), np.bool_)
        return CudaCartLevel(
            self.table, rows, lists, begin, end, Sums(*(a[:1] for a in sums)), resting
        )


class CudaCartLevel:
    """`gputree.backends.cart_lists.CartLevel` on a CUDA device."""

    def __init__(
        self,
        table: Table,
        rows: Rows,
        lists: Lists,
        begin: Int64s,
        end: Int64s,
        sums: Sums,
        resting: NDArray[np.bool_],
    ) -> None:
        self.table = table
        self.begin = begin
        self.end = end
        self.rows, self.sums, self.mixed = sums
        self.resting = resting
        self.level = Level(rows, lists, *(to_device(a) for a in (begin, end, self.sums)))
        self._assigned: Assigned | None = None

    def score(self, asked: NDArray[np.bool_]) -> Cuts:
        found = cuts.score(self.table, self.level, asked & ~self.resting, self.sums)
        self.resting = self.resting | found.constant
        return found

    def assign(self, tests: CutTests) -> Halves:
        self._assigned, halves = assign(
            self.table, self.level, self.begin, self.end, self.sums, tests
        )
        return halves

    def descend(self, children: Int64s) -> CudaCartLevel:
        done = self._assigned
        assert done is not None
        sizes, m = done.sums.rows[children], done.node.size
        end = np.cumsum(sizes)
        routes, rows = move_entries(self.table, self.level.rows, done, children)
        moves = Moves(
            sizes=done.end - done.begin,
            parts=np.full(m, 2),
            begin=to_device(done.begin),
            end=to_device(done.end),
            part=to_device(2 * np.arange(m + 1)),
        )
        skip = self.resting[:, done.node]
        lists = move_lists(self.table.kernels, self.level.lists, moves, routes, skip, int(end[-1]))
        sums = Sums(*(field[children] for field in done.sums))
        resting = np.ascontiguousarray(self.resting[:, done.node[children // 2]])
        del self.level, self._assigned
        return CudaCartLevel(self.table, rows, lists, end - sizes, end, sums, resting)
