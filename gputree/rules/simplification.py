"""Drop conditions of rules while that lowers the pessimistic estimate of their errors.

A row that misses one condition of a rule is covered once that condition is dropped. So one pass
over the table gives, for every rule and every condition of it, the coverage of the rule without it:

    conditions met by a row    1 1 1    covered by the rule
                               1 0 1    covered without the second condition
                               0 0 1    not covered without any one of them
"""

from typing import NamedTuple

import numpy as np

from gputree.arithmetic.bits import SPAN, WORD, Words, pack, weigh
from gputree.base.dtypes import Bools, Floats, Int64s, Values
from gputree.base.threads import run, spans
from gputree.compilation import inner, kernel
from gputree.pruning.error_limit import ErrorLimit, added_errors
from gputree.rules.conditions import Rules
from gputree.rules.coverage import MaskBlock, Masks, groups

# Rules with a higher pessimistic error rate are removed: Release 8 never applies them.
MOST_ERROR = 0.7


class WeightedRows(NamedTuple):
    """Training rows."""

    values: Values  # (n, d): numbers, codes of categories, NaN where missing
    label: Int64s  # (n,): codes of classes
    weight: Int64s  # (n,), or of shape (0,): weights in units; without any, each row is one unit
    unit: float  # weight of a unit
    n_classes: int

    @property
    def class_weights(self) -> Int64s:
        """Weight of each class, in units."""
        counted = np.bincount(self.label, self.weights, minlength=self.n_classes)
        return np.rint(counted).astype(np.int64)

    @property
    def weights(self) -> Int64s:
        """Weight of every row, in units."""
        return self.weight if self.weight.size else np.ones(self.label.size, np.int64)


class _Left(NamedTuple):
    """Remaining conditions of rules, for kernels.

    Rule r has the conditions ``condition[i]`` of ``begin[r] <= i < begin[r + 1]`` that are `kept`,
    and predicts ``label[r]``.
    """

    begin: Int64s
    condition: Int64s
    label: Int64s
    kept: Bools


def simplify(
    rules: Rules, rows: WeightedRows, limit: ErrorLimit, n_threads: int
) -> tuple[Rules, Floats]:
    """Drop conditions greedily, then rules with high error rates.

    Returns different rules, each of at least one condition and with rows, and their pessimistic
    error rates.
    """
    kept = np.ones(rules.condition.size, np.bool_)
    error = np.ones(rules.label.size)
    for begin, end in groups(rules, rows.label.size):
        kept_here = kept[rules.begin[begin] : rules.begin[end]]
        _simplify(
            rules.take(np.arange(begin, end)), rows, limit, n_threads, kept_here, error[begin:end]
        )
    return _useful(rules, kept, error, default_errors(rows))


def _simplify(
    rules: Rules, rows: WeightedRows, limit: ErrorLimit, n_threads: int, kept: Bools, error: Floats
) -> None:
    """Drop conditions from `kept`, and write the error rates of the remaining rules."""
    masks = Masks(rows.values, rules.conditions)
    left = _Left(rules.begin, rules.condition, rules.label, kept)
    rest = np.arange(rules.label.size)
    while rest.size:
        covered, without = _count(left, rest, rows, masks, n_threads)
        dropped = np.zeros(rest.size, np.bool_)
        _drop(left, rest, covered, without, rows.unit, limit, error, dropped)
        rest = rest[dropped]


def default_errors(rows: WeightedRows) -> Floats:
    """Error rate of the rule without conditions for each class, by Laplace; shape (K,)."""
    weight = rows.class_weights * rows.unit
    return 1.0 - (weight + 1.0) / (weight.sum() + 2.0)


def _count(
    left: _Left, rest: Int64s, rows: WeightedRows, masks: Masks, n_threads: int
) -> tuple[Int64s, Int64s]:
    """Weights that rules cover, and would cover in addition without each condition.

    Two numbers each: of all rows, and of those of the rule's class.
    """
    covered = np.zeros((rest.size, 2), np.int64)
    without = np.zeros((left.condition.size, 2), np.int64)
    parts = spans(np.diff(left.begin)[rest], n_threads, 64)
    for block in masks:
        here = slice(block.first, block.first + block.rows.size * WORD)
        of_class = pack(rows.label[here][None, :] == np.arange(rows.n_classes)[:, None])
        tables = block, of_class, rows.weight[here], left
        tasks = [(*tables, rest[a:b], covered[a:b], without) for a, b in parts]
        run(n_threads, _count_block, tasks)
    return covered, without


@kernel
def _count_block(
    block: MaskBlock,
    of_class: Words,
    weight: Int64s,
    left: _Left,
    rules: Int64s,
    covered: Int64s,
    without: Int64s,
) -> None:
    """Add the weights of a block's rows that rules cover, and would cover without a condition.

    `of_class` are the rows of each class, `weight` the weights of the block's rows, if any.
    """
    met, missed = np.empty(SPAN, np.uint64), np.empty(SPAN, np.uint64)
    for first in range(0, block.rows.size, SPAN):
        width = min(SPAN, block.rows.size - first)
        for r in range(rules.size):
            rule = rules[r]
            if not _meet(block, first, width, left, rule, met, missed):
                continue
            same_class = of_class[left.label[rule]]
            for j in range(width):
                w = first + j
                if met[j] != 0:
                    covered[r, 0] += weigh(met[j], w * WORD, weight)
                    covered[r, 1] += weigh(met[j] & same_class[w], w * WORD, weight)
                if missed[j] == 0:
                    continue
                for i in range(left.begin[rule], left.begin[rule + 1]):
                    if left.kept[i]:
                        only = missed[j] & ~block.masks[left.condition[i], w]
                        if only != 0:
                            without[i, 0] += weigh(only, w * WORD, weight)
                            without[i, 1] += weigh(only & same_class[w], w * WORD, weight)


@inner
def _meet(
    block: MaskBlock, first: int, width: int, left: _Left, rule: int, met: Words, missed: Words
) -> bool:
    """Find the rows of some words that satisfy all conditions of a rule, and all but one."""
    for j in range(width):
        met[j], missed[j] = block.rows[first + j], np.uint64(0)
    for i in range(left.begin[rule], left.begin[rule + 1]):
        if left.kept[i]:
            mask = block.masks[left.condition[i], first : first + width]
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
    left: _Left,
    rules: Int64s,
    covered: Int64s,
    without: Int64s,
    unit: float,
    limit: ErrorLimit,
    error: Floats,
    dropped: Bools,
) -> None:
    """Drop the condition of each rule without which its error rate is lowest; ties: the last."""
    for r in range(rules.size):
        rule = rules[r]
        all_rows, correct = covered[r, 0], covered[r, 1]
        error[rule] = error_rate(all_rows * unit, (all_rows - correct) * unit, limit)
        best, lowest = left.begin[rule + 1], error[rule]
        for i in range(left.begin[rule], left.begin[rule + 1]):
            if left.kept[i]:
                more, more_correct = all_rows + without[i, 0], correct + without[i, 1]
                rate = error_rate(more * unit, (more - more_correct) * unit, limit)
                if rate <= lowest:
                    best, lowest = i, rate
        if best < left.begin[rule + 1]:
            left.kept[best] = False
            dropped[r] = True


def _useful(
    rules: Rules, kept: Bools, error: Floats, default_error: Floats
) -> tuple[Rules, Floats]:
    """Remove duplicate rules, rules without conditions, and rules with high error rates.

    Error rates are below the default of their class, and at most `MOST_ERROR`.
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
