"""The best test of a column in a node, by information gain, from its sorted list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import kernel, lent, pick
from gputree.backends.cpu.lists.sieve import best_cut_of_fractions, new_sieve
from gputree.criteria.information import GAIN_BITS, TOLERANCE, in_steps, term
from gputree.dtypes import MISSING_CODE


class Scan(NamedTuple):
    """Class weights on the way through a list: left of it, new, and the terms of both sides."""

    left: NDArray[np.int64]
    fresh: NDArray[np.int64]
    terms: NDArray[np.int64]


@lent
def take_missing(item, code, target, weight, begin, end, known):
    """Take the missing values, last in the list, out of the class weights `known`.

    Returns the end of the known values, and the weight that is missing.
    """
    unknown = np.int64(0)
    while end > begin and code[end - 1] == MISSING_CODE:
        end -= 1
        w = np.int64(pick(weight, item[end], 1))
        known[target[item[end]]] -= w
        unknown += w
    return end, unknown


@lent
def class_terms(information, weights):
    """Sum of the terms of class weights, and the sum of the weights."""
    terms = total = np.int64(0)
    for k in range(weights.size):
        terms += term(information, weights[k])
        total += weights[k]
    return terms, total


@lent
def least_side(limits, total, count):
    """Least units on either side of a cut; more than there are where too few rows are known."""
    least = limits.cut_share * np.float64(total)
    least = limits.least if least <= limits.least + limits.slack else min(least, limits.most)
    if np.float64(count) < (2.0 * least - limits.slack) * limits.unit:
        return total + 1
    return max(np.int64(np.ceil(least - limits.slack)), np.int64(1))


@lent
def read_run(item, code, target, weight, begin, end):
    """The run of one value that starts at `begin`: its end, weight and class, -1 if mixed."""
    value = code[begin]
    k = np.int64(target[item[begin]])
    total = np.int64(pick(weight, item[begin], 1))
    stop = begin + 1
    while stop < end and code[stop] == value:
        if target[item[stop]] != k:
            k = np.int64(-1)
        total += pick(weight, item[stop], 1)
        stop += 1
    return stop, total, k


@lent
def move_class(information, known, state, k, weight):
    """Move weight of one class to the left; returns the change of the sum of terms."""
    state.left[k] += weight
    own = term(information, state.left[k]) + term(information, known[k] - state.left[k])
    change = own - state.terms[k]
    state.terms[k] = own
    return change


@lent
def move_rows(information, item, target, weight, begin, end, known, state):
    """Move rows of several classes to the left; a class changes two terms, whatever its rows."""
    for i in range(begin, end):
        state.fresh[target[item[i]]] += pick(weight, item[i], 1)
    change = np.int64(0)
    for i in range(begin, end):
        k = target[item[i]]
        if state.fresh[k] > 0:
            change += move_class(information, known, state, k, state.fresh[k])
            state.fresh[k] = 0
    return change


@lent
def best_cut(information, item, code, target, weight, begin, end, known, state, total, least):
    """Best cut between the sorted values ``begin .. end``: the first of greatest gain.

    A cut between two values of one and the same class is never the best (Fayyad and Irani
    1992), unless no cut is admissible on one side of it: others are not evaluated.

    Returns
    -------
    gain, tries, place, weight
        Gain in steps, admissible cuts, the last entry left of the best (-1 where none gains
        anything), and the weight up to it.
    """
    for k in range(known.size):
        state.left[k] = 0
        state.terms[k] = term(information, known[k])
    # terms of the sides' classes and of the node, less those of the node's classes
    gained = term(information, total)
    best = tries = before = best_weight = moved = np.int64(0)
    place = np.int64(-1)
    pending = start = begin  # rows from `pending` on are not yet moved
    pending_class = previous = np.int64(-2)
    while start < end and total - before >= least:
        stop, run, k = read_run(item, code, target, weight, start, end)
        if before >= least and start > begin:
            tries += 1
            if tries == 1 or total - before - run < least or k < 0 or k != previous:
                if pending_class >= 0:
                    gained += move_class(information, known, state, pending_class, before - moved)
                else:
                    gained += move_rows(
                        information, item, target, weight, pending, start, known, state
                    )
                own = term(information, before) + term(information, total - before)
                gain = in_steps(information, gained - own)
                if gain > best:
                    best = gain
                    place = start - 1
                    best_weight = before
                pending = start
                moved = before
        pending_class = k if pending == start or pending_class == k else np.int64(-1)
        previous = k
        before += run
        start = stop
    return best, tries, place, best_weight


@lent
def score_numeric(
    information, limits, item, code, target, weight, begin, end, whole, known, state, sieve, out, f,
    j,
):  # fmt: skip
    """Best cut of a numeric column in node j; `known` holds the node's class weights."""
    end, unknown = take_missing(item, code, target, weight, begin, end, known)
    if end == begin or code[begin] == code[end - 1]:
        return
    out.parts[f, j] = 2
    total = whole - unknown
    least = least_side(limits, total, end - begin)
    if total < 2 * least:
        return
    if weight is None:
        gain, tries, place, before = best_cut(
            information, item, code, target, weight, begin, end, known, state, total, least
        )
    else:
        gain, tries, place, before = best_cut_of_fractions(
            information, item, code, target, weight, begin, end, known, sieve, total, least
        )
    if place < 0:
        return
    out.gain[f, j] = gain
    out.tries[f, j] = tries
    out.split[f, j] = (
        term(information, whole)
        - term(information, before)
        - term(information, total - before)
        - term(information, unknown)
    )
    out.cut[f, j] = code[place]
    out.after[f, j] = code[place + 1]


@lent
def add_run(information, item, target, weight, begin, end, state):
    """Class terms and weight of the entries ``begin .. end``."""
    total = np.int64(0)
    for i in range(begin, end):
        w = np.int64(pick(weight, item[i], 1))
        state.fresh[target[item[i]]] += w
        total += w
    return fresh_terms(information, item, target, begin, end, state), total


@lent
def fresh_terms(information, item, target, begin, end, state):
    """Class terms of the new weights, which are those of the entries ``begin .. end``; forgotten.

    By classes or by entries, whatever is less.
    """
    terms = np.int64(0)
    if state.fresh.size <= end - begin:
        for k in range(state.fresh.size):
            terms += term(information, state.fresh[k])
            state.fresh[k] = 0
        return terms
    for i in range(begin, end):
        k = target[item[i]]
        if state.fresh[k] > 0:
            terms += term(information, state.fresh[k])
            state.fresh[k] = 0
    return terms


@lent
def score_nominal(
    information, limits, missing_is_category, item, code, target, weight, begin, end, whole, known,
    state, out, f, j,
):  # fmt: skip
    """One branch a category in node j; `known` holds the node's class weights."""
    unknown = np.int64(0)
    if not missing_is_category:
        end, unknown = take_missing(item, code, target, weight, begin, end, known)
    if end == begin or code[begin] == code[end - 1]:
        return
    class_sum, total = class_terms(information, known)
    gain = term(information, total) - class_sum
    split = term(information, whole) - term(information, unknown)
    parts = heavy = 0
    start, branch = begin, np.int64(0)
    for i in range(begin, end):
        e = np.uintp(item[i])
        w = np.int64(pick(weight, e, 1))
        state.fresh[np.uintp(target[e])] += w
        branch += w
        if i + 1 < end and code[i + 1] == code[i]:
            continue
        own = term(information, branch)
        gain += fresh_terms(information, item, target, start, i + 1, state) - own
        split -= own
        parts += 1
        heavy += np.float64(branch) >= limits.least - limits.slack
        start, branch = i + 1, np.int64(0)
    out.parts[f, j] = parts
    out.split[f, j] = split
    out.tries[f, j] = heavy
    if heavy >= 2:
        out.gain[f, j] = max(in_steps(information, gain), 0)


@lent
def rest_terms(information, item, target, weight, begin, end, known, state):
    """How the class terms of `known` change without the entries ``begin .. end``."""
    change = np.int64(0)
    for i in range(begin, end):
        state.fresh[target[item[i]]] += pick(weight, item[i], 1)
    for i in range(begin, end):
        k = target[item[i]]
        if state.fresh[k] > 0:
            change += term(information, known[k] - state.fresh[k]) - term(information, known[k])
            state.fresh[k] = 0
    return change


@lent
def score_one_against_rest(
    information, limits, item, code, target, weight, begin, end, whole, known, state, out, f, j
):
    """The category of greatest gain ratio against all others in node j, of equals the first.

    `known` holds the node's class weights. Both sides need the weight of a branch that counts.
    """
    end, unknown = take_missing(item, code, target, weight, begin, end, known)
    if end == begin or code[begin] == code[end - 1]:
        return
    out.parts[f, j] = 2
    class_sum, total = class_terms(information, known)
    before = term(information, total) - class_sum
    bits = term(information, whole) - term(information, unknown)
    best = 0.0
    start = begin
    while start < end:
        stop = start + 1
        while stop < end and code[stop] == code[start]:
            stop += 1
        terms, branch = add_run(information, item, target, weight, start, stop, state)
        lighter = np.float64(min(branch, total - branch))
        if lighter >= limits.least - limits.slack:
            terms += class_sum
            terms += rest_terms(information, item, target, weight, start, stop, known, state)
            own = term(information, branch) + term(information, total - branch)
            gain = max(in_steps(information, before + terms - own), 0)
            split = np.float64(bits - own) / information.scale
            ratio = 0.0
            if split > TOLERANCE:
                ratio = np.float64(gain) / np.float64(1 << GAIN_BITS) / split
            if out.tries[f, j] == 0 or ratio > best + TOLERANCE:
                best = ratio
                out.gain[f, j] = gain
                out.split[f, j] = bits - own
                out.cut[f, j] = code[start]
            out.tries[f, j] += 1
        start = stop


@kernel
def score_columns(
    information, limits, missing_is_category, one_against_rest, nominal, item, code, target,
    weight, begin, end, weights, resting, first_column, last_column, first, last, out,
):  # fmt: skip
    """Score columns ``first_column .. last_column`` in nodes ``first .. last``.

    `item`, `code` are (d, E); `weights` the class weights (m, K) of the nodes; `resting`
    (d, m) columns known to be constant.
    """
    n_classes = weights.shape[1]
    known = np.empty(n_classes, np.int64)
    state = Scan(
        np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    )
    sieve = new_sieve(n_classes)
    for f in range(first_column, last_column):
        score_column(
            information, limits, missing_is_category, one_against_rest, nominal, item[f], code[f],
            target, weight, begin, end, weights, resting, f, first, last, known, state, sieve, out,
        )  # fmt: skip


@lent
def score_column(
    information, limits, missing_is_category, one_against_rest, nominal, item, code, target,
    weight, begin, end, weights, resting, f, first, last, known, state, sieve, out,
):  # fmt: skip
    """Score column f, of these lists, in nodes ``first .. last``."""
    for j in range(first, last):
        if resting[f, j]:
            continue
        whole = np.int64(0)
        for k in range(known.size):
            known[k] = weights[j, k]
            whole += weights[j, k]
        if nominal[f] and one_against_rest:
            score_one_against_rest(
                information, limits, item, code, target, weight, begin[j], end[j], whole, known,
                state, out, f, j,
            )  # fmt: skip
        elif nominal[f]:
            score_nominal(
                information, limits, missing_is_category, item, code, target, weight, begin[j],
                end[j], whole, known, state, out, f, j,
            )  # fmt: skip
        else:
            score_numeric(
                information, limits, item, code, target, weight, begin[j], end[j], whole, known,
                state, sieve, out, f, j,
            )  # fmt: skip
