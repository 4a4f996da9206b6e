"""CART over attribute lists on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cart_lists import CartTask, Cuts, CutTests, Halves
from gputree.backends.cpu.lists.backend import Lists, Memory, run_spans
from gputree.backends.cpu.lists.halves import assign_halves, move_halves, move_sorted, sum_halves
from gputree.backends.cpu.lists.score_cart import score_cuts
from gputree.backends.lists import ColumnCodes
from gputree.dtypes import ROW


class Rows(NamedTuple):
    """Row statistics of entries, by node; see `gputree.backends.base.Task`."""

    target: NDArray[Any]
    weight: Int64s | None
    square: Int64s | None
    square_rest: Int64s | None

    def room(self, size: int) -> Rows:
        """Empty arrays of the same kinds."""
        return Rows(*(None if a is None else np.empty(size, a.dtype) for a in self))  # type: ignore[arg-type]


class Sums(NamedTuple):
    """Rows, statistics and whether targets differ, of every node."""

    rows: Int64s
    sums: Int64s
    mixed: NDArray[np.bool_]

    def take(self, nodes: Int64s | slice) -> Sums:
        """Those of some nodes."""
        return Sums(self.rows[nodes], self.sums[nodes], self.mixed[nodes])


class CpuCartLists:
    """`gputree.backends.cart_lists.CartBackend` on the host."""

    name = "cpu"

    def __init__(self, codes: ColumnCodes, task: CartTask, n_threads: int) -> None:
        self.codes = codes
        self.task = task
        self.n_threads = n_threads
        self.memory = Memory()
        n_classes = task.task.n_classes
        self.classes = np.empty(n_classes, np.int32) if n_classes else None

    def root(self) -> CpuCartLevel:
        """All rows in one node; the sorted columns become its lists, without a copy."""
        task, (d, n) = self.task.task, self.codes.order.shape
        entries = Rows(task.target, task.weight, task.square, task.square_rest)
        begin, end, child = np.array([0]), np.array([n]), np.zeros(n, np.uint8)
        sums = self.sum_up(entries, begin, end, child)
        return CpuCartLevel(
            self, entries, Lists(*self.codes), begin, end, sums.take(slice(1)),
            np.zeros((d, 1), np.bool_),
        )  # fmt: skip

    def sum_up(self, entries: Rows, begin: Int64s, end: Int64s, child: NDArray[np.uint8]) -> Sums:
        """Statistics of both halves of nodes."""
        task, m = self.task.task, begin.size
        sums = Sums(
            rows=np.zeros(2 * m, np.int64),
            sums=np.zeros((2 * m, task.statistics), np.int64),
            mixed=np.empty(2 * m, np.bool_),
        )
        run_spans(
            self.n_threads, sum_halves, end - begin,
            lambda a, b: (
                task.criterion, task.limits.rounded, *entries, begin, end, child, a, b, *sums
            ),
        )  # fmt: skip
        return sums


@dataclass
class _Assigned:
    """Tests, the sums of their halves, and the half of every entry."""

    tests: CutTests
    sums: Sums
    child: NDArray[np.uint8]


class CpuCartLevel:
    """`gputree.backends.cart_lists.CartLevel` on the host."""

    def __init__(
        self,
        backend: CpuCartLists,
        entries: Rows,
        lists: Lists,
        begin: Int64s,
        end: Int64s,
        sums: Sums,
        resting: NDArray[np.bool_],
    ) -> None:
        self.backend = backend
        self.entries = entries
        self.lists = lists
        self.begin = begin
        self.end = end
        self.rows, self.sums, self.mixed = sums
        self.resting = resting
        self._assigned: _Assigned | None = None

    def score(self, asked: NDArray[np.bool_]) -> Cuts:
        backend, task = self.backend, self.backend.task
        d, m = asked.shape
        out = Cuts.empty(d, m)
        open_ = asked & ~self.resting
        run_spans(
            backend.n_threads, score_cuts, self.end - self.begin,
            lambda f, g, a, b: (
                task.task.criterion, task.task.limits, task.search, backend.classes, task.nominal,
                *self.lists, self.entries.target, self.entries.weight, self.begin, self.end,
                self.sums, open_, f, g, a, b, out,
            ),
            columns=d,
        )  # fmt: skip
        self.resting |= out.constant
        return out

    def assign(self, tests: CutTests) -> Halves:
        backend, task = self.backend, self.backend.task
        m, categories = tests.node.size, int(tests.category[-1])
        child = np.empty(self.entries.target.size, np.uint8)
        seen_missing = np.empty(m, np.bool_)
        code = np.empty(categories, np.uint32)
        is_left = np.empty(categories, np.bool_)
        begin, end = self.begin[tests.node], self.end[tests.node]
        run_spans(
            backend.n_threads, assign_halves, end - begin,
            lambda a, b: (
                task.task.criterion, task.search, backend.classes, task.nominal, *self.lists,
                self.entries.target, self.entries.weight, self.begin, self.end, self.sums, tests,
                a, b, child, seen_missing, code, is_left,
            ),
        )  # fmt: skip
        sums = backend.sum_up(self.entries, begin, end, child)
        self._assigned = _Assigned(tests, sums, child)
        return Halves(*sums, seen_missing, code, is_left)

    def descend(self, children: Int64s) -> CpuCartLevel:
        done, backend = self._assigned, self.backend
        assert done is not None
        node, sizes = done.tests.node, done.sums.rows[children]
        end = np.cumsum(sizes)
        place = np.full(2 * node.size, -1)
        place[children] = end - sizes
        route, entries = self._move_entries(done, place.copy(), int(sizes.sum()))
        lists = self._move_lists(node, route, place, entries.target.size)
        for array in self.lists:
            backend.memory.give(array)
        sums = done.sums.take(children)
        resting = np.ascontiguousarray(self.resting[:, node[children // 2]])
        return CpuCartLevel(backend, entries, lists, end - sizes, end, sums, resting)

    def _move_entries(
        self, done: _Assigned, place: Int64s, size: int
    ) -> tuple[NDArray[np.int32], Rows]:
        """Where the entries of this level go, and those of the next."""
        begin, end = self.begin[done.tests.node], self.end[done.tests.node]
        route = np.empty(self.entries.target.size, ROW)
        new = self.entries.room(size)
        run_spans(
            self.backend.n_threads, move_halves, end - begin,
            lambda a, b: (self.entries, begin, end, done.child, place, a, b, route, new),
        )  # fmt: skip
        return route, new

    def _move_lists(
        self, node: Int64s, route: NDArray[np.int32], place: Int64s, size: int
    ) -> Lists:
        """The lists of the next level, of `size` entries."""
        memory, (d, _) = self.backend.memory, self.resting.shape
        lists = Lists(memory.take((d, size), ROW), memory.take((d, size), np.uint32))
        begin, end = self.begin[node], self.end[node]
        skip = np.ascontiguousarray(self.resting[:, node])
        run_spans(
            self.backend.n_threads, move_sorted, end - begin,
            lambda f, g, a, b: (
                *self.lists, begin, end, place, f, g, a, b, skip, route, *lists
            ),
            columns=d,
        )  # fmt: skip
        return lists
