"""Standard errors of a forest's predictions, by the infinitesimal jackknife (Wager et al. 2014)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.base.dtypes import Floats
from gputree.base.memory import require_memory
from gputree.base.warnings import warn
from gputree.ensemble.out_of_bag import OutOfBag
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.inputs.targets import by_target, ends_of
from gputree.prediction.answers import Before
from gputree.prediction.forest import PackedForest, leaves

# Bytes of the counts of training rows that are multiplied at a time, and of trees' predictions.
BLOCK_BYTES = 1 << 25


class StandardErrors(OutOfBag):
    """A forest as far as its predictions have standard errors."""

    _descend: Callable[..., NDArray]

    @explained
    def predict_standard_error(self, X: Any) -> Any:
        """Standard errors of predictions: their spread over training tables, were there others.

        By the infinitesimal jackknife with its correction for the number of trees, as ranger's
        ``se.method="infjack"`` without calibration: a row's does not depend on other rows of X.
        It is the uncertainty of the mean that the forest predicts, not of a target:
        `predict_quantiles` gives intervals of targets. It needs more trees than predictions do,
        about as many as there are training rows; with fewer, estimates are noisy. The draws are
        computed again, so that any forest on drawn rows has standard errors, also a loaded one; the
        first call takes time and memory for the training rows times the trees.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        errors : float64 array of shape (n_rows,), of classifiers (n_rows, n_classes)
            In the unit of the target, or of the probability of each class. NaN where the trees are
            too few: the estimate of the variance is negative then. Of several targets of shape
            (n_rows, n_outputs), of classifiers a list of arrays.

        Raises
        ------
        ValueError
            The forest has one tree, its trees have all rows (``bootstrap=False``), are of different
            tables, or have drawn rows in proportion to weights.

        Warns
        -----
        UserWarning
            Some standard errors are NaN.

        References
        ----------
        S. Wager, T. Hastie, B. Efron. Confidence intervals for random forests: the jackknife and
        the infinitesimal jackknife. Journal of Machine Learning Research 15, 1625-1651, 2014.
        """
        check_is_fitted(self)
        if self._trees.common_draws is None:
            self._trees.common_draws = common_draws(self._even_draws())
        found = self._descend(partial(variances, self._trees.common_draws), X)
        if lacking := np.count_nonzero((found < 0.0).any(axis=1)):
            warn(
                f"{lacking} of {len(found)} predictions have no standard error (nan): "
                f"{len(self._trees)} trees are too few to estimate it. Increase n_estimators."
            )
        with np.errstate(invalid="ignore"):
            errors: Floats = np.sqrt(found)
        classes = getattr(self, "classes_", None)
        if isinstance(classes, list):
            return by_target(errors, ends_of(classes))
        return errors[:, 0] if classes is None and self.n_outputs_ == 1 else errors

    def _even_draws(self) -> list[NDArray[Any]]:
        """Number of times that each tree has drawn each row, of trees that drew rows evenly."""
        name, of = type(self).__name__, self._origins[0].of
        if len(self._trees) < 2:
            raise InputError(f"Standard errors need two trees at least; this {name} has one.")
        self._require_rows(of.n, "predict_standard_error")
        for draws, _ in self._origins:
            if draws.draws is None:
                raise InputError(
                    "Standard errors need trees on rows drawn with replacement: fit the "
                    f"{name} with bootstrap=True."
                )
            if draws.weight is not None and draws.weight.size:  # else `_counts` says what lacks
                raise InputError(
                    "Standard errors need rows that were drawn evenly; this "
                    f"{name} has drawn them in proportion to weights."
                )
        needed = float(of.n) * len(self._trees)
        require_memory(needed, "The list of the rows of all trees", "Use some trees: forest[:100].")
        counts = map(self._counts, range(len(self._trees)))
        return [c.astype(np.min_scalar_type(c.max())) for c in counts if c is not None]


def common_draws(counts: Sequence[NDArray]) -> Floats:
    """Sum over rows of the product of the draws by two trees, of shape (trees, trees).

    `counts` has the number of times that each tree has drawn each of n rows. Sums of integers below
    2**53 are exact: they depend neither on the size of blocks nor on threads.
    """
    found = np.zeros((len(counts), len(counts)))
    n, at_once = counts[0].size, max(BLOCK_BYTES // (8 * len(counts)), 1)
    for begin in range(0, n, at_once):
        block = np.stack([drawn[begin : begin + at_once] for drawn in counts]).astype(np.float64)
        found += block @ block.T
    return found


def jackknife_variances(predictions: Floats, common: Floats) -> Floats:
    """Variances of the mean over trees of `predictions` (n_rows, trees, K), of shape (n_rows, K).

    The sum over training rows of the squared covariance, over trees, of the prediction and the
    number of draws of the row, less its bias from the number of trees: (5) and (7) of the paper,
    where the variance of the draws is that of these trees. All of it is a quadratic form of the
    trees' deviations in `common_draws`. Few trees may make it negative.
    """
    trees = len(common)
    spread = common.trace() / trees - common.sum() / trees**2
    form = common - common.mean()  # deviations add up to 0: a constant changes no product
    form[np.diag_indices(trees)] -= spread
    deviations = np.moveaxis(predictions - predictions.mean(axis=1, keepdims=True), 1, 2)
    found: Floats = ((deviations @ form) * deviations).sum(axis=2) / trees**2
    return found


def variances(
    common: Floats,
    trees: PackedForest,
    values: NDArray,
    n_threads: int = 1,
    before: Before = None,
) -> Floats:
    """Variances of the mean predictions of the rows of `values`, of shape (n_rows, K)."""
    reached = leaves(trees, values, n_threads, before)
    tables = [tree.predictions[tree.number[tree.place]] for tree in trees]
    n_classes = tables[0].shape[1]
    out = np.empty((len(reached), n_classes))
    at_once = max(BLOCK_BYTES // (8 * len(trees) * n_classes), 1)
    for begin in range(0, len(out), at_once):
        part = reached[begin : begin + at_once]
        predictions = np.stack([table[part[:, t]] for t, table in enumerate(tables)], axis=1)
        out[begin : begin + at_once] = jackknife_variances(predictions, common)
    return out
