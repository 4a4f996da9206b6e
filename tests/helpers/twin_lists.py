"""Attribute lists on two devices at once, whose results must be equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import to_host
from twins import assert_equal

from gputree.backends.cpu.lists.backend import CpuLevel, CpuLists
from gputree.backends.cuda.lists.backend import CudaLevel, CudaLists
from gputree.backends.lists import CandidateTests, ColumnCodes, ListTask, TestParts, Tests
from gputree.tree import Tree

# Fields of a tree that growth decides on; the others follow.
FIELDS = ("first_child", "n_children", "feature", "threshold", "missing_child", "n_rows", "gain")
FIELDS += ("weight", "statistics", "impurity", "branch_begin", "branch_end", "branch_code")


def assert_same_trees(expected: Tree, found: Tree) -> None:
    for field in FIELDS:
        assert_equal(getattr(expected, field), getattr(found, field), field)


class TwinLists:
    """A `ListBackend` that grows on the CPU and on CUDA, and compares all results."""

    name = "twins"

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        self.cpu = CpuLists(ColumnCodes(*(a.copy() for a in codes)), task, n_threads)
        self.cuda = CudaLists(codes, task, n_threads)
        self.most_entries = self.cuda.most_entries

    def root(self) -> TwinLevel:
        return TwinLevel(self.cpu.root(), self.cuda.root())


class TwinLevel:
    """A `Level` on both devices."""

    def __init__(self, cpu: CpuLevel, cuda: CudaLevel) -> None:
        self.cpu = cpu
        self.cuda = cuda
        self.weights = cpu.weights
        self.rows = cpu.rows
        assert cuda.rows == cpu.rows
        for name in ("weights", "begin", "end", "resting"):
            assert_equal(getattr(cpu, name), getattr(cuda, name), name)
        assert_same_lists(cpu, cpu, cuda)

    def score(self) -> CandidateTests:
        return ask(self.cpu, self.cuda, "score")

    def assign(self, tests: Tests) -> TestParts:
        return ask(self.cpu, self.cuda, "assign", tests)

    def descend(self, parts: np.ndarray) -> TwinLevel:
        return TwinLevel(self.cpu.descend(parts), self.cuda.descend(parts))

    def close(self) -> None:
        self.cpu.close()
        self.cuda.close()


def ask(cpu: Any, cuda: Any, question: str, *arguments: Any) -> Any:
    """Call a method of both levels, and require equal results, field by field."""
    expected, found = (getattr(level, question)(*arguments) for level in (cpu, cuda))
    for name in expected._fields:
        a, b = getattr(expected, name), getattr(found, name)
        assert a.dtype == b.dtype, name
        assert_equal(a, b, name)
    return found


def assert_same_lists(level: Any, *twins: Any) -> None:
    """Equal but for the numbers of entries, and the order of those of one code."""
    for f, j in np.argwhere(~level.resting):
        place = slice(level.begin[j], level.end[j])
        expected, found = (_cells(twin, f, place) for twin in twins)
        assert_equal(expected[0], found[0], "codes")
        assert_equal(expected[:, np.lexsort(expected[::-1])], found[:, np.lexsort(found[::-1])])


def _cells(level: Any, f: int, place: slice) -> np.ndarray:
    """Codes, targets and weights of a list; each of the node's entries is in it."""
    # Only what is the list's: lists that rest are not kept up.
    item, code = (to_host(array[f, place]) for array in level.lists)
    assert_equal(np.sort(item), np.arange(place.start, place.stop), "entries")
    target, weight = (None if a is None else to_host(a) for a in level.entries)
    weights = np.ones(item.size) if weight is None else weight[item]
    return np.stack([code.astype(np.int64), target[item], weights.astype(np.int64)])


def grow_both_ways(model: Any, X: Any, y: Any, weight: Any = None) -> Tree:
    """Fit `model` on both devices, level by level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gputree.estimators.growing_lists.get_list_backend", lambda device: TwinLists)
        return model.fit(X, y, weight).tree_
