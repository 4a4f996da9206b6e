"""Attribute lists on CUDA: CuPy arrays, kernels in ``score.cu`` and ``partition.cu``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import Kernels
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import Entries, Lists, Table, flags
from gputree.backends.cuda.lists.partition import (
    Assigned,
    Moves,
    assign,
    move_entries,
    move_lists,
)
from gputree.backends.cuda.lists.score import score
from gputree.backends.cuda.memory import free_bytes
from gputree.backends.lists import Candidates, ColumnCodes, ListTask, Parts, Tests

# Of an entry in the list of a column, and its code.
LIST_ENTRY_BYTES = 4 + 4


class CudaLists:
    """`gputree.backends.lists.ListBackend` on a CUDA device."""

    name = "cuda"

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        if task.one_against_rest:
            raise NotImplementedError("CUDA parts no category from all others of its column.")
        self.codes = codes
        self.task = task
        self.table = Table(
            kernels=Kernels(None, False, 32),
            task=task,
            nominal=flags(task.nominal),
            terms=to_device(task.information.terms),
        )

    def root(self) -> CudaLevel:
        """All rows in one node; the sorted columns become its lists."""
        task, (d, n) = self.task, self.codes.order.shape
        _require_room(d, n)
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


def _require_room(d: int, n: int) -> None:
    """Raise MemoryError where the lists of n rows, and those of the level below, have no room."""
    needed, free = 2 * LIST_ENTRY_BYTES * d * n, free_bytes()
    if needed > free:
        raise MemoryError(
            f"The attribute lists of {n:,} rows x {d:,} columns, two levels of them, need at least "
            f"{needed:,} bytes of device memory; {free:,} are free. Use device='cpu'."
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
        routes, entries = move_entries(self.table, self.entries, self.lists, done, parts)
        moves = Moves(
            done.sizes, np.diff(tests.part), done.device.begin, done.device.end, done.device.part
        )
        lists = move_lists(self.table.kernels, self.lists, moves, routes, skip, int(end[-1]))
        test = np.repeat(np.arange(tests.node.size), np.diff(tests.part))[parts]
        return CudaLevel(
            self.table, entries, lists, end - sizes, end, done.parts.weights[parts],
            np.ascontiguousarray(skip[:, test]),
        )  # fmt: skip

    def close(self) -> None:
        self._assigned = None
        del self.lists
