"""Selection of the rules of a class that describe it in the smallest number of bits.

Bits are those of a message of rules and their exceptions (Quinlan 1993, 5.2; 1995). It identifies
the rows of a class: by rules for it, and the rows where they are wrong. The formulas are those of
C4.5 Release 8, and reproduce its published session on the golf table.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from gputree.arithmetic.bits import mix
from gputree.base.dtypes import Bools, Floats, Int32s, Int64s
from gputree.base.threads import run
from gputree.compilation import inner, jitable, kernel
from gputree.criteria.shared import log2
from gputree.rules.conditions import Condition, Rules
from gputree.rules.coverage import Coverage
from gputree.rules.simplification import WeightedRows

IMPOSSIBLE = 1e6  # more bits than any message has: for an exception of probability 0


def rule_bits(rules: Rules, rows: WeightedRows, n_categories: Int64s, redundancy: float) -> Floats:
    """Bits of each rule: of its conditions and their number, minus the bits of their order.

    `n_categories` has those of each column, 0 for numbers; `redundancy` is the number of columns
    per relevant column: the bits that identify a column are divided by it.
    """
    value = column_bits(rows, n_categories)
    name = entropy_bits(value) / redundancy
    bits = np.array([name + _value_bits(one, value, n_categories) for one in rules.conditions])
    sizes = rules.sizes
    total = np.add.reduceat(bits[rules.condition], rules.begin[:-1]) if sizes.size else np.empty(0)
    return total + np.log2(sizes) - log2_factorial(sizes)


def column_bits(rows: WeightedRows, n_categories: Int64s) -> Floats:
    """Bits that identify a value in a test of each column, shape (d,).

    For categories the entropy; for m > 1 numbers one bit for the side, and half of log2 m. In a
    column with missing values, missing counts as one more number, as in Release 8.
    """
    found = np.zeros(n_categories.size)
    for feature in range(n_categories.size):
        column = rows.values[:, feature]
        present = ~np.isnan(column)
        if n_categories[feature]:
            codes = np.where(present & (column >= 0), column, n_categories[feature]).astype(
                np.int64
            )
            count = np.bincount(codes, rows.weights, minlength=n_categories[feature] + 1)
            share = count[:-1][count[:-1] > 0] / count.sum()
            found[feature] = -(share * np.log2(share)).sum()
        else:
            different = np.unique(column[present]).size + int(not present.all())
            found[feature] = 1.0 + np.log2(different) / 2.0 if different > 1 else 0.0
    return found


def entropy_bits(parts: Floats) -> float:
    """Entropy of fractions of a whole; 0 for an empty whole."""
    share = parts[parts > 0] / max(parts.sum(), np.finfo(np.float64).tiny)
    return float(-(share * np.log2(share)).sum())


def log2_factorial(n: Int64s) -> Floats:
    """``log2(n!)``."""
    return gammaln(np.asarray(n) + 1.0) / np.log(2.0)


def _value_bits(condition: Condition, value: Floats, n_categories: Int64s) -> float:
    """Bits of a condition whose column is known.

    A set of categories is listed one by one, in any order, or its complement is, and one bit says
    which; a test for missing values takes one bit.
    """
    if condition.kind in ("present", "missing"):
        return 1.0
    bits = float(value[condition.feature])
    if len(condition.codes) <= 1:
        return bits
    others = int(n_categories[condition.feature]) - len(condition.codes)
    named = np.array([len(condition.codes), max(others, 1)])
    return 1.0 + float((named * bits - log2_factorial(named)).min())


@jitable
def exception_bits(total: float, covered: float, false: float, missed: float) -> float:
    """Bits that encode the exceptions of rules for a class, by weights of rows.

    Rows have the weight `total`; some rule covers `covered` of it, of which `false` is of other
    classes; no rule covers `missed` of the class. The errors are expected to be half false, half
    missed. Their probability is estimated from that in the larger part of the table, and is the
    observed one in the other (Quinlan 1995).
    """
    rest, half = total - covered, 0.5 * (false + missed)
    if covered > 0.5 * total:
        return log2(total) + _coded(covered, false, half) + _coded(rest, missed, missed)
    return log2(total) + _coded(covered, false, false) + _coded(rest, missed, half)


@jitable
def _coded(n: float, errors: float, expected: float) -> float:
    """Bits that identify the errors among n rows, where `expected` errors are."""
    if expected <= 0.0:
        return 0.0 if errors <= 0.0 else IMPOSSIBLE
    if expected >= n:
        return 0.0 if errors >= n else IMPOSSIBLE
    rate = expected / n
    return -errors * log2(rate) - (n - errors) * log2(1.0 - rate)


MOST_TRIED = 10  # maximum number of rules of a class for which every subset is tried

# Starting points of the hill climbing for more rules: the first has none of them, the last all; in
# between the probability of each rule increases in equal steps, as in Release 8.
STARTS = 11

LEAST_SAVED = 1e-9  # minimum bits that a step must save: less is rounding

# Units of the class and of others up to which the bits of exceptions are computed once per step:
# most of thousands of rules cover only a few rows.
MOST_KEPT = 64


class Message(NamedTuple):
    """Constants of the description length of a class, for kernels."""

    bits: Floats  # (R,): of each rule
    order: Floats  # (R + 1,): ``log2(m!)``, saved where m rules are sent in any order
    rule_weight: float  # weight of a bit of a rule, relative to one of an exception
    unit: float  # weight of a unit
    # weight of all rows, and of rows of the class
    total: float
    class_weight: float


@inner
def message_bits(message: Message, size: int, bits: float, covered: int, other: int) -> float:
    """Bits of some rules that cover `covered` units of rows of the class and `other` of others."""
    return _with_rules(message, _exceptions(message, covered, other), size, bits)


@inner
def _exceptions(message: Message, covered: int, other: int) -> float:
    right, false = covered * message.unit, other * message.unit
    return exception_bits(message.total, right + false, false, message.class_weight - right)


@inner
def _with_rules(message: Message, exceptions: float, size: int, bits: float) -> float:
    return exceptions + message.rule_weight * (bits - message.order[size])


def select(
    covers: Coverage,
    rows: WeightedRows,
    of_class: Bools,
    bits: Floats,
    weight: float,
    n_threads: int = 1,
) -> tuple[Bools, float]:
    """Choose the subset of the rules for one class that takes the smallest number of bits.

    Returns it with its bits. `covers` are the rows of the class's rules, `of_class` marks the rows
    of the class, `bits` are those of each rule, and `weight` multiplies them. For up to
    `MOST_TRIED` rules every subset is tried. For more rules, hill climbing from each of `starts`
    adds or removes at each step the rule that saves most bits; the best result is taken, ties go to
    the first, for any number of threads.
    """
    n = covers.n_rules
    total = float(rows.class_weights.sum()) * rows.unit
    class_weight = float(rows.weights[of_class].sum()) * rows.unit
    order = log2_factorial(np.arange(n + 1))
    message = Message(bits, order, weight, rows.unit, total, class_weight)
    if n <= MOST_TRIED:
        return _try_all(covers, rows, of_class, message)
    weights = rows.weights

    def climb(start: Bools) -> tuple[Bools, float]:
        count, alone = np.zeros(of_class.size, np.int32), np.zeros((n, 2), np.int64)
        state = _State(np.zeros(n, np.bool_), count, alone, of_class, weights)
        return state.chosen, _climb(covers, state, message, start)

    best, *others = run(n_threads, climb, [(start,) for start in starts(n)])
    for other in others:
        if other[1] < best[1] - LEAST_SAVED:
            best = other
    return best


def starts(n: int) -> Bools:
    """Starting points for n rules, shape (STARTS, n), from hashes of a counter."""
    key = np.arange(STARTS * n, dtype=np.uint64).reshape(STARTS, n)
    with np.errstate(over="ignore"):
        draw = (mix(key) >> np.uint64(11)) * 2.0**-53  # in [0, 1)
    return draw < np.arange(STARTS)[:, None] / (STARTS - 1)


def _try_all(
    covers: Coverage, rows: WeightedRows, of_class: Bools, message: Message
) -> tuple[Bools, float]:
    """Find the best of all subsets: rows are counted by the set of rules that cover them."""
    n = covers.n_rules
    pattern = np.zeros(of_class.size, np.int64)
    for rule in range(n):
        pattern[covers.of(rule)] |= 1 << rule
    count = np.bincount(2 * pattern + of_class, rows.weights, minlength=2 << n).reshape(-1, 2)
    best, value = _best_subset(np.rint(count).astype(np.int64), message)
    return (best >> np.arange(n)) & 1 == 1, float(value)


@kernel
def _best_subset(count: Int64s, message: Message) -> tuple[int, float]:
    """The subset of minimum bits, as a mask; ties go to the lowest mask."""
    best, lowest = 0, np.inf
    for subset in range(count.shape[0]):
        covered = other = np.int64(0)
        for pattern in range(count.shape[0]):
            if pattern & subset:
                other += count[pattern, 0]
                covered += count[pattern, 1]
        size, bits = 0, 0.0
        for rule in range(message.bits.size):
            if subset >> rule & 1:
                size += 1
                bits += message.bits[rule]
        value = message_bits(message, size, bits, covered, other)
        if value < lowest - LEAST_SAVED:
            best, lowest = subset, value
    return best, lowest


class _State(NamedTuple):
    """State of a climb: the chosen rules, and the weight that each rule would cover alone."""

    chosen: Bools  # (R,)
    n_chosen: Int32s  # (n,): chosen rules that cover each row
    # (R, 2): weight of other classes and of the class that a rule covers and no other
    # chosen one does
    alone: Int64s
    of_class: Bools  # (n,)
    weight: Int64s  # (n,)


@kernel
def _climb(covers: Coverage, state: _State, message: Message, start: Bools) -> float:
    """Add or remove, in each step, the rule that saves most; of equals the first."""
    chosen, alone = state.chosen, state.alone
    n = chosen.size
    for rule in range(n):
        for i in range(covers.rule_begin[rule], covers.rule_begin[rule + 1]):
            row = covers.rows[i]
            alone[rule, np.int64(state.of_class[row])] += state.weight[row]
    covered = np.zeros(2, np.int64)
    size, bits = 0, 0.0
    for rule in range(n):
        if start[rule]:
            covered += alone[rule]
            _turn(rule, covers, state)
            size, bits = size + 1, bits + message.bits[rule]
    value = message_bits(message, size, bits, covered[1], covered[0])
    kept, kept_turn = (
        np.empty((2, MOST_KEPT, MOST_KEPT)),
        np.zeros((2, MOST_KEPT, MOST_KEPT), np.int64),
    )
    turn = 0
    while True:
        turn += 1
        best, lowest = n, value - LEAST_SAVED
        for rule in range(n):
            step, side = (-1, 1) if chosen[rule] else (1, 0)
            other, true = alone[rule, 0], alone[rule, 1]
            few = other < MOST_KEPT and true < MOST_KEPT
            if few and kept_turn[side, other, true] == turn:
                exceptions = kept[side, other, true]
            else:
                exceptions = _exceptions(
                    message, covered[1] + step * true, covered[0] + step * other
                )
                if few:
                    kept[side, other, true], kept_turn[side, other, true] = exceptions, turn
            bits_after = bits + step * message.bits[rule]
            after = _with_rules(message, exceptions, size + step, bits_after)
            if after < lowest:
                best, lowest = rule, after
        if best == n:
            return value
        step = -1 if chosen[best] else 1
        covered += step * alone[best]
        size, bits, value = size + step, bits + step * message.bits[best], lowest
        _turn(best, covers, state)


@inner
def _turn(rule: int, covers: Coverage, state: _State) -> None:
    """Add or remove a rule, and update the weights that the others cover alone."""
    chosen, count, alone = state.chosen, state.n_chosen, state.alone
    adds = not chosen[rule]
    chosen[rule] = adds
    for i in range(covers.rule_begin[rule], covers.rule_begin[rule + 1]):
        row = covers.rows[i]
        count[row] += 1 if adds else -1
        others = count[row] - 1 if adds else count[row]  # chosen rules that cover the row
        if others > 1:
            continue
        change = -state.weight[row] if adds else state.weight[row]
        for j in range(covers.row_begin[row], covers.row_begin[row + 1]):
            other = covers.rules[j]
            if other != rule and (others == 0 or chosen[other]):
                alone[other, np.int64(state.of_class[row])] += change
