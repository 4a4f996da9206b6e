"""Rules that choose the column of a split: information gain, or its ratio to split information.

ID3 (Quinlan 1986) takes the highest gain; C4.5 (Quinlan 1993, 2.2; 1996) the highest gain ratio
among the columns whose gain is at least average, or by option the highest gain. Ties go to the
first column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bools, Floats, Int64s
from gputree.backends.lists import CandidateTests, ListTask
from gputree.criteria.information import GAIN_BITS, TOLERANCE, Information, logarithms

# Gains below the average by no more than this still pass.
AVERAGE_SLACK = 1e-3

# The minimum gain by description length, as in C5.0: a multiple of log2 of the number of
# candidate columns.
BITS_SHARE = 0.9


class Compared(NamedTuple):
    """Columns of nodes as a rule compares them; arrays of shape (d, m)."""

    gain: Floats  # in bits, corrected
    ratio: Floats  # to the split information; 0 without any
    worth: Floats  # the highest is chosen; 0 where the rule excludes a column


class C45Rule(NamedTuple):
    """C4.5's rule, with the options of C5.0."""

    numeric: Bools  # (d,) columns that are cut at a threshold
    averaged: Bools  # (d,) of gains that make the average: numeric, or few categories
    average_gain_rule: bool
    mdl_correction: bool
    min_gain: float  # of a split, in bits, after the correction
    by_gain: bool = False  # True: columns are compared by the gain instead of its ratio
    averaged_only: bool = False  # True: the other columns are excluded
    bits_share: float = 0.0  # of description length in the minimum gain; the rest is the average
    # Maximum number of leaves per unit of weight; 0 for no limit. A split on categories has at
    # most one branch more than its node may have leaves.
    leaves_per_weight: float = 0.0

    def choose(
        self, candidates: CandidateTests, total: Int64s, task: ListTask
    ) -> NDArray[np.int32]:
        """Column that splits each node of `total` units of weight; -1 for none."""
        return _first_greatest(self.compare(candidates, total, task).worth)

    def compare(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Compared:
        """Compare the columns of each node of `total` units of weight."""
        information, weight = task.information, total * task.limits.unit
        gain = gains(candidates.gain, total, information)
        if self.mdl_correction:
            gain[self.numeric] -= _cost_of_cuts(candidates.tries[self.numeric]) / weight
        valid = candidates.gain >= 0
        valid &= (gain >= TOLERANCE) | ~self.numeric[:, None]
        valid &= gain >= self.min_gain - TOLERANCE
        if self.averaged_only:
            valid &= self.averaged[:, None]
        if self.leaves_per_weight:
            valid &= candidates.parts <= np.rint(self.leaves_per_weight * weight) + 1
        split = candidates.split / information.scale
        ratio = np.zeros_like(gain)
        divisor = split / (total * information.unit)
        np.divide(gain, divisor, out=ratio, where=split > TOLERANCE)
        worth = np.where(valid & (split > TOLERANCE), gain if self.by_gain else ratio, 0.0)
        if self.average_gain_rule:
            worth[gain < self._least_gain(gain, valid, weight)] = 0.0
        return Compared(gain, ratio, worth)

    def _least_gain(self, gain: Floats, valid: Bools, weight: NDArray[np.floating]) -> Floats:
        """Minimum gain of each node's split, from the valid columns."""
        counted = valid & self.averaged[:, None]
        number = counted.sum(axis=0)
        total = np.zeros(gain.shape[1])
        for f in range(gain.shape[0]):  # in the order of columns, for any shape
            total += np.where(counted[f], gain[f], 0.0)
        threshold = total / np.maximum(number, 1) - AVERAGE_SLACK
        if self.bits_share:
            bits = BITS_SHARE * logarithms(number) / weight
            threshold = (1.0 - self.bits_share) * threshold + self.bits_share * bits
        return np.where(number > 0, threshold, np.inf)


class InformationGain(NamedTuple):
    """ID3's rule: the highest gain, if it is at least `min_gain` bits."""

    min_gain: float

    def choose(
        self, candidates: CandidateTests, total: Int64s, task: ListTask
    ) -> NDArray[np.int32]:
        """Column that splits each node of `total` units of weight; -1 for none."""
        feature = candidates.gain.argmax(axis=0).astype(np.int32)
        best = candidates.gain[feature, np.arange(feature.size)]
        enough = gains(best, total, task.information) >= self.min_gain - TOLERANCE
        return np.where((best >= 0) & enough, feature, -1).astype(np.int32)

    def compare(self, candidates: CandidateTests, total: Int64s, task: ListTask) -> Compared:
        """Compare the columns of each node of `total` units of weight."""
        gain = gains(candidates.gain, total, task.information)
        return Compared(gain, gain, np.where(gain >= self.min_gain - TOLERANCE, gain, 0.0))


def gains(gain: Int64s, total: Int64s, information: Information) -> Floats:
    """Convert total gains in steps to gains in bits."""
    return gain * 2.0**-GAIN_BITS / (total * information.unit)


def _cost_of_cuts(tries: NDArray[np.int64]) -> Floats:
    """Bits that identify one of the cuts tried (Quinlan 1996)."""
    return logarithms(tries.ravel()).reshape(tries.shape)


def _first_greatest(worth: Floats) -> NDArray[np.int32]:
    """First column of the highest positive worth, in each node; nearly equal ones are equal."""
    best, feature = np.zeros(worth.shape[1]), np.full(worth.shape[1], -1, np.int32)
    for f in range(worth.shape[0]):
        better = worth[f] - best > TOLERANCE
        best[better] = worth[f, better]
        feature[better] = f
    return feature
