"""Which categories go left: the best subset of those present in a node.

The rows of a category are a run (`gputree.backends.cpu.runs`). Searches go from subset to
subset by moving single runs, and name the one they find by a number, its *place*:

    ordered       heads of the runs by the share of a class        how many runs go left
                  (or mean target)
    exhaustive    all subsets without the last run (Gray code)     mask of the ordered runs
    moved         heads, one run moved to the other side           the head and the run
    one vs rest   single runs, of equal ones the first             the run; all runs past the last

Limits on the sides can keep the best head out; then, and only then, a second search looks
beside the heads: through all subsets of few runs, else through moves of one.

Missing values go right or left of every subset. Of equals, the one with missing values right
is chosen, then the first order, then the least place. The code of a category never counts but
between runs of the very same statistics: orders, masks and ties are those of statistics.
"""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.cut import admits, admits_rows
from gputree.backends.cpu.jit import lent
from gputree.backends.cpu.runs import (
    holds_cells,
    is_less,
    is_lower,
    list_different,
    move_run,
    sort_runs,
)
from gputree.backends.subsets import MOST_MOVED
from gputree.criteria import begin, score

ORDERED, EXHAUSTIVE, ONE_VS_REST, MOVED = 0, 1, 2, 3

# A place is a head and, above it, one more than the ordered run that is moved; or a mask, less
# this.
MOVED_BITS = 31
NO_MASK = 1 << 62


@lent
def choose_search(search, regression, channels, count, runs):
    """Which search the `count` runs that were found get."""
    rows = runs.begin[count] - runs.begin[0]
    if count > search.many_categories and rows < search.rows_per_category * count:
        return ONE_VS_REST
    if regression or channels <= 2:
        return ORDERED
    if count <= search.most_exhaustive:
        return EXHAUSTIVE
    return ORDERED if holds_cells(channels, count) else ONE_VS_REST


@lent
def lowest_bit(i):
    """Place of the lowest bit of i > 0 that is set."""
    r = 0
    while i >> r & 1 == 0:
        r += 1
    return r


@lent
def moved_heads(count):
    """At how many heads runs are moved, and how many runs one head has more than the other."""
    return (2, count) if count > MOST_MOVED else (count + 1, 1)


@lent
def count_steps(kind, count, different):
    """How many subsets a search goes through; runs that are `different` for one vs rest."""
    if kind == ONE_VS_REST:
        return different
    if kind == EXHAUSTIVE:
        return (1 << (count - 1)) - 1
    if kind == MOVED:
        return moved_heads(count)[0] * count
    return count - (kind == ORDERED)


@lent
def next_subset(listed, runs, held, kind, count, i, place, left):
    """Make the i-th subset (from 1) of the one before, `place`: its place, rows added left."""
    if kind == ORDERED:
        return np.int64(i), move_run(listed, runs, held, runs.order[i - 1], 1, left)
    if kind == EXHAUSTIVE:
        r = lowest_bit(i)
        place = (place if i > 1 else -NO_MASK) ^ (1 << r)
        sign = 1 if place >> r & 1 else -1
        return place, move_run(listed, runs, held, runs.order[r], sign, left)
    if kind == MOVED:
        return next_move(listed, runs, held, count, i - 1, left)
    r = np.int64(runs.order[i - 1])
    n = move_run(listed, runs, held, runs.order[i - 2], -1, left) if i > 1 else 0
    return r, n + move_run(listed, runs, held, r, 1, left)


@lent
def next_move(listed, runs, held, count, i, left):
    """Take the move before the i-th (from 0) back and make that: its place, rows added left."""
    stride = moved_heads(count)[1]
    head, moved = i // count * stride, i % count
    n = 0
    if i > 0:
        before, back = (i - 1) // count * stride, (i - 1) % count
        n += move_run(listed, runs, held, runs.order[back], 1 if back < before else -1, left)
        for r in range(before, head):
            n += move_run(listed, runs, held, runs.order[r], 1, left)
    n += move_run(listed, runs, held, runs.order[moved], -1 if moved < head else 1, left)
    return np.int64(head) | np.int64(moved + 1) << MOVED_BITS, n


@lent
def last_subset(kind, count, left, total, missing):
    """The known values against the missing ones, for searches that do not come to it."""
    for c in range(left.size):
        left[c] = total[c] - missing[c]
    return np.int64((1 << count) - 1 - NO_MASK if kind == EXHAUSTIVE else count)


@lent
def is_left_of(place, i):
    """Whether the i-th of the ordered runs goes left in the subset of that place."""
    if place < 0:
        return (place + NO_MASK) >> i & 1 == 1
    head, moved = place & ((1 << MOVED_BITS) - 1), place >> MOVED_BITS
    return (i < head) != (i + 1 == moved)


@lent
def precedes(value, missing_left, k, place, best):
    """Whether a subset is chosen before `best`, which is a tuple of the same."""
    if value != best[0]:
        return value > best[0]
    if missing_left != best[1]:
        return not missing_left
    return k < best[2] or (k == best[2] and place < best[3])


@lent
def single_precedes(listed, runs, held, count, channels, value, missing_left, r, best):
    """Whether one vs rest chooses run r before `best`: of equals, the lesser run."""
    if value != best[0] or missing_left != best[1] or r >= count:
        return precedes(value, missing_left, best[2], r, best)
    if held:
        return is_less(runs, channels, r, best[3])
    rows = runs.begin[r + 1] - runs.begin[r]
    best_rows = runs.begin[best[3] + 1] - runs.begin[best[3]]
    if rows != best_rows:
        return rows < best_rows
    for c in range(2 * channels):
        runs.cells[c] = 0
    move_run(listed, runs, held, r, 1, runs.cells[:channels])
    move_run(listed, runs, held, best[3], 1, runs.cells[channels : 2 * channels])
    return is_lower(runs.cells, channels, 0, channels)


@lent
def scan_subsets(
    criterion, limits, listed, runs, held, kind, count, steps, k, total, left, missing, best
):  # fmt: skip
    """The better of `best` and the best subset of one search of so many `steps`.

    The last of the five that describe a subset is the greatest score of heads kept out.
    """
    whole = begin(criterion, total, total)[0]
    first, known, last = runs.begin[0], runs.begin[count], runs.begin[count + 1]
    rows = last - first
    for side in range(1 + (known < last)):
        for c in range(left.size):
            left[c] = missing[c] if side == 1 else 0
        n = last - known if side == 1 else 0
        place = np.int64(0)
        for i in range(1, steps + 1 + (known < last and side == 0)):
            if i <= steps or kind == ORDERED:
                place, added = next_subset(listed, runs, held, kind, count, i, place, left)
                n += added
            else:
                place = last_subset(kind, count, left, total, missing)
                n = known - first
            if not (0 < n < rows and (kind == ORDERED or admits_rows(limits, n, rows))):
                continue
            state = begin(criterion, left, total)
            admitted = admits(limits, n, rows, state[0], whole)
            if not admitted and kind != ORDERED:
                continue
            value = score(criterion, state, left, total)
            if not admitted:
                best = (best[0], best[1], best[2], best[3], max(best[4], value))
            elif kind == ONE_VS_REST:
                if single_precedes(
                    listed, runs, held, count, left.size, value, side == 1, place, best
                ):
                    best = (value, side == 1, k, place, best[4])
            elif precedes(value, side == 1, k, place, best):
                best = (value, side == 1, k, place, best[4])
    return best


@lent
def search_beside(search, kind, count, best):
    """The second search, where limits keep a better head out than the best admitted; else -1."""
    if kind != ORDERED or not best[4] > best[0]:
        return -1
    return EXHAUSTIVE if count <= search.most_limited else MOVED


@lent
def best_subset(
    criterion, limits, search, regression, listed, runs, held, count, total, left, missing
):
    """The best subset of `count` runs that were found: (score, missing left, order, place).

    Their statistics are `held`, or moved row by row of `listed`; it may be None else.
    """
    channels = total.size
    kind = choose_search(search, regression, channels, count, runs)
    for c in range(channels):
        missing[c] = 0
    move_run(listed, runs, held, count, 1, missing)
    best = (-np.inf, False, np.int64(0), np.int64(0), -np.inf)
    first = 1 if regression or channels == 2 else 0
    last = channels if not regression else first + 1
    k = first
    while kind >= 0:
        different = 0
        if kind == ONE_VS_REST:
            different = list_different(runs, held, count, channels)
        else:
            sort_runs(criterion, runs, count, channels, k)
        best = scan_subsets(
            criterion, limits, listed, runs, held, kind, count,
            count_steps(kind, count, different), np.int64(k), total, left, missing, best,
        )  # fmt: skip
        k += 1
        if k == last or kind in (EXHAUSTIVE, ONE_VS_REST):
            kind = search_beside(search, kind, count, best)
            k = first
    return best[:4]


@lent
def needs_order(search, regression, runs, count, channels):
    """Whether `mark_subset` needs the statistics of the runs, as it puts them in order."""
    return choose_search(search, regression, channels, count, runs) != ONE_VS_REST


@lent
def mark_subset(criterion, search, regression, runs, count, channels, k, place):
    """Mark the runs that go left: the subset that `best_subset` named `place`, and order k."""
    kind = choose_search(search, regression, channels, count, runs)
    if kind == ONE_VS_REST:
        for r in range(count):
            runs.is_left[r] = place in (r, count)
        return
    sort_runs(criterion, runs, count, channels, k)
    for i in range(count):
        runs.is_left[runs.order[i]] = is_left_of(place, i)
