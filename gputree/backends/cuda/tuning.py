"""Sizes by which work is divided on a device; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.base import MOST_CELLS


class CudaTuning(NamedTuple):
    """Sizes that tests change: see `TUNING`. Names with ``lists_`` are of multiway trees.

    Measured where a comment has figures. Others were tried on an H200, 10,000,000 and 1,000,000 x
    28 at depth 8, at twice their value and more, and changed less than the runs differed:
    ``partition_rows``, ``cell_rows``.
    """

    # Bytes of shared memory that a block may use: every device supports as much.
    shared_bytes: int = 48 * 1024
    # Maximum number of entries that one block processes, and that one block partitions. With 2,048,
    # 8,192 and 16,384, 10,000,000 x 28 at depth 8 on an H200: 43, 40, 41 ms.
    chunk_rows: int = 8192
    partition_rows: int = 2048
    # Blocks process fewer entries, but at least so many, where there would be fewer blocks than
    # this for each multiprocessor; not measured.
    fewest_chunk_rows: int = 1024
    multiprocessor_chunks: int = 4
    # Levels that are queued before the host reads their splits, and nodes of one; not measured.
    ahead_levels: int = 8
    ahead_nodes: int = 4096
    # Trees of a forest that are grown together, if the memory suffices; not measured.
    stacked_trees: int = 32
    # Maximum number of rows whose categories are listed at once.
    listed_rows: int = 1 << 25
    # Approximate number of threads that inspect a table.
    inspecting: int = 1 << 18
    # Bytes of values that are copied at once: enough for the bus, few enough to overlap.
    block_bytes: int = 1 << 25

    # Fraction of the free memory that is used without a limit: CuPy's pool is uneven.
    default_share: float = 0.8
    # Minimum bytes that growth works in, and bytes left for work before the values of a table are
    # kept on the device.
    least_work: int = 1 << 24
    ample_work: int = 1 << 32

    # Bytes that a buffer of the workspace may have before a level needs them.
    ample_buffer: int = 1 << 26

    # Maximum number of (row, column) pairs that are gathered and sorted at once.
    gathered_pairs: int = 1 << 25
    # Warps that scan candidates.
    candidate_blocks: int = 2048
    # Pairs in candidate sub-bins for which the host allocates memory before it knows their number:
    # for each row of the level, and at least; average rows of a sub-bin.
    slot_share: float = 0.25
    fewest_slots: float = 1 << 20
    cell_rows: int = 64
    # Pairs in candidate bins, for each row of a level, that are listed while they are counted.
    listed_share: float = 1.0
    # Maximum number of statistics of categories in memory at once, where nodes have few categories.
    batch_cells: int = MOST_CELLS

    # See `Finishing`. 1,000,000 x 28 to full depth, an H200, with 12.0, 6.0, 3.0: 253, 210, 170 ms;
    # in a noisier run with 6.0, 3.0, 2.0, 1.0: 228, 261, 182, 200.
    rows_per_statistic: float = 2.0
    whole_statistics: int = 1 << 24
    # Maximum number of (row, column) pairs of small nodes that are sorted at once.
    sorted_pairs: int = 1 << 25
    # Bytes of shared memory, if the device grants them, in which subtrees of nodes whose lists fit
    # are built; and launches by size, each for nodes of half the rows of the one before.
    finish_bytes: int = 227 * 1024
    shared_classes: int = 6
    # Maximum number of warps of a block that builds a subtree, and its rows for each; not measured.
    finish_warps: int = 8
    warp_rows: int = 16
    # Classes that are not renumbered by those present in a subtree; not measured.
    few_classes: int = 8
    # Maximum bytes of the statistics of subtrees that are built at once.
    scratch_bytes: int = 1 << 28

    # Minimum number of entries of a list that many warps process together.
    lists_long: int = 8192
    # Maximum number of blocks; with more pairs of nodes and columns each processes several.
    lists_most_blocks: int = 1 << 20
    # Places of a list that one block moves.
    lists_chunk_places: int = 4096
    # Bytes of class weights that a block has in shared memory, so that several blocks still fit a
    # multiprocessor; and that all blocks together have elsewhere.
    lists_shared_bytes: int = 16 * 1024
    lists_scratch_bytes: int = 1 << 28


TUNING = CudaTuning()
