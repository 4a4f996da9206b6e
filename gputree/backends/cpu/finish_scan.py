"""The best cut of a sorted column of a block; see `gputree.backends.cpu.finish`."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.block import missing_rank
from gputree.backends.cpu.cut import admits, new_cut, no_cut, precedes, score_to_beat
from gputree.backends.cpu.jit import lent, pasted
from gputree.backends.cpu.monotonic import at_column, keeps_order
from gputree.criteria import add_row, begin, may_exceed, move, score

# In nodes of up to so many rows a cut is scored whether it can win or not: to guess that, and
# be wrong a few times, takes longer.
FEW_ROWS = 12


@pasted
def scan_side(
    criterion, order, f, bits, target, weight, weighted, s, known, t, missing_left, limits, total,
    left, whole, start, best,
):  # fmt: skip
    """Best cut of column f in places ``s .. t``, missing values (``known .. t``) on one side.

    `start` is the criterion's state with no row on the left; only scores above `best` count.
    Returns (score, place of the last known entry on the left), place -1 where there is none.
    """
    shift = np.uintp(bits)
    mask = (np.uintp(1) << shift) - np.uintp(1)
    place = np.int64(-1)
    for k in range(left.size):
        left[k] = 0
    state = start
    if missing_left:
        for i in range(known, t):
            x = np.uintp(order[f, i]) & mask
            state = move(criterion, state, left, total, target[x], weight[x] if weighted else 1)
    moved = t - known if missing_left else 0
    last = known if (known < t and not missing_left) else known - 1
    rows = t - s
    keys = order[f]
    following = np.uintp(keys[np.uintp(s)])
    for i in range(np.uintp(s), np.uintp(max(last, s))):
        key = following
        following = np.uintp(keys[i + np.uintp(1)])
        x = key & mask
        state = move(criterion, state, left, total, target[x], weight[x] if weighted else 1)
        between = key >> shift != following >> shift
        n = np.int64(i) + 1 - s + moved
        if rows > FEW_ROWS and not (
            between
            and admits(limits, n, rows, state[0], whole)
            and may_exceed(criterion, state, left, total, best)
        ):
            continue
        value = score(criterion, state, left, total)
        better = (value > best) & between & admits(limits, n, rows, state[0], whole)
        better &= keeps_order(limits.monotonic, criterion, state, left, total)
        best = value if better else best
        place = np.int64(i) if better else place
    return best, place


@lent
def known_end(order, f, bits, s, t):
    """End of the known values among the sorted keys ``s .. t`` of column f."""
    absent = missing_rank(bits)
    while t > s and np.int64(order[f, t - 1]) >> bits == absent:
        t -= 1
    return t


@lent
def scan_two_values(
    criterion, order, f, bits, target, weight, weighted, s, t, limits, total, left, whole
):
    """As `scan_side`, where places ``s .. t`` of column f hold two distinct values, none missing.

    Only the side with fewer rows is summed up; the other is the rest of the node.
    """
    first = np.int64(order[f, s]) >> bits
    low = s
    high = t - 1  # order[low] has the first value, order[high] the second
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(order[f, middle]) >> bits == first:
            low = middle
        else:
            high = middle
    n = high - s
    begin_sum, end_sum = (s, high) if n <= t - high else (high, t)
    mask = (1 << bits) - 1
    for k in range(left.size):
        left[k] = 0
    for i in range(begin_sum, end_sum):
        x = np.int64(order[f, i]) & mask
        add_row(criterion, left, 0, target[x], weight[x] if weighted else 1, 0)
    if begin_sum != s:
        for k in range(left.size):
            left[k] = total[k] - left[k]
    state = begin(criterion, left, total)
    if not admits(limits, n, t - s, state[0], whole):
        return -np.inf, np.int64(-1)
    if not keeps_order(limits.monotonic, criterion, state, left, total):
        return -np.inf, np.int64(-1)
    return score(criterion, state, left, total), high - 1


@pasted
def scan_column(
    criterion, order, f, bits, two_valued, target, weight, weighted, s, t, limits, total, left,
    whole, start, cut,
):  # fmt: skip
    """The better of `cut` and the best cut of column f; a cut is as in `precedes`."""
    own = at_column(limits.monotonic, limits, f)
    known = known_end(order, f, bits, s, t)
    if two_valued and known == t:
        value, place = scan_two_values(
            criterion, order, f, bits, target, weight, weighted, s, t, own, total, left, whole
        )
        if place >= 0:
            found = new_cut(value, f, False, place, True, 0.0)
            if precedes(found, cut):
                return found
        return cut
    for side in range(2 if known < t else 1):
        value, place = scan_side(
            criterion, order, f, bits, target, weight, weighted, s, known, t, side == 1, own,
            total, left, whole, start, score_to_beat(cut, f),
        )  # fmt: skip
        if place >= 0:
            cut = new_cut(value, f, side == 1, place, True, 0.0)
    return cut


@lent
def cut_pair(
    criterion, order, bits, target, weight, weighted, s, limits, total, left, whole, start
):
    """Whether two rows at places s and s + 1 have no value missing; then their best cut.

    Columns that put the same row first score alike: two of them are scored at most.
    """
    one = np.uintp(1)
    mask = (one << np.uintp(bits)) - one
    absent = missing_rank(bits)
    first = np.int64(-1)
    cut = no_cut()
    for f in range(order.shape[0]):
        key = np.uintp(order[f, s])
        high = np.int64(order[f, s + 1]) >> bits
        x = np.int64(key & mask)
        if np.int64(key) >> bits == high or x == first:
            continue
        if high == absent:
            return False, cut
        for k in range(left.size):
            left[k] = 0
        state = move(criterion, start, left, total, target[x], weight[x] if weighted else 1)
        if admits(limits, 1, 2, state[0], whole):
            value = score(criterion, state, left, total)
            if value > cut[0]:
                cut = new_cut(value, f, False, s, True, 0.0)
        if first >= 0:
            break
        first = x
    return True, cut
