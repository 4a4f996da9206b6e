"""Rows of some bins, among many entries that are in none of them."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, borrowing, prefetch

# Entries that are looked through at once for rows of few bins: enough to find some, whose values
# are asked for together. 1,000,000 rows of noise x 14, depth 8, refinement: 296 ms with 256, 225 ms
# with 1,024, 212 ms with 4,096.
GATHER_ROWS = 1 << 12


@borrowing
def collect_rows(table, entries, begin, end, f, bins, is_first, rows, kept, codes_read):
    """Collect the rows among entries ``begin .. end`` whose bin of column f has a place; how many.

    ``bins[b]`` is -1 for the other bins. Which rows are in such bins is found without a branch.
    The first column that is read brings the codes of the others; its own are `kept`, by entry.
    """
    codes = table.codes
    column = np.uintp(f)
    final = np.uintp(max(entries.size, 1) - 1)
    n = np.uintp(0)
    for i in range(np.uintp(begin), np.uintp(end)):
        if is_first:
            prefetch(codes, entries[min(i + np.uintp(PREFETCH_ROWS), final)], column)
        row = entries[i]
        code = np.uintp(codes[np.uintp(row), column])
        if kept:
            codes_read[i] = code
        rows[n] = row
        n += np.uintp(bins[code] >= 0)
    for i in range(n):
        prefetch(table.values, rows[i], column)
    return n
