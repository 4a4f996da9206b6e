"""CART and random forests over the partitions of dask arrays and data frames.

rows        read once; those of weight zero stay, so that places in the table are known
draws       each partition hashes all draws of a tree, and counts those of its rows
a tree      grown over the drawn rows as a single tree, in the bins of all rows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from gputree.backends.sharded.coding import code_rows, fit_all
from gputree.backends.sharded.dask import count_rows
from gputree.backends.sharded.histograms import add_up
from gputree.backends.sharded.rows import Read, join_ends
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Floats
from gputree.base.texts import fill
from gputree.base.threads import n_threads
from gputree.distributed import reading
from gputree.distributed.base import (
    ClassifierOverPartitions,
    OverPartitions,
    RegressorOverPartitions,
    lazy,
)
from gputree.distributed.reading import Look
from gputree.ensemble import RandomForestClassifier, RandomForestRegressor
from gputree.ensemble.base import Forest
from gputree.ensemble.draws import Origin, ends_of, is_by_class, part_counts
from gputree.ensemble.trees import balancing
from gputree.errors import InputError
from gputree.estimators.arguments import monotonic_signs
from gputree.estimators.cart import Cart, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.column_warnings import warn_of_winners
from gputree.estimators.growing import Options
from gputree.estimators.growing_parts import Rowsets, layout_of
from gputree.estimators.parameters import keyword_constructor
from gputree.inputs.tables import match_columns
from gputree.inputs.targets import forbid_targets
from gputree.pruning import CostComplexityCV, Pruner
from gputree.pruning.base import ValidationPruner
from gputree.tree import Tree

# What the docstrings of both estimators have.
_OF_TREES = """Parameters
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


@fill(sections=_OF_TREES)
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
        if self.misclassification_costs is not None:
            raise InputError(
                f"{type(self).__name__} takes no 'misclassification_costs': weight the classes by "
                "'class_weight'."
            )
        return super()._fit_afresh(X, y, sample_weight)


@fill(sections=_OF_TREES)
@keyword_constructor
class DaskDecisionTreeRegressor(RegressorOverPartitions, _DaskTree, DecisionTreeRegressor):
    """A CART decision tree for regression, grown on the workers that store the partitions.

    As `DaskDecisionTreeClassifier`; parameters, attributes and errors are as for
    `gputree.DecisionTreeRegressor`, but for

    {sections}
    """

    _plain = DecisionTreeRegressor


_OF_FORESTS = """Parameters
    ----------
    client : distributed.Client, default=None
        Of the cluster to grow on; None for the current one. Clones share it, pickles forget it.
    device : "auto", "cpu" or "cuda", default="auto"
        What workers count on, as in `DaskDecisionTreeClassifier`.
    oob_score, quantreg
        Must be False for one target: both look at the rows again, which lie in partitions.
    n_jobs : int or None, default=None
        Trees that are grown at once, and threads of the client; each task on a worker has one.

    With sample or class weights every worker holds, for its rows, the cumulative weights that rows
    are drawn by, which one worker adds up: `estimators_samples_` are not known then."""


class _DaskForest(OverPartitions, Forest):
    """Growth over partitions."""

    _keeps_all = True

    def _forbid_options(self) -> None:
        for option in ("oob_score", "quantreg"):
            if getattr(self, option):
                raise self._lacking(option)
        if is_by_class(self.max_samples):
            raise self._lacking("max_samples", " by class")

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> PartitionRows:
        tasks, found, rowsets, _ = self._read(X, y, sample_weight)
        weighted = sample_weight is not None or self._by_class(found) is not None
        return PartitionRows(self, found, tasks, rowsets, weighted)

    def _require_columns(self, X: Look) -> None:
        fitted = self.n_features_in_, getattr(self, "feature_names_in_", None)
        match_columns(type(self).__name__, (X.columns.nominal.size, X.names), fitted)

    @lazy("leaves : int32 array of shape (n_rows, n_estimators)")
    def apply(self, X: Any) -> Any:
        """Index of the leaf that each row reaches in each tree; see the plain estimator."""
        return np.int32, len(self._trees)

    @lazy("errors : float64 array of shape (n_rows,), of classifiers (n_rows, n_classes)")
    def predict_standard_error(self, X: Any) -> Any:
        """Standard errors of predictions; see the plain estimator."""
        several = getattr(self, "n_outputs_", 1)
        forbid_targets(several, "predict_standard_error of collections", "Use to_local().")
        return np.float64, getattr(self, "n_classes_", None)

    def _lacking(self, option: str, kind: str = "") -> InputError:
        name = type(self).__name__
        return InputError(
            f"{name} takes no {option!r}{kind}: it looks at all rows again, which lie in "
            f"partitions. Use {name.removeprefix('Dask')} on a table in memory."
        )


@dataclass
class PartitionRows:
    """Rows on workers that a forest is grown on; see `TableRows`."""

    forest: _DaskForest
    given: Look
    tasks: Tasks
    rowsets: Rowsets
    weighted: bool
    grows_whole: bool = False
    stacked: int = 1
    dtype: Any = None  # of rows to predict: not known

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return self.given.n_rows

    def total_and_weight(self) -> tuple[float, Floats | None]:
        """Total weight, and an empty array where rows are drawn by weights: workers have them."""
        if not self.weighted:
            return float(self.n_rows), None
        if self.forest._balances_subsamples and not self.forest.bootstrap:
            raise InputError(
                f"{type(self.forest).__name__} balances the classes of drawn rows, or of rows "
                "without weights: class_weight='balanced_subsample' needs bootstrap=True, or no "
                "sample_weight."
            )
        self.weights = self.tasks.submit(np.concatenate, self._each(weights_of))
        total: float = self.tasks.fetch([self.tasks.submit(np.sum, self.weights)])[0]
        return float(total), np.empty(0)

    def grower(self, n_trees: int) -> tuple[Any, int]:
        """Code the partitions; return what `TableRows.grower` does."""
        forest, tasks = self.forest, self.tasks
        grower = forest._new_tree(device="cpu", verbose=0)
        self.signs = monotonic_signs(forest, forest.columns_)
        layout = tasks.share(layout_of(self.rowsets, self._options(grower)))
        self.bins = fit_all(tasks, self.rowsets.parts, layout)
        coded = self._each(code_rows, tasks.share(self.bins), layout)
        # trees have some of the rows: codes are the same
        self.rowsets = self.rowsets._replace(parts=coded)
        ends = np.cumsum([0, *tasks.fetch(self._each(count_rows))]).tolist()
        self.spans = list(pairwise(ends))
        self.ends: list[Any] = [None] * len(self.spans)
        if self.weighted and forest._draws.draws is not None:
            all_ends = tasks.submit(ends_of, self.weights)
            self.ends = tasks.map(part_of, [all_ends] * len(self.spans), self.spans)
        return grower, min(n_threads(forest.n_jobs), n_trees)

    def grow(self, tree: Any, t: int) -> Tree:
        """Grow tree t by its estimator, on the rows that it has drawn."""
        forest, tasks = self.forest, Tasks(self.tasks.client)
        origin = forest._origins[t]
        given = [origin._replace(of=origin.of._replace(weight=None))] * len(self.spans)
        parts = tasks.map(drawn_rows, self.rowsets.parts, self.spans, self.ends, given)
        if forest._balances_subsamples:
            of_class = tasks.combine(class_weights, add_up, parts, forest.n_classes_)
            parts = tasks.each(weighed_by_class, parts, balancing(of_class))
        extent = tasks.combine(extent_of, join_extents, parts)
        found = replace(self.rowsets.found, **extent._asdict())
        rowsets = self.rowsets._replace(parts=parts, found=found)
        options = self._options(tree)._replace(signs=self.signs)
        return reading.grow_tree(tasks, rowsets, options, forest.device, self.bins).tree

    def _each(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Futures of a function of each partition."""
        return self.tasks.each(function, self.rowsets.parts, *shared)

    def _options(self, tree: Any) -> Options:
        options: Options = tree._options(self.n_rows, self.forest.n_features_in_, "cpu")
        return options


class Extent(NamedTuple):
    """Number, target range and weight range of the rows with weight, which differ by tree."""

    n_rows: int
    ends: tuple[float, float]
    weights: tuple[float, float]


def weights_of(part: Read) -> Floats:
    """The weights of the rows of a partition."""
    return np.ones(len(part.target)) if part.weight is None else part.weight


def part_of(ends: Floats, span: tuple[int, int]) -> Floats:
    """Slice of the cumulative weights `ends` for the rows ``span[0] .. span[1]``."""
    return ends[span[0] : span[1] + 1].copy()


def drawn_rows(part: Read, span: tuple[int, int], ends: Floats | None, given: Origin) -> Read:
    """Rows of a partition that a tree has drawn; without bootstrap, rows of positive weight."""
    (seed, n, draws, *_), number = given
    if draws is not None:
        counts = part_counts(seed, number, n, draws, span, ends)
        part = part._replace(weight=counts.astype(np.float64))
    return part.that_count()


def class_weights(part: Read, n_classes: int) -> Floats:
    """The weight of each class."""
    return np.bincount(part.target, part.weight, minlength=n_classes).astype(np.float64)


def weighed_by_class(part: Read, by_class: Floats) -> Read:
    """Multiply the weights of rows by the weights of their classes."""
    of_rows = by_class[part.target]
    return part._replace(weight=of_rows if part.weight is None else part.weight * of_rows)


def extent_of(part: Read) -> Extent:
    """Number, target range and weight range of the rows of a partition."""
    if len(part.target) == 0:
        return Extent(0, (np.inf, -np.inf), (np.inf, -np.inf))
    weight = np.ones(1) if part.weight is None else part.weight
    ends = float(part.target.min()), float(part.target.max())
    return Extent(len(part.target), ends, (float(weight.min()), float(weight.max())))


def join_extents(found: list[Extent]) -> Extent:
    """Combine the extents of partitions."""
    total = found[0]
    for n, ends, weights in found[1:]:
        total = Extent(
            total.n_rows + n, join_ends(total.ends, ends), join_ends(total.weights, weights)
        )
    return total


@fill(sections=_OF_FORESTS)
@keyword_constructor
class DaskRandomForestClassifier(ClassifierOverPartitions, _DaskForest, RandomForestClassifier):
    """A random forest for classification, grown on the workers that store the partitions.

    The forest equals that of `gputree.RandomForestClassifier` on the whole table, bit for bit,
    for any partitions and any workers: row i of the table is the same whichever partition it is in,
    and draws are hashes of its place. Partitions must come in the same order each time.

    Parameters, attributes and errors are as for `gputree.RandomForestClassifier`, but for

    {sections}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from gputree.distributed import DaskRandomForestClassifier
    >>> client = Client(processes=False, dashboard_address=None)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(10_000, 4), chunks=(2_500, 4))
    >>> y = (X[:, 1] > 0.5).astype(int)
    >>> forest = DaskRandomForestClassifier(n_estimators=10)
    >>> forest.fit(X, y).predict(X).compute()  # doctest: +SKIP
    """

    _plain = RandomForestClassifier

    def _by_class(self, found: Any) -> Floats | None:
        """Weight of each class, where it is the same in all trees."""
        return None if self._balances_subsamples else super()._by_class(found)


@fill(sections=_OF_FORESTS)
@keyword_constructor
class DaskRandomForestRegressor(RegressorOverPartitions, _DaskForest, RandomForestRegressor):
    """A random forest for regression, grown on the workers that store the partitions.

    See `DaskRandomForestClassifier`; parameters, attributes and errors are as for
    `gputree.RandomForestRegressor`, but for

    {sections}
    """

    _plain = RandomForestRegressor

    def predict_quantiles(self, X: Any = None, quantiles: Any = None) -> Any:
        """Raise ValueError: the targets in leaves are not kept; see ``quantreg``."""
        raise self._lacking("quantreg")
