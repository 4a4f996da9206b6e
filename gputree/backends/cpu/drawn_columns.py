"""Subtrees that read only the columns sampled at each node (extra-trees; `max_features`).

    drawn_ranks.py     the best cut of the columns that a node draws, by ranks of their values
    nonzeros.py        the same of a sparse table, by the ranks of values other than 0
    drawn_values.py    by the values themselves: of wide tables, and of cuts that are drawn

The rows of a node are marked with their sides of the best cut, and partitioned stably.
Columns that are constant in a node are constant below it, and are not read there again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import child_key
from gputree.backends.base import Rows, Subtrees, Task
from gputree.backends.binning import fewest_rows
from gputree.backends.cpu import tuning
from gputree.backends.cpu.block import share_blocks
from gputree.backends.cpu.cut import new_draws, no_cut
from gputree.backends.cpu.drawn_ranks import (
    DrawnRanks,
    Ends,
    best_rank_cut,
    new_drawn_ranks,
    part_by_ranks,
    part_rows,
    place_bits,
)
from gputree.backends.cpu.drawn_values import best_value_cut, mark_values, new_drawn
from gputree.backends.cpu.finish import (
    Growing,
    SmallNodes,
    add_leaf,
    may_split,
    new_subtrees,
    new_waiting,
    places_equal,
    split_leaf,
    wait,
)
from gputree.backends.cpu.finish_scan import Scan, clear
from gputree.backends.cpu.layout import EntrySource
from gputree.backends.cpu.monotonic import (
    allowed_on_stack,
    at_place,
    keep_columns,
    push_bounds,
    push_sets,
    put_bounds,
    put_set,
)
from gputree.backends.cpu.nonzeros import put_places
from gputree.backends.cpu.ranks import Ranks, rank_table
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, kernel, pasted
from gputree.criteria import add_row, begin, gain, is_pure, restrict, row_by_row

# Rows of the nodes of a large table that are ranked together.
RANKED_ROWS = 1 << 14


class DrawnEntries(NamedTuple):
    """Rows that trees are grown on; targets and weights are in the table's order."""

    local: NDArray  # (m,) rows; a node is a range of these
    spill: NDArray  # (m,) scratch
    target: NDArray  # (n,), or of one tree of regression after another
    weight: NDArray  # (n,), or of one tree after another; empty where all are one


class Copy(NamedTuple):
    """Copies of what the rows of a node have: the nodes below it read these, in a cache."""

    row: NDArray  # (m,) of the table
    entries: DrawnEntries  # of m rows
    rank: NDArray  # (d x m,) column by column


class Span(NamedTuple):
    """Nodes on the stack that are grown together."""

    first_row: int  # of the tree, among weights and targets of all trees
    free: int  # next free node
    size: int  # of the stack
    bottom: int  # size of the stack at the end
    few: int  # nodes of so many rows wait for a copy


class InNode(NamedTuple):
    """Scratch: targets, weights and sides by place in the node, and its statistics."""

    target: Int64s  # (m,)
    weight: Int64s  # (m,)
    left_side: NDArray  # (m,) uint8
    class_of: Int64s  # (channels,) number of a class among those of the node
    total: Int64s  # (channels,)
    left: Int64s  # (channels,)


@pasted
def take_targets(rules, criterion, entries, first_row, s, t, node, ranks):
    """Copy targets and weights of places ``s .. t``, and sum them."""
    local = entries.local[s:t]
    first_target = np.uintp(first_row if rules.regression else 0)
    for i in range(np.uintp(t - s)):
        row = np.uintp(local[i])
        node.target[i] = entries.target[first_target + row]
        node.weight[i] = entries.weight[np.uintp(first_row) + row] if rules.weighted else 1
    if ranks is not None and ranks.word.size > 0:
        sum_words(node.target[: t - s], node.weight, ranks.word, node.total)
        return
    clear(node.total)
    for i in range(np.uintp(t - s)):
        add_row(criterion, node.total, 0, node.target[i], node.weight[i], 0)


@borrowing
def sum_words(target, weight, word, total):
    """Sum the weights of two classes, and list those of rows as words; see `count_words`."""
    whole = second = np.int64(0)
    for i in range(np.uintp(target.size)):
        of_second = weight[i] & -target[i]
        whole += weight[i]
        second += of_second
        word[i] = weight[i] | of_second << 32
    total[0], total[1] = whole - second, second


@borrowing
def number_classes(node, m):
    """Number the classes of a node's m rows 0, 1, ... in their order; returns how many, 2 at least.

    The fewer, the less there is to score.
    """
    total, class_of, target = node.total, node.class_of, node.target
    present = np.int64(0)
    for k in range(total.size):
        class_of[k] = present
        weight = total[k]
        total[k] = 0
        total[present] = weight
        present += weight > 0
    for i in range(np.uintp(m)):
        target[i] = class_of[np.uintp(target[i])]
    return max(present, 2)


@pasted
def find_cut(scan, rows, limits, active, values, ranks):
    """The best cut of the columns that a node draws, and how many of the `active` remain."""
    cut = no_cut()
    if values is not None:
        active = keep_columns(scan.allowed, values.draws.columns, values.draws.place, active)
        cut, active = best_value_cut(scan, rows, limits, active, values, values.sorting)
    if ranks is not None:
        active = keep_columns(scan.allowed, ranks.draws.columns, ranks.draws.place, active)
        cut, active = best_rank_cut(scan, rows, limits, active, ranks)
    return cut, active


@pasted
def part_node(scan, rows, cut, values, ranks, spill, left_side):
    """Partition a node's rows stably by a cut.

    Returns how many go left, the threshold, and True if there are missing values.
    """
    to_left, threshold, missing = np.int64(0), 0.0, False
    if values is not None:
        threshold, missing = mark_values(scan, rows, values, cut, left_side)
        to_left = part_rows(rows, spill, left_side)
    if ranks is not None:
        to_left, threshold, missing = part_by_ranks(
            scan, rows, ranks, ranks.subsets, ranks.table.sparse, cut, spill, left_side
        )
    return to_left, threshold, missing


@pasted
def note_places(ranks, entries, s, t):
    """Note the places of a node's rows ``s .. t``, where the table is sparse."""
    if ranks is not None:
        put_places(ranks.place, entries.local[s:t])


@borrowing
def grow_some(rules, criterion, entries, waiting, span, values, ranks, scratch, out):
    """Grow nodes from the top of the stack, until one has few rows; returns the next `Span`."""
    limits, first_row, free, bottom = rules.limits, span.first_row, span.free, span.bottom
    min_rows, bits = fewest_rows(limits), 0  # of a key, for the place of a row
    if ranks is not None:
        bits = place_bits(ranks)
    size = span.size
    # Nodes below `free` have their entries, s .. t; the `size` on the stack may still be split.
    while size > bottom:
        size -= 1
        node, level, key = waiting.node[size], waiting.depth[size], waiting.key[size]
        bounded = at_place(limits.monotonic, limits, waiting.bounds, size)
        allowed = allowed_on_stack(rules.interactions, waiting.columns, size)
        s, t = out.begin[node], out.end[node]
        if level >= limits.max_depth or t - s < min_rows:
            continue
        if t - s <= span.few:
            return Span(first_row, free, size + 1, bottom, span.few)
        take_targets(rules, criterion, entries, first_row, s, t, scratch, ranks)
        channels = scratch.total.size
        if not rules.regression and channels > 2:
            channels = number_classes(scratch, t - s)
        total, left = scratch.total[:channels], scratch.left[:channels]
        local_criterion = restrict(criterion, channels)
        clear(left)
        scan = Scan(
            local_criterion, rules.weighted, entries.local, bits, scratch.target, scratch.weight,
            0, t - s, total, left, begin(local_criterion, total, total)[0],
            begin(local_criterion, left, total), key, allowed,
        )  # fmt: skip
        if is_pure(local_criterion, total):
            continue
        if rules.regression and places_equal(scan, None, limits.rounded):
            continue
        rows = entries.local[s:t]
        cut, active = find_cut(scan, rows, bounded, waiting.active[size], values, ranks)
        if cut.score == -np.inf:
            continue
        decrease = gain(local_criterion, cut.score, total)
        if decrease * scan.whole < limits.min_decrease:
            continue
        f = cut.column
        to_left, threshold, missing = part_node(
            scan, rows, cut, values, ranks, entries.spill, scratch.left_side
        )
        middle = s + to_left
        split_leaf(out, node, free, cut, decrease, threshold, missing, middle)
        push_bounds(
            bounded.monotonic, criterion, entries, rules.weighted, f, s, middle, scratch.total,
            scratch.left, waiting.bounds, size,
        )  # fmt: skip
        push_sets(allowed, f, waiting.columns, size)
        deeper = level + 1 < limits.max_depth
        for side in range(2):
            a, b = (middle, t) if side == 1 else (s, middle)
            splits = deeper and may_split(rules.regression, entries, a, b, min_rows)
            note_places(ranks, entries, a, b)
            below = level + 1 if splits else limits.max_depth  # else it stays a leaf
            wait(waiting, size, free + side, below, active, child_key(key, side))
            size += 1
        free += 2
    return Span(first_row, free, size, bottom, span.few)


@borrowing
def take_copy(entries, copy, rank, first_row, regression, s, t, ranks, active):
    """Copy what the rows at places ``s .. t`` have in the active columns, their targets, weights.

    The places have numbers of rows in the copy then, which has the ranks `rank`.
    """
    first_target = np.uintp(first_row if regression else 0)
    for i in range(np.uintp(t - s)):
        row = np.uintp(entries.local[np.uintp(s) + i])
        copy.row[i] = row
        copy.entries.local[i] = i
        copy.entries.target[i] = entries.target[first_target + row]
        if entries.weight.size > 0:
            copy.entries.weight[i] = entries.weight[np.uintp(first_row) + row]
    for c in range(active):
        f = ranks.draws.columns[c]
        column, of_copy = ranks.table.rank[f], rank[f]
        for i in range(np.uintp(t - s)):
            of_copy[i] = column[np.uintp(copy.row[i])]


@borrowing
def put_copy(entries, copy, s, t, first, free, out):
    """Write back the order of the rows that were copied, and places of nodes ``first .. free``."""
    for i in range(np.uintp(t - s)):
        entries.local[np.uintp(s) + i] = copy.row[np.uintp(copy.entries.local[i])]
    for node in range(first, free):
        out.begin[node] += s
        out.end[node] += s


@borrowing
def grow_copied(rules, criterion, entries, copy, waiting, span, ranks, scratch, out):
    """Grow the subtree of the node on top of the stack on a copy of its rows' ranks."""
    top, table, ends = span.size - 1, ranks.table, ranks.ends
    node, first_row = waiting.node[top], span.first_row
    s, t = out.begin[node], out.end[node]
    d = table.rank.shape[0]
    rank = copy.rank[: d * (t - s)].reshape(d, t - s)
    take_copy(entries, copy, rank, first_row, rules.regression, s, t, ranks, waiting.active[top])
    of_copy = DrawnRanks(
        Ranks(
            rank, table.counts, table.first, table.lowest, table.highest, table.missing,
            table.sparse,
        ),
        ranks.draws, ranks.binning, ranks.subsets, ranks.keys, ranks.order, ranks.counts,
        ranks.cells, ranks.place, Ends(ends.narrow, ends.wide, copy.row), ranks.word,
        ranks.draws_cuts,
    )  # fmt: skip
    out.begin[node], out.end[node] = 0, t - s
    found = grow_some(
        rules, criterion, copy.entries, waiting, Span(0, span.free, span.size, top, 0), None,
        of_copy, scratch, out,
    )  # fmt: skip
    put_copy(entries, copy, s, t, span.free, found.free, out)
    out.begin[node], out.end[node] = s, t
    return Span(first_row, found.free, top, span.bottom, span.few)


@kernel
def grow_drawn(rules, channels, entries, nodes, columns, values, ranks, copy, out):
    """Grow the subtrees of all nodes, over so many columns; returns their number of nodes."""
    most = np.int64(0)
    for j in range(nodes.begin.size):
        most = max(most, nodes.end[j] - nodes.begin[j])
    waiting = new_waiting(rules, most + 1)
    scratch = InNode(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.uint8),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
        np.empty(channels, np.int64),
    )
    criterion = restrict(rules.criterion, channels)
    free = np.int64(0)
    # The subtrees of the nodes before j are the nodes below `free`.
    for j in range(nodes.begin.size):
        out.root[j] = free
        add_leaf(out, free, nodes.begin[j], nodes.end[j])
        put_bounds(rules.limits.monotonic, nodes.means, j, waiting.bounds)
        put_set(rules.interactions, nodes.means, j, waiting.columns)
        wait(waiting, 0, free, nodes.depth[j], columns, nodes.key[j])
        note_places(ranks, entries, nodes.begin[j], nodes.end[j])
        span = Span(nodes.first_row[j], free + 1, np.int64(1), np.int64(0), copy.row.size)
        while span.size > 0:
            span = grow_some(rules, criterion, entries, waiting, span, values, ranks, scratch, out)
            if span.size > 0 and ranks is not None:
                span = grow_copied(
                    rules, criterion, entries, copy, waiting, span, ranks, scratch, out
                )
        free = span.free
    return free


def copied_rows(ranks: Ranks | None, max_features: int) -> int:
    """Maximum rows of nodes that have copies of ranks; 0 for none."""
    tuned = tuning.TUNING
    if ranks is None or ranks.rank.nbytes <= tuned.copied_bytes:
        return 0
    return tuned.copied_rows if len(ranks.rank) <= tuned.copied_columns * max_features else 0


def new_copy(ranks: Ranks | None, entries: DrawnEntries, m: int) -> Copy:
    """Scratch for copies of nodes of up to m rows."""
    target, weight = np.empty(m, entries.target.dtype), np.empty(m, np.int64)
    local = np.empty(m, entries.local.dtype)
    rank = (
        np.empty(0, np.uint16) if ranks is None else np.empty(len(ranks.rank) * m, ranks.rank.dtype)
    )
    return Copy(np.empty_like(local), DrawnEntries(local, entries.spill, target, weight), rank)


def grow_of_drawn(
    source: EntrySource,
    task: Task,
    by_column: NDArray | None,
    ranks: Ranks | None,
    nodes: SmallNodes,
) -> Subtrees:
    """Grow the subtrees of all nodes given, exactly; entries end in leaf order.

    `by_column` are the table's values column by column, (d, n), where the table is wide.
    """
    table, rows, local = source
    d, most = table.values.shape[1], int((nodes.end - nodes.begin).max())
    out = new_subtrees(nodes.end - nodes.begin, nodes.depth, task.limits)
    entries = DrawnEntries(
        local=local,
        spill=np.empty(most, local.dtype),
        target=rows.target,
        weight=np.empty(0, np.int64) if rows.weight is None else rows.weight,
    )
    regression, draws = rows.square is not None, new_draws(d)
    given = task.limits, rows.weight is not None, regression, None, task.interactions
    rules = Growing(row_by_row(task.criterion), *given)
    values = drawn = None
    if ranks is None:
        values = new_drawn(table, task, by_column, draws, most)
    else:
        drawn = new_drawn_ranks(ranks, table, task, draws, most)
    channels = 3 if regression else max(task.n_classes, 2)
    copy = new_copy(ranks, entries, min(most, copied_rows(ranks, task.limits.max_features)))
    free = grow_drawn(rules, channels, entries, nodes, d, values, drawn, copy, out)
    return Subtrees._make([out.root, *(field[:free] for field in out[1:])])


def grow_ranked_some(source: EntrySource, task: Task, nodes: SmallNodes) -> Subtrees:
    """Like `grow_of_drawn`, for a large table: the rows of some nodes at a time are ranked."""
    table, rows, entries = source
    sizes, done = nodes.end - nodes.begin, []
    for a, b in share_blocks(sizes, RANKED_ROWS):
        some = nodes.take(np.arange(a, b))
        end = np.cumsum(sizes[a:b])
        places = np.concatenate(
            [np.arange(s, t) for s, t in zip(some.begin, some.end, strict=True)]
        )
        of_places = entries[places]
        codes = table.codes[of_places] if len(table.codes) else table.codes
        copy = table._replace(values=table.values[of_places], codes=codes)
        taken = Rows._make(None if field is None else field[of_places] for field in rows)
        order = np.arange(places.size, dtype=entries.dtype)
        in_copy = some._replace(begin=end - sizes[a:b], end=end)
        ranks = rank_table(copy, 1)
        found = grow_of_drawn(EntrySource(copy, taken, order), task, None, ranks, in_copy)
        entries[places] = of_places[order]
        shift = (some.begin - in_copy.begin)[np.searchsorted(end, found.begin, "right")]
        done.append(found._replace(begin=found.begin + shift, end=found.end + shift))
    return Subtrees.join(done)
