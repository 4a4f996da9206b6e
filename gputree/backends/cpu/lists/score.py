"""The best test of a column in a node, by information gain, from its sorted list."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import PREFETCH_ROWS, inner, kernel, pick, prefetch
from gputree.backends.lists import MISSING_CODE
from gputree.criteria.information import in_steps, term


@inner
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


@inner
def class_terms(information, weights):
    """Sum of the terms of class weights, and the sum of the weights."""
    terms = total = np.int64(0)
    for k in range(weights.size):
        terms += term(information, weights[k])
        total += weights[k]
    return terms, total


@inner
def least_side(information, limits, total, count):
    """Least units on either side of a cut; more than there are where too few rows are known."""
    least = min(max(limits.cut_share * np.float64(total), limits.least), limits.most)
    if np.float64(count) < 2.0 * least * information.unit - limits.slack * information.unit:
        return total + 1
    return max(np.int64(np.ceil(least - limits.slack)), np.int64(1))


@inner
def best_cut(information, item, code, target, weight, begin, end, known, left, total, least):
    """Best cut between the sorted values ``begin .. end``: the first of greatest gain.

    Returns
    -------
    gain, tries, place, weight
        Gain in steps, admissible cuts, the last entry left of the best (-1 where none gains
        anything), and the weight up to it.
    """
    for k in range(left.size):
        left[k] = 0
    terms = term(information, total)  # those of a side, less its own, less those of the node
    best = np.int64(0)
    tries = np.int64(0)
    place = np.int64(-1)
    best_weight = before = np.int64(0)
    final = item.size - 1
    for i in range(begin, end - 1):
        prefetch(target, item[min(i + PREFETCH_ROWS, final)], 0)
        k = target[item[i]]
        w = np.int64(pick(weight, item[i], 1))
        a = left[k]
        b = known[k] - a
        left[k] = a + w
        terms += term(information, a + w) - term(information, a)
        terms += term(information, b - w) - term(information, b)
        before += w
        if code[i] == code[i + 1] or before < least:
            continue
        if total - before < least:
            break
        tries += 1
        own = term(information, before) + term(information, total - before)
        gain = in_steps(information, terms - own)
        if gain > best:
            best = gain
            place = i
            best_weight = before
    return best, tries, place, best_weight


@inner
def score_numeric(
    information, limits, item, code, target, weight, begin, end, whole, known, left, out, f, j
):
    """Best cut of a numeric column in node j; `known` holds the node's class weights."""
    end, unknown = take_missing(item, code, target, weight, begin, end, known)
    if end == begin or code[begin] == code[end - 1]:
        return
    out.parts[f, j] = 2
    total = whole - unknown
    least = least_side(information, limits, total, end - begin)
    if total < 2 * least:
        return
    gain, tries, place, before = best_cut(
        information, item, code, target, weight, begin, end, known, left, total, least
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


@inner
def add_run(information, item, target, weight, begin, end, left):
    """Class terms and weight of the entries ``begin .. end``; `left` is zero before and after."""
    terms = total = np.int64(0)
    for i in range(begin, end):
        k = target[item[i]]
        w = np.int64(pick(weight, item[i], 1))
        a = left[k]
        left[k] = a + w
        terms += term(information, a + w) - term(information, a)
        total += w
    for i in range(begin, end):
        left[target[item[i]]] = 0
    return terms, total


@inner
def score_nominal(
    information, limits, missing_is_category, item, code, target, weight, begin, end, whole, known,
    left, out, f, j,
):  # fmt: skip
    """One branch a category in node j; `known` holds the node's class weights."""
    unknown = np.int64(0)
    if not missing_is_category:
        end, unknown = take_missing(item, code, target, weight, begin, end, known)
    if end == begin or code[begin] == code[end - 1]:
        return
    for k in range(left.size):
        left[k] = 0
    class_sum, total = class_terms(information, known)
    gain = term(information, total) - class_sum
    split = term(information, whole) - term(information, unknown)
    parts = heavy = 0
    start = begin
    while start < end:
        stop = start + 1
        while stop < end and code[stop] == code[start]:
            stop += 1
        terms, branch = add_run(information, item, target, weight, start, stop, left)
        own = term(information, branch)
        gain += terms - own
        split -= own
        parts += 1
        heavy += np.float64(branch) >= limits.least - limits.slack
        start = stop
    out.parts[f, j] = parts
    out.split[f, j] = split
    out.tries[f, j] = heavy
    if heavy >= 2:
        out.gain[f, j] = max(in_steps(information, gain), 0)


@kernel
def score_columns(
    information, limits, missing_is_category, nominal, item, code, target, weight, begin, end,
    weights, resting, first_column, last_column, first, last, out,
):  # fmt: skip
    """Score columns ``first_column .. last_column`` in nodes ``first .. last``.

    `item`, `code` are (d, E); `weights` the class weights (m, K) of the nodes; `resting`
    (d, m) columns known to be constant.
    """
    known = np.empty(weights.shape[1], np.int64)
    left = np.empty(weights.shape[1], np.int64)
    for f in range(first_column, last_column):
        for j in range(first, last):
            if resting[f, j]:
                continue
            whole = np.int64(0)
            for k in range(known.size):
                known[k] = weights[j, k]
                whole += weights[j, k]
            if nominal[f]:
                score_nominal(
                    information, limits, missing_is_category, item[f], code[f], target, weight,
                    begin[j], end[j], whole, known, left, out, f, j,
                )  # fmt: skip
            else:
                score_numeric(
                    information, limits, item[f], code[f], target, weight, begin[j], end[j],
                    whole, known, left, out, f, j,
                )  # fmt: skip
