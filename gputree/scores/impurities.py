"""Impurities of labels, or of their counts, as defined in textbooks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from gputree._docs import fill
from gputree.dtypes import Floats
from gputree.errors import InputTypeError
from gputree.labels import check_counts, check_labels, labels_not_counts
from gputree.scores.measures import entropy_of, gini_of

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
