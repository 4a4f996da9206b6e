"""The best test of every column in every node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists.launch import Entries, Lists, Table, by_length, flags
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
    """See `gputree.backends.lists.Level.score`."""
    xp, task, own = cupy(), table.task, tuning.TUNING
    d, m = resting.shape
    out = xp.empty((6, d, m), dtype=np.int64)
    level = (*(to_device(values) for values in (begin, end, weights)), flags(resting))
    measure = task.information
    for nodes in by_length(end - begin >= own.lists_long):
        room = (nodes.warps + 1) * task.n_classes * 8
        blocks = min(nodes.chosen.size * d, own.lists_most_blocks)
        scratch = None
        shared = room if room <= own.lists_shared_bytes else 0
        if not shared:
            blocks = min(blocks, max(own.lists_scratch_bytes // room, 1))
            scratch = xp.empty(blocks * room // 8, dtype=np.int64)
        table.kernels(
            "lists/score", "score_columns", (blocks,), measure.unit, measure.scale, measure.shift,
            measure.row_bits, table.terms, measure.terms.size, *map(float, task.limits),
            int(task.missing_is_category), table.nominal, d, lists.item.shape[1], *lists,
            *entries, task.n_classes, to_device(nodes.chosen), nodes.chosen.size, *level, m,
            scratch, out, threads=nodes.threads, shared=shared,
        )  # fmt: skip
    gain, split, tries, parts, cut, after = out.get()
    return Candidates(
        gain,
        split,
        tries,
        parts.astype(np.int32),
        cut.astype(np.uint32),
        after.astype(np.uint32),
    )
