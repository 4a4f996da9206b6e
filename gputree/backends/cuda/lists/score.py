"""The best test of every column in every node."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import LevelArrays, LevelData, Share, by_length, in_turns
from gputree.backends.cuda.lists.memory import score_bytes
from gputree.backends.cuda.structs import LEVEL_NODES, LIST_TASK, Packed
from gputree.backends.lists import CandidateTests


def score(level: LevelArrays) -> CandidateTests:
    """See `gputree.backends.lists.Level.score`; columns are scored in groups within the limit."""
    table, (d, m), ledger = level.table, level.resting.shape, level.table.ledger
    sent_bytes, column_bytes = score_bytes(table.task.n_classes, d, m)
    ledger.require(sent_bytes + column_bytes, f"Scoring a level of {m:,} nodes")
    shares = by_length(level.end - level.begin >= tuning.TUNING.lists_long)
    nodes = tuple(map(to_device, (level.begin, level.end, level.weights)))
    resting, task = to_device(level.resting, np.uint8), _pack_task(level)
    out = np.empty((6, d, m), np.int64)
    for first, last in in_turns(d, (ledger.left - sent_bytes) // max(column_bytes, 1)):
        found = cupy().empty((6, last - first, m), dtype=np.int64)
        free_bytes = ledger.left - sent_bytes - found.nbytes
        columns = level.lists.pack(table.categorical, first, last)
        packed = task, columns, LEVEL_NODES.pack(m, *nodes, resting[first:last])
        for share in shares:
            _score_columns(table, packed, share, free_bytes, found)
        out[:, first:last] = found.get()
        del found
    gain, split, tries, parts, cut, after = out
    codes = (place.astype(np.uint32) for place in (cut, after))
    return CandidateTests(gain, split, tries, parts.astype(np.int32), *codes)


def _pack_task(level: LevelArrays) -> Packed:
    """Pack the rules by which entries are scored, for kernels."""
    task, terms, info = level.table.task, level.table.terms, level.table.task.information
    return LIST_TASK.pack(
        (info.unit, info.scale, info.shift, info.row_bits, terms, terms.size),
        task.limits,
        level.entries,
        task.n_classes,
        int(task.missing_is_category),
    )


def _score_columns(
    table: LevelData, packed: tuple[Packed, Packed, Packed], share: Share, free_bytes: int, out: Any
) -> None:
    """Score columns in the nodes of one share, given task, columns and all nodes.

    Class weights that exceed shared memory use at most `free_bytes` bytes.
    """
    sizes, (_, d, _) = tuning.TUNING, out.shape
    block_bytes = (share.warps + 1) * table.task.n_classes * 8
    blocks = min(share.chosen.size * d, sizes.lists_most_blocks)
    scratch = None
    shared = block_bytes if block_bytes <= sizes.lists_shared_bytes else 0
    if not shared:
        table.ledger.require(table.ledger.left - free_bytes + block_bytes, "Scoring a column")
        blocks = min(blocks, max(min(sizes.lists_scratch_bytes, free_bytes) // block_bytes, 1))
        scratch = cupy().empty(blocks * block_bytes // 8, dtype=np.int64)
    table.kernels(
        "lists/score", "score_columns", (blocks,), *packed, to_device(share.chosen),
        share.chosen.size, scratch, out, threads=share.threads, shared=shared,
    )  # fmt: skip
