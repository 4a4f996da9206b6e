"""Additive histograms of row statistics by (column, bin)."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, kernel, pick, prefetch
from gputree.criteria import add_row


@kernel
def histogram(criterion, source, begin, end, columns, channels, out):
    """Add entries ``begin .. end`` to `out`, flat cells of `channels` statistics each.

    The cells are those of ``columns[0] .. columns[1]``. Weighted tables count rows in the last
    channel.
    """
    table, rows, entries = source
    first, last = columns
    codes, offset = table.codes, table.offset
    targets, weights, squares = rows.target, rows.weight, rows.square
    weighted = weights is not None
    final = np.uintp(max(entries.size, 1) - 1)
    width = np.uintp(channels)
    start = np.empty(last, np.uintp)  # first cell of each column
    for f in range(first, last):
        start[f] = (offset[f] - offset[first]) * channels
    # `out` has the sums of the entries begin .. i.
    for i in range(np.uintp(begin), np.uintp(end)):
        ahead = entries[min(i + np.uintp(PREFETCH_ROWS), final)]
        prefetch(codes, ahead, first)
        prefetch(targets, ahead, 0)
        row = np.uintp(entries[i])
        target = targets[row]
        weight = pick(weights, row, 1)
        square = pick(squares, row, 0)
        for f in range(np.uintp(first), np.uintp(last)):
            position = start[f] + np.uintp(codes[row, f]) * width
            add_row(criterion, out, position, target, weight, square)
            if weighted:
                out[position + width - np.uintp(1)] += 1


@kernel
def subtract_nodes(larger, out, first, last):
    """Histograms of the larger siblings ``first .. last``: parent minus smaller sibling."""
    for j in range(first, last):
        parent = larger.whole[larger.whole_slots[j]]
        part = out[larger.part_slots[j]]
        sibling = out[larger.slots[j]]
        for i in range(parent.size):
            sibling[i] = parent[i] - part[i]
