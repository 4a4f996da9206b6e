"""Levels whose nodes are divided into pieces on the device: see opening.cuh."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Int64s, Uint64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import CHUNKS, OPENING, Packed
from gputree.backends.cuda.layout import Grower
from gputree.backends.cuda.level import Tally
from gputree.backends.cuda.partition import place
from gputree.backends.cuda.workspace import (
    NO_PARTS,
    DeviceChunks,
    LevelPlan,
    NodePieces,
    Shaped,
    bytes_of,
    filling_chunks,
    most_pieces,
)

# Numbers that a level counts on the device: nodes, and pieces counted, searched and split.
NUMBERS = 4

# Arrays of nodes: fields of OpenNodes from `low` on.
NODE_ARRAYS = 6


class OpeningArrays(NamedTuple):
    """Arrays of a level."""

    nodes: list[Any]
    pieces: list[tuple[Any, ...]]  # counted, searched and split: fields of Pieces

    @classmethod
    def of(cls, arrays: list[Any]) -> OpeningArrays:
        """Arrange arrays of the shapes of `opening_arrays`."""
        tuned = tuning.TUNING
        by_rows = tuned.chunk_rows, tuned.fewest_chunk_rows, filling_chunks()
        cuts = by_rows, by_rows, (tuned.partition_rows, tuned.partition_rows, 1)
        pieces = [
            (*cut, *arrays[i : i + 4])
            for cut, i in zip(cuts, range(NODE_ARRAYS, len(arrays), 4), strict=True)
        ]
        return cls(arrays[:NODE_ARRAYS], pieces)

    @property
    def larger(self) -> list[Any]:
        """Nodes above whose histograms are subtracted from, and those that are subtracted."""
        return self.nodes[2:4]

    def opening(
        self, above: tuple[Any, ...], fewest: int, nodes: tuple[Any, ...], results: Any
    ) -> Packed:
        """Pack the opening of a level from the nodes above; `nodes` are its numbers to keys."""
        words = 0 if results is None else len(Tally._fields)
        level = nodes[1].size, *nodes, *self.nodes
        return OPENING.pack(above, fewest, level, *self.pieces, results, words)

    def plan(
        self, nodes: tuple[Any, ...], most: tuple[int, int, int]
    ) -> tuple[LevelPlan, DeviceChunks]:
        """Plan of a level that is opened, of at most so many pieces; and those that are counted."""
        numbers, begin, _, keys = nodes
        counted, searched, split = [
            DeviceChunks(size, CHUNKS.pack(*self.pieces[i][4:], numbers[i + 1 :]))
            for i, size in enumerate(most)
        ]
        parts = NodePieces(split, begin, self.pieces[2][3])
        low, high = self.nodes[:2]
        return LevelPlan(searched, parts, keys, low, high, numbers), counted


def opening_arrays(rows: int, m: int) -> list[Shaped]:
    """Arrays of a level of at most m nodes."""
    lists = [size for number in most_pieces(rows, m) for size in (m, number, number, number)]
    return [(size, np.int64) for size in (*NODE_ARRAYS * (m,), *lists)]


def open_nodes(
    grower: Grower, begin: Int64s, end: Int64s, keys: Uint64s, others: tuple[Int64s, ...]
) -> LevelPlan:
    """Send nodes whose splits are searched, and `others`, and divide the nodes into pieces."""
    m, rows, workspace = begin.size, int((end - begin).sum()), grower.workspace
    number, begin, end, keys, *rest = workspace.counted.send(
        (np.array([m]), begin, end, keys, *others), lambda: _most_sent(grower, len(others))
    )
    most = grower.entries.size, grower.most_nodes
    arrays = workspace.plan.allocate(
        [*_level_arrays(m), *opening_arrays(rows, m)],
        lambda: bytes_of(*_level_arrays(most[1]), *opening_arrays(*most)),
    )
    nodes, lists = tuple(arrays[:4]), OpeningArrays.of(arrays[4:])
    opening = lists.opening((number, begin, end, keys, None), 1, nodes, None)
    place(grower, NO_PARTS, None, None, opening=opening)
    return lists.plan(nodes, most_pieces(rows, m))[0]._replace(others=rest)


def _level_arrays(m: int) -> list[Shaped]:
    """Arrays of the numbers, entries and keys of m nodes."""
    return [(NUMBERS, np.int64), (m, np.int64), (m, np.int64), (m, np.uint64)]


def _most_sent(grower: Grower, others: int) -> int:
    """Maximum bytes sent for a level."""
    m, pairs = grower.most_nodes, np.count_nonzero(grower.table.host.categories)
    sizes = 1, *3 * (m,), *others * (m * pairs,)
    return bytes_of(*((size, np.int64) for size in sizes))
