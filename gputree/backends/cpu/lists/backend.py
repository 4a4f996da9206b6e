"""Attribute lists on the CPU: NumPy arrays, numba kernels, a pool of threads.

Entries and lists of a level are partitioned, in stable order, into those of the next level.

    level      | a b c d e |      the test sends a, d to part 0; b, e to part 1; of c the
    next       | a c d | b c e |  value is missing: a fraction of it goes to every part

An entry of the next level is identified by its place; `Moved.route` has the place of an entry or,
if it went to several parts, ``-2 -`` its row in `spread`, the places of its fractions in the parts
that become nodes. Places in other parts are -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import fraction
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
from gputree.backends.cpu.lists.score import score_columns
from gputree.backends.lists import CandidateTests, ColumnCodes, ListTask, TestParts, Tests
from gputree.base import threads
from gputree.base.dtypes import MISSING_CODE, MOST_ROWS, ROW, Int64s
from gputree.compilation import PREFETCH_ROWS, borrowing, kernel, pick, prefetch


@kernel
def assign_entries(rules, lists, weight, nodes, tests, first, last, out):
    """Assign the entries of tests ``first .. last`` to parts: see `Assigned`."""
    for j in range(first, last):
        out.missing[j] = assign_node(rules, lists, weight, nodes, tests, j, out)


@borrowing
def assign_node(rules, lists, weight, nodes, tests, j, out):
    """Assign the entries of one test to parts; returns the number of entries without a part."""
    f, node, cut, first = tests.feature[j], tests.node[j], tests.cut[j], tests.part[j]
    item, code, by_category = lists.item[f], lists.code[f], rules.nominal[f]
    begin, end = nodes.begin[node], nodes.end[node]
    against_rest = by_category and rules.one_against_rest
    part, branch, missing, previous = first - 1, np.int32(-1), 0, MISSING_CODE
    if against_rest:
        out.part_code[first], out.part_code[first + 1] = cut, MISSING_CODE
        out.part_weight[first] = out.part_weight[first + 1] = 0
    # `part` is the part of the entry before, and `branch` its number in the test; it has the same
    # code, or is on the same side of the cut, as long as it does not change.
    for i in range(begin, end):
        e, this = item[i], code[i]
        if this == MISSING_CODE and (against_rest or not rules.missing_is_category):
            out.child[e] = -1
            missing += 1
            continue
        if against_rest:
            branch = np.int32(this != cut)
            part = first + branch
        else:
            is_new = i == begin or (
                this != previous if by_category else previous <= cut and this > cut
            )
            previous = this
            if is_new:
                part += 1
                branch += np.int32(1)
                out.part_code[part] = this
                out.part_weight[part] = 0
        out.child[e] = branch
        out.part_weight[part] += pick(weight, e, 1)
    return missing


@borrowing
def known_weight(tests, j, part_weight):
    """Weight of the entries of test j that have a part."""
    whole = np.int64(0)
    for part in range(tests.part[j], tests.part[j + 1]):
        whole += part_weight[part]
    return whole


@kernel
def sum_parts(entries, nodes, tests, first, last, assigned, rows, weights):
    """Sum class weights (P, K) and entries of the parts, fractions included."""
    child, part_weight = assigned.child, assigned.part_weight
    for j in range(first, last):
        start, stop = tests.part[j], tests.part[j + 1]
        whole = known_weight(tests, j, part_weight)
        for e in range(nodes.begin[tests.node[j]], nodes.end[tests.node[j]]):
            k = entries.target[e]
            w = pick(entries.weight, e, 1)
            if child[e] >= 0:
                weights[start + child[e], k] += w
                rows[start + child[e]] += 1
                continue
            for part in range(start, stop):
                share = fraction(w, part_weight[part], whole)
                weights[part, k] += share
                rows[part] += share > 0


@kernel
def move_entries(entries, nodes, tests, first, last, assigned, opened, place, moved, new):
    """Move entries to their places in the next level, `new`.

    `place` (P,) is the next free place of every part, -1 where it does not become a node; used up.
    """
    child, part_weight = assigned.child, assigned.part_weight
    for j in range(first, last):
        start = tests.part[j]
        whole = known_weight(tests, j, part_weight)
        free = opened.spread[j]
        for e in range(nodes.begin[tests.node[j]], nodes.end[tests.node[j]]):
            w = pick(entries.weight, e, 1)
            if child[e] >= 0:
                branch = np.int64(child[e])
                position = put(entries, e, w, start + branch, place, new, new.weight)
                moved.route[e] = (branch << 32) | position if position >= 0 else -1
                continue
            moved.route[e] = -2 - free
            for q in range(opened.first[j], opened.first[j + 1]):
                part = opened.part[q]
                share = fraction(w, part_weight[part], whole)
                moved.spread[free] = -1
                if share > 0:
                    moved.spread[free] = put(entries, e, share, part, place, new, new.weight)
                free += 1


@borrowing
def put(entries, e, share, part, place, new, weight):
    """Copy entry e with weight `share` to the next place of a part; returns the place, -1 if none.

    `weight` is the one of the `new` entries, None where every entry has a weight of one unit.
    """
    position = place[part]
    if position < 0:
        return np.int64(-1)
    place[part] = position + 1
    new.target[position] = entries.target[e]
    if weight is not None:
        weight[position] = share
    return position


@kernel
def move_lists(lists, nodes, tests, skip, opened, moved, new, columns, first, last):
    """Partition the lists of ``columns[0] .. columns[1]`` of tests ``first .. last``.

    `skip` (d, tests) marks lists that are not read below.
    """
    place = np.empty(opened.begin.size, np.int64)
    for f in range(columns[0], columns[1]):
        for j in range(first, last):
            if not skip[f, j]:
                move_list(lists, f, nodes, tests, j, opened, moved, place, new)


@borrowing
def move_list(lists, f, nodes, tests, j, opened, moved, place, new):
    """`move_lists` of column f and one test; `place` is scratch, (P,)."""
    item, code, new_item, new_code = lists.item[f], lists.code[f], new.item[f], new.code[f]
    start = tests.part[j]
    begin_opened, end_opened = opened.first[j], opened.first[j + 1]
    for q in range(begin_opened, end_opened):
        place[opened.part[q]] = opened.begin[opened.part[q]]
    final = nodes.end[tests.node[j]]
    for i in range(nodes.begin[tests.node[j]], final):
        prefetch(moved.route, item[min(i + PREFETCH_ROWS, final - 1)], 0)
        way = moved.route[item[i]]
        if way >= 0:
            part = start + (way >> 32)
            position = place[part]
            place[part] = position + 1
            new_item[position] = way & 0xFFFFFFFF
            new_code[position] = code[i]
        elif way < -1:
            for q in range(begin_opened, end_opened):
                to = moved.spread[-2 - way + q - begin_opened]
                if to >= 0:
                    position = place[opened.part[q]]
                    place[opened.part[q]] = position + 1
                    new_item[position] = to
                    new_code[position] = code[i]


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
        """Run a kernel over spans of nodes of `sizes` entries, and of `columns`, unless that is 0.

        ``arguments(first, last)`` are the arguments for nodes ``first .. last``; with columns,
        ``arguments((first_column, last_column), first, last)``.
        """
        n_threads, total = self.backend.n_threads, int(sizes.sum())
        if total * max(columns, 1) <= tuning.TUNING.lists_span_cells:
            whole = ((0, columns),) if columns else ()
            kernel(*arguments(*whole, 0, sizes.size))
            return
        nodes = threads.cut(sizes, total // tuning.TUNING.lists_span_entries)
        parts: list[tuple[Any, ...]] = [*nodes]
        if columns and len(nodes) < n_threads * threads.SPANS_PER_THREAD:
            parts = [((f, f + 1), *span) for span in nodes for f in range(columns)]
        elif columns:
            parts = [((0, columns), *span) for span in nodes]
        threads.run(n_threads, kernel, [arguments(*part) for part in parts])
