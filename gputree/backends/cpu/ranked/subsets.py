"""Subsets of few categories by quantiles: the best of all, as a prefix of another order.

No order of categories has the best subset among its prefixes in every node. So each subset is
tried: one differs from the next in one category (a Gray code), whose rows move to the other side,
those of small categories more often than those of large ones.
"""

from __future__ import annotations

import numpy as np

from gputree.arithmetic.bits import lowest_bit
from gputree.backends.cpu.cut import admits
from gputree.backends.cpu.ranked import formulas
from gputree.backends.cpu.ranked.losses import (
    IN_WORD,
    NO_LOSS,
    ONE,
    WORD,
    Side,
    Targets,
    added,
    empty_left,
    loss_of,
    rank_by,
    removed,
    side_of,
    units_of,
)
from gputree.compilation import borrowing, overload
from gputree.criteria.dispatch import formula
from gputree.criteria.multi_output import OF_SUMS
from gputree.criteria.pinball import Pinball

EMPTY = Side(0, 0, 0)

# Numbers of categories of which every subset is tried. Of 3 the best is a prefix. Of 7 of one size
# the rows move 9 times, where the sweep along an order moves them once: 100,000 rows, depth 4, one
# of 10 columns of 7, 8 categories, or all of 6, 8: 1.15, 1.36, 2.4, 5 times the CPU time.
FEWEST, MOST = 4, 7


@formula(formulas.search_subsets, *OF_SUMS, how=overload)
def keep_order(
    criterion, limits, elements, begin, rows, s, totals, opened, sides, order
):  # fmt: skip
    """Keep the order: several targets have no sums of sides of which rows are taken again."""


@borrowing
def move(criterion, elements, first, last, sides, bits, of, rest):
    """Move the rows of elements ``first .. last`` to the first of two sides from the second one.

    That one has `rest` rows. Returns both sides, and the weight of the rows.
    """
    (to, off), (to_bits, off_bits), weight = sides, bits, np.int64(0)
    for i in range(first, last):
        rank = rank_by(of, elements[i])
        weight += units_of(of, rank)
        rest -= 1
        to = added(criterion, to, to_bits, of, rank)
        if rest > 0:
            off = removed(criterion, off, off_bits, of, rank)
        else:
            off_bits[rank >> WORD] &= ~(ONE << np.uint64(rank & IN_WORD))
            off = EMPTY
    return to, off, weight


@borrowing
def rows_of(begin, order, g):
    """Number of rows of group g in an order."""
    return begin[order[g] + 1] - begin[order[g]]


@borrowing
def is_prefix(mask):
    """Return True if the groups of a subset are the first ones."""
    return mask & (mask + 1) == 0


@borrowing
def is_before(mask, evenness, other, other_evenness):
    """Return True if a subset is taken, and not another of the same loss."""
    if evenness != other_evenness:
        return evenness > other_evenness
    if is_prefix(mask) != is_prefix(other):
        return is_prefix(mask)
    return mask < other


@formula(formulas.search_subsets, Pinball, how=overload)
def search_subsets(
    criterion, limits, elements, begin, rows, s, totals, opened, sides, order
):  # fmt: skip
    """Try all subsets of few groups; the first groups of `order` become the best one.

    The lowest loss, then the most even one, then a prefix of the given order, then the lowest mask.
    """
    k, size, known = order.size, elements.size, begin[begin.size - 1]
    if k < FEWEST or k > MOST:
        return
    left, right, whole = sides.left, sides.right, opened
    by_size = np.empty(k, np.int64)
    # the groups before g ascend: NumPy's sort would take seconds to compile
    for g in range(k):
        place = g
        while place > 0 and rows_of(begin, order, by_size[place - 1]) > rows_of(begin, order, g):
            by_size[place] = by_size[place - 1]
            place -= 1
        by_size[place] = g
    every, last_target = (1 << k) - 1, rows.target.shape[0] - 1
    best, best_loss, best_evenness = 0, NO_LOSS, np.int64(0)
    losses = np.zeros((2, 1 << (k - 1)), np.int64)
    # `losses` are those by the targets before j
    for j in range(last_target + 1):
        of = Targets(rows.target[j, s : s + size], rows.weight, totals.rank, j, s)
        for missing_left in range(1 + (known < size)):
            empty_left(sides, size)
            # on the left are the groups of `mask`, and the rows without a value if `missing_left`:
            # n rows of weight `moved`; the largest group, which goes first, stays there
            a, b, moved, n, mask = EMPTY, side_of(totals, j), np.int64(0), 0, 0
            for step in range(-1, 1 << (k - 1)):
                g, to_left = 0, True
                first, last = known, size if missing_left else known
                if step >= 0:
                    g = by_size[k - 1 if step == 0 else lowest_bit(np.uint64(step))]
                    first, last = begin[order[g]], begin[order[g] + 1]
                    to_left = mask >> g & 1 == 0
                    mask ^= 1 << g
                pair, bits, rest = ((a, b), (left, right), size - n)
                if not to_left:
                    pair, bits, rest = ((b, a), (right, left), n)
                to, off, weight = move(criterion, elements, first, last, pair, bits, of, rest)
                if to_left:
                    a, b, moved, n = to, off, moved + weight, n + last - first
                else:
                    a, b, moved, n = off, to, moved - weight, n - last + first
                if step < 0 or n == size:
                    continue
                losses[missing_left, step] += loss_of(a, of) + loss_of(b, of)
                loss, evenness = losses[missing_left, step], min(moved, whole - moved)
                if j < last_target or loss > best_loss:
                    continue
                if not admits(limits, n, size, moved, whole):
                    continue
                found = mask if mask & 1 else every ^ mask  # the first group is on the left
                if loss < best_loss or is_before(found, evenness, best, best_evenness):
                    best, best_loss, best_evenness = found, loss, evenness
    place = 0
    by_size[:] = order
    for side in range(2):
        for g in range(k):
            if best >> g & 1 != side:
                order[place] = by_size[g]
                place += 1
