"""Scores of branches for a target: formulas over the proportions of rows in each.

Logarithms are gputree's, and sums are rounded once, so that a score depends neither on the order of
rows, branches and labels nor on the machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gputree.criteria.information import logarithms
from gputree.dtypes import Floats
from gputree.labels import Codes


class Contingency(NamedTuple):
    """Weight of the rows of each branch and label that occur together."""

    # (n_cells,)
    branch: Codes
    label: Codes
    weight: Floats  # (n_cells,), positive: integers of one unit, so that sums are exact


class BranchMeans(NamedTuple):
    """Weight of the rows of each branch, and their mean target relative to some centre."""

    weight: Floats
    mean: Floats


# ------------------------------------------------------------------ impurities
def entropy_of(weight: Floats) -> float:
    """Entropy of weights, in bits."""
    share = weight[weight > 0.0] / weight.sum()
    return max(-math.fsum(share * logarithms(share)), 0.0)


def gini_of(weight: Floats) -> float:
    """Gini impurity of weights."""
    return max(1.0 - math.fsum((weight / weight.sum()) ** 2), 0.0)


# ---------------------------------------------------------------------- scores
def information_gain_of(cells: Contingency) -> float:
    """Entropy of the labels, less the weighted entropy within branches."""
    joint = entropy_of(cells.weight)
    gain = entropy_of(_by_label(cells)) + entropy_of(_by_branch(cells)) - joint
    return max(gain, 0.0)


def gain_ratio_of(cells: Contingency) -> float:
    """Information gain over the entropy of the branches; 0 for a single branch."""
    split = entropy_of(_by_branch(cells))
    return information_gain_of(cells) / split if split > 0.0 else 0.0


def symmetric_uncertainty_of(cells: Contingency) -> float:
    """Twice the information gain over the entropies of labels and branches; 0 where both are 0."""
    both = entropy_of(_by_label(cells)) + entropy_of(_by_branch(cells))
    return min(2.0 * information_gain_of(cells) / both, 1.0) if both > 0.0 else 0.0


def gini_gain_of(cells: Contingency) -> float:
    """Gini impurity of the labels, less the weighted impurity within branches."""
    total = cells.weight.sum()
    within = cells.weight / _by_branch(cells)[cells.branch] * (cells.weight / total)
    return max(math.fsum(within) - math.fsum((_by_label(cells) / total) ** 2), 0.0)


def variance_reduction_of(groups: BranchMeans) -> float:
    """Variance of the branches' means."""
    share = groups.weight / groups.weight.sum()
    mean = math.fsum(share * groups.mean)
    return math.fsum(share * (groups.mean - mean) ** 2)


def _by_branch(cells: Contingency) -> Floats:
    return np.bincount(cells.branch, cells.weight).astype(np.float64, copy=False)


def _by_label(cells: Contingency) -> Floats:
    return np.bincount(cells.label, cells.weight).astype(np.float64, copy=False)
