"""Which column a node is split by: information gain, or its ratio to the split information.

ID3 (Quinlan 1986) takes the greatest gain; C4.5 (Quinlan 1993, 2.2; 1996) the greatest gain
ratio among the columns whose gain is at least average. Ties go to the first column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.lists import Candidates, ListTask
from gputree.criteria.information import GAIN_BITS, TOLERANCE, Information, logarithms

# Gains this little below the average still pass.
AVERAGE_SLACK = 1e-3


class GainRatio(NamedTuple):
    """C4.5's rule.

    Attributes
    ----------
    numeric : bool array of shape (d,)
    averaged : bool array of shape (d,)
        Columns whose gains make the average: numeric ones and those of few categories.
    average_gain_rule, mdl_correction : bool
    min_gain : float
        Least gain of a split in bits, after the correction.
    """

    numeric: NDArray[np.bool_]
    averaged: NDArray[np.bool_]
    average_gain_rule: bool
    mdl_correction: bool
    min_gain: float

    def choose(self, candidates: Candidates, total: Int64s, task: ListTask) -> NDArray[np.int32]:
        """Column that splits each node of `total` units of weight; -1 for none."""
        information = task.information
        gain = gains(candidates.gain, total, information)
        if self.mdl_correction:
            cost = _cost_of_cuts(candidates.tries[self.numeric])
            gain[self.numeric] -= cost / (total * task.limits.unit)
        valid = candidates.gain >= 0
        valid &= (gain >= TOLERANCE) | ~self.numeric[:, None]
        valid &= gain >= self.min_gain - TOLERANCE
        split = candidates.split / information.scale
        ratio = np.zeros_like(gain)
        known = split > TOLERANCE
        np.divide(gain, split / (total * information.unit), out=ratio, where=valid & known)
        if self.average_gain_rule:
            ratio[gain < self._average(gain, valid) - AVERAGE_SLACK] = 0.0
        return _first_greatest(ratio)

    def _average(self, gain: NDArray[np.float64], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean gain of the valid columns that count; there may be none."""
        counted = valid & self.averaged[:, None]
        number = counted.sum(axis=0)
        total = np.zeros(gain.shape[1])
        for f in range(gain.shape[0]):  # in the order of columns, whatever the shape
            total += np.where(counted[f], gain[f], 0.0)
        return np.where(number > 0, total / np.maximum(number, 1), np.inf)


class InformationGain(NamedTuple):
    """ID3's rule: the greatest gain, if it is at least `min_gain` bits."""

    min_gain: float

    def choose(self, candidates: Candidates, total: Int64s, task: ListTask) -> NDArray[np.int32]:
        """Column that splits each node of `total` units of weight; -1 for none."""
        feature = candidates.gain.argmax(axis=0).astype(np.int32)
        best = candidates.gain[feature, np.arange(feature.size)]
        enough = gains(best, total, task.information) >= self.min_gain - TOLERANCE
        return np.where((best >= 0) & enough, feature, -1).astype(np.int32)


def gains(gain: Int64s, total: Int64s, information: Information) -> NDArray[np.float64]:
    """Gains in bits of total gains in steps."""
    return gain * 2.0**-GAIN_BITS / (total * information.unit)


def _cost_of_cuts(tries: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bits that name one of the cuts tried (Quinlan 1996)."""
    return logarithms(tries.ravel()).reshape(tries.shape)


def _first_greatest(ratio: NDArray[np.float64]) -> NDArray[np.int32]:
    """The first column of greatest positive ratio, in each node; near equals are equal."""
    best, feature = np.zeros(ratio.shape[1]), np.full(ratio.shape[1], -1, np.int32)
    for f in range(ratio.shape[0]):
        better = ratio[f] - best > TOLERANCE
        best[better] = ratio[f, better]
        feature[better] = f
    return feature
