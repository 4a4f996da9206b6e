"""The best subset of the categories of a nominal column in a node.

The rows of a category are a run (`gputree.backends.cpu.runs`). Searches go from subset to subset by
moving single runs, and identify the best one by a number, its *place*:

    ordered       prefixes of the runs by class proportion   number of runs on the left
                  (or mean target)
    exhaustive    all subsets without the last run (Gray code)     mask of the ordered runs
    moved         prefixes, one run moved to the other side  the prefix and the run
    events moved  the same, of prefixes that split no events  the prefix and the run
    one vs rest   single runs, of equal ones the first             the run; all runs past the last

The best of all subsets is a prefix, since scores are convex in the left sums: they are largest at
the corners of their zonotope, which are prefixes from either end. Limits on a side may exclude it:

    no events    of Poisson. Around the best admissible subset the score has a tangent plane, by
                 which its runs have gains of one sign on either side of some mean; if they were
                 split there, the events would be on one side. Moving the cheapest run that has
                 events to the other side repairs that. So the best is one run moved from or to the
                 prefix of no runs, or the prefix of the runs without events (that of all runs gives
                 the same subsets): "events moved" finds it among any number of runs.
    too small    (minimum rows and weight): a search through all subsets of few runs finds the best;
                 of more runs, "moved" may miss it. To fill a side is a knapsack problem.

These searches are made where, and only where, an excluded prefix has a higher score than the best
that is admitted.

Missing values go right or left of every subset. Of equals, the one with missing values right is
chosen, then the first order, then the lowest place. The code of a category decides only between
runs of the very same statistics: orders, masks and ties are those of statistics.
"""

from typing import NamedTuple

import numpy as np

from gputree.arithmetic.bits import lowest_bit
from gputree.backends.base import MOST_MOVED
from gputree.backends.cpu.cut import admits, admits_rows
from gputree.backends.cpu.runs import holds_cells, is_less, is_lower, move_run, sort_runs
from gputree.compilation import borrowing, pasted
from gputree.criteria import begin, refused_score, score

ORDERED, EXHAUSTIVE, ONE_VS_REST, MOVED, EVENTS_MOVED = 0, 1, 2, 3, 4

# A place is the length of a prefix and, in higher bits, one more than the place of the moved run, 0
# for none; or it is negative: a mask less `NO_MASK`.
MOVED_BITS = 31
NO_MASK = 1 << 62


class Subset(NamedTuple):
    """A subset of the runs of a node, which go left."""

    score: float
    missing_left: bool
    order: int  # of the runs: the statistic that they are sorted by
    place: int


class Excluded(NamedTuple):
    """Highest scores of subsets that are not admitted."""

    too_small: float
    refused: float  # by the criterion


@borrowing
def choose_search(scratch, channels, count):
    """Search for the `count` runs of a node whose statistics have `channels`."""
    search, runs = scratch.search, scratch.runs
    rows = runs.begin[count] - runs.begin[0]
    if count > search.many_categories and rows < search.rows_per_category * count:
        return ONE_VS_REST
    if scratch.regression or channels <= 2:
        return ORDERED
    if count <= search.most_exhaustive:
        return EXHAUSTIVE
    return ORDERED if holds_cells(channels, count) else ONE_VS_REST


@borrowing
def list_heads(runs, kind, count):
    """List the prefixes at which runs are moved, in ``runs.spare``, and return their number."""
    heads = runs.spare
    if kind == EVENTS_MOVED:
        without = 0
        while without < count and runs.share[runs.order[without]] == 0.0:
            without += 1
        heads[0], heads[1] = 0, without
        return 2
    if count > MOST_MOVED:
        heads[0], heads[1] = 0, count
        return 2
    for head in range(count + 1):
        heads[head] = head
    return count + 1


@pasted
def start_search(criterion, node, kind, k):
    """Order the runs by statistic k; returns the number of subsets that a search visits."""
    count, channels = node.number, node.total.size
    sort_runs(criterion, node.runs, count, channels, k)
    if kind == EXHAUSTIVE:
        return (1 << (count - 1)) - 1
    if kind in (MOVED, EVENTS_MOVED):
        return list_heads(node.runs, kind, count) * count
    return count - 1


@pasted
def next_subset(node, kind, i, place):
    """Change subset `place` into the i-th one (from 1): returns its place, and rows added left."""
    order, left = node.runs.order, node.left
    if kind == ORDERED:
        return np.int64(i), move_run(node, order[i - 1], 1, left)
    if kind == EXHAUSTIVE:
        r = np.int64(lowest_bit(np.uint64(i)))
        place = (place if i > 1 else -NO_MASK) ^ (1 << r)
        return place, move_run(node, order[r], 1 if place >> r & 1 else -1, left)
    return next_move(node, i - 1)


@pasted
def next_move(node, i):
    """Undo move i - 1 (if any) and make move i, from 0: returns its place, rows added left."""
    order, heads, count, left = node.runs.order, node.runs.spare, node.number, node.left
    head, moved = heads[i // count], i % count
    n = 0
    if i > 0:
        before, back = heads[(i - 1) // count], (i - 1) % count
        n += move_run(node, order[back], 1 if back < before else -1, left)
        for r in range(before, head):
            n += move_run(node, order[r], 1, left)
    n += move_run(node, order[moved], -1 if moved < head else 1, left)
    return np.int64(head) | np.int64(moved + 1) << MOVED_BITS, n


@pasted
def put_known_left(node, kind):
    """Set the left side to the known values; returns the place of that subset."""
    for c in range(node.left.size):
        node.left[c] = node.total[c] - node.missing[c]
    return np.int64((1 << node.number) - 1 - NO_MASK if kind == EXHAUSTIVE else node.number)


@borrowing
def is_left_of(place, i):
    """Return True if the i-th of the ordered runs goes left in the subset `place`."""
    if place < 0:
        return (place + NO_MASK) >> i & 1 == 1
    head, moved = place & ((1 << MOVED_BITS) - 1), place >> MOVED_BITS
    return (i < head) != (i + 1 == moved)


@borrowing
def precedes(a, b):
    """Return True if subset `a` is chosen before subset `b`."""
    if a.score != b.score:
        return a.score > b.score
    if a.missing_left != b.missing_left:
        return not a.missing_left
    return a.order < b.order or (a.order == b.order and a.place < b.place)


@pasted
def scan_subsets(criterion, limits, node, kind, steps, k, best, excluded):
    """The better of `best` and the best subset of a search of `steps`; and subsets excluded."""
    too_small, refused = excluded
    counts_refused = kind in (ORDERED, EVENTS_MOVED)
    total, left, count = node.total, node.left, node.number
    whole = begin(criterion, total, total)[0]
    begins = node.runs.begin
    first, first_missing, last = begins[0], begins[count], begins[count + 1]
    rows = last - first
    for side in range(1 + (first_missing < last)):
        for c in range(left.size):
            left[c] = node.missing[c] if side == 1 else 0
        n = last - first_missing if side == 1 else 0
        place = np.int64(0)
        # `left` and `n` are the statistics and rows of the left side of `place`; `best` is the
        # best of all subsets before.
        for i in range(1, steps + 1 + (first_missing < last and side == 0)):
            if i <= steps or kind == ORDERED:
                place, added = next_subset(node, kind, i, place)
                n += added
            else:
                place = put_known_left(node, kind)
                n = first_missing - first
            if not (0 < n < rows and (counts_refused or admits_rows(limits, n, rows))):
                continue
            state = begin(criterion, left, total)
            admitted = admits(limits, n, rows, state[0], whole)
            if not admitted and not counts_refused:
                continue
            value = score(criterion, state, left, total)
            if value == -np.inf and counts_refused:
                refused = max(refused, refused_score(criterion, state, left, total))
            elif not admitted:
                too_small = max(too_small, value)
            else:
                found = Subset(value, side == 1, k, place)
                best = found if precedes(found, best) else best
    return best, Excluded(too_small, refused)


@pasted
def single_precedes(node, r, before):
    """Return True if one vs rest chooses run r before another one of the same score."""
    runs, channels = node.runs, node.total.size
    if node.has_sums:
        return is_less(runs, channels, r, before)
    rows = runs.begin[r + 1] - runs.begin[r]
    rows_before = runs.begin[before + 1] - runs.begin[before]
    if rows != rows_before:
        return rows < rows_before
    for c in range(2 * channels):
        runs.cells[c] = 0
    move_run(node, r, 1, runs.cells[:channels])
    move_run(node, before, 1, runs.cells[channels : 2 * channels])
    return is_lower(runs.cells, channels, 0, channels)


@borrowing
def scan_singles(criterion, limits, node, k):
    """The best subset of a single run, or of all known values."""
    total, left, count = node.total, node.left, node.number
    whole = begin(criterion, total, total)[0]
    begins = node.runs.begin
    rows, n_missing = begins[count + 1] - begins[0], begins[count + 1] - begins[count]
    best, missing_left, chosen = -np.inf, False, np.int64(0)
    for side in range(1 + (n_missing > 0)):
        # `chosen` is the best of the runs before r, first with missing values right.
        for r in range(count + (n_missing > 0 and side == 0)):
            if r == count:
                put_known_left(node, ONE_VS_REST)
                n = rows - n_missing
            else:
                for c in range(left.size):
                    left[c] = node.missing[c] if side == 1 else 0
                n = move_run(node, r, 1, left) + side * n_missing
            state = begin(criterion, left, total)
            if not admits(limits, n, rows, state[0], whole):
                continue
            value = score(criterion, state, left, total)
            if value > best or (
                value == best
                and missing_left == (side == 1)
                and r < count
                and best > -np.inf
                and single_precedes(node, r, chosen)
            ):
                best, missing_left, chosen = value, side == 1, np.int64(r)
    return Subset(best, missing_left, k, chosen)


@borrowing
def next_search(search, kind, count, best, excluded):
    """Return the next search, if an excluded subset is better than `best`; else -1."""
    if kind == ORDERED and excluded.refused > best.score:
        return EVENTS_MOVED
    if kind in (ORDERED, EVENTS_MOVED) and excluded.too_small > best.score:
        return EXHAUSTIVE if count <= search.most_limited else MOVED
    return -1


@borrowing
def best_subset(criterion, limits, scratch, node):
    """The best subset of the runs that were found."""
    channels = node.total.size
    kind = choose_search(scratch, channels, node.number)
    for c in range(channels):
        node.missing[c] = 0
    move_run(node, node.number, 1, node.missing)
    best, excluded = Subset(-np.inf, False, np.int64(0), np.int64(0)), Excluded(-np.inf, -np.inf)
    first = 1 if scratch.regression or channels == 2 else 0
    last = channels if not scratch.regression else first + 1
    k = np.int64(first)
    if kind == ONE_VS_REST:
        return scan_singles(criterion, limits, node, k)
    while kind >= 0:
        steps = start_search(criterion, node, kind, k)
        order = np.int64(k)
        best, excluded = scan_subsets(criterion, limits, node, kind, steps, order, best, excluded)
        k += 1
        if k == last or kind == EXHAUSTIVE:
            kind = next_search(scratch.search, kind, node.number, best, excluded)
            k = first
    return best


@borrowing
def mark_subset(criterion, scratch, count, channels, k, place):
    """Mark the runs on the left of a subset, given by its `place` and order k of `best_subset`.

    Statistics of runs are stored, unless one vs rest was searched.
    """
    runs = scratch.runs
    if choose_search(scratch, channels, count) == ONE_VS_REST:
        for r in range(count):
            runs.is_left[r] = place in (r, count)
        return
    sort_runs(criterion, runs, count, channels, k)
    for i in range(count):
        runs.is_left[runs.order[i]] = is_left_of(place, i)
