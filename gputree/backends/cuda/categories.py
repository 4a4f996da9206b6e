"""The best subset of the categories of nominal columns, in nodes that have histograms.

Of few categories, from the histogram; of many, from the rows of the nodes sorted by category.
The host sees how many categories nodes have in columns of many, and of the splits chosen which
of them go left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    Chunks,
    Grower,
    batches,
    sort_segments,
    to_device,
)
from gputree.backends.cuda.score import Scores
from gputree.backends.cuda.structs import LEVEL, PAIRS, RUN_ROOM, Packed
from gputree.backends.cuda.workspace import carve, send
from gputree.backends.subsets import MOST_CELLS

LANES = 32


class Sides(NamedTuple):
    """Which categories the subsets of m nodes send left, in each nominal column, on the device.

    Those of column f in node j are listed at ``start[p] .. start[p] + count[p]`` for ``p = j x
    number + place[f]``, ascending: all that the node has rows of.

        code       | 0 2 5 | 1 2 | 3 |
        is_left    | 1 0 1 | 0 1 | 1 |
    """

    number: int  # of nominal columns
    place: Any  # (d,) int32: of a column among these, -1 where it is numeric
    start: Any  # (m x number,) int64
    count: Any  # (m x number,) int32
    code: Any  # uint32
    is_left: Any  # uint8


class Pairs(NamedTuple):
    """Nominal columns in nodes, with room for so many categories; on the host."""

    node: Int64s
    column: Int64s
    room: Int64s


def offsets(sizes: Int64s) -> Int64s:
    """Where each of consecutive pieces begins, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def powers_of_two(count: Int64s) -> Int64s:
    """The least powers of two that are at least `count`, and 1."""
    return np.int64(1) << np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64)


def score_subsets(
    grower: Grower, begin: Int64s, end: Int64s, histograms: Any, slots: Any, scores: Scores
) -> Sides | None:
    """Find the best subset of every nominal column in every node: its score, to `scores`."""
    host = grower.table.host
    nominal = np.flatnonzero(host.categories)
    if nominal.size == 0:
        return None
    xp, m = cupy(), begin.size
    counts = np.minimum((end - begin)[:, None], host.categories[nominal])
    start = offsets(counts.ravel())
    place = np.full(grower.table.columns, -1, np.int32)
    place[nominal] = np.arange(nominal.size)
    sides = Sides(
        number=nominal.size,
        place=to_device(place),
        start=to_device(start[:-1]),
        count=xp.zeros(counts.size, dtype=np.int32),
        code=xp.empty(int(start[-1]), dtype=np.uint32),
        is_left=xp.empty(int(start[-1]), dtype=np.uint8),
    )
    few = nominal[~host.is_many[nominal]]
    level = LEVEL.pack(histograms, slots, scores.cumulative, scores.total)
    found = _Found(grower, level, scores, sides, start, place, nominal.size)
    pairs = Pairs(
        np.repeat(np.arange(m), few.size),
        np.tile(few, m),
        counts[:, ~host.is_many[nominal]].ravel(),
    )
    for part in found.batches(pairs):
        found.run("score_bins", part)
    for f in nominal[host.is_many[nominal]]:
        found.sort_and_run(begin, end, int(f))
    return sides


class _Found(NamedTuple):
    """Where the subsets that are found go."""

    grower: Grower
    level: Packed
    scores: Scores
    sides: Sides
    start: Int64s
    place: NDArray[np.int32]
    number: int

    def batches(self, pairs: Pairs) -> Iterator[Pairs]:
        """Pairs whose statistics are held at once."""
        if pairs.node.size == 0:
            return
        bounds = batches(self._held(pairs), tuning.TUNING.batch_cells)
        for first, last in zip(bounds, bounds[1:], strict=False):
            yield Pairs(*(field[first:last] for field in pairs))

    def _held(self, pairs: Pairs) -> Int64s:
        """Statistics that each pair needs room for: of its categories, where they may be held."""
        task = self.grower.task
        width = task.n_classes or 2
        held = np.full(pairs.node.size, width <= 3)
        if not held.all() and pairs.room.max() * width > MOST_CELLS:
            present = (self.scores.total.get()[:, :width] > 0).sum(axis=1)
            held = (present <= 3)[pairs.node] | (present[pairs.node] * pairs.room <= MOST_CELLS)
        else:
            held[:] = True
        if task.search is not None:
            held |= pairs.room <= task.search.most_exhaustive
        held |= ~self.grower.table.host.is_many[pairs.column]
        return (np.where(held, pairs.room + 1, 0) + 2) * width

    def sort_and_run(self, begin: Int64s, end: Int64s, column: int) -> None:
        """Look for the subsets of a column of many categories, nodes that fit memory at once."""
        grower = self.grower
        most = min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs)
        bounds = batches(end - begin, most)
        for a, b in zip(bounds, bounds[1:], strict=False):
            rows = _sort_rows(grower, begin[a:b], end[a:b], column)
            pairs = Pairs(np.arange(a, b), np.full(b - a, column), rows.categories)
            for part in self.batches(pairs):
                own = part.node - a
                first, last = send(rows.start[own], rows.start[own + 1])
                self.run("score_rows", part, grower.statistics, rows.keys, rows.items, first, last)

    def run(self, kernel: str, pairs: Pairs, *rest: Any) -> None:
        """Look for the subsets of some pairs."""
        grower, xp = self.grower, cupy()
        at = pairs.node * self.number + self.place[pairs.column]
        run_at, cell_at = offsets(pairs.room + 2), offsets(self._held(pairs))
        sort_at = offsets(powers_of_two(pairs.room))
        room = (run_at, np.int64), (sort_at, np.float64), (sort_at, np.int32), (cell_at, np.int64)
        count = xp.empty(pairs.node.size, dtype=np.int32)
        own = PAIRS.pack(
            to_device(pairs.node), to_device(pairs.column), to_device(self.start[at]),
            self.sides.code, self.sides.is_left, count,
        )  # fmt: skip
        run_room = RUN_ROOM.pack(
            *(to_device(ends[:-1]) for ends in (run_at, sort_at, cell_at)),
            *(xp.empty(int(ends[-1]), dtype=dtype) for ends, dtype in room),
        )
        grower.kernels(
            "categories", kernel, (pairs.node.size,), grower.rules, grower.search,
            grower.table.packed, self.level, own, run_room, self.scores.pack(), *rest,
            threads=LANES,
        )  # fmt: skip
        self.sides.count[to_device(at)] = count


class Rows(NamedTuple):
    """The rows of nodes, sorted by the categories of one column; those missing come last."""

    keys: Any
    items: Any
    start: Int64s  # (m + 1,), on the host
    categories: Int64s  # (m,) how many each node has, on the host


def _sort_rows(grower: Grower, begin: Int64s, end: Int64s, column: int) -> Rows:
    xp, table = cupy(), grower.table
    chunks, start = Chunks.of(begin, end), offsets(end - begin)
    n = int(start[-1])
    segments, items, keys = carve((n, np.uint32), (n, np.int32), (n, table.bits))
    grower.kernels(
        "categories", "list_rows", (chunks.number,), table.values, table.columns, column,
        grower.entries, chunks.packed, to_device(begin), to_device(start), segments, keys, items,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    keys, segments = keys[order], segments[order]
    is_new = xp.concatenate(
        [xp.ones(1, dtype=np.bool_), (keys[1:] != keys[:-1]) | (segments[1:] != segments[:-1])]
    )
    is_new &= keys != ~table.bits.type(0)
    upto = xp.cumsum(is_new)[to_device(start[1:] - 1)].get().astype(np.int64)
    return Rows(keys, items[order], start, np.diff(upto, prepend=0))


# ----------------------------------------------------------------------------- splits
def codes_of(grower: Grower, sides: Sides | None, feature: NDArray[np.int32]) -> NDArray:
    """The categories that go left of the splits of m nodes, on the host; None for numeric ones."""
    codes = np.full(feature.size, None)
    nominal = np.flatnonzero((feature >= 0) & (grower.table.host.categories[feature] > 0))
    if sides is None or nominal.size == 0:
        return codes
    at = to_device(nominal * sides.number) + sides.place[to_device(feature[nominal])]
    start, count = sides.start[at].get(), sides.count[at].get()
    places = np.concatenate([np.arange(a, a + n) for a, n in zip(start, count, strict=True)])
    listed = to_device(places)
    code, is_left = sides.code[listed].get(), sides.is_left[listed].get() != 0
    ends = np.cumsum(count)[:-1]
    each = zip(np.split(code, ends), np.split(is_left, ends), strict=True)
    for j, (own, left) in zip(nominal, each, strict=True):
        codes[j] = own[left]
    return codes


def sides_of(grower: Grower, splits: Splits) -> Sides | None:
    """The sides of splits that are known on the host."""
    if not grower.table.host.categories.any():
        return None
    none = np.empty(0, np.uint32)
    codes = [none if code is None else code for code in splits.codes]
    start = offsets(np.array([code.size for code in codes], np.int64))
    code = to_device(np.concatenate([*codes, np.zeros(1, np.uint32)]), np.uint32)
    place = np.where(grower.table.host.categories > 0, 0, -1)
    is_left = cupy().ones(code.size, dtype=np.uint8)
    count = to_device(np.diff(start), np.int32)
    return Sides(1, to_device(place, np.int32), to_device(start[:-1]), count, code, is_left)
