"""Bits of the encoding of rules and their exceptions (Quinlan 1993, 5.2; 1995).

The message identifies the rows of a class: by rules for it, and the rows where they are wrong. The
formulas are those of C4.5 Release 8, and reproduce its published session on the golf table.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from gputree.compilation import jitable
from gputree.criteria.logarithm import log2
from gputree.dtypes import Floats, Int64s
from gputree.rules.conditions import Condition, Rules
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
        known = ~np.isnan(column)
        if n_categories[feature]:
            codes = np.where(known & (column >= 0), column, n_categories[feature]).astype(np.int64)
            count = np.bincount(codes, rows.weights, minlength=n_categories[feature] + 1)
            share = count[:-1][count[:-1] > 0] / count.sum()
            found[feature] = -(share * np.log2(share)).sum()
        else:
            different = np.unique(column[known]).size + int(not known.all())
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
