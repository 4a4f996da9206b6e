"""The sweep by quantiles: the losses of all cuts of a list in one pass, in integers.

Either side is a set of ranks, as bits, with a pointer p to its quantile, and two sums,

    balance = down * (weight up to p) - up * (weight above p)
    lead    = up * (sum of targets above p) - down * (sum of targets up to p)

so that the loss is ``lead + balance * y_p``, and p is the quantile where the balance is not
negative, but would be without p. When a row moves from one side to the other, the pointers move by
few ranks; of rows without weights by one at most.

Several targets are swept one after the other, each in its own ranks, and their losses are added up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import highest_bit, lowest_bit
from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.class_sums import project
from gputree.backends.cpu.ranked.lists import RANK, partition_list, partition_values
from gputree.base.dtypes import Int64s
from gputree.compilation import borrowing, overload, pasted, pick, where_given
from gputree.criteria.dispatch import formula
from gputree.criteria.pinball import Pinball

ALL, ONE, TWO_UP = np.uint64(2**64 - 1), np.uint64(1), np.uint64(2**64 - 2)
WORD, IN_WORD = 6, 63

NO_LOSS = np.int64(2**62)


class Targets(NamedTuple):
    """Target j of a node's ranks by it, and weights of all places: the node's from `first` on.

    `rank` are the ranks by each target of those in lists; None where they are the same.
    """

    target: Int64s
    weight: Int64s | None  # (k, n)
    rank: NDArray[np.int32] | None  # (k, rows)
    j: int
    first: int


class Side(NamedTuple):
    """Quantile of a set of ranks, and its two sums: see the module."""

    quantile: int  # rank
    balance: int
    lead: int


class RankedCut(NamedTuple):
    """A cut of a node after `place` known elements of a column's list."""

    loss: int  # of both sides
    evenness: int  # weight of the lighter side
    rank: int  # of the column: its number, or drawn
    column: int
    missing_left: bool
    place: int


@formula(formulas.no_cut, Pinball)
def no_cut(criterion):
    return RankedCut(NO_LOSS, np.int64(0), np.uint64(0), np.int64(-1), False, np.int64(0))


@borrowing
def precedes(a, b):
    """Return True if cut `a` is chosen before cut `b`: the one tie rule of losses.

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
def rank_by(of, element):
    """Rank of an element's row by a target."""
    rank = element & RANK
    return np.int64(pick(of.rank, (of.j, rank), rank))


@pasted
def units_of(of, rank):
    """Weight of a rank in units."""
    return pick(of.weight, (of.j, of.first + rank), 1)


@pasted
def settle(criterion, p, balance, lead, is_in, bits, of):
    """The side with its pointer at its quantile; rank p may have left it, unless `is_in`."""
    parts = criterion.up + criterion.down
    # the sums are those of pointer p
    if balance < 0:
        while balance < 0:
            p = next_rank(bits, p)
            units = parts * units_of(of, p)
            balance += units
            lead -= units * of.target[p]
        return Side(p, balance, lead)
    if not is_in:
        p = last_rank(bits, p)
    units = parts * units_of(of, p)
    while balance >= units:
        balance -= units
        lead += units * of.target[p]
        p = last_rank(bits, p)
        units = parts * units_of(of, p)
    return Side(p, balance, lead)


@pasted
def added(criterion, side, bits, of, rank):
    """The side with one row more; the pointer of an empty one is at rank 0."""
    bits[rank >> WORD] |= ONE << np.uint64(rank & IN_WORD)
    p, balance, lead = side
    units = criterion.down if rank <= p else -criterion.up
    units *= units_of(of, rank)
    return settle(criterion, p, balance + units, lead - units * of.target[rank], True, bits, of)


@pasted
def removed(criterion, side, bits, of, rank):
    """The side without a row that it has, and that is not its last one."""
    bits[rank >> WORD] &= ~(ONE << np.uint64(rank & IN_WORD))
    p, balance, lead = side
    units = criterion.down if rank <= p else -criterion.up
    units *= units_of(of, rank)
    return settle(
        criterion, p, balance - units, lead + units * of.target[rank], rank != p, bits, of
    )


@pasted
def loss_of(side, of):
    """Loss of a side at its quantile."""
    return side.lead + side.balance * of.target[side.quantile]


@borrowing
def whole_side(criterion, of):
    """Side of all rows of a node, and their weight."""
    whole = lead = np.int64(0)
    for rank in range(of.target.size):
        whole += units_of(of, rank)
        lead += units_of(of, rank) * of.target[rank]
    balance, lead, p = -criterion.up * whole, criterion.up * lead, np.int64(-1)
    # the sums are those of pointer p
    while balance < 0:
        p += 1
        units = (criterion.up + criterion.down) * units_of(of, p)
        balance += units
        lead -= units * of.target[p]
    return Side(p, balance, lead), whole


class NodeSides(NamedTuple):
    """Sides of all rows of a node by each of k targets, and ranks by these of those in lists."""

    side: Int64s  # (k, 3)
    rank: NDArray[np.int32] | None  # (k, rows), None of one target


def _no_ranks(order, k, size):
    return None


@where_given(_no_ranks)
def new_ranks(order, k, size):
    """Memory for ranks by k targets, which is None where no rows are ordered again."""
    return np.empty((k, size), np.int32)


@formula(formulas.new_totals, Pinball, how=overload)
def new_totals(criterion, rows, size):
    k = rows.target.shape[0]
    return NodeSides(np.empty((k, 3), np.int64), new_ranks(rows.order, k, size))


def _no_losses(order, size):
    return None


@where_given(_no_losses)
def new_losses(order, size):
    """Memory for losses of cuts by some of the targets."""
    return np.empty(size, np.int64)


class Sides(NamedTuple):
    """Ranks of both sides of a cut, as bits; scratch for values in another order."""

    left: NDArray[np.uint64]
    right: NDArray[np.uint64]
    values: Int64s
    loss: Int64s | None  # of cuts, by the targets before


@formula(formulas.new_sides, Pinball, how=overload)
def new_sides(criterion, rows, size):
    words = (size >> WORD) + 1
    return Sides(
        np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(size, np.int64),
        new_losses(rows.order, size),
    )  # fmt: skip


@borrowing
def empty_left(sides, size):
    """Put all ranks of a node on the right."""
    words = (size >> WORD) + 1
    for word in range(words):
        sides.left[word] = 0
        sides.right[word] = ALL
    sides.right[words - 1] = (ONE << np.uint64(size & IN_WORD)) - ONE


@formula(formulas.new_counts, Pinball)
def no_counts(criterion, codes, slots):
    return np.int64(0)


@formula(formulas.count_rows, Pinball)
def no_count(criterion, codes, columns, counts, slot, rows, s, t):
    """Count nothing: all columns have lists."""


@formula(formulas.slot_of, Pinball)
def no_slot(criterion, ranked, counts, n, source):
    return np.int64(0)


@formula(formulas.slot_below, Pinball)
def no_slot_below(criterion, ranked, counts, slot, source, n, both):
    return np.int64(0)


@formula(formulas.count_cuts, Pinball)
def no_codes(criterion, ranked, size, totals, opened, counts, slot, cut, column, rank):
    return cut


@formula(formulas.measure_targets, Pinball)
def measure_targets(criterion, rows, s, t, out, node):
    out.loss[node] = 0
    for j in range(rows.target.shape[0]):
        of = Targets(rows.target[j, s:t], rows.weight, None, j, s)
        side, whole = whole_side(criterion, of)
        p = q = side.quantile
        if criterion.up == criterion.down and side.balance == 0:
            q += 1  # the median is the mean of the two in the middle
        out.loss[node] += loss_of(side, of)
        out.weight[node] = whole
        out.quantile[node, j, 0] = rows.row[s + pick(rows.order, (j, s + p), p)]
        out.quantile[node, j, 1] = rows.row[s + pick(rows.order, (j, s + q), q)]


@formula(formulas.open_node, Pinball)
def open_node(criterion, rows, s, t, totals):
    """Weight of all rows; their sides by each target, and ranks."""
    whole = np.int64(0)
    for j in range(rows.target.shape[0]):
        of = Targets(rows.target[j, s:t], rows.weight, None, j, s)
        side, whole = whole_side(criterion, of)
        totals.side[j, 0], totals.side[j, 1], totals.side[j, 2] = side
        invert(rows.order, j, s, t, totals.rank)
    return whole


@borrowing
def invert(order, j, s, t, ranks):
    """Write the ranks by target j of those in lists, where they differ."""
    if order is None:
        return
    for p in range(t - s if ranks.shape[1] > 0 else 0):  # nothing is ranked where cuts are drawn
        ranks[j, order[j, s + p]] = p


@formula(formulas.precedes, Pinball)
def loss_precedes(criterion, a, b):
    return precedes(a, b)


@formula(formulas.is_best, Pinball)
def is_best(criterion, cut, rows, size, opened):
    return cut.loss == 0 and 2 * cut.evenness == opened


@formula(formulas.gain_of, Pinball)
def gain_of(criterion, cut, out, node, totals, opened):
    decrease = np.float64(out.loss[node] - cut.loss) * criterion.unit
    return decrease, decrease / np.float64(out.weight[node])


@formula(formulas.partition_targets, Pinball)
def partition_targets(criterion, rows, s, ranks, sides):
    for j in range(rows.target.shape[0]):
        partition_values(rows.target[j], s, ranks, rows.order, j, sides.values)
        partition_weights(rows.weight, s, ranks, rows.order, j, sides.values)
        partition_order(rows.order, j, s, ranks, sides.values)


@borrowing
def partition_weights(weight, s, ranks, order, j, spare):
    """Partition the weights in the order of target j, where rows have some."""
    if weight is not None:
        partition_values(weight[j], s, ranks, order, j, spare)


@borrowing
def partition_order(order, j, s, ranks, spare):
    """Partition the places in the order of target j, where they are given."""
    if order is not None:
        partition_list(order[j, s : s + ranks.size], ranks, spare)


@formula(formulas.group_keys, Pinball, how=overload)
def quantiles_and_means(criterion, elements, begin, rows, s):
    """Quantiles of groups, of several targets along their principal direction; and first means."""
    m, k, size = begin.size - 1, rows.target.shape[0], elements.size
    group = np.full(size, -1)  # of missing values
    for g in range(m):
        for i in range(begin[g], begin[g + 1]):
            group[elements[i] & RANK] = g
    quantile, mean, weight = np.empty((m, k)), np.empty(m), np.empty(m)
    for j in range(k):
        of = Targets(rows.target[j, s : s + size], rows.weight, None, j, s)
        whole, total, below = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64)
        for p in range(size):
            g = group[pick(rows.order, (j, s + p), p)]
            if g >= 0:
                whole[g] += units_of(of, p)
                total[g] += units_of(of, p) * of.target[p]
        # `below` is the weight of each group before rank p
        for p in range(size):
            g = group[pick(rows.order, (j, s + p), p)]
            if g < 0:
                continue
            goal = criterion.up * whole[g]
            if (criterion.up + criterion.down) * below[g] < goal:
                below[g] += units_of(of, p)
                quantile[g, j] = np.float64(of.target[p])
        if j == 0:
            for g in range(m):
                weight[g] = np.float64(whole[g])
                mean[g] = np.float64(total[g]) / weight[g]
    if k == 1:
        return quantile[:, 0].copy(), mean
    return project(quantile, weight), mean


@formula(formulas.sweep, Pinball)
def sweep(
    criterion, limits, elements, known, missing_left, rows, s, totals, opened, sides, cut,
    column, column_rank,
):  # fmt: skip
    """Move row after row to the left, with the sums and the quantile of each side."""
    size, k, whole = elements.size, rows.target.shape[0], opened
    left, right = sides.left, sides.right
    first = known - size if missing_left else 0
    # `sides.loss` are the losses of cuts by the targets before j
    for j in range(k):
        of = Targets(rows.target[j, s : s + size], rows.weight, totals.rank, j, s)
        empty_left(sides, size)
        a, b, moved = Side(np.int64(0), np.int64(0), np.int64(0)), side_of(totals, j), np.int64(0)
        # the sides are those of the rows before element i, of weight `moved` on the left; missing
        # ones move first, as elements below 0
        for i in range(first, known):
            rank = rank_by(of, elements[i if i >= 0 else size + i])
            n = i - first + 1
            if n == size:
                break
            a = added(criterion, a, left, of, rank)
            b = removed(criterion, b, right, of, rank)
            moved += units_of(of, rank)
            if i < 0 or (i + 1 < known and elements[i + 1] < 0):
                continue
            loss = loss_of(a, of) + loss_of(b, of)
            if j > 0:
                loss += pick(sides.loss, n, 0)
            if j + 1 < k:
                keep_loss(sides.loss, n, loss)
                continue
            if loss > cut.loss or not admits(limits, n, size, moved, whole):
                continue
            evenness, place = min(moved, whole - moved), np.int64(i + 1)
            found = RankedCut(loss, evenness, column_rank, column, missing_left, place)
            if precedes(found, cut):
                cut = found
    return cut


@pasted
def side_of(totals, j):
    """Side of all rows of a node by target j."""
    return Side(totals.side[j, 0], totals.side[j, 1], totals.side[j, 2])


@borrowing
def keep_loss(losses, n, loss):
    """Keep the loss of a cut after n rows for the next target."""
    if losses is not None:
        losses[n] = loss
