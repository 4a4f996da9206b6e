"""Selection of the rules of a class that describe it in the smallest number of bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree.compilation import inner, kernel
from gputree.dtypes import Bools, Floats, Int32s, Int64s
from gputree.hashing import mix
from gputree.rules.coverage import Coverage
from gputree.rules.description_length import exception_bits, log2_factorial
from gputree.rules.simplification import WeightedRows
from gputree.threads import run

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
    kept, known = np.empty((2, MOST_KEPT, MOST_KEPT)), np.zeros((2, MOST_KEPT, MOST_KEPT), np.int64)
    turn = 0
    while True:
        turn += 1
        best, lowest = n, value - LEAST_SAVED
        for rule in range(n):
            step, side = (-1, 1) if chosen[rule] else (1, 0)
            other, true = alone[rule, 0], alone[rule, 1]
            few = other < MOST_KEPT and true < MOST_KEPT
            if few and known[side, other, true] == turn:
                exceptions = kept[side, other, true]
            else:
                exceptions = _exceptions(
                    message, covered[1] + step * true, covered[0] + step * other
                )
                if few:
                    kept[side, other, true], known[side, other, true] = exceptions, turn
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
