"""Collect the rows of candidate bins with codes, and of candidate sub-bins with values.

entries      | all rows of a node                  |   codes are read: row by row, or fine ones
found        | rows of candidate bins    |             and their fine codes
pairs        | of sub-bins  |                          and their values: each is a cache line
"""

import numpy as np

from gputree.backends.cpu.encode import grid_cell
from gputree.backends.cpu.jit import PREFETCH_ROWS, borrowing, kernel, prefetch

# A fine code is a bin and one of its 2**FINE_BITS sub-bins of equal width.
FINE_BITS = 8
FINE_CELLS = 1 << FINE_BITS

# Entries whose rows are placed together: enough that the values found, which were prefetched, have
# arrived.
GATHER_ROWS = 1 << 12

# Entries, of these, whose codes are read at once, column by column: they stay in the innermost
# cache.
READ_ROWS = 1 << 9

# Rows between the one that is placed and the one whose value is prefetched.
PUT_AHEAD = 16


@kernel
def make_fine(table, cells, columns, begin, end, fine):
    """Write the fine codes of rows ``begin .. end`` in `columns` to ``fine[f]``."""
    for first in range(begin, end, READ_ROWS):
        last = np.uintp(min(first + READ_ROWS, end))
        for f in columns:
            for row in range(np.uintp(first), last):
                fine[f, row] = np.uint16(table.codes[row, f]) << np.uint16(FINE_BITS)
                fine[f, row] |= sub_bin_of(table, cells, f, row, fine[f, row])


@borrowing
def sub_bin_of(table, cells, f, row, code):
    """Sub-bin of a row in the bin of its `code`: the first one for missing values."""
    column, b = np.uintp(f), np.uintp(code) >> np.uintp(FINE_BITS)
    low, scale = cells.low[column, b], cells.scale[column, b]
    x = table.values[np.uintp(row), column]
    return np.uint16(grid_cell(x, low, scale, cells.half, cells.top))


@borrowing
def collect_fine(fine, entries, begin, end, f, candidate, rows, codes):
    """Collect rows and fine codes of candidate bins of a column that has those; returns how many.

    `candidate` is by bin. Without a branch, so that `rows` and `codes` need one element more.
    """
    column = np.uintp(f)
    n = np.uintp(0)
    for i in range(np.uintp(begin), np.uintp(end)):
        row = np.uintp(entries[i])
        code = fine[column, row]
        rows[n] = row
        codes[n] = code
        n += np.uintp(candidate[np.uintp(code) >> np.uintp(FINE_BITS)])
    return np.int64(n)


@borrowing
def collect_rows(table, entries, begin, end, f, candidate, is_first, rows, codes, to):
    """Like `collect_fine`, for a column without fine codes: the codes collected have sub-bin 0.

    They are written from `to` on; returns the place after the last. The first column that is read
    loads the cache lines with the codes of the others.
    """
    column = np.uintp(f)
    final = np.uintp(max(entries.size, 1) - 1)
    n = np.uintp(to)
    for i in range(np.uintp(begin), np.uintp(end)):
        if is_first:
            prefetch(table.codes, entries[min(i + np.uintp(PREFETCH_ROWS), final)], column)
        row = np.uintp(entries[i])
        code = np.uintp(table.codes[row, column])
        rows[n] = row
        codes[n] = code << np.uintp(FINE_BITS)
        n += np.uintp(candidate[code])
    return np.int64(n)


@borrowing
def add_sub_bins(table, cells, f, begin, end, rows, codes):
    """Add the sub-bins to the codes ``begin .. end`` of rows found in column f."""
    for i in range(begin, end):
        prefetch(table.values, rows[i], f)
    for i in range(np.uintp(begin), np.uintp(end)):
        codes[i] |= sub_bin_of(table, cells, f, rows[i], codes[i])


@borrowing
def keep_found(rows, codes, shift, place):
    """Move rows found in candidate sub-bins, and their codes, to the front; returns how many."""
    kept = np.uintp(0)
    for i in range(np.uintp(rows.size)):
        row, code = rows[i], codes[i]
        rows[kept] = row
        codes[kept] = code
        kept += np.uintp(place[np.uintp(code) >> np.uintp(shift)] >= 0)
    return np.int64(kept)


@borrowing
def put_found(table, f, rows, codes, shift, place, pairs):
    """Put the rows that were kept, with their values, at the places of their sub-bins."""
    column, size = np.uintp(f), np.uintp(pairs.items.size)
    for i in range(size):
        prefetch(table.values, rows[min(i + np.uintp(PUT_AHEAD), size - np.uintp(1))], column)
        row, cell = np.uintp(rows[i]), np.uintp(codes[i]) >> np.uintp(shift)
        to = np.uintp(place[cell])
        place[cell] = to + np.uintp(1)
        pairs.items[to] = row
        pairs.values[to] = table.values[row, column]
