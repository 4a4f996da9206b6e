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

from gputree.errors import InputError

# Maximum number of columns in all sets together; "pairwise" has as many for 2,000 columns.
MOST_COLUMNS = 1 << 22


class Interactions(NamedTuple):
    """Sets of columns that may split a node.

    Set s has the columns ``column[first[s] : first[s + 1]]``, ascending. A node with that set whose
    cut is of ``column[i]`` has children with set ``below[i]``.
    """

    first: NDArray[np.int64]
    column: NDArray[np.int64]
    below: NDArray[np.int64]
    root: int = 0  # set of the root

    def children(self, sets: NDArray[np.int64], feature: NDArray[np.integer]) -> NDArray[np.int64]:
        """The sets of the children of nodes that are cut by columns of theirs."""
        d = int(self.column.max(initial=0)) + 1
        owner = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        return self.below[np.searchsorted(owner * d + self.column, sets * d + feature)]

    def without(self, columns: list[int]) -> Interactions:
        """The same sets without some columns."""
        kept = ~np.isin(self.column, columns)
        first = np.concatenate([[0], np.cumsum(kept)])[self.first]
        return Interactions(first, self.column[kept], self.below[kept], self.root)

    def mask(self, sets: NDArray[np.int64], d: int) -> NDArray[np.bool_]:
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
        if len(column) > MOST_COLUMNS:
            raise InputError(
                f"Interaction constraints of {len(groups):,} groups lead to too many sets of "
                "columns: pass fewer groups, or some that overlap less."
            )
    return Interactions(np.array(first), np.array(column, np.int64), np.array(below, np.int64))
