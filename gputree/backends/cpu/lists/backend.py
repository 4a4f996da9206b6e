"""Attribute lists on the CPU: NumPy arrays, numba kernels, a pool of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu import tuning
from gputree.backends.cpu.layout import (
    Assigned,
    Entries,
    ListNodes,
    ListRules,
    Lists,
    Moved,
    OpenedNodes,
)
from gputree.backends.cpu.lists.partition import assign_entries, move_entries, move_lists, sum_parts
from gputree.backends.cpu.lists.score import score_columns
from gputree.backends.lists import CandidateTests, ColumnCodes, ListTask, TestParts, Tests
from gputree.base.dtypes import MOST_ROWS, ROW
from gputree.base.threads import SPANS_PER_THREAD, cut, run


class ArrayPool:
    """Reusable arrays: to allocate new memory costs more than the work done in it."""

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []

    def take(self, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
        """Return an array of undefined content."""
        size = shape[0] * shape[1]
        fitting = [a for a in self._free if a.dtype == dtype and a.size >= size]
        if not fitting:
            self._free = [a for a in self._free if a.dtype != dtype]  # too small: let them go
            return np.empty(shape, dtype)
        smallest = min(fitting, key=lambda a: a.size)
        self._free = [a for a in self._free if a is not smallest]
        return smallest[:size].reshape(shape)

    def give(self, array: NDArray[Any]) -> None:
        """Keep an array for reuse."""
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
        self.memory = ArrayPool()

    def root(self) -> CpuLevel:
        """Return the level of the root: the sorted columns become its lists, without a copy."""
        task, (d, n) = self.task, self.codes.order.shape
        entries = Entries(task.target, task.weight)
        weights = np.zeros((1, task.n_classes), np.int64)
        if task.weight is None:
            weights[0] = np.bincount(task.target, minlength=task.n_classes)
        else:
            np.add.at(weights[0], task.target, task.weight)
        nodes = ListNodes(np.array([0]), np.array([n]), weights, np.zeros((d, 1), np.bool_))
        return CpuLevel(self, entries, Lists(*self.codes), nodes)


def tests_of(tests: Tests, assigned: Assigned, parts: Int64s) -> tuple[Tests, Assigned]:
    """Tests of `parts` only, with their assigned parts."""
    first = int(np.searchsorted(tests.part, parts[0], side="right")) - 1
    last = int(np.searchsorted(tests.part, parts[-1], side="right"))
    restricted = Tests(
        node=tests.node[first:last],
        feature=tests.feature[first:last],
        cut=tests.cut[first:last],
        part=tests.part[first : last + 1],
    )
    return restricted, assigned._replace(missing=assigned.missing[first:last])


class CpuLevel:
    """`gputree.backends.lists.Level` on the host."""

    def __init__(self, backend: CpuLists, entries: Entries, lists: Lists, nodes: ListNodes) -> None:
        self.backend = backend
        self.entries = entries
        self.lists = lists
        self.begin, self.end, self.weights, self.resting = nodes
        self._assigned: tuple[Tests, TestParts, Assigned] | None = None

    @property
    def rows(self) -> int:
        return self.entries.target.size

    @property
    def _nodes(self) -> ListNodes:
        return ListNodes(self.begin, self.end, self.weights, self.resting)

    def score(self) -> CandidateTests:
        d, m = self.resting.shape
        out = CandidateTests.empty(d, m)
        rules = ListRules.of(self.backend.task)
        self._run(
            score_columns,
            self.end - self.begin,
            lambda fs, a, b: (rules, self.lists, self.entries, self._nodes, fs, a, b, out),
            columns=d,
        )
        self.resting = self.resting | (out.parts == 1)
        return out

    def assign(self, tests: Tests) -> TestParts:
        task, nodes, entries = self.backend.task, self._nodes, self.entries
        n_parts = int(tests.part[-1])
        parts = TestParts(
            code=np.empty(n_parts, np.uint32),
            rows=np.zeros(n_parts, np.int64),
            weights=np.zeros((n_parts, task.n_classes), np.int64),
        )
        assigned = Assigned(
            child=np.empty(entries.target.size, np.int32),
            part_code=parts.code,
            part_weight=np.empty(n_parts, np.int64),
            missing=np.zeros(tests.node.size, np.int64),
        )
        rules = ListRules.of(task)
        self._run(
            assign_entries,
            self._sizes(tests),
            lambda a, b: (rules, self.lists, entries.weight, nodes, tests, a, b, assigned),
        )
        self._run(
            sum_parts,
            self._sizes(tests),
            lambda a, b: (entries, nodes, tests, a, b, assigned, parts.rows, parts.weights),
        )
        self._assigned = tests, parts, assigned
        return parts

    def _sizes(self, tests: Tests) -> Int64s:
        """Numbers of entries of the nodes that are tested."""
        return (self.end - self.begin)[tests.node]

    def descend(self, parts: Int64s) -> CpuLevel:
        assert self._assigned is not None
        tests, found, assigned = self._assigned
        tests, assigned = tests_of(tests, assigned, parts)
        sizes = found.rows[parts]
        end = np.cumsum(sizes)
        begin = np.full(assigned.part_weight.size, -1)
        begin[parts] = end - sizes
        first = np.searchsorted(parts, tests.part)
        spread = assigned.missing * np.diff(first)
        opened = OpenedNodes(parts, first, begin, np.cumsum(spread) - spread)
        entries, moved = self._move_entries(
            tests, assigned, opened, int(end[-1]), int(spread.sum())
        )
        resting, task = self.resting, self.backend.task
        skip = resting[:, tests.node]
        is_tested = tests.feature[None, :] == np.arange(skip.shape[0])[:, None]
        if not task.one_against_rest:  # one category is left in each part
            skip = skip | (is_tested & task.nominal[:, None])
        shape, memory = (resting.shape[0], entries.target.size), self.backend.memory
        lists = Lists(memory.take(shape, ROW), memory.take(shape, np.uint32))
        given = self.lists, self._nodes, tests, skip, opened, moved, lists
        sizes_, columns = self._sizes(tests), skip.shape[0]
        self._run(move_lists, sizes_, lambda *spans: (*given, *spans), columns)
        test = np.repeat(np.arange(tests.node.size), np.diff(first))
        resting = np.ascontiguousarray(skip[:, test])
        nodes = ListNodes(end - sizes, end, found.weights[parts], resting)
        return CpuLevel(self.backend, entries, lists, nodes)

    def _move_entries(
        self, tests: Tests, assigned: Assigned, opened: OpenedNodes, size: int, fractions: int
    ) -> tuple[Entries, Moved]:
        """Entries of the next level, and the places to which the entries of this one move."""
        old = self.entries
        moved = Moved(np.empty(old.target.size, np.int64), np.empty(fractions, ROW))
        new = Entries(
            np.empty(size, old.target.dtype),
            None if old.weight is None else np.empty(size, np.int64),
        )
        place = opened.begin.copy()
        self._run(
            move_entries,
            self._sizes(tests),
            lambda a, b: (old, self._nodes, tests, a, b, assigned, opened, place, moved, new),
        )
        return new, moved

    def close(self) -> None:
        for array in self.lists:
            self.backend.memory.give(array)

    def _run(self, kernel: Any, sizes: Int64s, arguments: Any, columns: int = 0) -> None:
        run_spans(self.backend.n_threads, kernel, sizes, arguments, columns)


def run_spans(threads: int, kernel: Any, sizes: Int64s, arguments: Any, columns: int = 0) -> None:
    """Run a kernel over spans of nodes of `sizes` entries, and of `columns`, unless that is 0.

    ``arguments(first, last)`` are the arguments for nodes ``first .. last``; with columns,
    ``arguments((first_column, last_column), first, last)``.
    """
    total = int(sizes.sum())
    if total * max(columns, 1) <= tuning.TUNING.lists_span_cells:
        whole = ((0, columns),) if columns else ()
        kernel(*arguments(*whole, 0, sizes.size))
        return
    nodes = cut(sizes, total // tuning.TUNING.lists_span_entries)
    parts: list[tuple[Any, ...]] = [*nodes]
    if columns and len(nodes) < threads * SPANS_PER_THREAD:
        parts = [((f, f + 1), *span) for span in nodes for f in range(columns)]
    elif columns:
        parts = [((0, columns), *span) for span in nodes]
    run(threads, kernel, [arguments(*part) for part in parts])
