"""What the launchers share: a table, its rows and its entries on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.memory import Memory
from gputree.backends.cuda.structs import (
    CHUNKS,
    MONOTONIC,
    ROWS,
    RULES,
    SEARCH,
    TABLE,
    Packed,
)
from gputree.backends.cuda.workspace import Workspace, bytes_of, send
from gputree.backends.subsets import MOST_CELLS, MOST_MOVED
from gputree.dtypes import ROW
from gputree.threads import chunks


class Table(NamedTuple):
    """A table of n rows and d columns on the device; see `gputree.backends.cpu.layout.Table`.

    Values lie there as their bits. Rows of codes are padded to whole words, so that four
    columns are read at once.
    """

    bits: np.dtype  # uint32 or uint64: the bits of a value
    values: Any  # (n, d), or None where codes decide everywhere
    codes: Any  # (n, stride) uint8
    offset: Any  # (d + 1,) int64
    missing: Any  # (d,) uint8
    single: Any  # (offset[d],) uint8
    by_code: Any  # (d,) uint8
    greatest: Any  # (d, 256) float64
    least: Any  # (d, 256) float64
    categories: Any  # (d,) int64
    host: HostTable
    packed: Packed  # for kernels; values are apart
    held: Held | None = None  # None where `values` has all columns

    @property
    def columns(self) -> int:
        return self.missing.size

    @property
    def stride(self) -> int:
        return self.codes.shape[1]

    @property
    def width(self) -> int:
        """Columns that `values` has."""
        return self.columns if self.held is None else self.held.columns.size

    def places(self, columns: Int64s) -> Int64s:
        """Where these columns are among those of `values`."""
        return columns if self.held is None else np.searchsorted(self.held.columns, columns)


class Held(NamedTuple):
    """The columns whose values are there."""

    columns: Int64s  # ascending, on the host
    place: Any  # (d,) int32: where each is among them


class HostTable(NamedTuple):
    """What the host keeps of a table."""

    offset: Int64s
    missing: NDArray[np.bool_]
    by_code: NDArray[np.bool_]
    greatest: NDArray[np.float64]
    least: NDArray[np.float64]
    categories: Int64s  # of nominal columns, 0 of numeric ones

    @property
    def is_many(self) -> NDArray[np.bool_]:
        """Nominal columns of more categories than there are bins."""
        many: NDArray[np.bool_] = self.categories + self.missing > MAX_BINS
        return many

    @property
    def nominal(self) -> Int64s:
        """Nominal columns: those of few categories, then those of many."""
        own = np.flatnonzero(self.categories)
        return own[np.argsort(self.is_many[own], kind="stable")]


class Rows(NamedTuple):
    """Per-row statistics in fixed-point units; see `gputree.backends.cpu.layout.Rows`."""

    target: Any  # int32 class, or int64 weight x target
    weight: Any  # int64 or None
    square: Any  # int64 or None
    square_rest: Any  # int64 or None

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any] | None], n_classes: int) -> Rows:
        """Target, weight, square and its rest on the device, None where there are none."""
        kinds = (np.int32 if n_classes else np.int64, np.int64, np.int64, np.int64)
        own = zip(columns, kinds, strict=True)
        return cls(*(None if column is None else to_device(column, kind) for column, kind in own))

    def pack(self) -> Packed:
        """For kernels."""
        return ROWS.pack(*self)


class Grower(NamedTuple):
    """What every launcher needs."""

    kernels: Kernels
    task: Task
    table: Table
    rows: Rows
    entries: Any  # (n,) int32
    sided: Any  # (n,) int32: copies of entries with their sides, while nodes are partitioned
    memory: Memory
    rules: Packed  # of the task
    search: Packed
    statistics: Packed  # `rows`
    signs: Any  # (d,) int32 of columns, or None where nothing is held to be monotonic
    place: Any  # `nominal_places` of the table, or None where subsets are not looked for
    workspace: Workspace

    @classmethod
    def over(cls, task: Task, table: Table, rows: Rows, entries: Any, memory: Memory) -> Grower:
        """What works at a task on a table, whose rows have these statistics."""
        xp, monotonic = cupy(), task.limits.monotonic
        return cls(
            kernels=Kernels(
                task.criterion,
                task.weight is not None,
                8 * table.bits.itemsize,
                bool(table.host.categories.any()),
                monotonic is not None,
            ),
            task=task,
            table=table,
            rows=rows,
            entries=entries,
            sided=xp.empty(entries.size, dtype=ROW),
            memory=memory,
            rules=pack_rules(task, table.columns),
            search=pack_search(task),
            statistics=rows.pack(),
            signs=None if monotonic is None else to_device(monotonic.signs, np.int32),
            place=None,
            workspace=Workspace(),
        )

    @property
    def cell_dtype(self) -> np.dtype:
        """Counts of rows need 32 bits, sums 64: `Cell` of types.cuh."""
        counted = self.task.weight is None and self.task.square is None
        return np.dtype(np.uint32 if counted else np.int64)

    @property
    def cell_bytes(self) -> int:
        """Of the statistics of a bin."""
        return self.task.channels * self.cell_dtype.itemsize

    @property
    def cells(self) -> int:
        """Bins of a node's histogram."""
        return int(self.table.host.offset[-1])

    @property
    def most_nodes(self) -> int:
        """Nodes whose splits are looked for at once, at most."""
        limits = self.task.limits
        of_depth = 1 << min(max(limits.max_depth - 1, 0), 62)
        of_rows = max(self.entries.size // max(limits.min_samples_split, 2), 1)
        of_memory = max(self.memory.histogram_bytes // max(self.cells * self.cell_bytes, 1), 1)
        return min(of_depth, of_rows, of_memory)

    def most_pieces(self, rows: int) -> int:
        """Pieces of so many rows that these nodes are cut into, at most."""
        return self.entries.size // rows + self.most_nodes


def nominal_places(host: HostTable) -> Any:
    """Where each column is in `HostTable.nominal`, else -1, as (d,) int32 on the device.

    None where no column is nominal.
    """
    if host.nominal.size == 0:
        return None
    place = np.full(host.categories.size, -1, ROW)
    place[host.nominal] = np.arange(host.nominal.size)
    return to_device(place)


def pack_table(codes: Any, *columns: Any) -> Packed:
    """A table for kernels: its codes, and what is known of its columns."""
    return TABLE.pack(codes, codes.shape[1], columns[1].size, *columns)


def pack_rules(task: Task, columns: int) -> Packed:
    """What trees are grown by, for kernels."""
    criterion, limits = task.criterion, task.limits
    scale = getattr(criterion, "square_unit", getattr(criterion, "scale", 0.0))
    return RULES.pack(
        (task.n_classes, criterion.unit, scale),
        (limits.min_samples_leaf, limits.min_weight_leaf),
        task.channels,
        min(limits.max_features, columns),
        limits.min_samples_split,
        limits.max_depth,
        limits.min_decrease,
        limits.rounded,
    )


def pack_bounds(grower: Grower, bounds: Sequence[Any] | None) -> Packed:
    """What the means of nodes keep within, for kernels; `bounds` lie anywhere."""
    if bounds is None:
        return MONOTONIC.pack(None, None, None)
    return MONOTONIC.pack(grower.signs, *map(to_device, bounds))


def pack_search(task: Task) -> Packed:
    """What decides between searches for subsets, for kernels."""
    if task.search is None:
        return SEARCH.pack(0, 0.0, 0, 0, 0, 0)
    return SEARCH.pack(*task.search, MOST_MOVED, MOST_CELLS)


class Chunks(NamedTuple):
    """Pieces of nodes, on the device: a block works on each."""

    owner: Any
    first: Any
    last: Any
    number: int
    packed: Packed

    @classmethod
    def of(cls, begin: Int64s, end: Int64s, rows: int = 0) -> Chunks:
        """Pieces of nodes ``begin[j] .. end[j]``, in order; `rows` each, or as tuned."""
        return cls.over(*send(*cut(begin, end, rows)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any) -> Chunks:
        """Pieces as `cut` lists them, on the device."""
        return cls(owner, first, last, int(owner.size), CHUNKS.pack(owner, first, last))


def cut(begin: Int64s, end: Int64s, rows: int = 0) -> tuple[Int64s, Int64s, Int64s]:
    """Owner, first entry and end of pieces of nodes, in order; `rows` each, or as tuned."""
    return chunks(begin, end, rows or tuning.TUNING.chunk_rows)


# What is counted while a level's splits are looked for, as int64: see record.cuh.
TALLY_WORDS = 12


class Plan(NamedTuple):
    """What the host tells of nodes that are to be split, on the device: one copy brings it."""

    chunks: Chunks
    parts: Parts
    tally: Any  # (TALLY_WORDS,) int64: zero
    keys: Any
    low: Any  # (m,) int64: where one target for all rows may lie, anywhere yet; see `widest`
    high: Any
    others: list[Any]  # what else is told
    slots: Any  # of histograms; None where node j has the number j

    @classmethod
    def of(
        cls,
        grower: Grower,
        begin: Int64s,
        end: Int64s,
        slots: Int64s,
        keys: NDArray[np.uint64],
        others: tuple[Int64s, ...] = (),
    ) -> Plan:
        """Nodes ``begin[j] .. end[j]``; `others` are of a word for each nominal column in them."""
        order = own_slots(slots)
        own = (np.zeros(TALLY_WORDS, np.int64), keys, *widest(keys.size))
        arrays = (*cut(begin, end), *Parts.listed(begin, end), *own, *others)
        arrays += () if order is None else (order,)
        sent = grower.workspace.plan.send(arrays, lambda: cls.most_bytes(grower, len(others)))
        chunks, parts, (tally, keys_, low, high, *rest) = sent[:3], sent[3:8], sent[8:]
        slot = None if order is None else rest.pop()
        return cls(Chunks.over(*chunks), Parts.over(*parts), tally, keys_, low, high, rest, slot)

    @staticmethod
    def most_bytes(grower: Grower, others: int) -> int:
        """What the device is told of a level, at most."""
        own, m = tuning.TUNING, grower.most_nodes
        nominal = np.count_nonzero(grower.table.host.categories)
        chunks, parts = (grower.most_pieces(rows) for rows in (own.chunk_rows, own.partition_rows))
        sizes = (*3 * (chunks,), *3 * (parts,), *6 * (m,), TALLY_WORDS, *others * (m * nominal,))
        return bytes_of(*((size, np.int64) for size in sizes))


def widest(m: int) -> tuple[Int64s, Int64s]:
    """Between which targets all those of each of m nodes lie if nothing is known of them.

    As int64 that rise with float64: see order_of of warp.cuh.
    """
    kind = np.iinfo(np.int64)
    return np.full(m, kind.min), np.full(m, kind.max)


class Parts(NamedTuple):
    """The same in pieces that are partitioned."""

    chunks: Chunks
    begin: Any  # of each node
    chunk: Any  # (m,) int64: the first chunk of each node

    @staticmethod
    def listed(begin: Int64s, end: Int64s) -> tuple[Int64s, ...]:
        """What the device is told."""
        pieces = cut(begin, end, tuning.TUNING.partition_rows)
        return (*pieces, begin, np.searchsorted(pieces[0], np.arange(begin.size)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any, begin: Any, chunk: Any) -> Parts:
        """What `listed` says, on the device."""
        return cls(Chunks.over(owner, first, last), begin, chunk)


def own_slots(slots: Int64s) -> Int64s | None:
    """Numbers of the nodes' histograms; None where node j has the number j."""
    return None if np.array_equal(slots, np.arange(slots.size)) else slots


def batches(sizes: Int64s, most: int) -> list[int]:
    """Bounds of batches of at most `most` in total, or of one."""
    ends = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < sizes.size:
        before = ends[bounds[-1] - 1] if bounds[-1] else 0
        fit = int(np.searchsorted(ends, before + most, side="right"))
        bounds.append(max(fit, bounds[-1] + 1))
    return bounds


def to_device(values: Any, dtype: Any = None) -> Any:
    """A C-contiguous copy on the device; what is that already stays as it is."""
    xp = cupy()
    if isinstance(values, xp.ndarray):
        return xp.ascontiguousarray(values.astype(dtype or values.dtype, copy=False))
    return xp.asarray(np.ascontiguousarray(values, dtype))


def sort_segments(segments: Any, keys: Any) -> Any:
    """The order that sorts by (segment, key), stably; segments are below 2**32."""
    xp = cupy()
    if keys.dtype == np.uint32:
        return xp.argsort((segments.astype(np.uint64) << np.uint64(32)) | keys)
    order = xp.argsort(keys)
    return order[xp.argsort(segments[order])]
