"""Sizes that decide how work is cut up on a device; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.subsets import MOST_CELLS


class Tuning(NamedTuple):
    """What tests change: see `TUNING`. Those of ``lists_`` are of multiway trees.

    Measured where a comment says so. Others were tried on an H200, 10,000,000 and 1,000,000 x 28 at
    depth 8, at twice their value and more, and changed less than the runs differed:
    ``partition_rows``, ``cell_rows``, ``candidate_share``, ``counted_pairs``.
    """

    # Bytes of shared memory that a block may take: every device grants as much.
    shared_bytes: int = 48 * 1024
    # Entries that one block takes, and that one block partitions. With 2,048, 8,192 and 16,384,
    # 10,000,000 x 28 at depth 8 on an H200: 43, 40, 41 ms.
    chunk_rows: int = 8192
    partition_rows: int = 2048
    # Rows whose categories are listed at once, at most.
    listed_rows: int = 1 << 25
    # Threads that inspect a table, about.
    inspecting: int = 1 << 18
    # Bytes of values that are copied at once: long enough for the bus, short enough to overlap.
    block_bytes: int = 1 << 25

    # Of the free memory, where no budget is set: CuPy's pool is uneven.
    default_share: float = 0.8
    # Bytes that growth works in, at least, and those it leaves free for work before it keeps
    # the values of a table on the device.
    least_work: int = 1 << 24
    ample_work: int = 1 << 32

    # Bytes that a buffer of the workspace may have before a level needs them.
    ample_buffer: int = 1 << 26

    # (row, column) pairs that are gathered and sorted at once, at most.
    gathered_pairs: int = 1 << 25
    # Of these, those that are searched without the host; and by so many warps.
    candidate_pairs: int = 1 << 25
    candidate_blocks: int = 2048
    # Bins are subdivided from so many pairs of candidate bins on that are so many a row of the
    # level, or where a warp does not sort one; rows a sub-bin on average.
    counted_pairs: float = 1 << 16
    candidate_share: float = 0.25
    cell_rows: int = 64
    # Statistics of categories in memory at once, at most, where nodes have so few.
    batch_cells: int = MOST_CELLS

    # See `Finishing`. 1,000,000 x 28 to full depth, an H200, with 12.0, 6.0, 3.0: 253, 210, 170 ms;
    # in a noisier run with 6.0, 3.0, 2.0, 1.0: 228, 261, 182, 200.
    rows_per_statistic: float = 2.0
    # (row, column) pairs of finished nodes that are sorted at once, at most.
    sorted_pairs: int = 1 << 25
    # Nodes whose lists fit so many bytes of shared memory are finished there, in launches by
    # size: as much as fits, down to halves of it, if that is so many rows.
    finish_bytes: int = 48 * 1024
    fewest_shared_rows: int = 8
    shared_classes: int = 4
    # Bytes of all nodes and statistics that are finished at once there.
    scratch_bytes: int = 1 << 28

    # Entries from which on many warps walk a list together.
    lists_long: int = 8192
    # Blocks that take turns where there are more pairs of nodes and columns.
    lists_most_blocks: int = 1 << 20
    # Places of a list that one block moves.
    lists_chunk_places: int = 4096
    # Class weights that a block keeps in shared memory, so that several blocks still fit a
    # multiprocessor; and all blocks together elsewhere.
    lists_shared_bytes: int = 16 * 1024
    lists_scratch_bytes: int = 1 << 28


TUNING = Tuning()
