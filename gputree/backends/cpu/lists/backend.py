"""Attribute lists on the CPU: NumPy arrays, numba kernels, a pool of threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu import tuning
from gputree.backends.cpu.lists.partition import (
    assign_entries,
    move_entries,
    move_lists,
    sum_parts,
)
from gputree.backends.cpu.lists.score import score_columns
from gputree.backends.lists import Candidates, ColumnCodes, ListTask, Parts, Tests
from gputree.dtypes import MOST_ROWS, ROW
from gputree.threads import SPANS_PER_THREAD, cut, run


class Entries(NamedTuple):
    """Parts of rows, by node; `weight` is None where all weigh one unit."""

    target: NDArray[Any]
    weight: Int64s | None


class Lists(NamedTuple):
    """Entries by code and their codes, shape (d, E)."""

    item: NDArray[np.int32]
    code: NDArray[np.uint32]


class Memory:
    """Arrays that are used again: fresh memory costs more than what is done with it."""

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []

    def take(self, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
        """An array of any content."""
        size = shape[0] * shape[1]
        fitting = [a for a in self._free if a.dtype == dtype and a.size >= size]
        if not fitting:
            self._free = [a for a in self._free if a.dtype != dtype]  # too small: let them go
            return np.empty(shape, dtype)
        smallest = min(fitting, key=lambda a: a.size)
        self._free = [a for a in self._free if a is not smallest]
        return smallest[:size].reshape(shape)

    def give(self, array: NDArray[Any]) -> None:
        """Hand an array back that was taken, or is not needed any more."""
        owner = array if array.base is None else array.base
        self._free.append(owner.reshape(-1))


class CpuLists:
    """`gputree.backends.lists.ListBackend` on the host."""

    name = "cpu"
    most_entries = MOST_ROWS

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        self.codes = codes
        self.task = task
        self.n_threads = n_threads
        self.memory = Memory()

    def root(self) -> CpuLevel:
        """All rows in one node; the sorted columns become its lists, without a copy."""
        task, (d, n) = self.task, self.codes.order.shape
        entries = Entries(task.target, task.weight)
        weights = np.zeros((1, task.n_classes), np.int64)
        if task.weight is None:
            weights[0] = np.bincount(task.target, minlength=task.n_classes)
        else:
            np.add.at(weights[0], task.target, task.weight)
        return CpuLevel(
            self,
            entries,
            Lists(*self.codes),
            np.array([0]),
            np.array([n]),
            weights,
            np.zeros((d, 1), np.bool_),
        )


@dataclass
class _Assigned:
    """Tests, their parts, and the part of every entry."""

    tests: Tests
    parts: Parts
    child: NDArray[np.int32]
    part_weight: Int64s
    missing: Int64s

    def that_open(self, parts: Int64s) -> _Assigned:
        """Without the tests before and behind those of `parts`."""
        tests = self.tests
        first = int(np.searchsorted(tests.part, parts[0], side="right")) - 1
        last = int(np.searchsorted(tests.part, parts[-1], side="right"))
        own = Tests(
            node=tests.node[first:last],
            feature=tests.feature[first:last],
            cut=tests.cut[first:last],
            part=tests.part[first : last + 1],
        )
        return replace(self, tests=own, missing=self.missing[first:last])


class CpuLevel:
    """`gputree.backends.lists.Level` on the host."""

    def __init__(
        self,
        backend: CpuLists,
        entries: Entries,
        lists: Lists,
        begin: Int64s,
        end: Int64s,
        weights: Int64s,
        resting: NDArray[np.bool_],
    ) -> None:
        self.backend = backend
        self.entries = entries
        self.lists = lists
        self.begin = begin
        self.end = end
        self.weights = weights
        self.resting = resting
        self._assigned: _Assigned | None = None

    @property
    def rows(self) -> int:
        return self.entries.target.size

    def score(self) -> Candidates:
        task = self.backend.task
        d, m = self.resting.shape
        out = Candidates.empty(d, m)
        self._run(
            score_columns,
            self.end - self.begin,
            lambda f, g, a, b: (
                task.information, task.limits, task.missing_is_category, task.one_against_rest,
                task.nominal, *self.lists, self.entries.target, self.entries.weight, self.begin,
                self.end, self.weights, self.resting, f, g, a, b, out,
            ),
            columns=d,
        )  # fmt: skip
        self.resting = self.resting | (out.parts == 1)
        return out

    def assign(self, tests: Tests) -> Parts:
        task = self.backend.task
        m, n_parts = tests.node.size, int(tests.part[-1])
        child = np.empty(self.entries.target.size, np.int32)
        part_weight = np.empty(n_parts, np.int64)
        missing = np.zeros(m, np.int64)
        parts = Parts(
            code=np.empty(n_parts, np.uint32),
            rows=np.zeros(n_parts, np.int64),
            weights=np.zeros((n_parts, task.n_classes), np.int64),
        )
        sizes = (self.end - self.begin)[tests.node]
        self._run(
            assign_entries,
            sizes,
            lambda a, b: (
                task.nominal, task.missing_is_category, task.one_against_rest, *self.lists,
                self.entries.weight, self.begin, self.end, tests, a, b, child, parts.code,
                part_weight, missing,
            ),
        )  # fmt: skip
        self._run(
            sum_parts,
            sizes,
            lambda a, b: (
                self.entries.target, self.entries.weight, self.begin, self.end, tests, a, b,
                child, part_weight, parts.rows, parts.weights,
            ),
        )  # fmt: skip
        self._assigned = _Assigned(tests, parts, child, part_weight, missing)
        return parts

    def descend(self, parts: Int64s) -> CpuLevel:
        assert self._assigned is not None
        done = self._assigned.that_open(parts)
        tests, sizes = done.tests, done.parts.rows[parts]
        opened = np.searchsorted(parts, tests.part)
        end = np.cumsum(sizes)
        part_begin = np.full(done.part_weight.size, -1)
        part_begin[parts] = end - sizes
        route, spread, entries = self._move_entries(
            done, parts, opened, part_begin.copy(), int(end[-1])
        )
        shape = self.resting.shape[0], entries.target.size
        memory = self.backend.memory
        lists = Lists(memory.take(shape, ROW), memory.take(shape, np.uint32))
        skip = self.resting[:, tests.node]
        own = tests.feature[None, :] == np.arange(skip.shape[0])[:, None]
        if not self.backend.task.one_against_rest:  # one category is left in each part
            skip = skip | (own & self.backend.task.nominal[:, None])
        self._run(
            move_lists,
            (self.end - self.begin)[tests.node],
            lambda f, g, a, b: (
                *self.lists, self.begin, self.end, tests, a, b, f, g, skip, route, spread,
                parts, opened, part_begin, *lists,
            ),
            columns=skip.shape[0],
        )  # fmt: skip
        test = np.repeat(np.arange(tests.node.size), np.diff(opened))
        return CpuLevel(
            self.backend, entries, lists, end - sizes, end, done.parts.weights[parts],
            np.ascontiguousarray(skip[:, test]),
        )  # fmt: skip

    def _move_entries(
        self, done: _Assigned, parts: Int64s, opened: Int64s, place: Int64s, size: int
    ) -> tuple[Int64s, NDArray[np.int32], Entries]:
        """Where the entries of this level go, and those of the next."""
        tests, old = done.tests, self.entries
        room = done.missing * np.diff(opened)
        spread_begin = np.cumsum(room) - room
        route = np.empty(old.target.size, np.int64)
        spread = np.empty(int(room.sum()), ROW)
        new = Entries(
            np.empty(size, old.target.dtype),
            None if old.weight is None else np.empty(size, np.int64),
        )
        self._run(
            move_entries,
            (self.end - self.begin)[tests.node],
            lambda a, b: (
                *old, self.begin, self.end, tests, a, b, done.child, done.part_weight, place,
                parts, opened, spread_begin, route, spread, *new,
            ),
        )  # fmt: skip
        return route, spread, new

    def close(self) -> None:
        for array in self.lists:
            self.backend.memory.give(array)

    def _run(self, kernel: Any, sizes: Int64s, arguments: Any, columns: int = 0) -> None:
        run_spans(self.backend.n_threads, kernel, sizes, arguments, columns)


def run_spans(threads: int, kernel: Any, sizes: Int64s, arguments: Any, columns: int = 0) -> None:
    """Run a kernel over spans of nodes of `sizes` entries, and of columns where it has any.

    ``arguments(first, last)`` are those of nodes ``first .. last``; with columns,
    ``arguments(first_column, last_column, first, last)``.
    """
    total = int(sizes.sum())
    if total * max(columns, 1) <= tuning.TUNING.lists_span_cells:
        whole = (0, columns) if columns else ()
        kernel(*arguments(*whole, 0, sizes.size))
        return
    nodes = cut(sizes, total // tuning.TUNING.lists_span_entries)
    parts: list[tuple[int, ...]] = [*nodes]
    if columns and len(nodes) < threads * SPANS_PER_THREAD:
        parts = [(f, f + 1, *span) for span in nodes for f in range(columns)]
    elif columns:
        parts = [(0, columns, *span) for span in nodes]
    run(threads, kernel, [arguments(*part) for part in parts])
