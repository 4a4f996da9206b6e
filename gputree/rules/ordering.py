"""Order of classes, default class, and removal of rules that do only harm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.compilation import inner, kernel
from gputree.dtypes import Bools, Int32s, Int64s
from gputree.rules.coverage import Coverage
from gputree.rules.simplification import WeightedRows

_NO_RULE = np.int32(0x7FFFFFFF)  # the prediction of a row that no rule covers


def order_classes(covers: Coverage, label: Int64s, rows: WeightedRows) -> list[int]:
    """Order the classes that have rules; `label` is the class of each rule.

    The next class is the one whose rules cover the smallest weight of other classes, among the rows
    that no class before it covers; ties go to the first class.
    """
    order: list[int] = []
    gone = np.zeros(rows.label.size, np.bool_)
    rest = np.unique(label).tolist()
    covered = {c: np.unique(_rows_of(covers, np.flatnonzero(label == c))) for c in rest}
    while rest:
        best = min(rest, key=lambda c: _harm(covered[c], c, rows))  # ties: the first
        order.append(best)
        rest.remove(best)
        gone[covered.pop(best)] = True
        covered = {c: found[~gone[found]] for c, found in covered.items()}
    return order


def _rows_of(covers: Coverage, rules: Int64s) -> Int32s:
    return np.concatenate([covers.rows[:0], *(covers.of(rule) for rule in rules.tolist())])


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
