"""The best test of every column in every node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import (
    Entries,
    Lists,
    Share,
    Table,
    by_length,
    flags,
    in_turns,
)
from gputree.backends.cuda.lists.memory import score_bytes
from gputree.backends.cuda.structs import LEVEL_NODES, LIST_TASK, Packed
from gputree.backends.lists import Candidates


def score(
    table: Table,
    entries: Entries,
    lists: Lists,
    begin: Int64s,
    end: Int64s,
    weights: Int64s,
    resting: NDArray[np.bool_],
) -> Candidates:
    """See `gputree.backends.lists.Level.score`; columns are scored in turns that fit the budget."""
    (d, m), ledger = resting.shape, table.ledger
    told, column_bytes = score_bytes(table.task.n_classes, d, m)
    ledger.require(told + column_bytes, f"Scoring a level of {m:,} nodes")
    shares = by_length(end - begin >= tuning.TUNING.lists_long)
    level, rests = tuple(map(to_device, (begin, end, weights))), flags(resting)
    task = _pack_task(table, entries)
    out = np.empty((6, d, m), np.int64)
    for first, last in in_turns(d, (ledger.left - told) // max(column_bytes, 1)):
        found = cupy().empty((6, last - first, m), dtype=np.int64)
        room = ledger.left - told - found.nbytes
        own = lists.columns(first, last).pack(table.nominal[first:last])
        nodes = LEVEL_NODES.pack(m, *level, rests[first:last])
        for share in shares:
            _score_columns(table, (task, own, nodes), share, room, found)
        out[:, first:last] = found.get()
        del found
    gain, split, tries, parts, cut, after = out
    return Candidates(
        gain,
        split,
        tries,
        parts.astype(np.int32),
        cut.astype(np.uint32),
        after.astype(np.uint32),
    )


def _pack_task(table: Table, entries: Entries) -> Packed:
    """What entries are scored by, for kernels."""
    task, own = table.task, table.task.information
    return LIST_TASK.pack(
        (own.unit, own.scale, own.shift, own.row_bits, table.terms, table.terms.size),
        task.limits,
        entries,
        task.n_classes,
        int(task.missing_is_category),
    )


def _score_columns(
    table: Table, told: tuple[Packed, Packed, Packed], share: Share, room: int, out: Any
) -> None:
    """Score columns in nodes of one share; kernels are `told` task, columns and all nodes.

    Class weights that exceed shared memory lie in `room`.
    """
    sizes, (_, d, _) = tuning.TUNING, out.shape
    block_bytes = (share.warps + 1) * table.task.n_classes * 8
    blocks = min(share.chosen.size * d, sizes.lists_most_blocks)
    scratch = None
    shared = block_bytes if block_bytes <= sizes.lists_shared_bytes else 0
    if not shared:
        table.ledger.require(table.ledger.left - room + block_bytes, "Scoring a column")
        blocks = min(blocks, max(min(sizes.lists_scratch_bytes, room) // block_bytes, 1))
        scratch = cupy().empty(blocks * block_bytes // 8, dtype=np.int64)
    table.kernels(
        "lists/score", "score_columns", (blocks,), *told, to_device(share.chosen),
        share.chosen.size, scratch, out, threads=share.threads, shared=shared,
    )  # fmt: skip
