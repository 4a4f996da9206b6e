"""Nodes of a level that may still be split, and the histograms kept for their children."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Bounds, Floats, Int64s, Uint64s
from gputree.hashing import child_key


@dataclass(frozen=True)
class Frontier:
    """Nodes that may still be split; two siblings that both may be are adjacent."""

    node: Int64s  # numbers in the node table
    begin: Int64s  # entries of each node
    end: Int64s
    sibling_begin: Int64s  # entries of its sibling, in the frontier or not
    sibling_end: Int64s
    key: Uint64s  # hash of the path from the root
    parent_slot: Int64s  # the parent's histogram, -1 where it was not kept
    path_gain: Floats  # lowest weighted gain of the splits above
    bounds: Bounds | None = None  # on their means; None without monotonic constraints

    @classmethod
    def root(cls, n_rows: int, key: int, *, is_monotonic: bool = False) -> Frontier:
        """Return the frontier of the root."""
        return cls(
            node=np.array([0]),
            begin=np.array([0]),
            end=np.array([n_rows]),
            sibling_begin=np.array([0]),
            sibling_end=np.array([0]),
            key=np.array([key], np.uint64),
            parent_slot=np.array([-1]),
            path_gain=np.array([np.inf]),
            bounds=Bounds(np.array([-np.inf]), np.array([np.inf])) if is_monotonic else None,
        )

    @property
    def size(self) -> int:
        return self.node.size

    @property
    def rows(self) -> int:
        """Number of entries in all nodes."""
        return int((self.end - self.begin).sum())

    def take(self, nodes: NDArray[Any]) -> Frontier:
        """Return the given nodes, by mask or place."""
        if nodes.dtype == bool and nodes.all():
            return self
        return self._take(nodes)

    def slice(self, first: int, last: int) -> Frontier:
        """Return the nodes ``first .. last``."""
        return self._take(slice(first, last))

    def _take(self, nodes: Any) -> Frontier:
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        bounds = arrays.pop("bounds")
        taken = {name: field[nodes] for name, field in arrays.items()}
        return Frontier(**taken, bounds=bounds and bounds.take(nodes))

    def sibling(self) -> Int64s:
        """Place of each node's sibling in the frontier, -1 where it is not there."""
        # Children are numbered in pairs after the root: a first child has an odd number.
        place = np.full(self.size, -1)
        first = np.flatnonzero((self.node[:-1] % 2 == 1) & (self.node[1:] == self.node[:-1] + 1))
        place[first] = first + 1
        place[first + 1] = first
        return place

    def is_larger(self) -> Bools:
        """Nodes larger than their sibling; of two equals, the second child."""
        size = self.end - self.begin
        other = self.sibling_end - self.sibling_begin
        return (size > other) | ((size == other) & (self.node % 2 == 0))


@dataclass(frozen=True)
class LevelHistograms:
    """Histograms on the device, and the slot of each node of a level."""

    cells: Any
    slot: Int64s

    @classmethod
    def none(cls) -> LevelHistograms:
        """Return an empty set of histograms."""
        return cls(None, np.empty(0, np.int64))


def children_of(
    opened: Frontier,
    numbers: Int64s,
    middle: Int64s,
    slot: Int64s,
    weighted_gain: Floats,
    bounds: Bounds | None,
) -> Frontier:
    """Return the children of the split nodes, in pairs."""
    begin = np.stack([opened.begin, middle], axis=1)
    end = np.stack([middle, opened.end], axis=1)
    return Frontier(
        node=numbers,
        begin=begin.ravel(),
        end=end.ravel(),
        sibling_begin=begin[:, ::-1].ravel(),
        sibling_end=end[:, ::-1].ravel(),
        key=child_keys(opened.key),
        parent_slot=np.repeat(slot, 2),
        path_gain=np.repeat(np.minimum(opened.path_gain, weighted_gain), 2),
        bounds=bounds,
    )


def child_keys(key: Uint64s) -> Uint64s:
    """Keys of both children of each node: hashes of the path from the root."""
    return child_key(key[:, None], np.arange(2)).ravel()
