"""The best subset of the categories of nominal columns, in nodes that have histograms.

Of few categories, from the histogram; of many, from the rows of the nodes sorted by category.
The host sees how many categories nodes have in columns of many, and of the splits chosen which
of them go left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import (
    Chunks,
    Grower,
    Plan,
    batches,
    sort_segments,
    to_device,
)
from gputree.backends.cuda.score import Scores
from gputree.backends.cuda.structs import PAIRS, RUN_ROOM, Packed
from gputree.backends.cuda.workspace import Shaped, bytes_of, carve, send
from gputree.backends.subsets import MOST_CELLS

LANES = 32

# Of a node's mask of categories, in int64: as many as there are bins.
MASK_WORDS = MAX_BINS // 64


class Sides(NamedTuple):
    """Which categories the subsets of m nodes send left, in each nominal column, on the device.

    Those of column f in node j are listed at ``start[p] .. start[p] + count[p]`` for ``p =
    place[f] x m + j``, ascending: all that the node has rows of.

        code       | 0 2 5 | 1 2 | 3 |
        is_left    | 1 0 1 | 0 1 | 1 |
    """

    nodes: int
    place: Any  # (d,) int32: of a column among the nominal ones, -1 where it is numeric
    start: Any  # (nominal columns x m,) int64
    count: Any  # (nominal columns x m,) int32
    code: Any  # uint32
    is_left: Any  # uint8
    masks: Any = None  # (m, 2 x MASK_WORDS) uint32 for the host, or None where it knows


class Pairs(NamedTuple):
    """Nominal columns in nodes, with room for so many categories, and statistics of so many."""

    node: Int64s
    column: Int64s
    room: Int64s
    held: Int64s

    def take(self, first: int, last: int) -> Pairs:
        """Some of them."""
        return Pairs(*(field[first:last] for field in self))

    @property
    def ends(self) -> tuple[Int64s, Int64s, Int64s]:
        """Where runs, room to sort them, and statistics of each begin, and the ends."""
        sizes = self.room + 2, powers_of_two(self.room), self.held
        runs, sorting, cells = (offsets(size) for size in sizes)
        return runs, sorting, cells


class Subsets(NamedTuple):
    """What is to be found of m nodes, on the host.

    Columns of few categories, a bin each, are worked on in batches of pairs; then, one by one,
    those of many.
    """

    start: Int64s  # of `Sides`, and the end
    bounds: list[int]  # of the batches
    room: list[int]  # runs, places to sort them, and statistics, of any batch at most
    told: tuple[Int64s, ...]  # to the device: `start`; node, column and `ends` of the pairs


def offsets(sizes: Int64s) -> Int64s:
    """Where each of consecutive pieces begins, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def powers_of_two(count: Int64s) -> Int64s:
    """The least powers of two that are at least `count`, and 1."""
    return np.int64(1) << np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64)


def list_subsets(grower: Grower, begin: Int64s, end: Int64s) -> Subsets | None:
    """What is to be found of nodes ``begin[j] .. end[j]``; None where no column is nominal."""
    host, m = grower.table.host, begin.size
    nominal = host.nominal
    if nominal.size == 0:
        return None
    room = np.minimum(host.categories[nominal][:, None], end - begin).ravel()
    start, few = offsets(room), nominal[~host.is_many[nominal]]
    own = room[: few.size * m]
    pairs = Pairs(np.tile(np.arange(m), few.size), np.repeat(few, m), own, _held(grower, own))
    bounds = batches(pairs.held, tuning.TUNING.batch_cells)
    ends = [pairs.take(a, b).ends for a, b in zip(bounds, bounds[1:], strict=False)]
    of_batches = list(zip(*ends, strict=True)) or 3 * [(np.zeros(1, np.int64),)]
    return Subsets(
        start=start,
        bounds=bounds,
        room=[max(int(end[-1]) for end in ends) for ends in of_batches],
        told=(
            start[:-1],
            pairs.node,
            pairs.column,
            *(np.concatenate([end[:-1] for end in ends]) for ends in of_batches),
        ),
    )


def _held(grower: Grower, room: Any) -> Any:
    """Statistics of pairs with room for so many categories, all of which are held."""
    return (room + 3) * (grower.task.n_classes or 2)


def score_subsets(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    level: Packed,
    plan: Plan,
    scores: Scores,
    subsets: Subsets,
    masks: Any,
) -> Sides:
    """Find the best subset of every nominal column in every node: its score, to `scores`."""
    host, (start, *told) = grower.table.host, plan.others
    own, runs = _side_arrays(start.size, int(subsets.start[-1])), _run_arrays(*subsets.room)
    count, code, is_left = grower.workspace.subsets.carve(
        own, lambda: min(_most_side_bytes(grower), grower.memory.histogram_bytes)
    )
    room = grower.workspace.inside.carve(
        runs, lambda: min(2 * bytes_of(*runs), grower.memory.gathered_bytes)
    )
    sides = Sides(begin.size, grower.place, start, count, code, is_left, masks)
    found = _Found(grower, level, scores, sides)
    for first, last in zip(subsets.bounds, subsets.bounds[1:], strict=False):
        found.run("score_bins", first, [of[first:last] for of in told], room)
    del room  # what is looked for next has it
    for place, f in enumerate(host.nominal):
        if host.is_many[f]:
            found.sort_and_run(begin, end, int(f), place)
    return sides


def _side_arrays(pairs: int, listed: int) -> list[Shaped]:
    """`Sides` of so many pairs and categories."""
    return [(pairs, np.int32), (listed, np.uint32), (listed, np.uint8)]


def _most_side_bytes(grower: Grower) -> int:
    """What `Sides` of a level take, at most."""
    host, m = grower.table.host, grower.most_nodes
    listed = np.minimum(m * host.categories, grower.entries.size).sum()
    return bytes_of(*_side_arrays(m * host.nominal.size, int(listed)))


def _run_arrays(runs: int, sorting: int, cells: int) -> list[Shaped]:
    """See RunRoom of subsets.cuh."""
    return [(runs, np.int64), (sorting, np.float64), (sorting, np.int32), (cells, np.int64)]


class _Found(NamedTuple):
    """Where the subsets that are found go."""

    grower: Grower
    level: Packed
    scores: Scores
    sides: Sides

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
        return np.where(held, _held(self.grower, pairs.room), 2 * width)

    def sort_and_run(self, begin: Int64s, end: Int64s, column: int, place: int) -> None:
        """Look for the subsets of a column of many categories, nodes that fit memory at once."""
        grower = self.grower
        most = min(tuning.TUNING.gathered_pairs, grower.memory.gathered_pairs)
        bounds = batches(end - begin, most)
        for a, b in zip(bounds, bounds[1:], strict=False):
            rows, node = _sort_rows(grower, begin[a:b], end[a:b], column), np.arange(a, b)
            pairs = Pairs(node, np.full(b - a, column), rows.categories, rows.categories)
            pairs = pairs._replace(held=self._held(pairs))
            own = batches(pairs.held, tuning.TUNING.batch_cells)
            for first, last in zip(own, own[1:], strict=False):
                at = place * self.sides.nodes + a + first
                self._run_rows(at, pairs.take(first, last), rows, slice(first, last))

    def _run_rows(self, at: int, pairs: Pairs, rows: Rows, own: slice) -> None:
        """Look for the subsets of pairs with these of the sorted rows, the first of number `at`."""
        ends = pairs.ends
        *told, first, last = send(
            pairs.node, pairs.column, *(end[:-1] for end in ends), rows.start[:-1][own],
            rows.start[1:][own],
        )  # fmt: skip
        room = carve(*_run_arrays(*(int(end[-1]) for end in ends)))
        rest = self.grower.statistics, rows.keys, rows.items, first, last
        self.run("score_rows", at, told, room, *rest)

    def run(
        self, kernel: str, first: int, told: Sequence[Any], room: Sequence[Any], *rest: Any
    ) -> None:
        """Look for the subsets of some pairs, in the order of `Sides` from `first` on.

        They are `told`: node, column and where their runs lie.
        """
        grower, sides, (node, column, *at) = self.grower, self.sides, told
        last = first + node.size
        own = PAIRS.pack(
            node, column, sides.start[first:last], sides.code, sides.is_left,
            sides.count[first:last],
        )  # fmt: skip
        grower.kernels(
            "categories", kernel, (node.size,), grower.rules, grower.search,
            grower.table.packed, self.level, own, RUN_ROOM.pack(*at, *room), self.scores.pack(),
            *rest, threads=LANES,
        )  # fmt: skip


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
def codes_of(
    grower: Grower, sides: Sides | None, feature: NDArray[np.int32], masks: Int64s
) -> NDArray:
    """The categories that go left of the splits of m nodes, on the host; None for numeric ones."""
    codes = np.full(feature.size, None)
    if sides is None:
        return codes
    host = grower.table.host
    nominal = (feature >= 0) & (host.categories[feature] > 0)
    is_many = nominal & host.is_many[feature]
    few = np.flatnonzero(nominal & ~is_many)
    bits = np.unpackbits(masks[few].view(np.uint8), axis=1, bitorder="little")
    _share_out(codes, few, np.nonzero(bits)[1].astype(np.uint32), bits.sum(axis=1))
    if is_many.any():
        _read_listed(grower, sides, feature, np.flatnonzero(is_many), codes)
    return codes


def _share_out(codes: NDArray, nodes: Int64s, values: NDArray[Any], sizes: Int64s) -> None:
    """Write to the codes of each node so many values in turn."""
    for j, own in zip(nodes, np.split(values, np.cumsum(sizes)[:-1]), strict=bool(nodes.size)):
        codes[j] = own


def _read_listed(
    grower: Grower, sides: Sides, feature: NDArray[np.int32], nodes: Int64s, codes: NDArray
) -> None:
    """Write to `codes` what goes left of splits by columns of many categories."""
    nominal = grower.table.host.nominal
    place = np.argsort(nominal)[np.searchsorted(np.sort(nominal), feature[nodes])]
    at = to_device(place * sides.nodes + nodes)
    start, count = sides.start[at].get(), sides.count[at].get()
    places = np.concatenate([np.arange(a, a + n) for a, n in zip(start, count, strict=True)])
    listed = to_device(places)
    code, is_left = sides.code[listed].get(), sides.is_left[listed].get() != 0
    lefts = np.add.reduceat(is_left, offsets(count)[:-1], dtype=np.int64)
    _share_out(codes, nodes, code[is_left], lefts)


def sides_of(grower: Grower, splits: Splits) -> Sides | None:
    """The sides of splits that are known on the host."""
    if not grower.table.host.categories.any():
        return None
    none = np.empty(0, np.uint32)
    codes = [none if code is None else code for code in splits.codes]
    start = offsets(np.array([code.size for code in codes], np.int64))
    code = to_device(np.concatenate([*codes, np.zeros(1, np.uint32)]), np.uint32)
    place = np.where(grower.table.host.categories > 0, 0, -1)  # the column that the node cuts
    is_left = cupy().ones(code.size, dtype=np.uint8)
    count = to_device(np.diff(start), np.int32)
    return Sides(
        splits.feature.size, to_device(place, np.int32), to_device(start[:-1]), count, code, is_left
    )
