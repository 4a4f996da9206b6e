"""Pieces of nodes, each of which a block processes."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import CHUNKS, Packed, cupy
from gputree.backends.cuda.workspace import send
from gputree.base.threads import chunks


class DeviceChunks(NamedTuple):
    """Pieces of nodes, on the device: a block processes each."""

    number: int
    packed: Packed

    @classmethod
    def of(cls, begin: Int64s, end: Int64s, rows: int = 0) -> DeviceChunks:
        """Return the pieces of nodes ``begin[j] .. end[j]``, in order; `rows` each, or as tuned."""
        return cls.over(*send(*cut(begin, end, rows)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any) -> DeviceChunks:
        """Copy pieces, as `cut` lists them, to the device."""
        return cls(int(owner.size), CHUNKS.pack(owner, first, last))


def cut(begin: Int64s, end: Int64s, rows: int = 0) -> tuple[Int64s, Int64s, Int64s]:
    """Owner, first entry and end of pieces of nodes, in order; `rows` each, or as tuned."""
    return chunks(begin, end, rows or chunk_rows(int((end - begin).sum())))


def chunk_rows(rows: int) -> int:
    """Entries that one block processes of `rows` in all."""
    tuned = tuning.TUNING
    share = max(-(-rows // filling_chunks()), tuned.fewest_chunk_rows)
    return min(share, tuned.chunk_rows)


def filling_chunks() -> int:
    """Minimum number of blocks that use all multiprocessors of the current device well."""
    count = _multiprocessors(cupy().cuda.Device().id)
    return count * tuning.TUNING.multiprocessor_chunks


@cache
def _multiprocessors(device: int) -> int:
    return int(cupy().cuda.Device(device).attributes["MultiProcessorCount"])


class NodePieces(NamedTuple):
    """Pieces of nodes that are partitioned."""

    chunks: DeviceChunks
    begin: Any  # of each node
    chunk: Any  # (m,) int64: the first chunk of each node

    @staticmethod
    def listed(begin: Int64s, end: Int64s) -> tuple[Int64s, ...]:
        """Arrays to send, in the order of `over`."""
        pieces = cut(begin, end, tuning.TUNING.partition_rows)
        return (*pieces, begin, np.searchsorted(pieces[0], np.arange(begin.size)))

    @classmethod
    def over(cls, owner: Any, first: Any, last: Any, begin: Any, chunk: Any) -> NodePieces:
        """Arrange arrays on the device, in the order of `listed`."""
        return cls(DeviceChunks.over(owner, first, last), begin, chunk)
