"""The alpha of cost-complexity pruning by cross-validation (Breiman et al. 1984, 3.4)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gputree.base.dtypes import Floats
from gputree.base.sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_consistent_length,
    check_sample_weight,
    safe_indexing,
)
from gputree.base.threads import run
from gputree.columns.cells import as_table
from gputree.errors import InputError, checks
from gputree.prediction.losses import (
    RoutedRows,
    encode_target,
    node_loss,
    require_known_labels,
    route,
)
from gputree.pruning.base import Pruner, Rows, require_tree
from gputree.pruning.cost_complexity import CostComplexity, nested_sequence
from gputree.tree import Tree
from gputree.tree.weakest_links import Risk, node_risk, weakest_links

Rule = Literal["min", "1se"]

# Powers of the losses that are summed: for the error, and for its standard error.
POWERS: tuple[Literal[1, 2], ...] = (1, 2)


class CostComplexityCV(Pruner):
    """Cost-complexity pruning with alpha chosen by cross-validation.

    One tree is grown per fold and pruned at the alphas of the full tree. Between two alphas the
    tree does not change; their geometric mean represents the interval. The loss of the held-out
    rows gives the error of each tree of the sequence, and its standard error.

    Parameters
    ----------
    cv : int or cross-validation splitter, default=10
        A number is that of random folds.
    rule : {"min", "1se"}, default="min"
        Take the tree with the minimum cross-validated error, or the smallest one
        within a standard error of it. Ties go to the smaller tree.
    risk : {"impurity", "error"}, default="impurity"
        As in `CostComplexity`. The cross-validated error is that of predictions
        either way: misclassified weight, squared errors, or half the Poisson
        deviance where the tree was grown by that.
    random_state : int, RandomState instance or None, default=None
        Choice of the folds where `cv` is a number.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    cp_table_ : CPTable of shape (n_trees,)
        The nested sequence from the root alone to the full tree, one row per tree:
        `alpha` from which on it is the best, `cp` (alpha as a fraction of the root's
        risk), `n_leaves`, `nsplit` (nodes that are split), `relative_error` (its R),
        `xerror` (cross-validated loss) and `xstd` (standard error of that), the last three
        relative to the root's. A structured array that prints as rpart's ``printcp``;
        ``to_frame()`` is a pandas DataFrame.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone. Classification and Regression
    Trees. Wadsworth, 1984. Section 3.4.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import CostComplexityCV
    >>> X, y = load_iris(return_X_y=True)
    >>> pruner = CostComplexityCV(rule="1se", random_state=0)
    >>> pruner.prune(DecisionTreeClassifier().fit(X, y), X, y).get_n_leaves()
    3
    >>> pruner.cp_table_["n_leaves"]
    array([1, 2, 3, 4, 5, 7, 9])
    """

    _parameter_constraints = {  # noqa: RUF012
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"])],
        "rule": [StrOptions({"min", "1se"})],
        "risk": [StrOptions({"impurity", "error"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self, cv: Any = 10, rule: Rule = "min", risk: Risk = "impurity", random_state: Any = None
    ) -> None:
        self.cv = cv
        self.rule = rule
        self.risk = risk
        self.random_state = random_state

    def prune(
        self,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Choose alpha on the training rows and prune the fitted estimator by it.

        As by other pruners, which see; but `X` and `y` are the rows that `estimator` was fitted on,
        and required. Weights are multiplied by class weights and costs of misclassification as in
        `fit`, once over all rows: folds and held-out losses share them. ValueError also if there
        are fewer rows than folds, or no row outside of a fold has weight.
        """
        return self.prune_on(estimator, X, y, sample_weight)

    def prune_on(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        table: Any = None,
    ) -> Any:
        """Like `prune`, reusing `table`, the coded form of `X`, if given."""
        self._validate_params()
        require_tree(estimator)
        if X is None or y is None:
            raise InputError("CostComplexityCV grows trees on folds: pass the training X and y.")
        check_consistent_length(X, y)
        X = as_table(X, sparse=table is not None)
        tree: Tree = getattr(estimator, "unpruned_tree_", estimator.tree_)
        self.check_targets(tree.n_outputs)
        sequence = nested_sequence(tree, self.risk)
        y = np.asarray(y)
        with checks():
            folds = list(self._folds().split(X, y))
        table, at_once = estimator._for_folds(X if table is None else table)
        errors = self._cross_validate(
            estimator, table, y, sample_weight, sequence.alphas, folds, at_once
        )
        self.cp_table_ = sequence.table(tree, self.risk)
        root_loss = node_risk(tree, "error")[0] or 1.0
        spread = np.maximum(errors.squares - errors.loss**2 / errors.n_rows, 0.0)
        # the first tree of the table is the smallest
        self.cp_table_["xerror"] = (errors.loss / root_loss)[::-1]
        self.cp_table_["xstd"] = (np.sqrt(spread) / root_loss)[::-1]
        self.alpha_ = float(self.cp_table_["alpha"][_choose(self.cp_table_, self.rule)])
        pruned = super().prune(estimator)
        pruned.cp_table_ = self.cp_table_
        return pruned

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """`tree` pruned with the alpha that `prune` has chosen; `data` is not used."""
        if not hasattr(self, "alpha_"):
            raise NotFittedError(
                "CostComplexityCV has chosen no alpha yet: call prune with an estimator first."
            )
        return CostComplexity(self.alpha_, self.risk).prune_tree(tree)

    def _cross_validate(
        self,
        estimator: Any,
        X: Any,
        y: NDArray[Any],
        sample_weight: ArrayLike | None,
        alphas: Floats,
        folds: list[tuple[NDArray[Any], NDArray[Any]]],
        at_once: int,
    ) -> _HeldOutLoss:
        """Loss of the rows at each step of the sequence, by trees grown without these rows."""
        between = np.append(np.sqrt(alphas[:-1] * alphas[1:]), np.inf)
        grower = _without_pruning(estimator)
        if isinstance(getattr(estimator, "classes", None), str):  # folds may lack y's type
            grower.set_params(classes=estimator.classes_)
        if at_once > 1:
            grower.set_params(n_jobs=1)
        weight = _fold_weights(estimator, X, y, sample_weight)
        for number, (train, _) in enumerate(folds, 1):
            if weight is not None and not weight[train].any():
                raise InputError(
                    "CostComplexityCV grows a tree without the rows of each fold: all of those "
                    f"outside fold {number} of {len(folds)} have weight 0. Leave rows of weight 0 "
                    "out, or pass other folds as 'cv'."
                )

        def loss_of(train: NDArray[Any], test: NDArray[Any]) -> list[Floats]:
            on_train, on_test = (None, None) if weight is None else (weight[train], weight[test])
            fold = clone(grower)
            fold._warns_of_columns = False  # all rows were read before
            fold.fit(safe_indexing(X, train), y[train], sample_weight=on_train)
            rows = route(fold, safe_indexing(X, test), y[test], on_test)
            alpha = weakest_links(fold.tree_, self.risk).alpha
            return [_loss_along(fold.tree_, alpha, rows, between, power) for power in POWERS]

        parts = run(at_once, loss_of, folds)
        loss, squares = (sum(part) for part in zip(*parts, strict=True))
        return _HeldOutLoss(loss, squares, len(y))

    def _folds(self) -> Any:
        # Here, since importing it takes as long as the rest of this package.
        from sklearn.model_selection import KFold, check_cv

        if isinstance(self.cv, Integral):
            return KFold(int(self.cv), shuffle=True, random_state=self.random_state)
        return check_cv(self.cv)


class _HeldOutLoss(NamedTuple):
    """Sums over held-out rows at each step: of losses, of squared losses; and the rows."""

    loss: Floats
    squares: Floats
    n_rows: int


def _loss_along(
    tree: Tree, alpha: Floats, rows: RoutedRows, alphas: Floats, power: Literal[1, 2]
) -> Floats:
    """Loss of `rows` by the tree pruned at each alpha of `alphas`, ascending.

    A node is a leaf from its alpha on until an ancestor collapses; before, it predicts only the
    rows that stop there.
    """
    loss = node_loss(tree, rows, power)
    begins = np.where(tree.is_leaf, -np.inf, alpha)
    ends = tree.over_ancestors(np.minimum, begins, np.inf)
    begins = np.minimum(begins, ends)
    changes = np.zeros(alphas.size + 1)
    for when, by in ((begins, loss.as_leaf - loss.stopped), (ends, -loss.as_leaf)):
        np.add.at(changes, np.searchsorted(alphas, when), np.where(when < np.inf, by, 0.0))
    return float(loss.stopped.sum()) + np.cumsum(changes)[:-1]


def _choose(table: NDArray[Any], rule: Rule) -> int:
    best = int(np.argmin(table["xerror"]))
    if rule == "min":
        return best
    limit = table["xerror"][best] + table["xstd"][best]
    return int(np.flatnonzero(table["xerror"] <= limit)[0])


def _fold_weights(
    estimator: Any, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None
) -> Floats | None:
    """Weights of all rows, as in the estimator's `fit`; a fold takes its part of them."""
    target = encode_target(estimator, y)
    if estimator.tree_.task == "classification":
        require_known_labels(y, target)
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    return estimator._combine_weights(weight, target)


def _without_pruning(estimator: Any) -> Any:
    """A clone that grows its tree in full, on rows whose weights are given."""
    off: dict[str, Any] = {"pruning": None, "ccp_alpha": 0.0, "soft_thresholds": False}
    off |= {"class_weight": None, "misclassification_costs": None}
    params = estimator.get_params(deep=False)
    return clone(estimator).set_params(**{k: v for k, v in off.items() if k in params})
