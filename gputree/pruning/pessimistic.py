"""Pessimistic (error-based) pruning (Quinlan 1993, chapter 4): no rows are held out."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from gputree.pruning.base import Pruner, Rows, TrainingRows, training_rows
from gputree.pruning.bottom_up import best_pruning
from gputree.pruning.subtree_raising import prune_and_raise
from gputree.tree import Tree

Quantile = Literal["exact", "release8"]

# A leaf may be this many errors worse than its subtree, in C4.5 and J48 alike.
SLACK = 0.1

# Release 8 interpolates the normal quantile of its confidence in this table.
RELEASE8_CONFIDENCE = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
RELEASE8_DEVIATE = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)


class Pessimistic(Pruner):
    """Pruning by an upper confidence limit of the training errors, as C4.5 does it.

    Each leaf's errors on its own training rows are raised to the upper limit of
    a binomial confidence interval. Bottom-up, a node becomes a leaf, or gives way
    to its largest branch, if that costs at most 0.1 errors more than its pruned
    subtree, by these limits. Classification only.

    Parameters
    ----------
    confidence : float in (0, 1), default=0.25
        The smaller, the more is pruned. With ``quantile="exact"`` values above
        0.5 add nothing to the observed errors.
    subtree_raising : bool, default=True
        Whether a node may give way to its largest branch. The node's training
        rows then go down that branch, so that pruning needs them; False only
        replaces subtrees by leaves, and needs no rows.
    quantile : {"exact", "release8"}, default="exact"
        How a confidence becomes a normal deviate: the exact quantile, or linear
        interpolation in C4.5 Release 8's table, whose formula for leaves with
        hardly a correct row is kept as well.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    Chapter 4.
    """

    _parameter_constraints = {  # noqa: RUF012
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "subtree_raising": ["boolean"],
        "quantile": [StrOptions({"exact", "release8"})],
    }

    def __init__(
        self,
        confidence: float = 0.25,
        subtree_raising: bool = True,
        quantile: Quantile = "exact",
    ) -> None:
        self.confidence = confidence
        self.subtree_raising = subtree_raising
        self.quantile = quantile

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """Prune one tree.

        Parameters
        ----------
        tree : Tree
            Classification tree.
        data : TrainingRows, optional
            The rows `tree` was grown on; needed for subtree raising.

        Returns
        -------
        Tree

        Raises
        ------
        ValueError
            If `tree` is a regression tree, or rows are needed and not given.
        """
        self._validate_params()
        if tree.task != "classification":
            raise ValueError(
                "Pessimistic prunes by misclassified rows and needs a classification tree. "
                f"Got a {tree.task} tree."
            )
        if not self.subtree_raising:
            limit = self._error_limit(tree.statistics)
            return tree.collapse(best_pruning(tree, limit, slack=SLACK))
        if not isinstance(data, TrainingRows):
            raise ValueError(
                "Pessimistic with subtree_raising=True sends training rows down the raised "
                "branches: pass X and y as used for growing, or set subtree_raising=False."
            )
        return prune_and_raise(tree, data, self._error_limit, SLACK)

    def _rows(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
        return training_rows(estimator, X, y, sample_weight)

    def _error_limit(self, class_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Upper limit of the errors of leaves."""
        n = class_weights.sum(axis=1)
        errors = n - class_weights.max(axis=1)
        return errors + add_errors(n, errors, self.confidence, self.quantile)


def add_errors(
    n: ArrayLike, errors: ArrayLike, confidence: float = 0.25, quantile: Quantile = "exact"
) -> NDArray[np.float64]:
    """Errors to add to those observed, for an upper confidence limit.

    Parameters
    ----------
    n : array-like
        Weight of the rows in each leaf; 0 adds nothing.
    errors : array-like, broadcast against `n`
        Weight of the misclassified ones, at most `n`.
    confidence : float in (0, 1), default=0.25
    quantile : {"exact", "release8"}, default="exact"

    Returns
    -------
    float64 array
        With no error ``n * (1 - confidence ** (1 / n))``; up to one error linear
        between the values at 0 and 1; beyond, the normal approximation of the
        binomial with continuity correction.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. 1993. Section 4.2.
    """
    n, errors = np.broadcast_arrays(np.asarray(n, float), np.asarray(errors, float))
    if quantile == "exact" and confidence > 0.5:
        return np.zeros(n.shape)
    rows = np.where(n > 0, n, 1.0)
    at_zero = rows * (1 - confidence ** (1 / rows))
    at_one = _add_normal(rows, np.ones(n.shape), confidence, quantile)
    added = np.where(
        errors < 1,
        at_zero + errors * (at_one - at_zero),
        _add_normal(rows, np.maximum(errors, 1.0), confidence, quantile),
    )
    return np.where(n > 0, added, 0.0)


def _add_normal(
    n: NDArray[np.float64], errors: NDArray[np.float64], confidence: float, quantile: Quantile
) -> NDArray[np.float64]:
    """The normal limit, for one error and more."""
    z = _deviate(confidence, quantile)
    c = z * z
    corrected = errors + 0.5
    spread = np.sqrt(np.maximum(c * (corrected * (1 - corrected / n) + c / 4), 0.0))
    limit = n * (corrected + c / 2 + spread) / (n + c)
    few_correct = 0.67 * (n - errors) if quantile == "release8" else np.maximum(n - errors, 0.0)
    return np.where(corrected >= n, few_correct, limit - errors)


def _deviate(confidence: float, quantile: Quantile) -> float:
    """Normal deviate that is exceeded with probability `confidence`."""
    if quantile == "release8":
        return float(np.interp(confidence, RELEASE8_CONFIDENCE, RELEASE8_DEVIATE))
    return NormalDist().inv_cdf(1 - confidence)
