"""What the launchers share: a table, its rows and its entries on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Task
from gputree.backends.cpu.pool import chunks
from gputree.backends.cuda.kernels import Kernels, cupy
from gputree.backends.cuda.memory import Memory

# Entries that one block takes. Not measured on a device yet.
CHUNK_ROWS = 8192


class Table(NamedTuple):
    """A table of n rows and d columns on the device; see `gputree.backends.cpu.layout.Table`.

    Values lie there as their bits. Rows of codes are padded to whole words, so that four
    columns are read at once.
    """

    rows: int
    bits: np.dtype  # uint32 or uint64: the bits of a value
    values: Any  # (n, d), or None where codes decide everywhere
    codes: Any  # (n, stride) uint8
    offset: Any  # (d + 1,) int64
    missing: Any  # (d,) uint8
    single: Any  # (offset[d],) uint8
    by_code: Any  # (d,) uint8
    greatest: Any  # (d, 256) float64
    least: Any  # (d, 256) float64
    host: HostTable

    @property
    def columns(self) -> int:
        return self.missing.size

    @property
    def stride(self) -> int:
        return self.codes.shape[1]


class HostTable(NamedTuple):
    """What the host keeps of a table."""

    offset: Int64s
    missing: NDArray[np.bool_]
    by_code: NDArray[np.bool_]
    greatest: NDArray[np.float64]
    least: NDArray[np.float64]


class Rows(NamedTuple):
    """Per-row statistics in fixed-point units; see `gputree.backends.cpu.layout.Rows`."""

    target: Any  # int32 class, or int64 weight x target
    weight: Any  # int64 or None
    square: Any  # int64 or None
    square_rest: Any  # int64 or None


class Scratch(NamedTuple):
    """Of the entries, while nodes are partitioned."""

    sides: Any  # (n,) uint8
    moved: Any  # (n,) int32


class Grower(NamedTuple):
    """What every launcher needs."""

    kernels: Kernels
    task: Task
    table: Table
    rows: Rows
    entries: Any  # (n,) int32
    scratch: Scratch
    memory: Memory

    @property
    def criterion(self) -> tuple[int, float, float]:
        """Parameters of the criterion, as the kernels take them."""
        criterion = self.task.criterion
        scale = getattr(criterion, "square_unit", getattr(criterion, "scale", 0.0))
        return self.task.n_classes, float(criterion.unit), float(scale)


class Chunks(NamedTuple):
    """Pieces of nodes, on the device: a block works on each."""

    owner: Any
    first: Any
    last: Any
    number: int
    node: Int64s  # on the host: the first chunk of each node, and the number of all

    @classmethod
    def of(cls, begin: Int64s, end: Int64s, rows: int = 0) -> Chunks:
        """Pieces of nodes ``begin[j] .. end[j]``, in order; `rows` each, or CHUNK_ROWS."""
        owner, first, last = chunks(begin, end, rows or CHUNK_ROWS)
        node = np.searchsorted(owner, np.arange(begin.size + 1))
        return cls(to_device(owner), to_device(first), to_device(last), owner.size, node)


def to_device(values: NDArray[Any], dtype: Any = None) -> Any:
    """A C-contiguous copy on the device."""
    return cupy().asarray(np.ascontiguousarray(values, dtype))


def sort_segments(segments: Any, keys: Any) -> Any:
    """The order that sorts by (segment, key), stably; segments are below 2**32."""
    xp = cupy()
    if keys.dtype == np.uint32:
        return xp.argsort((segments.astype(np.uint64) << np.uint64(32)) | keys)
    order = xp.argsort(keys)
    return order[xp.argsort(segments[order])]
