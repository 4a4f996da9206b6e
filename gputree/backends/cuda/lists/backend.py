"""Attribute lists on CUDA: CuPy arrays, kernels in ``score.cu`` and ``partition.cu``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import Kernels
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import DeviceEntries, DeviceLists, LevelArrays, LevelData
from gputree.backends.cuda.lists.memory import Ledger, assign_bytes, most_entries, nbytes_of
from gputree.backends.cuda.lists.partition import (
    AssignedTests,
    assign,
    cursor_room,
    move_entries,
    move_lists,
)
from gputree.backends.cuda.lists.score import score
from gputree.backends.lists import CandidateTests, ColumnCodes, ListTask, TestParts, Tests


class CudaLists:
    """`gputree.backends.lists.ListBackend` on a CUDA device."""

    name = "cuda"

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        if task.one_against_rest:
            raise NotImplementedError("One-vs-rest splits of categories are not supported on CUDA.")
        ledger, (d, n) = Ledger(task), codes.order.shape
        ledger.used = nbytes_of(task.nominal, task.information.terms)
        ledger.require_table(task, d, n)
        self.most_entries = most_entries(task, d, n, ledger.left)
        self.codes = codes
        self.task = task
        categorical, terms = to_device(task.nominal, np.uint8), to_device(task.information.terms)
        self.table = LevelData(Kernels(None, False, 32), task, categorical, terms, ledger)

    def root(self) -> CudaLevel:
        """Return the level of the root: the sorted columns become its lists."""
        task, (d, n), weight = self.task, self.codes.order.shape, self.task.weight
        weights = np.zeros((1, task.n_classes), np.int64)
        np.add.at(weights[0], task.target, 1 if weight is None else weight)
        return CudaLevel(
            self.table,
            DeviceEntries(
                to_device(task.target, np.int32),
                None if weight is None else to_device(weight, np.int64),
            ),
            DeviceLists(
                to_device(self.codes.order, np.int32), to_device(self.codes.code, np.uint32)
            ),
            np.array([0]),
            np.array([n]),
            weights,
            np.zeros((d, 1), np.bool_),
        )


@dataclass
class CudaLevel(LevelArrays):
    """`gputree.backends.lists.Level` on a CUDA device."""

    _assigned: AssignedTests | None = None

    def __post_init__(self) -> None:
        self._used = nbytes_of(*self.entries, *self.lists)
        self.table.ledger.used += self._used

    @property
    def rows(self) -> int:
        return self.entries.target.size

    def score(self) -> CandidateTests:
        found = score(self)
        self.resting = self.resting | (found.parts == 1)
        return found

    def assign(self, tests: Tests) -> TestParts:
        ledger, n_parts = self.table.ledger, int(tests.part[-1])
        needed = assign_bytes(self.table.task.n_classes, tests.node.size, n_parts, self.rows)
        ledger.require(needed, f"A level of {n_parts:,} parts")
        ledger.used += needed
        self._used += needed
        self._assigned = assign(self, tests)
        return self._assigned.parts

    def descend(self, parts: Int64s) -> CudaLevel:
        done = self._assigned
        assert done is not None
        tests, sizes = done.tests, done.parts.rows[parts]
        end = np.cumsum(sizes)
        is_tested = tests.feature[None, :] == np.arange(len(self.resting))[:, None]
        skip = self.resting[:, tests.node] | (is_tested & self.table.task.nominal[:, None])
        free_bytes = cursor_room(self, done, parts)
        routes, entries = move_entries(self, done, parts)
        lists = move_lists(self, done, routes, skip, int(end[-1]), free_bytes)
        test = np.repeat(np.arange(tests.node.size), np.diff(tests.part))[parts]
        resting = np.ascontiguousarray(skip[:, test])
        weights = done.parts.weights[parts]
        return CudaLevel(self.table, entries, lists, end - sizes, end, weights, resting)

    def close(self) -> None:
        self._assigned = None
        del self.lists, self.entries
        self.table.ledger.used -= self._used
