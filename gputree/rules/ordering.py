"""The order of classes, the class of rows that no rule covers, and rules that only do harm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import inner, kernel
from gputree.rules.coverage import Coverage
from gputree.rules.simplification import Rows

# The prediction of a row that no rule covers.
_NO_RULE = np.int32(0x7FFFFFFF)


def order_classes(covers: Coverage, label: NDArray[np.int64], rows: Rows) -> list[int]:
    """Classes that have rules, in the order in which they are tried.

    The next one is that whose rules cover the smallest weight of other classes, among the rows that
    no class before it covers; ties go to the first class.

    Parameters
    ----------
    covers : Coverage
        Of R rules.
    label : int64 array of shape (R,)
        The class of each.
    rows : Rows
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


def _rows_of(covers: Coverage, rules: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.concatenate([covers.rows[:0], *(covers.of(rule) for rule in rules.tolist())])


def _harm(found: NDArray[np.int32], label: int, rows: Rows) -> int:
    """Weight of other classes among some rows."""
    return int(rows.weights[found[rows.label[found] != label]].sum())


def default_class(covers: Coverage, rows: Rows) -> int:
    """The class of most weight among rows without a rule; of equals the one of most in all."""
    alone = np.diff(covers.row_begin) == 0
    found = np.bincount(rows.label[alone], rows.weights[alone], minlength=rows.n_classes)
    return int(np.lexsort((-rows.class_weights, -found))[0])


def harmless(
    covers: Coverage, label: NDArray[np.int64], default: int, rows: Rows
) -> NDArray[np.bool_]:
    """Which rules are left when those that do more harm than good are removed, one by one.

    A rule decides the rows that it covers and no rule before it does. The first rule whose removal
    reduces the weighted training errors is removed, until there is none, as in C4.5rules.

    Parameters
    ----------
    covers : Coverage
        Of R rules, in the order in which they are tried.
    label : int64 array of shape (R,)
        The class of each.
    default : int
        The class of rows without a rule.
    rows : Rows
    """
    left = np.ones(label.size, np.bool_)
    _remove(*covers, label, default, rows.label, rows.weights, left)
    return left


@inner
def _next(
    row: int,
    after: int,
    row_begin: NDArray[np.int64],
    rules: NDArray[np.int32],
    left: NDArray[np.bool_],
) -> Any:
    """The first rule that is left for a row, behind another."""
    for i in range(row_begin[row], row_begin[row + 1]):
        if rules[i] > after and left[rules[i]]:
            return rules[i]
    return _NO_RULE


@inner
def _worth(
    row: int,
    first: int,
    second: int,
    label: NDArray[np.int64],
    default: int,
    target: NDArray[np.int64],
    weight: NDArray[np.int64],
) -> Any:
    """What a row gains by its first rule, compared with what would decide it without."""
    otherwise = default if second == _NO_RULE else label[second]
    right = np.int64(label[first] == target[row])
    return weight[row] * (right - np.int64(otherwise == target[row]))


@kernel
def _remove(
    rule_begin: NDArray[np.int64],
    rows: NDArray[np.int32],
    row_begin: NDArray[np.int64],
    rules: NDArray[np.int32],
    label: NDArray[np.int64],
    default: int,
    target: NDArray[np.int64],
    weight: NDArray[np.int64],
    left: NDArray[np.bool_],
) -> None:
    n = target.size
    first, second = np.empty(n, np.int32), np.empty(n, np.int32)
    worth = np.zeros(label.size, np.int64)
    for row in range(n):
        first[row] = _next(row, -1, row_begin, rules, left)
        second[row] = _next(row, first[row], row_begin, rules, left)
        if first[row] != _NO_RULE:
            worth[first[row]] += _worth(
                row, first[row], second[row], label, default, target, weight
            )
    while True:
        harmful = 0
        while harmful < label.size and not (left[harmful] and worth[harmful] < 0):
            harmful += 1
        if harmful == label.size:
            return
        left[harmful] = False
        for i in range(rule_begin[harmful], rule_begin[harmful + 1]):
            row = rows[i]
            if first[row] != harmful and second[row] != harmful:
                continue
            if first[row] != harmful:
                worth[first[row]] -= _worth(
                    row, first[row], second[row], label, default, target, weight
                )
            first[row] = _next(row, -1, row_begin, rules, left)
            second[row] = _next(row, first[row], row_begin, rules, left)
            if first[row] != _NO_RULE:
                worth[first[row]] += _worth(
                    row, first[row], second[row], label, default, target, weight
                )
