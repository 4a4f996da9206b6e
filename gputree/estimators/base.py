"""Base class of all trees: parameters, growth and pruning, descent to the leaves."""

from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends.devices import device_labels, resolve_device, to_host
from gputree.base.dtypes import Floats, Int32s, Weight
from gputree.base.threads import n_threads
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.column_warnings import warn_of_winners
from gputree.estimators.reporting import Reporting, column_usage
from gputree.estimators.table_estimator import TableEstimator
from gputree.evaluation import Lines
from gputree.inputs.tables import Table
from gputree.inputs.validation import check_weight_range, check_weights
from gputree.pruning import CostComplexityCV, Pruner, get_pruner
from gputree.pruning.base import ValidationPruner
from gputree.tree import Tree
from gputree.tree.statistics import impurity_importances

# Folds that are grown at once: each has separate targets, entries and histograms.
MOST_FOLDS = 4


# X, y and sample_weight.
Given = tuple[Any, Any, Any]


class BaseDecisionTree(Reporting, TableEstimator):
    """Growth, pruning and descent; subclasses say what the target is."""

    pruning: Pruner | str | None
    tree_: Tree
    unpruned_tree_: Tree
    n_features_in_: int

    # Whether trees of parts of a table may share its codes, and the categories that it has.
    _shares_codes: ClassVar[bool] = False

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        # of the file, or the pruner, of a former fit
        for name in ("missing_marks_", "reading_", "cp_table_", "edits_"):
            self.__dict__.pop(name, None)
        sample_weight = to_host(sample_weight)
        table = self._learn_table(X)
        stay = self._takes_device_labels(table, sample_weight)
        y = device_labels(y, table.given) if stay else to_host(y)
        target = self._check_target(y, table.shape[0])
        weight = self._combine_weights(check_weights(sample_weight, target), target)
        check_weight_range(weight)
        self.n_outputs_ = 1 if target.ndim == 1 else target.shape[1]
        identifiers = self._warn_of_identifiers(table, weight)
        self._grow_and_prune(table, target, weight, (X, y, sample_weight))
        warn_of_winners(identifiers, self.tree_, self._called)
        return self

    def _grow_and_prune(self, table: Table, target: NDArray, weight: Weight, given: Given) -> None:
        """Keep the tree of some rows; `given` are they as `fit` takes them."""
        pruner = self._pruner()
        if pruner is not None:
            pruner.check_targets(self.n_outputs_)
        if isinstance(pruner, ValidationPruner):
            growing, validation_rows = pruner.hold_out(table.shape[0])
            self._grow(table.take(growing), target[growing], take_weights(weight, growing))
            table, target, weight = (
                table.take(validation_rows),
                target[validation_rows],
                take_weights(weight, validation_rows),
            )
        else:
            self._grow(table, target, weight)
        if isinstance(pruner, CostComplexityCV):  # grows again, on parts of the table
            X, y, sample_weight = given
            coded = CodedTable.of(table) if self._shares_codes else None
            self.tree_ = pruner.prune_on(self, to_host(X), y, sample_weight, coded).tree_
            self.cp_table_ = pruner.cp_table_
        elif pruner is not None:  # rows descend on the host
            rows = to_host(table.values), target, weight
            placed = pruner.place(self.tree_, *rows, n_threads(self.n_jobs))
            self.tree_ = pruner.prune_tree(self.tree_, placed)
        self._cut_back()

    def _cut_back(self) -> None:
        """Prune by parameters other than `pruning`."""

    def _loss_weights(self, weight: Floats, target: NDArray) -> Floats:
        """The weights of rows where a pruner counts losses on them."""
        return weight

    def _pruner(self) -> Pruner | None:
        """The pruner, as random as the estimator where it has no `random_state`."""
        if self.pruning is None:
            return None
        pruner: Pruner = clone(get_pruner(self.pruning))
        if "random_state" in pruner.get_params() and pruner.random_state is None:
            pruner.set_params(random_state=self.random_state)
        return pruner

    def _takes_device_labels(self, table: Table, sample_weight: Any) -> bool:
        """Return whether labels may stay on a device: only growth reads them."""
        return False

    def _for_folds(self, X: Any) -> tuple[Any, int]:
        """Code `X` once for the trees of folds; return the number of trees to grow at once, too.

        One tree for each thread takes less time than all threads on each tree in turn.
        """
        if not self._shares_codes:
            return X, 1
        table = X if isinstance(X, CodedTable) else CodedTable.of(clone(self)._learn_table(X))
        on_cpu = {table.device, resolve_device(self.device)} <= {None, "auto", "cpu"}
        return table, min(n_threads(self.n_jobs), MOST_FOLDS) if on_cpu else 1

    def _grow(self, table: Table, target: NDArray, weight: Weight) -> None:
        """Grow and keep the tree; rows of weight zero take no part."""
        n = table.shape[0]  # shares are of all rows, as in scikit-learn
        if weight is not None and not weight.all():
            if not weight.any():  # of the rows that a pruner leaves
                raise InputError("Sample weights must contain at least one non-zero number.")
            if not self._shares_codes or getattr(self, "splitter", "exact") == "binned":
                table, target, weight = with_weight(table, target, weight)
                table = table.compact()  # bins are fitted to rows that count
        self.tree_ = self.unpruned_tree_ = self._grow_tree(table, target, weight, n)

    def _grow_tree(self, table: Table, target: NDArray, weight: Weight, n: int) -> Tree:
        """Grow a tree without pruning; parameters that are fractions are relative to n rows."""
        raise NotImplementedError

    def _descended(self, dtype: np.dtype[Any]) -> Tree:
        check_is_fitted(self, "tree_")
        return self.tree_

    def _take(self, of_node: NDArray[Any], X: Any) -> NDArray[Any]:
        """Look up `of_node` for the node that each row of `X` reaches."""
        found: NDArray[Any] = self._descend(partial(prediction.take, of_node=of_node), X)
        return found

    @explained
    def apply(self, X: Any) -> Int32s:
        """Index of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        leaves : int32 array of shape (n_rows,)
            Indices of nodes of ``tree_``.
        """
        leaves: Int32s = self._descend(prediction.apply, X)
        return leaves

    @explained
    def decision_path(self, X: Any) -> csr_matrix:
        """Nodes on the path of each row.

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
        """Depth of the tree; 0 for a root alone."""
        check_is_fitted(self, "tree_")
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    def _report_size(self) -> dict[str, int]:
        return {
            "leaves": self.tree_.n_leaves,
            "nodes": self.tree_.n_nodes,
            "depth": self.tree_.max_depth,
        }

    def _report_tables(self, X: Any, y: NDArray, weight: Weight) -> dict[str, Lines]:
        names = getattr(self, "feature_names_in_", None)
        return {"column_usage": column_usage(self.tree_, self._parts(X), names, weight)}

    def _training_mean(self) -> float | Floats:
        return self.tree_.statistics[0] if self.tree_.task == "regression" else np.nan

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of each column in the total decrease of impurity, shape (n_features,)."""
        check_is_fitted(self, "tree_")
        return impurity_importances(self.tree_)


def count_rows(number: float, n: int) -> int:
    """A number of rows, or a fraction of n, as a number."""
    return int(number) if isinstance(number, Integral) else int(np.ceil(number * n))


def take_weights(weight: Weight, rows: NDArray) -> Weight:
    """Weights of some rows; None where all rows have the same."""
    return None if weight is None else weight[rows]


def with_weight(table: Table, target: NDArray, weight: Weight) -> tuple[Table, NDArray, Weight]:
    """Select the rows that have weight, with their targets and weights."""
    if weight is None or weight.all():
        return table, target, weight
    rows = np.flatnonzero(weight)
    return table.take(rows), target[rows], weight[rows]
