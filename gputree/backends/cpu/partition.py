"""Stable partition of entries: the rows of a node are divided among its children.

    entries   | a b c d e f g h | i j k |     a node in two chunks; capitals go left
              | A B c D e F G h | I j K |
    chunks    | A B D F G c e h | I K j |     each chunk by itself, into a second array
    entries   | A B D F G I K   | c e h j |   the parts to their places in the node

Threads share the chunks; a part is placed behind those of the chunks before it, so the result does
not depend on how the nodes are divided.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu import tuning
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.sub_bins import FINE_BITS
from gputree.base.dtypes import Floats, Int32s, Int64s
from gputree.base.threads import run, spans
from gputree.compilation import PREFETCH_ROWS, borrowing, kernel, pick, prefetch
from gputree.criteria import add_row


class Chunks(NamedTuple):
    """Chunk c is entries ``begin[c] .. end[c]``, of node ``node[c]``."""

    node: Int64s
    begin: Int64s
    end: Int64s


class Parted(NamedTuple):
    """Chunks of partitioned entries, and of each the values on both sides of the cut."""

    entries: NDArray  # of each chunk in its own range, those that go left first
    left: Int64s  # by chunk: number of entries that go left
    low: Floats  # maximum value before the cut
    high: Floats  # minimum value after it


# Side of a bin whose rows are read: their values decide the side, or are next to the cut.
BY_VALUE = 2


@borrowing
def assign_bins(splits, j, missing_bin, neighbours, side):
    """Set ``side[b]`` to 1 if rows of bin b go left, 0 if right, `BY_VALUE` if values are read."""
    cut_bin, next_bin = splits.cut_bin[j], splits.next_bin[j]
    for b in range(side.size):
        side[b] = b <= cut_bin
    if missing_bin >= 0:
        side[missing_bin] = splits.missing_left[j]
    if splits.inside[j] or neighbours:
        side[cut_bin] = BY_VALUE
    if neighbours and next_bin >= 0:
        side[next_bin] = BY_VALUE


@borrowing
def partition_chunk(table, entries, begin, end, splits, j, side, fine, out, spill):
    """Write a chunk of node j to `out`, entries that go left first; and the values next to the cut.

    `side` is that of `assign_bins`.

    Returns (entries to the left, maximum value before a cut between bins, minimum after it).
    """
    f, cut_bin, inside = splits.feature[j], splits.cut_bin[j], splits.inside[j]
    threshold, is_known = splits.threshold[j], fine.known[f]
    codes, values, code = table.codes, table.values, fine.code
    one = np.uintp(1)
    final = np.uintp(max(entries.size, 1) - 1)
    column = np.uintp(f)
    to = np.uintp(begin)
    spilt = np.uintp(0)
    low = -np.inf
    high = np.inf
    # Of the rows before i, those on the left are out[begin:to] and the others spill[:spilt], in
    # order.
    for i in range(np.uintp(begin), np.uintp(end)):
        row = entries[i]
        if is_known:
            b = np.uintp(code[column, np.uintp(row)]) >> np.uintp(FINE_BITS)
        else:
            prefetch(codes, entries[min(i + np.uintp(PREFETCH_ROWS), final)], f)
            b = np.uintp(codes[row, column])
        is_left = np.uintp(side[b])
        if is_left == BY_VALUE:
            value = np.float64(values[row, column])
            is_left = np.uintp(value <= threshold if inside else b == np.uintp(cut_bin))
            if is_left:
                low = max(low, value)
            else:
                high = min(high, value)
        out[to] = row
        spill[spilt] = row
        to += is_left
        spilt += one - is_left
    for i in range(spilt):
        out[to + i] = spill[i]
    return np.int64(to) - begin, low, high


@borrowing
def missing_bin_of(table, f):
    """Bin of missing values of column f, -1 if it has none."""
    return table.offset[f + 1] - table.offset[f] - 1 if table.missing[f] else -1


@borrowing
def ask_for_category(table, row, f, by_code):
    """Prefetch the code or value that `category_of` reads."""
    if by_code:
        prefetch(table.codes, row, f)
    else:
        prefetch(table.values, row, f)


@borrowing
def category_of(table, row, f, by_code, missing_bin):
    """Category of a row in column f, -1 where it is missing; from its code, if that is the same."""
    if by_code:
        code = np.int64(table.codes[row, f])
        return -1 if code == missing_bin else code
    value = table.values[row, f]
    return np.int64(value) if value == value else -1


@borrowing
def partition_categories(table, entries, begin, end, f, missing_left, codes, is_left, out, spill):
    """Like `partition_chunk`, by categories that go left; `is_left` is false before and after."""
    for i in range(codes.size):
        is_left[codes[i]] = True
    by_code = table.by_code[f]
    missing_bin = missing_bin_of(table, f)
    final = entries.size - 1
    left = right = 0
    for i in range(begin, end):
        ask_for_category(table, entries[min(i + PREFETCH_ROWS, final)], f, by_code)
        row = entries[i]
        code = category_of(table, row, f, by_code, missing_bin)
        to_left = np.int64(missing_left if code < 0 else is_left[code])
        out[begin + left] = row
        spill[right] = row
        left += to_left
        right += 1 - to_left
    for i in range(right):
        out[begin + left + i] = spill[i]
    for i in range(codes.size):
        is_left[codes[i]] = False
    return left


@kernel
def partition_chunks(table, entries, splits, left, fine, chunks, is_left, first, last, parted):
    """Partition chunks ``first .. last``, each in its own range.

    `is_left` is scratch, false for every category.
    """
    out = parted.entries
    longest = 0
    for c in range(first, last):
        longest = max(longest, chunks.end[c] - chunks.begin[c])
    spill = np.empty(longest, entries.dtype)
    side = np.empty(MAX_BINS, np.uint8)
    for c in range(first, last):
        j, begin, end = chunks.node[c], chunks.begin[c], chunks.end[c]
        f = splits.feature[j]
        parted.low[c], parted.high[c] = -np.inf, np.inf
        if table.categories[f] > 0:
            codes = left.code[left.begin[j] : left.begin[j + 1]]
            parted.left[c] = partition_categories(
                table, entries, begin, end, f, splits.missing_left[j], codes, is_left, out, spill
            )
            continue
        missing_bin = missing_bin_of(table, f)
        neighbours = not splits.inside[j] and not table.by_code[f]
        assign_bins(splits, j, missing_bin, neighbours, side)
        parted.left[c], low, high = partition_chunk(
            table, entries, begin, end, splits, j, side, fine, out, spill
        )
        if not splits.inside[j]:  # else its threshold is known
            parted.low[c], parted.high[c] = low, high


@kernel
def place_chunks(parts, chunks, lefts, to_left, to_right, entries, first, last):
    """Copy both parts of each chunk to their places in `entries`."""
    for c in range(first, last):
        middle = chunks.begin[c] + lefts[c]
        copy_entries(parts, chunks.begin[c], middle, to_left[c], entries)
        copy_entries(parts, middle, chunks.end[c], to_right[c], entries)


@borrowing
def copy_entries(parts, begin, end, to, entries):
    """Copy ``parts[begin:end]`` to ``entries[to:]``."""
    source, target = np.uintp(begin), np.uintp(to)
    for i in range(np.uintp(end - begin)):
        entries[target + i] = parts[source + i]


@kernel
def node_statistics(criterion, rows, entries, begins, ends, out, first, last):
    """Sum the row statistics of each node ``begins[j] .. ends[j]`` into ``out[j]``."""
    targets, weights, squares, rests = rows
    regression = squares is not None
    width = out.shape[1]
    flat = out.reshape(-1)
    for j in range(first, last):
        for i in range(begins[j], ends[j]):
            row = entries[i]
            weight = pick(weights, row, 1)
            add_row(criterion, flat, j * width, targets[row], weight, pick(squares, row, 0))
            if regression:
                flat[j * width + 3] += pick(rests, row, 0)


# Rows whose values stay in the cache while every cut is looked at.
BLOCK_ROWS = 512


@kernel
def left_statistics(criterion, rows, entries, values, cuts, out, counts, first, last):
    """Sum the statistics of entries ``first .. last`` that go left by each cut.

    Those of cut j are added to row ``2 * j + 1`` of `out`, those of the others to the row before
    it; ``counts[j]`` are the entries that go left.
    """
    targets, weights, squares, rests = rows
    regression = squares is not None
    width = np.uintp(out.shape[1])
    flat = out.reshape(-1)
    for a in range(first, last, BLOCK_ROWS):
        begin, end = np.uintp(a), np.uintp(min(a + BLOCK_ROWS, last))
        for j in range(np.uintp(cuts.feature.size)):
            f = np.uintp(cuts.feature[j])
            threshold, missing_left = cuts.threshold[j], cuts.missing_left[j]
            lefts = np.uintp(0)
            # The entries before i of this block, and those of the blocks before it, are counted.
            for i in range(begin, end):
                row = np.uintp(entries[i])
                value = np.float64(values[row, f])
                to_left = np.uintp((value <= threshold) | (missing_left & (value != value)))
                start = (np.uintp(2) * j + to_left) * width
                weight = pick(weights, row, 1)
                add_row(criterion, flat, start, targets[row], weight, pick(squares, row, 0))
                if regression:
                    flat[start + np.uintp(3)] += pick(rests, row, 0)
                lefts += to_left
            counts[j] += np.int64(lefts)


@kernel
def list_categories(table, entries, begins, ends, features, first, last, seen, counts, codes):
    """List the categories in each of nodes ``first .. last``, one after another, unordered.

    `seen` is false for every category on entry and exit. ``counts[j]`` becomes their number.
    """
    used = np.int64(0)
    for j in range(first, last):
        f = features[j]
        start = used
        by_code = table.by_code[f] and table.categories[f] > 0  # else codes number the values
        missing_bin = missing_bin_of(table, f) if by_code else -1
        for i in range(begins[j], ends[j]):
            ask_for_category(table, entries[min(i + PREFETCH_ROWS, ends[j] - 1)], f, by_code)
            code = category_of(table, entries[i], f, by_code, missing_bin)
            if code < 0:
                continue
            if not seen[code]:
                seen[code] = True
                codes[used] = code
                used += 1
        for i in range(start, used):
            seen[codes[i]] = False
        counts[j] = used - start


def node_categories(
    table: Table,
    entries: Int32s,
    begin: Int64s,
    end: Int64s,
    feature: Int32s,
    n_threads: int,
) -> tuple[Int64s, NDArray[np.uint32]]:
    """Categories of a column in each node of some entries, as `Backend.categories`."""
    most = max(int(table.categories.max(initial=0)), 2)
    sizes = np.minimum(end - begin, most)
    counts = np.zeros(begin.size, np.int64)

    def list_some(a: int, b: int) -> NDArray[np.uint32]:
        codes, seen = np.empty(int(sizes[a:b].sum()), np.uint32), np.zeros(most, np.bool_)
        list_categories(table, entries, begin, end, feature, a, b, seen, counts, codes)
        return codes[: int(counts[a:b].sum())]

    parts = spans(end - begin, n_threads, tuning.TUNING.chunk_rows // 4)
    found = np.concatenate(run(n_threads, list_some, parts))
    owner = np.repeat(np.arange(begin.size), counts)
    return counts, found[np.lexsort((found, owner))]
