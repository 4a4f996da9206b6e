"""Rows of some bins, among many entries that are in none of them."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, borrowing, prefetch

# Entries whose rows are put to their places together: enough that the values of those found, which
# were asked for, have come.
GATHER_ROWS = 1 << 12

# Of these, entries that are looked through at once, column by column: their codes stay in the
# innermost cache.
READ_ROWS = 1 << 9


@borrowing
def collect_rows(table, entries, begin, end, f, candidate, is_first, rows, to, kept, codes_read):
    """Collect the rows among entries ``begin .. end`` whose bin of column f is a candidate.

    They are written to ``rows[to:]``, without a branch; returns the place after the last.
    The first column that is read brings the codes of the others; its own are `kept`, by entry.
    """
    codes = table.codes
    column, first = np.uintp(f), np.uintp(table.offset[f])
    final = np.uintp(max(entries.size, 1) - 1)
    n = np.uintp(to)
    for i in range(np.uintp(begin), np.uintp(end)):
        if is_first:
            prefetch(codes, entries[min(i + np.uintp(PREFETCH_ROWS), final)], column)
        row = entries[i]
        code = np.uintp(codes[np.uintp(row), column])
        if kept:
            codes_read[i] = code
        rows[n] = row
        n += np.uintp(candidate[first + code])
    for i in range(np.uintp(to), n):
        prefetch(table.values, rows[i], column)
    return n
