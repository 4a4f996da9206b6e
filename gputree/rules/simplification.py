"""Conditions of rules are dropped while that lowers a pessimist's estimate of their errors.

A row that misses one condition of a rule is covered once that condition is gone. So one pass over
the table gives, for every rule and every condition of it, what the rule would cover without it:

    conditions met by a row    1 1 1    covered by the rule
                               1 0 1    covered without the second condition
                               0 0 1    not covered without any one of them
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.bits import SPAN, WORD, Words, pack, weigh
from gputree.compilation import inner, kernel
from gputree.pruning.error_limit import ErrorLimit, added_errors
from gputree.rules.conditions import Rules
from gputree.rules.masks import Block, Masks, groups
from gputree.threads import run, spans

# Rules with a higher pessimistic error rate are removed: Release 8 never applies them.
MOST_ERROR = 0.7


class Rows(NamedTuple):
    """Training rows.

    Attributes
    ----------
    values : float array of shape (n, d)
        Numbers, codes of categories, NaN where missing.
    label : int64 array of shape (n,)
        Codes of classes.
    weight : int64 array of shape (n,), or of shape (0,)
        Weights in units; without any, each row is one unit.
    unit : float
        Weight of a unit.
    n_classes : int
    """

    values: NDArray[np.floating]
    label: NDArray[np.int64]
    weight: NDArray[np.int64]
    unit: float
    n_classes: int

    @property
    def class_weights(self) -> NDArray[np.int64]:
        """Weight of each class, in units."""
        counted = np.bincount(self.label, self.weights, minlength=self.n_classes)
        return np.rint(counted).astype(np.int64)

    @property
    def weights(self) -> NDArray[np.int64]:
        """A weight for every row, in units."""
        return self.weight if self.weight.size else np.ones(self.label.size, np.int64)


def simplify(
    rules: Rules, rows: Rows, limit: ErrorLimit, n_threads: int
) -> tuple[Rules, NDArray[np.float64]]:
    """Drop conditions greedily, then rules with high error rates.

    Parameters
    ----------
    rules : Rules
    rows : Rows
    limit : ErrorLimit
    n_threads : int

    Returns
    -------
    rules : Rules
        Different rules, each of at least one condition and with rows.
    error : float64 array of shape (R,)
        The pessimistic error rate of each.
    """
    kept = np.ones(rules.condition.size, np.bool_)
    error = np.ones(rules.label.size)
    for begin, end in groups(rules, rows.label.size):
        own = kept[rules.begin[begin] : rules.begin[end]]
        _simplify(rules.take(np.arange(begin, end)), rows, limit, n_threads, own, error[begin:end])
    return _useful(rules, kept, error, default_errors(rows))


def _simplify(
    rules: Rules,
    rows: Rows,
    limit: ErrorLimit,
    n_threads: int,
    kept: NDArray[np.bool_],
    error: NDArray[np.float64],
) -> None:
    """Drop conditions from `kept`, and write the error rates of what is left."""
    masks = Masks(rows.values, rules.conditions)
    rest = np.arange(rules.label.size)
    while rest.size:
        covered, without = _count(rules, kept, rest, rows, masks, n_threads)
        dropped = np.zeros(rest.size, np.bool_)
        _drop(rules.begin, kept, rest, covered, without, rows.unit, limit, error, dropped)
        rest = rest[dropped]


def default_errors(rows: Rows) -> NDArray[np.float64]:
    """Error rate of the rule without conditions for each class, by Laplace; shape (K,)."""
    weight = rows.class_weights * rows.unit
    return 1.0 - (weight + 1.0) / (weight.sum() + 2.0)


def _count(
    rules: Rules,
    kept: NDArray[np.bool_],
    rest: NDArray[np.int64],
    rows: Rows,
    masks: Masks,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights that rules cover, and would cover besides without each condition.

    Returns
    -------
    covered : int64 array of shape (len(rest), 2)
        Of all rows, and of those of the rule's class.
    without : int64 array of shape (conditions of all rules, 2)
    """
    covered = np.zeros((rest.size, 2), np.int64)
    without = np.zeros((rules.condition.size, 2), np.int64)
    for block in masks:
        of_class = pack(_labels(rows, block)[None, :] == np.arange(rows.n_classes)[:, None])
        weight = rows.weight[block.first : block.first + block.rows.size * WORD]

        def count(
            begin: int,
            end: int,
            block: Block = block,
            of_class: Words = of_class,
            weight: NDArray[np.int64] = weight,
        ) -> None:
            part = rest[begin:end], covered[begin:end]
            tables = block.rows, block.masks, of_class, weight
            _count_block(*tables, rules.begin, rules.condition, rules.label, kept, *part, without)

        run(n_threads, count, spans(rules.sizes[rest], n_threads, 64))
    return covered, without


def _labels(rows: Rows, block: Block) -> NDArray[np.int64]:
    return rows.label[block.first : block.first + block.rows.size * WORD]


@kernel
def _count_block(
    rows: Words,
    masks: Words,
    of_class: Words,
    weight: NDArray[np.int64],
    begin: NDArray[np.int64],
    condition: NDArray[np.int64],
    label: NDArray[np.int64],
    kept: NDArray[np.bool_],
    rules: NDArray[np.int64],
    covered: NDArray[np.int64],
    without: NDArray[np.int64],
) -> None:
    met, missed = np.empty(SPAN, np.uint64), np.empty(SPAN, np.uint64)
    for first in range(0, rows.size, SPAN):
        width = min(SPAN, rows.size - first)
        for r in range(rules.size):
            rule = rules[r]
            if not _meet(
                rows,
                masks,
                first,
                width,
                begin[rule],
                begin[rule + 1],
                condition,
                kept,
                met,
                missed,
            ):
                continue
            own = of_class[label[rule]]
            for j in range(width):
                w = first + j
                if met[j] != 0:
                    covered[r, 0] += weigh(met[j], w * WORD, weight)
                    covered[r, 1] += weigh(met[j] & own[w], w * WORD, weight)
                if missed[j] == 0:
                    continue
                for i in range(begin[rule], begin[rule + 1]):
                    if kept[i]:
                        only = missed[j] & ~masks[condition[i], w]
                        if only != 0:
                            without[i, 0] += weigh(only, w * WORD, weight)
                            without[i, 1] += weigh(only & own[w], w * WORD, weight)


@inner
def _meet(
    rows: Words,
    masks: Words,
    first: int,
    width: int,
    begin: int,
    end: int,
    condition: NDArray[np.int64],
    kept: NDArray[np.bool_],
    met: Words,
    missed: Words,
) -> bool:
    """Find the rows of some words that satisfy all conditions of a rule, and all but one."""
    for j in range(width):
        met[j], missed[j] = rows[first + j], np.uint64(0)
    for i in range(begin, end):
        if kept[i]:
            mask = masks[condition[i], first : first + width]
            some = np.uint64(0)
            for j in range(width):  # without a branch: several words at a time
                missed[j] = (missed[j] & mask[j]) | (met[j] & ~mask[j])
                met[j] &= mask[j]
                some |= met[j] | missed[j]
            if some == 0:
                return False
    return True


@inner
def error_rate(weight: float, errors: float, limit: ErrorLimit) -> float:
    """The pessimistic error rate of a rule; 1 where it covers nothing."""
    if weight <= 0.0:
        return 1.0
    return (errors + added_errors(weight, errors, limit)) / weight


@kernel
def _drop(
    begin: NDArray[np.int64],
    kept: NDArray[np.bool_],
    rules: NDArray[np.int64],
    covered: NDArray[np.int64],
    without: NDArray[np.int64],
    unit: float,
    limit: ErrorLimit,
    error: NDArray[np.float64],
    dropped: NDArray[np.bool_],
) -> None:
    """Drop the condition of each rule without which its error rate is least; of equals the last."""
    for r in range(rules.size):
        rule = rules[r]
        all_rows, own = covered[r, 0], covered[r, 1]
        error[rule] = error_rate(all_rows * unit, (all_rows - own) * unit, limit)
        best, least = begin[rule + 1], error[rule]
        for i in range(begin[rule], begin[rule + 1]):
            if kept[i]:
                more, more_own = all_rows + without[i, 0], own + without[i, 1]
                rate = error_rate(more * unit, (more - more_own) * unit, limit)
                if rate <= least:
                    best, least = i, rate
        if best < begin[rule + 1]:
            kept[best] = False
            dropped[r] = True


def _useful(
    rules: Rules,
    kept: NDArray[np.bool_],
    error: NDArray[np.float64],
    default_error: NDArray[np.float64],
) -> tuple[Rules, NDArray[np.float64]]:
    """Distinct rules with conditions and useful error rates.

    Those below the default of their class, and at most `MOST_ERROR`.
    """
    condition = rules.condition[kept]
    begin = np.append(0, np.cumsum(kept))[rules.begin]
    left = Rules(rules.conditions, begin, condition, rules.label)
    seen: set[tuple[int, ...]] = set()
    found = []
    useful = (error < default_error[rules.label]) & (error <= MOST_ERROR)
    for rule in np.flatnonzero((left.sizes > 0) & useful).tolist():
        key = (int(left.label[rule]), *sorted(left.of(rule).tolist()))
        if key not in seen:
            seen.add(key)
            found.append(rule)
    chosen = np.array(found, np.int64)
    return left.take(chosen), error[chosen]
