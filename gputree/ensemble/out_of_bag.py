"""Rows that trees have not drawn: their predictions, scores and importances (Breiman 2001).

Standard errors of predictions are by the infinitesimal jackknife (Wager et al. 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import missing_columns, take_rows, to_host
from gputree.base.dtypes import NODE, Bools, Floats, Int32s, Int64s, Weight
from gputree.base.memory import require_memory
from gputree.base.threads import n_threads, run
from gputree.ensemble.compact import Trees
from gputree.ensemble.draws import (
    Draws,
    Origin,
    bootstrap_counts,
    class_counts,
    even_counts,
    permutation,
)
from gputree.errors import InputError, warn
from gputree.estimators.arguments import explained
from gputree.estimators.table_estimator import TableEstimator
from gputree.inputs.tables import Table
from gputree.inputs.targets import by_target, ends_of, most_probable
from gputree.inputs.validation import check_weights
from gputree.prediction.answers import Before
from gputree.prediction.descent import walk
from gputree.prediction.forest import JoinedTrees, PackedForest, leaves, mean_answers

WITHOUT_BOOTSTRAP = "Out of bag estimation only available if bootstrap=True"

# Of the rows that a thread copies at a time. Each block draws the permutations anew, which takes a
# twentieth of the time (200,000 rows x 28 columns, one block).
BLOCK_BYTES = 1 << 26

# Mask of the rows that a tree has drawn, by its number.
Drawn = Callable[[int], Bools]


class OutOfBag(TableEstimator):
    """A forest as far as the rows that its trees have drawn are needed."""

    n_features_in_: int
    _trees: Trees
    _draws: Draws  # of the last fit, which more trees are drawn with
    _origins: list[Origin]  # one a tree

    def _counts(self, t: int) -> Int32s | None:
        """Number of times that tree t has drawn each row; None where it has all once."""
        (seed, n, draws, weight, strata), number = self._origins[t]
        if strata is not None:
            return class_counts(seed, number, strata)
        if weight is not None and weight.size < n:
            raise InputError(
                f"Which rows the trees of this {type(self).__name__} have drawn is not known: they "
                "were drawn in proportion to weights, or by class, which neither files nor forests "
                "that were grown over partitions hold."
            )
        return None if draws is None else bootstrap_counts(seed, number, n, draws, weight)

    def _counts_of(self, numbers: Sequence[int]) -> Int32s | None:
        """Like `_counts`, of trees that were drawn alike: of shape (T, n)."""
        (seed, n, draws, weight, strata), _ = self._origins[numbers[0]]
        if draws is not None and weight is None and strata is None:
            return even_counts(seed, [self._origins[t].number for t in numbers], n, draws)
        counts = [self._counts(t) for t in numbers]
        return None if counts[0] is None else np.stack(counts)  # type: ignore[arg-type]

    @property
    def estimators_samples_(self) -> list[Int64s]:
        """The rows that each tree was grown on, as often as it has drawn them, ascending."""
        check_is_fitted(self)
        found = []
        for t, (of, _) in enumerate(self._origins):
            needed = 8.0 * max(of.n, of.draws or 0)
            require_memory(needed, "The list of the rows of a tree", "Its file may be damaged.")
            counts, every = self._counts(t), np.arange(of.n)
            found.append(every if counts is None else np.repeat(every, counts))
        return found

    def _drawn(self, t: int) -> Bools:
        """Mark the rows that tree t has drawn."""
        counts = self._counts(t)
        if counts is None:
            raise InputError(WITHOUT_BOOTSTRAP)
        return counts > 0

    def _require_rows(self, n: int, caller: str) -> None:
        """Raise ValueError unless all trees were grown on tables of n rows."""
        for t, (of, _) in enumerate(self._origins):
            if of.n != n:
                raise InputError(
                    f"{caller} needs the rows that every tree was grown on: X has {n}, and "
                    f"estimators_[{t}] was grown on {of.n}."
                )

    def _out_of_bag(self, table: Table) -> Floats:
        """Mean prediction of each row by the trees that have not drawn it; NaN where all have."""
        self._require_rows(table.shape[0], "oob_score=True")
        threads = n_threads(self.n_jobs)
        found = out_of_bag_means(self._trees, self._drawn, to_host(table.given), threads)
        if np.isnan(found[:, 0]).any():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used "
                "to compute any reliable OOB estimates."
            )
        return found

    @explained
    def oob_permutation_importance(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Bunch:
        """Importance of columns by permuting them out of the bag (Breiman 2001).

        Each tree predicts the rows that it has not drawn, before and after the values of one column
        are permuted among them: the increase of its error is the importance of the column to the
        tree. The error is the fraction of wrong classes, so that it is the decrease of the
        accuracy, or the mean squared error; of several targets the mean of theirs. Permutations are
        hashes of the forest's seed, the tree and the column: the importances do not depend on
        `n_jobs`.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
            The rows of `fit`, in their order; a forest does not keep them, and only their number
            is checked.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            As in `fit`.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the errors; rows of weight zero take no part.

        Returns
        -------
        importances : Bunch
            As of `sklearn.inspection.permutation_importance`, with trees in place of repeats:
            ``importances``, float64 of shape (n_features, n_estimators), NaN for trees without rows
            out of the bag, and over the others ``importances_mean`` and ``importances_std``, of
            shape (n_features,). R's randomForest divides the mean by its standard error,
            ``importances_std / sqrt(n_estimators)``. ``feature_names`` has the names of the
            columns (x0, x1, ... where `fit` saw none). `gputree.export.plot_importance` draws it.

        Raises
        ------
        ValueError
            X, y or sample_weight are not of the rows of `fit`; trees have all rows
            (``bootstrap=False``), or have drawn all; or the file of the forest does not hold the
            weights by which rows were drawn.
        """
        check_is_fitted(self)
        values, threads = self._values(X), n_threads(self.n_jobs)
        missing_columns(values, threads)  # refuses infinities
        self._require_rows(len(values), "oob_permutation_importance")
        target = self._known_target(to_host(y))
        weight = check_weights(to_host(sample_weight), target)
        found = permutation_importances(
            self._trees, self._drawn, self._origins, values, target, weight, threads
        )
        if np.isnan(found).all():
            raise InputError("Each tree has drawn all rows: there are none out of the bag.")
        return Bunch(
            importances_mean=np.nanmean(found, axis=1),
            importances_std=np.nanstd(found, axis=1),
            importances=found,
            feature_names=self._names(),
        )

    def _names(self) -> list[str]:
        """Names of the columns."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{f}" for f in range(self.n_features_in_)] if names is None else list(names)

    def _known_target(self, y: Any) -> NDArray:
        """Class codes, or targets, of the rows of fit."""
        raise NotImplementedError

    def _score_out_of_bag(self, table: Table, target: NDArray) -> None:
        raise NotImplementedError


def out_of_bag_means(trees: Trees, drawn: Drawn, values: NDArray, n_threads: int) -> Floats:
    """Mean prediction of each row by the trees that have not drawn it; NaN where all have."""
    packed = trees.packed(values.dtype, n_threads)
    sums = np.zeros((values.shape[0], packed[0].predictions.shape[1]))
    counts = np.zeros(values.shape[0], np.int64)
    for t in range(len(packed)):
        rows = np.flatnonzero(~drawn(t))
        sums[rows] += mean_answers(packed.alone(t), take_rows(values, rows), n_threads)
        counts[rows] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts[:, None]


def permutation_importances(
    trees: Trees,
    drawn: Drawn,
    origins: Sequence[Origin],
    values: NDArray,
    target: NDArray,
    weight: Weight,
    n_threads: int,
) -> Floats:
    """Increase of each tree's error, out of its bag, when a column is permuted there; (d, trees).

    The error is the fraction of wrong classes, or the mean squared error of targets of shape (n,)
    or (n, n_outputs). NaN for trees that have drawn all rows.
    """
    packed, d = trees.packed(values.dtype, n_threads), values.shape[1]
    classifies = target.dtype.kind != "f"
    at_once = max(BLOCK_BYTES // (d * values.itemsize), 1)

    def measure(t: int) -> Floats:
        out = ~drawn(t)
        rows = np.flatnonzero(out if weight is None else out & (weight > 0.0))
        if rows.size == 0:
            return np.full(d, np.nan)
        increase, whole = np.zeros(d), float(rows.size if weight is None else weight[rows].sum())
        tree = packed[t]
        said: NDArray[Any] = tree.predictions[tree.number]
        if classifies:
            said = most_probable(said, trees.target_ends)
        said = said.reshape(len(said), *target.shape[1:])
        for begin in range(0, rows.size, at_once):
            part = rows[begin : begin + at_once]
            changed, true = np.ascontiguousarray(values[part]), target[part]
            weights = None if weight is None else weight[part]
            error = partial(_error, tree, said, changed, true, weights)
            before = error()
            for f in np.unique(trees[t].feature).tolist():  # others change no path
                column = changed[:, f].copy()
                order = permutation(*origins[t].key, f, rows.size)[begin : begin + at_once]
                changed[:, f] = values[rows[order], f]
                increase[f] += error() - before
                changed[:, f] = column
        return increase / whole

    return np.stack(run(n_threads, measure, [(t,) for t in range(len(packed))]), axis=1)


def _error(
    tree: JoinedTrees, said: NDArray, values: NDArray, true: NDArray, weight: Weight
) -> float:
    """Weight of wrong classes, or the sum of weighted squared errors; `said` is of nodes."""
    stop = np.empty(len(values), NODE)
    walk(values, tree.nodes, int(tree.depth[0]), stop)
    found = said[stop]
    losses = (found - true) ** 2 if true.dtype.kind == "f" else found != true
    if losses.ndim == 2:
        losses = losses.mean(axis=1)
    return float(losses.sum() if weight is None else (losses * weight).sum())


# Bytes of the counts of training rows that are multiplied at a time, and of trees' predictions.
COUNT_BYTES = 1 << 25


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
    n, at_once = counts[0].size, max(COUNT_BYTES // (8 * len(counts)), 1)
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
    at_once = max(COUNT_BYTES // (8 * len(trees) * n_classes), 1)
    for begin in range(0, len(out), at_once):
        part = reached[begin : begin + at_once]
        predictions = np.stack([table[part[:, t]] for t, table in enumerate(tables)], axis=1)
        out[begin : begin + at_once] = jackknife_variances(predictions, common)
    return out
