"""Random forests over the partitions of dask arrays and data frames.

rows        read once; those of weight zero stay, so that places in the table are known
draws       each partition hashes all draws of a tree, and counts those of its rows
a tree      grown over the drawn rows as a single tree, in the bins of all rows
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gputree._docs import fill
from gputree.backends.base import Floats
from gputree.backends.sharded.coding import code_rows, fit_all
from gputree.backends.sharded.rows import Read, join_ends
from gputree.backends.sharded.tasks import Tasks
from gputree.distributed import growing
from gputree.distributed.base import (
    ClassifierOverPartitions,
    OverPartitions,
    RegressorOverPartitions,
    lazy,
    with_client,
)
from gputree.distributed.reading import Look
from gputree.ensemble import RandomForestClassifier, RandomForestRegressor
from gputree.ensemble.base import Forest, balancing, of_tree
from gputree.ensemble.compact import CompactTree
from gputree.ensemble.draws import Origin, ends_of, part_counts
from gputree.errors import InputError
from gputree.estimators.growing_parts import Rowsets, layout_of
from gputree.estimators.monotonic import monotonic_signs
from gputree.tables import match_columns
from gputree.threads import n_threads

_SECTIONS = """Parameters
    ----------
    client : distributed.Client, default=None
        Of the cluster to grow on; None for the current one. Clones share it, pickles forget it.
    device : "auto", "cpu" or "cuda", default="auto"
        What workers count on, as in `DaskDecisionTreeClassifier`.
    oob_score, quantreg
        Must be False: both look at the rows again, which lie in partitions.
    n_jobs : int or None, default=None
        Trees that are grown at once, and threads of the client; each task on a worker has one.

    With sample or class weights every worker holds, for its rows, the cumulative weights that rows
    are drawn by, which one worker adds up: `estimators_samples_` are not known then."""


class _DaskForest(OverPartitions, Forest):
    """Growth over partitions."""

    _keeps_all = True

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Read, draw and grow."""
        name = type(self).__name__
        for option in ("oob_score", "quantreg"):
            if getattr(self, option):
                raise self._lacking(option)
        before = copy(self)
        tasks, found, rowsets, _ = self._read(X, y, sample_weight)
        known = self._known_trees(before, found)
        if len(known) == self.n_estimators:
            return self
        weights = total = None
        if sample_weight is not None or self._by_class(found) is not None:
            if self._balances_subsamples and not self.bootstrap:
                raise InputError(
                    f"{name} balances the classes of drawn rows, or of rows without weights: "
                    "class_weight='balanced_subsample' needs bootstrap=True, or no sample_weight."
                )
            weights = tasks.submit(np.concatenate, tasks.each(weights_of, rowsets.parts))
            total = float(tasks.fetch([tasks.submit(np.sum, weights)])[0])
        self._set_draws(known, found.n_rows, total, None if weights is None else np.empty(0))
        signs, threads = monotonic_signs(self, self.columns_), n_threads(self.n_jobs)
        at_once = min(threads, self.n_estimators - len(known))
        grower = self._new_tree(device="cpu", verbose=0, n_jobs=max(threads // at_once, 1))
        shape = (found.n_rows, self.n_features_in_)
        layout = tasks.share(layout_of(rowsets, grower._options(*shape, "cpu")))
        bins = fit_all(tasks, rowsets.parts, layout)
        coded = tasks.each(code_rows, rowsets.parts, tasks.share(bins), layout)
        rowsets = rowsets._replace(parts=coded)  # trees have some of the rows: codes are the same
        rows = _Rows(self, tasks, rowsets, weights)

        def grow(t: int) -> CompactTree:
            tree, mine = of_tree(grower, self._origins[t]), Tasks(tasks.client)
            options = tree._options(*shape, "cpu")._replace(signs=signs)
            drawn = rows.of_tree(mine, t)
            tree.tree_ = growing.grow_tree(mine, drawn, options, self.device, bins).tree
            tree._cut_back()
            return CompactTree.of(tree.tree_)

        self._grow_trees(known, grow, at_once)
        return self

    def _require_columns(self, X: Look) -> None:
        known = self.n_features_in_, getattr(self, "feature_names_in_", None)
        match_columns(type(self).__name__, (X.columns.nominal.size, X.names), known)

    @lazy("leaves : int32 array of shape (n_rows, n_estimators)")
    def apply(self, X: Any) -> Any:
        """Index of the leaf that each row reaches in each tree; see the plain estimator."""
        return np.int32, len(self._trees)

    def _lacking(self, option: str) -> InputError:
        name = type(self).__name__
        return InputError(
            f"{name} takes no {option!r}: it looks at all rows again, which lie in partitions. Use "
            f"{name.removeprefix('Dask')} on a table in memory."
        )


class _Rows:
    """The rows of each tree, on workers."""

    def __init__(self, forest: _DaskForest, tasks: Tasks, rowsets: Rowsets, weights: Any) -> None:
        sizes = tasks.fetch(tasks.each(count_rows, rowsets.parts))
        last = np.cumsum([0, *sizes]).tolist()
        self.forest, self.rowsets = forest, rowsets
        self.spans = list(zip(last[:-1], last[1:], strict=True))
        self.ends: list[Any] = [None] * len(self.spans)
        if weights is not None and forest._draws.draws is not None:
            ends = tasks.submit(ends_of, weights)
            self.ends = tasks.map(part_of, [ends] * len(self.spans), self.spans)

    def of_tree(self, tasks: Tasks, t: int) -> Rowsets:
        """The rows of tree t, with how often each is drawn as its weight."""
        origin = self.forest._origins[t]
        given = [origin._replace(of=origin.of._replace(weight=None))] * len(self.spans)
        parts = tasks.map(drawn_rows, self.rowsets.parts, self.spans, self.ends, given)
        if self.forest._balances_subsamples:
            classes = self.forest.n_classes_
            of_class = tasks.combine(class_weights, add_up, parts, classes)
            parts = tasks.each(weighed_by_class, parts, balancing(of_class))
        extent = tasks.combine(extent_of, join_extents, parts)
        found = replace(self.rowsets.found, **extent._asdict())
        return self.rowsets._replace(parts=parts, found=found)


# ------------------------------------------------------------------------- tasks
class Extent(NamedTuple):
    """Number, target range and weight range of the rows with weight, which differ by tree."""

    n_rows: int
    ends: tuple[float, float]
    weights: tuple[float, float]


def count_rows(part: Read) -> int:
    """Rows of a partition."""
    return len(part.target)


def weights_of(part: Read) -> Floats:
    """The weights of the rows of a partition."""
    return np.ones(len(part.target)) if part.weight is None else part.weight


def part_of(ends: Floats, span: tuple[int, int]) -> Floats:
    """Slice of the cumulative weights `ends` for the rows ``span[0] .. span[1]``."""
    return ends[span[0] : span[1] + 1].copy()


def drawn_rows(part: Read, span: tuple[int, int], ends: Floats | None, given: Origin) -> Read:
    """Rows of a partition that a tree has drawn; without bootstrap, rows of positive weight."""
    (seed, n, draws, _), number = given
    if draws is not None:
        counts = part_counts(seed, number, n, draws, span, ends)
        part = part._replace(weight=counts.astype(np.float64))
    return part.that_count()


def class_weights(part: Read, n_classes: int) -> Floats:
    """The weight of each class."""
    return np.bincount(part.target, part.weight, minlength=n_classes).astype(np.float64)


def add_up(found: list[Floats]) -> Floats:
    """The weights of the classes in some partitions."""
    return np.sum(found, axis=0)


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


@fill(sections=_SECTIONS)
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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomForestClassifier._parameter_constraints,
        "client": [object],
    }
    __init__ = with_client(RandomForestClassifier)

    def _by_class(self, found: Any) -> Floats | None:
        """Weight of each class, where it is the same in all trees."""
        return None if self._balances_subsamples else super()._by_class(found)


@fill(sections=_SECTIONS)
class DaskRandomForestRegressor(RegressorOverPartitions, _DaskForest, RandomForestRegressor):
    """A random forest for regression, grown on the workers that store the partitions.

    See `DaskRandomForestClassifier`; parameters, attributes and errors are as for
    `gputree.RandomForestRegressor`, but for

    {sections}
    """

    _plain = RandomForestRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomForestRegressor._parameter_constraints,
        "client": [object],
    }
    __init__ = with_client(RandomForestRegressor)

    def predict_quantiles(self, X: Any = None, quantiles: Any = None) -> Any:
        """Raise ValueError: the targets in leaves are not kept; see ``quantreg``."""
        raise self._lacking("quantreg")
