"""What all estimators share: parameters, fitting, descent to the leaves."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends import DEVICES
from gputree.backends.cuda.inputs import take_rows, to_host
from gputree.compilation.waits import on_screen, waiting
from gputree.estimators.arguments import advise, explained, forbid_values, require_pruner
from gputree.estimators.growing import Columns
from gputree.estimators.identifiers import (
    find_identifiers,
    warn_of_identifiers,
    warn_of_winners,
)
from gputree.importance import impurity_importances
from gputree.pruning import PRUNERS, CostComplexityCV, Pruner, get_pruner
from gputree.pruning.base import ValidationPruner
from gputree.tree import Tree
from gputree.validation import check_table, check_weight_range, check_weights

# Threads that may be asked for: no machine has more, and a slip is told.
MOST_JOBS = 1 << 16


class BaseDecisionTree(BaseEstimator):
    """Growth, pruning and descent; subclasses say what the target is."""

    pruning: Pruner | str | None
    tree_: Tree
    unpruned_tree_: Tree
    n_features_in_: int

    # Parameters, and values of parameters, that other trees have and this one has not: what to
    # write instead.
    _lacks: ClassVar[dict[str, str]] = {}
    _refuses: ClassVar[dict[tuple[str, str], str]] = {}

    # Whether a table on a CUDA device is grown on where it is.
    _grows_on_device: ClassVar[bool] = False

    # Whether the values of numeric columns are categories, too.
    _every_nominal: ClassVar[bool] = False

    # Order of the table in memory that growth reads fastest.
    _order: ClassVar[Literal["C", "F"]] = "C"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "categorical_features": [StrOptions({"auto"}), "array-like", None],
        "pruning": [StrOptions(set(PRUNERS)), Pruner, None],
        "random_state": ["random_state"],
        "device": [StrOptions(set(DEVICES))],
        "n_jobs": [Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
        "verbose": ["verbose"],
    }

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit wholly, or stay as before."""
        before = vars(self).copy()
        try:
            with waiting(on_screen if self.verbose else None):
                return self._fit_afresh(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Validate, grow and prune."""
        y, sample_weight = to_host(y), to_host(sample_weight)
        values = check_table(self, X, reset=True, order=self._order)
        target = self._check_target(y, values.shape[0])
        weight = self._combine_weights(check_weights(sample_weight, values), target)
        check_weight_range(weight)
        self.n_outputs_ = 1
        named = (values, getattr(self, "feature_names_in_", None), self._every_nominal)
        identifiers = find_identifiers(self.columns_, *named)
        warn_of_identifiers(identifiers, type(self).__name__)
        pruner = self._pruner()
        if isinstance(pruner, ValidationPruner):
            growing, held = pruner.hold_out(values.shape[0])
            self._grow(take_rows(values, growing), target[growing], _take(weight, growing))
            values, target, weight = take_rows(values, held), target[held], _take(weight, held)
        else:
            self._grow(values, target, weight)
        if isinstance(pruner, CostComplexityCV):  # grows again, on parts of the table
            self.tree_ = pruner.prune(self, to_host(X), y, sample_weight).tree_
        elif pruner is not None:  # rows descend on the host
            rows = np.ascontiguousarray(to_host(values)), target, weight
            self.tree_ = pruner.prune_tree(self.tree_, pruner.place(self.tree_, *rows))
        self._cut_back()
        warn_of_winners(identifiers, self.tree_, type(self).__name__)
        return self

    def _cut_back(self) -> None:
        """Prune by parameters other than `pruning`."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a pruner given by name (``pruning__confidence``), too.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self

        Raises
        ------
        ValueError
            There is no such parameter, or one is that of a pruner and `pruning` is None.
        """
        for name in params:
            if name in self._lacks:
                kind = type(self).__name__
                raise ValueError(f"{kind} has no parameter {name!r}: {advise(self, name)}")
        pruning = params.get("pruning", self.pruning)
        nested = [name for name in params if name.startswith("pruning__")]
        if nested and pruning is None:
            require_pruner(self, nested)
        if nested and isinstance(pruning, str):
            params["pruning"] = get_pruner(pruning, given=nested)
        return super().set_params(**params)

    def _validate_params(self) -> None:
        forbid_values(self)
        super()._validate_params()

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
        n = values.shape[0]  # shares are of all rows, as in scikit-learn
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight)
            if rows.size == 0:  # of those that a pruner leaves
                raise ValueError("Sample weights must contain at least one non-zero number.")
            values, target, weight = take_rows(values, rows), target[rows], weight[rows]
        self.tree_ = self.unpruned_tree_ = self._grow_tree(values, target, weight, n)

    def _grow_tree(
        self, values: NDArray, target: NDArray, weight: NDArray[np.float64] | None, n: int
    ) -> Tree:
        """The unpruned tree; n rows count where a parameter is a share of them."""
        raise NotImplementedError

    # ---------------------------------------------------------- descent
    def _values(self, X: Any) -> NDArray:
        """`X` as the matrix that the tree tests, columns as at fit."""
        return check_table(self, X, reset=False)

    def _descend(self, descent: Callable[..., Any], X: Any) -> Any:
        """What `descent`, of `gputree.prediction`, finds for each row of `X`."""
        check_is_fitted(self, "tree_")
        values = self._values(X)
        columns = Columns(values)
        found = descent(self.tree_, values, n_threads(self.n_jobs), before=columns.inspect)
        columns.forbid_infinity()
        return found

    def _leaves(self, X: Any) -> NDArray[np.int32]:
        leaves: NDArray[np.int32] = self._descend(prediction.apply, X)
        return leaves

    @explained
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

    @explained
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
        path: csr_matrix = self._descend(prediction.decision_path, X)
        return path

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


def count_rows(number: float, n: int) -> int:
    """A number of rows, or a share of n, as a number."""
    return int(number) if isinstance(number, Integral) else int(np.ceil(number * n))


def _take(weight: NDArray[np.float64] | None, rows: NDArray) -> NDArray[np.float64] | None:
    return None if weight is None else weight[rows]
