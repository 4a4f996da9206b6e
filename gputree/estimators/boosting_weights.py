"""Weights of rows from one trial of boosting to the next, in units: sums have no order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import fix_weights

# Bits of the total weight: two less than in growth, which then takes the units over exactly.
TOTAL_BITS = 48


class RowWeights(NamedTuple):
    """Weights of n rows: ``units x unit``; `base` are the units of the first trial."""

    units: NDArray[np.int64]
    base: NDArray[np.int64]
    unit: float

    @property
    def values(self) -> NDArray[np.float64]:
        """The weights, of shape (n,)."""
        return np.multiply(self.units, self.unit, dtype=np.float64)


def first_weights(weight: NDArray[np.float64] | None, n: int) -> RowWeights:
    """Weights of the first trial, from sample weights, positive, or None."""
    fixed = fix_weights(weight, n, fractions=True)
    assert fixed.weight is not None
    shift = max(fixed.total.bit_length() - TOTAL_BITS, 0)
    units = np.maximum(fixed.weight >> shift, 1)
    return RowWeights(units, units, fixed.unit * fixed.scale * 2.0**shift)


class TrialOutcome(NamedTuple):
    """Units of the rows that a trial's tree classifies correctly, and wrongly."""

    right: int
    wrong: int

    @property
    def error(self) -> float:
        """Weighted fraction of errors."""
        return self.wrong / (self.right + self.wrong)


def outcome_of(weights: RowWeights, is_wrong: NDArray[np.bool_]) -> TrialOutcome:
    """Weight of the rows that a tree predicts correctly, and of the other rows."""
    wrong = int(weights.units[is_wrong].sum())
    return TrialOutcome(int(weights.units.sum()) - wrong, wrong)


def next_weights(
    weights: RowWeights, is_wrong: NDArray[np.bool_], outcome: TrialOutcome
) -> RowWeights:
    """The weights of the next trial, by C5.0's rule.

    Rows that were wrong come half way to half of the total weight: what they gain is shared by
    them as their first weights are, and taken from the others in proportion (Kuhn and Johnson,
    Applied Predictive Modeling, 2013, section 14.6).
    """
    right, wrong = outcome
    moved = (right - wrong) / 4
    kept = np.rint(weights.units * ((right - moved) / right))
    gained = np.rint(weights.base * (moved / int(weights.base[is_wrong].sum())))
    units = np.where(is_wrong, weights.units + gained, kept)
    return weights._replace(units=np.maximum(units, 1.0).astype(np.int64))
