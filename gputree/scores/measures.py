"""Scores of branches for a target: formulas over the proportions of rows in each.

Logarithms are gputree's, and sums are rounded once, so that a score depends neither on the order of
rows, branches and labels nor on the machine.

Impurities of labels, or of their counts, as defined in textbooks.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gputree.base.dtypes import Floats
from gputree.base.texts import fill
from gputree.criteria.entropy import logarithms
from gputree.errors import InputTypeError
from gputree.inputs.labels import Codes, check_counts, check_labels, labels_not_counts


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


def entropy_of(weight: Floats) -> float:
    """Entropy of weights, in bits."""
    share = weight[weight > 0.0] / weight.sum()
    return max(-math.fsum(share * logarithms(share)), 0.0)


def gini_of(weight: Floats) -> float:
    """Gini impurity of weights."""
    return max(1.0 - math.fsum((weight / weight.sum()) ** 2), 0.0)


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


_LABELS = """Parameters
    ----------
    y : array-like of shape (n_rows,), optional
        One label per row: integers, strings or booleans. Labels are counted: ``[9, 5]`` are two
        rows of different labels. Where the counts are known, pass them as `counts`.
    sample_weight : array-like of shape (n_rows,), default=None
        Non-negative weights of the rows of `y`.
    counts : array-like of shape (n_labels,), optional
        Instead of `y`: how many rows each label has, or their weights or shares."""

_LABEL_ERRORS = """Raises
    ------
    ValueError
        Missing or continuous labels, no rows, invalid weights or counts.
    TypeError
        Both `y` and `counts` are given, or neither.

    Warns
    -----
    UserWarning
        `y` holds numbers of which none occurs twice, and which number no classes from 0
        or 1 on: probably they are counts."""


@fill(sections=_LABELS, errors=_LABEL_ERRORS)
def entropy(
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
) -> float:
    """Entropy of labels, ``-sum p_k log2 p_k``, in bits (Shannon 1948).

    {sections}

    Returns
    -------
    entropy : float
        Between 0, one label only, and log2 of the number of labels.

    {errors}

    Examples
    --------
    >>> from gputree import entropy
    >>> entropy(["yes", "yes", "no", "no"])
    1.0
    >>> round(entropy(counts=[9, 5]), 3)
    0.94
    """
    return _impurity_of("entropy", y, sample_weight, counts, entropy_of)


@fill(sections=_LABELS, errors=_LABEL_ERRORS)
def gini(
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
) -> float:
    """Gini impurity of labels, ``1 - sum p_k**2`` (Breiman et al. 1984, section 4.3).

    {sections}

    Returns
    -------
    gini : float
        Between 0, one label only, and ``1 - 1 / number of labels``.

    {errors}

    Examples
    --------
    >>> from gputree import gini
    >>> gini(["yes", "yes", "no", "no"])
    0.5
    >>> gini(counts=[2, 2])
    0.5
    """
    return _impurity_of("gini", y, sample_weight, counts, gini_of)


def _impurity_of(
    name: str,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    counts: ArrayLike | None,
    impurity: Callable[[Floats], float],
) -> float:
    """Compute the impurity of all rows, given by labels or by counts."""
    if (y is None) == (counts is None):
        both = "neither" if y is None else "both"
        raise InputTypeError(
            f"{name} takes labels, one a row, or counts=, how many rows each label has; got {both}."
        )
    if y is not None:
        labels = labels_not_counts(name, y) if sample_weight is None else y
        label, weight = check_labels(labels, sample_weight)
        return impurity(np.bincount(label, weight).astype(np.float64, copy=False))
    return impurity(check_counts(name, counts, sample_weight))
