"""The sweep by quantiles: the losses of all cuts of a list in one pass, in integers.

Either side is a set of ranks, as bits, with a pointer p to its quantile, and two sums,

    balance = down * (weight up to p) - up * (weight above p)
    lead    = up * (sum of targets above p) - down * (sum of targets up to p)

so that the loss is ``lead + balance * y_p``, and p is the quantile where the balance is not
negative, but would be without p. When a row moves from one side to the other, the pointers move by
few ranks; of rows without weights by one at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import highest_bit, lowest_bit
from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.jit import borrowing, pasted, pick
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.lists import RANK, partition_values
from gputree.base.dtypes import Int64s
from gputree.compilation import overload
from gputree.criteria.dispatch import formula
from gputree.criteria.pinball import Pinball

ALL, ONE, TWO_UP = np.uint64(2**64 - 1), np.uint64(1), np.uint64(2**64 - 2)
WORD, IN_WORD = 6, 63

NO_LOSS = np.int64(2**62)


class Targets(NamedTuple):
    """Targets of a node's ranks, and weights of all places, of which it has those from `first`."""

    target: Int64s
    weight: Int64s | None
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
def units_of(of, rank):
    """Weight of a rank in units."""
    return pick(of.weight, of.first + rank, 1)


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


@borrowing
def quantile_of(criterion, elements, of):
    """Quantile and mean of the targets of some elements, which ascend."""
    whole = total = np.int64(0)
    for i in range(elements.size):
        rank = elements[i] & RANK
        whole += units_of(of, rank)
        total += units_of(of, rank) * of.target[rank]
    below, i = np.int64(0), -1
    while (criterion.up + criterion.down) * below < criterion.up * whole:
        i += 1
        below += units_of(of, elements[i] & RANK)
    return np.float64(of.target[elements[i] & RANK]), np.float64(total) / np.float64(whole)


@formula(formulas.new_totals, Pinball, how=overload)
def new_totals(criterion, rows, size):
    return np.int64(0)  # all are scalars


class Sides(NamedTuple):
    """Ranks of both sides of a cut, as bits; scratch for values in another order."""

    left: NDArray[np.uint64]
    right: NDArray[np.uint64]
    values: Int64s


@formula(formulas.new_sides, Pinball, how=overload)
def new_sides(criterion, rows, size):
    words = (size >> 6) + 1
    return Sides(np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(size, np.int64))


@formula(formulas.new_counts, Pinball)
def no_counts(criterion, codes):
    return np.int64(0)


@formula(formulas.count_cuts, Pinball)
def no_codes(criterion, ranked, s, t, totals, opened, counts, cut, column, rank):
    return cut


@formula(formulas.measure_targets, Pinball)
def measure_targets(criterion, rows, s, t, out, node):
    side, whole = whole_side(criterion, Targets(rows.target[s:t], rows.weight, s))
    p = q = side.quantile
    if criterion.up == criterion.down and side.balance == 0:
        q += 1  # the median is the mean of the two in the middle
    of = Targets(rows.target[s:t], rows.weight, s)
    out.loss[node], out.weight[node] = loss_of(side, of), whole
    out.quantile[node, 0], out.quantile[node, 1] = rows.row[s + p], rows.row[s + q]


@formula(formulas.open_node, Pinball)
def open_node(criterion, rows, s, t, totals):
    """Side of all rows, and their weight."""
    return whole_side(criterion, Targets(rows.target[s:t], rows.weight, s))


@formula(formulas.precedes, Pinball)
def loss_precedes(criterion, a, b):
    return precedes(a, b)


@formula(formulas.is_best, Pinball)
def is_best(criterion, cut, rows, size, opened):
    return cut.loss == 0 and 2 * cut.evenness == opened[1]


@formula(formulas.gain_of, Pinball)
def gain_of(criterion, cut, out, node, totals, opened):
    decrease = np.float64(out.loss[node] - cut.loss) * criterion.unit
    return decrease, decrease / np.float64(out.weight[node])


@formula(formulas.partition_targets, Pinball)
def partition_targets(criterion, rows, s, ranks, left, sides):
    partition_values(rows.target, s, ranks, left, sides.values)
    partition_values(rows.weight, s, ranks, left, sides.values)


@formula(formulas.group_keys, Pinball, how=overload)
def quantiles_and_means(criterion, elements, begin, rows, s):
    """Quantiles and means of groups, whose elements ascend: presorted lists are stable."""
    of = Targets(rows.target[s : s + elements.size], rows.weight, s)
    quantile, mean = np.empty(begin.size - 1), np.empty(begin.size - 1)
    for g in range(begin.size - 1):
        quantile[g], mean[g] = quantile_of(criterion, elements[begin[g] : begin[g + 1]], of)
    return quantile, mean


@formula(formulas.sweep, Pinball)
def sweep(
    criterion, limits, elements, known, missing_left, rows, s, totals, opened, sides, cut,
    column, column_rank,
):  # fmt: skip
    """Move row after row to the left, with the sums and the quantile of each side."""
    size = elements.size
    of = Targets(rows.target[s : s + size], rows.weight, s)
    left, right = sides.left, sides.right
    node, whole = opened
    words = (size >> WORD) + 1
    for word in range(words):
        left[word] = 0
        right[word] = ALL
    right[words - 1] = (ONE << np.uint64(size & IN_WORD)) - ONE
    a, b, moved = Side(np.int64(0), np.int64(0), np.int64(0)), node, np.int64(0)
    first = known - size if missing_left else 0
    # the sides are those of the rows before element i, of weight `moved` on the left; missing ones
    # move first, as elements below 0
    for i in range(first, known):
        rank = np.int64(elements[i if i >= 0 else size + i] & RANK)
        n = i - first + 1
        if n == size:
            break
        a = added(criterion, a, left, of, rank)
        b = removed(criterion, b, right, of, rank)
        moved += units_of(of, rank)
        if i < 0 or (i + 1 < known and elements[i + 1] < 0):
            continue
        loss = loss_of(a, of) + loss_of(b, of)
        if loss > cut.loss or not admits(limits, n, size, moved, whole):
            continue
        evenness, place = min(moved, whole - moved), np.int64(i + 1)
        found = RankedCut(loss, evenness, column_rank, column, missing_left, place)
        if precedes(found, cut):
            cut = found
    return cut
