"""Levels that are split one after another on the device, while the host does not wait.

The nodes of a level, their pieces and the histograms that are subtracted follow from the splits
above, so a block makes them while others move the entries above; all else is launched as for a
level that the host sends, with upper bounds as sizes. The host reads all splits in one copy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Ahead, Uint64s
from gputree.backends.binning import thresholds
from gputree.backends.cuda import tuning
from gputree.backends.cuda.histogram import ALL_COUNTED, Counting, count, new_histograms
from gputree.backends.cuda.kernels import CHUNKS, LARGER, OPENING, Packed
from gputree.backends.cuda.layout import Grower, LevelPlan, pack_constraints
from gputree.backends.cuda.level import Results, SearchExtent, Tally
from gputree.backends.cuda.memory import LEVEL_SHARE
from gputree.backends.cuda.partition import NOT_OPENED, RECORD_WORDS, place, splits_of
from gputree.backends.cuda.refine import draw_orders, open_search, queue_search
from gputree.backends.cuda.score import score_nodes
from gputree.backends.cuda.workspace import (
    NO_PARTS,
    DeviceChunks,
    NodePieces,
    Shaped,
    bytes_of,
    filling_chunks,
)
from gputree.base.dtypes import WAITS, Int64s

# Numbers that a level counts on the device: nodes, and pieces counted, searched and split.
NUMBERS = 4


class LevelLog(NamedTuple):
    """Nodes of a level, and what is found: int64, as the host reads it."""

    numbers: Any  # (NUMBERS,)
    begin: Any  # (nodes,)
    end: Any
    keys: Any
    results: Any  # see `Results`

    @property
    def nodes(self) -> tuple[Any, ...]:
        """Number, entries and keys of the nodes."""
        return self.numbers, self.begin, self.end, self.keys.view(np.uint64)

    @classmethod
    def listed(cls, log: Any, sizes: list[int]) -> list[LevelLog]:
        """Views of the logs of levels of at most so many nodes."""
        found, start = [], 0
        for m in sizes:
            lengths = (NUMBERS, m, m, m, len(Tally._fields) + m * RECORD_WORDS)
            bounds = np.cumsum((start, *lengths)).tolist()
            found.append(cls(*[log[a:b] for a, b in pairwise(bounds)]))
            start = bounds[-1]
        return found

    @staticmethod
    def words(sizes: list[int]) -> int:
        """Size of the logs of all levels."""
        fixed = NUMBERS + len(Tally._fields)
        return sum(fixed + m * (3 + RECORD_WORDS) for m in sizes)


class Queued(NamedTuple):
    """Levels that were split, and what it took."""

    levels: list[Ahead]
    rows: int = 0  # of all nodes
    pairs: int = 0  # (row, column) pairs that were gathered
    overflows: bool = False  # memory of the search did not suffice on the last level


def is_plain(grower: Grower) -> bool:
    """Return True if the device decides all of a task: no constraints, and no categories."""
    task, host = grower.task, grower.table.host
    constrained = task.limits.monotonic is not None or task.interactions is not None
    return not (constrained or host.categories.any())


def grow_ahead(
    grower: Grower,
    counting: Counting,
    begin: Int64s,
    end: Int64s,
    keys: Uint64s,
    levels: int,
    fewest: int,
) -> Queued:
    """See `gputree.backends.base.GrowsAhead`."""
    rows, workspace = int((end - begin).sum()), grower.workspace
    most = min(grower.most_nodes, tuning.TUNING.ahead_nodes, rows // fewest)
    sizes = _within_memory(grower, rows, most, [begin.size << level for level in range(levels)])
    if not sizes:
        return Queued([])
    most, arrays = max(sizes), _arrays(rows, sizes)
    sent = workspace.counted.send(
        (np.array([begin.size]), begin, end, keys), lambda: bytes_of(*4 * ((most, np.int64),))
    )
    *arranged, log = workspace.plan.allocate(arrays, lambda: bytes_of(*arrays))
    log.data.memset_async(0, log.nbytes)  # levels may have fewer nodes
    half, logs, larger = len(arranged) // 2, LevelLog.listed(log, sizes), ALL_COUNTED
    lists = OpeningArrays.of(arranged[:half]), OpeningArrays.of(arranged[half:])
    rules = fewest, int(not counting.draws)
    opening = _opening((*sent, None), rules, logs[0], lists[0])
    place(grower, NO_PARTS, None, None, opening=opening)
    for i, (level, m) in enumerate(zip(logs, sizes, strict=True)):
        plan, counted = _plan(level, lists[i % 2], _most_pieces(rows, m))
        cells, drawn = new_histograms(grower, m), draw_orders(grower, m, plan.keys)
        orders, ranks = drawn if counting.draws else (None, None)
        count(grower, counting, counted, cells, orders=orders)
        constraints = pack_constraints(grower, ())
        scores = score_nodes(grower, m, cells, larger, constraints, ranks=ranks, number=plan.number)
        search = open_search(
            grower, SearchExtent(m, rows, rows), cells, plan, scores, drawn, level.results
        )
        queue_search(grower, search, is_first=True)
        below, opening = lists[(i + 1) % 2], NOT_OPENED
        if i + 1 < len(logs):
            opening = _opening((*level.nodes, search.records), rules, logs[i + 1], below)
        place(grower, plan.parts, search.records, search.lefts, opening=opening)
        larger = LARGER.pack(cells, *below.nodes[2:4])
        del drawn, orders, ranks, scores, search
    workspace.plan.release()  # the level loop needs less, and the rest of its memory
    return _read(grower, LevelLog.listed(log.get(), sizes))


def _within_memory(grower: Grower, rows: int, most: int, sizes: list[int]) -> list[int]:
    """Maximum numbers of nodes of levels, whose arrays fit what their histograms leave."""
    of_node = grower.table.cells * grower.cell_bytes
    while most and sizes:
        found = [min(size, most) for size in sizes]
        free = LEVEL_SHARE * (grower.memory.histogram_bytes - max(found) * of_node)
        if bytes_of(*_arrays(rows, found)) <= free:
            return found
        most = min(most, max(found)) // 2
    return []


# Arrays of nodes: fields of OpenNodes from `low` on.
NODE_ARRAYS = 6


class OpeningArrays(NamedTuple):
    """Arrays for every second level."""

    nodes: list[Any]
    pieces: list[tuple[Any, ...]]  # counted, searched and split: fields of Pieces

    @classmethod
    def of(cls, arrays: list[Any]) -> OpeningArrays:
        """Arrange one set of the arrays of `_arrays`."""
        tuned = tuning.TUNING
        by_rows = tuned.chunk_rows, tuned.fewest_chunk_rows, filling_chunks()
        cuts = by_rows, by_rows, (tuned.partition_rows, tuned.partition_rows, 1)
        pieces = [
            (*cut, *arrays[i : i + 4])
            for cut, i in zip(cuts, range(NODE_ARRAYS, len(arrays), 4), strict=True)
        ]
        return cls(arrays[:NODE_ARRAYS], pieces)


def _arrays(rows: int, sizes: list[int]) -> list[Shaped]:
    """Arrays of the widest level, twice: one is read while the next is opened; and all logs."""
    m, i8 = max(sizes), np.int64
    lists = [size for number in _most_pieces(rows, m) for size in (m, number, number, number)]
    return [(size, i8) for size in (*2 * (*NODE_ARRAYS * (m,), *lists), LevelLog.words(sizes))]


def _most_pieces(rows: int, m: int) -> tuple[int, int, int]:
    """Maximum numbers of pieces that m nodes are divided into: counted, searched, split."""
    tuned = tuning.TUNING
    filling = min(filling_chunks(), rows // tuned.fewest_chunk_rows)
    most = max(rows // tuned.chunk_rows, filling) + m
    return most, most, rows // tuned.partition_rows + m


def _opening(
    above: tuple[Any, ...], rules: tuple[int, int], level: LevelLog, lists: OpeningArrays
) -> Packed:
    """Pack the level that is made of the nodes above: see Opening of opening.cuh."""
    nodes = level.begin.size, *level.nodes, *lists.nodes
    return OPENING.pack(above, *rules, nodes, *lists.pieces, level.results, len(Tally._fields))


def _plan(
    level: LevelLog, lists: OpeningArrays, most: tuple[int, int, int]
) -> tuple[LevelPlan, DeviceChunks]:
    """Plan of a level that is opened, of at most so many pieces; and those that are counted."""
    counted, searched, split = [
        DeviceChunks(size, CHUNKS.pack(*lists.pieces[i][4:], level.numbers[i + 1 :]))
        for i, size in enumerate(most)
    ]
    number, begin, _, keys = level.nodes
    low, high, *_ = lists.nodes
    parts = NodePieces(split, begin, lists.pieces[2][3])
    return LevelPlan(searched, parts, keys, low, high, [], number=number), counted


def _read(grower: Grower, logs: list[LevelLog]) -> Queued:
    """Splits of the levels, without nodes that the device did not decide."""
    found = [Results.of(level.results, level.begin.size) for level in logs]
    numbers = [int(level.numbers[0]) for level in logs]
    nodes = zip(logs, found, numbers, strict=True)
    kept = [(log.begin[:m], log.end[:m], read.records[:m]) for log, read, m in nodes]
    begin, end, records = map(np.concatenate, zip(*kept, strict=True))
    splits, middle, low, high = splits_of(grower, records)
    host, inner = grower.table.host, np.flatnonzero(splits.feature >= 0)
    threshold = np.zeros(begin.size)
    threshold[inner] = thresholds(
        splits.take(inner), low[inner], high[inner], host.by_code, host.highest, host.lowest
    )
    decided, levels = splits.feature != WAITS, []
    for first, last in pairwise(np.cumsum([0, *numbers])):
        nodes = first + np.flatnonzero(decided[first:last])
        if nodes.size == 0:
            break
        levels.append(Ahead(begin[nodes], splits.take(nodes), middle[nodes], threshold[nodes]))
    tally = Tally(*np.sum([results.tally for results in found], axis=0).tolist())
    return Queued(levels, int((end - begin)[decided].sum()), tally.slots, tally.overflows > 0)
