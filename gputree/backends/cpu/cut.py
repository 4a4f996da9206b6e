"""Cuts: which are admitted, which of two is chosen, the best of sorted pairs."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import lent, pick
from gputree.backends.cpu.monotonic import keeps_order
from gputree.backends.rules import midpoint
from gputree.criteria import begin, move, score


@lent
def precedes(a, b):
    """Whether cut `a` is chosen before `b`: the one tie rule.

    Greatest score, as rounded to float64: cuts that are equal in exact arithmetic tie where
    their scores do, and they are the same numbers on every path, made of the same integers by
    the same operations. Then lowest column; then missing values right before left; then the
    lowest cut. A cut is (score, column, missing_left, bin, at its end, threshold).
    """
    if a[0] != b[0]:
        return a[0] > b[0]
    if a[1] != b[1]:
        return a[1] < b[1]
    if a[2] != b[2]:
        return not a[2]
    if a[3] != b[3]:
        return a[3] < b[3]
    if a[4] != b[4]:
        return b[4]
    return a[5] < b[5]


@lent
def new_cut(value, f, missing_left, place, at_end, threshold):
    """A cut as `precedes` compares them; the types are fixed, so kernels compile once."""
    return (
        np.float64(value),
        np.int64(f),
        np.bool_(missing_left),
        np.int64(place),
        np.bool_(at_end),
        np.float64(threshold),
    )


@lent
def no_cut():
    """The cut that every other precedes."""
    return new_cut(-np.inf, 0, False, 0, False, 0.0)


@lent
def score_to_beat(cut, f):
    """The greatest score with which no cut of column f, found after `cut`, precedes it."""
    return cut[0] if cut[1] <= f else np.nextafter(cut[0], -np.inf)


@lent
def admits_rows(limits, n, whole):
    """Whether both sides of a cut have as many rows as `limits` asks: n of `whole` on one."""
    least = max(limits.min_samples_leaf, 1)
    return n >= least and whole - n >= least


@lent
def admits(limits, n, whole, weight, all_weight):
    """Whether both sides of a cut are as large as `limits` asks: the one rule of sizes.

    n of `whole` rows are on one side, and `weight` of `all_weight`.
    """
    if not admits_rows(limits, n, whole):
        return False
    return weight >= limits.min_weight_leaf and all_weight - weight >= limits.min_weight_leaf


@lent
def scan_bin(
    criterion, target, weight, limits, before, whole, values, items, first, last, left, total
):
    """Best cut between the sorted pairs ``first .. last``: (score, threshold).

    `left` holds the statistics before the bin, `before` its rows of `whole`; it is used up.
    """
    best = -np.inf
    threshold = 0.0
    all_weight = begin(criterion, total, total)[0]
    state = begin(criterion, left, total)
    for i in range(first, last - 1):
        row = items[i]
        state = move(criterion, state, left, total, target[row], pick(weight, row, 1))
        if values[i] == values[i + 1]:
            continue
        n = before + i + 1 - first
        if not admits(limits, n, whole, state[0], all_weight):
            continue
        if not keeps_order(limits.monotonic, criterion, state, left, total):
            continue
        value = score(criterion, state, left, total)
        if value > best:
            best = value
            threshold = midpoint(values[i], values[i + 1])
    return best, threshold
