"""Interaction constraints: the columns that may split a node, given those of the splits above it.

    groups {a, b}, {b, c}          set 0: a b c        no split above: any column of any group
    set below a cut of a           set 1: a b          columns of the groups that contain a
    set below cuts of a and b      set 1               likewise, a and b: one group is left

The groups that contain all columns of a path are the same for both children of its last node, and
become fewer further down. So a node needs only the number of its set of columns, on every device.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Int64s
from gputree.errors import InputError

# Maximum number of columns in all sets together; "pairwise" has as many for 1,448 columns.
MOST_COLUMNS = 1 << 22


class Interactions(NamedTuple):
    """Sets of columns that may split a node.

    Set s has the columns ``column[first[s] : first[s + 1]]``, ascending. A node with that set whose
    cut is of ``column[i]`` has children with set ``below[i]``.
    """

    first: Int64s
    column: Int64s
    below: Int64s
    root: int = 0  # set of the root

    def children(self, sets: Int64s, feature: NDArray[np.integer]) -> Int64s:
        """The sets of the children of nodes that are cut by columns of theirs."""
        first, last = self.first[sets], self.first[sets + 1]
        while (
            first < last
        ).any():  # columns before `first` are lower, those from `last` on are not
            middle = np.minimum((first + last) // 2, self.column.size - 1)
            is_lower = (self.column[middle] < feature) & (first < last)
            first, last = np.where(is_lower, middle + 1, first), np.where(is_lower, last, middle)
        return self.below[first]

    def without(self, columns: list[int]) -> Interactions:
        """The sets of columns, with some columns left out."""
        kept = ~np.isin(self.column, columns)
        first = np.concatenate([[0], np.cumsum(kept)])[self.first]
        return Interactions(first, self.column[kept], self.below[kept], self.root)

    def mask(self, sets: Int64s, d: int) -> Bools:
        """Mark the columns, of d, that may split nodes with the given sets, shape (m, d)."""
        may_split = np.zeros((sets.size, d), np.bool_)
        for i, s in enumerate(sets.tolist()):
            may_split[i, self.column[self.first[s] : self.first[s + 1]]] = True
        return may_split


@lru_cache(maxsize=8)  # every tree of a forest has the same
def interactions_of(groups: tuple[frozenset[int], ...]) -> Interactions:
    """The sets of columns that splits lead to, from the groups that may be used together."""
    number = {tuple(range(len(groups))): 0}
    waiting = list(number)
    first, column, below = [0], [], []
    for left in waiting:  # grows: the groups that contain every column of some path
        with_column: dict[int, list[int]] = {}
        for g in left:
            for f in groups[g]:
                with_column.setdefault(f, []).append(g)
        for f in sorted(with_column):
            rest = tuple(with_column[f])
            if rest not in number:
                number[rest] = len(waiting)
                waiting.append(rest)
            column.append(f)
            below.append(number[rest])
        first.append(len(column))
        _require_few(len(column), len(groups))
    return Interactions(np.array(first), np.array(column, np.int64), np.array(below, np.int64))


def pairs_of(d: int) -> Interactions:
    """`interactions_of` all pairs of d columns, which are not listed.

    After the set of the root there is one below a cut of each column, all with all columns; then
    that of each pair.
    """
    if d < 3:
        return interactions_of((frozenset(range(d)),))
    _require_few(2 * d * d, d * (d - 1) // 2)
    every, (low, high) = np.arange(d), np.triu_indices(d, 1)
    number = d + 1 + np.arange(low.size)  # of the set of each pair
    below = np.empty((d, d), np.int64)
    below[low, high] = below[high, low] = number
    below[every, every] = 1 + every
    return Interactions(
        np.concatenate([np.arange(d + 1) * d, d * (d + 1) + 2 * np.arange(low.size + 1)]),
        np.concatenate([np.tile(every, d + 1), np.stack([low, high], axis=1).ravel()]),
        np.concatenate([1 + every, below.ravel(), np.repeat(number, 2)]),
    )


def _require_few(columns: int, groups: int) -> None:
    if columns > MOST_COLUMNS:
        raise InputError(
            f"Interaction constraints of {groups:,} groups lead to too many sets of columns: pass "
            "fewer groups, or some that overlap less."
        )
