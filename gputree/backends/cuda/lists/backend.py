"""Attribute lists on CUDA: CuPy arrays, kernels in ``score.cu`` and ``partition.cu``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import Kernels
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import Entries, Lists, Table, flags
from gputree.backends.cuda.lists.memory import Ledger, assign_bytes, most_entries, nbytes_of
from gputree.backends.cuda.lists.partition import (
    Assigned,
    Moves,
    assign,
    move_entries,
    move_lists,
    room_to_move,
)
from gputree.backends.cuda.lists.score import score
from gputree.backends.lists import Candidates, ColumnCodes, ListTask, Parts, Tests


class CudaLists:
    """`gputree.backends.lists.ListBackend` on a CUDA device."""

    name = "cuda"

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        if task.one_against_rest:
            raise NotImplementedError("One-vs-rest splits of categories are not supported on CUDA.")
        ledger, (d, n) = Ledger(task), codes.order.shape
        ledger.held = nbytes_of(task.nominal, task.information.terms)
        ledger.require_table(task, d, n)
        self.most_entries = most_entries(task, d, n, ledger.left)
        self.codes = codes
        self.task = task
        self.table = Table(
            kernels=Kernels(None, False, 32),
            task=task,
            nominal=flags(task.nominal),
            terms=to_device(task.information.terms),
            ledger=ledger,
        )

    def root(self) -> CudaLevel:
        """All rows in one node; the sorted columns become its lists."""
        task, (d, n) = self.task, self.codes.order.shape
        weight = task.weight
        weights = np.zeros((1, task.n_classes), np.int64)
        np.add.at(weights[0], task.target, 1 if weight is None else weight)
        return CudaLevel(
            self.table,
            Entries(
                to_device(task.target, np.int32),
                None if weight is None else to_device(weight, np.int64),
            ),
            Lists(to_device(self.codes.order, np.int32), to_device(self.codes.code, np.uint32)),
            np.array([0]),
            np.array([n]),
            weights,
            np.zeros((d, 1), np.bool_),
        )


class CudaLevel:
    """`gputree.backends.lists.Level` on a CUDA device; what is small lies on the host."""

    def __init__(
        self,
        table: Table,
        entries: Entries,
        lists: Lists,
        begin: Int64s,
        end: Int64s,
        weights: Int64s,
        resting: NDArray[np.bool_],
    ) -> None:
        self.table = table
        self.entries = entries
        self.lists = lists
        self.begin = begin
        self.end = end
        self.weights = weights
        self.resting = resting
        self._assigned: Assigned | None = None
        self._held = nbytes_of(*entries, *lists)
        table.ledger.held += self._held

    @property
    def rows(self) -> int:
        return self.entries.target.size

    def score(self) -> Candidates:
        found = score(
            self.table, self.entries, self.lists, self.begin, self.end, self.weights, self.resting
        )
        self.resting = self.resting | (found.parts == 1)
        return found

    def assign(self, tests: Tests) -> Parts:
        ledger, n_parts = self.table.ledger, int(tests.part[-1])
        n_classes = self.table.task.n_classes
        needed = assign_bytes(n_classes, tests.node.size, n_parts, self.rows)
        ledger.require(needed, f"A level of {n_parts:,} parts")
        ledger.held += needed
        self._held += needed
        self._assigned = assign(self.table, self.entries, self.lists, self.begin, self.end, tests)
        return self._assigned.parts

    def descend(self, parts: Int64s) -> CudaLevel:
        done = self._assigned
        assert done is not None
        tests, sizes = done.tests, done.parts.rows[parts]
        end = np.cumsum(sizes)
        skip = self.resting[:, tests.node]
        own = tests.feature[None, :] == np.arange(skip.shape[0])[:, None]
        skip = skip | (own & self.table.task.nominal[:, None])
        moves = Moves.of(done)
        room = room_to_move(self.table, self.lists, done, parts, moves)
        routes, entries = move_entries(self.table, self.entries, self.lists, done, parts)
        lists = move_lists(self.table, self.lists, moves, routes, skip, int(end[-1]), room)
        test = np.repeat(np.arange(tests.node.size), np.diff(tests.part))[parts]
        return CudaLevel(
            self.table, entries, lists, end - sizes, end, done.parts.weights[parts],
            np.ascontiguousarray(skip[:, test]),
        )  # fmt: skip

    def close(self) -> None:
        self._assigned = None
        del self.lists, self.entries
        self.table.ledger.held -= self._held
