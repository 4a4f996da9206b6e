"""CART over the partitions of dask arrays and data frames."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gputree.base.texts import fill
from gputree.distributed import reading
from gputree.distributed.base import (
    ClassifierOverPartitions,
    OverPartitions,
    RegressorOverPartitions,
    lazy,
)
from gputree.errors import InputError
from gputree.estimators.arguments import monotonic_signs
from gputree.estimators.cart import Cart, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.column_warnings import warn_of_winners
from gputree.estimators.parameters import keyword_constructor
from gputree.pruning import CostComplexityCV, Pruner
from gputree.pruning.base import ValidationPruner

# What the docstrings of both estimators have.
_SECTIONS = """Parameters
    ----------
    client : distributed.Client, default=None
        Of the cluster to grow on; None for the current one. Clones share it, pickles forget it.
    device : "auto", "cpu" or "cuda", default="auto"
        What workers count on. "auto" is a worker's CUDA device if it has one that passes its
        check, else its CPU; "cuda" is an error on a worker without a device.
    pruning : Pruner, str or None, default=None
        One that needs no rows.
    n_jobs : int or None, default=None
        Threads of the client, which scores; each task on a worker has one.

    Attributes
    ----------
    growth_report_ : dict
        Has ``received_bytes``, too: of arrays that came to the client."""


class _DaskTree(OverPartitions, Cart):
    """Growth over partitions."""

    def _fit_partitions(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._forbid_two_prunings()
        if self.forced_splits is not None:
            raise InputError("forced_splits takes a table in memory, not partitions.")
        pruner = self._rowless_pruner()
        tasks, found, rowsets, identifiers = self._read(X, y, sample_weight)
        signs = monotonic_signs(self, self.columns_)
        options = self._options(found.n_rows, self.n_features_in_, "cpu")._replace(signs=signs)
        grown = reading.grow_tree(tasks, rowsets, options, self.device)
        self.growth_report_ = grown.report
        self.tree_ = self.unpruned_tree_ = grown.tree
        if pruner is not None:
            self.tree_ = pruner.prune_tree(self.tree_)
        self._cut_back()
        warn_of_winners(identifiers, self.tree_, type(self).__name__)
        return self

    def _rowless_pruner(self) -> Pruner | None:
        """The pruner, which needs no rows."""
        pruner = self._pruner()
        if pruner is None:
            return None
        if isinstance(pruner, ValidationPruner | CostComplexityCV) or pruner.takes_training_rows:
            raise InputError(
                f"{type(pruner).__name__} prunes by rows, which lie in partitions: prune "
                f"{type(self).__name__} by 'ccp_alpha' or by a method that needs none, or prune "
                "the tree of 'to_local()' on rows in memory."
            )
        return pruner

    @lazy("leaves : int32 array of shape (n_rows,)")
    def apply(self, X: Any) -> Any:
        """Index of the leaf that each row reaches; see the plain estimator."""
        return np.int32, None


@fill(sections=_SECTIONS)
@keyword_constructor
class DaskDecisionTreeClassifier(ClassifierOverPartitions, _DaskTree, DecisionTreeClassifier):
    """A CART decision tree for classification, grown on the workers that store the partitions.

    The tree is that of `gputree.DecisionTreeClassifier` on the table in one piece, field by field,
    for any partitions and any workers; with ``splitter="binned"``, of the same bins. Workers that
    die, join or restart do not change it, as long as what the partitions are computed from is
    still there. README.md of `gputree.distributed` says what travels and what it costs.

    Parameters, attributes and errors are as for `gputree.DecisionTreeClassifier`, but for

    {sections}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from gputree.distributed import DaskDecisionTreeClassifier
    >>> client = Client(processes=False, dashboard_address=None)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(10_000, 4), chunks=(2_500, 4))
    >>> y = (X[:, 1] > 0.5).astype(int)
    >>> tree = DaskDecisionTreeClassifier(max_depth=3).fit(X, y)  # doctest: +SKIP
    >>> tree.predict(X).compute()  # doctest: +SKIP
    """

    _plain = DecisionTreeClassifier

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Read, grow and prune."""
        if self.misclassification_costs is not None:
            raise InputError(
                f"{type(self).__name__} takes no 'misclassification_costs': weight the classes by "
                "'class_weight'."
            )
        return super()._fit_afresh(X, y, sample_weight)


@fill(sections=_SECTIONS)
@keyword_constructor
class DaskDecisionTreeRegressor(RegressorOverPartitions, _DaskTree, DecisionTreeRegressor):
    """A CART decision tree for regression, grown on the workers that store the partitions.

    As `DaskDecisionTreeClassifier`; parameters, attributes and errors are as for
    `gputree.DecisionTreeRegressor`, but for

    {sections}
    """

    _plain = DecisionTreeRegressor
