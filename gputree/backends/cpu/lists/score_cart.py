"""The best cut or subset of a column in a node, by a CART criterion, from its sorted list."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import inner, kernel, pick
from gputree.backends.cpu.lists.subsets import (
    best_subset,
    count_runs,
    find_runs,
    new_runs,
    room_for,
)
from gputree.backends.lists import MISSING_CODE
from gputree.criteria import begin, move, restrict, score


@inner
def known_end(code, first, last):
    """End of the known codes among the sorted places ``first .. last``."""
    while last > first and code[last - 1] == MISSING_CODE:
        last -= 1
    return last


@inner
def number_present(sums, class_of, total):
    """The channels of a node's statistics that matter, to `total`; returns how many.

    Classes present are numbered 0, 1, ... in their order; those of regression stay.
    """
    if class_of is None:
        for c in range(2):
            total[c] = sums[c]
        total[2] = 0  # squares do not change where a cut is best
        return 3
    present = 0
    for k in range(sums.size):
        class_of[k] = present
        if sums[k] > 0:
            total[present] = sums[k]
            present += 1
    return present


@inner
def scan_cuts(
    criterion, limits, class_of, item, code, target, weight, first, known, last, missing_left,
    total, left,
):  # fmt: skip
    """Best cut of the places ``first .. last``, missing values (from `known` on) on one side.

    Returns the score and the last known place on the left, -1 where no cut is admissible.
    """
    best = -np.inf
    place = np.int64(-1)
    least = limits.min_samples_leaf
    for c in range(left.size):
        left[c] = 0
    whole = begin(criterion, total, total)[0]
    state = begin(criterion, left, total)
    moved = 0
    if missing_left:
        for i in range(known, last):
            e = item[i]
            t = target[e]
            state = move(
                criterion, state, left, total, np.int64(pick(class_of, t, t)),
                np.int64(pick(weight, e, 1)),
            )  # fmt: skip
        moved = last - known
    final = known if known < last and not missing_left else known - 1
    for i in range(first, final):
        e = item[i]
        t = target[e]
        state = move(
            criterion, state, left, total, np.int64(pick(class_of, t, t)),
            np.int64(pick(weight, e, 1)),
        )  # fmt: skip
        if code[i] == code[i + 1]:
            continue
        n = i + 1 - first + moved
        if n < least or last - first - n < least:
            continue
        if state[0] < limits.min_weight_leaf or whole - state[0] < limits.min_weight_leaf:
            continue
        value = score(criterion, state, left, total)
        if value > best:
            best = value
            place = i
    return best, place


@inner
def score_numeric(
    criterion, limits, class_of, item, code, target, weight, first, last, total, left, out, f, j
):
    """Best cut of numeric column f in node j."""
    known = known_end(code, first, last)
    for side in range(2 if known < last else 1):
        value, place = scan_cuts(
            criterion, limits, class_of, item, code, target, weight, first, known, last, side == 1,
            total, left,
        )  # fmt: skip
        if place >= 0 and value > out.score[f, j]:
            out.score[f, j] = value
            out.missing_left[f, j] = side == 1
            out.place[f, j] = code[place]
            out.after[f, j] = code[place + 1]


@inner
def score_nominal(
    criterion, limits, search, class_of, item, code, target, weight, first, last, total, left,
    runs, out, f, j,
):  # fmt: skip
    """Best subset of nominal column f in node j; returns the room for runs, grown perhaps."""
    known = known_end(code, first, last)
    count = count_runs(code, first, known)
    out.categories[f, j] = count
    runs = room_for(runs, search, class_of is None, total.size, count)
    find_runs(code, first, known, last, runs)
    best = best_subset(
        criterion, limits, search, class_of, item, target, weight, runs, count, total, left
    )
    out.score[f, j] = best.score
    out.missing_left[f, j] = best.missing_left
    out.order[f, j] = best.order
    out.place[f, j] = best.place
    return runs


@inner
def score_span(
    criterion, limits, search, class_of, nominal, item, code, target, weight, begins, ends, sums,
    asked, first_column, last_column, first, last, out,
):  # fmt: skip
    """As `score_cuts`, with room to number the classes of a node; None for regression."""
    totals = np.empty(max(sums.shape[1], 3), np.int64)
    lefts = np.empty_like(totals)
    runs = new_runs(16, 64)
    for f in range(first_column, last_column):
        for j in range(first, last):
            if not asked[f, j]:
                continue
            if code[f, begins[j]] == code[f, ends[j] - 1]:
                out.constant[f, j] = True
                continue
            channels = number_present(sums[j], class_of, totals)
            total = totals[:channels]
            left = lefts[:channels]
            own = restrict(criterion, channels)
            if nominal[f]:
                runs = score_nominal(
                    own, limits, search, class_of, item[f], code[f], target, weight, begins[j],
                    ends[j], total, left, runs, out, f, j,
                )  # fmt: skip
            else:
                score_numeric(
                    own, limits, class_of, item[f], code[f], target, weight, begins[j], ends[j],
                    total, left, out, f, j,
                )  # fmt: skip


@kernel
def score_cuts(
    criterion, limits, search, classes, nominal, item, code, target, weight, begins, ends, sums,
    asked, first_column, last_column, first, last, out,
):  # fmt: skip
    """Score columns ``first_column .. last_column`` in nodes ``first .. last``.

    `item`, `code` are (d, E); `sums` the statistics (m, S) of the nodes; `asked` (d, m) the
    columns to look at. `classes` is an array with a place for each class, None for regression.
    """
    if classes is None:
        score_span(
            criterion, limits, search, None, nominal, item, code, target, weight, begins, ends,
            sums, asked, first_column, last_column, first, last, out,
        )  # fmt: skip
    else:
        score_span(
            criterion, limits, search, np.empty_like(classes), nominal, item, code, target, weight,
            begins, ends, sums, asked, first_column, last_column, first, last, out,
        )  # fmt: skip
