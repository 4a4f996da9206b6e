"""The best cut or subset of a column in a node, by a CART criterion, from its sorted list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from gputree.backends.cpu.jit import inner, kernel, once, pick
from gputree.backends.cpu.lists.runs import Listed, count_runs, find_runs, new_runs, room_for
from gputree.backends.cpu.lists.subsets import best_subset
from gputree.compilation import overload
from gputree.criteria import begin, move, restrict, score
from gputree.dtypes import MISSING_CODE


@inner
def known_end(code, first, last):
    """End of the known codes among the sorted places ``first .. last``."""
    while last > first and code[last - 1] == MISSING_CODE:
        last -= 1
    return last


def like(classes: Any) -> Any:
    """An array as `classes`, or None for None."""
    return None if classes is None else np.empty_like(classes)


@overload(like)
def _like(classes: Any) -> Any:
    if isinstance(classes, types.NoneType):
        return lambda classes: None
    return lambda classes: np.empty_like(classes)


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
def move_entry(criterion, state, listed, i, total, left):
    """State after the entry at place i crosses to the left."""
    e = listed.item[i]
    t = listed.target[e]
    return move(
        criterion, state, left, total, np.int64(pick(listed.class_of, t, t)),
        np.int64(pick(listed.weight, e, 1)),
    )  # fmt: skip


@inner
def scan_cuts(criterion, limits, listed, first, known, last, missing_left, total, left):
    """Best cut of the places ``first .. last``, missing values (from `known` on) on one side.

    Returns the score and the last known place on the left, -1 where no cut is admissible.
    """
    code = listed.code
    best = -np.inf
    place = np.int64(-1)
    least = limits.min_samples_leaf
    for c in range(left.size):
        left[c] = 0
    whole = begin(criterion, total, total)[0]
    state = begin(criterion, left, total)
    if missing_left:
        for i in range(known, last):
            state = move_entry(criterion, state, listed, i, total, left)
    moved = last - known if missing_left else 0
    final = known if known < last and not missing_left else known - 1
    for i in range(first, final):
        state = move_entry(criterion, state, listed, i, total, left)
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


@once
def score_numeric(criterion, limits, listed, first, last, total, left, out, f, j):
    """Best cut of numeric column f in node j."""
    known = known_end(listed.code, first, last)
    for side in range(2 if known < last else 1):
        value, place = scan_cuts(
            criterion, limits, listed, first, known, last, side == 1, total, left
        )
        if place >= 0 and value > out.score[f, j]:
            out.score[f, j] = value
            out.missing_left[f, j] = side == 1
            out.place[f, j] = listed.code[place]
            out.after[f, j] = listed.code[place + 1]


@once
def score_nominal(
    criterion, limits, search, listed, first, last, total, left, missing, runs, out, f, j
):
    """Best subset of nominal column f in node j; returns the room for runs, grown perhaps."""
    known = known_end(listed.code, first, last)
    count = count_runs(listed.code, first, known)
    out.categories[f, j] = count
    runs = room_for(runs, total.size, count)
    find_runs(listed.code, first, known, last, runs)
    best = best_subset(criterion, limits, search, listed, runs, count, total, left, missing)
    out.score[f, j] = best[0]
    out.missing_left[f, j] = best[1]
    out.order[f, j] = best[2]
    out.place[f, j] = best[3]
    return runs


@kernel
def score_cuts(
    criterion, limits, search, classes, nominal, item, code, target, weight, begins, ends, sums,
    asked, first_column, last_column, first, last, out,
):  # fmt: skip
    """Score columns ``first_column .. last_column`` in nodes ``first .. last``.

    `item`, `code` are (d, E); `sums` the statistics (m, S) of the nodes; `asked` (d, m) the
    columns to look at. `classes` is an array with a place for each class, None for regression.
    """
    class_of = like(classes)
    scratch = np.empty((3, max(sums.shape[1], 3)), np.int64)
    runs = new_runs(16, 64)
    for f in range(first_column, last_column):
        listed = Listed(item[f], code[f], target, weight, class_of)
        for j in range(first, last):
            if not asked[f, j]:
                continue
            if code[f, begins[j]] == code[f, ends[j] - 1]:
                out.constant[f, j] = True
                continue
            channels = number_present(sums[j], class_of, scratch[0])
            own = restrict(criterion, channels)
            total, left = scratch[0, :channels], scratch[1, :channels]
            if nominal[f]:
                runs = score_nominal(
                    own, limits, search, listed, begins[j], ends[j], total, left,
                    scratch[2, :channels], runs, out, f, j,
                )  # fmt: skip
            else:
                score_numeric(own, limits, listed, begins[j], ends[j], total, left, out, f, j)
