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
    level = (*(to_device(values) for values in (begin, end, weights)), flags(resting))
    out = np.empty((6, d, m), np.int64)
    for first, last in in_turns(d, (ledger.left - told) // max(column_bytes, 1)):
        found = cupy().empty((6, last - first, m), dtype=np.int64)
        room = ledger.left - told - found.nbytes
        own = (table.nominal[first:last], *lists.columns(first, last))
        for share in shares:
            _score_columns(table, entries, own, level, share, first, room, found)
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


def _score_columns(
    table: Table,
    entries: Entries,
    own: tuple[Any, Any, Any],
    level: tuple[Any, Any, Any, Any],
    nodes: Share,
    first: int,
    room: int,
    out: Any,
) -> None:
    """Score columns from `first` on, their kinds and lists `own`, in nodes of one share.

    Class weights that exceed shared memory lie in `room`.
    """
    task, sizes = table.task, tuning.TUNING
    (nominal, item, code), (begin, end, weights, resting) = own, level
    (_, d, m), measure = out.shape, task.information
    block_bytes = (nodes.warps + 1) * task.n_classes * 8
    blocks = min(nodes.chosen.size * d, sizes.lists_most_blocks)
    scratch = None
    shared = block_bytes if block_bytes <= sizes.lists_shared_bytes else 0
    if not shared:
        table.ledger.require(table.ledger.left - room + block_bytes, "Scoring a column")
        blocks = min(blocks, max(min(sizes.lists_scratch_bytes, room) // block_bytes, 1))
        scratch = cupy().empty(blocks * block_bytes // 8, dtype=np.int64)
    table.kernels(
        "lists/score", "score_columns", (blocks,), measure.unit, measure.scale, measure.shift,
        measure.row_bits, table.terms, measure.terms.size, *map(float, task.limits),
        int(task.missing_is_category), nominal, d, item.shape[1], item, code, *entries,
        task.n_classes, to_device(nodes.chosen), nodes.chosen.size, begin, end, weights,
        resting[first : first + d], m, scratch, out, threads=nodes.threads, shared=shared,
    )  # fmt: skip
