"""What all estimators share: parameters, fitting, descent to the leaves."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends import DEVICES
from gputree.estimators.growing import UNLIMITED_DEPTH, Columns, Options, grow_tree
from gputree.importance import impurity_importances
from gputree.pruning import PRUNERS, CostComplexity, Pruner, get_pruner
from gputree.pruning.base import ValidationPruner
from gputree.tree import Tree
from gputree.validation import check_table, check_weight_range, check_weights


class BaseDecisionTree(BaseEstimator):
    """Growth, pruning and descent; subclasses say what the target is."""

    tree_: Tree
    unpruned_tree_: Tree
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "pruning": [StrOptions(set(PRUNERS)), Pruner, None],
        "random_state": ["random_state"],
        "device": [StrOptions(set(DEVICES))],
        "splitter": [StrOptions({"exact", "binned"})],
        "max_bins": [Interval(Integral, 2, 256, closed="both")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit wholly, or stay as before."""
        before = vars(self).copy()
        try:
            return self._fit_afresh(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Validate, grow and prune."""
        if self.ccp_alpha > 0.0 and self.pruning is not None:
            raise ValueError(
                f"{type(self).__name__} takes 'ccp_alpha' or 'pruning', not both; got "
                f"ccp_alpha={self.ccp_alpha!r} and pruning={self.pruning!r}."
            )
        values = check_table(self, X, reset=True)
        target = self._check_target(y, values.shape[0])
        weight = self._combine_weights(check_weights(sample_weight, values), target)
        check_weight_range(weight)
        self.n_outputs_ = 1
        pruner = self._pruner()
        if isinstance(pruner, ValidationPruner):
            growing, held = pruner.hold_out(values.shape[0])
            self._grow(values[growing], target[growing], _take(weight, growing))
            rows = _safe_indexing(X, held), _safe_indexing(y, held), _take(weight, held)
        else:
            self._grow(values, target, weight)
            rows = X, y, weight
        if self.ccp_alpha > 0.0:
            self.tree_ = CostComplexity(self.ccp_alpha).prune_tree(self.tree_)
        if pruner is not None:
            self.tree_ = pruner.prune(self, *rows).tree_
        return self

    def _pruner(self) -> Pruner | None:
        """The pruner, as random as the estimator where it has no random state of its own."""
        if self.pruning is None:
            return None
        pruner: Pruner = clone(get_pruner(self.pruning))
        if "random_state" in pruner.get_params() and pruner.random_state is None:
            pruner.set_params(random_state=self.random_state)
        return pruner

    def _grow(self, values: NDArray, target: NDArray, weight: NDArray[np.float64] | None) -> None:
        """Grow and keep the tree; rows of weight zero take no part."""
        options = self._options(*values.shape)  # shares are of all rows, as in scikit-learn
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight)
            if rows.size == 0:  # of those that a pruner leaves
                raise ValueError("Sample weights must contain at least one non-zero number.")
            values, target, weight = values[rows], target[rows], weight[rows]
        grown = grow_tree(values, target, weight, options)
        self.tree_ = self.unpruned_tree_ = grown.tree
        self.growth_report_ = grown.report

    def _options(self, n: int, d: int) -> Options:
        """The parameters' meaning for a table of n rows and d columns."""
        return Options(
            criterion="entropy" if self.criterion == "log_loss" else self.criterion,
            n_classes=getattr(self, "n_classes_", 0),
            max_depth=None if self.max_depth is None else min(int(self.max_depth), UNLIMITED_DEPTH),
            min_samples_split=max(_count(self.min_samples_split, n), 2),
            min_samples_leaf=_count(self.min_samples_leaf, n),
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            min_impurity_decrease=self.min_impurity_decrease,
            max_features=_column_count(self.max_features, d),
            max_leaf_nodes=self.max_leaf_nodes,
            exact=self.splitter == "exact",
            max_bins=int(self.max_bins),
            device=self.device,
            n_threads=n_threads(self.n_jobs),
            key=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            verbose=bool(self.verbose),
        )

    # ---------------------------------------------------------- descent
    def _leaves(self, X: Any) -> NDArray[np.int32]:
        check_is_fitted(self, "tree_")
        values = check_table(self, X, reset=False)
        columns = Columns(values)
        threads = n_threads(self.n_jobs)
        leaves = prediction.apply(self.tree_, values, threads, before=columns.inspect)
        columns.forbid_infinity()
        return leaves

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Index of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        leaves : int32 array of shape (n_rows,)
            Indices of nodes of ``tree_``.
        """
        return self._leaves(X)

    def decision_path(self, X: Any) -> csr_matrix:
        """Nodes that each row passes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        indicator : CSR matrix of shape (n_rows, n_nodes)
            1 where the row passes the node.
        """
        leaves = self._leaves(X)
        return prediction.decision_path(self.tree_, leaves)

    def get_depth(self) -> int:
        """Depth of the tree; that of a root alone is 0."""
        check_is_fitted(self, "tree_")
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the total decrease of impurity, shape (n_features,)."""
        check_is_fitted(self, "tree_")
        return impurity_importances(self.tree_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def n_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None is all of numba's, negative counts back from them."""
    most = numba.config.NUMBA_NUM_THREADS
    if n_jobs is None:
        return most
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None for all threads, or 1.")
    return max(n_jobs if n_jobs > 0 else most + 1 + n_jobs, 1)


def _count(number: float, n: int) -> int:
    """A number of rows, or a share of n, as a number."""
    return int(number) if isinstance(number, Integral) else int(np.ceil(number * n))


def _column_count(max_features: Any, d: int) -> int:
    """Number of columns to draw at a node."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, int(np.sqrt(d)))
    if max_features == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(max_features, Integral):
        return min(int(max_features), d)
    return max(1, int(max_features * d))


def _take(weight: NDArray[np.float64] | None, rows: NDArray) -> NDArray[np.float64] | None:
    return None if weight is None else weight[rows]
