"""What the parts of a table count, summed: on one machine, or wherever the parts lie.

    part 0    count(part, sums, first, last, ...)   |
    part 1    count(part, sums, first, last, ...)   | combined in any order: integers, least,
    ...                                             | greatest values

A function counts what a part has of the rows of m nodes and adds it to arrays. It is pure but for
these: what it is given decides what it adds, so that a part that is lost can be counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cpu.backend import CpuBackend

# Counts rows ``first[j] .. last[j]`` of part's entries, in m nodes, into the arrays of sums.
Count = Callable[..., None]


class Sum(NamedTuple):
    """An array that parts add to, and how: it begins as what changes nothing."""

    array: NDArray
    how: Literal["add", "minimum", "maximum"] = "add"

    def combine(self, other: NDArray) -> None:
        """Let the sums of other parts be in this one."""
        getattr(np, self.how)(self.array, other, out=self.array)


class Reducer(Protocol):
    """Applies a function to every part of a table, and sums up."""

    def map_reduce(
        self, count: Count, sums: Sequence[Sum], first: NDArray, last: NDArray, *shared: Any
    ) -> None:
        """Add what all parts count to `sums`.

        Parameters
        ----------
        count : callable
            ``count(part, arrays, first, last, *shared)`` adds what one part has of m nodes.
        sums : sequence of Sum
        first, last : int64 arrays of shape (m, parts)
            The entries of the nodes in every part.
        *shared
            What all parts are given.
        """


class LocalReducer:
    """Parts in the memory of this process: one after another, into the same arrays."""

    def __init__(self, parts: list[CpuBackend]) -> None:
        self.parts = parts

    def map_reduce(
        self, count: Count, sums: Sequence[Sum], first: NDArray, last: NDArray, *shared: Any
    ) -> None:
        arrays = [sum_.array for sum_ in sums]
        for p, part in enumerate(self.parts):
            if (first[:, p] < last[:, p]).any():
                count(part, arrays, first[:, p], last[:, p], *shared)


def count_histograms(
    part: CpuBackend, sums: list[NDArray], first: Int64s, last: Int64s, slots: Int64s
) -> None:
    """Add the histogram of node j to ``sums[0][slots[j]]``."""
    own = first < last
    part.histogram(first[own], last[own], sums[0], slots[own])


def count_statistics(part: CpuBackend, sums: list[NDArray], first: Int64s, last: Int64s) -> None:
    """Add the row statistics of node j to ``sums[0][j]``."""
    sums[0] += part.node_statistics(first, last)
