"""Cuts: the rules that admit them, the order among them, the best one of sorted pairs.

Random subsets of the columns are drawn here, too: they depend on the node only, not on the order of
work.
"""

from typing import NamedTuple

import numpy as np

from gputree.arithmetic.bits import mix
from gputree.backends.binning import midpoint
from gputree.backends.cpu.monotonic import column_in, keeps_order, number_allowed
from gputree.base.dtypes import Bools, Int64s
from gputree.compilation import borrowing, kernel, pasted, pick
from gputree.criteria import add_row, begin, left_weight, move, score

# Hashed with the node's key and the column to a rank.
_TIES = np.uint64(0x7469657362796861)


@borrowing
def list_columns(columns, order):
    """List the columns that may split a node in the first places of `order`."""
    for i in range(number_allowed(columns, order.size)):
        order[i] = column_in(columns, i)


@borrowing
def draw_columns(key, columns, order, done, upto):
    """Draw places ``done .. upto`` of a permutation (Fisher-Yates), those before them known.

    It is of the `columns` that may split the node. A number is the high half of a hash times their
    count, by 2**32 (Lemire 2019). Only as many are drawn as the node searches.
    """
    half = np.uint64(32)
    d = number_allowed(columns, order.size)
    if done == 0:
        list_columns(columns, order)
    for i in range(done, min(upto, d)):
        bits = mix(np.uint64(key) + np.uint64(i)) >> half
        j = i + np.int64((bits * np.uint64(d - i)) >> half)
        order[i], order[j] = order[j], order[i]


class ColumnDraws(NamedTuple):
    """Columns in the order in which a node draws them, and those that may be cut below it.

    A column that is constant in a node is constant below it: the first of `columns` are those that
    were not seen to be constant. Their number belongs to a node; the others need not be read.
    """

    order: Int64s  # (d,)
    columns: Int64s  # (d,)
    place: Int64s  # (d,) place of each column in `columns`


def new_draws(d: int) -> ColumnDraws:
    """ColumnDraws of d columns, none of which was seen to be constant."""
    return ColumnDraws(np.arange(d), np.arange(d), np.arange(d))


@borrowing
def drop_column(draws, f, active):
    """Move a constant column f behind the active ones; returns how many remain."""
    columns, place = draws.columns, draws.place
    last, hole = columns[active - 1], place[f]
    columns[hole], columns[active - 1] = last, f
    place[last], place[f] = hole, active - 1
    return active - 1


@borrowing
def tie_rank(limits, key, f):
    """Rank of column f among cuts of equal score in the node of `key`: the lowest wins."""
    return mix((np.uint64(key) ^ _TIES) + np.uint64(f)) if limits.random_ties else np.uint64(f)


@kernel
def _draw(key, order):
    draw_columns(key, None, order, 0, order.size)


def drawn_columns(max_features: int, key: np.uint64, may_split: Bools) -> Int64s:
    """The columns in the order in which a node searches them; those that may not split it, last."""
    columns = np.flatnonzero(may_split)
    order = np.arange(columns.size)
    if max_features < columns.size:
        _draw(key, order)
    return np.concatenate([columns[order], np.flatnonzero(~may_split)])


@borrowing
def row_count(criterion, statistics, offset, channels, weighted):
    """Number of rows behind the statistics at ``statistics[offset]``."""
    if weighted:
        return np.int64(statistics[offset + channels - 1])
    return left_weight(criterion, statistics, offset)


@pasted
def count_row(criterion, rows, row, cells, offset, channels):
    """Add a row to the cell of `channels` statistics at ``cells[offset]``, as in histograms."""
    weight, square = pick(rows.weight, row, 1), pick(rows.square, row, 0)
    add_row(criterion, cells, offset, rows.target[row], weight, square)
    if rows.weight is not None:
        cells[np.uintp(offset) + np.uintp(channels - 1)] += 1


class Cut(NamedTuple):
    """A cut of a node, or a subset of a column's categories."""

    score: float
    column: int
    missing_left: bool
    place: int  # bin, place in a block or, of a subset, its place in the order
    at_end: bool  # of the bin
    threshold: float  # of a subset: its order
    rank: int  # of the column: its number, or drawn (see `gputree.backends.cpu.cut`)


@borrowing
def precedes(a, b):
    """Return True if cut `a` is chosen before cut `b`: the one tie rule.

    The higher score, as rounded to float64, comes first: cuts that are equal in exact arithmetic
    tie if their scores do, which are the same numbers on every path, made of the same integers by
    the same operations. Then the lower rank of the column; then missing values right before left;
    then the lower cut.
    """
    if a.score != b.score:
        return a.score > b.score
    if a.rank != b.rank:
        return a.rank < b.rank
    if a.missing_left != b.missing_left:
        return not a.missing_left
    if a.place != b.place:
        return a.place < b.place
    if a.at_end != b.at_end:
        return b.at_end
    return a.threshold < b.threshold


@borrowing
def new_cut(value, f, missing_left, place, at_end, threshold, rank):
    """A cut of column f of score `value`; the types are fixed, so kernels compile once."""
    return Cut(
        np.float64(value),
        np.int64(f),
        np.bool_(missing_left),
        np.int64(place),
        np.bool_(at_end),
        np.float64(threshold),
        np.uint64(rank),
    )


@borrowing
def no_cut():
    """The cut that every other precedes."""
    return new_cut(-np.inf, 0, False, 0, False, 0.0, 0)


@borrowing
def score_to_beat(cut, rank):
    """Highest score with which no cut of a column, found after `cut`, precedes it."""
    return cut.score if cut.rank <= rank else np.nextafter(cut.score, -np.inf)


@borrowing
def admits_rows(limits, n, whole):
    """Return True if both sides of a cut have enough rows: n of `whole` are on one side."""
    min_rows = max(limits.min_samples_leaf, 1)
    return n >= min_rows and whole - n >= min_rows


@borrowing
def admits(limits, n, whole, weight, all_weight):
    """Return True if both sides of a cut are as large as `limits` require: the one rule of sizes.

    n of `whole` rows are on one side, and `weight` of `all_weight`.
    """
    return admits_rows(limits, n, whole) and admits_weights(limits, weight, all_weight)


@borrowing
def admits_weights(limits, weight, all_weight):
    """Return what `admits` does if both sides have enough rows."""
    return weight >= limits.min_weight_leaf and all_weight - weight >= limits.min_weight_leaf


@borrowing
def scan_bin(node, rows, pairs, first, last, left):
    """Best cut between the sorted pairs ``first .. last``: (score, threshold).

    `left` holds the statistics before them; it is used up.
    """
    criterion, _, weighted, total, _ = node
    whole = row_count(criterion, total, 0, total.size, weighted)
    n = row_count(criterion, left, 0, total.size, weighted)
    return scan_pairs(node, rows, pairs, first, last, left, n, whole)


@borrowing
def scan_pairs(node, rows, pairs, first, last, left, n, whole):
    """Like `scan_bin`, in a node of `whole` rows; n rows are before the pairs."""
    criterion, limits, _, total, _ = node
    values, items = pairs
    all_weight = begin(criterion, total, total)[0]
    best = -np.inf
    threshold = 0.0
    state = begin(criterion, left, total)
    for i in range(first, last - 1):
        row = items[i]
        state = move(criterion, state, left, total, rows.target[row], pick(rows.weight, row, 1))
        n += 1
        if values[i] == values[i + 1]:
            continue
        if not admits(limits, n, whole, state[0], all_weight):
            continue
        if not keeps_order(limits.monotonic, criterion, state, left, total):
            continue
        value = score(criterion, state, left, total)
        if value > best:
            best = value
            threshold = midpoint(values[i], values[i + 1])
    return best, threshold


@borrowing
def narrow(interval, target, weight, rounded):
    """Intersect an interval (low, high) with the range of a row's true target, in units.

    `target` is the product with the weight; where it was rounded, so was the weight.
    """
    if not rounded:
        value = np.float64(target // weight)
        return max(interval[0], value), min(interval[1], value)
    value = np.float64(target) / np.float64(weight)
    error = 1.0 / np.float64(weight) + abs(value) * 2.0**-50
    return max(interval[0], value - error), min(interval[1], value + error)
