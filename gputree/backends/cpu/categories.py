"""Subsets of the categories of nominal columns in nodes that have histograms.

    few      a category is a bin: its run is a cell of the histogram
    many     one bin for all: the rows of the node are counted anew, by category

    seen       | 1  0  1  1  0 |     a bit for each category of a column of many, 0 between nodes
    place      | 0  .  1  2  . |     the run of each category that is seen
    runs       | 0 | 2 | 3 |

The cost of a node in a column of many categories depends on its rows, not on the categories.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import lowest_bit
from gputree.backends.base import SubsetSearch, Task
from gputree.backends.binning import MAX_BINS
from gputree.backends.cpu import tuning
from gputree.backends.cpu.cut import row_count
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.runs import (
    Listed,
    Runs,
    add_to_run,
    clear_cells,
    holds_cells,
    most_cells,
    new_runs,
    node_runs,
    number_present,
)
from gputree.backends.cpu.score import column_bins
from gputree.backends.cpu.sort import new_sorter, sort_pairs
from gputree.backends.cpu.subsets import best_subset, mark_subset
from gputree.base.dtypes import Int32s, Int64s
from gputree.base.threads import even_spans, run
from gputree.compilation import PREFETCH_ROWS, borrowing, inner, kernel, pick, prefetch
from gputree.criteria import is_pure, restrict

ONE, WORD_BITS, IN_WORD = np.uint64(1), np.uint64(6), np.uint64(63)

# Nodes that have fewer than 1 in `FEW_OF` of a column's categories sort them; others scan all bits.
FEW_OF = 1024


class Many(NamedTuple):
    """Codes of columns of many categories, column by column: they are far apart in the table."""

    code: Int32s  # (columns, n), -1 where missing
    place: Int64s  # (d,) row of `code` for a column of many


class NodeColumns(NamedTuple):
    """Pairs of a node and a nominal column."""

    node: Int64s
    column: Int64s


class LeftLists(NamedTuple):
    """Categories that the subsets of some pairs send left, one pair after another."""

    counts: Int64s  # by pair
    codes: NDArray[np.uint32]


class Scratch(NamedTuple):
    """Scratch of one worker for the search of subsets; None where no column is nominal."""

    search: SubsetSearch
    categories: Int64s  # (d,) of nominal columns, 0 of numeric ones
    runs: Runs
    sums: Int64s  # (3, channels): of the node, of its left side, of missing values
    class_of: Int32s  # (n_classes,) number of a class among those of the node
    seen: NDArray[np.uint64]  # bits of the most categories, 0 between nodes
    place: Int32s  # (most categories,) run of a category that is seen
    met: Int32s  # category of each of the node's rows; -1: missing
    item: Int32s  # rows of the node by category, where sums per category are not stored
    last: Int64s  # (2,) of a block: the column whose runs were found last, and how many
    weighted: bool
    regression: bool


def new_scratch(table: Table, task: Task, most_rows: int, sorted_: bool) -> Scratch | None:
    """Scratch for nodes of up to `most_rows` rows; `sorted_`: in a block, else counted."""
    if not table.categories.any():
        return None
    assert task.search is not None
    many = int(table.categories[~table.by_code].max(initial=0))
    size = max(min(many, most_rows), MAX_BINS) + 2
    channels = max(task.n_classes, 3)
    present = min(channels, max(most_rows, 3))
    cells = max(most_cells(present, size), (MAX_BINS + 2) * present)  # of few, all have sums
    listed = sorted_ or (many > 0 and not holds_cells(channels, size))
    return Scratch(
        search=task.search,
        categories=table.categories,
        runs=new_runs(size, cells),
        sums=np.empty((3, channels), np.int64),
        class_of=np.empty(task.n_classes, np.int32),
        seen=np.zeros(0 if sorted_ else -(-many // 64), np.uint64),
        place=np.empty(0 if sorted_ else many, np.int32),
        met=np.empty(most_rows if many > 0 and not sorted_ else 0, np.int32),
        item=np.empty(most_rows if listed else 0, np.int32),
        last=np.empty(2, np.int64),
        weighted=task.rows.weight is not None,
        regression=task.n_classes == 0,
    )


@borrowing
def copy_cell(scratch, cells, offset, r, present):
    """Copy the statistics of a bin to run r."""
    runs = scratch.runs
    if scratch.regression:
        runs.cells[r * present] = cells[offset]
        runs.cells[r * present + 1] = cells[offset + 1]
        runs.cells[r * present + 2] = 0
        return
    for k in range(scratch.class_of.size):
        if cells[offset + k] > 0:
            runs.cells[r * present + scratch.class_of[k]] = cells[offset + k]


@borrowing
def collect_bins(scratch, criterion, table, cells, f, channels, present):
    """The runs of the categories of column f from the node's histogram; returns how many."""
    runs = scratch.runs
    first, value_bins, missing_at = column_bins(table, f, channels)
    count = 0
    n = np.int64(0)
    # Bins before b have `n` rows, in `count` runs.
    for b in range(value_bins):
        offset = (first + b) * channels
        rows = row_count(criterion, cells, offset, channels, scratch.weighted)
        if rows == 0:
            continue
        runs.begin[count] = n
        runs.code[count] = b
        for c in range(present):
            runs.cells[count * present + c] = 0
        copy_cell(scratch, cells, offset, count, present)
        count += 1
        n += rows
    runs.begin[count] = n
    for c in range(present):  # of missing values
        runs.cells[count * present + c] = 0
    if missing_at >= 0:
        copy_cell(scratch, cells, missing_at, count, present)
        n += row_count(criterion, cells, missing_at, channels, scratch.weighted)
    runs.begin[count + 1] = n
    return count


def many_categories(table: Table, n_threads: int) -> Many:
    """Codes of the table's columns of many categories."""
    n = table.values.shape[0]
    columns = np.flatnonzero((table.categories > 0) & ~table.by_code)
    place = np.zeros(table.categories.size, np.int64)
    place[columns] = np.arange(columns.size)
    code = np.empty((columns.size, n), np.int32)
    parts = even_spans(n, columns.size, n_threads, tuning.TUNING.chunk_rows)
    run(n_threads, copy_categories, [(table.values, columns, a, b, code) for a, b in parts])
    return Many(code, place)


@kernel
def copy_categories(values, columns, begin, end, code):
    """Write the categories of rows ``begin .. end`` column by column, -1 where missing."""
    for k in range(columns.size):
        codes, f = code[k], np.uintp(columns[k])
        for i in range(np.uintp(begin), np.uintp(end)):
            value = values[i, f]
            codes[i] = np.int32(value) if value == value else np.int32(-1)


@borrowing
def meet_categories(scratch, codes, categories, entries, first, last):
    """Number the categories that entries ``first .. last`` have, ascending; returns how many.

    `codes` is the column, and `categories` their number; ``scratch.met[i]`` becomes that of the
    i-th entry.
    """
    seen, met, code = scratch.seen, scratch.met, scratch.runs.code
    count = np.int64(0)
    for i in range(first, last):
        prefetch(codes, entries[min(i + PREFETCH_ROWS, last - 1)], 0)
        c = codes[entries[i]]
        met[i - first] = c
        if c >= 0:
            word = np.uintp(c) >> WORD_BITS
            bit = ONE << (np.uint64(c) & IN_WORD)
            code[count] = c
            count += np.int64(seen[word] & bit == 0)
            seen[word] |= bit
    number_categories(scratch, count, categories)
    return count


@inner
def number_categories(scratch, count, categories):
    """Sort the `count` categories that were seen, and clear `scratch.seen`."""
    seen, place, runs = scratch.seen, scratch.place, scratch.runs
    if count * FEW_OF < categories:
        sort_pairs(runs.code, runs.spare, np.int64(0), count, new_sorter())
        for r in range(count):
            place[runs.code[r]] = r
            seen[np.uintp(runs.code[r]) >> WORD_BITS] = 0
        return
    r = np.int64(0)
    for word in range(np.uintp(seen.size)):
        left = seen[word]
        seen[word] = 0
        while left != 0:
            category = np.int64(word << WORD_BITS) + lowest_bit(left)
            left &= left - ONE
            runs.code[r] = category
            place[category] = r
            r += 1


@borrowing
def end_runs(begin, count):
    """Turn the numbers of rows per run, ``begin[1:]``, into the offsets of the runs."""
    for r in range(count + 1):
        begin[r + 1] += begin[r]


@borrowing
def add_rows(scratch, criterion, rows, entries, first, last, count, present):
    """Sum the rows of each run, and of missing values; and set the offsets of the runs."""
    begin, met, place = scratch.runs.begin, scratch.met, scratch.place
    clear_cells(scratch.runs, count, present)
    begin[: count + 2] = 0
    for i in range(first, last):
        ahead = entries[min(i + PREFETCH_ROWS, last - 1)]
        prefetch(rows.target, ahead, 0)
        row = entries[i]
        target = np.int64(rows.target[row])
        if not scratch.regression:
            target = np.int64(scratch.class_of[target])
        category = met[i - first]
        r = np.int64(place[category]) if category >= 0 else count
        begin[r + 1] += 1
        add_to_run(criterion, scratch.runs, r, present, target, np.int64(pick(rows.weight, row, 1)))
    end_runs(begin, count)


@borrowing
def list_rows(scratch, entries, first, last, count):
    """List the rows by their runs, missing values last; and set the offsets of the runs."""
    begin, met, place = scratch.runs.begin, scratch.met, scratch.place
    begin[: count + 2] = 0
    for i in range(last - first):
        met[i] = place[met[i]] if met[i] >= 0 else count
        begin[met[i] + 1] += 1
    end_runs(begin, count)
    for i in range(first, last):
        r = met[i - first]
        scratch.item[begin[r]] = entries[i]
        begin[r] += 1
    for r in range(count + 1, 0, -1):
        begin[r] = begin[r - 1]
    begin[0] = 0


@borrowing
def collect_runs(scratch, criterion, source, many, nodes, total, j, f):
    """The runs of nominal column f in node j.

    Returns the criterion of the classes present, the channels of their statistics, the number of
    runs, and True if their sums are stored.
    """
    table, rows, entries = source
    present = number_present(total, scratch.class_of.size, scratch.class_of, scratch.sums[0])
    restricted = restrict(criterion, present)
    if table.by_code[f]:
        cells = nodes.cells[nodes.slots[j]]
        count = collect_bins(scratch, criterion, table, cells, f, total.size, present)
        return restricted, present, count, True
    first, last = nodes.begin[j], nodes.end[j]
    count = meet_categories(
        scratch, many.code[many.place[f]], table.categories[f], entries, first, last
    )
    sums_runs = holds_cells(present, count)
    if sums_runs:
        add_rows(scratch, restricted, rows, entries, first, last, count, present)
    else:
        list_rows(scratch, entries, first, last, count)
    return restricted, present, count, sums_runs


@kernel
def score_subsets(rules, source, many, nodes, scores, pairs, first, last, scratch):
    """Find the best subset of nominal column ``pairs.column[p]`` in node ``pairs.node[p]``.

    For the pairs ``first .. last``; see `best_subset`.
    """
    rows = source.rows
    listed = Listed(scratch.item, rows.target, rows.weight, scratch.weighted, scratch.class_of)
    for p in range(first, last):
        j, f = pairs.node[p], pairs.column[p]
        total = scores.total[j]
        if is_pure(rules.criterion, total):
            continue
        criterion, present, count, sums_runs = collect_runs(
            scratch, rules.criterion, source, many, nodes, total, j, f
        )
        if count == 0:  # missing throughout: no cut exists
            continue
        node = node_runs(scratch, listed, count, sums_runs, present)
        best, missing_left, k, place = best_subset(criterion, rules.limits, scratch, node)
        scores.best[j, f], scores.missing_left[j, f] = best, missing_left
        scores.order[j, f], scores.bin[j, f] = k, place


@kernel
def list_left(rules, source, many, nodes, scores, pairs, first, last, scratch, out):
    """List the categories that the subsets of pairs ``first .. last`` send left in `LeftLists`."""
    used = np.int64(0)
    runs = scratch.runs
    for p in range(first, last):
        j, f = pairs.node[p], pairs.column[p]
        criterion, present, count, _ = collect_runs(
            scratch, rules.criterion, source, many, nodes, scores.total[j], j, f
        )
        mark_subset(criterion, scratch, count, present, scores.order[j, f], scores.bin[j, f])
        before = used
        for r in range(count):
            if runs.is_left[r]:
                out.codes[used] = runs.code[r]
                used += 1
        out.counts[p] = used - before
