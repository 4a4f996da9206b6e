"""Conversion of a tree and its rows to an ordered set of rules (Quinlan 1993, chapter 5).

Order of classes, default class, and removal of rules that do only harm.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import prediction
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.compilation import inner, kernel
from gputree.pruning.error_limit import ErrorLimit
from gputree.rules.conditions import Rules, rules_of_leaves
from gputree.rules.coverage import Coverage, coverage
from gputree.rules.selection import rule_bits, select
from gputree.rules.simplification import WeightedRows, simplify
from gputree.tree import Tree
from gputree.tree.branches import add_up

_NO_RULE = np.int32(0x7FFFFFFF)  # the prediction of a row that no rule covers


def order_classes(covers: Coverage, label: Int64s, rows: WeightedRows) -> list[int]:
    """Order the classes that have rules; `label` is the class of each rule.

    The next class is the one whose rules cover the smallest weight of other classes, among the rows
    that no class before it covers; ties go to the first class.
    """
    order: list[int] = []
    gone = np.zeros(rows.label.size, np.bool_)
    rest = np.unique(label).tolist()
    covered = {}
    for c in rest:
        of_class = map(covers.of, np.flatnonzero(label == c).tolist())
        covered[c] = np.unique(np.concatenate([covers.rows[:0], *of_class]))
    while rest:
        best = min(rest, key=lambda c: _harm(covered[c], c, rows))  # ties: the first
        order.append(best)
        rest.remove(best)
        gone[covered.pop(best)] = True
        covered = {c: found[~gone[found]] for c, found in covered.items()}
    return order


def _harm(found: Int32s, label: int, rows: WeightedRows) -> int:
    """Weight of other classes among some rows."""
    return int(rows.weights[found[rows.label[found] != label]].sum())


def default_class(covers: Coverage, rows: WeightedRows) -> int:
    """Class with the largest weight among rows without a rule; of equals, over all rows."""
    alone = np.diff(covers.row_begin) == 0
    found = np.bincount(rows.label[alone], rows.weights[alone], minlength=rows.n_classes)
    return int(np.lexsort((-rows.class_weights, -found))[0])


def harmless(covers: Coverage, label: Int64s, default: int, rows: WeightedRows) -> Bools:
    """Mark the rules that are left when those that do more harm than good are removed, one by one.

    A rule decides the rows that it covers and no rule before it does; `default` is the class of
    rows without one. The first rule whose removal reduces the weighted training errors is removed,
    until there is none, as in C4.5rules.
    """
    left = np.ones(label.size, np.bool_)
    _remove(covers, _Decisions(label, default, rows.label, rows.weights), left)
    return left


class _Decisions(NamedTuple):
    """The classes of R rules, the one of rows without a rule, and classes and weights of n rows."""

    label: Int64s
    default: int
    target: Int64s
    weight: Int64s


@inner
def _next(row: int, after: int, covers: Coverage, left: Bools) -> Any:
    """The next remaining rule for a row, after another one."""
    for i in range(covers.row_begin[row], covers.row_begin[row + 1]):
        if covers.rules[i] > after and left[covers.rules[i]]:
            return covers.rules[i]
    return _NO_RULE


@inner
def _worth(row: int, first: int, second: int, given: _Decisions) -> Any:
    """Gain of a row by its first rule, compared with the decision without that rule."""
    otherwise = given.default if second == _NO_RULE else given.label[second]
    right = np.int64(given.label[first] == given.target[row])
    return given.weight[row] * (right - np.int64(otherwise == given.target[row]))


@kernel
def _remove(covers: Coverage, given: _Decisions, left: Bools) -> None:
    n = given.target.size
    first, second = np.empty(n, np.int32), np.empty(n, np.int32)
    worth = np.zeros(left.size, np.int64)  # of each rule, over the rows that it decides
    for row in range(n):
        first[row] = _next(row, -1, covers, left)
        second[row] = _next(row, first[row], covers, left)
        if first[row] != _NO_RULE:
            worth[first[row]] += _worth(row, first[row], second[row], given)
    while True:
        harmful = 0
        while harmful < left.size and not (left[harmful] and worth[harmful] < 0):
            harmful += 1
        if harmful == left.size:
            return
        left[harmful] = False
        # Rows that it decided go to their next rule, and rows whose next rule it was get another.
        for i in range(covers.rule_begin[harmful], covers.rule_begin[harmful + 1]):
            row = covers.rows[i]
            if first[row] != harmful and second[row] != harmful:
                continue
            if first[row] != harmful:
                worth[first[row]] -= _worth(row, first[row], second[row], given)
            first[row] = _next(row, -1, covers, left)
            second[row] = _next(row, first[row], covers, left)
            if first[row] != _NO_RULE:
                worth[first[row]] += _worth(row, first[row], second[row], given)


class LearningOptions(NamedTuple):
    """Options of learning rules; see `gputree.rules.C45Rules`."""

    limit: ErrorLimit
    rule_weight: float
    redundancy: float
    n_threads: int


class Learned(NamedTuple):
    """R rules in the order in which they are tried."""

    rules: Rules
    confidence: Floats  # (R,): one minus the pessimistic error rates
    class_weights: Floats  # (R, K): weight of the training rows that each rule covers, by class
    default: int  # code of the class of rows without a rule
    # (R + 1, K): weight of the training rows that each rule decides, by class, and last of those
    # that no rule covers
    decided_weights: Floats


def learn(
    tree: Tree, rows: WeightedRows, n_categories: Int64s, options: LearningOptions
) -> Learned:
    """Learn the rules of a tree and its rows: simplify, choose class by class, order.

    `n_categories` are the numbers of categories of each column, 0 for numbers.
    """
    leaves = rules_of_leaves(tree)
    rows = _by_leaf(tree, rows, options.n_threads)
    rules, error = simplify(leaves, rows, options.limit, options.n_threads)
    covers = coverage(rules, rows.values)
    chosen = _chosen(rules, covers, rows, n_categories, options)
    rules, error, covers = rules.take(chosen), error[chosen], covers.take(chosen)
    order = _by_confidence(rules, error, covers, rows)
    rules, error, covers = rules.take(order), error[order], covers.take(order)
    places = {c: i for i, c in enumerate(order_classes(covers, rules.label, rows))}
    order = np.argsort([places[c] for c in rules.label.tolist()], kind="stable")
    default = default_class(covers, rows)
    left = harmless(covers.take(order), rules.label[order], default, rows)
    order = order[left]
    rules, covers = rules.take(order), covers.take(order)
    covered = _by_class(covers.rules_of_pairs, rows, covers.rows, order.size)
    decided = _by_class(covers.first_rules, rows, np.arange(rows.label.size), order.size + 1)
    return Learned(rules, 1.0 - error[order], covered, default, decided)


def _by_leaf(tree: Tree, rows: WeightedRows, n_threads: int) -> WeightedRows:
    """Sort the rows by leaf, so that those of a rule are next to each other."""
    reached = prediction.apply(tree, rows.values, n_threads=n_threads)
    order = np.argsort(_from_the_left(tree)[reached], kind="stable")
    weight = rows.weight[order] if rows.weight.size else rows.weight
    return rows._replace(values=rows.values[order], label=rows.label[order], weight=weight)


def _from_the_left(tree: Tree) -> Int64s:
    """Number of leaves to the left of each node's leaves, shape (n_nodes,)."""
    leaves = add_up(tree.parent, tree.is_leaf.astype(np.int64))
    before = np.cumsum(leaves) - leaves
    found = np.zeros(tree.n_nodes, np.int64)
    for level in tree.levels()[1:]:
        up = tree.parent[level]
        found[level] = found[up] + before[level] - before[tree.first_child[up]]
    return found


def _by_class(
    rule: NDArray[np.integer], rows: WeightedRows, places: NDArray[np.integer], n_rules: int
) -> Floats:
    """Weight by rule and class of some rows, each with a rule; shape (n_rules, K)."""
    cell = rule.astype(np.int64) * rows.n_classes + rows.label[places]
    units = np.bincount(cell, rows.weights[places], minlength=n_rules * rows.n_classes)
    return np.asarray(units * rows.unit, np.float64).reshape(n_rules, rows.n_classes)


def _by_confidence(rules: Rules, error: Floats, covers: Coverage, rows: WeightedRows) -> Int64s:
    """Order rules by their error rates; ties by weight, then by the number of conditions."""
    weights = rows.weights
    weight = np.array([weights[covers.of(r)].sum() for r in range(error.size)], np.int64)
    return np.lexsort((rules.sizes, -weight, error))


def _chosen(
    rules: Rules,
    covers: Coverage,
    rows: WeightedRows,
    n_categories: Int64s,
    options: LearningOptions,
) -> Int64s:
    bits = rule_bits(rules, rows, n_categories, options.redundancy)
    found = [np.empty(0, np.int64)]
    for label in np.unique(rules.label).tolist():
        of_label = np.flatnonzero(rules.label == label)
        of_class = rows.label == label
        chosen, _ = select(
            covers.take(of_label),
            rows,
            of_class,
            bits[of_label],
            options.rule_weight,
            options.n_threads,
        )
        found.append(of_label[chosen])
    return np.sort(np.concatenate(found))
