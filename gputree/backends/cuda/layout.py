"""A table, its rows and its entries on the device, as launchers share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import MOST_CELLS, MOST_MOVED, Bounds, Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import (
    INTERACTIONS,
    MONOTONIC,
    ROWS,
    RULES,
    SEARCH,
    TABLE,
    Kernels,
    Packed,
    cupy,
)
from gputree.backends.cuda.memory import Memory
from gputree.backends.cuda.workspace import (
    DeviceChunks,
    NodePieces,
    Workspace,
    bytes_of,
    cut,
    filling_chunks,
    send,
)
from gputree.base.dtypes import ROW, Int64s


class UploadedTable(NamedTuple):
    """A table of n rows and d columns on the device; see `gputree.backends.cpu.layout.Table`.

    Values are stored as their bits. Rows of codes are padded to multiples of four bytes, so that
    four columns are read at once.
    """

    bits: np.dtype  # uint32 or uint64: the bits of a value
    values: Any  # (n, d), or None where codes decide everywhere
    codes: Any  # (n, stride) uint8
    offset: Any  # (d + 1,) int64
    missing: Any  # (d,) uint8
    single: Any  # (offset[d],) uint8
    by_code: Any  # (d,) uint8
    categories: Any  # (d,) int64
    highest: Any  # (d, 256) float64
    lowest: Any  # (d, 256) float64
    host: HostTable
    packed: Packed  # for kernels; without values
    columns: int  # d
    cells: int  # bins of all columns
    divisible: bool  # there are bins of several values
    scales: list[Any]  # `HostTable.scales`; none where no bin is divisible
    stored: StoredColumns | None = None  # None where `values` has all columns

    @classmethod
    def of(
        cls, bits: np.dtype, values: Any, codes: Any, host: HostTable, single: NDArray[np.bool_]
    ) -> UploadedTable:
        """Pack codes and values; `values` are the bits of floats, or None."""
        flags = (flag.astype(np.uint8) for flag in (host.missing, single, host.by_code))
        divisible = not single.all()
        scales = host.scales() if divisible else ()
        sent = send(host.offset, *flags, host.categories, host.highest, host.lowest, *scales)
        columns, packed = sent[:7], _pack_table(codes, sent[:7])
        sizes = host.missing.size, int(host.offset[-1]), divisible
        return cls._make([bits, values, codes, *columns, host, packed, *sizes, sent[7:], None])

    def with_codes(self, codes: Any) -> UploadedTable:
        """Return the same columns with other codes."""
        return self._replace(codes=codes, packed=_pack_table(codes, self[3:10]))

    def of_rows(self, origin: Any) -> UploadedTable:
        """Return the same table for entries that are places in `origin` (N,), int32, its rows."""
        return self._replace(packed=_pack_table(self.codes, self[3:10], origin))

    @property
    def stride(self) -> int:
        return self.codes.shape[1]

    @property
    def width(self) -> int:
        """Number of columns that `values` has."""
        return self.columns if self.stored is None else self.stored.columns.size

    def places(self, columns: Int64s) -> Int64s:
        """Places of the given columns in `values`."""
        return columns if self.stored is None else np.searchsorted(self.stored.columns, columns)


def _pack_table(codes: Any, columns: Sequence[Any], origin: Any = None) -> Packed:
    return TABLE.pack(codes, codes.shape[1], columns[1].size, *columns, origin)


class StoredColumns(NamedTuple):
    """The columns whose values are on the device."""

    columns: Int64s  # ascending, on the host
    place: Any  # (d,) int32: place of each column among them


class HostTable(NamedTuple):
    """Arrays of a table that the host keeps."""

    offset: Int64s
    missing: NDArray[np.bool_]
    by_code: NDArray[np.bool_]
    highest: NDArray[np.float64]
    lowest: NDArray[np.float64]
    categories: Int64s  # of categorical columns, 0 of numeric ones

    @classmethod
    def of(cls, table: Any) -> HostTable:
        """Copy the fields from a table of the CPU backend."""
        return cls(*(getattr(table, name) for name in cls._fields))

    @property
    def is_many(self) -> NDArray[np.bool_]:
        """Categorical columns of more categories than there are bins."""
        many: NDArray[np.bool_] = self.categories + self.missing > MAX_BINS
        return many

    def scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Half the minimum of each bin of a histogram, and the inverse of half its width.

        A bin extends between the minimum and maximum it was fitted to: other values are in its
        first or last sub-bin.
        """
        exists = np.arange(self.lowest.shape[1]) < np.diff(self.offset)[:, None]
        low = 0.5 * self.lowest[exists]
        width = 0.5 * self.highest[exists] - low
        scale = np.zeros_like(width)
        np.divide(1.0, width, out=scale, where=width > np.finfo(np.float64).tiny * 2.0**24)
        return low, scale

    @property
    def categorical(self) -> Int64s:
        """Categorical columns: first columns of few categories, then of many."""
        nominal = np.flatnonzero(self.categories)
        return nominal[np.argsort(self.is_many[nominal], kind="stable")]


class DeviceRows(NamedTuple):
    """Per-row statistics in fixed-point units; see `gputree.backends.cpu.layout.Rows`."""

    target: Any  # int32 class, or int64 weight x target
    weight: Any  # int64 or None
    square: Any  # int64 or None
    square_rest: Any  # int64 or None

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any] | None], n_classes: int) -> DeviceRows:
        """Target, weight, square and its rest on the device, None where there are none."""
        kinds = (np.int32 if n_classes else np.int64, np.int64, np.int64, np.int64)
        pairs = zip(columns, kinds, strict=True)
        return cls(*(None if column is None else to_device(column, kind) for column, kind in pairs))


class Grower(NamedTuple):
    """Arguments that every launcher needs."""

    kernels: Kernels
    task: Task
    channels: int  # of the task
    cell_dtype: np.dtype  # counts of rows need 32 bits, sums 64: `Cell` of types.cuh
    table: UploadedTable
    rows: DeviceRows
    entries: Any  # (n,) int32
    sided: Any  # (n,) int32: copies of entries with their sides, while nodes are partitioned
    memory: Memory
    rules: Packed  # of the task
    search: Packed
    statistics: Packed  # `rows`
    signs: Any  # (d,) int32 of columns, or None without monotonic constraints
    interactions: Packed  # sets of columns that may split nodes, which `pack_interactions` sends
    place: Any  # `categorical_places` of the table, or None where subsets are not searched
    workspace: Workspace
    trees: int = 1  # that are grown together

    @classmethod
    def over(
        cls, task: Task, table: UploadedTable, rows: DeviceRows, entries: Any, memory: Memory
    ) -> Grower:
        """Return the grower of a task on a table whose rows have the given statistics."""
        xp, monotonic = cupy(), task.limits.monotonic
        is_counted = task.rows.weight is None and task.rows.square is None
        return cls(
            kernels=Kernels(
                task.criterion,
                task.rows.weight is not None,
                8 * table.bits.itemsize,
                categories=bool(table.host.categories.any()),
                monotonic=monotonic is not None,
                interactions=task.interactions is not None,
            ),
            task=task,
            channels=task.channels,
            cell_dtype=np.dtype(np.uint32 if is_counted else np.int64),
            table=table,
            rows=rows,
            entries=entries,
            sided=xp.empty(entries.size, dtype=ROW),
            memory=memory,
            rules=pack_rules(task, table.columns),
            search=pack_search(task),
            statistics=ROWS.pack(*rows),
            signs=None if monotonic is None else to_device(monotonic.signs, np.int32),
            interactions=INTERACTIONS.pack(None, None, None),
            place=None,
            workspace=Workspace(),
        )

    @property
    def cell_bytes(self) -> int:
        """Bytes of the statistics of a bin."""
        return self.channels * self.cell_dtype.itemsize

    @property
    def most_gathered_pairs(self) -> int:
        """Maximum number of (row, column) pairs that are gathered and sorted at once."""
        return min(tuning.TUNING.gathered_pairs, self.memory.gathered_pairs)

    @property
    def most_nodes(self) -> int:
        """Maximum number of nodes whose splits are searched at once."""
        limits = self.task.limits
        of_depth = self.trees << min(max(limits.max_depth - 1, 0), 62)
        of_rows = max(self.entries.size // max(limits.min_samples_split, 2), 1)
        of_memory = max(
            self.memory.histogram_bytes // max(self.table.cells * self.cell_bytes, 1), 1
        )
        return min(of_depth, of_rows, of_memory)

    @property
    def most_chunks(self) -> int:
        """Maximum number of pieces, as `cut` makes them, that these nodes are divided into."""
        most = max(self.entries.size // tuning.TUNING.chunk_rows, filling_chunks())
        return most + self.most_nodes

    @property
    def most_parts(self) -> int:
        """Maximum number of pieces that these nodes are divided into to be partitioned."""
        return self.entries.size // tuning.TUNING.partition_rows + self.most_nodes


def categorical_places(host: HostTable) -> Any:
    """Place of each column in `HostTable.categorical`, else -1, as (d,) int32 on the device.

    None where no column is categorical.
    """
    if host.categorical.size == 0:
        return None
    place = np.full(host.categories.size, -1, ROW)
    place[host.categorical] = np.arange(host.categorical.size)
    return to_device(place)


def pack_rules(task: Task, columns: int) -> Packed:
    """Pack the rules by which trees are grown, for kernels."""
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
        limits.random_ties,
    )


def pack_interactions(task: Task) -> Packed:
    """Copy the sets of columns of a task to the device, and pack them for kernels."""
    if task.interactions is None:
        return INTERACTIONS.pack(None, None, None)
    return INTERACTIONS.pack(*send(*task.interactions[:3]))


def constraints_of(task: Task, bounds: Bounds | None) -> list[NDArray[Any]]:
    """Arrays of the constraints of nodes that kernels of a task read, in the order of `Bounds`."""
    if bounds is None:
        return []
    kinds = [task.limits.monotonic is not None] * 2 + [task.interactions is not None]
    return [array for array, is_read in zip(bounds, kinds, strict=True) if is_read]


def pack_constraints(grower: Grower, constraints: Sequence[Any]) -> tuple[Packed, Any]:
    """Pack bounds of nodes' means for kernels; and their sets of columns, or None.

    `constraints` are the arrays of `constraints_of` on the device.
    """
    sets = constraints[-1] if grower.task.interactions is not None else None
    bounds = (None, None) if grower.signs is None else constraints[:2]
    return MONOTONIC.pack(grower.signs, *bounds), sets


def pack_search(task: Task) -> Packed:
    """Pack the rules that choose between searches of subsets, for kernels."""
    if task.search is None:
        return SEARCH.pack(0, 0.0, 0, 0, 0, 0)
    return SEARCH.pack(*task.search, MOST_MOVED, MOST_CELLS)


class LevelPlan(NamedTuple):
    """Arrays that the host sends, in one copy, for nodes that are to be split."""

    chunks: DeviceChunks
    parts: NodePieces
    keys: Any
    low: Any  # (m,) int64: interval of a target that all rows may have; see `widest`
    high: Any
    others: list[Any]  # further arrays that are sent
    slots: Any = None  # of histograms; None where node j has histogram j
    number: Any = None  # int64 of nodes, or None for all

    @classmethod
    def of(
        cls,
        grower: Grower,
        begin: Int64s,
        end: Int64s,
        slots: Int64s,
        keys: NDArray[np.uint64],
        others: tuple[Int64s, ...] = (),
    ) -> LevelPlan:
        """Plan m nodes; `others` have an item for each node and categorical column."""
        order = own_slots(slots)
        work = (keys, *widest(keys.size))
        arrays = (*cut(begin, end), *NodePieces.listed(begin, end), *work, *others)
        arrays += () if order is None else (order,)
        sent = grower.workspace.plan.send(arrays, lambda: cls.most_bytes(grower, len(others)))
        chunks, parts, rest = DeviceChunks.over(*sent[:3]), NodePieces.over(*sent[3:8]), sent[11:]
        slot = None if order is None else rest.pop()
        keys, low, high = sent[8:11]
        return cls(chunks, parts, keys, low, high, rest, slot)

    @staticmethod
    def most_bytes(grower: Grower, others: int) -> int:
        """Maximum bytes sent for a level."""
        m, chunks, parts = grower.most_nodes, grower.most_chunks, grower.most_parts
        pairs = m * np.count_nonzero(grower.table.host.categories)
        sizes = (*3 * (chunks,), *3 * (parts,), *6 * (m,), *others * (pairs,))
        return bytes_of(*((size, np.int64) for size in sizes))


def widest(m: int) -> tuple[Int64s, Int64s]:
    """Unrestricted interval of targets of each of m nodes: see order_of of warp.cuh."""
    kind = np.iinfo(np.int64)
    return np.full(m, kind.min), np.full(m, kind.max)


def own_slots(slots: Int64s) -> Int64s | None:
    """Histogram numbers of the nodes; None where node j has histogram j."""
    return None if np.array_equal(slots, np.arange(slots.size)) else slots


def offsets(sizes: Int64s) -> Int64s:
    """Offsets of consecutive pieces, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def batches(sizes: Int64s, most: int) -> list[int]:
    """Bounds of batches of at most `most` in total, or of one item."""
    ends = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < sizes.size:
        before = ends[bounds[-1] - 1] if bounds[-1] else 0
        fit = int(np.searchsorted(ends, before + most, side="right"))
        bounds.append(max(fit, bounds[-1] + 1))
    return bounds


def to_device(values: Any, dtype: Any = None) -> Any:
    """Copy to the device as a C-contiguous array, or return the array itself if it is one."""
    xp = cupy()
    if isinstance(values, xp.ndarray):
        return xp.ascontiguousarray(values.astype(dtype or values.dtype, copy=False))
    return xp.asarray(np.ascontiguousarray(values, dtype))


def sort_segments(segments: Any, keys: Any) -> Any:
    """Return the order that sorts by (segment, key), stably; segments are below 2**32."""
    xp = cupy()
    if keys.dtype == np.uint32:
        return xp.argsort((segments.astype(np.uint64) << np.uint64(32)) | keys)
    order = xp.argsort(keys)
    return order[xp.argsort(segments[order])]
