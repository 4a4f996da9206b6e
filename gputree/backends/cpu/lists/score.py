"""The best test of a column in a node, by information gain, from its sorted list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.backends.cpu.layout import NodeList
from gputree.backends.cpu.lists.sieve import best_cut_of_fractions, new_sieve, read_run
from gputree.base.dtypes import MISSING_CODE, Int64s
from gputree.compilation import borrowing, inner, kernel, pick, written_out
from gputree.criteria.entropy import GAIN_BITS, TOLERANCE, in_steps, term


class ClassScan(NamedTuple):
    """Class weights, shape (K,), during a scan of a list."""

    known: Int64s  # of the node; missing values are subtracted once they are found
    left: Int64s  # left of the current place
    fresh: Int64s  # of the entries of a run; 0 between runs
    terms: Int64s  # of both sides, class by class


@inner
def new_scan(n_classes):
    """Scratch of one scan."""
    return ClassScan(
        np.empty(n_classes, np.int64),
        np.zeros(n_classes, np.int64),
        np.zeros(n_classes, np.int64),
        np.zeros(n_classes, np.int64),
    )


@borrowing
def take_missing(column, class_weights):
    """Subtract the missing values, last in the list, from the node's `class_weights`.

    Returns the end of the known values, and the weight that is missing.
    """
    item, end = column.item, column.end
    unknown = np.int64(0)
    while end > column.begin and column.code[end - 1] == MISSING_CODE:
        end -= 1
        w = np.int64(pick(column.weight, item[end], 1))
        class_weights[column.target[item[end]]] -= w
        unknown += w
    return end, unknown


@written_out
def before_missing(column, end):
    """The list without its missing values, which begin at `end`."""
    return NodeList(column.item, column.code, column.target, column.weight, column.begin, end)


@borrowing
def class_terms(information, weights):
    """Sum of the terms of class weights, and the sum of the weights."""
    terms = total = np.int64(0)
    for k in range(weights.size):
        terms += term(information, weights[k])
        total += weights[k]
    return terms, total


@borrowing
def least_side(limits, total, count):
    """Minimum units on either side of a cut; `total` + 1 where too few rows are known."""
    weight = limits.cut_share * np.float64(total)
    weight = limits.least if weight <= limits.least + limits.slack else min(weight, limits.most)
    if np.float64(count) < (2.0 * weight - limits.slack) * limits.unit:
        return total + 1
    return max(np.int64(np.ceil(weight - limits.slack)), np.int64(1))


@borrowing
def move_class(information, scan, k, weight):
    """Move weight of one class to the left; returns the change of the sum of terms."""
    scan.left[k] += weight
    terms = term(information, scan.left[k]) + term(information, scan.known[k] - scan.left[k])
    change = terms - scan.terms[k]
    scan.terms[k] = terms
    return change


@borrowing
def move_rows(information, column, begin, end, scan):
    """Move rows of several classes to the left; each class changes two terms, not each row."""
    item, target, fresh = column.item, column.target, scan.fresh
    for i in range(begin, end):
        fresh[target[item[i]]] += pick(column.weight, item[i], 1)
    change = np.int64(0)
    for i in range(begin, end):
        k = target[item[i]]
        if fresh[k] > 0:
            change += move_class(information, scan, k, fresh[k])
            fresh[k] = 0
    return change


@borrowing
def best_cut(information, column, scan, total, min_weight):
    """Best cut between sorted known values of weight `total`: of equal gains the first.

    A cut between two values of one and the same class is never the best (Fayyad and Irani
    1992), unless no cut is admissible on one side of it: others are not evaluated.

    Returns its gain in steps, the number of admissible cuts, the last entry left of it (-1 where no
    cut has a gain), and the weight up to it.
    """
    begin, end = column.begin, column.end
    for k in range(scan.known.size):
        scan.left[k] = 0
        scan.terms[k] = term(information, scan.known[k])
    # terms of the sides' classes and of the node, minus those of the node's classes
    gained = term(information, total)
    best = tries = before = best_weight = moved = np.int64(0)
    place = np.int64(-1)
    pending = start = begin  # rows from `pending` on are not yet moved
    pending_class = previous = np.int64(-2)
    # `before` is the weight of the entries begin .. start. Those up to `pending`, of weight
    # `moved`, are in `scan` and `gained`; the others, all of `pending_class` unless it is negative,
    # follow once a cut is evaluated.
    while start < end and total - before >= min_weight:
        stop, run, k = read_run(column, start)
        if before >= min_weight and start > begin:
            tries += 1
            if tries == 1 or total - before - run < min_weight or k < 0 or k != previous:
                if pending_class >= 0:
                    gained += move_class(information, scan, pending_class, before - moved)
                else:
                    gained += move_rows(information, column, pending, start, scan)
                split_terms = term(information, before) + term(information, total - before)
                gain = in_steps(information, gained - split_terms)
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


@borrowing
def score_numeric(rules, column, weight, whole, scan, sieve, f, j, out):
    """Best cut of numeric column f in node j, of weight `whole`."""
    information, code = rules.information, column.code
    end, unknown = take_missing(column, scan.known)
    if end == column.begin or code[column.begin] == code[end - 1]:
        return
    out.parts[f, j] = 2
    total = whole - unknown
    min_weight = least_side(rules.limits, total, end - column.begin)
    if total < 2 * min_weight:
        return
    present = before_missing(column, end)
    if weight is None:
        gain, tries, place, before = best_cut(information, present, scan, total, min_weight)
    else:
        gain, tries, place, before = best_cut_of_fractions(
            information, present, scan.known, sieve, total, min_weight
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


@borrowing
def fresh_terms(information, column, begin, end, fresh):
    """Sum of the class terms of the weights `fresh` of the entries ``begin .. end``; zeroes them.

    Loops over classes or entries, whichever are fewer.
    """
    terms = np.int64(0)
    if fresh.size <= end - begin:
        for k in range(fresh.size):
            terms += term(information, fresh[k])
            fresh[k] = 0
        return terms
    for i in range(begin, end):
        k = column.target[column.item[i]]
        if fresh[k] > 0:
            terms += term(information, fresh[k])
            fresh[k] = 0
    return terms


@borrowing
def score_nominal(rules, column, whole, scan, f, j, out):
    """One branch for each category of column f in node j, of weight `whole`."""
    information, limits = rules.information, rules.limits
    item, code, target, weight = column.item, column.code, column.target, column.weight
    begin, end, unknown = column.begin, column.end, np.int64(0)
    if not rules.missing_is_category:
        end, unknown = take_missing(column, scan.known)
    if end == begin or code[begin] == code[end - 1]:
        return
    class_sum, total = class_terms(information, scan.known)
    gain = term(information, total) - class_sum
    split = term(information, whole) - term(information, unknown)
    parts = heavy = 0
    start, branch = begin, np.int64(0)
    # `scan.fresh` and `branch` are the weights of the entries start .. i, of one category; `gain`
    # and `split` have the terms of the categories before.
    for i in range(begin, end):
        e = np.uintp(item[i])
        w = np.int64(pick(weight, e, 1))
        scan.fresh[np.uintp(target[e])] += w
        branch += w
        if i + 1 < end and code[i + 1] == code[i]:
            continue
        branch_term = term(information, branch)
        gain += fresh_terms(information, column, start, i + 1, scan.fresh) - branch_term
        split -= branch_term
        parts += 1
        heavy += np.float64(branch) >= limits.least - limits.slack
        start, branch = i + 1, np.int64(0)
    out.parts[f, j] = parts
    out.split[f, j] = split
    out.tries[f, j] = heavy
    if heavy >= 2:
        out.gain[f, j] = max(in_steps(information, gain), 0)


@borrowing
def run_terms(information, column, begin, end, scan):
    """Class terms of entries ``begin .. end``, change of the terms of the rest, and weight."""
    item, target, fresh = column.item, column.target, scan.fresh
    terms = change = total = np.int64(0)
    for i in range(begin, end):
        w = np.int64(pick(column.weight, item[i], 1))
        fresh[target[item[i]]] += w
        total += w
    for i in range(begin, end):
        k = target[item[i]]
        if fresh[k] > 0:
            terms += term(information, fresh[k])
            change += term(information, scan.known[k] - fresh[k])
            change -= term(information, scan.known[k])
            fresh[k] = 0
    return terms, change, total


@borrowing
def score_one_against_rest(rules, column, whole, scan, f, j, out):
    """Score the category of highest gain ratio, or gain, against all others in node j.

    Of equals it is the first. The node has the weight `whole`. Both sides need the minimum weight
    of a branch.
    """
    information, limits, code, begin = rules.information, rules.limits, column.code, column.begin
    end, unknown = take_missing(column, scan.known)
    if end == begin or code[begin] == code[end - 1]:
        return
    out.parts[f, j] = 2
    class_sum, total = class_terms(information, scan.known)
    before = term(information, total) - class_sum
    bits = term(information, whole) - term(information, unknown)
    best = 0.0
    start = begin
    # `best` is the highest ratio of the categories before `start`, with its fields in `out`.
    while start < end:
        stop = start + 1
        while stop < end and code[stop] == code[start]:
            stop += 1
        terms, change, branch = run_terms(information, column, start, stop, scan)
        lighter = np.float64(min(branch, total - branch))
        if lighter >= limits.least - limits.slack:
            split_terms = term(information, branch) + term(information, total - branch)
            gain = max(in_steps(information, before + terms + class_sum + change - split_terms), 0)
            split = np.float64(bits - split_terms) / information.scale
            worth = 0.0
            if split > TOLERANCE:
                divisor = np.float64(whole) * information.unit if rules.by_gain else split
                worth = np.float64(gain) / np.float64(1 << GAIN_BITS) / divisor
            if out.tries[f, j] == 0 or worth > best + TOLERANCE:
                best = worth
                out.gain[f, j] = gain
                out.split[f, j] = bits - split_terms
                out.cut[f, j] = code[start]
            out.tries[f, j] += 1
        start = stop


@kernel
def score_columns(rules, lists, entries, nodes, columns, first, last, out):
    """Score columns ``columns[0] .. columns[1]`` in nodes ``first .. last``."""
    n_classes = nodes.weights.shape[1]
    scan = new_scan(n_classes)
    sieve = new_sieve(n_classes)
    for f in range(columns[0], columns[1]):
        score_column(rules, lists, entries, nodes, f, first, last, scan, sieve, out)


@borrowing
def score_column(rules, lists, entries, nodes, f, first, last, scan, sieve, out):
    """Score column f in nodes ``first .. last``."""
    item, code = lists.item[f], lists.code[f]
    for j in range(first, last):
        if nodes.resting[f, j]:
            continue
        whole = np.int64(0)
        for k in range(scan.known.size):
            scan.known[k] = nodes.weights[j, k]
            whole += nodes.weights[j, k]
        begin, end = nodes.begin[j], nodes.end[j]
        column = NodeList(item, code, entries.target, entries.weight, begin, end)
        if rules.nominal[f] and rules.one_against_rest:
            score_one_against_rest(rules, column, whole, scan, f, j, out)
        elif rules.nominal[f]:
            score_nominal(rules, column, whole, scan, f, j, out)
        else:
            score_numeric(rules, column, entries.weight, whole, scan, sieve, f, j, out)
