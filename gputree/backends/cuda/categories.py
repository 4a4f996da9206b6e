"""The best subset of the categories of categorical columns, in nodes that have histograms.

Columns of few categories are searched in the histogram, columns of many in the rows of the nodes
sorted by category. The host receives the numbers of categories of nodes in columns of many, and the
categories that go left of the splits chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import MOST_CELLS, Splits
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import LANES, PAIRS, RUN_MEMORY, Packed, cupy
from gputree.backends.cuda.layout import (
    Grower,
    LevelPlan,
    batches,
    offsets,
    sort_segments,
    to_device,
)
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.workspace import DeviceChunks, Shaped, allocate, bytes_of, send
from gputree.base.dtypes import Int64s

# Size of a node's mask of categories, in int64: a bit for each bin.
MASK_WORDS = MAX_BINS // 64


class Sides(NamedTuple):
    """Sides of categories in the best subsets of m nodes and all categorical columns.

    Categories of column f in node j are at ``start[p] .. start[p] + count[p]`` for ``p = place[f] x
    m + j``, ascending: all that the node has rows of.

        code       | 0 2 5 | 1 2 | 3 |
        is_left    | 1 0 1 | 0 1 | 1 |
    """

    nodes: int
    place: Any  # (d,) int32: place among the categorical columns, -1 for a numeric one
    start: Any  # (categorical columns x m,) int64
    count: Any  # (categorical columns x m,) int32
    code: Any  # uint32
    is_left: Any  # uint8
    masks: Any = None  # (m, 2 x MASK_WORDS) uint32 for the host; None where it knows them


class NominalPairs(NamedTuple):
    """Categorical columns in nodes, with an upper bound on their number of categories."""

    node: Int64s
    column: Int64s
    categories: Int64s
    statistics: Int64s  # that memory is needed for

    def take(self, first: int, last: int) -> NominalPairs:
        """Return the pairs ``first .. last``."""
        return NominalPairs(*(field[first:last] for field in self))

    @property
    def ends(self) -> list[Int64s]:
        """`group_ends` of the pairs."""
        return group_ends(self.categories, self.statistics)


class SubsetPlan(NamedTuple):
    """Plan of the search of subsets in m nodes, on the host.

    Columns of few categories, a bin each, are searched in batches of pairs; then columns of many,
    one by one.
    """

    start: Int64s  # offsets of `Sides`, and the end
    bounds: list[int]  # of the batches
    sizes: list[int]  # maximum sizes of the arrays of a batch: see `group_arrays`
    sent: tuple[Int64s, ...]  # `start`; node, column and `ends` of the pairs


def group_ends(categories: Int64s, statistics: Int64s) -> list[Int64s]:
    """Offsets of category groups, of their order, and of the statistics of each node, and the ends.

    Groups are sorted in arrays whose size is a power of two.
    """
    powers = np.int64(1) << np.ceil(np.log2(np.maximum(categories, 1))).astype(np.int64)
    return [offsets(size) for size in (categories + 2, powers, statistics)]


def group_arrays(groups: Any, sorting: Any, cells: Any) -> list[Shaped]:
    """Shapes of arrays for category groups of given sizes: see RunMemory of subsets.cuh."""
    n, m, k = (int(np.max(size)) for size in (groups, sorting, cells))
    return [(n, np.int64), (m, np.float64), (m, np.int32), (k, np.int64)]


def list_subsets(grower: Grower, begin: Int64s, end: Int64s) -> SubsetPlan | None:
    """Plan the search of subsets in m nodes; None without categorical columns."""
    host, m = grower.table.host, begin.size
    if host.categorical.size == 0:
        return None
    most = np.minimum(host.categories[host.categorical][:, None], end - begin).ravel()
    few = host.categorical[~host.is_many[host.categorical]]
    nominal = most[: few.size * m]
    node, column = np.tile(np.arange(m), few.size), np.repeat(few, m)
    pairs = NominalPairs(node, column, nominal, _statistics(grower, nominal))
    bounds = batches(pairs.statistics, tuning.TUNING.batch_cells)
    ends = [pairs.take(a, b).ends for a, b in zip(bounds, bounds[1:], strict=False)]
    of_batches = list(zip(*ends, strict=True)) or 3 * [(np.zeros(1, np.int64),)]
    starts = (np.concatenate([end[:-1] for end in ends]) for ends in of_batches)
    start = offsets(most)
    return SubsetPlan(
        start=start,
        bounds=bounds,
        sizes=[max(int(end[-1]) for end in ends) for ends in of_batches],
        sent=(start[:-1], pairs.node, pairs.column, *starts),
    )


def _statistics(grower: Grower, categories: Any) -> Any:
    """Number of statistics that pairs with these `categories` keep."""
    return (categories + 3) * (grower.task.n_classes or 2)


def score_subsets(
    grower: Grower,
    begin: Int64s,
    end: Int64s,
    level: Packed,
    plan: LevelPlan,
    scores: DeviceScores,
    subsets: SubsetPlan,
    masks: Any,
) -> Sides:
    """Write the best subset of every categorical column in every node to `scores`."""
    host, (start, *sent) = grower.table.host, plan.others
    arrays, groups = _side_arrays(start.size, int(subsets.start[-1])), group_arrays(*subsets.sizes)
    count, code, is_left = grower.workspace.subsets.allocate(
        arrays, lambda: min(_most_side_bytes(grower), grower.memory.histogram_bytes)
    )
    memory = grower.workspace.inside.allocate(
        groups, lambda: min(2 * bytes_of(*groups), grower.memory.gathered_bytes)
    )
    sides = Sides(begin.size, grower.place, start, count, code, is_left, masks)
    search = _Search(grower, level, scores, sides)
    for first, last in zip(subsets.bounds, subsets.bounds[1:], strict=False):
        search.run("score_bins", first, [of[first:last] for of in sent], memory)
    del memory  # the next search uses it
    for place, f in enumerate(host.categorical):
        if host.is_many[f]:
            search.sort_and_run(begin, end, int(f), place)
    return sides


def _side_arrays(pairs: int, listed: int) -> list[Shaped]:
    """Shapes of `Sides` for `pairs` and the number of categories `listed`."""
    return [(pairs, np.int32), (listed, np.uint32), (listed, np.uint8)]


def _most_side_bytes(grower: Grower) -> int:
    """Maximum bytes of the `Sides` of a level."""
    host, m = grower.table.host, grower.most_nodes
    listed = np.minimum(m * host.categories, grower.entries.size).sum()
    return bytes_of(*_side_arrays(m * host.categorical.size, int(listed)))


class _Search(NamedTuple):
    """Arguments of the search of subsets, and the places for the subsets found."""

    grower: Grower
    level: Packed
    scores: DeviceScores
    sides: Sides

    def _statistics(self, node: Int64s, categories: Int64s) -> Int64s:
        """Number of statistics that need memory: of all categories, where they are kept."""
        task = self.grower.task
        width = task.n_classes or 2
        kept = np.full(node.size, width <= 3 or categories.max() * width <= MOST_CELLS)
        if not kept.all():
            present = (self.scores.total.get()[:, :width] > 0).sum(axis=1)[node]
            kept = (present <= 3) | (present * categories <= MOST_CELLS)
        if task.search is not None:
            kept |= categories <= task.search.most_exhaustive
        return np.where(kept, _statistics(self.grower, categories), 2 * width)

    def sort_and_run(self, begin: Int64s, end: Int64s, column: int, place: int) -> None:
        """Search the subsets of a column of many categories, in batches of nodes that fit."""
        grower = self.grower
        bounds = batches(end - begin, grower.most_gathered_pairs)
        for a, b in zip(bounds, bounds[1:], strict=False):
            rows, node = _sort_rows(grower, begin[a:b], end[a:b], column), np.arange(a, b)
            statistics = self._statistics(node, rows.categories)
            pairs = NominalPairs(node, np.full(b - a, column), rows.categories, statistics)
            limits = batches(statistics, tuning.TUNING.batch_cells)
            for first, last in zip(limits, limits[1:], strict=False):
                start = place * self.sides.nodes + a + first
                self._run_rows(start, pairs.take(first, last), rows, first, last)

    def _run_rows(
        self, start: int, pairs: NominalPairs, rows: SortedRows, first: int, last: int
    ) -> None:
        """Search the subsets of pairs, from number `start` on, with the rows of some nodes."""
        ends, starts = pairs.ends, (rows.start[first:last], rows.start[first + 1 : last + 1])
        *sent, begin, end = send(pairs.node, pairs.column, *(each[:-1] for each in ends), *starts)
        rest = self.grower.statistics, rows.keys, rows.items, begin, end
        self.run("score_rows", start, sent, allocate(*group_arrays(*ends)), *rest)

    def run(
        self, kernel: str, first: int, sent: Sequence[Any], memory: Sequence[Any], *rest: Any
    ) -> None:
        """Search the subsets of some pairs, from `first` on in the order of `Sides`.

        `sent` are their nodes, columns and the offsets of their category groups.
        """
        grower, sides, (node, column, *offsets) = self.grower, self.sides, sent
        last = first + node.size
        packed = PAIRS.pack(
            node, column, sides.start[first:last], sides.code, sides.is_left,
            sides.count[first:last],
        )  # fmt: skip
        grower.kernels(
            "categories", kernel, (node.size,), grower.rules, grower.search,
            grower.table.packed, self.level, packed, RUN_MEMORY.pack(*offsets, *memory),
            self.scores.pack(), *rest, threads=LANES,
        )  # fmt: skip


class SortedRows(NamedTuple):
    """The rows of nodes, sorted by the categories of one column; missing values come last."""

    keys: Any
    items: Any
    start: Int64s  # (m + 1,), on the host
    categories: Int64s  # (m,) of each node, on the host


def _sort_rows(grower: Grower, begin: Int64s, end: Int64s, column: int) -> SortedRows:
    xp, table = cupy(), grower.table
    chunks, start = DeviceChunks.of(begin, end), offsets(end - begin)
    n = int(start[-1])
    segments, items, keys = allocate((n, np.uint32), (n, np.int32), (n, table.bits))
    grower.kernels(
        "categories", "list_rows", (chunks.number,), table.values, table.packed, column,
        grower.entries, chunks.packed, to_device(begin), to_device(start), segments, keys, items,
    )  # fmt: skip
    order = sort_segments(segments, keys)
    keys, segments = keys[order], segments[order]
    is_new = xp.concatenate(
        [xp.ones(1, dtype=np.bool_), (keys[1:] != keys[:-1]) | (segments[1:] != segments[:-1])]
    )
    is_new &= keys != ~table.bits.type(0)
    upto = xp.cumsum(is_new)[to_device(start[1:] - 1)].get().astype(np.int64)
    return SortedRows(keys, items[order], start, np.diff(upto, prepend=0))


# ----------------------------------------------------------------------------- splits
def codes_of(
    grower: Grower, sides: Sides | None, feature: NDArray[np.int32], masks: Int64s
) -> NDArray:
    """Categories that go left of the splits of m nodes, on the host; None for numeric columns."""
    codes = np.full(feature.size, None)
    if sides is None:
        return codes
    host = grower.table.host
    is_categorical = (feature >= 0) & (host.categories[feature] > 0)
    is_many = is_categorical & host.is_many[feature]
    few = np.flatnonzero(is_categorical & ~is_many)
    bits = np.unpackbits(masks[few].view(np.uint8), axis=1, bitorder="little")
    _put_codes(codes, few, np.nonzero(bits)[1].astype(np.uint32), bits.sum(axis=1))
    if is_many.any():
        _read_listed(grower, sides, feature, np.flatnonzero(is_many), codes)
    return codes


def _put_codes(codes: NDArray, nodes: Int64s, values: NDArray[Any], sizes: Int64s) -> None:
    """Set the codes of each node to the next ``sizes[i]`` of the values."""
    for j, of_node in zip(nodes, np.split(values, np.cumsum(sizes)[:-1]), strict=bool(nodes.size)):
        codes[j] = of_node


def _read_listed(
    grower: Grower, sides: Sides, feature: NDArray[np.int32], nodes: Int64s, codes: NDArray
) -> None:
    """Read the categories that go left of nodes split by columns of many categories."""
    categorical = grower.table.host.categorical
    place = np.argsort(categorical)[np.searchsorted(np.sort(categorical), feature[nodes])]
    pairs = to_device(place * sides.nodes + nodes)
    start, count = sides.start[pairs].get(), sides.count[pairs].get()
    places = np.concatenate([np.arange(a, a + n) for a, n in zip(start, count, strict=True)])
    listed = to_device(places)
    code, is_left = sides.code[listed].get(), sides.is_left[listed].get() != 0
    lefts = np.add.reduceat(is_left, offsets(count)[:-1], dtype=np.int64)
    _put_codes(codes, nodes, code[is_left], lefts)


def sides_of(grower: Grower, splits: Splits) -> Sides | None:
    """Return the sides of splits that the host knows."""
    if not grower.table.host.categories.any():
        return None
    none = np.empty(0, np.uint32)
    codes = [none if code is None else code for code in splits.codes]
    start = offsets(np.array([code.size for code in codes], np.int64))
    code = to_device(np.concatenate([*codes, np.zeros(1, np.uint32)]), np.uint32)
    place = np.where(grower.table.host.categories > 0, 0, -1)  # 0: the column of the split
    is_left = cupy().ones(code.size, dtype=np.uint8)
    count = to_device(np.diff(start), np.int32)
    return Sides(
        splits.feature.size, to_device(place, np.int32), to_device(start[:-1]), count, code, is_left
    )
