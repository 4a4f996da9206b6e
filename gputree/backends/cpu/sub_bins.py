"""Sub-bins: the candidate bins of large nodes are divided, counted again and pruned once more.

    a bin          |                       xx            |     x: the rows of candidate sub-bins
    its sub-bins   |    |    |    |    |    |    |    |  |     equal widths, or nearly

The sub-bin of a value never decreases as the value grows, so that the boundary of two sub-bins is a
real cut, and bounds are as valid for sub-bins as for bins. A boundary worth choosing keeps the
filled sub-bins on both its sides candidates: it is found, with its threshold, among their sorted
rows. So the choice of sub-bins never changes a cut.

Two sources are counted: the rows collected from candidate bins (`count_found`); and, where they are
many, all rows of a node, column by column (`gputree.backends.cpu.cell_counts`). The latter are
additive: counts of a larger sibling are those of the parent less the smaller one's. In small nodes
each bin is its only sub-bin. Rows of candidate bins are collected with codes, those of candidate
sub-bins with values:

    entries      | all rows of a node                  |   codes are read: row by row, or fine ones
    found        | rows of candidate bins    |             and their fine codes
    pairs        | of sub-bins  |                          and their values: each is a cache line
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu.cut import count_row, new_cut, precedes, row_count, scan_bin, tie_rank
from gputree.backends.cpu.encode import grid_cell
from gputree.backends.cpu.layout import Fine
from gputree.backends.cpu.score import add_cell, admissible, column_bins, is_candidate, start_side
from gputree.backends.cpu.sort import Sorter, new_sorter, sort_pairs
from gputree.base.dtypes import Bools, Int64s
from gputree.compilation import PREFETCH_ROWS, borrowing, inner, kernel, prefetch
from gputree.criteria import begin, bound, score

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


# Number of sub-bins that get one common bound before each gets a bound.
RUN_CELLS = 8


class SubBinGrid(NamedTuple):
    """Division of the bins of a table into `FINE_CELLS` sub-bins each, of equal width.

    It is the same for all nodes. Columns are counted as a whole into fewer sub-bins, `size` per
    bin: fine codes without their lowest `shift` bits.
    """

    size: int
    shift: int
    first: Int64s  # (d + 1,) first counter of each column; lossless ones have none
    low: NDArray  # (d, 256) half the minimum of a bin
    scale: NDArray  # (d, 256) sub-bins per half unit
    half: np.floating  # 0.5 and the last sub-bin, in the dtype of the values
    top: np.floating


class Finer(NamedTuple):
    """Sub-bins that large nodes are refined with; None for small nodes."""

    cells: SubBinGrid
    fine: Fine
    counted: Bools  # (d,) columns that are counted as a whole
    counts: NDArray  # (sub-bins x channels,), where counted
    sub_bin_rows: float  # minimum rows of a node per sub-bin where the rows collected are counted


class SubBins(NamedTuple):
    """The sub-bins ``first .. first + size`` of a column, which divide one bin."""

    counts: NDArray  # flat, `channels` each
    place: Int64s  # first pair of each candidate, -1 for others
    first: int
    size: int


class Spot(NamedTuple):
    """Place of a cut, without its threshold."""

    column: int
    missing_left: bool
    bin: int
    rank: np.uint64  # of the column, see `tie_rank`


class Work(NamedTuple):
    """Scratch of a scan: statistics of shape (channels,)."""

    sorter: Sorter
    left: Int64s  # before a bin
    inside: Int64s  # before a sub-bin
    run: Int64s  # of, or before, a run of sub-bins
    scanned: Int64s  # before a pair


@inner
def new_work(channels):
    """Scratch for statistics of `channels` channels."""
    return Work(
        new_sorter(),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
    )


@borrowing
def keep_left(left, copy):
    """Copy the statistics `left`."""
    for k in range(left.size):
        copy[k] = left[k]


@borrowing
def add_run(counts, offset, size, total):
    """Set `total` to the statistics of `size` sub-bins from ``counts[offset]`` on."""
    for k in range(total.size):
        total[k] = 0
    for c in range(size):
        add_cell(total, counts, offset + c * total.size)


@borrowing
def mark_cells(node, cells, rows, work, needed):
    """Set ``cells.place`` to 0 where a sub-bin may contain the best cut, or end at it.

    `rows` is their number of rows; bounds and scores must reach `needed`.
    """
    criterion, limits, weighted, total, _ = node
    counts, place, left, run = cells.counts, cells.place, work.inside, work.run
    channels = left.size
    keep_left(work.left, left)
    after = False  # the score of the boundary before this sub-bin reaches it
    c = cells.first
    offset = c * channels
    end = c + cells.size
    # `left` are the statistics before sub-bin c, and `rows` the number of rows from there on.
    while c < end:
        length = min(RUN_CELLS, end - c)
        add_run(counts, offset, length, run)
        n = row_count(criterion, run, 0, channels, weighted)
        if n == 0 or (not after and bound(criterion, left, run, 0, total) < needed):
            add_cell(left, run, 0)
            rows -= n
            offset += length * channels
            c += length
            continue
        for _ in range(length):
            n = row_count(criterion, counts, offset, channels, weighted)
            if n > 0:
                if after or is_candidate(
                    criterion, limits, weighted, left, counts, offset, n, total, needed
                ):
                    place[c] = 0
                add_cell(left, counts, offset)
                rows -= n
                if rows == 0:
                    return
                after = (
                    admissible(criterion, limits, weighted, left, total)
                    and score(criterion, begin(criterion, left, total), left, total) >= needed
                )
                if after:
                    place[c] = 0
            offset += channels
            c += 1


@borrowing
def place_cells(node, cells, used):
    """Reserve places from `used` on for the rows of candidates; returns the places used."""
    channels = node.total.size
    for c in range(cells.first, cells.first + cells.size):
        if cells.place[c] >= 0:
            cells.place[c] = used
            used += row_count(node.criterion, cells.counts, c * channels, channels, node.weighted)
    return used


@borrowing
def scan_cells(node, rows, cells, pairs, is_sorted, spot, work, cut):
    """The better of `cut` and the best cut inside runs of candidates, whose pairs are gathered.

    ``cells.place`` is behind the last pair of each now; pairs of a candidate may be sorted already.
    """
    criterion, weighted = node.criterion, node.weighted
    counts, place, left = cells.counts, cells.place, work.inside
    channels = left.size
    keep_left(work.left, left)
    start = end = np.int64(-1)  # pairs of a run of candidates, after `work.run`
    # `left` are the statistics before sub-bin c. The candidates before it are scanned, except those
    # next to it, whose pairs are start .. end (none if `start` is negative).
    for c in range(cells.first, cells.first + cells.size):
        offset = c * channels
        n = row_count(criterion, counts, offset, channels, weighted)
        if n > 0:
            if place[c] >= 0:
                if start < 0:
                    start = place[c] - n
                    keep_left(left, work.run)
                end = place[c]
                if not is_sorted:
                    sort_pairs(pairs.values, pairs.items, end - n, end, work.sorter)
            elif start >= 0:
                cut = scan_sorted(node, rows, pairs, start, end, work.run, spot, work, cut)
                start = np.int64(-1)
            add_cell(left, counts, offset)
    if start >= 0:
        cut = scan_sorted(node, rows, pairs, start, end, work.run, spot, work, cut)
    return cut


@borrowing
def scan_sorted(node, rows, pairs, first, last, left, spot, work, cut):
    """The better of `cut` and the best cut between the sorted pairs ``first .. last``.

    `left` are the statistics before them, and stays unchanged.
    """
    keep_left(left, work.scanned)
    value, threshold = scan_bin(node, rows, pairs, first, last, work.scanned)
    found = new_cut(value, spot.column, spot.missing_left, spot.bin, False, threshold, spot.rank)
    return found if value > -np.inf and precedes(found, cut) else cut


@borrowing
def dropped_bits(rows, sub_bin_rows):
    """Number of low bits of fine codes to drop in a node of `rows` rows."""
    bits = FINE_BITS
    while bits > 0 and (MAX_BINS << (FINE_BITS + 1 - bits)) * sub_bin_rows <= rows:
        bits -= 1
    return bits


@borrowing
def count_found(node, rows, found, codes, shift, cells, candidate):
    """Set the counts of candidate bins to the numbers of rows found, by their codes."""
    channels, counts = node.total.size, cells.counts
    for b in range(candidate.size):
        if candidate[b]:
            counts[b * cells.size * channels : (b + 1) * cells.size * channels] = 0
    for i in range(np.uintp(found.size)):
        offset = (np.uintp(codes[i]) >> np.uintp(shift)) * np.uintp(channels)
        count_row(node.criterion, rows, found[i], counts, offset, channels)


@borrowing
def mark_column(node, table, histogram, f, cells, candidate, work, needed):
    """Reserve places for the rows of candidate sub-bins of candidate bins; returns how many.

    Bins without such rows are no longer candidates.
    """
    channels, size = node.total.size, cells.size
    first, value_bins, missing_at = column_bins(table, f, channels)
    for b in range(value_bins):
        if candidate[b]:
            cells.place[b * size : (b + 1) * size] = -1
    for side in range(2):
        if not start_side(histogram, missing_at, side == 1, work.left):
            continue
        # `work.left` are the statistics before bin b, with missing values if they go left.
        for b in range(value_bins):
            offset = (first + b) * channels
            if candidate[b]:
                n = row_count(node.criterion, histogram, offset, channels, node.weighted)
                sub_bins = SubBins(cells.counts, cells.place, b * size, size)
                mark_cells(node, sub_bins, n, work, needed)
            add_cell(work.left, histogram, offset)
    used = np.int64(0)
    for b in range(value_bins):
        if candidate[b]:
            before = used
            sub_bins = SubBins(cells.counts, cells.place, b * size, size)
            used = place_cells(node, sub_bins, used)
            candidate[b] = used > before
    return used


@borrowing
def scan_column(node, source, histogram, f, cells, pairs, candidate, work, cut):
    """The better of `cut` and the best cut inside candidates of column f, all gathered."""
    channels, size = node.total.size, cells.size
    first, value_bins, missing_at = column_bins(source.table, f, channels)
    for side in range(2):
        if not start_side(histogram, missing_at, side == 1, work.left):
            continue
        for b in range(value_bins):
            if candidate[b]:
                spot = Spot(f, side == 1, b, tie_rank(node.limits, node.key, f))
                sub_bins = SubBins(cells.counts, cells.place, b * size, size)
                cut = scan_cells(node, source.rows, sub_bins, pairs, side == 1, spot, work, cut)
            add_cell(work.left, histogram, (first + b) * channels)
    return cut
