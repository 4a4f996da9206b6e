"""Which categories go left: the best subset of those present in a node.

The rows of a category are a run in the sorted list of its column. Searches go from subset to
subset by moving single runs, and name the one they find by a number, its *place*:

    ordered       heads of the runs by the share of a class        how many runs go left
                  (or mean target)
    exhaustive    all subsets without the last run (Gray code)     mask of the ordered runs
    moved         heads, one run moved to the other side           the head and the run
    one vs rest   single runs                                      the run; all runs past the last

Limits on the sides can keep the best head out; then, and only then, a second search looks
beside the heads: through all subsets of few runs, else through moves of one.

Missing values go right or left of every subset. Of equals, the one with missing values right
is chosen, then the first order, then the least place. The code of a category never counts but
between runs of the very same statistics: orders, masks and ties are those of statistics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import inner, once, pick
from gputree.criteria import add_row, begin, left_weight, score

ORDERED, EXHAUSTIVE, ONE_VS_REST, MOVED = 0, 1, 2, 3

# A place is a head and, above it, one more than the ordered run that is moved; or a mask, less
# this.
MOVED_BITS = 31
NO_MASK = 1 << 62

# Runs up to which every one is moved at every head; beyond, at no and at all runs: the moves
# are as many as the square. Of 256, they take 2 ms on one core.
MOST_MOVED = 256

# Statistics of all categories of a node, at most, that are held at once (128 MB). Beyond,
# with more than two classes, single categories are tried, counted row by row.
MOST_CELLS = 1 << 24


class Runs(NamedTuple):
    """Room for the runs of a node; the one after the known ones holds the missing values."""

    begin: NDArray[np.int64]  # (room + 1,) first place of each run
    cells: NDArray[np.int64]  # (room x channels,) statistics of each run
    share: NDArray[np.float64]  # (room,)
    order: NDArray[np.int64]  # (room,) runs in order of their shares
    spare: NDArray[np.int64]  # (room,) scratch of sorting
    is_left: NDArray[np.bool_]  # (room,)


class Listed(NamedTuple):
    """The list of one column, and the statistics of its entries."""

    item: NDArray[np.int32]
    code: NDArray[np.uint32]
    target: NDArray[np.integer]
    weight: NDArray[np.int64] | None
    class_of: NDArray[np.int32] | None  # number of a class among those present


@inner
def new_runs(room, cells):
    """Room for so many runs, one of missing values included, and for their statistics."""
    return Runs(
        np.empty(room + 1, np.int64),
        np.empty(cells, np.int64),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.bool_),
    )


@inner
def count_runs(code, first, last):
    """Number of distinct codes in the sorted places ``first .. last``."""
    count = 0
    for i in range(first, last):
        count += i == first or code[i] != code[i - 1]
    return count


@inner
def find_runs(code, first, known, last, runs):
    """Set the beginnings of the runs; the one of missing values follows, then the end."""
    count = 0
    for i in range(first, known):
        if i == first or code[i] != code[i - 1]:
            runs.begin[count] = i
            count += 1
    runs.begin[count] = known
    runs.begin[count + 1] = last


@inner
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


@inner
def holds_cells(channels, count):
    """Whether the statistics of all runs are held; they are by far the most memory."""
    return channels <= 3 or count * channels <= MOST_CELLS


@inner
def room_for(runs, channels, count):
    """`runs`, or a larger one where `count` runs and their statistics do not fit."""
    cells = (count + 1) * channels if holds_cells(channels, count) else 2 * channels
    if count + 1 <= runs.share.size and cells <= runs.cells.size:
        return runs
    return new_runs(max(2 * count + 2, runs.share.size), max(2 * cells, runs.cells.size))


@inner
def sum_runs(criterion, listed, runs, count, channels):
    """Sum up `count` runs and the missing values behind them."""
    for c in range((count + 1) * channels):
        runs.cells[c] = 0
    for r in range(count + 1):
        for i in range(runs.begin[r], runs.begin[r + 1]):
            e = listed.item[i]
            t = listed.target[e]
            add_row(
                criterion, runs.cells, r * channels, np.int64(pick(listed.class_of, t, t)),
                np.int64(pick(listed.weight, e, 1)), 0,
            )  # fmt: skip


@inner
def sort_runs(criterion, runs, count, channels, k):
    """Order the runs by their share of statistic k: a merge sort; see `is_before`."""
    for r in range(count):
        weight = left_weight(criterion, runs.cells, r * channels)
        runs.share[r] = np.float64(runs.cells[r * channels + k]) / np.float64(weight)
        runs.order[r] = r
    width = 1
    while width < count:
        for begin_ in range(0, count, 2 * width):
            merge_runs(
                runs, channels, begin_, min(begin_ + width, count), min(begin_ + 2 * width, count)
            )
        runs.order[:count] = runs.spare[:count]
        width *= 2


@inner
def is_less(runs, channels, a, b):
    """Whether run a has fewer rows than run b, or as many and lower statistics."""
    rows_a = runs.begin[a + 1] - runs.begin[a]
    rows_b = runs.begin[b + 1] - runs.begin[b]
    if rows_a != rows_b:
        return rows_a < rows_b
    return is_lower(runs.cells, channels, a * channels, b * channels)


@inner
def is_lower(cells, channels, a, b):
    """Whether the statistics at ``cells[a]`` come before those at ``cells[b]``."""
    for c in range(channels):
        if cells[a + c] != cells[b + c]:
            return cells[a + c] < cells[b + c]
    return False


@inner
def is_before(runs, channels, a, b):
    """Whether run a comes before run b by share; of equal shares, the lesser run."""
    if runs.share[a] != runs.share[b]:
        return runs.share[a] < runs.share[b]
    return is_less(runs, channels, a, b)


@inner
def merge_runs(runs, channels, first, middle, last):
    """Merge the ordered runs ``first .. middle`` and ``middle .. last`` into `spare`."""
    a, b = first, middle
    for to in range(first, last):
        take_first = b == last
        if a < middle and not take_first:
            take_first = not is_before(runs, channels, runs.order[b], runs.order[a])
        if take_first:
            runs.spare[to] = runs.order[a]
            a += 1
        else:
            runs.spare[to] = runs.order[b]
            b += 1


@inner
def move_run(listed, runs, held, r, sign, left):
    """Move a run to the left (sign 1) or back (-1); returns the rows that this adds there."""
    if held:
        for c in range(left.size):
            left[c] += sign * runs.cells[r * left.size + c]
    else:
        for i in range(runs.begin[r], runs.begin[r + 1]):
            e = listed.item[i]
            t = listed.target[e]
            left[pick(listed.class_of, t, t)] += sign * np.int64(pick(listed.weight, e, 1))
    return sign * (runs.begin[r + 1] - runs.begin[r])


@inner
def lowest_bit(i):
    """Place of the lowest bit of i > 0 that is set."""
    r = 0
    while i >> r & 1 == 0:
        r += 1
    return r


@inner
def moved_heads(count):
    """At how many heads runs are moved, and how many runs one head has more than the other."""
    return (2, count) if count > MOST_MOVED else (count + 1, 1)


@inner
def count_steps(kind, count):
    """How many subsets a search goes through."""
    if kind == EXHAUSTIVE:
        return (1 << (count - 1)) - 1
    if kind == MOVED:
        return moved_heads(count)[0] * count
    return count - (kind == ORDERED)


@inner
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
    n = move_run(listed, runs, held, i - 2, -1, left) if i > 1 else 0
    return np.int64(i - 1), n + move_run(listed, runs, held, i - 1, 1, left)


@inner
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


@inner
def last_subset(runs, kind, count, left, total, missing):
    """The known values against the missing ones, for searches that do not come to it."""
    for c in range(left.size):
        left[c] = total[c] - missing[c]
    return np.int64((1 << count) - 1 - NO_MASK if kind == EXHAUSTIVE else count)


@inner
def is_left_of(place, i):
    """Whether the i-th of the ordered runs goes left in the subset of that place."""
    if place < 0:
        return (place + NO_MASK) >> i & 1 == 1
    head, moved = place & ((1 << MOVED_BITS) - 1), place >> MOVED_BITS
    return (i < head) != (i + 1 == moved)


@inner
def precedes(value, missing_left, k, place, best):
    """Whether a subset is chosen before `best`, which is a tuple of the same."""
    if value != best[0]:
        return value > best[0]
    if missing_left != best[1]:
        return not missing_left
    return k < best[2] or (k == best[2] and place < best[3])


@inner
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


@once
def scan_subsets(criterion, limits, listed, runs, held, kind, count, k, total, left, missing, best):
    """The better of `best` and the best subset of one search.

    The last of the five that describe a subset is the greatest score of heads kept out.
    """
    whole = begin(criterion, total, total)[0]
    first, known, last = runs.begin[0], runs.begin[count], runs.begin[count + 1]
    least = max(limits.min_samples_leaf, 1)
    steps = count_steps(kind, count)
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
                place = last_subset(runs, kind, count, left, total, missing)
                n = known - first
            fewer = min(n, last - first - n)
            if fewer < (1 if kind == ORDERED else least):
                continue
            state = begin(criterion, left, total)
            lighter = min(state[0], whole - state[0])
            admitted = fewer >= least and lighter >= limits.min_weight_leaf
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


@inner
def search_beside(search, kind, count, best):
    """The second search, where limits keep a better head out than the best admitted; else -1."""
    if kind != ORDERED or not best[4] > best[0]:
        return -1
    return EXHAUSTIVE if count <= search.most_limited else MOVED


@inner
def best_subset(criterion, limits, search, listed, runs, count, total, left, missing):
    """The best subset of `count` runs that were found: (score, missing left, order, place)."""
    regression = listed.class_of is None
    channels = total.size
    kind = choose_search(search, regression, channels, count, runs)
    held = holds_cells(channels, count)
    for c in range(channels):
        missing[c] = 0
    if held:
        sum_runs(criterion, listed, runs, count, channels)
    move_run(listed, runs, held, count, 1, missing)
    best = (-np.inf, False, np.int64(0), np.int64(0), -np.inf)
    first = 1 if regression or channels == 2 else 0
    last = channels if not regression else first + 1
    k = first
    while kind >= 0:
        if kind != ONE_VS_REST:
            sort_runs(criterion, runs, count, channels, k)
        best = scan_subsets(
            criterion, limits, listed, runs, held, kind, count, np.int64(k), total, left, missing,
            best,
        )  # fmt: skip
        k += 1
        if k == last or kind in (EXHAUSTIVE, ONE_VS_REST):
            kind = search_beside(search, kind, count, best)
            k = first
    return best[:4]


@inner
def mark_subset(criterion, search, listed, runs, count, channels, k, place):
    """Mark the runs that go left: the subset that `best_subset` named `place`, and order k."""
    kind = choose_search(search, listed.class_of is None, channels, count, runs)
    if kind == ONE_VS_REST:
        for r in range(count):
            runs.is_left[r] = place in (r, count)
        return
    sum_runs(criterion, listed, runs, count, channels)
    sort_runs(criterion, runs, count, channels, k)
    for i in range(count):
        runs.is_left[runs.order[i]] = is_left_of(place, i)
