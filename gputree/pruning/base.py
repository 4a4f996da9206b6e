"""Base classes of pruners, and the rows that some methods need."""

import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from gputree.base.dtypes import Floats, Values, Weight
from gputree.base.sklearn import Interval, check_sample_weight
from gputree.base.texts import fill
from gputree.base.threads import n_threads
from gputree.errors import InputError, InputTypeError
from gputree.inputs.targets import forbid_targets
from gputree.prediction.losses import (
    RoutedRows,
    encode_target,
    encode_values,
    require_known_labels,
    route_values,
)
from gputree.tree import Tree


@dataclass(frozen=True)
class TrainingRows:
    """The rows a tree was grown on, in the form of its tests.

    Attributes
    ----------
    X : float32 or float64 array of shape (n_rows, n_features)
        Numeric values, or the codes of categories, -1 where unknown; NaN where missing.
    target : int array of shape (n_rows,)
        Class codes.
    weight : float64 array of shape (n_rows,)
        Sample weights.
    n_threads : int, default=1
        Number of threads.
    """

    X: Values
    target: NDArray[np.integer]
    weight: Floats
    n_threads: int = 1


Rows = RoutedRows | TrainingRows


class Pruner(BaseEstimator):
    """Base of the pruning methods; subclasses implement `prune_tree`."""

    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012

    # True: the rows of `prune` are those that the tree was grown on.
    takes_training_rows = False

    # True: trees may have several targets, whose losses are added up.
    _takes_targets = False

    def check_targets(self, n_outputs: int) -> None:
        """Raise ValueError if the method prunes trees of one target, and there are more."""
        if not self._takes_targets:
            forbid_targets(
                n_outputs, type(self).__name__,
                "Prune by CostComplexity, ReducedError or ValidationPrePruning.",
            )  # fmt: skip

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """Prune one tree.

        Parameters
        ----------
        tree : Tree
            Not changed.
        data : RoutedRows or TrainingRows, optional
            For the methods that need rows: those to prune by, at the nodes of
            `tree` where they stop, or those that `tree` was grown on.

        Returns
        -------
        Tree
            The pruned tree, renumbered breadth-first.

        Raises
        ------
        ValueError
            If rows are needed and `data` is None, or the method is not for such trees.
        """
        raise NotImplementedError

    def prune(
        self,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Prune a fitted estimator, without growing again.

        Pruning starts from the tree as it was grown (`unpruned_tree_`), also
        where `estimator` itself has been pruned before.

        Parameters
        ----------
        estimator : fitted gputree estimator
            Not changed.
        X : array-like of shape (n_rows, n_features), optional
            Rows to prune by, or the training rows where a method requires them.
        y : array-like of shape (n_rows,), optional
            Their targets; required with `X`.
        sample_weight : array-like of shape (n_rows,), optional
            They are multiplied by the estimator's class weights and costs of misclassification;
            ``class_weight="balanced"`` balances the classes of these rows.

        Returns
        -------
        estimator
            A fitted copy with the pruned `tree_` and the full `unpruned_tree_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        TypeError
            If it has several trees.
        ValueError
            If only one of `X` and `y` is given, a method lacks its rows, or the tree has several
            targets and the method takes one.
        """
        require_tree(estimator)
        if (X is None) != (y is None):
            raise InputError(f"{type(self).__name__}.prune needs X and y together, or neither.")
        pruned = copy.copy(estimator)
        tree: Tree = getattr(estimator, "unpruned_tree_", estimator.tree_)
        self.check_targets(tree.n_outputs)
        if tree.soft_lower is not None:  # bounds depend on one tree and its rows
            tree = replace(tree, soft_lower=None, soft_upper=None)
        pruned.tree_ = pruned.unpruned_tree_ = tree
        data = None
        if y is not None:
            values, target, weight = encode(pruned, X, y, sample_weight)
            if self.takes_training_rows:
                require_known_labels(y, target)
            weight = pruned._loss_weights(weight, target)
            data = self.place(
                tree, values, target, weight, n_threads(getattr(pruned, "n_jobs", None))
            )
        pruned.tree_ = self.prune_tree(tree, data)
        return pruned

    def place(
        self,
        tree: Tree,
        values: Values,
        target: NDArray[Any],
        weight: Weight,
        n_threads: int = 1,
    ) -> Rows | None:
        """Rows in the form that `prune_tree` takes; None for a method without rows.

        Parameters
        ----------
        tree : Tree
        values : float32 or float64 array of shape (n_rows, n_features)
            As the tree's tests see them.
        target : array of shape (n_rows,)
            Class codes, -1 for a label unknown to the tree, or target values.
        weight : float64 array of shape (n_rows,), or None
        n_threads : int, default=1
            Number of threads.
        """
        if not self.takes_training_rows:
            return None
        weight = np.ones(len(target)) if weight is None else weight
        return TrainingRows(values, target, weight, n_threads)


HELD_OUT = """validation_fraction : float, default=0.3
        Fraction of the rows an estimator holds out before it grows, where pruning
        is part of its fit. Not used when validation rows are given.
    random_state : int, RandomState instance or None, default=None
        Choice of those rows."""


@fill(held_out=HELD_OUT)
class ValidationPruner(Pruner):
    """Base of the methods that prune by rows which the tree was not grown on.

    Parameters
    ----------
    {held_out}
    """

    _parameter_constraints = {  # noqa: RUF012
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(self, validation_fraction: float = 0.3, random_state: Any = None) -> None:
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def hold_out(self, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Split rows at random into those to grow on and those to prune by.

        They are drawn by position: in another order of rows, other rows are held out.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        growing, validation : int arrays
            Row indices, ascending; neither is empty.

        Raises
        ------
        ValueError
            If there are fewer than two rows.
        """
        self._validate_params()
        if n_rows < 2:
            raise InputError(
                f"{type(self).__name__} holds out rows for validation and needs at least 2 rows. "
                f"Got {n_rows}."
            )
        n_held = min(max(round(self.validation_fraction * n_rows), 1), n_rows - 1)
        order = check_random_state(self.random_state).permutation(n_rows)
        return np.sort(order[n_held:]), np.sort(order[:n_held])

    def place(
        self,
        tree: Tree,
        values: Values,
        target: NDArray[Any],
        weight: Weight,
        n_threads: int = 1,
    ) -> RoutedRows:
        """Route the rows, or parts of them, to the nodes where they stop in the tree."""
        return route_values(tree, values, target, weight)

    def _require_rows(self, data: Rows | None) -> RoutedRows:
        if not isinstance(data, RoutedRows):
            given = "none" if data is None else type(data).__name__
            raise InputError(
                f"{type(self).__name__} prunes by rows that the tree was not grown on: "
                f"pass X and y of a validation set. Got {given}."
            )
        return data


def encode(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Values, NDArray[Any], Floats]:
    """Encode rows for the estimator's tree: matrix, class codes or targets, sample weights."""
    values = encode_values(estimator, X, y)
    weight = check_sample_weight(sample_weight, values, dtype=np.float64, ensure_non_negative=True)
    return values, encode_target(estimator, y), weight


def require_tree(estimator: Any) -> None:
    """Raise NotFittedError before fit, TypeError for a forest or boosted trees."""
    if hasattr(estimator, "estimators_"):
        kind = type(estimator).__name__
        raise InputTypeError(f"Pruning takes one tree, got {kind}: pass one of its estimators_.")
    check_is_fitted(estimator, "tree_")
