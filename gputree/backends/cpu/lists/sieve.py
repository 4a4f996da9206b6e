"""The best cut of a column where rows have fractional weights: few cuts are scored exactly.

Terms of fractions are in no table, and one logarithm each takes longer than everything else about a
cut. So every cut is scored with logarithms interpolated in a short table, whose error is below a
known `window`. Cuts that may still be the best by these scores wait, and are scored exactly at the
end:

    scored closely      3.1  4.0  4.9  5.2  5.1  2.0
    waiting                            5.2  5.1        within the window of the highest
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.base.dtypes import Floats, Int64s
from gputree.compilation import borrowing, inner, pick
from gputree.criteria.entropy import GAIN_BITS, in_steps, term

# Chords of the logarithm of mantissas 1 .. 2, by their first bits: intercepts (less the bias of
# exponents) and slopes. 16 KiB of a core's nearest 32.
_BITS = 10
_ENDS = 1.0 + np.arange((1 << _BITS) + 1) / (1 << _BITS)
_SLOPES = np.diff(np.log2(_ENDS)) * (1 << _BITS)
_CHORDS = np.stack([np.log2(_ENDS[:-1]) - _SLOPES * _ENDS[:-1] - 1023.0, _SLOPES], axis=1)
_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000

# Interpolated, log2 has an error of at most 2**-20 / 8 * log2(e), which is below 2**-22; weights on
# both sides of a cut, by class and in all, are twice those of the node. Each sum of floats has an
# error of 2**-53 of terms of less than 64 bits.
_OFF_BY_TABLE = 2.0**-20
_OFF_BY_SUMS = 2.0**-44
# Exact scores are rounded to a step, and each of their terms.
_STEPS, _TERMS = 4.0, 4.0

# Maximum number of cuts that wait; then they are scored.
WAITING = 16


class Sieve(NamedTuple):
    """Class weights during a scan of a list, and the cuts that wait."""

    left: Int64s  # (K,) class weights left of the scan
    terms: Floats  # (K,) approximate ``x log2 x`` of both sides' weights of each class
    before: Int64s  # (WAITING,) weight left of each cut that waits
    place: Int64s  # (WAITING,) last entry left of it
    lefts: Int64s  # (WAITING, K) class weights left of it


@inner
def new_sieve(n_classes):
    """Scratch of one scan."""
    return Sieve(
        np.empty(n_classes, np.int64),
        np.empty(n_classes),
        np.empty(WAITING, np.int64),
        np.empty(WAITING, np.int64),
        np.empty((WAITING, n_classes), np.int64),
    )


@borrowing
def about_term(weight):
    """Approximate ``x log2 x`` of a weight in units; 0 at 0."""
    x = np.float64(weight)
    bits = x.view(np.int64)
    chord = np.uintp((bits >> (52 - _BITS)) & ((1 << _BITS) - 1))
    mantissa = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    return x * (np.float64(bits >> 52) + (_CHORDS[chord, 0] + _CHORDS[chord, 1] * mantissa))


@borrowing
def read_run(column, begin):
    """The run of one value that starts at `begin`: its end, weight and class, -1 if mixed."""
    item, code, target, weight = column.item, column.code, column.target, column.weight
    value = code[begin]
    k = np.int64(target[item[begin]])
    total = np.int64(pick(weight, item[begin], 1))
    stop = begin + 1
    while stop < column.end and code[stop] == value:
        if target[item[stop]] != k:
            k = np.int64(-1)
        total += pick(weight, item[stop], 1)
        stop += 1
    return stop, total, k


@borrowing
def may_be_best(column, start, stop, left_weight, min_weight):
    """Return True if a cut between the runs that begin at `start` and at `stop` may be the best.

    It is not between two runs of the same class, unless the next cut is not admissible.
    """
    _, run, following = read_run(column, stop)
    if following < 0 or left_weight - run < min_weight:
        return True
    return read_run(column, start)[2] != following


@borrowing
def best_waiting(information, class_weights, total, sieve, n, best, place, before):
    """Best of n waiting cuts and the `best` so far, scored exactly; of equal gains the first."""
    whole = term(information, total)
    for k in range(class_weights.size):
        whole -= term(information, class_weights[k])
    for j in range(n):
        terms = whole
        for k in range(class_weights.size):
            left = sieve.lefts[j, k]
            terms += term(information, left) + term(information, class_weights[k] - left)
        split_terms = term(information, sieve.before[j]) + term(
            information, total - sieve.before[j]
        )
        gain = in_steps(information, terms - split_terms)
        if gain > best:
            best, place, before = gain, sieve.place[j], sieve.before[j]
    return best, place, before


@borrowing
def wait(sieve, j, place, before):
    """Store the j-th waiting cut."""
    sieve.place[j], sieve.before[j] = place, before
    for k in range(sieve.left.size):
        sieve.lefts[j, k] = sieve.left[k]


@borrowing
def _window(information, total, count, n_classes):
    """Twice the maximum error of an approximate score of a cut, in units x bits."""
    exact = _STEPS * 2.0**-GAIN_BITS + _TERMS * np.float64(n_classes + 1) / information.scale
    close = _OFF_BY_TABLE + _OFF_BY_SUMS * np.float64(count)
    return np.float64(total) * close + exact / information.unit


@borrowing
def best_cut_of_fractions(information, column, class_weights, sieve, total, min_weight):
    """`best_cut` where entries are weighted: the same cut.

    Every entry is scored as if a cut were before it: a branch on that, unpredictable, would take
    longer. Nothing is called in the loop except for cuts that wait.
    """
    item, code, target, weight = column.item, column.code, column.target, column.weight
    begin, end = column.begin, column.end
    most = -about_term(total)  # the score without any gain
    for k in range(class_weights.size):
        sieve.left[k] = 0
        sieve.terms[k] = about_term(class_weights[k])
        most += sieve.terms[k]
    terms = most + about_term(total)
    window = _window(information, total, end - begin, class_weights.size)
    best = tries = before = best_before = np.int64(0)
    place = np.int64(-1)
    waiting, start, value = 0, begin, code[begin]
    # `terms` are the approximate terms of both sides of a cut before entry i, and `most` is the
    # highest approximate gain so far. Cuts that may still be the best wait, or are in `best` by
    # their exact gain.
    for i in range(begin, end):
        if total - before < min_weight:
            break
        cut = code[i] != value
        value = code[i]
        admitted = cut & (before >= min_weight)
        tries += admitted
        gain = terms - (about_term(before) + about_term(total - before))
        near = admitted & (gain >= most - window)
        if near and (tries == 1 or may_be_best(column, start, i, total - before, min_weight)):
            if waiting == WAITING:
                best, place, best_before = best_waiting(
                    information, class_weights, total, sieve, waiting, best, place, best_before
                )
            if waiting == WAITING or gain > most + window:
                waiting = 0
            most = max(most, gain)
            wait(sieve, waiting, i - 1, before)
            waiting += 1
        start = i if cut else start
        e = np.uintp(item[i])
        k, units = np.uintp(target[e]), weight[e]
        before += units
        left = sieve.left[k] + units
        sieve.left[k] = left
        class_terms = about_term(left) + about_term(class_weights[k] - left)
        terms += class_terms - sieve.terms[k]
        sieve.terms[k] = class_terms
    best, place, best_before = best_waiting(
        information, class_weights, total, sieve, waiting, best, place, best_before
    )
    return best, tries, place, best_before
