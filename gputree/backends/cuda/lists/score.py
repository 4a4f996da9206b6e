"""The best test of every column in every node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.backends.cuda.lists import launch
from gputree.backends.cuda.lists.launch import Entries, Lists, Table, by_length, flags
from gputree.backends.lists import Candidates

# Class weights that a block keeps in shared memory, so that several blocks still fit a
# multiprocessor; and all blocks together elsewhere. Not measured on a device yet.
SHARED_BYTES = 16 * 1024
SCRATCH_BYTES = 1 << 28


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
    xp, task = cupy(), table.task
    d, m = resting.shape
    out = xp.empty((6, d, m), dtype=np.int64)
    level = (*(to_device(values) for values in (begin, end, weights)), flags(resting))
    measure = task.information
    for nodes in by_length(end - begin >= launch.LONG_LIST):
        room = (nodes.warps + 1) * task.n_classes * 8
        blocks = min(nodes.chosen.size * d, launch.MOST_BLOCKS)
        scratch = None
        if room > SHARED_BYTES:
            blocks = min(blocks, max(SCRATCH_BYTES // room, 1))
            scratch = xp.empty(blocks * room // 8, dtype=np.int64)
        table.kernels(
            "lists/score", "score_columns", (blocks,), measure.unit, measure.scale, measure.shift,
            measure.row_bits, table.terms, measure.terms.size, *map(float, task.limits),
            int(task.missing_is_category), table.nominal, d, lists.item.shape[1], *lists,
            *entries, task.n_classes, to_device(nodes.chosen), nodes.chosen.size, *level, m,
            scratch, out, threads=nodes.threads, shared=0 if room > SHARED_BYTES else room,
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
