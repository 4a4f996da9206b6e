"""Stable partition of entries: the rows of a node become those of its children.

    before   | a b c d e f g |      begin .. end of one node, rows in stable order
    sides    | 0 1 1 0 0 1 0 |      1: goes to the first child
    after    | b c f | a d e g |    first child, second child

Nodes are cut into chunks so that threads share the large ones; a chunk writes where
the chunks before it end, so the result does not depend on the chunks.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.criteria import add_row


@inner
def goes_left(table, f, row, cut_bin, inside, threshold, missing_left):
    """Whether the row goes to the first child of the split."""
    b = np.int64(table.codes[row, f])
    if b < cut_bin:
        return True
    if b == cut_bin:
        return not inside or np.float64(table.values[row, f]) <= threshold
    if table.missing[f] and b == table.offset[f + 1] - table.offset[f] - 1:
        return missing_left
    return False


@kernel
def choose_sides(table, entries, splits, nodes, begins, ends, first, last, sides, lefts, lows, highs):
    """Mark the side of each entry of chunks ``first .. last``.

    A chunk c is ``begins[c] .. ends[c]`` of the split ``nodes[c]``. Per chunk it returns
    the entries that go left, and the node's neighbours of a cut between bins: the
    greatest value of the bin before it and the least of the next bin with rows.
    """
    final = entries.size - 1
    for c in range(first, last):
        j = nodes[c]
        f = splits.feature[j]
        cut_bin = splits.cut_bin[j]
        inside = splits.inside[j]
        neighbours = not inside and not table.by_code[f]
        next_bin = splits.next_bin[j]
        left = 0
        low = -np.inf
        high = np.inf
        for i in range(begins[c], ends[c]):
            prefetch(table.codes, entries[min(i + PREFETCH_ROWS, final)])
            row = entries[i]
            to_left = goes_left(
                table, f, row, cut_bin, inside, splits.threshold[j], splits.missing_left[j]
            )
            sides[i] = to_left
            left += to_left
            if neighbours:
                b = np.int64(table.codes[row, f])
                if b == cut_bin:
                    low = max(low, np.float64(table.values[row, f]))
                elif b == next_bin:
                    high = min(high, np.float64(table.values[row, f]))
        lefts[c] = left
        lows[c] = low
        highs[c] = high


@kernel
def scatter(entries, sides, begins, ends, to_left, to_right, first, last, out):
    """Write the entries of each chunk to its places left and right of the cut."""
    for c in range(first, last):
        left = to_left[c]
        right = to_right[c]
        for i in range(begins[c], ends[c]):
            if sides[i]:
                out[left] = entries[i]
                left += 1
            else:
                out[right] = entries[i]
                right += 1


@kernel
def copy_back(entries, begins, ends, first, last, out):
    """``entries = out`` on every chunk."""
    for c in range(first, last):
        entries[begins[c] : ends[c]] = out[begins[c] : ends[c]]


@kernel
def node_statistics(criterion, rows, entries, begins, ends, first, last, out):
    """Sum the row statistics of each node ``begins[j] .. ends[j]`` into ``out[j]``."""
    for j in range(first, last):
        for i in range(begins[j], ends[j]):
            row = entries[i]
            weight = pick(rows.weight, row, 1)
            square = pick(rows.square, row, 0)
            add_row(criterion, out[j], 0, rows.target[row], weight, square)
            if rows.square_rest is not None:
                out[j, 3] += pick(rows.square_rest, row, 0)
