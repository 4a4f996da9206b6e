"""The sweep by quantiles: the losses of all cuts of a list in one pass, in integers.

Both sides are sets of ranks, as bits, with a pointer to the quantile of each, and sums of weights
and targets up to it. When a row moves from one side to the other, the pointers move by few ranks,
of rows without weights by one at most, and

    loss = up * (sum above - y_p * weight above) + down * (y_p * weight up to p - sum up to p).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.arithmetic.bits import highest_bit, lowest_bit
from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.jit import borrowing, inner, pasted, pick

ALL, ONE, TWO_UP = np.uint64(2**64 - 1), np.uint64(1), np.uint64(2**64 - 2)
WORD, IN_WORD = 6, 63
RANK = np.int32(2**30 - 1)  # of an element of a list

NO_LOSS = np.int64(2**62)


class Side(NamedTuple):
    """Weight and sum of the targets of a set of ranks, its quantile, and those up to it."""

    weight: int
    total: int
    quantile: int  # rank; -1 of no rows
    weight_to: int
    total_to: int


class RankedCut(NamedTuple):
    """A cut of a node after `place` known elements of a column's list."""

    loss: int  # of both sides
    evenness: int  # weight of the lighter side
    rank: int  # of the column: its number, or drawn
    column: int
    missing_left: bool
    place: int


@borrowing
def no_cut():
    """The cut that every other precedes."""
    return RankedCut(NO_LOSS, np.int64(0), np.uint64(0), np.int64(-1), False, np.int64(0))


@borrowing
def precedes(a, b):
    """Return True if cut `a` is chosen before cut `b`: the one tie rule of ranked lists.

    The lowest loss, then the most even one: where nothing is gained, or the same, a chain of cuts
    that split off single rows would be as deep as rows are many. Then as all cuts.
    """
    if a.loss != b.loss:
        return a.loss < b.loss
    if a.evenness != b.evenness:
        return a.evenness > b.evenness
    if a.rank != b.rank:
        return a.rank < b.rank
    if a.missing_left != b.missing_left:
        return not a.missing_left
    return a.place < b.place


@pasted
def next_rank(bits, rank):
    """The next rank of a set behind `rank`; there is one."""
    word = rank >> WORD
    rest = bits[word] & (TWO_UP << np.uint64(rank & IN_WORD))
    while rest == 0:
        word += 1
        rest = bits[word]
    return (word << WORD) + lowest_bit(rest)


@pasted
def last_rank(bits, rank):
    """The last rank of a set before `rank`; there is one."""
    word = rank >> WORD
    rest = bits[word] & ((ONE << np.uint64(rank & IN_WORD)) - ONE)
    while rest == 0:
        word -= 1
        rest = bits[word]
    return (word << WORD) + highest_bit(rest)


@pasted
def settle(criterion, side, bits, target, weight):
    """The side with its pointer at its quantile."""
    whole, total, p, weight_to, total_to = side
    parts, least = criterion.up + criterion.down, criterion.up * whole
    # `weight_to` and `total_to` are the sums of the ranks up to p, which is in the set
    while parts * weight_to < least:
        p = next_rank(bits, p)
        weight_to += pick(weight, p, 1)
        total_to += pick(weight, p, 1) * target[p]
    while parts * (weight_to - pick(weight, p, 1)) >= least:
        weight_to -= pick(weight, p, 1)
        total_to -= pick(weight, p, 1) * target[p]
        p = last_rank(bits, p)
    return Side(whole, total, p, weight_to, total_to)


@pasted
def added(criterion, side, bits, target, weight, rank):
    """The side with one row more."""
    bits[rank >> WORD] |= ONE << np.uint64(rank & IN_WORD)
    units = np.int64(pick(weight, rank, 1))
    sum_ = units * target[rank]
    if side.quantile < 0:
        return Side(units, sum_, np.int64(rank), units, sum_)
    is_below = rank <= side.quantile
    moved = Side(
        side.weight + units, side.total + sum_, side.quantile,
        side.weight_to + (units if is_below else 0), side.total_to + (sum_ if is_below else 0),
    )  # fmt: skip
    return settle(criterion, moved, bits, target, weight)


@pasted
def removed(criterion, side, bits, target, weight, rank):
    """The side without a row that it has, and that is not its last one."""
    bits[rank >> WORD] &= ~(ONE << np.uint64(rank & IN_WORD))
    units = np.int64(pick(weight, rank, 1))
    sum_ = units * target[rank]
    p, is_below = side.quantile, rank <= side.quantile
    weight_to = side.weight_to - (units if is_below else 0)
    total_to = side.total_to - (sum_ if is_below else 0)
    if rank == p and weight_to > 0:
        p = last_rank(bits, p)
    elif rank == p:
        p = next_rank(bits, p)
        weight_to = np.int64(pick(weight, p, 1))
        total_to = weight_to * target[p]
    moved = Side(side.weight - units, side.total - sum_, p, weight_to, total_to)
    return settle(criterion, moved, bits, target, weight)


@pasted
def loss_of(criterion, side, target):
    """Loss of a side at its quantile."""
    y = target[side.quantile]
    above = side.total - side.total_to - y * (side.weight - side.weight_to)
    return criterion.up * above + criterion.down * (y * side.weight_to - side.total_to)


@inner
def whole_side(criterion, target, weight):
    """Side of all rows of a node."""
    whole = total = np.int64(0)
    for rank in range(target.size):
        whole += pick(weight, rank, 1)
        total += pick(weight, rank, 1) * target[rank]
    weight_to = total_to = np.int64(0)
    p = np.int64(-1)
    # the sums are those of the ranks up to p
    while (criterion.up + criterion.down) * weight_to < criterion.up * whole:
        p += 1
        weight_to += pick(weight, p, 1)
        total_to += pick(weight, p, 1) * target[p]
    return Side(whole, total, p, weight_to, total_to)


@borrowing
def quantile_of(criterion, elements, target, weight):
    """Quantile and mean of the targets of some elements, which ascend."""
    whole = total = np.int64(0)
    for i in range(elements.size):
        rank = elements[i] & RANK
        whole += pick(weight, rank, 1)
        total += pick(weight, rank, 1) * target[rank]
    below, i = np.int64(0), -1
    while (criterion.up + criterion.down) * below < criterion.up * whole:
        i += 1
        below += pick(weight, elements[i] & RANK, 1)
    return np.float64(target[elements[i] & RANK]), np.float64(total) / np.float64(whole)


@inner
def sweep(
    criterion, limits, elements, known, missing_left, target, weight, node, left, right, cut,
    column, column_rank,
):  # fmt: skip
    """The better of `cut` and the best cut of a column's list.

    `known` elements have a value; the rows of the others are on the left from the beginning if
    `missing_left`. `node` has all rows; `left` and `right` are scratch, words of bits.
    """
    size = elements.size
    words = (size >> WORD) + 1
    for word in range(words):
        left[word] = 0
        right[word] = ALL
    right[words - 1] = (ONE << np.uint64(size & IN_WORD)) - ONE
    empty = np.int64(0)
    a, b = Side(empty, empty, np.int64(-1), empty, empty), node
    first = known - size if missing_left else 0
    # the sides are those of the rows before element i moved, missing ones as elements below 0
    for i in range(first, known):
        rank = np.int64(elements[i if i >= 0 else size + i] & RANK)
        moved = i - first + 1
        if moved == size:
            break
        a = added(criterion, a, left, target, weight, rank)
        b = removed(criterion, b, right, target, weight, rank)
        if i < 0 or (i + 1 < known and elements[i + 1] < 0):
            continue
        if not admits(limits, moved, size, a.weight, node.weight):
            continue
        loss = loss_of(criterion, a, target) + loss_of(criterion, b, target)
        if loss > cut.loss:
            continue
        evenness, place = min(a.weight, b.weight), np.int64(i + 1)
        found = RankedCut(loss, evenness, column_rank, column, missing_left, place)
        if precedes(found, cut):
            cut = found
    return cut
